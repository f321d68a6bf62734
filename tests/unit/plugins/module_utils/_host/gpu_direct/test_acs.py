"""ACS: where it stands in config space, which switch ports are between a NIC and a GPU, and what is refused."""

from __future__ import annotations

import dataclasses
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.unit.support import config_space, sysfs_tree

from ansible_collections.gpufabric.rdma.plugins.module_utils._common.errors import ConflictError, InputError, ParseError
from ansible_collections.gpufabric.rdma.plugins.module_utils._host.gpu_direct import acs

# Lines of lspci -vvv. The first two: switches and root ports of Broadcom and AMD as in NVIDIA/nccl issues 304 and 606.
LSPCI = [
    ("SrcValid+ TransBlk- ReqRedir+ CmpltRedir+ UpstreamFwd+ EgressCtrl- DirectTrans-", 0x001D),
    ("SrcValid+ TransBlk- ReqRedir- CmpltRedir- UpstreamFwd- EgressCtrl- DirectTrans-", 0x0001),
    ("SrcValid- TransBlk- ReqRedir- CmpltRedir- UpstreamFwd- EgressCtrl- DirectTrans-", 0x0000),
    ("SrcValid+ TransBlk+ ReqRedir+ CmpltRedir+ UpstreamFwd+ EgressCtrl+ DirectTrans+", 0x007F),
]


@pytest.mark.parametrize(("line", "value"), LSPCI)
def test_values_are_shown_in_the_words_of_lspci(line: str, value: int) -> None:
    on = [word[:-1] for word in line.split() if word.endswith("+")]
    assert acs.show(value) == f"0x{value:04x} ({' '.join(on) or 'off'})"


@pytest.mark.parametrize("value", [None, 0, 0x001D, 0x007F])
def test_the_control_register_of_a_port(value: int | None) -> None:
    assert acs.control(config_space.bridge(value)) == value


def test_what_has_no_extended_space_has_no_acs() -> None:
    assert acs.control(config_space.bridge(0x001D, 256)) is None
    assert acs.control(bytes(4096)) is None


def test_others_than_root_cannot_know() -> None:
    with pytest.raises(ParseError) as error:
        acs.control(config_space.bridge(0x001D, 64))
    assert str(error.value) == (
        "64 bytes of PCI config space are readable, expected at least 256. Run as root (become: true)"
    )


@given(st.binary(min_size=256, max_size=512))
def test_no_config_space_goes_on_for_ever(config: bytes) -> None:
    found = acs.control(config)
    assert found is None or 0 <= found <= 0xFFFF


NIC = ("pci0000:15", "0000:15:01.0", "0000:16:00.0", "0000:17:00.0", "0000:18:00.0")


@pytest.mark.parametrize(
    ("gpu", "ports"),
    [
        # One switch.
        ((*NIC[:3], "0000:17:01.0", "0000:1b:00.0"), ["0000:17:00.0", "0000:17:01.0"]),
        # A second switch below the first: its own ports count too.
        (
            (*NIC[:3], "0000:17:02.0", "0000:1c:00.0", "0000:1d:00.0", "0000:1e:00.0"),
            ["0000:17:00.0", "0000:17:02.0", "0000:1c:00.0", "0000:1d:00.0"],
        ),
        # Another root port, another host bridge: the way leads through the CPU, whatever ACS says.
        (("pci0000:15", "0000:15:03.0", "0000:40:00.0"), []),
        (("pci0000:97", "0000:97:01.0", "0000:98:00.0"), []),
        # Two functions of one card: no switch port is between them.
        ((*NIC[:4], "0000:18:00.1"), []),
    ],
)
def test_ports_between(gpu: tuple[str, ...], ports: list[str]) -> None:
    assert sorted(acs.ports_between(NIC, gpu)) == ports


