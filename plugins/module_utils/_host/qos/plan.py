# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""QoS of the rails of a host: what to set, what to give back, and the units for it. Pure."""

from __future__ import annotations

import dataclasses
from collections.abc import Collection, Iterable, Mapping
from typing import Any

from ..._common.change import Change
from ..._common.errors import ConflictError
from ..facts.rail_ports import Rail
from ..system import restore
from . import boot_unit, recorded, settings
from .recorded import NOTHING
from .setting import NO_RDMA, Device, Program, Reason, Step

# PCI address -> setting -> value.
Values = Mapping[str, Mapping[str, Any]]


@dataclasses.dataclass(frozen=True)
class Found:
    """What was read of a port: values by setting, or the reason why there is none.

    A setting in neither does not exist there, and is left out without a message. ``programs`` has the program
    of a setting, ``limits`` the largest values by key of a setting, ``title`` what messages call the port.
    """

    title: str
    device: Device
    values: Mapping[str, Any]
    reasons: Mapping[str, Reason]
    programs: Mapping[str, Program]
    limits: Mapping[str, Mapping[str, int]]


@dataclasses.dataclass(frozen=True)
class Have:
    """Own unit files (path -> text) and those of them that are enabled."""

    files: Mapping[str, str]
    units: tuple[str, ...]


@dataclasses.dataclass(frozen=True)
class QosPlan:
    """The change, the steps that set it now, what is kept (see ``qosrecord``), and warnings."""

    change: Change
    steps: tuple[Step, ...]
    record: recorded.Record
    warnings: tuple[str, ...]
    reasons: tuple[str, ...] = ()


def to_read(rails: Iterable[Rail], wanted: Mapping[str, Any], record: recorded.Record) -> dict[str, tuple[str, ...]]:
    """Return PCI address -> settings that must be read: those wanted of a rail, and those recorded."""
    names = {pci: {*entry["before"]} for pci, entry in record.items()}
    for rail in rails:
        names[rail.pci] = names.get(rail.pci, set()) | {*wanted}
    known = settings.names()
    return {pci: tuple(name for name in known if name in names[pci]) for pci in sorted(names) if names[pci]}


def promised(found: Mapping[str, Found]) -> tuple[dict[str, Found], list[str]]:
    """Return ports as check mode sees them, where the RDMA stack may not be there yet, and a warning for each.

    A port without an RDMA device counts as if it had one, of which nothing is known: its values are None.
    """
    later = [one for one in found.values() if NO_RDMA in one.reasons.values()]
    warnings = [f"{one.title} has no RDMA device yet. Role rdma_stack is expected to create it" for one in later]
    return {pci: _with_rdma(one) if one in later else one for pci, one in found.items()}, warnings


def _with_rdma(found: Found) -> Found:
    unknown = [name for name, reason in found.reasons.items() if reason == NO_RDMA]
    return dataclasses.replace(
        found,
        device=found.device._replace(rdma="?"),
        values={**found.values, **dict.fromkeys(unknown)},
        reasons={name: reason for name, reason in found.reasons.items() if name not in unknown},
    )


def plan_qos(
    rails: Iterable[Rail],
    wanted: Mapping[str, Any],
    record: recorded.Record,
    *,
    found: Mapping[str, Found],
    have: Have,
    units: str,
) -> QosPlan:
    """Work out values, steps and units; ``found`` is by PCI address, ``units`` the folder of units.

    What is recorded and not wanted any more gets its recorded value back, unless it has changed since it was set.
    ConflictError lists every setting of every rail that cannot be set.
    """
    rails = tuple(rails)
    _refuse([found[rail.pci] for rail in rails], wanted)
    targets = {rail.pci: rail for rail in rails}
    own = {pci: _applicable(wanted, found[pci]) if pci in targets else {} for pci in found}
    others = {pci: _others(own[pci], record.get(pci, NOTHING), one.values) for pci, one in found.items()}
    goals = {pci: _goal(own[pci], record.get(pci, NOTHING), others[pci], found=found[pci]) for pci in found}
    before = {pci: _shown(found[pci].values, goal) for pci, goal in goals.items()}
    after = {pci: _completed(goal, found[pci].values) for pci, goal in goals.items()}
    files = {
        f"{units}/{boot_unit.name(rail.netdev)}": _unit(rail, found[rail.pci], own[rail.pci])
        for rail in rails
        if _lost(own[rail.pci])
    }
    names = sorted(boot_unit.name(rail.netdev) for rail in rails if _lost(own[rail.pci]))
    return QosPlan(
        Change(
            before={"files": dict(have.files), "units": sorted(have.units), "rails": before},
            after={"files": files, "units": names, "rails": after},
        ),
        tuple(step for pci in after for step in _steps(found[pci], before[pci], after[pci], own=own[pci])),
        {pci: recorded.entry(own[pci], record.get(pci, NOTHING), found[pci].values) for pci in found if own[pci]},
        tuple(
            text
            for pci, one in found.items()
            for text in _warnings(one, record.get(pci, NOTHING), others[pci], own=own[pci])
        ),
    )


def steps_of(found: Found, name: str, value: Any, *, device: Device) -> list[Step]:
    """Return the steps that give a setting a value on a device."""
    return settings.find(name).steps(found.programs.get(name), device, value)


