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
from .kernel_files import Device, Step
from .plan import NO_RDMA, Reason

_NO_ECN = Reason("has no ECN settings in sysfs", "use the driver of DOCA-OFED, which has them")


def read(
    roots: Roots, inventory: HostInventory, wanted: Mapping[str, Iterable[str]], rails: Mapping[str, str]
) -> dict[str, qos_plan.Found]:
    """Return PCI address -> what was read; ``wanted`` is PCI address -> settings, ``rails`` -> name of the rail.

    Ports that are gone, or have no network device, are left out.
    """
    ports = {port.pci: port for port in inventory.ports if port.netdev}
    return {
        pci: _read_port(roots, inventory.hostname, rails.get(pci), ports[pci], tuple(settings))
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
        # ethtool says by these that nothing had to change.
        if result.rc and not (step.argv[0] == programs.ETHTOOL and str(result.rc) in boot_unit.UNCHANGED.split()):
            said = (result.stderr.strip() or result.stdout.strip() or "nothing").replace("\n", " ")
            raise CommandError(f"'{' '.join(step.argv)}' failed with status {result.rc} and said: {said}")
    else:
        files.tell_kernel(step.path, step.value)


def _read_port(roots: Roots, host: str, rail: str | None, port: Port, settings: tuple[str, ...]) -> qos_plan.Found:
    netdev = port.netdev.name if port.netdev else ""
    device = Device(netdev, port.rdma[0] if port.rdma else None, roots.sysfs)
    tools = {name: _tool(name, port) for name in settings if name not in kernel_files.FILE_SETTINGS}
    printed: dict[tuple[str, ...], command.Result] = {}
    found = {
        name: _read_program(tools[name], netdev, name, printed) if name in tools else _read_file(device, name)
        for name in settings
    }
    rings = printed.get(tuple(programs.read_argv(programs.ETHTOOL, netdev, "rings")))
    return qos_plan.Found(
        title=f"{host} {rail or netdev} ({port.driver or 'no driver'})",
        device=device,
        values={name: value for name, value in found.items() if value is not None and not isinstance(value, Reason)},
        reasons={name: value for name, value in found.items() if isinstance(value, Reason)},
        tools=tools,
        limits=programs.ring_limits(rings.stdout) if rings else {},
    )


def _read_program(tool: str, netdev: str, name: str, printed: dict[tuple[str, ...], command.Result]) -> Any:
    """Return the value of a setting, or the Reason why there is none; each command runs once."""
    if not command.find(tool):
        return _missing(tool)
    argv = tuple(programs.read_argv(tool, netdev, name))
    if argv not in printed:
        printed[argv] = command.run(argv, check=False)
    result = printed[argv]
    return _refusal(name, tool, result) if result.rc else programs.parse(tool, name, result.stdout)


def _read_file(device: Device, name: str) -> Any:
    """Return the value of a setting, the Reason why there is none, or None where nobody misses it."""
    texts = {path: read_text(path) for path in kernel_files.paths(name, device)}
    try:
        return kernel_files.parse(name, device, texts)
    except LookupError:
        if name in ("ecn", "cnp_dscp"):
            return _NO_ECN
        # A driver without a traffic class of its own is fine: what uses RDMA-CM gets it there.
        return NO_RDMA if device.rdma is None else None


def _tool(name: str, port: Port) -> str:
    if name in programs.ETHTOOL_SETTINGS:
        return programs.ETHTOOL
    # It knows the vendor's own NICs only.
    if (port.driver or "").startswith("mlx") and command.find(programs.MLNX_QOS):
        return programs.MLNX_QOS
    return programs.DCB


def _missing(tool: str) -> Reason:
    if tool == programs.DCB:
        return Reason("cannot be asked: neither mlnx_qos nor dcb (iproute2) is installed", "install one of them")
    return Reason(f"cannot be asked: {tool} is not installed", "install it")


def _refusal(name: str, program: str, result: command.Result) -> Reason:
    said = (result.stderr.strip() or result.stdout.strip() or "nothing").replace("\n", " ")
    what = f"{name} to set" if name in programs.ETHTOOL_SETTINGS else "DCB"
    return Reason(f"has no {what} ({program} said: {said})", "use a NIC and a driver that have")
