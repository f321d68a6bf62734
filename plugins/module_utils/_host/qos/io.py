# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""QoS of the ports of a host: programs, files of the kernel and units; read and change."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from ..._common.errors import CommandError
from ..facts.devices import Port
from ..facts.inventory import HostInventory
from ..system import command, files, systemd
from ..system.files import Roots, names, read_text
from . import boot_unit, kernel_files, programs
from . import plan as qos_plan
from . import settings as qos_settings
from .setting import OF_PF, Device, KernelFiles, Program, Reason, Setting, Step


def read(
    roots: Roots, inventory: HostInventory, wanted: Mapping[str, Iterable[str]], *, rails: Mapping[str, str]
) -> dict[str, qos_plan.Found]:
    """Return PCI address -> what was read; ``wanted`` is PCI address -> settings, ``rails`` -> name of the rail.

    Ports that are gone, or have no network device, are left out.
    """
    ports = {port.pci: port for port in inventory.ports if port.netdev}
    return {
        pci: _read_port(roots, inventory.hostname, rails.get(pci), port=ports[pci], settings=tuple(settings))
        for pci, settings in wanted.items()
        if pci in ports
    }


def units(roots: Roots) -> qos_plan.Have:
    """Return own units, and those that a device starts."""
    folder = unit_folder(roots)
    wants = [name for name in names(folder) if name.endswith(".device.wants")]
    enabled = [name for one in wants for name in names(f"{folder}/{one}") if name.startswith(boot_unit.PREFIX)]
    return qos_plan.Have(files.read_folder(folder, ".service", boot_unit.PREFIX), tuple(enabled))


def unit_folder(roots: Roots) -> str:
    """Return the folder of units."""
    return f"{roots.etc}/systemd/system"


def apply(plan: qos_plan.QosPlan) -> None:
    """Set everything now, and bring files and units there."""
    for step in plan.steps:
        _take(step)
    before, after = plan.change.before, plan.change.after
    # The file of a unit must still be there when it is disabled.
    for unit in sorted({*before["units"]} - {*after["units"]}):
        command.run(["systemctl", "disable", unit])
    systemd.write_units(before["files"], after["files"])
    for unit in after["units"]:
        if unit not in before["units"]:
            command.run(["systemctl", "enable", unit])


def _take(step: Step) -> None:
    if step.argv:
        result = command.run(step.argv, check=False)
        if result.rc and result.rc not in step.unchanged:
            raise CommandError(f"'{' '.join(step.argv)}' failed with status {result.rc}: {result.said}")
    else:
        files.tell_kernel(step.path, step.value)


def _read_port(roots: Roots, host: str, rail: str | None, *, port: Port, settings: tuple[str, ...]) -> qos_plan.Found:
    netdev = port.netdev.name if port.netdev else ""
    device = Device(netdev, port.rdma[0] if port.rdma else None, roots.sysfs)
    wanted = [qos_settings.find(name) for name in settings]
    tools = {setting.name: _program(setting, port) for setting in wanted if setting.programs}
    printed: dict[tuple[str, ...], command.Result] = {}
    found = {
        setting.name: _read_files(device, setting.source)
        if isinstance(setting.source, KernelFiles)
        else _read_program(tools[setting.name], netdev, setting, printed=printed)
        for setting in wanted
    }
    if port.passthrough == "vf":
        found.update({setting.name: OF_PF for setting in wanted if setting.of_pf})
    return qos_plan.Found(
        title=f"{host} {rail or netdev} ({port.driver or 'no driver'})",
        device=device,
        values={name: value for name, value in found.items() if value is not None and not isinstance(value, Reason)},
        reasons={name: value for name, value in found.items() if isinstance(value, Reason)},
        programs=tools,
        limits={name: _limits(tool, netdev, printed) for name, tool in tools.items() if tool.limits},
    )


def _read_program(
    tool: Program, netdev: str, setting: Setting, *, printed: dict[tuple[str, ...], command.Result]
) -> Any:
    """Return the value of a setting, or the Reason why there is none; each command runs once."""
    if not command.find(tool.name):
        return _missing(setting)
    argv = tuple(tool.read_argv(netdev))
    if argv not in printed:
        printed[argv] = command.run(argv, check=False)
    result = printed[argv]
    return _refusal(tool, result) if result.rc else programs.parse(tool, setting.name, result.stdout)


def _limits(tool: Program, netdev: str, printed: Mapping[tuple[str, ...], command.Result]) -> dict[str, int]:
    result = printed.get(tuple(tool.read_argv(netdev)))
    return tool.limits.parse(result.stdout) if tool.limits and result else {}


def _read_files(device: Device, source: KernelFiles) -> Any:
    """Return the value of a setting, the Reason why there is none, or None where it is left out silently."""
    return kernel_files.read(source, device, {path: read_text(path) for path in source.paths(device)})


def _program(setting: Setting, port: Port) -> Program:
    """Return the first program that supports the driver and is installed, the last one without."""
    fitting = (tool for tool in setting.programs if (port.driver or "").startswith(tool.drivers))
    return next((tool for tool in fitting if command.find(tool.name)), setting.programs[-1])


def _missing(setting: Setting) -> Reason:
    titles = [tool.title for tool in setting.programs]
    if len(titles) > 1:
        return Reason(f"cannot be read: neither {' nor '.join(titles)} is installed", "install one of them")
    return Reason(f"cannot be read: {titles[0]} is not installed", "install it")


def _refusal(tool: Program, result: command.Result) -> Reason:
    return Reason(
        f"has no {tool.feature} ({tool.name} printed: {result.said})", "use a NIC and a driver that support it"
    )
