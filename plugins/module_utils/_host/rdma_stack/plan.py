# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The RDMA stack of a host: provider, packages, kernel modules, soft-RoCE devices. Pure."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping
from typing import Any, Optional

from ..._common.change import Change
from ..._common.errors import InputError
from ..facts.inventory import HostInventory
from ..facts.loaded_drivers import Driver
from ..system import systemd

PROVIDERS = ("inbox", "soft_roce", "doca_ofed", "container")
DOCA, CONTAINER = "doca_ofed", "container"
TITLE = systemd.title("rdma_stack")
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
_LINK = "sys-subsystem-net-devices-%i.device"
UNIT_TEXT = systemd.file_text(
    TITLE,
    {
        "Unit": [
            ("Description", "Soft-RoCE device on %I"),
            ("BindsTo", _LINK),
            ("After", f"{_LINK} systemd-modules-load.service"),
        ],
        "Service": [
            ("Type", "oneshot"),
            ("RemainAfterExit", "yes"),
            ("ExecStartPre", f"-modprobe {SOFT_MODULE}"),
            ("ExecStart", "rdma link add rxe_%I type rxe netdev %I"),
            ("ExecStop", "-rdma link delete rxe_%I"),
        ],
        "Install": [("WantedBy", _LINK)],
    },
)


@dataclasses.dataclass(frozen=True)
class Have:
    """The host's side: own files, own enabled units, soft-RoCE devices, loaded modules, packages, what is held.

    ``installed`` maps package -> version, ``manager`` is apt or dnf, ``stale`` pairs each driver that runs with
    another one that is installed in its place.
    """

    files: Mapping[str, str]
    units: tuple[str, ...]
    devices: tuple[str, ...]
    modules: tuple[str, ...]
    installed: Mapping[str, str]
    held: tuple[str, ...]
    manager: str = "apt"
    stale: tuple[tuple[Driver, Driver], ...] = ()


@dataclasses.dataclass(frozen=True)
class Want:
    """The user's side; ``provider`` None takes everything back.

    ``pins`` maps package -> version, ``source`` holds the files of a package source, ``hold`` the packages that shall
    keep their version. ``restart``: drivers may be loaded again now.
    """

    provider: str | None
    netdevs: tuple[str, ...] = ()
    packages: tuple[str, ...] = ()
    pins: Mapping[str, str] = dataclasses.field(default_factory=dict)
    source: Mapping[str, str] = dataclasses.field(default_factory=dict)
    hold: tuple[str, ...] = ()
    restart: bool = False


@dataclasses.dataclass(frozen=True)
class StackPlan:
    """The change; packages for a package manager; modules to unload; what to keep of before us.

    ``pinned``: some of the packages have a version.
    """

    change: Change
    install: tuple[str, ...]
    remove: tuple[str, ...]
    unload: tuple[str, ...]
    record: Mapping[str, Any]
    pinned: bool = False


def packages_of(inventory: HostInventory) -> tuple[str, ...]:
    """Return the packages that the inbox stack needs; InputError for an unknown distribution."""
    names = (inventory.os["id"], *inventory.os["like"].split())
    for name in names:
        family = _FAMILIES.get(name, name)
        if family in PACKAGES:
            return PACKAGES[family]
    raise InputError(f"no packages are known for {inventory.os['name'] or 'this system'}. List them in option packages")


def soft_device(netdev: str) -> str:
    """Return the name of the soft-RoCE device on a netdev."""
    return f"rxe_{netdev}"


def unit_name(netdev: str) -> str:
    """Return the unit of a soft-RoCE device."""
    return UNIT + systemd.escape(netdev) + ".service"


def plan_stack(
    want: Want, have: Have, record: Mapping[str, Any], *, folders: tuple[str, str], whole: bool = False
) -> StackPlan:
    """Work out files, devices, modules, holds and packages.

    ``folders`` are those of modules-load files and of units. Packages and unloading are no part of the change: a
    package manager does the former and reports it, the kernel may refuse the latter. While packages of a package
    source are missing the change brings the source alone; ``whole`` shows what comes after them too.
    """
    modules, soft = _modules(want.provider), sorted(want.netdevs) if want.provider == "soft_roce" else []
    devices = [soft_device(netdev) for netdev in soft]
    ours = {*devices, *(device_of(unit) for unit in have.units)}
    holds = {*want.hold, *record.get("hold", ())}
    back, missing, remove = _packages(want, have, record)
    before: dict[str, Any] = {
        "files": dict(have.files),
        "units": sorted(have.units),
        "devices": sorted(ours & set(have.devices)),
        "modules": sorted(set(have.modules) & set(modules)),
        "holds": sorted(holds & set(have.held)),
        "drivers": [old.title for old, _new in have.stale],
    }
    after = {
        "files": {**_files(modules, soft, folders), **want.source},
        "units": [unit_name(netdev) for netdev in soft],
        "devices": devices,
        "modules": sorted(modules),
        "holds": sorted({*want.hold, *record.get("held", ())}),
        "drivers": [(new if want.restart else old).title for old, new in have.stale],
    }
    if want.provider == DOCA and missing and not whole:
        # A held package cannot get another version.
        after = {**before, "files": {**before["files"], **want.source}, "holds": []}
    install = [pinned(name, version, have.manager) for name, version in {**back, **missing}.items()]
    unload = tuple(_unload(want, have, record))
    kept = _record(want, have, record, missing=sorted(missing), waits=[*back, *remove])
    exact = any({**back, **missing}.values())
    return StackPlan(Change(before, after), tuple(install), tuple(remove), unload, kept, exact)


