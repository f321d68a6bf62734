"""pcie_acs through main() on a server with a NIC and a GPU behind each switch; setpci and systemctl are stand-ins."""

from __future__ import annotations

import json
import os
import re
from pathlib import Path
from typing import Any

import pytest
from ansible.module_utils import basic
from tests.unit.support import config_space, sysfs_tree
from tests.unit.support.module_run import run, warned
from tests.unit.support.sysfs_tree import Host

RAILS = [{"rail": "rail0", "pci": "0000:18:00.0", "netdev": "rail0", "driver": "mlx5_core", "mtu": 9000}]
PORTS = ["0000:17:00.0", "0000:17:01.0"]
ON, OFF = "0x001d (SrcValid ReqRedir CmpltRedir UpstreamFwd)", "0x0000 (off)"
UNIT = "etc/systemd/system/gpufabric-pcie-acs.service"
WANTED = "etc/systemd/system/multi-user.target.wants/gpufabric-pcie-acs.service"
TRADE = (
    "ACS is off on 0000:17:00.0, 0000:17:01.0: devices below these PCIe switches reach each other's memory past the "
    "IOMMU. Do not pass them to a virtual machine"
)


@pytest.fixture()
def host(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Host:
    """The server with config spaces of all its switch ports and root ports, ACS on as the kernel sets it."""
    made = sysfs_tree.materialise("gpu-server-8-rails", tmp_path, monkeypatch)
    made.prints["/usr/bin/setpci"] = ""
    made.reacts = lambda argv: obey(made, argv)
    devices = tmp_path / "sys/bus/pci/devices"
    for link in sorted(devices.iterdir()):
        for bridge in (parent for parent in link.resolve().parents if parent.name.count(":") == 2):
            if not (devices / bridge.name).exists():
                os.symlink(bridge, devices / bridge.name)
                (bridge / "config").write_bytes(config_space.bridge(0x001D))
    return made


def config(host: Host, port: str) -> Path:
    return host.root / "sys/bus/pci/devices" / port / "config"


def controls(host: Host) -> dict[str, int]:
    devices = host.root / "sys/bus/pci/devices"
    found = {path.name: path / "config" for path in devices.iterdir() if (path / "config").exists()}
    return {name: config_space.control_of(path) for name, path in sorted(found.items())}


def obey(host: Host, argv: list[str]) -> str | None:
    """Do what setpci and systemctl do."""
    if argv[0] == "setpci":
        match = re.fullmatch(r"ECAP_ACS\+0x6\.w=([0-9a-f]{4})", argv[3])
        assert argv[1] == "-s" and match
        config_space.set_control(config(host, argv[2]), int(match[1], 16))
    elif argv[:2] == ["systemctl", "enable"]:
        (host.root / WANTED).parent.mkdir(exist_ok=True)
        os.symlink("../gpufabric-pcie-acs.service", host.root / WANTED)
    elif argv[:2] == ["systemctl", "disable"]:
        (host.root / WANTED).unlink()
    return None


def call(host: Host, capsys: pytest.CaptureFixture[str], check: bool = False, **params: Any) -> dict[str, Any]:
    options = {**host.options()}
    return run("pcie_acs", capsys, check, **{"rails": RAILS, **options, **params})


def recorded(host: Host) -> dict[str, int]:
    path = host.root / "var/lib/gpufabric/pcie_acs.json"
    return json.loads(path.read_text()) if path.exists() else {}


@pytest.mark.proves("pcie_acs", "Ubuntu 24.04", by="fixture")
def test_off_on_the_way_and_nowhere_else_now_and_at_boots(host: Host, capsys: pytest.CaptureFixture[str]) -> None:
    before = controls(host)
    result = call(host, capsys)
    assert (result["changed"], result["reboot_required"], result["reasons"]) == (True, False, [])
    after = controls(host)
    assert {port: value for port, value in after.items() if value != before[port]} == dict.fromkeys(PORTS, 0)
    assert len(after) > 20
    assert "ExecStart=setpci -s 0000:17:00.0 ECAP_ACS+0x6.w=0000\n" in (host.root / UNIT).read_text()
    assert os.path.lexists(host.root / WANTED)
    assert recorded(host) == dict.fromkeys(PORTS, 0x1D)
    assert result["diff"]["before"]["acs"] == dict.fromkeys(PORTS, ON)
    assert result["diff"]["after"]["acs"] == dict.fromkeys(PORTS, OFF)
    assert result["ports"] == dict.fromkeys(PORTS, {"nic": "0000:18:00.0", "gpu": "0000:1b:00.0"})
    assert TRADE in str(result["warnings"])


def test_a_second_run_changes_nothing_and_does_not_warn(
    host: Host, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    told: list[str] = []
    monkeypatch.setattr(basic.AnsibleModule, "warn", lambda self, text: told.append(text))
    call(host, capsys)
    host.ran.clear()
    result = call(host, capsys)
    assert (result["changed"], told) == (False, [TRADE])
    assert not [argv for argv in host.ran if argv[0] in ("setpci", "systemctl")]


def test_check_mode_predicts_and_writes_nothing(host: Host, capsys: pytest.CaptureFixture[str]) -> None:
    before = controls(host)
    told = call(host, capsys, check=True)
    assert (controls(host), recorded(host), (host.root / UNIT).exists()) == (before, {}, False)
    done = call(host, capsys)
    assert told == done


def test_a_boot_that_lost_it_is_repaired_and_the_record_stays(host: Host, capsys: pytest.CaptureFixture[str]) -> None:
    call(host, capsys)
    config_space.set_control(config(host, PORTS[0]), 0x1F)
    result = call(host, capsys)
    assert result["diff"]["before"]["acs"][PORTS[0]].startswith("0x001f (SrcValid TransBlk")
    assert (controls(host)[PORTS[0]], recorded(host)[PORTS[0]]) == (0, 0x1D)


def test_absent_gives_everything_back(host: Host, capsys: pytest.CaptureFixture[str]) -> None:
    before = controls(host)
    call(host, capsys)
    predicted = call(host, capsys, check=True, state="absent")
    result = call(host, capsys, state="absent")
    assert predicted == result and result["changed"] is True
    assert controls(host) == before
    assert not (host.root / UNIT).exists() and not os.path.lexists(host.root / WANTED)
    assert not (host.root / "var/lib/gpufabric").exists()
    assert call(host, capsys, state="absent")["changed"] is False


def test_a_rail_less_gives_its_ports_back(host: Host, capsys: pytest.CaptureFixture[str]) -> None:
    second = {"rail": "rail1", "pci": "0000:40:00.0", "netdev": "rail1", "mtu": 9000}
    call(host, capsys, rails=[*RAILS, second])
    assert [port for port, value in controls(host).items() if value == 0] == [*PORTS, "0000:3f:00.0", "0000:3f:01.0"]
    call(host, capsys)
    assert [port for port, value in controls(host).items() if value == 0] == PORTS
    assert sorted(recorded(host)) == PORTS


def test_hardware_that_refuses_is_named(host: Host, capsys: pytest.CaptureFixture[str]) -> None:
    host.reacts = lambda argv: None if argv[0] == "setpci" else obey(host, argv)
    result = call(host, capsys)
    assert result["failed"] is True
    assert result["msg"].startswith("pcie_acs: after the change acs 0000:")
    assert ON in result["msg"]
    # What was before us is known, so the next run can go on and absent can take it back.
    assert recorded(host) == dict.fromkeys(PORTS, 0x1D)


def test_without_setpci_nothing_is_begun(host: Host, capsys: pytest.CaptureFixture[str]) -> None:
    del host.prints["/usr/bin/setpci"]
    for check in (True, False):
        assert call(host, capsys, check=check)["msg"] == (
            "pcie_acs: setpci is not installed, so ACS cannot be changed. Install the package pciutils"
        )
    assert recorded(host) == {}


def test_one_port_that_cannot_be_read_stops_before_the_first_write(
    host: Host, capsys: pytest.CaptureFixture[str]
) -> None:
    config(host, PORTS[1]).write_bytes(config_space.bridge(0x001D, 64))
    assert call(host, capsys)["msg"] == (
        "pcie_acs: 0000:17:01.0: 64 bytes of PCI config space are readable, expected at least 256. Run as root "
        "(become: true)"
    )
    assert controls_of_first(host) == 0x1D


def controls_of_first(host: Host) -> int:
    return config_space.control_of(config(host, PORTS[0]))


def test_ports_without_acs_and_hosts_without_gpus_need_nothing(host: Host, capsys: pytest.CaptureFixture[str]) -> None:
    for port in PORTS:
        config(host, port).write_bytes(config_space.bridge(None))
    del host.prints["/usr/bin/setpci"]
    result = call(host, capsys)
    assert (result["changed"], result["ports"], recorded(host)) == (False, {}, {})


@pytest.mark.parametrize(
    ("kind", "cmdline", "refused"),
    [("DMA-FQ", "", True), ("identity", "", False), (None, "quiet", True), (None, "quiet iommu=pt", False)],
)
def test_translating_iommus_are_refused(
    host: Host, capsys: pytest.CaptureFixture[str], kind: str | None, cmdline: str, refused: bool
) -> None:
    group = config(host, "0000:18:00.0").parent / "iommu_group"
    group.mkdir()
    if kind:
        (group / "type").write_text(f"{kind}\n")
    (host.root / "proc/cmdline").write_text(f"{cmdline}\n")
    result = call(host, capsys)
    assert result.get("failed", False) is refused
    if refused:
        assert f"the IOMMU translates addresses for 0000:18:00.0 ({kind or 'unknown type'})" in result["msg"]
        assert controls_of_first(host) == 0x1D


def test_devices_of_virtual_machines_are_refused_and_absent_never_is(
    host: Host, capsys: pytest.CaptureFixture[str]
) -> None:
    call(host, capsys)
    driver = host.root / "sys/bus/pci/drivers/vfio-pci"
    driver.mkdir(parents=True)
    (driver / "0000:9d:00.0").mkdir()
    (driver / "new_id").write_text("")
    assert "ACS isolates 0000:9d:00.0, bound to vfio-pci" in call(host, capsys)["msg"]
    assert call(host, capsys, state="absent")["changed"] is True


def test_a_virtual_machine_is_refused(host: Host, capsys: pytest.CaptureFixture[str]) -> None:
    (host.root / "proc/cpuinfo").write_text("flags : fpu hypervisor\n")
    assert "gpu-11 is a virtual machine" in call(host, capsys)["msg"]


def judged(host: Host, capsys: pytest.CaptureFixture[str], acs: bool = True) -> tuple[list[str], list[str]]:
    """What preflight says of ACS: problems, and findings that stop nothing."""
    result = run("preflight", capsys, **host.options(), rails=RAILS, disrupt_users=True, acs=acs)
    found = [[text for text in result[kind] if "rdma_pcie_acs" in text] for kind in ("problems", "findings")]
    return found[0], found[1]


def test_preflight_has_nothing_to_say_where_it_will_work(host: Host, capsys: pytest.CaptureFixture[str]) -> None:
    assert judged(host, capsys) == ([], [])


def test_preflight_says_what_this_module_will_refuse(host: Host, capsys: pytest.CaptureFixture[str]) -> None:
    """All that it would refuse; nothing when nobody asks for ACS to be off."""
    del host.prints["/usr/bin/setpci"]
    (host.root / "proc/cpuinfo").write_text("flags : fpu hypervisor\n")
    problems, findings = judged(host, capsys)
    assert [text.partition(", but ")[2].split(",")[0] for text in problems] == [
        "setpci is not installed",
        "gpu-11 is a virtual machine. ACS is controlled by its hypervisor",
    ]
    assert findings == []
    assert judged(host, capsys, acs=False) == ([], [])


def test_preflight_only_warns_of_an_iommu_that_translates_now(host: Host, capsys: pytest.CaptureFixture[str]) -> None:
    """The run may boot the host with iommu=pt before pcie_acs comes."""
    group = config(host, "0000:18:00.0").parent / "iommu_group"
    group.mkdir()
    (group / "type").write_text("DMA-FQ\n")
    problems, findings = judged(host, capsys)
    assert problems == []
    assert len(findings) == 1 and "the IOMMU translates addresses for 0000:18:00.0 (DMA-FQ)" in findings[0]


def test_preflight_does_not_miss_setpci_where_no_port_has_acs(host: Host, capsys: pytest.CaptureFixture[str]) -> None:
    for port in PORTS:
        config(host, port).write_bytes(config_space.bridge(None))
    del host.prints["/usr/bin/setpci"]
    assert judged(host, capsys) == ([], [])


def test_what_others_changed_since_is_not_undone(host: Host, capsys: pytest.CaptureFixture[str]) -> None:
    call(host, capsys)
    config_space.set_control(config(host, PORTS[0]), 0x11)
    (text,) = warned(call(host, capsys, state="absent"))
    assert text.startswith(f"{PORTS[0]}: ACS: found ") and "Another tool changed it, so it is not restored" in text
    assert [controls(host)[port] for port in PORTS] == [0x11, 0x1D]
    assert (recorded(host), call(host, capsys, state="absent")["changed"]) == ({}, False)
