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
from .ways import exchange_of

Result = Mapping[str, Any]
# Rounds of a pair, the paths that are tried in them, how many of these are of its low reading, and pairs of a rail.
ROUNDS = 18
_PATHS = 6
_KNOWN = 4
_PAIRS = 2
# Where groups are not known, as many hosts may have more than one switch.
_SEVERAL_SWITCHES = 8


def planned(
    state: State, results: Sequence[Result], view: View, *, left: int
) -> list[tuple[Round, dict[Measurement, Paths]]]:
    """Return up to ``left`` rounds, each with the paths of its tests; [] where nothing reads low or can be chosen.

    The first time each path once. After that those of tests on which some paths read low and some do not.
    """
    if left <= 0 or not can_choose(state) or asked_exchange(state) == "cm":
        return []
    again = bool(state.probes)
    found = _mixed(state, results) if again else _pairs(state, results, view)
    orders = {test: list(_order(state, test, _paths(state, test, result), again=again)) for test, result in found}
    rounds = []
    for at in range(ROUNDS):
        now = {test: order[at] for test, order in orders.items() if at < len(order)}
        for turn in schedule.repeat(now, state.tests):
            rounds.append((turn, {test: now[test] for test in turn}))
    return rounds[:left]


def _mixed(state: State, results: Sequence[Result]) -> Iterator[tuple[Measurement, Result]]:
    """Yield the tests of which some paths read low and some do not, as far as they can still be repeated."""
    for result in results:
        if {"pass", "fail"} <= {row["verdict"] for row in result.get("paths", ())}:
            test = subject(result)
            if test in state.probes and _usable(state, test):
                yield test, result


def _pairs(state: State, results: Sequence[Result], view: View) -> Iterator[tuple[Measurement, Result]]:
    """Yield up to _PAIRS tests of each rail that read low beyond chance, between ports that both work with others."""
    low = _low(results, view)
    if not low:
        return
    partners: dict[tuple[str, str], set[str]] = {}
    for result in results:
        if readings(result)[0] < readings(result)[1]:
            for (host, rail), (peer, _rail) in zip(ends_of(result), ends_of(result)[::-1]):
                partners.setdefault((host, rail), set()).add(peer)
    busy: set[tuple[str, str]] = set()
    counts: dict[str, int] = {}
    hosts = {host for host, _rail in partners}
    for result in sorted(low, key=lambda one: (-readings(one)[0], subject(one))):
        test, ends = subject(result), set(ends_of(result))
        works = all(partners.get(end, set()) - {test.client, test.server} for end in ends)
        if (
            not works
            or not _may_part(result, view, len(hosts))
            or ends & busy
            or counts.get(test.rail, 0) >= _PAIRS
            or not _usable(state, test)
        ):
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


def _may_part(result: Result, view: View, hosts: int) -> bool:
    """Return whether there may be several paths between two hosts: none inside a group, or in a small fabric."""
    if not view.homes:
        return hosts >= _SEVERAL_SWITCHES
    homes = [view.homes.get(result[side], "") for side in ("client", "server")]
    return homes[0] != homes[1]


def _usable(state: State, test: Measurement) -> bool:
    """Return whether a test can be repeated on one path of its own."""
    single = not test.star and test.client != test.server and test in state.attempts and not blocked(state, test)
    # RDMA-CM, which a test takes after another exchange failed, ignores what is chosen.
    single = single and exchange_of(state, test) == asked_exchange(state)
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


def _order(state: State, test: Measurement, paths: Collection[Paths], *, again: bool) -> Iterator[Paths]:
    """Yield each path, or those ``again``, each time in another order: other pairs then meet others of them."""
    named = {str(path): path for path in paths}
    for turn in range(1, ROUNDS // len(named)) if again else (0,):
        seed = number_of(state.tests["seed"], test, (0, turn))
        yield from (named[name] for name in shuffled(named, seed))
