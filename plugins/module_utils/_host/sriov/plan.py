# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""How many VFs a port (PF) has and what they are set to, now and after a boot. Pure: the module only carries it out."""

from __future__ import annotations

import dataclasses
from collections.abc import Collection, Iterable, Mapping
from typing import Any

from ..._common import vf_identity
from ..._common.change import Change
from ..._common.errors import ConflictError, InputError, InUseError
from ..._common.pci import NIC_VENDOR
from ..facts import disruption
from ..facts.devices import Port
from ..facts.inventory import HostInventory
from ..facts.rail_ports import Rail, find_links, refuse_bonds
from ..system import json_text
from . import boot_unit, vf
from .boot_unit import Folders, Target

# What a change of interrupts whoever uses the VF.
_LINK = ("mtu", "link_state")
# PCI address of a PF -> its VFs.
Have = Mapping[str, tuple[vf.Vf, ...]]


@dataclasses.dataclass(frozen=True)
class Wish:
    """What is asked for: VFs of each rail, and settings of every VF; None leaves that setting as it is.

    ``rails`` maps the name of a rail to its own number. ``derive`` gives VFs identities from their PF; ``mtu`` in
    bytes, None being the rail's; ``max_tx_rate`` in Mb/s. ``promised`` is how many VFs the firmware of
    NVIDIA's NICs will allow after a boot that this run predicts.
    """

    count: int | None
    rails: Mapping[str, int]
    derive: bool
    trust: bool | None = None
    spoof_check: bool | None = None
    max_tx_rate: int | None = None
    link_state: str | None = None
    mtu: int | None = None
    promised: int = 0


@dataclasses.dataclass(frozen=True)
class VfPlan:
    """The change; the PFs whose VFs are made anew; what to keep of before us, by PCI address; VFs as they are now."""

    change: Change
    targets: tuple[Target, ...]
    anew: tuple[str, ...]
    record: Mapping[str, Any]
    have: Have
    warnings: tuple[str, ...] = ()
    reasons: tuple[str, ...] = ()


def wanted(
    inventory: HostInventory, rails: Iterable[Rail], wish: Wish, *, managed: Mapping[str, str]
) -> tuple[Target, ...]:
    """Return the PFs that the wish is about; rails without a number are left alone.

    ``managed`` maps PFs whose VFs the SR-IOV operator makes to what says so. InputError for a rail that does not
    exist, ConflictError with all ports that cannot serve.
    """
    rails = tuple(rails)
    unknown = sorted({*wish.rails} - {rail.name for rail in rails})
    if unknown:
        known = ", ".join(rail.name for rail in rails) or "none"
        raise InputError(f"no rail is named {', '.join(unknown)}. The rails are: {known}")
    numbers = {rail.name: wish.rails.get(rail.name, wish.count) for rail in rails}
    chosen = [rail for rail in rails if numbers[rail.name] is not None]
    refuse_bonds(
        chosen,
        "VFs of a bond require a NIC in switchdev mode, which this collection does not configure, and VFs in legacy "
        "mode take the RDMA device of the bond away. Leave vfs unset for these rails",
    )
    find_links(inventory, chosen)
    taken = [f"{rail.pci} ({rail.name}, by {managed[rail.pci]})" for rail in chosen if rail.pci in managed]
    if taken:
        raise ConflictError(
            f"the SR-IOV operator manages {', '.join(taken)}, and only one tool can create the VFs of a port. Leave "
            "vfs unset for these rails, remove the SriovNetworkNodePolicy with its leftovers, or set it to "
            "externallyManaged"
        )
    ports = [(rail, inventory.port(rail.pci), numbers[rail.name] or 0) for rail in chosen]
    problems = [
        problem for rail, port, count in ports for problem in _capacity(rail, port, count, promised=wish.promised)
    ]
    if problems:
        raise ConflictError("; ".join(problems))
    return tuple(_target(inventory, rail, port, count=count, wish=wish) for rail, port, count in ports)


