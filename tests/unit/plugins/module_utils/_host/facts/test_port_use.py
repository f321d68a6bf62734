"""Who uses a port: tables of what a host runs, and the uses that follow."""

from __future__ import annotations

import dataclasses
import ipaddress
import json
from pathlib import Path
from typing import Any

import pytest
from tests.unit.support import sysfs_tree

from ansible_collections.gpufabric.rdma.plugins.module_utils._common.host_facts import Use
from ansible_collections.gpufabric.rdma.plugins.module_utils._host.facts import network, port_use, tcp
from ansible_collections.gpufabric.rdma.plugins.module_utils._host.facts.inventory import HostInventory
from ansible_collections.gpufabric.rdma.plugins.module_utils._host.facts.port_use import Activity, Mount
from ansible_collections.gpufabric.rdma.plugins.module_utils._host.facts.tcp import Connections

# A storage port of the server, mlx5, with 10.1.1.11/24, and one of its rails without an address.
STORAGE, RAIL = "0000:9a:00.0", "0000:18:00.0"


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> HostInventory:
    with pytest.MonkeyPatch.context() as patch:
        host = sysfs_tree.materialise("gpu-server-8-rails", tmp_path_factory.mktemp("host"), patch)
        host.prints["rdma -j resource show qp"] = "[]"
        return host.inventory()


def interface(name: str, **values: Any) -> network.Interface:
    return network.Interface.from_ip({"ifname": name, **values})


def net(text: str) -> Any:
    return ipaddress.ip_network(text)


def storage_pci(server: HostInventory) -> str:
    return next(port.pci for port in server.ports if port.netdev and "10.1.1.11/24" in port.netdev.addresses)


def test_a_port_of_a_storage_network_is_in_use_and_an_idle_rail_is_not(server: HostInventory) -> None:
    port = server.port(storage_pci(server))
    assert server.uses(port) == [Use("address", "address 10.1.1.11/24")]
    assert server.uses(server.port(RAIL)) == []
    ours = dataclasses.replace(server, configured={port.pci: ("10.1.1.11/24",)})
    assert ours.uses(port) == []


@pytest.mark.parametrize(
    ("activity", "expected"),
    [
        ({"routes": (("NAME", net("0.0.0.0/0")),)}, ["route: the default route"]),
        ({"routes": (("NAME", net("10.1.1.0/24")),)}, []),
        ({"routes": (("NAME", net("10.9.0.0/16")),)}, ["route: route to 10.9.0.0/16"]),
        (
            {"routes": tuple(("NAME", net(f"10.{n}.0.0/16")) for n in range(5, 9))},
            ["route: 4 routes, e.g. to 10.5.0.0/16, 10.6.0.0/16"],
        ),
        ({"routes": (("eno1", net("10.9.0.0/16")),)}, []),
        ({"mounts": (Mount("nfs mount /d", "10.8.1.20"),)}, ["mount: nfs mount /d from 10.8.1.20"]),
        ({"mounts": (Mount("nfs mount /d", "10.9.1.20"),)}, []),
        (
            {"connections": {"10.1.1.11": Connections(12, ("a with b",)), "10.0.0.1": Connections(3, ("c with d",))}},
            ["tcp: 12 TCP connections, e.g. a with b"],
        ),
        (
            {"queue_pairs": {"DEVICE": ("python3[4711]", "python3[4711]"), "other": ("x[1]",)}},
            ["queue_pairs: 2 RDMA queue pairs of python3[4711]"],
        ),
        (
            {"queue_pairs": {"DEVICE": ("a[1]", "b[2]", "c[3]", "d[4]", "kernel module nvme_rdma")}},
            [
                "queue_pairs: 1 RDMA queue pair of kernel module nvme_rdma",
                "queue_pairs: 4 RDMA queue pairs of a[1], b[2], c[3], d[4]",
            ],
        ),
        ({"mounts": None}, ["unknown: mounts that cannot be read"]),
        ({"connections": None}, ["unknown: TCP connections that cannot be read (/proc/net/tcp)"]),
        ({"queue_pairs": None}, ["unknown: queue pairs that cannot be read (install the rdma tool of iproute2)"]),
    ],
)
def test_uses(server: HostInventory, activity: dict[str, Any], expected: list[str]) -> None:
    port = server.port(storage_pci(server))
    assert port.netdev
    routes = tuple((port.netdev.name if name == "NAME" else name, to) for name, to in activity.get("routes", ()))
    pairs = activity.get("queue_pairs", {})
    known = None if pairs is None else {port.rdma[0] if k == "DEVICE" else k: v for k, v in pairs.items()}
    found = port_use.uses(
        port,
        server.interfaces,
        Activity(**{**activity, "routes": routes, "queue_pairs": known, "ways": {"10.8.1.20": {port.netdev.name}}}),
        own=port.netdev.addresses,
    )
    assert [f"{use.kind}: {use.text}" for use in found] == expected


