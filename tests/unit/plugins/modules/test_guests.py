"""A virtual machine with passed-through VFs through main() of the modules that prepare a host. Costs 2 s."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from tests.unit.support import sysfs_tree
from tests.unit.support.module_run import run
from tests.unit.support.sysfs_tree import Host

FIRST, SECOND = "0000:05:00.0", "0000:06:00.0"
RAILS = [
    {"rail": name, "netdev": name, "pci": pci, "driver": "mlx5_core", "address": None, "mtu": 9000}
    for name, pci in (("rail0", FIRST), ("rail1", SECOND))
]
RESTART = "and then stop and start the virtual machine"
RANDOM, NO_GUID = "a random MAC address, which each boot changes", "no node GUID, by which programs distinguish cards"
NO_MAC = (
    "rail rail1: 0000:06:00.0 (enp6s0) is a virtual function (VF) with {}. On the hypervisor, run"
    f" 'ip link set PF vf N mac MAC', {RESTART}"
)
FAR = (
    "in the virtual machine no GPU is below the PCIe switch of rail1, so programs such as NCCL use GPUDirect RDMA for"
    " none of them unless they know the topology of the hypervisor. Configure a PCIe switch for each NIC and its GPUs"
    " in the virtual machine (libvirt: controllers of model pcie-switch-upstream-port and pcie-switch-downstream-port),"
    " or set NCCL_TOPO_FILE in pods"
)
# In other environments than that of the test there is no perftest in the list of packages.
OPTIONS = {"rails": RAILS, "installs_packages": False}


@pytest.fixture()
def guest(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Host:
    return sysfs_tree.materialise("guest-with-vfs", tmp_path, monkeypatch)


def folder(host: Host, pci: str) -> Path:
    return host.root / "sys/bus/pci/devices" / pci


def rdma(host: Host, pci: str) -> Path:
    (found,) = (folder(host, pci) / "infiniband").iterdir()
    return found


def net(host: Host, pci: str) -> Path:
    (found,) = (folder(host, pci) / "net").iterdir()
    return found


def findings(host: Host, capsys: pytest.CaptureFixture[str]) -> tuple[list[str], list[str]]:
    told = run("preflight", capsys, **host.options(), **OPTIONS)
    return told["problems"], told["findings"]


def test_a_vf_without_its_pf_is_a_port(guest: Host, capsys: pytest.CaptureFixture[str]) -> None:
    facts = run("rdma_facts", capsys, **guest.options())["ansible_facts"]["rdma"]
    assert facts["virtual"] is True
    found = {port["pci"]: (port["passthrough"], port["speed"], port["uplinks"]) for port in facts["ports"]}
    assert found == {"0000:01:00.0": ("pf", None, []), FIRST: ("vf", 400.0, []), SECOND: ("vf", 400.0, [])}


def test_a_processor_without_the_flag_is_virtual_by_its_vfs(guest: Host) -> None:
    (guest.root / "proc/cpuinfo").write_text("Features\t: fp asimd evtstrm aes\n")
    assert guest.inventory().virtual is True
    for pci in (FIRST, SECOND):
        (folder(guest, pci) / "device").write_text("0x1021\n")
    assert guest.inventory().virtual is False
    assert {port.passthrough for port in guest.inventory().ports} == {None}


def test_what_the_hypervisor_did_not_set_is_reported(guest: Host, capsys: pytest.CaptureFixture[str]) -> None:
    assert findings(guest, capsys) == ([], [NO_MAC.format(f"{RANDOM} and {NO_GUID}"), FAR])
    # systemd may have set another address.
    (net(guest, SECOND) / "addr_assign_type").write_text("3\n")
    assert findings(guest, capsys)[1] == [NO_MAC.format(NO_GUID), FAR]
    (rdma(guest, SECOND) / "node_guid").write_text("5254:00ff:fe10:0006\n")
    assert findings(guest, capsys)[1] == [FAR]
    (net(guest, SECOND) / "addr_assign_type").write_text("1\n")
    assert findings(guest, capsys)[1] == [NO_MAC.format(RANDOM), FAR]


def test_nothing_is_reported_of_a_pf(guest: Host, capsys: pytest.CaptureFixture[str]) -> None:
    """The PCIe link of a guest is what its hypervisor shows, so it is not judged."""
    for pci in (FIRST, SECOND):
        (folder(guest, pci) / "device").write_text("0x1021\n")
        (folder(guest, pci) / "current_link_speed").write_text("2.5 GT/s PCIe\n")
        (folder(guest, pci) / "current_link_width").write_text("1\n")
    assert findings(guest, capsys) == ([], [FAR])
    assert {port.pcie.width for port in guest.inventory().ports} == {None}


def test_infiniband_without_guids_stops_the_run(guest: Host, capsys: pytest.CaptureFixture[str]) -> None:
    (folder(guest, SECOND) / "class").write_text("0x020700\n")
    (net(guest, SECOND) / "type").write_text("32\n")
    (rdma(guest, SECOND) / "ports/1/link_layer").write_text("InfiniBand\n")
    assert findings(guest, capsys)[0] == [
        "rail rail1: 0000:06:00.0 (enp6s0) is a virtual function (VF) without GUIDs, so its port cannot become active."
        f" On the hypervisor, run 'ip link set PF vf N node_guid GUID port_guid GUID', {RESTART}"
    ]


def test_a_vf_without_carrier_may_be_down_on_the_hypervisor(guest: Host, capsys: pytest.CaptureFixture[str]) -> None:
    (net(guest, FIRST) / "carrier").write_text("0\n")
    assert findings(guest, capsys)[1][0] == (
        "rail rail0: 0000:05:00.0 (enp5s0) has no carrier. On the hypervisor, check the cable and the switch port of"
        " its PF, and run 'ip link set PF vf N state auto' for this VF"
    )


PASSED = "is a virtual function that the hypervisor passed through"


@pytest.mark.parametrize(
    ("module", "role", "options", "message"),
    [
        (
            "sriov_vfs",
            {"sriov_state": "present", "sriov_vfs": 4},
            {"vfs": 4},
            f"{FIRST} (rail0) is itself a virtual function that the hypervisor passed through, 4 VFs requested. Leave"
            " vfs unset for this rail, and create VFs on the hypervisor",
        ),
        (
            "nic_firmware",
            {"nic_firmware_state": "present", "nic_firmware_settings": {"SRIOV_EN": True}},
            {"settings": {"SRIOV_EN": True}},
            f"{FIRST} (rail0) {PASSED}: it has no firmware settings. Set them on the hypervisor, and leave"
            " settings unset for this host",
        ),
        (
            "rail_qos",
            {"rail_links_state": "present", "rail_links_qos": {"pfc": [3], "pause": False}},
            {"settings": {"pfc": [3], "pause": False}},
            "guest-1 rail0 (mlx5_core) is a virtual function, and this is set for its PF; set it on the hypervisor, or"
            " omit pause, pfc for this host",
        ),
    ],
)
def test_what_only_the_hypervisor_can_set_is_refused_before_any_change(
    module: str,
    role: dict[str, Any],
    options: dict[str, Any],
    message: str,
    guest: Host,
    capsys: pytest.CaptureFixture[str],
) -> None:
    before = sorted(path for path in guest.root.rglob("*") if path.is_file())
    for check in (True, False):
        told = run(module, capsys, check, **guest.options(), rails=RAILS[:1], **options)
        assert told["failed"] and message in told["msg"]
    foreseen = run("preflight", capsys, **guest.options(), rails=RAILS[:1], installs_packages=False, roles=role)
    assert [problem for problem in foreseen["problems"] if message in problem]
    files = sorted(path for path in guest.root.rglob("*") if path.is_file() and "gpufabric" not in str(path))
    assert files == before


def test_settings_of_the_function_itself_remain_possible(guest: Host, capsys: pytest.CaptureFixture[str]) -> None:
    guest.prints["/usr/sbin/ethtool --version"] = "ethtool version 6.7\n"
    guest.prints["ethtool -g enp5s0"] = (
        "Ring parameters for enp5s0:\nPre-set maximums:\nRX:\t\t8192\nRX Mini:\tn/a\nRX Jumbo:\tn/a\nTX:\t\t8192\n"
        "Current hardware settings:\nRX:\t\t1024\nRX Mini:\tn/a\nRX Jumbo:\tn/a\nTX:\t\t1024\n"
    )
    told = run("rail_qos", capsys, True, **guest.options(), rails=RAILS[:1], settings={"rings": {"rx": 4096}})
    assert told["changed"] is True, told
