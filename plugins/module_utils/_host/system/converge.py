# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The one way to change a host: record the original values, apply a plan, read the host again and verify it.

The record is saved before the first write and again after the last one. A run that is cut off in between, as by a power
cut, leaves a record with the original values of everything that it may have changed, so the next run can finish or
restore it.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Collection, Mapping, Sequence
from typing import Any, Generic, Protocol, TypeVar

from ..._common.change import Change
from ..._common.errors import CommandError
from . import image_based, lock, records
from .files import Roots

Record = Mapping[str, Any]
# What a record says was set by this collection; all else in it is from before the first change.
SET = "set"
_MISSING = "missing"


class Plan(Protocol):
    """What a module works out: the change, the record after it, and why a reboot is needed."""

    @property
    def change(self) -> Change:
        """The actual and the desired state."""

    @property
    def record(self) -> Record:
        """The record of original values after the change; what is restored is not in it."""

    @property
    def reasons(self) -> Sequence[str]:
        """What takes effect at the next boot only."""


PlanT = TypeVar("PlanT", bound=Plan)


@dataclasses.dataclass(frozen=True)
class Done(Generic[PlanT]):
    """The plan before the change, and that of the host after it; both are the same where nothing was done."""

    first: PlanT
    last: PlanT

    @property
    def result(self) -> dict[str, Any]:
        """The values that every module of a host returns."""
        return {
            "changed": self.first.change.changed,
            "diff": self.first.change.diff(),
            "reboot_required": bool(self.last.reasons),
            "reasons": list(self.last.reasons),
        }


def is_changed(plan: Plan) -> bool:
    """Whether there is something to do: the actual state is not the desired one."""
    return plan.change.changed


def is_settled(_plan: Plan, _earlier: Record, merged: Record) -> Record:
    """Return the record while a plan is carried out, where the merged one is right."""
    return merged


def converge(
    name: str,
    roots: Roots,
    check_mode: bool,
    *,
    read_plan: Callable[[Record], PlanT],
    apply: Callable[[PlanT], Record | None],
    restores: bool,
    is_due: Callable[[PlanT], bool] = is_changed,
    unsettled: Callable[[PlanT, Record, Record], Record] = is_settled,
    rounds: int = 1,
    may_wait: Collection[str] = (),
) -> Done[PlanT]:
    """Bring the host to the state that ``read_plan`` asks for; change nothing in check mode.

    ``read_plan`` reads the host and plans with the record that it gets. ``apply`` carries a plan out; what it returns
    is added to the entries of the record, for what only the change itself tells.
    ``restores``: whether the plan only restores what the record has, which is possible on every host.
    ``is_due``: whether to apply, where it is not the change alone that decides.
    ``unsettled``: makes the record while a plan is carried out, of the earlier one and the merged one; see
    ``restore.unsettled``.
    ``rounds``: how often to apply, where one change makes the next one possible.
    ``may_wait``: parts of the change that may differ after it, since they take effect at a boot.

    CommandError names all that is not as expected after the change. The record is kept then.
    """
    with lock.held(roots.run, name, check_mode):
        record: Record = records.load(roots.state, name)
        first = plan = read_plan(record)
        # What was changed on such a host, if ever, is still restored, also in part.
        if is_due(plan) and not restores and not (record and not plan.record):
            image_based.refuse(roots)
        if check_mode:
            return Done(first, first)
        for _round in range(rounds):
            if is_due(plan):
                record = unsettled(plan, record, merge(record, plan.record))
                records.save(roots.state, name, record)
                record = _with_told(record, apply(plan) or {})
                records.save(roots.state, name, record)
                plan = read_plan(record)
        if plan is not first:
            verify(plan.change, may_wait)
        records.save(roots.state, name, plan.record)
        records.set_reasons(roots, name, plan.reasons)
        return Done(first, plan)


def merge(earlier: Record, later: Record, top: bool = True) -> dict[str, Any]:
    """Return the record of both: a value that was recorded earlier wins over one that is read later.

    Nothing of either is lost: an entry is removed only after it was restored. What was ``set`` is that of the later
    one, and lists of what was done (at the top of the record, or as ``set``) have the items of both.
    """
    merged = {**later, **earlier}
    for key in (key for key in earlier if key in later):
        old, new = earlier[key], later[key]
        if isinstance(old, Mapping) and isinstance(new, Mapping):
            merged[key] = {**old, **new} if key == SET else merge(old, new, top=False)
        elif isinstance(old, list) and isinstance(new, list) and (top or key == SET):
            merged[key] = list(dict.fromkeys([*old, *new]))
    return merged


def _with_told(record: Record, told: Record) -> Record:
    """Add values to the record; those of an entry only where the record has it."""
    entries = {
        key: {**record[key], **value} if isinstance(value, Mapping) else value
        for key, value in told.items()
        if key in record or not isinstance(value, Mapping)
    }
    return {**record, **entries}


def verify(change: Change, may_wait: Collection[str] = ()) -> None:
    """CommandError when a host that was changed and read again is not as expected."""
    problems = [text for place, text in differences(change.before, change.after) if place[0] not in may_wait]
    if problems:
        raise CommandError(f"after the change {'; '.join(problems)}. Check the kernel log and the system journal")


def differences(actual: Any, desired: Any, place: tuple[str, ...] = ()) -> list[tuple[tuple[str, ...], str]]:
    """Return each place where two states differ, with ``PLACE is X, expected Y``."""
    if isinstance(actual, Mapping) and isinstance(desired, Mapping):
        keys = [*desired, *(key for key in actual if key not in desired)]
        pairs = [(key, actual.get(key, _MISSING), desired.get(key, _MISSING)) for key in keys]
    elif _are_rows(actual, desired):
        pairs = [(str(index), *pair) for index, pair in enumerate(zip(actual, desired))]
    elif actual == desired:
        return []
    else:
        return [(place, f"{' '.join(place)} is {_shown(actual)}, expected {_shown(desired)}")]
    return [found for key, one, other in pairs for found in differences(one, other, (*place, str(key)))]


def _are_rows(actual: Any, desired: Any) -> bool:
    """Whether both are lists of mappings, one for each VF for example."""
    both = isinstance(actual, (list, tuple)) and isinstance(desired, (list, tuple)) and len(actual) == len(desired)
    return both and all(isinstance(one, Mapping) for one in (*actual, *desired))


def _shown(value: Any) -> str:
    """Return a value for a message; the text of a file would hide what matters."""
    if isinstance(value, str) and "\n" in value:
        return f"a text of {len(value.splitlines())} lines starting with {value.splitlines()[0][:60]!r}"
    return str(value)
