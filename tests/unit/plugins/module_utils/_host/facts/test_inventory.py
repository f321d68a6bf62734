"""Whole machines from their manifests: what the inventory says of each."""

from __future__ import annotations

import contextlib
import dataclasses
import json
import time
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.unit.support import config_space, sysfs_tree

from ansible_collections.gpufabric.rdma.plugins.module_utils._common.errors import InputError, ParseError
from ansible_collections.gpufabric.rdma.plugins.module_utils._host.facts import drivers, inventory, network
from ansible_collections.gpufabric.rdma.plugins.module_utils._host.facts import io as facts_io
from ansible_collections.gpufabric.rdma.plugins.module_utils._host.facts.inventory import HostInventory, Workloads

GPU_SERVER = "gpu-server-8-rails"
ODD_HOST = "odd-host"
# ansible_facts.rdma as other parts rely on it.
FACTS = [
    "schema",
    "machine_id",
    "hostname",
    "arch",
    "os",
    "kernel",
    "virtual",
    "secure_boot",
    "iommu_groups",
    "managers",
    "ports",
    "bonds",
    "lost_rails",
    "lost_addresses",
    "rdma_devices",
    "gpus",
    "default_route",
    "ssh_netdev",
    "networks",
    "modules",
    "drivers",
    "perftest",
    "nvidia_driver",
    "memory_peers",
    "workloads",
    "reboot",
    "next_kernel",
]
PORT = [
    "pci",
    "vendor",
    "device",
    "driver",
    "netdev",
    "mac",
    "mtu",
    "speed",
    "max_speed",
    "carrier",
    "operstate",
    "link_layer",
    "pkey",
    "numa_node",
    "local_cpus",
    "pcie",
    "vfs",
    "master",
    "addresses",
    "rdma",
    "path",
    "uplinks",
    "ats",
    "passthrough",
    "duty",
    "switch",
    "uses",
    "configured",
]
DEVICE = [
    "name",
    "pci",
    "netdev",
    "state",
    "link_layer",
    "rate",
    "active_mtu",
    "node_guid",
    "firmware",
]


