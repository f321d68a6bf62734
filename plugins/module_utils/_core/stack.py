# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The RDMA stack of a host: packages, kernel modules, soft-RoCE devices. Pure."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterable, Mapping

from .change import Change
from .errors import InputError
from .inventory import HostInventory

PROVIDERS = ("inbox", "soft_roce")
TITLE = "Written by gpufabric.rdma.rdma_stack, which removes it with state: absent."
# User space verbs, connection manager and management datagrams: nothing loads them on demand.
MODULES = ("ib_umad", "ib_uverbs", "rdma_ucm")
SOFT_MODULE = "rdma_rxe"
# In the order in which they can go.
UNLOAD = (SOFT_MODULE, "rdma_ucm", "ib_umad", "ib_uverbs")
LOAD_FILE = "gpufabric-rdma.conf"
# Family of distributions -> what verbs and perftest need; libibverbs of Red Hat holds the providers.
PACKAGES: Mapping[str, tuple[str, ...]] = {
    "debian": ("ibverbs-providers", "perftest", "rdma-core"),
    "rhel": ("libibverbs", "perftest", "rdma-core"),
    "suse": ("libibverbs", "perftest", "rdma-core"),
}
_FAMILIES = {"ubuntu": "debian", "fedora": "rhel", "centos": "rhel", "sles": "suse", "opensuse": "suse"}
UNIT = "gpufabric-soft-roce@"
# Bound to the device: it comes back after a boot and after the NIC, and follows the rail's name.
UNIT_TEXT = f"""# {TITLE}
[Unit]
Description=Soft-RoCE device on %I
BindsTo=sys-subsystem-net-devices-%i.device
After=sys-subsystem-net-devices-%i.device systemd-modules-load.service

[Service]
Type=oneshot
RemainAfterExit=yes
ExecStartPre=-modprobe {SOFT_MODULE}
ExecStart=rdma link add rxe_%I type rxe netdev %I
ExecStop=-rdma link delete rxe_%I

[Install]
WantedBy=sys-subsystem-net-devices-%i.device
"""


@dataclasses.dataclass(frozen=True)
class Have:
    """The host's side: own files, own enabled units, soft-RoCE devices, loaded modules, packages."""

    files: Mapping[str, str]
    units: tuple[str, ...]
    devices: tuple[str, ...]
    modules: tuple[str, ...]
    installed: tuple[str, ...]


@dataclasses.dataclass(frozen=True)
class StackPlan:
    """The change; packages for a package manager; modules to unload; what to keep of before us."""

    change: Change
    install: tuple[str, ...]
    remove: tuple[str, ...]
    unload: tuple[str, ...]
    record: Mapping[str, list[str]]


def packages_of(inventory: HostInventory) -> tuple[str, ...]:
    """Return the packages that the inbox stack needs; InputError for an unknown distribution."""
    names = (inventory.os["id"], *inventory.os["like"].split())
    for name in names:
        family = _FAMILIES.get(name, name)
        if family in PACKAGES:
            return PACKAGES[family]
    raise InputError(
        f"no packages are known for {inventory.os['name'] or 'this system'}; name them in rdma_stack_packages"
    )


def soft_device(netdev: str) -> str:
    """Return the name of the soft-RoCE device on a netdev."""
    return f"rxe_{netdev}"


def unit_name(netdev: str) -> str:
    """Return the unit of a soft-RoCE device; '-' means '/' in unit names and is escaped."""
    return UNIT + netdev.replace("-", r"\x2d") + ".service"


def plan_stack(
    provider: str | None,
    netdevs: Iterable[str],
    packages: Iterable[str],
    have: Have,
    record: Mapping[str, list[str]],
    folders: tuple[str, str],
) -> StackPlan:
    """Work out files, devices, modules and packages; ``provider`` None takes everything back.

    ``netdevs`` are those of the rails, ``folders`` those of modules-load files and of units.
    Packages and unloading are no part of the change: a package manager does the former and
    reports it, the kernel may refuse the latter.
    """
    soft = sorted(netdevs) if provider == "soft_roce" else []
    modules = _modules(provider)
    units = [unit_name(netdev) for netdev in soft]
    devices = [soft_device(netdev) for netdev in soft]
    ours = {*devices, *(device_of(unit) for unit in have.units)}
    change = Change(
        before={
            "files": dict(have.files),
            "units": sorted(have.units),
            "devices": sorted(ours & set(have.devices)),
            "modules": sorted(set(have.modules) & set(modules)),
        },
        after={"files": _files(modules, soft, folders), "units": units, "devices": devices, "modules": sorted(modules)},
    )
    if provider is None:
        left = sorted(set(record.get("packages", [])) & set(have.installed))
        unload = [name for name in UNLOAD if name in have.modules and name not in record.get("modules", UNLOAD)]
        # The record goes when the packages that came with us are gone too.
        return StackPlan(change, (), tuple(left), tuple(unload), {"packages": left} if left else {})
    missing = [name for name in packages if name not in have.installed]
    kept = {
        "packages": sorted({*record.get("packages", []), *missing}),
        "modules": record.get("modules", sorted(have.modules)),
    }
    return StackPlan(change, tuple(missing), (), (), kept)


def device_of(unit: str) -> str:
    """Return the soft-RoCE device of a unit; the reverse of ``unit_name``."""
    instance = unit[len(UNIT) : -len(".service")]
    return soft_device(instance.replace(r"\x2d", "-"))


def _modules(provider: str | None) -> tuple[str, ...]:
    if provider is None:
        return ()
    return (*MODULES, SOFT_MODULE) if provider == "soft_roce" else MODULES


def _files(modules: tuple[str, ...], soft: list[str], folders: tuple[str, str]) -> dict[str, str]:
    load, units = folders
    files = {}
    if modules:
        files[f"{load}/{LOAD_FILE}"] = "\n".join([f"# {TITLE}", *sorted(modules)]) + "\n"
    if soft:
        files[f"{units}/{UNIT}.service"] = UNIT_TEXT
    return files
