# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The VFs of a host's ports: read them, make them, set them."""

from __future__ import annotations

import contextlib
import dataclasses
import os
from collections.abc import Collection, Iterable
from typing import Any

from ..facts.devices import Port
from ..facts.inventory import HostInventory
from ..facts.io import link_name
from ..system import command, files, systemd
from ..system.files import Roots, names, read_text
from . import daemon_io, vf
from . import plan as sriov_plan
from .boot_unit import PREFIX, UNIT, Folders, Target

# Where the agent of the SR-IOV operator keeps what it did to each PF.
OPERATOR = "sriov-operator/pci"
# Who cannot be told counts as somebody.
UNKNOWN = ("an unknown process (install the rdma tool of iproute2 to see it)",)
SETTLE = ["udevadm", "settle", "--timeout=20"]


def folders(roots: Roots) -> Folders:
    """Return where our files go."""
    etc = roots.etc
    return Folders(f"{etc}/systemd/system", f"{etc}/udev/rules.d", f"{etc}/gpufabric", roots.sysfs)


def of_operator(etc: str) -> dict[str, str]:
    """Return PCI address -> path of what the SR-IOV operator's agent keeps, of PFs whose VFs it makes."""
    kept = files.read_folder(f"{etc}/{OPERATOR}", "")
    return {os.path.basename(path): path for path, text in kept.items() if sriov_plan.made_by_operator(text)}


def read_files(where: Folders) -> dict[str, str]:
    """Return path -> text of all our own files."""
    return {
        **files.read_folder(where.units, UNIT),
        **files.read_folder(where.rules, ".rules", f"90-{PREFIX}-"),
        **files.read_folder(where.scripts, ".sh", PREFIX),
    }


def read(roots: Roots, inventory: HostInventory, ports: Iterable[Port]) -> dict[str, tuple[vf.Vf, ...]]:
    """Return PCI address -> VFs of the ports; CommandError and ParseError as ``ip`` behaves."""
    settings = vf.parse_vfs(command.run(["ip", "-d", "-j", "link", "show"]).stdout)
    found = {port.pci: _vfs(roots, port) for port in ports}
    devices = [device for vfs in found.values() for one in vfs for device in one.rdma]
    holders = rdma_holders(devices)
    addresses = {interface.name: interface.addresses for interface in inventory.interfaces}

    def whole(port: Port, one: vf.Vf) -> vf.Vf:
        own = settings.get(port.netdev.name if port.netdev else "", {})
        return dataclasses.replace(
            one,
            addresses=tuple(address for name in one.netdevs for address in addresses.get(name, ())),
            holders=(*one.holders, *(who for device in one.rdma for who in holders.get(device, ()))),
            settings=own.get(one.index, {}),
        )

    return {port.pci: tuple(whole(port, one) for one in found[port.pci]) for port in ports}


def apply(plan: sriov_plan.VfPlan, roots: Roots) -> None:
    """Write our files, remove those that are not to stay, then bring each PF there."""
    where = folders(roots)
    before, after = plan.change.before["files"], plan.change.after["files"]
    systemd.write_units(before, after)
    if daemon_io.TEXT in before.values():
        daemon_io.remove_folders(roots)
    if not after:
        # Not empty: it is not ours alone. Not there: no VFs were ever wanted.
        with contextlib.suppress(OSError):
            os.rmdir(where.scripts)
    if before != after:
        command.run(["udevadm", "control", "--reload"])
    for target in plan.targets:
        now = plan.have[target.port.pci]
        if target.up and not target.is_up:
            command.run(["ip", "link", "set", "dev", target.netdev, "up"])
        if target.port.pci in plan.anew:
            _make(target, len(now), where.sysfs)
        else:
            _set(target, [one.now(want) for one, want in zip(now, target.vfs)])
        if target.is_up and not target.up:
            command.run(["ip", "link", "set", "dev", target.netdev, "down"])
    _set_mtu(plan.targets, where.sysfs)