def _refuse(found: Iterable[Found], wanted: Mapping[str, Any]) -> None:
    problems = []
    for one in found:
        by_reason: dict[Reason, list[str]] = {}
        for name in wanted:
            if name in one.reasons:
                by_reason.setdefault(one.reasons[name], []).extend(_labels(name))
        problems += [
            f"{one.title} {reason.what}; {reason.cure}, or omit {', '.join(dict.fromkeys(names))} for this host"
            for reason, names in by_reason.items()
        ]
        problems += [text for name, value in wanted.items() for text in _too_large(one, name, value)]
    if problems:
        raise ConflictError("; ".join(problems))


def _labels(name: str) -> tuple[str, ...]:
    return settings.find(name).labels or tuple(settings.find(name).options)


def _too_large(found: Found, name: str, wanted: Any) -> list[str]:
    largest, program = found.limits.get(name, {}), found.programs.get(name)
    unit = program.limits.unit if program and program.limits else ""
    return [
        f"{found.title} supports at most {largest[key]} {key} {unit}, {wanted[key]} requested in {name}.{key}"
        for key in largest
        if key in wanted and wanted[key] > largest[key]
    ]


def _applicable(wanted: Mapping[str, Any], found: Found) -> dict[str, Any]:
    return {name: value for name, value in wanted.items() if name in found.values}


def _others(own: Mapping[str, Any], entry: recorded.Entry, values: Mapping[str, Any]) -> list[str]:
    """Return the recorded settings that are not wanted any more, and that have another author now."""
    before = {name: value for name, value in entry["before"].items() if name in values and name not in own}
    # What a record does not know of a value, and what no program tells, is no difference.
    now = {
        name: next((one[name] for one in (entry["set"], before) if name in one and _is(values, name, one[name])), value)
        for name, value in values.items()
    }
    return restore.changed_since(before, entry["set"], now)


def _warnings(found: Found, entry: recorded.Entry, others: Collection[str], *, own: Collection[str]) -> list[str]:
    before, ours, now = entry["before"], entry["set"], found.values
    excludes = settings.partners()
    partners = {excludes[name]: name for name in others if excludes.get(name) in before}
    return [
        *(restore.kept(f"{found.title}: {name}", before[name], ours[name], now=now[name]) for name in others),
        *(
            f"{found.title}: {name} is not restored to {before[name]}, because it conflicts with {other}, which "
            "another tool changed"
            for name, other in partners.items()
            if name not in (*others, *own)
        ),
    ]


def _is(values: Mapping[str, Any], name: str, wanted: Any) -> bool:
    return bool(_shown(values, {name: wanted})[name] == wanted)


def _goal(own: Mapping[str, Any], entry: recorded.Entry, others: Iterable[str], *, found: Found) -> dict[str, Any]:
    excludes = settings.partners()
    stay = {*others, *(excludes[name] for name in others if name in excludes)}
    known = entry["before"].items()
    given_back = {name: value for name, value in known if name in found.values and name not in stay}
    goal = {**given_back, **own}
    return {name: goal[name] for name in settings.names() if name in goal}


def _shown(values: Mapping[str, Any], goal: Mapping[str, Any]) -> dict[str, Any]:
    """Return the values that a goal speaks of; what no program tells counts as what is wanted."""
    found = {}
    for name, wanted in goal.items():
        value = values.get(name)
        if isinstance(wanted, dict) and wanted and isinstance(value, dict):
            value = {key: _told(value.get(key), wanted[key]) for key in wanted}
        found[name] = value
    return found


def _told(value: Any, wanted: Any) -> Any:
    if isinstance(value, list) and isinstance(wanted, list) and len(value) == len(wanted):
        return [theirs if ours is None else ours for ours, theirs in zip(value, wanted)]
    return value


def _completed(goal: Mapping[str, Any], values: Mapping[str, Any]) -> dict[str, Any]:
    """Return a goal with what a record does not know (None in a list) as it is now."""
    return {
        name: {key: _told(value, (values.get(name) or {}).get(key)) for key, value in wanted.items()}
        if isinstance(wanted, dict)
        else wanted
        for name, wanted in goal.items()
    }


def _steps(found: Found, before: Mapping[str, Any], after: Mapping[str, Any], *, own: Mapping[str, Any]) -> list[Step]:
    changed = [name for name in after if before[name] != after[name]]
    # What goes, goes in reverse order: PFC before pause comes back.
    ordered = [name for name in reversed(changed) if name not in own] + [name for name in changed if name in own]
    return [step for name in ordered for step in steps_of(found, name, after[name], device=found.device)]


def _lost(own: Mapping[str, Any]) -> list[str]:
    return [name for name in own if settings.find(name).lost_at_boot]


def _unit(rail: Rail, found: Found, own: Mapping[str, Any]) -> str:
    lost = _lost(own)
    needs_rdma = any(settings.find(name).needs_rdma for name in lost)
    # At boot the device has its final name, and sysfs is where it always is.
    device = Device(rail.netdev, found.device.rdma if needs_rdma else None)
    return boot_unit.text(device, [step for name in lost for step in steps_of(found, name, own[name], device=device)])