@pytest.fixture()
def host(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> sysfs_tree.Host:
    return sysfs_tree.materialise("gpu-server-8-rails", tmp_path, monkeypatch)


def test_paths_of_rails_to_their_gpus(host: sysfs_tree.Host) -> None:
    found = acs.paths(host.inventory(), ["0000:18:00.0", "0000:29:00.0"])
    # The storage NIC hangs on a root port of its own.
    assert found == {"0000:17:00.0": ("0000:18:00.0", "0000:1b:00.0"), "0000:17:01.0": ("0000:18:00.0", "0000:1b:00.0")}
    with pytest.raises(InputError, match="no network port at 0000:99:00.0 on gpu-11"):
        acs.paths(host.inventory(), ["0000:99:00.0"])


PATHS = {"0000:17:00.0": ("0000:18:00.0", "0000:1b:00.0"), "0000:17:01.0": ("0000:18:00.0", "0000:1b:00.0")}
HAVE = acs.Have({"0000:17:00.0": 0x1D, "0000:17:01.0": 0x1D}, {}, False, {}, ())


@pytest.mark.parametrize(
    ("virtual", "change", "message"),
    [
        (
            True,
            {},
            "gpu-11 is a virtual machine. ACS is controlled by its hypervisor, and peer-to-peer traffic requires ATS "
            "of the NIC and ACS Direct Translated P2P of the switch ports instead. Disable pcie_acs for this host",
        ),
        (
            False,
            {"passed": ("0000:5e:00.0",)},
            "ACS isolates 0000:5e:00.0, bound to vfio-pci for a virtual machine or a program. "
            "Release these devices, or disable pcie_acs for this host",
        ),
        (
            False,
            {"domains": {"0000:18:00.0": "DMA-FQ", "0000:1b:00.0": "identity"}},
            "the IOMMU translates addresses for 0000:18:00.0 (DMA-FQ), so peer-to-peer traffic must pass through it. "
            "Boot with iommu=pt, or disable pcie_acs for this host",
        ),
    ],
)
def test_what_is_refused(host: sysfs_tree.Host, virtual: bool, change: dict[str, Any], message: str) -> None:
    inventory = dataclasses.replace(host.inventory(), virtual=virtual)
    have = dataclasses.replace(HAVE, **change)
    with pytest.raises(ConflictError) as error:
        acs.check(inventory, PATHS, have)
    assert str(error.value) == message
    # Nothing is to be turned off: nothing is refused.
    acs.check(inventory, {}, have)


def test_passthrough_of_the_iommu_is_no_isolation(host: sysfs_tree.Host) -> None:
    domains = {"0000:18:00.0": "identity", "0000:1b:00.0": "identity"}
    acs.check(host.inventory(), PATHS, dataclasses.replace(HAVE, domains=domains))


UNIT = "/etc/systemd/system/gpufabric-pcie-acs.service"


def test_plan_turns_off_and_remembers() -> None:
    plan = acs.plan_acs(PATHS, HAVE, {}, unit=UNIT)
    assert plan.writes == {"0000:17:00.0": 0, "0000:17:01.0": 0}
    assert plan.record == {"0000:17:00.0": 0x1D, "0000:17:01.0": 0x1D}
    assert plan.change.before["acs"]["0000:17:00.0"] == "0x001d (SrcValid ReqRedir CmpltRedir UpstreamFwd)"
    assert plan.change.after["acs"] == dict.fromkeys(PATHS, "0x0000 (off)")
    text = plan.change.after["files"][UNIT]
    assert text.splitlines()[1:] == [
        "[Unit]",
        "Description=ACS off on the PCIe switch ports between NICs and GPUs",
        # An image of this host that starts as a virtual machine has other ports there.
        "ConditionVirtualization=no",
        "After=systemd-modules-load.service",
        "",
        "[Service]",
        "Type=oneshot",
        "RemainAfterExit=yes",
        "ExecStart=setpci -s 0000:17:00.0 ECAP_ACS+0x6.w=0000",
        "ExecStart=setpci -s 0000:17:01.0 ECAP_ACS+0x6.w=0000",
        "",
        "[Install]",
        "WantedBy=multi-user.target",
    ]
    done = acs.Have(dict.fromkeys(PATHS, 0), {UNIT: text}, True, {}, ())
    again = acs.plan_acs(PATHS, done, plan.record, unit=UNIT)
    assert not again.change.changed and again.record == plan.record


def test_after_a_boot_without_the_unit_the_first_record_stays() -> None:
    changed = dataclasses.replace(HAVE, controls={"0000:17:00.0": 0x01, "0000:17:01.0": 0})
    plan = acs.plan_acs(PATHS, changed, {"0000:17:00.0": 0x1D}, unit=UNIT)
    assert plan.writes == {"0000:17:00.0": 0}
    assert plan.record == {"0000:17:00.0": 0x1D, "0000:17:01.0": 0}


def test_ports_that_are_on_no_path_any_more_get_their_values_back() -> None:
    have = acs.Have({"0000:17:00.0": 0, "0000:17:01.0": 0, "0000:3f:00.0": 0}, {}, True, {}, ())
    record = {"0000:17:00.0": 0x1D, "0000:17:01.0": 0x1D, "0000:3f:00.0": 0x1D, "0000:aa:00.0": 0x1D}
    plan = acs.plan_acs(PATHS, have, record, unit=UNIT)
    assert plan.writes == {"0000:3f:00.0": 0x1D}
    # 0000:aa:00.0 is gone with its hardware.
    assert sorted(plan.record) == sorted(PATHS)
    back = acs.plan_acs({}, have, record, unit=UNIT)
    assert back.writes == {"0000:17:00.0": 0x1D, "0000:17:01.0": 0x1D, "0000:3f:00.0": 0x1D}
    assert (back.change.after["files"], back.change.after["enabled"], back.record) == ({}, False, {})


def test_ports_without_the_capability_need_nothing() -> None:
    plan = acs.plan_acs(PATHS, dataclasses.replace(HAVE, controls=dict.fromkeys(PATHS)), {}, unit=UNIT)
    assert (plan.change.changed, plan.writes, plan.record, plan.change.after["files"]) == (False, {}, {}, {})
