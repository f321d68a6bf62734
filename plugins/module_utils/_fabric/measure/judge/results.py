# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The attempts at each test, and the result that they give."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from ..diagnosis.absence import FIRM, LOST, NONE, THROTTLED, WEAK, Shown, absence, combined, overload, overloaded
from ..diagnosis.fan import VOID
from ..readings import tester_cpu
from ..readings.counters import link_went_down, sentences
from ..readings.perftest import Run, Sample, reading
from ..readings.tester_log import Log
from ..schedule.schedule import Measurement, Round, star_of
from ..schedule.tester_input import message_size, sides
from . import paths, port_health, verdict
from .expectation import Expectation
from .flaws import flawed
from .meeting import addresses
from .outcome import Judged, decided
from .session import (
    Attempt,
    State,
    addresses_used,
    asked_exchange,
    expectation_of,
    faults,
    gpu_of,
    has_grh,
    late_hosts,
    low_link,
    partitions,
    shown_by,
    stopped_at,
)
from .stalled import in_round


def absorb(state: State, rounds: Sequence[Round], number: int, *, logs: Mapping[str, Log]) -> None:
    """Add the attempts of pass ``number``, which played ``rounds``."""
    measured = state.conduct[number].measured
    of_kind = {(test.kind, test.size) for round_ in rounds for test in round_}
    bytes_of = {one: message_size(state.tests, *one) for one in of_kind}
    for at, round_ in enumerate(rounds):
        played: list[port_health.Played] = []
        for test in round_:
            ends = sides(test, addresses(state, test))
            runs = [logs[own].runs.get((at, rail, peer)) if own in logs else None for _role, own, rail, peer in ends]
            sample, reason = reading(runs[0], runs[1], bytes_of[test.kind, test.size])
            if reason:
                gone = [state.lost[end[1]] for end, run in zip(ends, runs) if not run and end[1] in state.lost]
                reason = "; ".join([*dict.fromkeys(gone), _named(test, reason)])
            played.append(port_health.Played(test, runs, sample if _possible(state, test, sample) else None))
            attempt = Attempt(number, at, sample, reason, *(runs if _telling(state, sample, ends, runs=runs) else ()))
            _keep(state, test, attempt)
            if test.rail in partitions(state) and not has_grh(state, test):
                state.grh.add(test, attempt, runs)
                down = any(run is not None and link_went_down(run.counters) for run in runs)
                if paths.told(state, test, attempt).get("lid_offset") and not down:
                    state.lids.add(test.rail, attempt)
            if sample:
                measured.add(test.client)
                measured.add(test.server)
            if test.star:
                state.stars.setdefault((number, at, star_of(test)), []).append((test, attempt))
        state.in_round[number, at] = in_round((one.test.client, one.test.server, bool(one.sample)) for one in played)
        # Rails that share a link overload it on purpose: what their ports then count, such as pauses, is no fault.
        if number != state.together_in:
            port_health.absorb(state.ports, played, tests=state.tests)
    state.lids.settle(number)
    if state.grh.settle():
        state.expected.clear()
    if partitions(state):
        # What a port of InfiniBand refuses or loses changes what is told of other tests.
        state.told.clear()


def _keep(state: State, test: Measurement, attempt: Attempt) -> None:
    state.told.pop(test, None)
    if attempt.number == state.together_in:
        state.together.setdefault((attempt.at, test.client, test.server), []).append((test, attempt))
        return
    kept = state.probes if attempt.number in state.probing else state.attempts
    kept.setdefault(test, []).append(attempt)


def _possible(state: State, test: Measurement, sample: Sample | None) -> bool:
    """Return whether a rate is not above what the link carries; one without a known limit is."""
    if sample is None or sample.unit == "us":
        return True
    return verdict.possible(sample.value, expectation_of(state, test))


def _telling(
    state: State, sample: Sample | None, ends: Sequence[tuple[str, str, str, str]], *, runs: Sequence[Run | None]
) -> bool:
    """Return whether more than the number is worth to be kept: the texts of a whole fleet take hundreds of MB."""
    if sample is None:
        return True
    usual = ("", asked_exchange(state))
    for (_role, name, rail, _peer), run in zip(ends, runs):
        noted = run and (run.counters or run.link_before or tester_cpu.stopped(run.amounts))
        if run and (noted or run.exchange not in usual or low_link(state, name, rail, link=run.link)):
            return True
    return False


def _named(test: Measurement, reason: str) -> str:
    """Put the hosts' names to the sides of a reason."""
    return reason.replace("client:", f"{test.client} (client):").replace("server:", f"{test.server} (server):")


