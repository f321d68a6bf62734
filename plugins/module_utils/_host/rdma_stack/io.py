# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Kernel modules, drivers, units, soft-RoCE devices and the package source of a host: read and change."""

from __future__ import annotations

import os
from collections.abc import Iterable

from ..._common.errors import CommandError
from ..facts.loaded_drivers import DRIVERS, Driver, stale
from ..system import command, files, systemd
from ..system.files import Roots, names, read_text
from . import doca, packages_io
from . import plan as rdma_stack_plan

# In the order in which they can go, and in which they come back: what uses others first.
GOES = (
    "rdma_rxe", "nvidia_peermem", "rdma_ucm", "ib_umad", "ib_ipoib", "mlx5_ib", "ib_uverbs", "rdma_cm", "iw_cm",
    "ib_cm", "mlx5_core", "ib_core",
)  # fmt: skip
# Built against another stack it may refuse; the role peer_memory says so then.
MAY_FAIL = ("nvidia_peermem",)
OPENIBD = "init.d/openibd"


def folders(roots: Roots) -> tuple[str, str]:
    """Return the folders of modules-load files and of units."""
    return f"{roots.etc}/modules-load.d", f"{roots.etc}/systemd/system"


def read(roots: Roots, asked: Iterable[str], drivers: bool) -> rdma_stack_plan.Have:
    """Read the host's side of the stack; ``asked`` are packages, ``drivers``: those on disk are looked at too."""
    load, units = folders(roots)
    devices = f"{roots.sysfs}/class/infiniband"
    found = packages_io.read(asked, roots.etc)
    sources = {path: files.read(path) for path in doca.paths(roots.etc)}
    return rdma_stack_plan.Have(
        files={
            **files.read_folder(load, rdma_stack_plan.LOAD_FILE),
            **files.read_folder(units, ".service", rdma_stack_plan.UNIT),
            **{path: text for path, text in sources.items() if text is not None},
        },
        units=tuple(enabled(units)),
        # Only a soft device has a parent netdev in sysfs.
        devices=tuple(name for name in names(devices) if read_text(f"{devices}/{name}/parent")),
        modules=tuple(name for name in rdma_stack_plan.UNLOAD if os.path.isdir(f"{roots.sysfs}/module/{name}")),
        installed=found.installed,
        held=found.held,
        manager=found.manager,
        stale=tuple(_stale(roots)) if drivers else (),
    )


def _stale(roots: Roots) -> list[tuple[Driver, Driver]]:
    """Return drivers that run, each with another one that is installed in its place."""
    folder = f"{roots.sysfs}/module"
    loaded = [
        Driver.loaded(name, read_text(f"{folder}/{name}/version"), read_text(f"{folder}/{name}/taint"))
        for name in DRIVERS
        if os.path.isdir(f"{folder}/{name}")
    ]
    shown = {driver.name: command.run(["modinfo", driver.name], check=False).stdout for driver in loaded}
    found = {name: Driver.installed(name, text) for name, text in shown.items()}
    return stale(loaded, {name: driver for name, driver in found.items() if driver})


def headers(roots: Roots, releases: Iterable[str | None]) -> dict[str, bool]:
    """Return of each kernel release whether its headers are there, as DKMS looks for them."""
    return {release: os.path.exists(f"{roots.modules}/{release}/build/Makefile") for release in releases if release}


def loaded(roots: Roots) -> dict[str, int]:
    """Return the use count of every loaded kernel module."""
    lines = [line.split() for line in (read_text(f"{roots.proc}/modules") or "").splitlines()]
    return {line[0]: int(line[2]) for line in lines if len(line) > 2 and line[2].isdecimal()}


def enabled(units: str) -> list[str]:
    """Return our units that are wanted by a device."""
    wants = [name for name in names(units) if name.endswith(".device.wants")]
    return [name for folder in wants for name in names(f"{units}/{folder}") if name.startswith(rdma_stack_plan.UNIT)]


def apply(roots: Roots, plan: rdma_stack_plan.StackPlan) -> None:
    """Bring files, holds, drivers, modules and units there."""
    before, after = plan.change.before, plan.change.after
    # Units that go must stop while their file is still there.
    for unit in sorted(set(before["units"]) - set(after["units"])):
        command.run(["systemctl", "disable", "--now", unit])
    systemd.write_units(before["files"], after["files"])
    packages_io.hold(before["holds"], after["holds"])
    if before["drivers"] != after["drivers"]:
        restart(roots)
    for module in sorted(set(after["modules"]) - set(before["modules"])):
        _load(roots, module)
    missing = set(after["devices"]) - set(before["devices"])
    for unit in after["units"]:
        if unit not in before["units"]:
            command.run(["systemctl", "enable", unit])
        if rdma_stack_plan.device_of(unit) in missing:
            command.run(["systemctl", "restart", unit])
    for module in plan.unload:
        # The kernel refuses what others use, and that is right.
        command.run(["modprobe", "--remove", module], check=False)


def _load(roots: Roots, module: str) -> None:
    try:
        command.run(["modprobe", module])
    except CommandError as error:
        # Kernels for clouds and small images come without it.
        release = read_text(f"{roots.proc}/sys/kernel/osrelease")
        hint = f"install linux-modules-extra-{release} on Ubuntu, or kernel-modules-extra-{release} on RHEL"
        raise CommandError(f"{error}; {hint}" if "not found" in str(error) else str(error)) from error


def restart(roots: Roots) -> None:
    """Load the RDMA drivers again: by DOCA-OFED's own service where it is, else by hand.

    Whether it helped is seen by reading the drivers again: the kernel may refuse to let one go.
    """
    if os.path.exists(f"{roots.etc}/{OPENIBD}"):
        command.run(["systemctl", "restart", "openibd.service"], timeout=300, check=False)
        return
    there = [name for name in GOES if name in loaded(roots)]
    for name in there:
        command.run(["modprobe", "--remove", name], check=False)
    for name in reversed(there):
        command.run(["modprobe", name], check=name not in MAY_FAIL)
