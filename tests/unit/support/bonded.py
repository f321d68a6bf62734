"""The host gpu-server-8-rails with a bond over both ports of one more NIC."""

from __future__ import annotations

from typing import Any

from tests.unit.support import sysfs_tree
from tests.unit.support.sysfs_tree import Host

BOND, DEVICE = "bond1", "mlx5_bond_0"
MEMBERS = ["0000:3a:00.0", "0000:3a:00.1"]
NETDEVS = ["enp58s0f0np0", "enp58s0f1np1"]


def add_bond(host: Host, *addresses: str) -> None:
    """Give a host the bond of the fixture bond-of-one-nic, with addresses (text with prefix)."""
    sysfs_tree.build((sysfs_tree.FIXTURES / "bond-of-one-nic.txt").read_text(), host.root)
    mac = "b8:3f:d2:00:3a:00"
    members = [
        {**_entry(name, mac, 9978), "master": BOND, "permaddr": f"{mac[:-2]}0{at}"} for at, name in enumerate(NETDEVS)
    ]
    bond = {**_entry(BOND, mac, 65535), "linkinfo": {"info_kind": "bond"}}
    bond["addr_info"] = [
        {"family": "inet", "local": one.split("/")[0], "prefixlen": int(one.split("/")[1]), "scope": "global"}
        for one in addresses
    ]
    host.set_links([*host.links(), *members, bond])


def _entry(name: str, mac: str, most: int) -> dict[str, Any]:
    return {
        "ifname": name,
        "mtu": 1500,
        "address": mac,
        "flags": ["BROADCAST", "UP"],
        "min_mtu": 68,
        "max_mtu": most,
        "addr_info": [],
    }