def removals(inventory: HostInventory, change: Change) -> dict[str, str]:
    """Return the ports that lose their soft-RoCE device, with what ``disruption.check`` calls that."""
    gone = {*change.before["devices"]} - {*change.after["devices"]}
    return {port.pci: "removal of its soft-RoCE device" for port in inventory.ports if not gone.isdisjoint(port.rdma)}


def packages_result(plan: StackPlan, have: Have) -> dict[str, Any]:
    """Return what package modules are to do."""
    source = any(path.endswith((".sources", ".repo")) for path in set(plan.change.after["files"]) - set(have.files))
    return {
        "install": list(plan.install),
        "remove": list(plan.remove),
        "manager": have.manager,
        "pinned": plan.pinned,
        "new_source": source,
    }


def leaves_doca(want: Want, record: Mapping[str, Any]) -> bool:
    """Whether DOCA-OFED was here by us, and something else shall be."""
    return record.get("provider") == DOCA and want.provider != DOCA


def pinned(name: str, version: str | None, manager: str) -> str:
    """Return a package with its version as the package manager takes it."""
    return name if version is None else f"{name}{'=' if manager == 'apt' else '-'}{version}"


Versions = dict[str, Optional[str]]


def _packages(want: Want, have: Have, record: Mapping[str, Any]) -> tuple[Versions, Versions, list[str]]:
    """Return what comes back, what is missing (both name -> version or None), and what is to be removed.

    What came with DOCA-OFED goes with it, and what it replaced comes back in the version of before; a package that is
    still wanted is installed again when it is the vendor's.
    """
    back: Versions = {}
    gone: list[str] = []
    if want.provider is None:
        gone += record.get("packages", [])
    if leaves_doca(want, record):
        came = record.get("came", {})
        kept = {name for name in want.packages if have.installed.get(name) != came.get(name)}
        gone += [name for name in came if name not in kept]
        back = {name: old for name, old in record.get("replaced", {}).items() if have.installed.get(name) != old}
    remove = sorted(set(gone) & set(have.installed))
    there = {name for name in have.installed if name not in remove and not _other(want, have, name)}
    missing = {name: want.pins.get(name) for name in want.packages if name not in there and name not in back}
    return back, missing, remove


def _other(want: Want, have: Have, name: str) -> bool:
    """Whether a package has another version than the one asked for."""
    return name in want.pins and have.installed[name] != want.pins[name]


def _unload(want: Want, have: Have, record: Mapping[str, Any]) -> list[str]:
    if want.provider is not None:
        return []
    kept = (*record.get("modules", UNLOAD), *([SOFT_MODULE] if foreign_devices(have) else []))
    return [name for name in UNLOAD if name in have.modules and name not in kept]


def _record(
    want: Want, have: Have, record: Mapping[str, Any], *, missing: list[str], waits: list[str]
) -> Mapping[str, Any]:
    """Return what is to be known later of before us; it goes when all of it is taken back.

    ``waits``: packages that are still to be removed, or to come back.
    """
    leaves = leaves_doca(want, record)
    own = sorted({*record.get("packages", []), *(missing if want.provider not in (None, DOCA) else ())})
    if leaves and waits:
        return {**record, "packages": own}
    # The drivers of DOCA-OFED still run: whoever restarts or boots must be told until they do not.
    kept: dict[str, Any] = {"provider": DOCA} if leaves and have.stale else {}
    if want.provider is None:
        return {**kept, "packages": waits} if waits else kept
    kept.update({"packages": own, "modules": record.get("modules", sorted(have.modules))})
    if want.provider == DOCA:
        same = {key: record[key] for key in ("came", "replaced", "snapshot") if key in record}
        held = record.get("held", sorted(set(want.hold) & set(have.held)))
        kept.update({**same, "provider": DOCA, "hold": sorted(want.hold), "held": held})
    return kept


def settle(record: Mapping[str, Any], now: Mapping[str, str]) -> dict[str, Any]:
    """Return the record after an installation: what came, and what was replaced, by the ``snapshot`` before it.

    ``now`` maps every installed package to its version. The versions of the first time stay: those are before us.
    """
    before = record["snapshot"]
    names = {*record.get("came", {}), *(name for name in now if name not in before)}
    came = {name: now[name] for name in sorted(names) if name in now}
    changed = {name: old for name, old in before.items() if name not in came and now.get(name) != old}
    rest = {key: value for key, value in record.items() if key != "snapshot"}
    return {**rest, "came": came, "replaced": {**changed, **record.get("replaced", {})}}


def foreign_devices(have: Have) -> list[str]:
    """Return the soft-RoCE devices of others. The kernel removes them with their module, as if nothing used it."""
    return sorted({*have.devices} - {device_of(unit) for unit in have.units})


def device_of(unit: str) -> str:
    """Return the soft-RoCE device of a unit; the reverse of ``unit_name``."""
    return soft_device(systemd.unescape(unit[len(UNIT) : -len(".service")]))


def _modules(provider: str | None) -> tuple[str, ...]:
    # The driver container loads its own, and has to unload all others first.
    if provider in (None, CONTAINER):
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
