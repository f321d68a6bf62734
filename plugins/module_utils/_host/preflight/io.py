# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Read what preflight alone looks at: space, kernels, package sources, firmware tables. Changes nothing."""

from __future__ import annotations

import os
import re
from collections.abc import Iterable, Sequence

from ..._common.errors import CommandError, FabricError, InputError
from ..facts.inventory import HostInventory
from ..gpu_direct import acs, acs_io
from ..kernel import boot_loader_io
from ..links import io as links_io
from ..naming import io as naming_io
from ..rdma_stack import packages_io
from ..rdma_stack.plan import packages_of
from ..system import files
from ..system.files import Roots, names, read_bytes, read_text
from .checks import Own

# What Debian, Red Hat (dracut) and SUSE call the initramfs of a kernel.
_INITRAMFS = ("initrd.img-", "initramfs-", "initrd-")
_TABLES = ("DMAR", "IVRS")
_REPOSITORIES = ("yum.repos.d", "zypp/repos.d")
# By whom a boot is asked for: Debian and Ubuntu, SUSE.
_REBOOT = ("reboot-required", "reboot-needed")
# The firmware's list of Machine Owner Keys as the kernel shows it, whole certificates in it.
_TRUSTED = re.compile(r"MokListRT\d*-605dab50-e046-4300-abb6-3dd810dd8b23")
_LIST_BYTES = 1 << 20
# Where DKMS has the certificate of its key: by itself, and with shim-signed of Debian and Ubuntu.
_CERTIFICATES = ("lib/dkms/mok.pub", "lib/shim-signed/mok/MOK.der")
_OWN_CERTIFICATE = re.compile(r"^\s*mok_certificate\s*=\s*[\"']?([^\"'\n]+)", re.MULTILINE)


def read(
    roots: Roots,
    lib: str,
    var: str,
    *,
    inventory: HostInventory,
    wanted: Iterable[str] | None,
    boots: Sequence[str],
    peers: Iterable[str],
) -> Own:
    """Read the host; ``lib`` is the distribution's folder (/usr/lib), ``var`` is /var.

    ``wanted`` are packages that the run installs, empty means those of the distribution, None that it installs none.
    ``boots`` are the folders of the boot loader, none where it may be any. ``peers`` are the PCI addresses of NICs that
    shall reach their GPUs without ACS.
    """
    kernel, missing = inventory.kernel_release, _missing(inventory, wanted)
    return Own(
        boot_free=_free(roots.boot),
        initramfs=_largest_initramfs(roots.boot),
        missing=missing,
        no_source=_no_source(roots, var, missing) if missing else "",
        kernel_modules=os.path.isdir(f"{roots.modules}/{kernel}") if os.path.isdir(roots.modules) else None,
        reboot_required=_reboot_required(roots.run),
        iommu_tables=any(os.path.exists(f"{roots.sysfs}/firmware/acpi/tables/{name}") for name in _TABLES),
        trusts_dkms=_trusts_dkms(roots, var),
        no_loader=_no_loader(roots, boots) if boots else "",
        acs=_acs(roots, inventory, peers) if peers else None,
        no_setpci=acs_io.no_setpci(),
        names=naming_io.read_files(roots, lib),
        netplan=links_io.read_netplan(roots, lib),
        functions=naming_io.read_functions(roots, inventory),
    )


def _no_loader(roots: Roots, boots: Sequence[str]) -> str:
    """Say why kernel arguments cannot be set, nothing when they can."""
    try:
        if boot_loader_io.detect(roots, boots).menu:
            boot_loader_io.mkconfig()
    except FabricError as error:
        return str(error)
    return ""


def _acs(roots: Roots, inventory: HostInventory, peers: Iterable[str]) -> acs.Have:
    there = {port.pci for port in inventory.ports}
    wanted = acs.paths(inventory, [peer for peer in peers if peer in there])
    return acs_io.read(roots, wanted, [device for pair in wanted.values() for device in pair])


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


def _missing(inventory: HostInventory, wanted: Iterable[str] | None) -> tuple[str, ...]:
    if wanted is None:
        return ()
    try:
        asked = tuple(wanted) or packages_of(inventory)
        there = packages_io.installed(asked)
    except (InputError, CommandError):
        # A system that is not supported is said by its name.
        return ()
    return tuple(name for name in asked if name not in there)


def _no_source(roots: Roots, var: str, missing: Iterable[str]) -> str:
    """Say why packages cannot be had: apt needs lists, others repositories, and they must answer."""
    if os.path.isdir(f"{roots.etc}/apt"):
        if not any("_Packages" in name for name in names(f"{var}/lib/apt/lists")):
            return f"{var}/lib/apt/lists has no package lists. Run apt-get update, and check the package sources"
        return packages_io.unobtainable(missing)
    folders = [f"{roots.etc}/{name}" for name in _REPOSITORIES if os.path.isdir(f"{roots.etc}/{name}")]
    paths = [f"{folder}/{name}" for folder in folders for name in names(folder) if name.endswith(".repo")]
    if folders and not any(_enabled(read_text(path) or "") for path in paths):
        return f"no repository is enabled in {', '.join(folders)}"
    return packages_io.unobtainable(missing)


def _enabled(text: str) -> bool:
    """Whether a file has a repository that is not switched off; without ``enabled`` it is on."""
    for section in text.split("\n[")[0 if text.startswith("[") else 1 :]:
        settings = [line.replace(" ", "").lower() for line in section.splitlines()]
        if not {"enabled=0", "enabled=false", "enabled=no"} & set(settings):
            return True
    return False


def _trusts_dkms(roots: Roots, var: str) -> bool:
    """Whether the certificate of the key that DKMS signs with is among those that the firmware trusts."""
    own = _OWN_CERTIFICATE.findall(files.read(f"{roots.etc}/dkms/framework.conf") or "")
    found = [read_bytes(path, _LIST_BYTES) for path in (*own, *(f"{var}/{name}" for name in _CERTIFICATES))]
    certificates = [content for content in found if content]
    folder = f"{roots.sysfs}/firmware/efi/efivars"
    trusted = [name for name in names(folder) if certificates and _TRUSTED.fullmatch(name)]
    lists = [read_bytes(f"{folder}/{name}", _LIST_BYTES) or b"" for name in trusted]
    return any(certificate in content for certificate in certificates for content in lists)


def _reboot_required(run: str) -> str | None:
    if not any(os.path.exists(f"{run}/{name}") for name in _REBOOT):
        return None
    return ", ".join(dict.fromkeys((read_text(f"{run}/reboot-required.pkgs") or "").split()))