def _make(target: Target, now: int, sysfs: str) -> None:
    """Make the VFs anew; their drivers bind when all settings are there."""
    device = f"{sysfs}/bus/pci/devices/{target.port.pci}"
    probe = read_text(f"{device}/sriov_drivers_autoprobe") or "1"
    files.set_kernel(f"{device}/sriov_drivers_autoprobe", "0")
    try:
        for number in sriov_plan.counts(now, len(target.vfs)):
            files.set_kernel(f"{device}/sriov_numvfs", str(number))
        _set(target, [{}] * len(target.vfs))
    finally:
        files.set_kernel(f"{device}/sriov_drivers_autoprobe", probe)
    if probe != "0":
        for index in range(len(target.vfs)):
            files.tell_kernel(f"{sysfs}/bus/pci/drivers_probe", link_name(f"{device}/virtfn{index}") or "")
    command.run(SETTLE, check=False)


def _set(target: Target, now: list[dict[str, Any]]) -> None:
    for index, (have, want) in enumerate(zip(now, target.vfs)):
        for argv in vf.vf_commands(target.netdev, index, have, after=want):
            command.run(argv)


def _set_mtu(targets: Iterable[Target], sysfs: str) -> None:
    for target in targets:
        for index, want in enumerate(target.vfs):
            folder = f"{sysfs}/bus/pci/devices/{target.port.pci}/virtfn{index}/net"
            for name in names(folder) if "mtu" in want else []:
                if read_text(f"{folder}/{name}/mtu") != str(want["mtu"]):
                    command.run(["ip", "link", "set", "dev", name, "mtu", str(want["mtu"])])


def _vfs(roots: Roots, port: Port) -> tuple[vf.Vf, ...]:
    device = f"{roots.sysfs}/bus/pci/devices/{port.pci}"
    return tuple(_vf(roots, f"{device}/virtfn{index}", index) for index in range(port.vfs_count))


def _vf(roots: Roots, folder: str, index: int) -> vf.Vf:
    netdevs = names(f"{folder}/net")
    driver = link_name(f"{folder}/driver")
    mtus = [read_text(f"{folder}/net/{name}/mtu") for name in netdevs]
    uppers = [entry[6:] for name in netdevs for entry in names(f"{folder}/net/{name}") if entry.startswith("upper_")]
    return vf.Vf(
        index=index,
        pci=link_name(folder) or "?",
        driver=driver,
        netdevs=tuple(netdevs),
        rdma=tuple(names(f"{folder}/infiniband")),
        mtu=next((int(mtu) for mtu in mtus if mtu and mtu.isdecimal()), None),
        uppers=tuple(uppers),
        holders=_vfio_holders(roots.proc, link_name(f"{folder}/iommu_group")) if driver == vf.VFIO else (),
    )


def rdma_holders(devices: Collection[str]) -> dict[str, tuple[str, ...]]:
    """Return RDMA device -> processes that hold it; all ``devices`` have an unknown one where that cannot be read."""
    if not devices:
        return {}
    shown = command.run(["rdma", "-j", "resource", "show", "pd"], check=False) if command.find("rdma") else None
    known = vf.parse_holders(shown.stdout) if shown and shown.rc == 0 else None
    return dict.fromkeys(devices, UNKNOWN) if known is None else known


def _vfio_holders(proc: str, group: str | None) -> tuple[str, ...]:
    """Return the processes that have the VFIO group open: virtual machines, and programs such as those of DPDK."""
    found = []
    for pid in (name for name in names(proc) if name.isdecimal()):
        links = (f"{proc}/{pid}/fd/{handle}" for handle in names(f"{proc}/{pid}/fd"))
        if any(_target(link) == f"/dev/vfio/{group}" for link in links):
            found.append(f"{read_text(f'{proc}/{pid}/comm') or '?'}[{pid}]")
    return tuple(found)


def _target(link: str) -> str | None:
    try:
        return os.readlink(link)
    except OSError:
        return None