def test_routes_of_the_rail_are_no_use(server: HostInventory) -> None:
    port = server.port(storage_pci(server))
    assert port.netdev
    name, fabric = port.netdev.name, ipaddress.ip_network("fd00::/48")
    activity = Activity(routes=((name, fabric), (name, ipaddress.ip_network("fd00:1::/48"))))
    own = (*port.netdev.addresses, "fd00::/48")
    found = port_use.uses(port, server.interfaces, activity, own=own)
    assert [use.text for use in found] == ["route to fd00:1::/48"]


@pytest.mark.parametrize(
    ("server", "expected"),
    [
        ("10.1.1.20", {"storage0", "storage1"}),  # two devices lead to one network: either may be taken
        ("10.1.1.130", {"eno1"}),  # a more specific route
        ("192.0.2.1", {"eno1"}),
        ("2001:db8::1", set()),
    ],
)
def test_the_way_to_a_server_is_the_longest_prefix(server: str, expected: set[str]) -> None:
    table = {"storage0": "10.1.1.0/24", "storage1": "10.1.1.0/24", "eno1": "10.1.1.128/25"}
    routes = [*((name, net(text)) for name, text in table.items()), ("eno1", net("0.0.0.0/0"))]
    assert port_use.ways(server, routes) == expected


def test_queue_pairs_on_vfs_use_all_ports_with_vfs(server: HostInventory) -> None:
    pairs = {"mlx5_99": ("python3[4711]", "python3[4712]")}
    busy = dataclasses.replace(server, activity=dataclasses.replace(server.activity, queue_pairs=pairs))
    port = busy.port(RAIL)
    assert busy.uses(port) == []
    expected = [Use("queue_pairs", "RDMA queue pairs on VFs of python3[4711], python3[4712]")]
    assert busy.uses(dataclasses.replace(port, vfs_count=2)) == expected


def test_what_is_stacked_on_a_port_uses_it_and_so_does_what_that_carries(server: HostInventory) -> None:
    port = server.port(RAIL)
    assert port.netdev
    name = port.netdev.name
    address = [{"local": "10.7.0.1", "prefixlen": 24, "scope": "global"}]
    stack = [
        interface(name, master="bond7"),
        interface("bond7", linkinfo={"info_kind": "bond"}, master="br7"),
        interface("br7", linkinfo={"info_kind": "bridge"}),
        interface(f"{name}.5", link=name, linkinfo={"info_kind": "vlan"}, addr_info=address),
        interface("mac0", link=f"{name}.5", linkinfo={"info_kind": "macvlan"}),
        interface("eno1", addr_info=address),
    ]
    activity = Activity(connections={"10.7.0.1": Connections(1, ("x with y",))})
    found = port_use.uses(port, stack, activity)
    assert sorted(found) == [
        Use("address", "address 10.7.0.1/24"),
        Use("bond", "bond bond7"),
        Use("bridge", "bridge br7"),
        Use("tcp", "1 TCP connection, e.g. x with y"),
        Use("vlan", f"VLAN {name}.5"),
        Use("vlan", "macvlan mac0"),
    ]


def test_uses_are_bounded(server: HostInventory) -> None:
    port = server.port(RAIL)
    assert port.netdev
    many = [interface(f"v{n}", link=port.netdev.name, linkinfo={"info_kind": "vlan"}) for n in range(200)]
    found = port_use.uses(port, [interface(port.netdev.name), *many], Activity())
    assert len(found) == 13
    assert found[-1] == Use("unknown", "188 more uses")


def test_mounts_of_network_file_systems_are_parsed() -> None:
    text = """proc /proc proc rw 0 0
10.1.1.20:/vol/my\\040data /my\\040data nfs4 rw,vers=4.2,proto=rdma,clientaddr=10.1.1.11,addr=10.1.1.20 0 0
nas:/v /v nfs rw,addr=2001:db8::20,mountaddr=10.9.9.9 0 0
10.0.0.1@o2ib:10.0.0.2@o2ib:/fs /lustre lustre rw 0 0
admin@1234.fs=/ /ceph ceph rw,mon_addr=10.0.0.3:6789/10.0.0.4:6789 0 0
overlay / overlay rw,lowerdir=/x/1.2.3.4 0 0
beegfs_nodev /mnt/beegfs beegfs rw 0 0
short
"""
    assert port_use.parse_mounts(text) == [
        Mount("nfs4 mount /my data", "10.1.1.20"),
        Mount("nfs mount /v", "2001:db8::20"),
        Mount("lustre mount /lustre", "10.0.0.1"),
        Mount("lustre mount /lustre", "10.0.0.2"),
        Mount("ceph mount /ceph", "10.0.0.3"),
        Mount("ceph mount /ceph", "10.0.0.4"),
    ]
    address = "traddr=10.1.1.30,trsvcid=4420,host_traddr=10.1.1.11,src_addr=10.1.1.11"
    found = port_use.nvme_mounts({"nvme0": "0000:05:00.0", "nvme1": address, "nvme2": None})
    assert found == [Mount("NVMe-oF controller nvme1", "10.1.1.30")]


