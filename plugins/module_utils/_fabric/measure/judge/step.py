# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""One step of the measurement: evidence so far -> verdicts, and the lines to play next, or done.

Nothing is remembered between steps: the schedule of every pass follows from the plan and the evidence alone.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

from ...._common.errors import InputError, ParseError
from ...._common.reader import some
from ...intent import budgets
from ...intent.tests import complete
from ...plan.switch_ports import evidence as switch_ports_evidence
from ...plan.traffic import require_one
from ..diagnosis import coverage, duplicates, single_paths, unsteady
from ..diagnosis.absence import Conduct
from ..readings.tester_log import Evidence, Log, Pass, parse_describe, parse_logs
from ..schedule import crossing, schedule, timing
from ..schedule.schedule import Round
from ..schedule.tester_input import lines as schedule_lines
from . import all_results, links, mesh, outliers, paths, unmeasured, verdict
from . import results as judge_results
from .earlier_report import NONE, EarlierReport
from .meeting import addresses
from .notices import notices
from .passes import Course, Results, announce, next_rounds, notes, results, resumed, verdicts, worst, worst_more
from .passes import summary as passes_summary
from .reproduce import commands
from .resume import ports_of, take_over
from .session import State, asked_exchange
from .ways import exchange_of, exchange_warnings, have_options, options_of

# Start cost of perftest, client delay, retries and the guard between two slots, in seconds: what a slot is longer than
# its measurement at most.
SLOT_MARGIN = 6
# Characters of a reason that people read.
_LONGEST_REASON = 2000
# What Ansible puts before the message of a task.
_PREFIX = re.compile(r"^(?:(?:Task|Action|Module) failed(?:: |\.$))+")


@dataclass(frozen=True)
class Step:
    """``lines``: endpoint to schedule lines for pass ``number``; empty when ``done``. Times in seconds.

    ``results``, ``summary``, ``outliers`` and ``unsteady`` are empty until ``done``: they are no verdict yet.
    ``announce``: what to say before the pass, "" when ``done``. ``worst``: this pass, what waits, all retries, and
    all that locating faults and suspects may add. ``lead``: how much later than usual the pass should begin, since
    hosts missed a begin.
    ``schedule``: as the report has it: {mode, rounds, slot, seconds, passes, share, lateness, text}.
    ``verdicts``: how many tests of the passes so far have which verdict.
    """

    done: bool
    number: int
    slot: int
    rounds: int
    lines: Mapping[str, list[str]]
    results: Results
    summary: Mapping[str, Any]
    warnings: list[str]
    announce: str
    worst: int
    lead: int
    schedule: Mapping[str, Any]
    links: list[dict[str, Any]]
    outliers: list[dict[str, Any]]
    endpoints: Mapping[str, Any]
    unsteady: list[dict[str, Any]]
    unmeasured: list[dict[str, str]]
    verdicts: Mapping[str, int]

    def to_dict(self) -> dict[str, Any]:
        """Return the step as fabric_judge returns it."""
        own = {"done": self.done, "pass": self.number, "slot": self.slot, "rounds": self.rounds}
        own["seconds"] = self.slot * self.rounds
        return {
            **own,
            "worst": self.worst,
            "lead": self.lead,
            "announce": self.announce,
            "lines": dict(self.lines),
            "results": self.results,
            "summary": dict(self.summary),
            "warnings": self.warnings,
            "schedule": dict(self.schedule),
            "links": self.links,
            "outliers": self.outliers,
            "endpoints": dict(self.endpoints),
            "unsteady": self.unsteady,
            "unmeasured": self.unmeasured,
            "verdicts": dict(self.verdicts),
        }


