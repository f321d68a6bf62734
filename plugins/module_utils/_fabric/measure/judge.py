# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""One step of the measurement: evidence so far -> verdicts, and the lines to play next, or done.

Nothing is remembered between steps: the schedule of every pass follows from the plan and the evidence alone.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from ..._core.errors import InputError, ParseError
from . import schedule, verdict
from .evidence import Endpoint, Evidence, Log, Pass, parse_batch, parse_describe
from .limits import Expectation, described_rate, expect, rdma_mtu
from .perftest import Sample, reading
from .schedule import Round, Test

# Start cost of perftest, client delay, retries and the guard between two slots, in seconds.
SLOT_MARGIN = 8
# Reading one of these takes so long that perftest's calibration against the processor's counter often fails.
SLOW_CLOCKS = ("hpet", "acpi_pm", "jiffies", "refined-jiffies")


@dataclass(frozen=True)
class Step:
    """``lines``: endpoint to schedule lines for pass ``number``; empty when ``done``. Times in seconds."""

    done: bool
    number: int
    slot: int
    rounds: int
    lines: Mapping[str, list[str]]
    results: list[dict[str, Any]]
    summary: Mapping[str, Any]
    warnings: list[str]

    def to_dict(self) -> dict[str, Any]:
        """Return the step as fabric_judge returns it."""
        own = {"done": self.done, "pass": self.number, "slot": self.slot, "rounds": self.rounds}
        own["seconds"] = self.slot * self.rounds
        return {
            **own,
            "lines": dict(self.lines),
            "results": self.results,
            "summary": dict(self.summary),
            "warnings": self.warnings,
        }


@dataclass
class _State:
    """Working copy of one step: endpoints, what blocks a test, and the attempts of each test so far."""

    plan: Mapping[str, Any]
    rails: list[str]
    endpoints: dict[str, Endpoint] = field(default_factory=dict)
    lost: dict[str, str] = field(default_factory=dict)
    failure: str = ""
    attempts: dict[Test, list[tuple[Sample | None, str]]] = field(default_factory=dict)


def step(
    plan: Mapping[str, Any], where: str, evidence: Evidence, limit: Sequence[str] = (), slot_margin: int = SLOT_MARGIN
) -> Step:
    """Return the next step for the endpoints ``plan.endpoints[where]``, or only those in ``limit``.

    Raises InputError when nothing could be measured at all.
    """
    names = _names(plan, where, limit)
    state = _State(plan, [rail["name"] for rail in plan["rails"]])
    planned = schedule.all_pairs(names, state.rails, plan["tests"]["kinds"])
    state.attempts = {test: [] for round_ in planned for test in round_}
    if not state.attempts:
        raise InputError("nothing was measured: the plan has no rail")
    _describe(state, names, evidence)
    state.failure = evidence.failure
    rounds = schedule.only(planned, {test for test in state.attempts if not _blocked(state, test)})
    for number, played in enumerate(evidence.passes, 1):
        _absorb(state, rounds, number, played)
        rounds = _again(state) if number <= plan["tests"]["retries"] else []
    rounds = [] if evidence.failure else rounds
    results = [_result(state, where, test) for test in sorted(state.attempts)]
    return Step(
        done=not rounds,
        number=len(evidence.passes) + bool(rounds),
        slot=int(plan["tests"]["duration"]) + slot_margin,
        rounds=len(rounds),
        lines=schedule.lines(rounds, state.rails, plan["tests"], _addresses(state)) if rounds else {},
        results=results,
        summary=verdict.summary(results),
        warnings=_warnings(state),
    )


def _names(plan: Mapping[str, Any], where: str, limit: Sequence[str]) -> list[str]:
    known = plan["endpoints"][where]
    names = [name for name in known if not limit or name in limit]
    if len(names) < 2:
        raise InputError(
            f"nothing was measured: a measurement needs two hosts, {'one' if names else 'none'} given"
            f" ({', '.join(names) or 'no name of the plan'}); the plan knows {len(known)}:"
            " widen --limit or the group rdma_hosts"
        )
    return names


def _describe(state: _State, names: Sequence[str], evidence: Evidence) -> None:
    for name in names:
        text = evidence.describe.get(name)
        if text is None:
            reason = evidence.errors.get(name) or evidence.failure or "unreachable, or its tester could not start"
            state.lost[name] = f"{name}: {_line(reason)}"
            continue
        try:
            state.endpoints[name] = parse_describe(text)
        except ParseError as exc:
            state.lost[name] = f"{name}: its tester did not describe itself: {exc}"


def _line(text: str) -> str:
    """Return a message of several lines as one."""
    return " ".join(text.split())


def _blocked(state: _State, test: Test) -> str:
    """Return why a test cannot be run (again), "" when it can."""
    reasons = [state.lost[name] for name in (test.client, test.server) if name in state.lost]
    for name in (test.client, test.server):
        endpoint = state.endpoints.get(name)
        if endpoint is None:
            continue
        if endpoint.host.get("perftest") == "-":
            reasons.append(f"{name}: perftest is not installed")
        elif endpoint.error(test.rail):
            reasons.append(f"{name} {test.rail}: {endpoint.error(test.rail)}")
    return "; ".join(dict.fromkeys(reasons))


