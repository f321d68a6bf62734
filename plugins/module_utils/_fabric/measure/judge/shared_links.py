# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What rails that share a PCIe link carry together: each host once, with a limit of its own, and no matter of a port.

All other tests leave such a link to one rail in each direction, so nothing else shows what it carries.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from math import inf
from typing import Any

from ...intent.kinds import KINDS
from ...intent.tests import STARS
from ...plan.link_rates import pcie_link, pcie_rate
from ..schedule import modes
from ..schedule.schedule import Field, Measurement, Round
from ..schedule.turns import sharing
from . import verdict
from .flaws import blocked
from .session import Attempt, State, described, expectation_of, late_hosts

# What was measured at once: the tests of a pair, with their attempts.
Group = Sequence[tuple[Measurement, Attempt]]
_SHOWN = 3


def most(state: State) -> int:
    """Return how many rounds planned() returns at most."""
    rates = any(not KINDS[kind].latency for kind in state.tests["kinds"])
    partial = any(state.tests["only"].values())
    return 0 if partial or not rates or state.mode in (*STARS, "loopback") else 2 * len(sharing(state.tests))


def planned(state: State, fields: Sequence[Field], missing: Collection[tuple[str, str]]) -> list[Round]:
    """Return rounds in which each host sends, or receives, on all rails of a shared link at once."""
    kinds = [kind for kind in state.tests["kinds"] if not KINDS[kind].latency]
    if not most(state):
        return []
    rounds = []
    for group in sharing(state.tests):
        for turn in (0, 1):
            pairs = [pair for field in fields if set(group) <= set(field.rails) for pair in _pairs(field.names)[turn]]
            tests = [_tests(state, group, pair, kind=kinds[0]) for pair in pairs]
            rounds.append(tuple(test for own in tests if _possible(state, own, missing) for test in own))
    return [round_ for round_ in rounds if round_]


def _pairs(names: Sequence[str]) -> list[modes.Pairs]:
    """Return pairs of neighbours, and with an odd number of hosts a second round with the one that is left over."""
    pairs = [(names[at], names[at + 1]) for at in range(0, len(names) - 1, 2)]
    return [pairs, [(names[-1], names[0])] if len(names) % 2 and len(names) > 1 else []]


def _tests(state: State, group: Sequence[str], pair: tuple[str, str], *, kind: str) -> list[Measurement]:
    sizes = state.tests["sizes"]
    size = sizes[-1] if len(sizes) > 1 else 0
    return [Measurement(rail, *pair, kind, size, memory=state.tests["memory"]) for rail in group]


def _possible(state: State, tests: Sequence[Measurement], missing: Collection[tuple[str, str]]) -> bool:
    ends = {(name, test.rail) for test in tests for name in (test.client, test.server)}
    return (
        ends.isdisjoint(missing)
        and all(described(state, *end) for end in ends)
        and not any(blocked(state, test) for test in tests)
    )


def rows(state: State) -> list[dict[str, Any]]:
    """Return ``shared_links`` of the report's schedule.

    Each is {client, server, rails, test, value, expected, verdict, text}.
    """
    found = [_row(state, own) for own in state.together.values()]
    return _without_slow_ports(state, found) if any(row["verdict"] == verdict.FAIL for row in found) else found


