"""Names, addresses and headers of DOCA-OFED by system, and who keeps a stack from being loaded again."""

from __future__ import annotations

import dataclasses
from pathlib import Path

import pytest
from tests.unit.support import sysfs_tree

from ansible_collections.gpufabric.rdma.plugins.module_utils._common.errors import ConflictError
from ansible_collections.gpufabric.rdma.plugins.module_utils._host.facts import loaded_drivers
from ansible_collections.gpufabric.rdma.plugins.module_utils._host.facts.inventory import HostInventory
from ansible_collections.gpufabric.rdma.plugins.module_utils._host.rdma_stack import doca

KEY = (Path(__file__).resolve().parents[5] / "fixtures/openpgp/ed25519.asc").read_text()
WANTED = doca.Wanted(
    "3.2.1", "doca-ofed", "1", "", "./", (), KEY, "04B5269410BCCA8EEB615B2E510A5488D02777A1", "dkms", True, {}
)  # fmt: skip
# The storage network of the server, over TCP, on ports of the same driver.
STORAGE = [
    "0000:29:00.0 (enp41s0np0) is in use: address 10.1.1.11/24",
    "0000:aa:00.0 (enp170s0np0) is in use: address 10.1.2.11/24",
]
VENDOR = "https://linux.mellanox.com/public/repo/doca"


@pytest.fixture()
def server(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> HostInventory:
    host = sysfs_tree.materialise("gpu-server-8-rails", tmp_path, monkeypatch)
    host.idle()
    return host.inventory()


def system(inventory: HostInventory, name: str, version: str, arch: str = "x86_64") -> HostInventory:
    return dataclasses.replace(inventory, arch=arch, os={**inventory.os, "id": name, "version": version})


@pytest.mark.parametrize(
    ("name", "version", "arch", "release", "expected"),
    [
        ("ubuntu", "24.04", "x86_64", "3.2.1", f"{VENDOR}/3.2.1/ubuntu24.04/x86_64/"),
        ("ubuntu", "22.04", "aarch64", "3.4.0", f"{VENDOR}/3.4.0/ubuntu22.04/arm64-sbsa/"),
        ("rocky", "9.6", "x86_64", "3.2.1", f"{VENDOR}/3.2.1/rhel9/x86_64/"),
        ("rhel", "9.6", "x86_64", "3.1.0", f"{VENDOR}/3.1.0/rhel9.6/x86_64/"),
        ("debian", "13", "x86_64", "3.2.1", f"{VENDOR}/3.2.1/debian13/x86_64/"),
    ],
)
def test_addresses(server: HostInventory, name: str, version: str, arch: str, release: str, expected: str) -> None:
    wanted = dataclasses.replace(WANTED, release=release)
    assert doca.address(wanted, system(server, name, version, arch)) == expected


@pytest.mark.parametrize(
    ("name", "version", "release", "expected"),
    [
        ("ubuntu", "24.04", "6.8.0-51-generic", "linux-headers-6.8.0-51-generic"),
        ("debian", "13", "6.12.9+deb13-amd64", "linux-headers-6.12.9+deb13-amd64"),
        ("almalinux", "9.6", "5.14.0-570.el9.x86_64", "kernel-devel-5.14.0-570.el9.x86_64"),
        ("rhel", "9.6", "5.14.0-570.el9.aarch64+64k", "kernel-64k-devel-5.14.0-570.el9.aarch64+64k"),
    ],
)
def test_packages_of_headers(server: HostInventory, name: str, version: str, release: str, expected: str) -> None:
    assert doca.headers_package(system(server, name, version), release) == expected


@pytest.mark.parametrize(
    ("name", "version", "kernel", "release", "problem"),
    [
        ("rocky", "9.6", "5.14.0-570.el9.x86_64", "3.1.0", None),
        ("ubuntu", "24.04", "6.17.0-8-generic", "3.4.1", None),
        ("sles", "15.7", "6.4.0-1-default", "3.4.1", "there is no package source for SUSE"),
        ("debian", "13", "6.12.9", "3.4.1",
         "it does not support debian13; supported are rhel10, rhel8, rhel9, ubuntu22.04, ubuntu24.04"),
        ("rhel", "10.0", "6.17.1-elrepo", "3.3.0",
         "kernel 6.17.1-elrepo, which runs, is not supported on rhel10; supported are 6.12.0-*"),
    ],
)  # fmt: skip
def test_what_releases_support(
    server: HostInventory, name: str, version: str, kernel: str, release: str, problem: str | None
) -> None:
    host = dataclasses.replace(system(server, name, version), kernel_release=kernel)
    wanted = dataclasses.replace(WANTED, release=release)
    if problem is None:
        doca.check(wanted, host, {kernel: True})
        return
    with pytest.raises(ConflictError) as caught:
        doca.check(wanted, host, {kernel: True})
    assert str(caught.value) == f"DOCA-OFED {release} cannot be installed on gpu-11: {problem}"


def test_who_keeps_a_stack_from_being_loaded_again(server: HostInventory) -> None:
    idle = dataclasses.replace(server, workloads=dataclasses.replace(server.workloads, queue_pairs=0))
    assert loaded_drivers.users(idle, {"mlx5_core": 3, "nvidia_peermem": 0, "rdma_rxe": 0}) == STORAGE
    rails = {port.pci: port.netdev.addresses for port in server.ports if port.netdev}
    assert loaded_drivers.users(dataclasses.replace(idle, configured=rails), {"mlx5_core": 3}) == []
    blind = dataclasses.replace(server.workloads, queue_pairs=None)
    busy = dataclasses.replace(server, workloads=blind, default_route=("enp24s0np0",))
    assert loaded_drivers.users(busy, {"irdma": 0}) == [
        "RDMA users cannot be determined (install iproute2's rdma tool)",
        "module irdma",
        "enp24s0np0 carries the default route",
        *STORAGE,
    ]


def test_a_member_of_a_bond_keeps_a_stack_too(server: HostInventory) -> None:
    first, *others = server.ports
    assert first.netdev is not None
    member = dataclasses.replace(first, netdev=dataclasses.replace(first.netdev, master="bond7"))
    idle = dataclasses.replace(server.workloads, queue_pairs=0)
    bonded = dataclasses.replace(server, workloads=idle, ports=(member, *others))
    assert loaded_drivers.users(bonded, {}) == [f"{first.title} is in use: master device bond7", *STORAGE]