def made_by_operator(text: str) -> bool:
    """Whether the SR-IOV operator makes a PF's VFs, from what its agent keeps of the PF on the host.

    It is the JSON of the type Interface of its API; in an ``externallyManaged`` one (``externallyCreated`` before it
    had that name) the operator only uses the VFs. Text that cannot be read says nothing.
    """
    try:
        found = json_text.loads(text)
        return bool(found["numVfs"]) and not (found.get("externallyManaged") or found.get("externallyCreated"))
    except (ValueError, KeyError, TypeError, AttributeError):
        return False


def check_users(inventory: HostInventory, plan: VfPlan, consent: bool) -> None:
    """ConflictError when the plan would disturb users of a PF, which is reset or goes down, or of a VF's link."""
    changes = {pci: "a new number of VFs" for pci in plan.anew}
    changes.update({one.port.pci: "its link going down" for one in plan.targets if one.is_up and not one.up})
    stay = [one for one in plan.targets if one.port.pci not in plan.anew]
    of_vfs = [text for target in stay for text in _disturbed(target, plan.have[target.port.pci])]
    disruption.refuse([*disruption.problems(inventory, changes), *of_vfs], consent)


def _disturbed(target: Target, have: tuple[vf.Vf, ...]) -> list[str]:
    """Say which VFs in use would get another link; a link that is disabled has nothing to lose."""
    found = []
    for one, want in zip(have, target.vfs):
        now, users = one.now(want), one.users(target.port.infiniband)
        changed = [key for key in _LINK if key in want and now[key] not in (want[key], "disable")]
        if changed and users:
            what = f"a change of {' and '.join(changed)} of VF {one.index} ({', '.join((one.pci, *one.netdevs))})"
            found.append(f"{target.title}: {disruption.disturbs(what, users)}")
    return found


def plan_vfs(
    targets: Iterable[Target],
    have: Have,
    files: Mapping[str, str],
    *,
    record: Mapping[str, Any],
    folders: Folders,
    present: bool,
    owned: Collection[str] = (),
) -> VfPlan:
    """Work out what changes; ``have`` is PCI address of the PF -> its VFs, ``files`` are all our own.

    PFs that are ``owned`` by others now keep their files, and so their VFs, and their record.

    The kernel refuses to go from one number of VFs to another, and drivers take an identity only when they bind: both
    need all VFs of the PF to go first. ConflictError lists everything that stands in the way, of all PFs.
    """
    targets = tuple(targets)
    anew = tuple(target.port.pci for target in targets if _is_anew(target, have[target.port.pci]))
    _refuse(targets, have, anew)
    before = {target.port.pci: _state(target, have[target.port.pci]) for target in targets}
    after = {
        target.port.pci: {"up": target.up, "count": len(target.vfs), "vfs": [dict(one) for one in target.vfs]}
        for target in targets
    }
    change = Change(
        before={"files": dict(files), "pfs": before},
        after={
            "files": {**_kept(owned, files, folders), **_files(targets, files, folders, present=present)},
            "pfs": after,
        },
    )
    first = {
        target.port.pci: {
            "before": {"up": target.is_up, "vfs": [dict(one.settings) for one in have[target.port.pci]]},
            **record.get(target.port.pci, {}),
            "set": {"vfs": [dict(one) for one in target.vfs]},
        }
        for target in targets
    }
    kept = {pci: record[pci] for pci in owned}
    return VfPlan(change, targets, anew, {**record, **first} if present else kept, have)


def counts(now: int, wish: int) -> tuple[int, ...]:
    """Return the numbers to write one after the other: 0 first, since the kernel takes no other step from there."""
    return tuple(number for number in (0 if now else None, wish or None) if number is not None)


def _capacity(rail: Rail, port: Port, count: int, *, promised: int) -> list[str]:
    most = min(max(port.vfs_total, promised if port.vendor == NIC_VENDOR else 0), vf_identity.MAX_VFS)
    if 0 <= count <= most:
        return []
    if port.passthrough == "vf":
        return [
            f"{rail.pci} ({rail.name}) is itself a virtual function that the hypervisor passed through, {count} VFs"
            " requested. Leave vfs unset for this rail, and create VFs on the hypervisor"
        ]
    # Only NVIDIA's NICs have this number in their firmware settings; hypervisors hide it.
    raised = (
        " or raise NUM_OF_VFS with role nic_firmware and reboot"
        if port.vendor == NIC_VENDOR and not port.passthrough
        else ""
    )
    return [f"{rail.pci} ({rail.name}) supports {most} VFs, {count} requested. Lower vfs{raised}"]