def judge(state: State, test: Measurement, attempt: Attempt) -> tuple[str, str]:
    """Return the verdict of one attempt and its reason."""
    outcome, reason = _by_value(state, test, attempt)
    sides = attempt.sides
    if outcome == verdict.PASS:
        if not sides or not any(link_went_down(run.counters) for run in sides.values()):
            return outcome, reason
        outcome, reason = verdict.FAIL, "fast enough, but not steady"
    elif outcome == verdict.FAIL and not any(link_went_down(run.counters) for run in sides.values()):
        late = late_hosts(state, test, attempt)
        if late:
            return verdict.NO_DATA, f"{overload(late)}; {reason}"
        stopped = stopped_at(test, attempt)
        if stopped:
            return verdict.NO_DATA, f"{tester_cpu.text(stopped)}; {reason}"
    told = [text for side in sides for text in _of_port(state, *_port(test, side), side=side, sides=sides)]
    return outcome, "; ".join([reason, *told])


def _port(test: Measurement, side: str) -> tuple[str, str]:
    """Return host and rail of a side."""
    return (test.client, test.rail) if side == "client" else (test.server, test.server_rail)


def _of_port(state: State, name: str, rail: str, *, side: str, sides: Mapping[str, Run]) -> list[str]:
    """Return what grew and what its link is, as read after the test.

    The diagnosis takes a part that begins with a port for its cause. Only a link that went down certainly is one: what
    else grew is seen on the healthy end too.
    """
    run, peer = sides[side], next((other.counters for key, other in sides.items() if key != side), None)
    port = f"{name} {rail}" if link_went_down(run.counters) else f"at {name}"
    return [f"{port}: {text}" for text in sentences(run.counters, peer)] + [
        f"at {name}: {text}" for text in low_link(state, name, rail, link=run.link)
    ]


def _by_value(state: State, test: Measurement, attempt: Attempt) -> tuple[str, str]:
    expectation = expectation_of(state, test)
    if not test.star:
        return verdict.judge(attempt.sample, attempt.reason, expectation)
    star = state.stars[attempt.number, attempt.at, star_of(test)]
    missing = next(((one, other) for one, other in star if other.sample is None), None)
    if attempt.sample is None or missing is None:
        total = sum(other.sample.value for _one, other in star if other.sample)
        sample = attempt.sample._replace(average=total) if attempt.sample else None
        return verdict.judge(sample, attempt.reason, expectation)
    return verdict.NO_DATA, f"{VOID}: {missing[0].client} to {missing[0].server} gave no data"


def result(state: State, test: Measurement) -> dict[str, Any]:
    """Return the result of a test, as report.json holds it."""
    expectation = expectation_of(state, test)
    judged = [(attempt, *judge(state, test, attempt)) for attempt in state.attempts[test]]
    attempt, outcome, reason = decided(state, test, judged)
    around = _around(state, test, judged)
    worth = (
        []
        if outcome == verdict.PASS
        else [worth_of(state, test, one[0], outcome=one[1], reason=one[2]) for one in judged]
    )
    found = faults(state, test, attempt) if outcome == verdict.PASS and attempt and len(judged) > 1 else []
    return {
        "where": state.where,
        "rail": test.rail,
        "client": test.client,
        "server": test.server,
        "test": test.kind,
        "value": attempt.sample.value if attempt and attempt.sample else None,
        "unit": expectation.unit,
        "expected": expected(expectation, around),
        "bound_by": expectation.bound_by,
        "basis": expectation.why,
        "verdict": outcome,
        "reason": reason,
        **_options(state, test, judged),
        **(_noticed(state, test, attempt) if attempt else {}),
        **_known(state, test, outcome, worth=worth),
        "passes": [
            row if row["verdict"] == verdict.PASS else {**row, **paths.told(state, test, one[0])}
            for row, one in zip(_passes(judged, state.repeated.get(test), worth, faulty=found), judged)
        ],
        **_single_paths(state, test),
    }


def _single_paths(state: State, test: Measurement) -> dict[str, Any]:
    """Return the optional key ``paths`` of a result: its readings on one path each."""
    found = [(attempt, *judge(state, test, attempt)) for attempt in state.probes.get(test, ())]
    rows = [{**row, **paths.told(state, test, one[0])} for row, one in zip(_passes(found, None, (), faulty=()), found)]
    return {"paths": rows} if rows else {}