def test_established_connections_are_folded_by_local_address() -> None:
    found: dict[str, Connections] = {}
    tcp.fold_connections(
        [
            "  sl  local_address rem_address   st tx_queue",
            "   0: 0B01010A:0016 0901010A:C7F4 01 00000000:00000000 02:000AF000",
            "   1: 0B01010A:0016 0901010A:C7F5 01 00000000:00000000 02:000AF000",
            "   2: 0B01010A:0016 0901010A:C7F6 01 00000000:00000000 02:000AF000",
            "   3: 00000000:0016 00000000:0000 0A 00000000:00000000 00:00000000",
            "   4: 0100007F:0016 0100007F:C7F6 01 00000000:00000000 02:000AF000",
        ],
        found,
    )
    tcp.fold_connections(
        ["  0: 0000000000000000FFFF00000B01010A:0016 0000000000000000FFFF00000901010A:0017 01 0:0 0:0"], found
    )
    tcp.fold_connections(
        ["  0: B80D0120000000000000000001000000:0016 B80D0120000000000000000002000000:0017 01 0:0 0:0"], found
    )
    assert found == {
        "10.1.1.11": Connections(
            4, ("10.1.1.11 port 22 with 10.1.1.9 port 51188", "10.1.1.11 port 22 with 10.1.1.9 port 51189")
        ),
        "2001:db8::1": Connections(1, ("2001:db8::1 port 22 with 2001:db8::2 port 23",)),
    }


def test_queue_pairs_of_programs_and_of_storage_in_the_kernel_count() -> None:
    pairs = [
        {"ifname": "mlx5_0", "type": "GSI", "comm": "ib_core"},
        {"ifname": "mlx5_0", "type": "RC", "comm": "[nvme_rdma]"},
        {"ifname": "mlx5_0", "type": "RC", "comm": "ib_ipoib"},
        {"ifname": "mlx5_1", "type": "UD", "comm": "server", "pid": 7},
    ]
    expected = {"mlx5_0": ("kernel module nvme_rdma",), "mlx5_1": ("server[7]",)}
    assert port_use.parse_queue_pairs(json.dumps(pairs)) == expected
    assert port_use.parse_queue_pairs(None) is None
    assert port_use.parse_queue_pairs("[1]") is None


def test_ipv6_routes_of_a_device() -> None:
    zero, flags = "0" * 32, "00000400 00000001 00000000 00000003"
    lines = [
        f"{zero} 00 {zero} 00 fe800000000000000000000000000001 {flags} eth0",
        f"20010db8000000000000000000000000 40 {zero} 00 {zero} {flags} eth0",
        f"fe800000000000000000000000000000 40 {zero} 00 {zero} {flags} eth0",
        f"20010db8000000000000000000000001 80 {zero} 00 {zero} {flags} eth0",
        f"{zero} 00 {zero} 00 {zero} {flags} lo",
        f"20010db9000000000000000000000000 40 {zero} 00 {zero} {flags[:-8]}00450003 eth0",  # learned
    ]
    found = network.parse_ipv6_routes("\n".join(lines), learned=False)
    assert found == [("eth0", net("::/0")), ("eth0", net("2001:db8::/64"))]


def test_the_host_is_read_once_for_all_ports(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    host = sysfs_tree.materialise("gpu-server-8-rails", tmp_path, monkeypatch)
    (tmp_path / "proc/net/tcp").write_text("   0: 0B01010A:0016 0901010A:C7F4 01 0:0 0:0\n")
    (tmp_path / "proc/mounts").write_text("10.1.1.20:/d /d nfs4 rw,addr=10.1.1.20 0 0\n")
    facts = host.inventory().to_dict()
    texts = [use["text"] for port in facts["ports"] for use in port["uses"] if use["kind"] in ("tcp", "mount")]
    tcp = "1 TCP connection, e.g. 10.1.1.11 port 22 with 10.1.1.9 port 51188"
    assert texts == ["nfs4 mount /d from 10.1.1.20", tcp]
    (tmp_path / "proc/net/tcp").unlink()
    kinds = {use["kind"] for port in host.inventory().to_dict()["ports"] for use in port["uses"]}
    assert "unknown" in kinds
