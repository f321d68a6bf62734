# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""ACS registers of PCI ports, IOMMU domains and the unit of a host: read and change."""

from __future__ import annotations

import os
from collections.abc import Iterable

from ..._common.errors import ParseError
from ..system import command, files, systemd
from ..system.files import Roots, names, read_bytes, read_text
from . import acs

# The whole config space of a PCIe function.
_CONFIG_BYTES = 4096


def units(roots: Roots) -> str:
    """Return the folder of units."""
    return f"{roots.etc}/systemd/system"


def read(roots: Roots, ports: Iterable[str], devices: Iterable[str]) -> acs.Have:
    """Read the registers of these ``ports`` that are there, and the IOMMU domains of these ``devices``.

    ParseError names a port whose config space cannot be read as a whole.
    """
    folder = f"{roots.sysfs}/bus/pci/devices"
    there = [port for port in ports if os.path.isdir(f"{folder}/{port}")]
    groups = {device: f"{folder}/{device}/iommu_group" for device in devices}
    passthrough = "iommu=pt" in (read_text(f"{roots.proc}/cmdline") or "").split()
    # Kernels before 5.11 have no file for the type.
    unknown = "identity" if passthrough else "unknown type"
    return acs.Have(
        controls={port: _control(f"{folder}/{port}/config", port) for port in there},
        files=files.read_folder(units(roots), acs.UNIT),
        enabled=acs.UNIT in names(f"{units(roots)}/multi-user.target.wants"),
        domains={
            device: read_text(f"{group}/type") or unknown for device, group in groups.items() if os.path.isdir(group)
        },
        passed=tuple(name for name in names(f"{roots.sysfs}/bus/pci/drivers/vfio-pci") if name.count(":") == 2),
    )


def _control(path: str, port: str) -> int | None:
    try:
        return acs.control(read_bytes(path, _CONFIG_BYTES) or b"")
    except ParseError as error:
        raise ParseError(f"{port}: {error}") from error


def no_setpci() -> str:
    """Say that the program is missing which module and unit call, nothing when it is there."""
    if command.find("setpci"):
        return ""
    return "setpci is not installed, so ACS cannot be changed. Install the package pciutils"


def apply(plan: acs.AcsPlan) -> None:
    """Bring unit and registers there: the unit first, so that what is off now is off after a boot."""
    before, after = plan.change.before, plan.change.after
    if before["enabled"] and not after["enabled"]:
        command.run(["systemctl", "disable", "--now", acs.UNIT])
    systemd.write_units(before["files"], after["files"])
    if after["enabled"] and not before["enabled"]:
        command.run(["systemctl", "enable", acs.UNIT])
    for port, value in plan.writes.items():
        command.run(acs.argv(port, value))