def worth_of(state: State, test: Measurement, attempt: Attempt, *, outcome: str, reason: str) -> Shown:
    """Return what an attempt shows. An impossible reading, or a rate of 0, is none of the fabric's."""
    if attempt.sample is None:
        return shown_by(state, test, attempt)
    late = late_hosts(state, test, attempt) if outcome == verdict.NO_DATA else {}
    if late and reason.startswith(overload(late)):
        return overloaded(late)
    stopped = stopped_at(test, attempt)
    if stopped and reason.startswith(tester_cpu.text(stopped)):
        return Shown(NONE, THROTTLED, tuple(stopped))
    return Shown(WEAK if outcome == verdict.NO_DATA else FIRM)


def _known(state: State, test: Measurement, outcome: str, *, worth: Sequence[Shown]) -> dict[str, Any]:
    """Return the optional key ``duplicate``, an address that explains it, or ``absence``, why nothing is known."""
    if outcome == verdict.PASS:
        return {}
    ends = ((test.client, test.rail), (test.server, test.server_rail))
    twice = [state.duplicates[end] for end in addresses_used(state, ends) if end in state.duplicates]
    if twice:
        return {"duplicate": dict(twice[0])}
    if outcome == verdict.FAIL:
        return {}
    if worth:
        found = combined(worth)
        return {"absence": found} if found else {}
    flaws = flawed(state, test)
    if any(UNTOLD not in flaw for flaw in flaws):
        return {}
    untold = [name for name in (test.client, test.server) if any(flaw.startswith(f"{name} ") for flaw in flaws)]
    lost = [name for name in (test.client, test.server) if name in state.lost]
    return {"absence": absence(LOST, list(dict.fromkeys([*lost, *untold])))}


def _passes(
    judged: Judged, since: int | None, worth: Sequence[Shown], *, faulty: Sequence[bool]
) -> list[dict[str, Any]]:
    """Return every attempt; ``since``: from which on they are those of the second measurement.

    ``worth``: what each shows; only what is less than firm evidence is told. ``faulty``: which showed a fault.
    """
    told: list[dict[str, Any]] = [
        {"pass": a.number, "value": a.sample.value if a.sample else None, "verdict": v, "reason": r}
        for a, v, r in judged
    ]
    for one in told[since:] if since else ():
        one["repeated"] = True
    for one, shows in zip(told, worth):
        if shows.level != FIRM:
            one["evidence"] = shows.level
    for one, fault in zip(told, faulty):
        if fault:
            one["fault"] = True
    return told


def expected(expectation: Expectation, around: int) -> float | None:
    """Return the least rate that each of ``around`` tests must reach, or the most latency."""
    if expectation.unit == "us":
        return expectation.most
    return None if expectation.least is None else expectation.least / around


# What a flaw is called that shows no fault: a tester without a valid description.
UNTOLD = ": not described"


def _around(state: State, test: Measurement, judged: Judged) -> int:
    """Return how many share what is expected: the tests of a star, 1 otherwise."""
    if not test.star or not judged:
        return 1
    last = judged[-1][0]
    return len(state.stars[last.number, last.at, star_of(test)])


def _options(state: State, test: Measurement, judged: Judged) -> dict[str, Any]:
    """Return the optional keys of a result: what was asked for beyond the usual."""
    found: dict[str, Any] = {}
    if test.size:
        found["size"] = test.size
    if test.peer_rail:
        found["peer_rail"] = test.peer_rail
    if test.star:
        found["star"] = test.star
    if len(judged) > 1 and state.tests["repeats"] > 1 and (values := _values(judged)):
        found["spread"] = {"min": min(values), "max": max(values), "n": len(values)}
    if state.tests["memory"] != "host":
        found["memory"] = test.memory
    if test.memory == "host":
        return found
    gpus = {
        "client": gpu_of(state, test, test.client, rail=test.rail),
        "server": gpu_of(state, test, test.server, rail=test.server_rail),
    }
    if any(gpus.values()):
        found["gpu"] = {side: gpu for side, gpu in gpus.items() if gpu}
    return found


def _noticed(state: State, test: Measurement, attempt: Attempt) -> dict[str, Any]:
    """Return the optional keys of a result: what grew, and links that changed meanwhile or are below the plan."""
    sides = attempt.sides
    if not sides:
        # Nothing but the number was worth keeping, as of most tests.
        return {}
    counters = {side: dict(run.counters) for side, run in sides.items() if run.counters}
    links = {
        side: dict(run.link)
        for side, run in sides.items()
        if run.link_before or low_link(state, *_port(test, side), link=run.link)
    }
    return {**({"counters": counters} if counters else {}), **({"link": links} if links else {})}


def _values(judged: Judged) -> list[float]:
    return [one.sample.value for one, outcome, _reason in judged if one.sample and outcome != verdict.NO_DATA]