def read(name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> HostInventory:
    return sysfs_tree.materialise(name, tmp_path, monkeypatch).inventory()


@pytest.mark.parametrize("name", [GPU_SERVER, ODD_HOST])
def test_facts_have_exactly_the_agreed_keys(name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    facts = read(name, tmp_path, monkeypatch).to_dict()
    assert list(facts) == FACTS
    assert all(set(port) == set(PORT) for port in facts["ports"])
    assert all(set(device) == set(DEVICE) for device in facts["rdma_devices"])
    assert json.loads(json.dumps(facts)) == facts


def test_gpu_server_rails_are_not_the_first_devices(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    facts = read(GPU_SERVER, tmp_path, monkeypatch).to_dict()
    rails = [port for port in facts["ports"] if port["speed"] == 400.0]
    assert [(port["pci"], port["rdma"][0]) for port in rails] == [
        ("0000:18:00.0", "mlx5_0"),
        ("0000:40:00.0", "mlx5_2"),
        ("0000:4f:00.0", "mlx5_3"),
        ("0000:5e:00.0", "mlx5_4"),
        ("0000:9a:00.0", "mlx5_5"),
        ("0000:c0:00.0", "mlx5_7"),
        ("0000:ce:00.0", "mlx5_8"),
        ("0000:dc:00.0", "mlx5_9"),
    ]
    assert len(facts["ports"]) == 12
    assert [port["master"] for port in facts["ports"] if port["driver"] == "i40e"] == ["bond0", "bond0"]


def test_gpu_server_port(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    port = read(GPU_SERVER, tmp_path, monkeypatch).port("0000:9a:00.0").to_dict()
    assert port == {
        "pci": "0000:9a:00.0",
        "vendor": "15b3",
        "device": "1021",
        "driver": "mlx5_core",
        "netdev": "enp154s0np0",
        "mac": "b8:3f:d2:00:9a:00",
        "mtu": 4200,
        "speed": 400.0,
        "max_speed": None,
        "carrier": True,
        "operstate": "up",
        "link_layer": "ethernet",
        "pkey": None,
        "numa_node": 1,
        "local_cpus": "56-111,168-223",
        "pcie": {"speed": 32.0, "width": 16, "max_speed": 32.0, "max_width": 16, "max_payload": None},
        "vfs": {"total": 16, "count": 0, "rate": None},
        "master": None,
        "addresses": [],
        "rdma": ["mlx5_5"],
        "path": ["pci0000:97", "0000:97:01.0", "0000:98:00.0", "0000:99:00.0", "0000:9a:00.0"],
        "uplinks": [
            {
                **{"pci": pci, "speed": None, "width": None, "max_speed": None, "max_width": None},
                **{"redirects": None, "translated_direct": None},
            }
            for pci in ("0000:97:01.0", "0000:98:00.0", "0000:99:00.0")
        ],
        "ats": None,
        "passthrough": None,
    }


def test_the_links_of_the_bridges_above_a_port(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    host = sysfs_tree.materialise(GPU_SERVER, tmp_path, monkeypatch)
    (found,) = [port for port in host.inventory().ports if port.pci == "0000:18:00.0"]
    assert [(link.pci, link.speed, link.width) for link in found.uplinks] == [
        ("0000:15:01.0", 32.0, 16),
        ("0000:16:00.0", 32.0, 16),
        ("0000:17:00.0", 32.0, 16),
    ]


def test_what_a_hypervisor_says_of_its_bridges_counts_for_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    host = sysfs_tree.materialise(GPU_SERVER, tmp_path, monkeypatch)
    (tmp_path / "proc/cpuinfo").write_text("flags : fpu hypervisor\n")
    assert all(port.uplinks == () for port in host.inventory().ports)


def test_root_reads_the_payload_of_pcie_packets(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    host = sysfs_tree.materialise(GPU_SERVER, tmp_path, monkeypatch)
    config = bytearray(256)
    # The list of capabilities begins at 0x60 with PCI Express; Device Control asks for an MPS of 512.
    config[0x34], config[0x60], config[0x68] = 0x60, 0x10, 2 << 5
    (tmp_path / "sys/bus/pci/devices/0000:18:00.0/config").write_bytes(config)
    (tmp_path / "sys/bus/pci/devices/0000:40:00.0/config").write_bytes(config[:64])
    payloads = {port.pci: port.to_dict()["pcie"]["max_payload"] for port in host.inventory().ports}
    assert (payloads["0000:18:00.0"], payloads["0000:40:00.0"], payloads["0000:9a:00.0"]) == (512, None, None)


def test_acs_of_bridges_and_ats_of_ports(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    host = sysfs_tree.materialise(GPU_SERVER, tmp_path, monkeypatch)
    devices = tmp_path / "sys/bus/pci/devices"
    port = devices / "0000:18:00.0"
    parents = {path.name: path for path in port.resolve().parents}
    (parents["0000:17:00.0"] / "config").write_bytes(config_space.bridge(0x001D))
    (parents["0000:16:00.0"] / "config").write_bytes(config_space.bridge(0x0040))
    # Users other than root get 64 bytes.
    (parents["0000:15:01.0"] / "config").write_bytes(config_space.bridge(0x001D, 64))
    config = bytearray(4096)
    config[0x100:0x108] = (0x000F | 1 << 16).to_bytes(4, "little") + bytes([0, 0, 0, 0x80])
    (port / "config").write_bytes(config)
    (found,) = [one for one in host.inventory().ports if one.pci == "0000:18:00.0"]
    assert [link.redirects for link in found.uplinks] == [None, False, True]
    assert [link.translated_direct for link in found.uplinks] == [None, True, False]
    assert found.ats is True
    (port / "config").write_bytes(config_space.bridge(None))
    assert [one.ats for one in host.inventory().ports if one.pci == "0000:18:00.0"] == [False]


@pytest.mark.parametrize(
    ("functions", "rate"),
    [
        ([], None),
        ([{"vf": 0, "rate": {"max_tx": 0, "min_tx": 0}}, {"vf": 1}], None),
        ([{"vf": 0, "rate": {"max_tx": 50000, "min_tx": 0}}, {"vf": 1, "tx_rate": 25000}], 25.0),
    ],
)
def test_the_lowest_limit_of_a_vf(
    functions: list[dict[str, object]], rate: float | None, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    host = sysfs_tree.materialise(GPU_SERVER, tmp_path, monkeypatch)
    links = host.links()
    for link in links:
        if link["ifname"] == "enp24s0np0":
            link["vfinfo_list"] = functions
    host.set_links(links)
    assert host.inventory().port("0000:18:00.0").to_dict()["vfs"] == {"total": 16, "count": 0, "rate": rate}


def test_each_gpu_shares_a_switch_with_a_rail(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    inventory = read(GPU_SERVER, tmp_path, monkeypatch)
    switches = {port.path[:3] for port in inventory.ports if len(port.path) == 5}
    assert len(inventory.gpus) == 8
    assert {gpu.path[:3] for gpu in inventory.gpus} == switches


def test_gpu_server_host(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    facts = read(GPU_SERVER, tmp_path, monkeypatch).to_dict()
    assert facts["hostname"] == "gpu-11"
    assert facts["os"] == {"id": "ubuntu", "version": "24.04", "name": "Ubuntu 24.04.1 LTS", "like": "debian"}
    assert facts["managers"] == ["systemd-networkd"]
    assert facts["default_route"] == ["bond0"]
    assert facts["ssh_netdev"] == "bond0"
    # The routes of single pods (/32) are no networks; storage is a port's, and stands there.
    assert facts["networks"] == ["10.0.0.0/24", "10.244.5.0/24"]
    assert facts["modules"] == {"ib_uverbs": 2, "mlx5_core": 1, "mlx5_ib": 0, "nvidia_peermem": 0, "rdma_ucm": 0}
    assert facts["perftest"] == {"path": "/usr/bin/ib_write_bw", "version": "24.01.0"}
    assert facts["nvidia_driver"] == {"version": "555.58.02", "open": True}
    assert facts["memory_peers"] == ["nv_mem"]
    assert facts["workloads"] == {"queue_pairs": 2, "holders": ["python3[4711]"]}
    assert (facts["virtual"], facts["secure_boot"], facts["iommu_groups"]) == (False, False, 12)
    device = facts["rdma_devices"][0]
    assert (device["state"], device["rate"], device["active_mtu"]) == ("ACTIVE", 400.0, 4096)


@pytest.mark.parametrize(
    ("raw", "told"),
    [
        ({"version": "24.10-2.1.8", "srcversion": "8F7D", "taint": "OE"}, "24.10-2.1.8, srcversion 8F7D"),
        ({"version": "24.10-2.1.8", "srcversion": None, "taint": "OE"}, "24.10-2.1.8"),
        ({"version": None, "srcversion": "8F7D", "taint": "O"}, "srcversion 8F7D"),
        # Out-of-tree, and nothing says which one.
        ({"version": None, "srcversion": None, "taint": "OE"}, None),
        ({"version": "", "srcversion": "", "taint": "OE"}, None),
        ({"version": None, "srcversion": "8F7D", "taint": ""}, "srcversion 8F7D"),
        # The kernel of an in-tree driver is its version; built-in drivers have no taint.
        ({"version": None, "srcversion": None, "taint": ""}, "in-tree, kernel 6.8.0-45-generic"),
        ({"version": "5.1.0-k", "srcversion": None, "taint": None}, "5.1.0-k, in-tree, kernel 6.8.0-45-generic"),
    ],
)
def test_the_version_of_a_driver(raw: dict[str, str | None], told: str | None) -> None:
    assert drivers.version(raw, "6.8.0-45-generic") == told


@pytest.mark.parametrize("linked", [False, True])
def test_a_driver_can_have_another_name_than_its_module(
    linked: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A driver that is built in has no link to its module."""
    host = sysfs_tree.materialise(ODD_HOST, tmp_path, monkeypatch)
    module = tmp_path / "sys/module" / ("other" if linked else "vfio_pci")
    module.mkdir(parents=True)
    (module / "srcversion").write_text("8F7D\n")
    if linked:
        driver = tmp_path / "sys/bus/pci/drivers/vfio-pci"
        driver.mkdir(parents=True)
        (driver / "module").symlink_to(module)
        link = tmp_path / "sys/bus/pci/devices/0000:41:00.0/driver"
        link.unlink()
        link.symlink_to(driver)
    assert host.inventory().to_dict()["drivers"]["vfio-pci"] == "srcversion 8F7D"


def test_drivers_of_ports_and_of_rdma_devices_have_versions(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    host = sysfs_tree.materialise(GPU_SERVER, tmp_path, monkeypatch)
    before = host.inventory().to_dict()["drivers"]
    modules = {"mlx5_core": "24.10", "mlx5_ib": "24.10", "ib_core": None, "nfs": "1"}
    for name, version in modules.items():
        (tmp_path / "sys/module" / name).mkdir(parents=True, exist_ok=True)
        (tmp_path / "sys/module" / name / "taint").write_text("OE\n" if version else "\n")
        if version:
            (tmp_path / "sys/module" / name / "version").write_text(version + "\n")
    kernel = host.inventory().kernel_release
    assert host.inventory().to_dict()["drivers"] == {
        **before,
        "ib_core": f"in-tree, kernel {kernel}",
        "mlx5_core": "24.10",
        "mlx5_ib": "24.10",
    }


def test_odd_host(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    facts = read(ODD_HOST, tmp_path, monkeypatch).to_dict()
    ports = {port["pci"]: port for port in facts["ports"]}
    narrow, infiniband, unbound = (ports[f"0000:{bus}:00.0"] for bus in ("01", "21", "41"))
    assert (narrow["pcie"]["width"], narrow["pcie"]["max_width"]) == (8, 16)
    assert (narrow["carrier"], narrow["speed"]) == (False, 40.0)
    assert (infiniband["link_layer"], infiniband["speed"], infiniband["numa_node"]) == ("infiniband", 400.0, None)
    assert (unbound["netdev"], unbound["driver"], unbound["mtu"]) == (None, "vfio-pci", None)
    assert (facts["managers"], facts["secure_boot"], facts["perftest"]) == (["NetworkManager"], True, None)
    assert facts["ssh_netdev"] is None
    # The mask 255.255.252.0; eno1 is a port, but the default route keeps it from being a rail.
    assert facts["networks"] == ["172.16.0.0/22"]
    assert [d["active_mtu"] for d in facts["rdma_devices"]] == [1024, 2048]
    assert facts["workloads"]["queue_pairs"] is None


def neighbours(netdevs: list[str]) -> str:
    """What lldpctl prints when each port hangs on a switch of its own with a long name (made by hand)."""
    interfaces = [
        {
            "name": netdev,
            "chassis": [
                {
                    "id": [{"type": "mac", "value": f"48:b0:2d:00:00:{number:02x}"}],
                    "name": [{"value": f"leaf{number}.row-17.fabric-east.example.com"}],
                }
            ],
            "port": [{"id": [{"type": "ifname", "value": f"Ethernet{number}/32"}]}],
        }
        for number, netdev in enumerate(netdevs)
    ]
    return json.dumps({"lldp": [{"interface": interfaces}]})


def test_switch_ports_of_rails_are_known_where_lldp_runs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    host = sysfs_tree.materialise(GPU_SERVER, tmp_path, monkeypatch)
    assert {port["switch"] for port in host.inventory().to_dict()["ports"]} == {None}
    host.prints["/usr/sbin/lldpctl"] = ""
    host.prints["lldpctl -f json0"] = neighbours(["eno1", "enp24s0np0"])
    facts = host.inventory().to_dict()
    assert {port["pci"]: port["switch"] for port in facts["ports"]}["0000:18:00.0"] == {
        "system": "leaf1.row-17.fabric-east.example.com",
        "chassis": "48:b0:2d:00:00:01",
        "port": "Ethernet1/32",
        "max_frame": None,
        "pfc": None,
    }


def test_networkd_is_asked_where_it_runs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    host = sysfs_tree.materialise(GPU_SERVER, tmp_path, monkeypatch)
    host.prints["/usr/bin/networkctl"] = ""
    reply = {"InterfaceName": "enp24s0np0", "Neighbors": [{"ChassisID": "x", "PortID": "swp1", "SystemName": "leaf1"}]}
    host.prints["networkctl lldp --json=short"] = json.dumps({"Neighbors": [reply]})
    assert host.inventory().neighbours["enp24s0np0"].system == "leaf1"
    monkeypatch.setattr(facts_io, "managers", lambda roots: ["NetworkManager"])
    assert host.inventory().neighbours == {}


@pytest.mark.parametrize("said", ["lldpd is not running", ""])
def test_lldp_that_fails_fails_nothing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, said: str) -> None:
    host = sysfs_tree.materialise(GPU_SERVER, tmp_path, monkeypatch)
    host.prints["/usr/sbin/lldpctl"] = ""
    host.reacts = lambda argv: said if argv[0] == "lldpctl" else None
    assert host.inventory().neighbours == {}


# Recorded: smpquery of infiniband-diags 44.0 on a fabric that ibsim 0.10 simulates, as far as it is read.
NODE = """# Node info: DR path slid 65535; dlid 65535; 0,1
NodeType:........................{}
Guid:............................0xb83fd20300a00001
PortGuid:........................0xb83fd20300a00001
LocalPort:.......................7
"""
NAME = "Node Description:...........................leaf1 row 7\n"


@pytest.mark.parametrize(
    ("info", "name", "system"),
    [
        (NODE.format("Switch"), NAME, "leaf1 row 7"),
        (NODE.format("Switch"), "Node Description:....\x1b[31m\n", ""),
        # Two hosts with a cable between them; another form.
        (NODE.format("Channel Adapter"), NAME, None),
        (NODE.format("Switch").replace("0xb8", "b8"), NAME, None),
        ("", "", None),
    ],
)
def test_the_switch_of_an_infiniband_port(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, info: str, name: str, system: str | None
) -> None:
    host = sysfs_tree.materialise(ODD_HOST, tmp_path, monkeypatch)
    assert host.inventory().neighbours == {}
    host.prints["/usr/sbin/smpquery"] = ""
    host.prints["smpquery -C mlx5_1 -P 1 -D nodeinfo 0,1"] = info
    host.prints["smpquery -C mlx5_1 -P 1 -D nodedesc 0,1"] = name
    found = {port["pci"]: port["switch"] for port in host.inventory().to_dict()["ports"] if port["switch"]}
    expected = {"system": system, "chassis": "0xb83fd20300a00001", "port": "7", "max_frame": None, "pfc": None}
    assert found == ({} if system is None else {"0000:21:00.0": expected})
    # The second port of a device (mlx4) has another switch port than the first.
    for netdev in tmp_path.glob("**/0000:21:00.0/net/*"):
        (netdev / "dev_port").write_text("1\n")
    assert host.inventory().neighbours == {}


def test_a_subnet_that_does_not_answer_fails_nothing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    host = sysfs_tree.materialise(ODD_HOST, tmp_path, monkeypatch)
    host.prints["/usr/sbin/smpquery"] = ""
    host.reacts = lambda argv: "smpquery: iberror: failed" if argv[0] == "smpquery" else None
    assert host.inventory().neighbours == {}


def test_facts_of_eight_rails_are_small_and_quick(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    host = sysfs_tree.materialise(GPU_SERVER, tmp_path, monkeypatch)
    host.prints["/usr/sbin/lldpctl"] = ""
    netdevs = [port.netdev.name for port in host.inventory().ports if port.netdev]
    host.prints["lldpctl -f json0"] = neighbours(netdevs)
    start = time.process_time()
    facts = host.inventory().to_dict()
    assert time.process_time() - start < 0.3
    assert len(json.dumps(facts)) < 20_000


def test_reboot_reasons_are_read(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    host = sysfs_tree.materialise(ODD_HOST, tmp_path, monkeypatch)
    folder = tmp_path / "run/gpufabric/reboot.d"
    folder.mkdir(parents=True)
    (folder / "netdev_names").write_text("first\nsecond\n")
    assert host.inventory().reboot == ("first", "second")


def test_the_kernel_that_boots_next(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    host = sysfs_tree.materialise(GPU_SERVER, tmp_path, monkeypatch)
    assert host.inventory().next_kernel is None
    for release in ("6.8.0-51-generic", "6.8.0-124-generic", "6.8.0-99-generic"):
        (tmp_path / "boot").mkdir(exist_ok=True)
        (tmp_path / f"boot/vmlinuz-{release}").touch()
        (tmp_path / f"lib/modules/{release}").mkdir(parents=True)
    assert host.inventory().to_dict()["next_kernel"] == "6.8.0-124-generic"
    (tmp_path / "boot/grub").mkdir()
    (tmp_path / "boot/grub/grub.cfg").write_text("menuentry 'A' {\n linux /boot/vmlinuz-6.8.0-51-generic\n}\n")
    assert host.inventory().next_kernel == "6.8.0-51-generic"


def link(name: str, **more: Any) -> dict[str, Any]:
    return {"ifname": name, "mtu": 1500, "addr_info": [], **more}


def made(kind: str) -> dict[str, Any]:
    return {"linkinfo": {"info_kind": kind}}


# Keys as `ip -d -j addr show` of iproute2 6.1 prints them: `link` is below, `master` above. Open vSwitch by hand.
BOND = [link("a", master="bond0"), link("b", master="bond0"), link("bond0", **made("bond"))]
OVS = [link("a", master="ovs-system"), link("ovs-system", **made("openvswitch")), link("br-ex", **made("openvswitch"))]


@pytest.mark.parametrize(
    ("links", "name", "expected"),
    [
        ([link("a"), link("b")], "a", {"a"}),
        ([link("a"), link("mgmt", link="a", **made("vlan"))], "mgmt", {"mgmt", "a"}),
        ([link("a"), link("mgmt", link="a", **made("vlan"))], "a", {"a"}),
        ([link("v0", link="v1", **made("veth")), link("mv", link="v0", **made("macvlan"))], "mv", {"mv", "v0", "v1"}),
        ([*BOND, link("c")], "bond0", {"bond0", "a", "b"}),
        ([*BOND, link("v", link="bond0", master="br0"), link("br0")], "br0", {"br0", "v", "bond0", "a", "b"}),
        (OVS, "br-ex", {"br-ex", "a"}),
        ([], "gone", {"gone"}),
    ],
)
def test_what_a_network_device_stands_on(links: list[dict[str, Any]], name: str, expected: set[str]) -> None:
    interfaces = network.parse_interfaces(json.dumps(links)).values()
    assert network.carriers(interfaces, name) == expected


NAMES = st.sampled_from("abcd")


@given(st.lists(st.builds(link, NAMES, link=NAMES | st.none(), master=NAMES | st.none())), NAMES)
def test_devices_that_stand_on_each_other_end_somewhere(links: list[dict[str, Any]], name: str) -> None:
    assert name in network.carriers(network.parse_interfaces(json.dumps(links)).values(), name)


VALUES = st.recursive(
    st.none() | st.integers() | st.sampled_from(["eth0", "fe80::1", "10.0.0.1"]) | st.text(max_size=3),
    lambda inner: (
        st.lists(inner, max_size=2)
        | st.dictionaries(st.sampled_from(["local", "prefixlen", "scope", "info_kind", "rate", "max_tx", "pid"]), inner)
    ),
    max_leaves=8,
)
KEYS = ("addr_info", "linkinfo", "vfinfo_list", "altnames", "link", "master", "mtu", "min_mtu", "address")
ADDRESS = st.fixed_dictionaries({"local": VALUES, "prefixlen": VALUES, "scope": st.just("global")})
ENTRIES = st.lists(
    st.fixed_dictionaries({"ifname": VALUES}, optional={**dict.fromkeys(KEYS, VALUES), "addr_info": st.lists(ADDRESS)})
)


@given(st.text() | (VALUES | ENTRIES).map(json.dumps))
def test_other_output_of_ip_is_a_parse_error(text: str) -> None:
    with contextlib.suppress(ParseError):
        interfaces = network.parse_interfaces(text)
        network.ssh_netdev("192.0.2.1 1 10.0.0.1 22", interfaces.values())
        network.own_networks(interfaces.values(), [], [])
        network.carriers(interfaces.values(), "eth0")


FIELDS = st.lists(st.sampled_from(["eth0", "0003", "00000000", "FFFFFFFF", "FFFFFFFFFF", "x", "²"]), max_size=11)
LINES = st.lists(FIELDS.map(" ".join)).map("\n".join)


@given(st.text() | LINES, st.text() | LINES)
def test_other_routes_are_a_parse_error(ipv4: str, ipv6: str) -> None:
    with contextlib.suppress(ParseError):
        network.parse_routes(f"Iface\n{ipv4}", ipv6)


@given(st.text() | st.text(alphabet="ID='\"\\\n =a"), st.text() | VALUES.map(json.dumps), st.text() | LINES)
def test_any_text_of_a_host_is_read(release: str, pairs: str, modules: str) -> None:
    assert set(inventory._os_release(release)) == {"id", "version", "name", "like"}
    assert isinstance(Workloads.from_rdma(pairs).holders, tuple)
    assert all(count >= 0 for count in inventory._rdma_modules(modules).values())


def test_ports_say_what_they_carry(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    facts = read(GPU_SERVER, tmp_path, monkeypatch).to_dict()
    assert {port["netdev"]: port["duty"] for port in facts["ports"] if port["duty"]} == dict.fromkeys(
        ("eno1", "eno2"), "carries the default route (of bond0)"
    )


def test_missing_port_names_those_that_are_there(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(InputError) as caught:
        read(ODD_HOST, tmp_path, monkeypatch).port("0000:81:00.0")
    assert str(caught.value) == (
        "no network port at 0000:81:00.0 on odd-1; its ports: 0000:01:00.0 (ens1np0), 0000:21:00.0 (ibp33s0), "
        "0000:41:00.0, 0000:61:00.0 (eno1)"
    )


def test_unreadable_ip_output_is_said(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    host = sysfs_tree.materialise(ODD_HOST, tmp_path, monkeypatch)
    host.prints[sysfs_tree.IP] = "Option -j is unknown"
    with pytest.raises(ParseError, match="the output of 'ip -d -j addr show' cannot be read"):
        host.inventory()


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("[]", Workloads(0, ())),
        (None, Workloads(None, ())),
        ("Unknown command", Workloads(None, ())),
        ('[{"type": "GSI", "comm": "ib_core"}]', Workloads(0, ())),
        ('[{"type": "RC", "pid": 7, "comm": "a"}, {"type": "UD", "pid": 7, "comm": "a"}]', Workloads(2, ("a[7]",))),
    ],
)
def test_queue_pairs_of_programs_are_counted(text: str | None, expected: Workloads) -> None:
    assert Workloads.from_rdma(text) == expected


def test_lab_host_as_captured(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    facts = read("lab-igb-host", tmp_path, monkeypatch).to_dict()
    rails = [port for port in facts["ports"] if port["driver"] == "igb"]
    assert [(port["pci"], port["netdev"], port["vfs"]["total"]) for port in rails] == [
        ("0000:01:00.0", "enp1s0", 7),
        ("0000:02:00.0", "enp2s0", 7),
    ]
    assert rails[0]["path"] == ["pci0000:00", "0000:00:05.0", "0000:01:00.0"]
    assert (facts["default_route"], facts["ssh_netdev"], facts["networks"]) == (["enp0s4"], "enp0s4", ["10.0.2.0/24"])
    assert (facts["managers"], facts["virtual"]) == (["systemd-networkd"], True)
    assert facts["perftest"] == {"path": "/usr/bin/ib_write_bw", "version": "6.24"}


def test_rails_that_are_configured_are_in_the_facts(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Also a rail whose card is not there; not a port that is no rail any more, but keeps its record."""
    tree = sysfs_tree.materialise(GPU_SERVER, tmp_path, monkeypatch)
    entry = {"set": {"addresses": ["192.168.0.1/24"]}, "owners": []}
    record = {
        pci: {**entry, "rail": rail}
        for pci, rail in (("0000:18:00.0", "rail0"), ("0000:40:00.0", ""), ("0000:99:00.0", "rail2"))
    }
    (tmp_path / "state").mkdir()
    (tmp_path / "state/rail_links.json").write_text(json.dumps(record))
    facts = facts_io.read_inventory(dataclasses.replace(tree.roots, state=str(tmp_path / "state"))).to_dict()
    found = {port["pci"]: port["configured"] for port in facts["ports"] if port["configured"]}
    assert found == {"0000:18:00.0": {"rail": "rail0", "addresses": ["192.168.0.1/24"]}}
    assert facts["lost_rails"] == {"rail2": "0000:99:00.0"}
    assert facts["lost_addresses"] == {"rail2": ["192.168.0.1/24"]}