def step(
    plan: Mapping[str, Any],
    where: str,
    evidence: Evidence,
    *,
    limit: Sequence[str] = (),
    slot_margin: int = SLOT_MARGIN,
    only: Mapping[str, Any] | None = None,
    earlier: EarlierReport | None = None,
    hosts: Mapping[str, Any] | None = None,
) -> Step:
    """Return the next step for the endpoints ``plan.endpoints[where]``, or only those in ``limit``.

    ``only`` ({hosts, rails, pairs}) takes the place of ``tests.only``. What passed in the report ``earlier`` is taken
    over and not measured, as far as resume.py permits. Raises InputError when nothing could be measured at all.
    """
    course = _begin(
        plan, where, evidence, limit=limit, margin=slot_margin, only=only, earlier=earlier, hosts=hosts or {}
    )
    state = course.state
    checked = mesh.check(course, evidence.passes)
    if checked.slots:
        return _mesh_step(course, checked, evidence, hosts=hosts or {})
    rounds = _played(course, evidence, checked.used)
    found = [] if rounds else paths.note(state, results(course))
    summary = {} if rounds else _summary(state, found, course.unmeasured, switches=links.switches(state, evidence))
    told = passes_summary(course, rounds, len(evidence.passes), read=() if rounds else links.conclude(state, evidence))
    return Step(
        done=not rounds,
        number=len(evidence.passes) + bool(rounds),
        slot=course.slot,
        rounds=len(rounds),
        lines=_lines(state, rounds, course.number + 1),
        results=found,
        summary=summary,
        warnings=[
            *notices(state, course.clock.lateness if summary else {}, summary.get("diagnoses", ())),
            *exchange_warnings(state),
            *checked.warnings,
            *notes(course, told),
        ],
        announce=announce(course, rounds, len(evidence.passes) + 1) if rounds else "",
        worst=worst(course, rounds) + worst_more(course) if rounds else 0,
        lead=course.clock.lead,
        schedule=_told(state, told, checked.text, found=found),
        links=links.find(state, evidence, playing=bool(rounds)),
        outliers=outliers.find(found, plan["thresholds"]["outliers"]),
        endpoints={"where": where, "hosts": ports_of(state, hosts or {})},
        unsteady=_unsteady(state, found),
        unmeasured=[] if rounds else course.unmeasured,
        verdicts=verdicts(course),
    )


def _told(state: State, told: Mapping[str, Any], checked: str, *, found: Results) -> dict[str, Any]:
    """Return the schedule of the report, with what the run would have shown."""
    view, more = verdict.view_of(state.plan, state.tests), budgets.more(state.tests, len(state.endpoints))
    shown = coverage.rows(found, view, more)
    text = "; ".join(filter(None, (told["text"], coverage.text(shown), checked)))
    return {**told, "text": text, **({"sensitivity": shown} if shown else {})}


def _played(course: Course, evidence: Evidence, before: int) -> list[Round]:
    """Absorb all passes after the first ``before``; return the rounds to play now."""
    course.number = max(course.number, before)
    rounds = next_rounds(course)
    for number, played in list(enumerate(evidence.passes, 1))[before:]:
        ended = evidence.failure if number == len(evidence.passes) else ""
        _absorb(course, rounds, number, played=played, ended=ended)
        rounds = next_rounds(course)
    return [] if evidence.failure else rounds


def _mesh_step(course: Course, checked: mesh.Mesh, evidence: Evidence, *, hosts: Mapping[str, Any]) -> Step:
    """Return the step that plays a pass of the mesh."""
    state, number = course.state, checked.used + 1
    told, most = mesh.announce(course, checked, number)
    planned = passes_summary(course, [], number, mesh=len(checked.slots) * (mesh.SLOT,))
    return Step(
        done=False,
        number=number,
        slot=mesh.SLOT,
        rounds=len(checked.slots),
        lines=checked.lines,
        results=[],
        summary={},
        warnings=[*notices(state, {}, ()), *resumed(course)],
        announce=told,
        worst=most + worst_more(course),
        lead=course.clock.lead,
        schedule={**planned, "text": told},
        links=links.find(state, evidence, playing=True),
        outliers=[],
        endpoints={"where": state.where, "hosts": ports_of(state, hosts)},
        unsteady=[],
        unmeasured=[],
        verdicts={},
    )


def _summary(
    state: State, found: Results, left_out: Sequence[Mapping[str, str]], *, switches: Mapping[str, Any]
) -> dict[str, Any]:
    summary = verdict.summary(found, left_out, view=verdict.view_of(state.plan, state.tests))
    diagnoses = [
        {
            **one,
            "evidence": [*one["evidence"], *switch_ports_evidence(switches, one)],
            "reproduce": commands(state, one, found),
        }
        for one in summary["diagnoses"]
    ]
    return {**summary, "diagnoses": single_paths.added(diagnoses, found, crossing.homes(state.tests))}


def _unsteady(state: State, found: Results) -> list[dict[str, Any]]:
    homes = crossing.homes(state.tests)
    return single_paths.added(unsteady.find(found, state.plan["thresholds"]["unsteady"], homes), found, homes)