def _without_slow_ports(state: State, found: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """Return rows as no_data where a port was too slow alone as well: that says nothing about the link."""
    best: dict[tuple[str, ...], float] = {}
    for test, attempts in state.attempts.items():
        if not test.peer_rail and not test.star:
            values = [attempt.sample.value for attempt in attempts if attempt.sample]
            for key in _sides(state, test) if values else ():
                best[key] = max(best.get(key, 0.0), *values)
    for row, own in zip(found, state.together.values()):
        slow = [
            f"{key[0]} {test.rail}"
            for test, _attempt in own
            for key in _sides(state, test)
            if best.get(key, inf) < (expectation_of(state, test).least or 0.0)
        ]
        if row["verdict"] == verdict.FAIL and slow:
            row["verdict"] = verdict.NO_DATA
            row["text"] += f"; {' and '.join(dict.fromkeys(slow))} too slow alone as well"
    return found


def _sides(state: State, test: Measurement) -> tuple[tuple[str, ...], ...]:
    """Return what a test measures on each side alone: one direction of its port, or both together."""
    same = (test.rail, test.kind, test.memory)
    client, server = ("both", "both") if state.tests["directions"] == "together" else ("client", "server")
    return (test.client, client, *same), (test.server, server, *same)


def _row(state: State, own: Group) -> dict[str, Any]:
    first = own[0][0]
    least, what = _limit(state, own)
    values = [attempt.sample.value for _test, attempt in own if attempt.sample]
    value = sum(values) if len(values) == len(own) else None
    outcome, why = _outcome(state, own, value, least=least)
    rails = " and ".join(test.rail for test, _attempt in own)
    told = why if value is None else f"{verdict.gigabits(value)} together{why and f', {why}'}"
    expected = f", {verdict.gigabits(least)} expected ({what})" if least is not None else ""
    return {
        "client": first.client,
        "server": first.server,
        "rails": [test.rail for test, _attempt in own],
        "test": first.kind,
        "value": value,
        "expected": least,
        "verdict": outcome,
        "text": f"{first.client} to {first.server}, {rails} at the same time: {told}{expected}",
    }


def _outcome(state: State, own: Group, value: float | None, *, least: float | None) -> tuple[str, str]:
    if value is None:
        return verdict.NO_DATA, next(attempt.reason for _test, attempt in own if not attempt.sample)
    if least is None or value >= least:
        return (verdict.PASS if least is not None else verdict.NO_DATA), ""
    late = {name: seconds for test, attempt in own for name, seconds in late_hosts(state, test, attempt).items()}
    if late:
        return verdict.NO_DATA, f"while {' and '.join(sorted(late))} started late"
    return verdict.FAIL, ""


def _limit(state: State, own: Group) -> tuple[float | None, str]:
    """Return what the rails must reach together, and of what: of a shared link, or of what each reaches alone."""
    alone = [expectation_of(state, test).least for test, _attempt in own]
    if any(least is None for least in alone):
        return None, ""
    found = [(sum(least for least in alone if least is not None), "what each of them must reach alone")]
    both = state.tests["directions"] == "together"
    for name in (own[0][0].client, own[0][0].server):
        for test, _attempt in own:
            side: Mapping[str, Any] = state.plan["expectations"].get(test.rail, {}).get(name, {})
            share = side["bidirectional"] * 2 if both else side["tolerance"]
            found += [(rate * share, what) for rate, what in _links(side, name, {test.rail for test, _attempt in own})]
    return min(found)


def _links(side: Mapping[str, Any], name: str, rails: set[str]) -> Iterator[tuple[float, str]]:
    payload = (side.get("pcie") or {}).get("max_payload")
    for link in side.get("uplinks", ()):
        if rails <= set(link["rails"]):
            what = f"the {pcie_link(link['speed'], link['width'])} link of {name} at {link['pci']} that they share"
            yield pcie_rate(link["speed"], link["width"], payload), what


def texts(found: Sequence[Mapping[str, Any]]) -> list[str]:
    """Return a line for each group of rails: how many pairs of hosts reached what their link carries."""
    groups: dict[tuple[str, ...], list[Mapping[str, Any]]] = {}
    for row in found:
        groups.setdefault(tuple(row["rails"]), []).append(row)
    lines = []
    for rails, own in groups.items():
        passed = sum(row["verdict"] == verdict.PASS for row in own)
        values = [row["value"] for row in own if row["value"] is not None]
        least = f"; the lowest has {verdict.gigabits(min(values))} in total" if values else ""
        count = f"{passed} of {len(own)} pairs of hosts reach what their shared PCIe link carries{least}"
        lines.append(f"{' and '.join(rails)} at the same time: {count}")
    return lines


def warnings(found: Sequence[Mapping[str, Any]]) -> list[str]:
    """Return what did not reach what a shared link carries; it changes no verdict and no diagnosis."""
    low = [row["text"] for row in found if row["verdict"] == verdict.FAIL]
    more = f" and {len(low) - _SHOWN} more" if len(low) > _SHOWN else ""
    action = "Check the PCIe links above these rails, and other devices that use them"
    return [f"{'; '.join(low[:_SHOWN])}{more}. {action}"] if low else []
