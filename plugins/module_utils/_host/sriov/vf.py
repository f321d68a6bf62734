# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""One virtual function (VF): what it is now, and who uses it. Pure."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping
from typing import Any

from ..._common.errors import ParseError
from ..system import json_text

MAC_TEXT = len("00:00:00:00:00:00")
VFIO = "vfio-pci"
# The settings that are a VF's identity: drivers take a new one only when they bind again.
IDENTITY = ("mac", "guid")


@dataclasses.dataclass(frozen=True)
class Vf:
    """One VF now. ``settings`` is what the PF says of it (see ``parse_vfs``), ``mtu`` that of its netdev, in bytes.

    ``addresses`` and ``uppers`` are those of its netdevs; ``holders`` are processes that hold its RDMA device or
    its VFIO group, as ``name[pid]``.
    """

    index: int
    pci: str
    driver: str | None
    netdevs: tuple[str, ...] = ()
    rdma: tuple[str, ...] = ()
    mtu: int | None = None
    addresses: tuple[str, ...] = ()
    uppers: tuple[str, ...] = ()
    holders: tuple[str, ...] = ()
    settings: Mapping[str, Any] = dataclasses.field(default_factory=dict)

    def users(self, infiniband: bool) -> list[str]:
        """Say who uses the VF, nobody being an empty list; on InfiniBand a netdev need not exist."""
        found = [f"it has the address {address}" for address in self.addresses]
        found += [f"{upper} is configured on it" for upper in self.uppers]
        if self.driver == VFIO:
            found.append("it is bound to vfio-pci")
        elif self.driver and not (self.rdma if infiniband else self.netdevs):
            found.append(
                f"{self.driver} has bound it, but its device is in another network namespace, such as that of a pod"
            )
        return found + [f"{holder} holds it" for holder in self.holders]

    def now(self, wanted: Mapping[str, Any]) -> dict[str, Any]:
        """Return what of ``wanted`` the VF has now.

        A VF whose netdev is not here has no MTU that could differ.
        """
        have = {**self.settings, "mtu": self.mtu if self.mtu is not None else wanted.get("mtu")}
        return {key: have.get(key) for key in wanted}


def parse_vfs(text: str) -> dict[str, dict[int, dict[str, Any]]]:
    """Return PF's netdev -> index -> settings from ``ip -d -j link show``; ParseError when it has another form.

    Settings: mac, guid, trust, spoof_check, max_tx_rate (Mb/s, 0 without a limit), link_state; those that the
    driver does not tell are left out. The keys are iproute2's (``print_vfinfo`` of ip/ipaddress.c).
    """
    try:
        entries = [entry for entry in json_text.loads(text or "[]") if entry]
        return {
            entry["ifname"]: {one["vf"]: _settings(one) for one in entry["vfinfo_list"]}
            for entry in entries
            if entry.get("vfinfo_list")
        }
    except (ValueError, KeyError, TypeError, AttributeError) as error:
        raise ParseError(f"the output of 'ip -d -j link show' cannot be read: {error!r}") from error


def parse_holders(text: str) -> dict[str, tuple[str, ...]] | None:
    """Return RDMA device -> processes with a protection domain on it, from ``rdma -j resource show pd``.

    Whoever sends or receives has a protection domain; the kernel's own have no ``pid``. None when the text
    cannot be read.
    """
    try:
        found: dict[str, list[str]] = {}
        for item in json_text.loads(text or "[]"):
            if "pid" in item:
                found.setdefault(item["ifname"], []).append(f"{item.get('comm', '?')}[{item['pid']}]")
        return {device: tuple(sorted(set(names))) for device, names in found.items()}
    except (ValueError, KeyError, TypeError, AttributeError):
        return None


def vf_commands(netdev: str, index: int, before: Mapping[str, Any], *, after: Mapping[str, Any]) -> list[list[str]]:
    """Return the ``ip`` commands on the PF ``netdev`` that bring one VF from ``before`` to ``after``."""
    return [
        ["ip", "link", "set", "dev", netdev, "vf", str(index), *words]
        for key in after
        if key != "mtu" and before.get(key) != after[key]
        for words in _words(key, after[key])
    ]


def _words(key: str, value: Any) -> list[list[str]]:
    if key == "guid":
        node, _slash, port = value.partition("/")
        return [["node_guid", node], ["port_guid", port or node]]
    word = {"spoof_check": "spoofchk", "link_state": "state"}.get(key, key)
    return [[word, ("on" if value else "off") if isinstance(value, bool) else str(value)]]


def _settings(raw: Mapping[str, Any]) -> dict[str, Any]:
    guids = list(dict.fromkeys(raw[key].lower() for key in ("node guid", "port guid") if key in raw))
    address = raw.get("address", "").lower()
    found = {
        # VFs of InfiniBand show 20 bytes, which nobody can set.
        "mac": address if len(address) == MAC_TEXT else None,
        # Two different ones are no identity of ours; shown as they are.
        "guid": "/".join(guids) or None,
        "trust": raw.get("trust"),
        "spoof_check": raw.get("spoofchk"),
        # "rate" is the newer attribute, "tx_rate" the older one.
        "max_tx_rate": raw.get("rate", {}).get("max_tx", raw.get("tx_rate")),
        "link_state": raw.get("link_state"),
    }
    return {key: value for key, value in found.items() if value is not None}