def _begin(
    plan: Mapping[str, Any],
    where: str,
    evidence: Evidence,
    *,
    limit: Sequence[str],
    margin: int,
    only: Mapping[str, Any] | None,
    earlier: EarlierReport | None,
    hosts: Mapping[str, Any],
) -> Course:
    """Return the course with its whole schedule."""
    require_one(plan)
    tests = complete(plan["tests"])
    tests["only"] = only or tests["only"]
    known = [name for name in plan["endpoints"][where] if not limit or name in limit]
    names = _names(plan, where, unmeasured.measurable(plan, known), tests=tests)
    rails = [rail["name"] for rail in plan["rails"]]
    if not rails:
        raise InputError("nothing was measured: the plan has no rail")
    fields = schedule.fields(plan, names)
    state = State(plan, where, tests, schedule.mode_of(tests, max(len(own.names) for own in fields)), rails)
    asked, tests["only"] = tests["only"], unmeasured.narrowed(plan, known, tests["only"])
    rounds = schedule.planned(names, rails, tests, fields=fields, missing=unmeasured.missing(plan))
    tests["mode"], planned = state.mode, len(rounds)
    _describe(state, names, evidence)
    for one in duplicates.found_twice(plan, where, state.endpoints):
        state.duplicates.update({(name, one["rail"], one["address"]): one for name in one["hosts"]})
    wanted = {test for round_ in rounds for test in round_}
    left_out = unmeasured.find(plan, where, known, tests=wanted, only=asked)
    kept, why = take_over(state, wanted, earlier or NONE, ports=ports_of(state, hosts))
    left = wanted - kept.keys()
    rounds = schedule.pack(rounds, left, tests) if kept else rounds
    state.attempts = {test: [] for test in left}
    given = tests["repeats"]
    tests["repeats"] = budgets.repeats(tests, len(names), planned)
    state.needed = budgets.needed(given, tests["repeats"])
    waiting = timing.split(rounds * tests["repeats"], len(names))
    return Course(state, names, margin, rounds, list(kept.values()), waiting, not_kept=why, unmeasured=left_out)


def _names(plan: Mapping[str, Any], where: str, names: list[str], *, tests: Mapping[str, Any]) -> list[str]:
    known = plan["endpoints"][where]
    if len(names) < (1 if tests["mode"] == "loopback" else 2):
        raise InputError(
            f"nothing was measured: a measurement needs two hosts, {'one' if names else 'none'} given"
            f" ({', '.join(names) or 'no name of the plan'}); the plan knows {len(known)}:"
            f" widen --limit or the group of the fabric{_left_out(plan)}"
        )
    return names


def _left_out(plan: Mapping[str, Any]) -> str:
    out = unmeasured.excluded(plan)
    return f". Left out, since they are in use: {some(list(out))}" if out else ""


def _describe(state: State, names: Sequence[str], evidence: Evidence) -> None:
    state.failure = _line(evidence.failure)
    for name in names:
        text = evidence.describe.get(name)
        if text is None:
            why = _line(evidence.errors.get(name, "")) or state.failure
            state.lost[name] = f"{name}: {why or 'unreachable, or its tester could not start'}"
            continue
        try:
            # Where the plan has no port of a rail, no other port is taken for it.
            gone = state.plan.get("hosts", {}).get(name, {}).get("missing", ())
            state.endpoints[name] = parse_describe(text).without(gone)
        except ParseError as exc:
            state.lost[name] = f"{name}: its tester did not describe itself: {exc}"


def _line(text: str) -> str:
    """Return a message of several lines as one, as much as people read, without what Ansible puts before it."""
    return _PREFIX.sub("", " ".join(text[:_LONGEST_REASON].split()))


def _absorb(course: Course, rounds: Sequence[Round], number: int, *, played: Pass, ended: str) -> None:
    """Add what pass ``number`` told; endpoints that gave no complete log are not used again.

    ``ended``: why the run ended in this pass, "" if it did not: then nobody fetched the logs.
    """
    logs, invalid = parse_logs(played, number)
    lost = set()
    used = {name for round_ in rounds for test in round_ for name in (test.client, test.server)}
    for name in sorted(used):
        if not logs.get(name, Log()).done:
            lost.add(name)
            why = "its tester ended before the end of the pass" if name in logs else "no log was returned"
            why = _line(invalid.get(name, "")) or _line(played.errors.get(name, "")) or _line(ended) or why
            course.state.lost.setdefault(name, f"{name}: {why}")
    all_results.forget(course.state, lost)
    begin = course.clock.seconds
    late = course.clock.add(logs, len(rounds), course.slot, waiting=bool(course.waiting))
    course.state.conduct[number] = Conduct(late, begin, course.clock.seconds, frozenset(lost))
    judge_results.absorb(course.state, rounds, number, logs=logs)
    course.found = None
    course.number = number
    course.played += len(rounds)


def _lines(state: State, rounds: Sequence[Round], number: int) -> dict[str, list[str]]:
    if not rounds:
        return {}
    gpus = {(name, rail): gpu for rail, own in state.plan.get("gpus", {}).items() for name, gpu in own.items()}
    asked = asked_exchange(state)
    swapped = {test for round_ in rounds for test in round_ if exchange_of(state, test) != asked}
    more = partial(options_of, state) if have_options(state, swapped) else None
    known = partial(addresses, state)
    flow = paths.option_of(state, number, swapped)
    return schedule_lines(
        rounds, state.rails, state.tests, addresses=known, gpus=gpus, swapped=swapped, more=more, flow=flow
    )