def _addresses(state: _State) -> dict[tuple[str, str], str]:
    """Return (endpoint, rail) to the address for perftest's own exchange."""
    control = state.plan["tests"]["control"]
    return {
        (name, rail): endpoint.host.get("control", "-") if control == "management" else found.get("address", "-")
        for name, endpoint in state.endpoints.items()
        for rail, found in endpoint.rails.items()
    }


def _absorb(state: _State, rounds: Sequence[Round], number: int, played: Pass) -> None:
    """Add the attempts of pass ``number``; endpoints that gave no complete log are not used again."""
    logs = {name: parse_batch(text, number) for name, text in played.logs.items()}
    used = {name for round_ in rounds for test in round_ for name in (test.client, test.server)}
    for name in sorted(used):
        if not logs.get(name, Log()).done:
            why = "its tester ended before the end of the pass" if name in logs else "no log came back"
            state.lost.setdefault(name, f"{name}: {_line(played.errors.get(name) or why)}")
    size = int(state.plan["tests"]["size"])
    for at, round_ in enumerate(rounds):
        for test in round_:
            runs = [
                logs[name].runs.get((at, test.rail)) if name in logs else None for name in (test.client, test.server)
            ]
            sample, reason = reading(runs[0], runs[1], size)
            gone = [state.lost[n] for n, run in zip((test.client, test.server), runs) if not run and n in state.lost]
            state.attempts[test].append((sample, "; ".join([*gone, _named(test, reason)]) if reason else ""))


def _named(test: Test, reason: str) -> str:
    """Put the hosts' names to the sides of a reason."""
    return reason.replace("client:", f"{test.client} (client):").replace("server:", f"{test.server} (server):")


def _again(state: _State) -> list[Round]:
    """Return rounds for the tests without a usable reading whose endpoints are still there."""
    return schedule.repeat(
        [
            test
            for test, attempts in state.attempts.items()
            if attempts
            and _verdict(state, test, attempts[-1])[0] == verdict.NO_DATA
            and not _blocked(state, test)
            and _expectation(state, test).least is not None
        ]
    )


def _verdict(state: _State, test: Test, attempt: tuple[Sample | None, str]) -> tuple[str, str]:
    return verdict.judge(attempt[0], attempt[1], _expectation(state, test))


def _expectation(state: _State, test: Test) -> Expectation:
    rail = next(rail for rail in state.plan["rails"] if rail["name"] == test.rail)
    known = state.plan.get("expectations", {}).get(test.rail, {})
    sides = {}
    for name in (test.client, test.server):
        side = dict(known.get(name, {}))
        if side.get("rate") is None and name in state.endpoints:
            side["rate"] = described_rate(state.endpoints[name].rails.get(test.rail, {}).get("rate"))
        sides[name] = side
    return expect(rail, sides, state.plan["tests"].get("mtu"))


def _result(state: _State, where: str, test: Test) -> dict[str, Any]:
    expectation = _expectation(state, test)
    judged = [(sample, *_verdict(state, test, (sample, reason))) for sample, reason in state.attempts[test]]
    # The last attempt counts: later passes repeat only what had no data.
    sample, outcome, reason = (
        judged[-1] if judged else (None, verdict.NO_DATA, _blocked(state, test) or state.failure or "not played")
    )
    return {
        "where": where,
        "rail": test.rail,
        "client": test.client,
        "server": test.server,
        "test": test.kind,
        "value": sample.average if sample else None,
        "unit": "Gb/s",
        "expected": expectation.least,
        "bound_by": expectation.bound_by,
        "verdict": outcome,
        "reason": reason,
        "passes": [
            {"pass": number, "value": s.average if s else None, "verdict": v, "reason": r}
            for number, (s, v, r) in enumerate(judged, 1)
        ],
    }


def _warnings(state: _State) -> list[str]:
    """Return what was noticed on the way and does not change a verdict: slow clocks, small RDMA MTUs."""
    told = [
        f"{name}: clock source {endpoint.host['clock']}, not tsc: perftest may print rates of 0 (clock sampling)"
        for name, endpoint in state.endpoints.items()
        if endpoint.host.get("clock") in SLOW_CLOCKS
    ]
    for rail in state.plan["rails"]:
        told += [
            f"{name} {rail['name']}: RDMA MTU {found}, {planned} planned"
            for name, found, planned in _mtus(state, rail)
            if found < planned
        ]
    return told


def _mtus(state: _State, rail: Mapping[str, Any]) -> Iterator[tuple[str, int, int]]:
    """Yield each endpoint with its RDMA MTU on a rail and the planned one, where both are known."""
    planned = rdma_mtu(rail.get("mtu"), rail.get("link_layer") or "ethernet")
    for name, endpoint in state.endpoints.items():
        found = endpoint.rails.get(rail["name"], {}).get("mtu", "")
        if planned and found.isdigit():
            yield name, int(found), planned
