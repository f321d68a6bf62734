"""Bonds in the facts of a host: which can be a rail, and why others cannot. Milliseconds."""

from __future__ import annotations

import shutil
from collections.abc import Callable
from pathlib import Path

import pytest
from tests.unit.support import bonded, sysfs_tree
from tests.unit.support.sysfs_tree import Host

SYS = "sys/devices/pci0000:37/0000:37:01.0"
DEBUG, BONDING = "sys/kernel/debug/mlx5", "sys/class/net/bond1/bonding"


@pytest.fixture()
def host(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Host:
    made = sysfs_tree.materialise("gpu-server-8-rails", tmp_path, monkeypatch)
    made.idle()
    bonded.add_bond(made, "10.3.0.11/24")
    return made


def test_facts_have_the_bond_and_its_port(host: Host) -> None:
    facts = host.inventory().to_dict()
    (bond,) = facts["bonds"]
    port = bond.pop("port")
    assert bond == {
        "name": "bond1",
        "mode": "802.3ad 4",
        "lag": "active",
        "members": [
            {"netdev": name, "pci": pci, "speed": 100.0, "carrier": True}
            for name, pci in zip(bonded.NETDEVS, bonded.MEMBERS)
        ],
        "problem": "",
    }
    assert {key: port[key] for key in ("pci", "netdev", "rdma", "speed", "mtu", "addresses", "master")} == {
        "pci": bonded.MEMBERS[0],
        "netdev": "bond1",
        "rdma": ["mlx5_bond_0"],
        # The rate of one member: a flow uses one of them.
        "speed": 100.0,
        "mtu": 1500,
        "addresses": ["10.3.0.11/24"],
        "master": None,
    }
    # The ports themselves stay members.
    members = {port["pci"]: port for port in facts["ports"] if port["pci"] in bonded.MEMBERS}
    assert {pci: port["master"] for pci, port in members.items()} == dict.fromkeys(bonded.MEMBERS, "bond1")


def test_a_host_without_bonds_of_the_kernel_has_none(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    made = sysfs_tree.materialise("gpu-server-8-rails", tmp_path, monkeypatch)
    inventory = made.inventory()
    assert inventory.to_dict()["bonds"] == []
    assert inventory.through_bonds({}) is inventory


def write(path: str, text: str) -> Callable[[Host], object]:
    return lambda host: (host.root / path).write_text(text)


def without_lag(host: Host) -> None:
    shutil.rmtree(host.root / DEBUG)


def renamed(host: Host) -> None:
    """The device as udev can call it."""
    folder = host.root / "sys/class/infiniband"
    (folder / "rocep58s0").symlink_to((folder / "mlx5_bond_0").readlink())
    (folder / "mlx5_bond_0").unlink()


def not_joined(host: Host) -> None:
    """Each port has a device of its own."""
    folder = host.root / "sys/class/infiniband"
    second = host.root / SYS / "0000:3a:00.1/infiniband/mlx5_12"
    shutil.copytree((folder / "mlx5_bond_0").resolve(), second)
    (folder / "mlx5_12").symlink_to(second)
    for pci in bonded.MEMBERS:
        (host.root / DEBUG / pci / "lag/state").write_text("disabled")


def with_vfs(host: Host) -> None:
    not_joined(host)
    (host.root / SYS / "0000:3a:00.0/sriov_numvfs").write_text("4")


def no_device(host: Host) -> None:
    (host.root / "sys/class/infiniband/mlx5_bond_0").unlink()


@pytest.mark.parametrize(
    ("change", "problem"),
    [
        pytest.param(write(f"{BONDING}/mode", "active-backup 1"), "", id="active-backup"),
        pytest.param(without_lag, "", id="debugfs not readable"),
        pytest.param(renamed, "", id="device renamed by udev"),
        pytest.param(no_device, "", id="RDMA driver not loaded yet"),
        pytest.param(
            write(f"{BONDING}/mode", "balance-rr 0"),
            "has mode balance-rr 0; RDMA requires active-backup, balance-xor or 802.3ad",
            id="mode",
        ),
        pytest.param(
            write(f"{BONDING}/slaves", "enp58s0f0np0 enp24s0np0"),
            "has members of several NICs (0000:18:00.0, 0000:3a:00.0), which have no RDMA device in common",
            id="two NICs",
        ),
        pytest.param(
            write(f"{BONDING}/slaves", "eno1 eno2"),
            "has members with driver i40e; only mlx5_core gives a bond an RDMA device",
            id="another vendor",
        ),
        pytest.param(
            write(f"{BONDING}/slaves", "enp58s0f0np0"),
            "has 1 members; ports have an RDMA device in common from 2 on",
            id="one member",
        ),
        pytest.param(
            write(f"{BONDING}/slaves", "dummy0 enp58s0f0np0"),
            "has the member dummy0, which is not a port of a NIC",
            id="no port",
        ),
        pytest.param(
            not_joined,
            "has no RDMA device of its own (RDMA devices of its members: mlx5_12 at 0000:3a:00.1, mlx5_bond_0 at "
            "0000:3a:00.0; LAG of the NIC: disabled)",
            id="not joined",
        ),
        pytest.param(
            with_vfs,
            "has no RDMA device of its own (RDMA devices of its members: mlx5_12 at 0000:3a:00.1, mlx5_bond_0 at "
            "0000:3a:00.0; LAG of the NIC: disabled). VFs of the members prevent it",
            id="VFs",
        ),
        pytest.param(
            lambda host: (no_device(host), without_lag(host)),
            "has no RDMA device of its own (RDMA devices of its members: none)",
            id="nothing known",
        ),
    ],
)
def test_what_can_be_a_rail(host: Host, change: Callable[[Host], object], problem: str) -> None:
    change(host)
    (bond,) = host.inventory().bonds
    assert bond.problem == problem


def test_a_renamed_device_of_one_port_alone_is_not_that_of_the_bond(host: Host) -> None:
    renamed(host)
    without_lag(host)
    (bond,) = host.inventory().bonds
    assert bond.problem == "has no RDMA device of its own (RDMA devices of its members: rocep58s0 at 0000:3a:00.0)"


def test_a_bond_with_the_default_route_has_a_duty(host: Host) -> None:
    path = host.root / "proc/net/route"
    path.write_text(path.read_text().replace("bond0\t00000000", "bond1\t00000000"))
    (bond,) = host.inventory().to_dict()["bonds"]
    assert bond["port"]["duty"] == "carries the default route"
