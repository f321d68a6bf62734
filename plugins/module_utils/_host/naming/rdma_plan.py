# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Which RDMA device gets the name of its rail, now or at the next boot. Pure: the module only carries it out.

The rule calls rdma-core's ``rdma_rename`` with NAME_FIXED (rdma-core, kernel-boot/rdma_rename.c). It stands in a file
that hides the distribution's of the same name, since two files would both rename: the second would ask for a
kernel name that is free again, and so could hit another device that just came.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Iterable, Mapping

from ..._common.change import Change
from ..._common.errors import ConflictError
from ..._common.host_facts import HIDDEN_QUEUE_PAIRS
from ..facts.inventory import HostInventory
from . import recorded
from .model import TITLE, VF, Function, Wish, condition, given_names
from .plan import find_owned

FILE = "60-rdma-persistent-naming.rules"
_END = "gpufabric_rdma_end"


@dataclasses.dataclass(frozen=True)
class Have:
    """Our file and the distribution's of the same name: texts, None where there is none.

    ``foreign`` are the paths of files that are not ours and name RDMA devices, or hide ours.
    """

    own: str | None
    distribution: str | None
    foreign: tuple[str, ...]


@dataclasses.dataclass(frozen=True)
class RdmaPlan:
    """The change, (old, new) names that change now, what waits for a boot, the record, and warnings.

    The key of a name is the PCI address of a port, or the title of a VF.
    """

    change: Change
    renames: tuple[tuple[str, str], ...]
    reasons: tuple[str, ...]
    record: recorded.Record
    warnings: tuple[str, ...]


def plan_rdma(
    inventory: HostInventory, functions: Iterable[Function], wish: Wish, *, record: recorded.Record, have: Have
) -> RdmaPlan:
    """Work out the file and names; recorded devices whose name is not wanted any more get theirs back.

    Soft-RoCE devices are left alone: whoever makes them names them. Representors have none: they are ports of their
    PF's device. ConflictError lists what stands in the way.
    """
    vfs = [one for one in functions if one.kind == VF]
    wanted = wish.names(vfs)
    devices = {device.pci: device.name for device in inventory.rdma_devices if device.pci}
    devices.update({one.title: one.rdma for one in vfs if one.rdma})
    # What has another owner now keeps its name, and the rule that gives it.
    found = find_owned(inventory, vfs, wanted, record=record, rules=given_names(vfs, "infiniband", have.own))
    owned = [pci for pci in found.ports if pci in devices]
    kept = {**found.functions, **{key: devices[key] for key in (*owned, *found.functions) if key in devices}}
    asked, wanted = wanted, {**wanted, **kept}
    left = {key: name for key, name in devices.items() if key not in wanted}
    changed = recorded.others(record, left, "RDMA device")
    first = {key: name for key, name in recorded.first(record).items() if key not in changed}
    names = {key: name for key, name in {**first, **wanted}.items() if key in devices}
    others = {device.name for device in inventory.rdma_devices} | set(devices.values())
    _refuse(asked, names, others - {devices[key] for key in names}, have=have)
    why = _why_wait(inventory, wish.now)
    moving = {key: name for key, name in names.items() if devices[key] != name}
    reasons = [
        f"the RDMA device of {key} gets its name {name} (now {devices[key]}) at the next boot: {why}"
        for key, name in moving.items()
        if why
    ]
    after = {key: devices[key] if why else name for key, name in names.items()}
    ports = (*(rail.pci for rail in wish.rails), *owned)
    rules = _text(ports, vfs, wanted, distribution=have.distribution) if wanted else None
    change = Change(
        before={"rules": have.own, "names": {key: devices[key] for key in names}},
        after={"rules": rules, "names": after},
    )
    record = recorded.following(record, devices, after, wanted=asked, owned=kept)
    renames = [] if why else [(devices[key], name) for key, name in moving.items()]
    return RdmaPlan(change, tuple(renames), tuple(reasons), record, (*found.warnings, *changed.values()))


def rename_commands(renames: Iterable[tuple[str, str]]) -> list[list[str]]:
    """Return the ``rdma`` commands that rename, also when names go round in a circle."""
    renames = tuple(renames)
    taken = [old for old, _new in renames]
    first, second = [], []
    for number, (old, new) in enumerate(renames):
        step = recorded.STEP.format(number) if new in taken else new
        first.append(["rdma", "dev", "set", old, "name", step])
        if step != new:
            second.append(["rdma", "dev", "set", step, "name", new])
    return [*first, *second]


def _refuse(wanted: Mapping[str, str], names: Mapping[str, str], others: set[str], *, have: Have) -> None:
    problems = [
        f"{path} is not managed by this collection and names RDMA devices. Remove it, or set rdma: keep"
        for path in (have.foreign if wanted else ())
    ]
    # Also a name that is not given yet: the VF may come at any time.
    problems += [
        f"the RDMA device of {key} is to be named {name}, but another one has this name. Rename or remove it"
        for key, name in {**names, **wanted}.items()
        if name in others
    ]
    if problems:
        raise ConflictError("; ".join(problems))


def _why_wait(inventory: HostInventory, now: bool) -> str:
    if not now:
        return "apply is boot"
    if inventory.workloads.queue_pairs is None:
        return HIDDEN_QUEUE_PAIRS.text
    holders = inventory.workloads.holders
    return f"RDMA is in use by {', '.join(holders)}" if holders else ""


def _text(ports: Iterable[str], vfs: Iterable[Function], names: Mapping[str, str], *, distribution: str | None) -> str:
    conditions = {
        **{pci: f'KERNELS=="{pci}"' for pci in ports},
        **{one.title: condition(one, "infiniband") for one in vfs if one.title in names},
    }
    rules = [
        f'ACTION=="add", SUBSYSTEM=="infiniband", {where}, PROGRAM="rdma_rename %k NAME_FIXED {names[key]}", '
        f'GOTO="{_END}"'
        for key, where in conditions.items()
    ]
    # Devices that are no rails keep the names that the distribution gives them.
    others = [line for line in (distribution or "").splitlines() if line.strip() and not line.startswith("#")]
    return "\n".join([f"# {TITLE}", *rules, *others, f'LABEL="{_END}"']) + "\n"
