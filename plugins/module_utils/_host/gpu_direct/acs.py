# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""PCIe Access Control Services of the switch ports between NICs and GPUs. Pure.

With ACS a switch port sends what one device has for another up to the root, for the IOMMU to judge; without, the switch
passes it on. Offsets and bits: PCI Express Base Specification, ACS Extended Capability.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Iterable, Mapping, Sequence
from itertools import takewhile

from ..._common.change import Change
from ..._common.errors import ConflictError, ParseError
from ..._common.pci import EXTENDED, extended_capability
from ..facts.inventory import HostInventory
from ..system import restore, systemd

TITLE = systemd.title("pcie_acs")
UNIT = "gpufabric-pcie-acs.service"
OFF = 0
# Bits of the control register from 0 up, as lspci calls them.
_WORDS = ("SrcValid", "TransBlk", "ReqRedir", "CmpltRedir", "UpstreamFwd", "EgressCtrl", "DirectTrans")
_ACS_ID, _CONTROL = 0x000D, 6
_IDENTITY = "identity"


@dataclasses.dataclass(frozen=True)
class Have:
    """The host's side: port -> control register (None without ACS), own files, whether the unit is enabled.

    ``domains``: device -> type of its IOMMU domain, for those that have one. ``passed``: devices given to vfio-pci.
    """

    controls: Mapping[str, int | None]
    files: Mapping[str, str]
    enabled: bool
    domains: Mapping[str, str]
    passed: tuple[str, ...]


@dataclasses.dataclass(frozen=True)
class AcsPlan:
    """The change; what to write to which port; what to keep of before us; warnings of what others changed."""

    change: Change
    writes: Mapping[str, int]
    record: Mapping[str, int]
    warnings: tuple[str, ...]
    reasons: tuple[str, ...] = ()


def show(value: int) -> str:
    """Return ``0x001d (SrcValid ReqRedir CmpltRedir UpstreamFwd)``, ``0x0000 (off)``."""
    words = [word for bit, word in enumerate(_WORDS) if value >> bit & 1]
    return f"0x{value:04x} ({' '.join(words) or 'off'})"


def control(config: bytes) -> int | None:
    """Return the ACS control register in a function's config space, None for a function without ACS.

    ParseError when only the 64 bytes are there that others than root may read.
    """
    if len(config) < EXTENDED:
        raise ParseError(
            f"{len(config)} bytes of PCI config space are readable, expected at least 256. Run as root (become: true)"
        )
    at = extended_capability(config, _ACS_ID)
    return None if at is None else int.from_bytes(config[at + _CONTROL : at + _CONTROL + 2], "little")


def ports_between(one: Sequence[str], other: Sequence[str]) -> tuple[str, ...]:
    """Return the switch ports on the way between two devices (paths from the PCI root) that stays below a root port.

    Empty for devices of two root ports: their way leads through the CPU.
    """
    common = sum(1 for _pair in takewhile(lambda pair: pair[0] == pair[1], zip(one, other)))
    return (*one[common:-1], *other[common:-1]) if common > 1 else ()


def paths(inventory: HostInventory, ports: Iterable[str]) -> dict[str, tuple[str, str]]:
    """Return switch port -> the NIC and the GPU between which it is (the first such pair), for these NIC ports.

    InputError for a port that is not there.
    """
    found: dict[str, tuple[str, str]] = {}
    for address in ports:
        nic = inventory.port(address)
        for gpu in inventory.gpus:
            for between in ports_between(nic.path, gpu.path):
                found.setdefault(between, (nic.pci, gpu.pci))
    return dict(sorted(found.items()))


def check(inventory: HostInventory, wanted: Mapping[str, tuple[str, str]], have: Have) -> None:
    """Refuse with a ConflictError to turn ACS off where something relies on it. ``wanted`` as ``paths`` returns."""
    if not wanted:
        return
    if inventory.virtual:
        raise ConflictError(
            f"{inventory.hostname} is a virtual machine. ACS is controlled by its hypervisor, and peer-to-peer "
            "traffic requires ATS of the NIC and ACS Direct Translated P2P of the switch ports instead. "
            "Disable pcie_acs for this host"
        )
    if have.passed:
        raise ConflictError(
            f"ACS isolates {', '.join(have.passed)}, bound to vfio-pci for a virtual machine or a "
            "program. Release these devices, or disable pcie_acs for this host"
        )
    devices = dict.fromkeys(device for pair in wanted.values() for device in pair)
    domains = {device: have.domains.get(device, _IDENTITY) for device in devices}
    behind = [f"{device} ({domain})" for device, domain in domains.items() if domain != _IDENTITY]
    if behind:
        raise ConflictError(
            f"the IOMMU translates addresses for {', '.join(behind)}, so peer-to-peer traffic must pass through it. "
            "Boot with iommu=pt, or disable pcie_acs for this host"
        )


def plan_acs(wanted: Iterable[str], have: Have, record: Mapping[str, int], *, unit: str) -> AcsPlan:
    """Work out registers and the unit at path ``unit``; nothing ``wanted`` takes everything back.

    Ports that were recorded and are not wanted any more get their values back, unless others changed them since.
    """
    controls = {port: value for port, value in have.controls.items() if value is not None}
    off = [port for port in wanted if port in controls]
    restored = {port: record[port] for port, value in controls.items() if port in record and value == OFF}
    targets = {port: OFF if port in off else restored[port] for port in controls if port in off or port in restored}
    change = Change(
        before={
            "acs": {port: show(controls[port]) for port in targets},
            "files": dict(have.files),
            "enabled": have.enabled,
        },
        after={
            "acs": {port: show(value) for port, value in targets.items()},
            "files": {unit: unit_text(off)} if off else {},
            "enabled": bool(off),
        },
    )
    writes = {port: value for port, value in targets.items() if controls[port] != value}
    left = {port: value for port, value in record.items() if port in controls and port not in off}
    others = restore.changed_since(left, dict.fromkeys(left, OFF), controls)
    warnings = [restore.kept(f"{port}: ACS", show(left[port]), show(OFF), now=show(controls[port])) for port in others]
    return AcsPlan(change, writes, {port: record.get(port, controls[port]) for port in off}, tuple(warnings))


def argv(port: str, value: int) -> list[str]:
    """Return the command that sets a port's control register."""
    return ["setpci", "-s", port, f"ECAP_ACS+0x{_CONTROL:x}.w={value:04x}"]


def unit_text(ports: Iterable[str]) -> str:
    """Return the unit that turns ACS off on these ports at each boot; the kernel has set them up by then."""
    sections = {
        "Unit": [
            ("Description", "ACS off on the PCIe switch ports between NICs and GPUs"),
            ("ConditionVirtualization", "no"),
            ("After", "systemd-modules-load.service"),
        ],
        "Service": [
            ("Type", "oneshot"),
            ("RemainAfterExit", "yes"),
            *(("ExecStart", systemd.exec_line(argv(port, OFF))) for port in ports),
        ],
        "Install": [("WantedBy", "multi-user.target")],
    }
    return systemd.file_text(TITLE, sections)
