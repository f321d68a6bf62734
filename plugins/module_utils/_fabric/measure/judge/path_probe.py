# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Tests of one path at a time, between hosts that read low: whether the same ones of several paths are low each time.

These readings are kept apart from those that are judged (``paths`` of a result).
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from typing import Any

from ..diagnosis.components import View, ends_of, readings
from ..diagnosis.unsteady import understood
from ..schedule import schedule
from ..schedule.flow_labels import Paths, labels, number_of
from ..schedule.modes import shuffled
from ..schedule.schedule import Measurement, Round, subject
from .flaws import blocked
from .paths import can_choose, lids, most_labels
from .session import State, asked_exchange

Result = Mapping[str, Any]
# Rounds of a pair, the paths that are tried in them, how many of these are of its low reading, and pairs of a rail.
ROUNDS = 18
_PATHS = 6
_KNOWN = 4
_PAIRS = 2


def planned(
    state: State, results: Sequence[Result], view: View, *, left: int
) -> list[tuple[Round, dict[Measurement, Paths]]]:
    """Return up to ``left`` rounds, each with the paths of its tests; [] where nothing reads low or can be chosen."""
    if left <= 0 or not can_choose(state) or asked_exchange(state) == "cm":
        return []
    pairs = {test: _paths(state, test, result) for test, result in _pairs(state, results, view)}
    orders = {test: list(_order(state, test, paths)) for test, paths in pairs.items()}
    rounds = []
    for at in range(ROUNDS):
        now = {test: order[at] for test, order in orders.items() if at < len(order)}
        for turn in schedule.repeat(now, state.tests):
            rounds.append((turn, {test: now[test] for test in turn}))
    return rounds[:left]


def _pairs(state: State, results: Sequence[Result], view: View) -> Iterator[tuple[Measurement, Result]]:
    """Yield up to _PAIRS tests of each rail that read low beyond chance, between ports that both work with others."""
    partners: dict[tuple[str, str], set[str]] = {}
    for result in results:
        if readings(result)[0] < readings(result)[1]:
            for (host, rail), (peer, _rail) in zip(ends_of(result), ends_of(result)[::-1]):
                partners.setdefault((host, rail), set()).add(peer)
    busy: set[tuple[str, str]] = set()
    counts: dict[str, int] = {}
    for result in sorted(_low(results, view), key=lambda one: (-_between(one, view), -readings(one)[0], subject(one))):
        test, ends = subject(result), set(ends_of(result))
        works = all(partners.get(end, set()) - {test.client, test.server} for end in ends)
        if not works or ends & busy or counts.get(test.rail, 0) >= _PAIRS or not _usable(state, test):
            continue
        busy |= ends
        counts[test.rail] = counts.get(test.rail, 0) + 1
        yield test, result


def _low(results: Sequence[Result], view: View) -> list[Result]:
    """Return the results with low readings that chance does not explain."""
    seen = understood(results, view)[0]
    found = [low.result for _part, own in seen.found for low in own] + [low.result for low in seen.steady]
    found += [result for result in results if result["verdict"] == "fail"]
    return list({subject(result): result for result in found}.values())


def _between(result: Result, view: View) -> bool:
    homes = [view.homes.get(result[side], "") for side in ("client", "server")]
    return homes[0] != homes[1]


def _usable(state: State, test: Measurement) -> bool:
    """Return whether a test can be repeated on one path of its own."""
    single = not test.star and test.client != test.server and test in state.attempts and not blocked(state, test)
    return single and (most_labels(state, test) > 0 or lids(state, test) > 1)


def _paths(state: State, test: Measurement, result: Result) -> list[Paths]:
    """Return the paths to try: those of a low reading of the test, and others."""
    count = lids(state, test)
    if count > 1:
        return [Paths(offset=offset) for offset in range(min(count, _PATHS))]
    low: Mapping[str, Any] = next(
        (one for one in result["passes"] if one["verdict"] == "fail" and one.get("flow_labels")), {}
    )
    drawn = labels(number_of(state.tests["seed"], test, (0, 0)), 2 * _PATHS)
    tried = dict.fromkeys((*low.get("flow_labels", ())[:_KNOWN], *drawn))
    return [Paths((label,)) for label in list(tried)[:_PATHS]]


def _order(state: State, test: Measurement, paths: Collection[Paths]) -> Iterator[Paths]:
    """Yield the paths again and again, each time in another order: tests of other pairs then meet others of them."""
    named = {str(path): path for path in paths}
    for turn in range(ROUNDS // len(named)):
        seed = number_of(state.tests["seed"], test, (0, turn))
        yield from (named[name] for name in shuffled(named, seed))
