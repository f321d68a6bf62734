"""What a reboot ends, and what of it stands in its way: tables of what a host runs."""

from __future__ import annotations

import dataclasses
from typing import Any

import pytest
from tests.unit.support import sysfs_tree

from ansible_collections.gpufabric.rdma.plugins.module_utils._host.facts import disruption, network
from ansible_collections.gpufabric.rdma.plugins.module_utils._host.facts.inventory import HostInventory
from ansible_collections.gpufabric.rdma.plugins.module_utils._host.facts.port_use import Activity, Mount

POD_VOLUME = "/var/lib/kubelet/pods/0f1e2d3c-0000-4000-8000-000000000001/volumes/kubernetes.io~csi/v/mount"
PLACES = {"job[1]": "host", "pod[2]": "pod", "kubelet[3]": "node", "the kernel": "kernel", "kernel module x": "kernel"}
# A storage port of the server, and the bond of two other ports that has the default route.
STORAGE, MANAGEMENT = "enp41s0np0", "bond0"


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> HostInventory:
    with pytest.MonkeyPatch.context() as patch:
        host = sysfs_tree.materialise("gpu-server-8-rails", tmp_path_factory.mktemp("host"), patch)
        host.idle()
        return host.inventory()


def on(server: HostInventory, **activity: Any) -> HostInventory:
    ways = {"10.1.1.20": frozenset([STORAGE]), "10.9.9.9": frozenset([MANAGEMENT])}
    return dataclasses.replace(server, activity=Activity(**{"ways": ways, **activity}))


@pytest.mark.parametrize(
    ("activity", "connections", "stops", "warns"),
    [
        # Each line of ``stops``: without a drain, before one, after one.
        ({}, {}, ["", "", ""], ""),
        ({"queue_pairs": {"mlx5_0": ("job[1]",)}}, {}, ["RDMA queue pairs of job[1]"] * 3, ""),
        (
            {"queue_pairs": {"mlx5_99": ("pod[2]", "pod[2]")}}, {},
            ["RDMA queue pairs of pod[2]", "", ""], "RDMA queue pairs of pod[2]",
        ),
        (
            {"queue_pairs": {"mlx5_0": ("kernel module x",)}}, {},
            ["RDMA queue pairs of kernel module x", "", "RDMA queue pairs of kernel module x"], "",
        ),
        ({}, {"10.1.1.11": {"job[1]", "kubelet[3]"}}, ["TCP connections on 10.1.1.11 of job[1]"] * 3, ""),
        ({}, {"10.1.1.11": {"kubelet[3]"}}, ["", "", ""], ""),
        (
            {}, {"10.1.1.11": {"pod[2]"}},
            ["TCP connections on 10.1.1.11 of pod[2]", "", ""], "TCP connections on 10.1.1.11 of pod[2]",
        ),
        (
            {}, {"10.1.1.11": {"the kernel"}},
            ["TCP connections on 10.1.1.11 of the kernel", "", "TCP connections on 10.1.1.11 of the kernel"], "",
        ),
        (
            {"mounts": (Mount("nfs4 mount /scratch", "10.1.1.20"), Mount("nfs4 mount /home", "10.9.9.9"))}, {},
            ["nfs4 mount /scratch from 10.1.1.20"] * 3, "",
        ),
        (
            {"mounts": (Mount(f"nfs4 mount {POD_VOLUME}", "10.1.1.20"),)}, {},
            [f"nfs4 mount {POD_VOLUME} from 10.1.1.20", "", ""], f"nfs4 mount {POD_VOLUME} from 10.1.1.20",
        ),
        (
            {"mounts": (Mount("NVMe-oF controller nvme1", "10.1.1.20"),)}, {},
            ["NVMe-oF controller nvme1 from 10.1.1.20", "", "NVMe-oF controller nvme1 from 10.1.1.20"], "",
        ),
        ({"queue_pairs": None}, {}, ["queue pairs that cannot be read (install the rdma tool of iproute2)"] * 3, ""),
        ({"mounts": None}, {}, ["mounts that cannot be read"] * 3, ""),
        ({}, None, ["TCP connections that cannot be read (/proc/net/tcp)"] * 3, ""),
    ],
)  # fmt: skip
def test_what_stands_in_the_way_of_a_reboot(
    server: HostInventory, activity: dict[str, Any], connections: Any, stops: list[str], warns: str
) -> None:
    found = disruption.work(on(server, **activity), connections, PLACES)
    assert ["; ".join(disruption.in_the_way(found, drain)) for drain in ("none", "next", "done")] == stops
    assert ["; ".join(disruption.left_in_pods(found, drain)) for drain in ("none", "next", "done")] == ["", "", warns]


def test_a_host_without_rdma_ports_has_nothing_that_cannot_be_read(server: HostInventory) -> None:
    bare = dataclasses.replace(on(server, mounts=None, queue_pairs={}), ports=())
    assert disruption.work(bare, {}, {}) == []
    assert disruption.work_addresses(bare) == []


@pytest.mark.parametrize(
    ("default_route", "ssh", "vlan", "expected"),
    [
        ((MANAGEMENT,), None, False, ["10.1.1.11", "10.1.2.11"]),
        # In-band management on a port of the driver.
        ((STORAGE,), None, False, ["10.1.2.11"]),
        ((MANAGEMENT,), STORAGE, False, ["10.1.2.11"]),
        # A VLAN of that port is not management, and one that has the default route is all of it.
        ((STORAGE,), None, True, ["10.1.2.11", "10.7.0.1"]),
        (("vlan7",), None, True, ["10.1.1.11", "10.1.2.11"]),
    ],
)
def test_connections_of_the_management_are_no_work(
    server: HostInventory, default_route: tuple[str, ...], ssh: str | None, vlan: bool, expected: list[str]
) -> None:
    address = [{"local": "10.7.0.1", "prefixlen": 24, "scope": "global"}]
    on_top = {"ifname": "vlan7", "link": STORAGE, "linkinfo": {"info_kind": "vlan"}, "addr_info": address}
    interfaces = (*server.interfaces, *([network.Interface.from_ip(on_top)] if vlan else []))
    host = dataclasses.replace(server, default_route=default_route, ssh_netdev=ssh, interfaces=interfaces)
    assert sorted(disruption.work_addresses(host)) == expected


@pytest.mark.parametrize(
    ("holder", "cgroup", "expected"),
    [
        ("slurm[7]", "0::/system.slice/slurmd.service\n", "host"),
        ("python3[7]", "0::/kubepods.slice/kubepods-burstable.slice/x\n", "pod"),
        ("python3[7]", "11:cpu:/kubepods/burstable/pod1/x\n", "pod"),
        ("kubelet[7]", "0::/system.slice/kubelet.service\n", "node"),
        ("kubelet[7]", "0::/kubepods.slice/x\n", "pod"),
        ("odd [name][7]", "", "host"),
        ("the kernel", "", "kernel"),
        ("kernel module nvme_rdma", "", "kernel"),
    ],
)
def test_where_a_holder_runs(holder: str, cgroup: str, expected: str) -> None:
    assert disruption.place(holder, cgroup, ("kubelet",)) == expected
