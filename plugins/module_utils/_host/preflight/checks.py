# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What of a host, beside its network, stands in the way of a preparation: firmware, kernels, space, packages. Pure."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterable, Iterator, Mapping
from typing import NamedTuple

from ..._common.errors import ConflictError
from ..facts.devices import Port
from ..facts.inventory import HostInventory
from ..gpu_direct import acs
from ..naming import model as naming_model
from ..naming import plan as naming_plan

MIB = 1 << 20
# A new initramfs is written beside the old one, and is larger when it gets more drivers.
_GROWTH = 1.25
_SPARE = 16 * MIB


class Consent(NamedTuple):
    """What the user's settings make acceptable, and what the run itself will do.

    ``installs``: missing packages are installed; ``busy``: ports in use may be changed;
    ``unsigned``: kernel modules are built that nobody signs; ``vfs``: VFs that each rail shall
    have; ``manager``: who configures the rails (``managers.CHOICES``).
    """

    installs: bool
    busy: bool
    unsigned: bool = False
    vfs: int = 0
    manager: str = "auto"
    names_vfs: bool = False
    names_representors: bool = False


@dataclasses.dataclass(frozen=True)
class Own:
    """What preflight alone reads. Sizes in bytes; None where it is not known."""

    boot_free: int | None
    initramfs: int | None
    # Packages that the run needs and the host has not, and why they cannot be had (empty when they can).
    missing: tuple[str, ...]
    no_source: str
    # Whether the modules of the running kernel are still there.
    kernel_modules: bool | None
    # Packages that ask for a reboot of the system; None when nothing does.
    reboot_required: str | None
    # Whether the firmware describes an IOMMU (ACPI table DMAR or IVRS).
    iommu_tables: bool
    # Whether the firmware trusts the key that DKMS signs with (Machine Owner Key).
    trusts_dkms: bool
    # Why kernel arguments cannot be set, empty when they can or nobody asked.
    no_loader: str
    # ACS between NICs and GPUs and what relies on it, None when nobody asked.
    acs: acs.Have | None
    # Why ACS cannot be set, empty when it can.
    no_setpci: str
    names: naming_plan.Files
    # Path -> text of the netplan files; None where the program is missing.
    netplan: Mapping[str, str] | None
    functions: tuple[naming_model.Function, ...]


class Finding(NamedTuple):
    """One thing found; ``stops`` when the run cannot succeed with it."""

    stops: bool
    text: str


def find(
    inventory: HostInventory, ports: Iterable[tuple[str, Port]], own: Own, *, consent: Consent
) -> Iterator[Finding]:
    """Yield what was found; ``ports`` is (rail, port) of the rails that have one."""
    ports = tuple(ports)
    yield from _secure_boot(inventory, own, consent)
    yield from _kernel(inventory, own)
    yield from _packages(own, consent)
    if own.no_loader:
        yield Finding(True, f"kernel arguments are requested, but {own.no_loader}")
    yield from _iommu(inventory, own, consent)
    if own.acs:
        yield from _acs(inventory, [port.pci for _rail, port in ports], own.acs, no_setpci=own.no_setpci)


def space(own: Own, needed: bool) -> Iterator[Finding]:
    """Yield a finding when a new initramfs has no place; it stops only when the run makes one."""
    if own.boot_free is None or own.initramfs is None:
        return
    wanted = int(own.initramfs * _GROWTH) + _SPARE
    if own.boot_free < wanted:
        yield Finding(
            needed,
            f"the file system of /boot has {own.boot_free // MIB} MiB free, but a new initramfs needs about "
            f"{wanted // MIB} MiB. Remove unused kernels",
        )


def _secure_boot(inventory: HostInventory, own: Own, consent: Consent) -> Iterator[Finding]:
    if not consent.unsigned or inventory.secure_boot is False or own.trusts_dkms:
        return
    state = "is enabled" if inventory.secure_boot else "may be enabled (its state is unreadable)"
    yield Finding(
        bool(inventory.secure_boot),
        f"Secure Boot {state}, and the kernel modules built by this run would not be signed with a trusted key. "
        "Enroll the DKMS key (mokutil --import), use precompiled modules, or disable Secure Boot",
    )


def _kernel(inventory: HostInventory, own: Own) -> Iterator[Finding]:
    running, following = inventory.kernel_release, inventory.next_kernel
    if own.kernel_modules is False:
        yield Finding(
            True,
            f"the modules of the running kernel {running} are no longer installed, so no driver can be loaded. Reboot "
            "into an installed kernel",
        )
    if following and following != running:
        yield Finding(
            False,
            f"kernel {running} is running, but {following} boots next. This run builds and checks for {running}; "
            "reboot first if that is not intended",
        )
    if own.reboot_required is not None:
        yield Finding(False, f"a reboot is pending ({own.reboot_required or 'no package named'})")


def _packages(own: Own, consent: Consent) -> Iterator[Finding]:
    if consent.installs and own.missing and own.no_source:
        names = ", ".join(own.missing)
        yield Finding(True, f"packages are missing ({names}) and cannot be installed: {own.no_source}")


def _iommu(inventory: HostInventory, own: Own, consent: Consent) -> Iterator[Finding]:
    if not consent.vfs or inventory.iommu_groups or inventory.virtual:
        return
    if own.iommu_tables:
        what = "the IOMMU is available, but disabled in the kernel (role host_kernel enables it)"
    else:
        what = "the IOMMU (VT-d, AMD-Vi) is disabled in the firmware (enable it there)"
    yield Finding(
        False, f"{what}. Without it, VFs work in containers, but cannot be passed through to virtual machines"
    )


def _acs(inventory: HostInventory, nics: Iterable[str], have: acs.Have, *, no_setpci: str) -> Iterator[Finding]:
    """Yield what pcie_acs will refuse. An IOMMU that translates is no problem: this run may boot with iommu=pt."""
    wanted = acs.paths(inventory, nics)
    if no_setpci and any(have.controls.get(port) is not None for port in wanted):
        yield Finding(True, f"rdma_pcie_acs is requested, but {no_setpci}")
    untranslated = dataclasses.replace(have, domains={})
    for found, stops in ((untranslated, True), (have, False)):
        try:
            acs.check(inventory, wanted, found)
        except ConflictError as error:
            yield Finding(stops, f"rdma_pcie_acs is requested, but {error}")
            return
