# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Names of ports, VFs and representors on a host: read what decides about them, and rename."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from ..facts.devices import Port
from ..facts.inventory import HostInventory
from ..facts.io import link_name, netdevs, read_inventory
from ..kernel import initramfs_io
from ..sriov import io as sriov_io
from ..system import command, files, systemd
from ..system.files import Roots, names, read_text
from . import model, systemd_files
from . import plan as naming_plan


def read_files(roots: Roots, lib: str) -> naming_plan.Files:
    """Read .link files, ours and those of others, and udev rules; ``lib`` has the distribution's."""
    folder, rule_file = f"{roots.etc}/systemd/network", f"{roots.etc}/udev/rules.d/{model.FILE}"
    rules = read_rules(roots)
    own_rules = {path: text for path, text in rules.items() if path == rule_file}
    return naming_plan.Files(
        own={**files.read_folder(folder, ".link", systemd_files.PREFIX), **own_rules},
        links=systemd.read_systemd(roots, lib, ".link"),
        rules={path: text for path, text in rules.items() if path != rule_file},
        link_folder=folder,
        rule_file=rule_file,
    )


def read_rules(roots: Roots) -> dict[str, str]:
    """Return path -> text of the udev rules that are not the distribution's."""
    return {
        **files.read_folder(f"{roots.etc}/udev/rules.d", ".rules"),
        **files.read_folder(f"{roots.run}/udev/rules.d", ".rules"),
    }


def read_functions(roots: Roots, inventory: HostInventory) -> tuple[model.Function, ...]:
    """Read the VFs and representors that the host's ports have or may get."""
    raw = {port.pci: _functions(roots, port) for port in inventory.ports if port.vfs_total}
    devices = [name for own in raw.values() for vf in own["vfs"].values() for name in vf["rdma"]]
    return model.from_raw(inventory, raw, sriov_io.rdma_holders(devices))


def apply(plan: naming_plan.NamePlan) -> None:
    """Write the files and rename."""
    before, after = plan.change.before["files"], plan.change.after["files"]
    files.write_files(before, after)
    if before != after:
        # udev must not see the rename with the rules of before.
        command.run(["udevadm", "control", "--reload"])
    for argv in naming_plan.rename_commands(plan.renames):
        command.run(argv)
    if plan.renames:
        command.run(["udevadm", "settle", "--timeout=20"], check=False)


def renew_initramfs(roots: Roots, ports: Iterable[str]) -> list[str]:
    """Make those initramfs images anew that have the driver of one of ``ports``; return their paths."""
    inventory = read_inventory(roots)
    kernels = dict.fromkeys(kernel for kernel in (inventory.kernel_release, inventory.next_kernel) if kernel)
    drivers = dict.fromkeys(port.driver for port in inventory.ports if port.driver and port.pci in ports)
    found = initramfs_io.with_drivers(roots, kernels, drivers)
    for _path, argv in found:
        initramfs_io.renew(argv)
    return [path for path, _argv in found]


def _functions(roots: Roots, port: Port) -> dict[str, Any]:
    """Read what ``vfnames.from_raw`` takes of a port."""
    folder = f"{roots.sysfs}/bus/pci/devices/{port.pci}"
    links = {index: f"{folder}/virtfn{index}" for index in range(port.vfs_count)}
    return {
        "offset": read_text(f"{folder}/sriov_offset"),
        "stride": read_text(f"{folder}/sriov_stride"),
        "net": netdevs(folder),
        "vfs": {
            index: {
                "pci": link_name(link),
                "driver": link_name(f"{link}/driver"),
                "net": netdevs(link),
                "rdma": names(f"{link}/infiniband"),
            }
            for index, link in links.items()
        },
    }
