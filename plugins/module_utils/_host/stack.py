# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Kernel modules, units, soft-RoCE devices and packages of a host: read and change."""

from __future__ import annotations

import os
from collections.abc import Iterable

from .._core import stack
from .._core.errors import CommandError
from . import command, state
from .sysfs import Roots, names, read_text


def folders(roots: Roots) -> tuple[str, str]:
    """Return the folders of modules-load files and of units."""
    return f"{roots.etc}/modules-load.d", f"{roots.etc}/systemd/system"


def read(roots: Roots, packages: Iterable[str]) -> stack.Have:
    """Read the host's side of the stack; ``packages`` are those asked for."""
    load, units = folders(roots)
    devices = f"{roots.sysfs}/class/infiniband"
    return stack.Have(
        files={**state.read_folder(load, stack.LOAD_FILE), **state.read_folder(units, ".service", stack.UNIT)},
        units=tuple(enabled(units)),
        # Only a soft device has a parent netdev in sysfs.
        devices=tuple(name for name in names(devices) if read_text(f"{devices}/{name}/parent")),
        modules=tuple(name for name in stack.UNLOAD if os.path.isdir(f"{roots.sysfs}/module/{name}")),
        installed=tuple(installed(packages)),
    )


def enabled(units: str) -> list[str]:
    """Return our units that are wanted by a device."""
    wants = [name for name in names(units) if name.endswith(".device.wants")]
    return [name for folder in wants for name in names(f"{units}/{folder}") if name.startswith(stack.UNIT)]


def installed(packages: Iterable[str]) -> list[str]:
    """Return those of ``packages`` that are installed, by dpkg or rpm."""
    packages = list(packages)
    if not packages:
        return []
    if command.find("dpkg-query"):
        argv = ["dpkg-query", "--show", "--showformat=${Package} ${db:Status-Status}\n", *packages]
        lines = command.run(argv, check=False).stdout.splitlines()
        return [line.split()[0] for line in lines if line.endswith(" installed")]
    if command.find("rpm"):
        argv = ["rpm", "--query", "--queryformat=%{NAME}\n", *packages]
        return [line for line in command.run(argv, check=False).stdout.splitlines() if line in packages]
    raise CommandError("neither dpkg-query nor rpm is installed; set rdma_stack_install_packages: false")


def apply(plan: stack.StackPlan) -> None:
    """Bring files, modules and units there."""
    before, after = plan.change.before, plan.change.after
    # Units that go must stop while their file is still there.
    for unit in sorted(set(before["units"]) - set(after["units"])):
        command.run(["systemctl", "disable", "--now", unit])
    state.write_files(before["files"], after["files"])
    if before["files"] != after["files"]:
        command.run(["systemctl", "daemon-reload"])
    for module in sorted(set(after["modules"]) - set(before["modules"])):
        command.run(["modprobe", module])
    missing = set(after["devices"]) - set(before["devices"])
    for unit in after["units"]:
        if unit not in before["units"]:
            command.run(["systemctl", "enable", unit])
        if stack.device_of(unit) in missing:
            command.run(["systemctl", "restart", unit])
    for module in plan.unload:
        # The kernel refuses what others use, and that is right.
        command.run(["modprobe", "--remove", module], check=False)