def _target(inventory: HostInventory, rail: Rail, port: Port, *, count: int, wish: Wish) -> Target:
    settings = {
        "trust": wish.trust,
        "spoof_check": wish.spoof_check,
        "max_tx_rate": wish.max_tx_rate,
        # VFs on InfiniBand are down until somebody says otherwise.
        "link_state": wish.link_state or ("auto" if port.infiniband else None),
        "mtu": wish.mtu or rail.mtu,
    }
    same = {key: value for key, value in settings.items() if value is not None}
    guid = next((device.node_guid for device in inventory.rdma_devices if device.pci == rail.pci), "")
    vfs = tuple({**(_identity(port, guid, index) if wish.derive else {}), **same} for index in range(count))
    is_up = port.netdev is not None and port.netdev.up
    return Target(port, f"{rail.pci} ({rail.name})", vfs, bool(vfs) or is_up)


def _identity(port: Port, guid: str, index: int) -> dict[str, str]:
    if port.infiniband:
        return {"guid": vf_identity.vf_guid(guid, index)}
    return {"mac": vf_identity.vf_mac(port.netdev.mac if port.netdev else "", index)}


def _is_anew(target: Target, have: tuple[vf.Vf, ...]) -> bool:
    if len(have) != len(target.vfs):
        return True
    return any(one.now(want).get(key) != want[key] for one, want in zip(have, target.vfs) for key in _keys(want))


def _keys(want: Mapping[str, Any]) -> list[str]:
    return [key for key in vf.IDENTITY if key in want]


def _refuse(targets: Iterable[Target], have: Mapping[str, tuple[vf.Vf, ...]], anew: Iterable[str]) -> None:
    anew = tuple(anew)
    problems = []
    for target in targets:
        vfs = have[target.port.pci]
        used = [
            f"VF {one.index} ({one.pci}{''.join(f', {name}' for name in one.netdevs)}) is in use: {'; '.join(users)}"
            for one in vfs
            for users in [one.users(target.port.infiniband)]
            if users
        ]
        if used and target.port.pci in anew:
            why = f"changing the number of VFs from {len(vfs)} to {len(target.vfs)}"
            if len(vfs) == len(target.vfs):
                why = f"assigning new addresses to its {len(vfs)} VFs"
            problems.append(f"{target.title}: {why} requires removing all of them, but {', '.join(used)}")
    if problems:
        raise InUseError(f"{'; '.join(problems)}. Stop these workloads and retry")


def _state(target: Target, have: tuple[vf.Vf, ...]) -> dict[str, Any]:
    """The PF now, with the settings that are asked for; of VFs beyond the wanted number none are."""
    wants = (*target.vfs, *({},) * len(have))
    return {"up": target.is_up, "count": len(have), "vfs": [one.now(want) for one, want in zip(have, wants)]}


def _kept(owned: Collection[str], files: Mapping[str, str], folders: Folders) -> dict[str, str]:
    """Return our files of these PFs, with the unit that they need."""
    texts = {path: files[path] for pci in owned for path in boot_unit.paths(pci, folders) if path in files}
    unit = f"{folders.units}/{boot_unit.UNIT}"
    return {**texts, unit: boot_unit.format_unit(folders.scripts)} if texts else {}


def _files(targets: Iterable[Target], files: Mapping[str, str], folders: Folders, *, present: bool) -> dict[str, str]:
    """All our files: those of PFs that this run is not about stay."""
    after = {path: text for path, text in files.items() if present and not path.endswith(boot_unit.UNIT)}
    for target in targets:
        script, rule = boot_unit.paths(target.port.pci, folders)
        after.pop(script, None)
        after.pop(rule, None)
        if present and target.vfs:
            after[script] = boot_unit.format_script(target, folders.sysfs)
            after[rule] = boot_unit.format_rule(target.port.pci)
    if after:
        after[f"{folders.units}/{boot_unit.UNIT}"] = boot_unit.format_unit(folders.scripts)
    return after
