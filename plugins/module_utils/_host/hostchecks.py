# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Read what preflight alone looks at: space, kernels, package sources, firmware tables. Changes nothing."""

from __future__ import annotations

import os

from .._core.hostchecks import Own
from .._core.inventory import HostInventory
from . import links
from . import names as host_names
from .sysfs import Roots, names, read_text

# What Debian, Red Hat (dracut) and SUSE call the initramfs of a kernel.
_INITRAMFS = ("initrd.img-", "initramfs-", "initrd-")
_TABLES = ("DMAR", "IVRS")
_REPOSITORIES = ("yum.repos.d", "zypp/repos.d")


def read(roots: Roots, lib: str, var: str, inventory: HostInventory) -> Own:
    """Read the host; ``lib`` is the distribution's folder (/usr/lib), ``var`` is /var."""
    kernel = inventory.kernel_release
    source, advice = _package_source(roots, var)
    return Own(
        boot_free=_free(roots.boot),
        initramfs=_largest_initramfs(roots.boot),
        package_source=source,
        package_advice=advice,
        kernel_modules=os.path.isdir(f"{roots.modules}/{kernel}") if os.path.isdir(roots.modules) else None,
        reboot_required=_reboot_required(roots.run),
        iommu_tables=any(os.path.exists(f"{roots.sysfs}/firmware/acpi/tables/{name}") for name in _TABLES),
        names=host_names.read_files(roots, lib),
        netplan=links.read_netplan(roots, lib),
        functions=host_names.read_functions(roots, inventory),
    )


def _free(folder: str) -> int | None:
    try:
        found = os.statvfs(folder)
    except OSError:
        return None
    return found.f_bavail * found.f_frsize


def _largest_initramfs(boot: str) -> int | None:
    # The rescue image of Red Hat has all drivers, and is made once.
    found = [name for name in names(boot) if name.startswith(_INITRAMFS) and "rescue" not in name]
    sizes = [os.path.getsize(f"{boot}/{name}") for name in found if os.path.exists(f"{boot}/{name}")]
    return max(sizes, default=None)


def _package_source(roots: Roots, var: str) -> tuple[bool | None, str]:
    """Whether packages can come from somewhere, without asking the network: apt needs lists, others repositories."""
    if os.path.isdir(f"{roots.etc}/apt"):
        lists = [name for name in names(f"{var}/lib/apt/lists") if "_Packages" in name]
        return bool(lists), f"{var}/lib/apt/lists has no package lists: run apt-get update, and check the sources"
    folders = [f"{roots.etc}/{name}" for name in _REPOSITORIES if os.path.isdir(f"{roots.etc}/{name}")]
    if not folders:
        return None, ""
    files = [f"{folder}/{name}" for folder in folders for name in names(folder) if name.endswith(".repo")]
    return any(_enabled(read_text(path) or "") for path in files), f"no repository is enabled in {', '.join(folders)}"


def _enabled(text: str) -> bool:
    """Whether a file has a repository that is not switched off; without ``enabled`` it is on."""
    for section in text.split("\n[")[0 if text.startswith("[") else 1 :]:
        settings = [line.replace(" ", "").lower() for line in section.splitlines()]
        if not {"enabled=0", "enabled=false", "enabled=no"} & set(settings):
            return True
    return False


def _reboot_required(run: str) -> str | None:
    if not os.path.exists(f"{run}/reboot-required"):
        return None
    return ", ".join(dict.fromkeys((read_text(f"{run}/reboot-required.pkgs") or "").split()))
