# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Tests that failed and passed when they were repeated: as many as chance explains are a warning, more a failure."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from ...._common.reader import and_more
from ..schedule.schedule import label

Result = Mapping[str, Any]
# So seldom may chance alone make a failure, over all rails, ports or pairs that are compared.
SIGNIFICANT = 0.01
_SHOWN = 3
# From the most specific on: pair, port, rail.
_KINDS = ("pair", "port", "rail")
# (kind, rail, host, peer)
Scope = tuple[str, str, str, str]


def flipped(result: Result) -> bool:
    """Return whether a test passed that read too little, or showed a fault, before it was repeated."""
    passes = result["passes"]
    if len(passes) < 2 or result["verdict"] != "pass":
        return False
    if any(one.get("fault") for one in passes):
        return True
    return any(one.get("repeated") for one in passes) and first_reading(result) is not None


def first_reading(result: Result) -> float | None:
    """Return the reading by which a test failed first."""
    failed = (one for one in result["passes"] if one["verdict"] == "fail" and not one.get("repeated"))
    found: float | None = next((one.get("value") for one in failed), None)
    return found


def find(results: Sequence[Result], options: Mapping[str, Any]) -> list[dict[str, Any]]:
    """Return ``unsteady`` of the report.

    Each is {where, kind, rail, host, peer, count, tests, severity, text, readings}: ``count`` of the ``tests`` of a
    rail, port or pair failed and passed when they were repeated. ``options``: the plan's ``thresholds.unsteady``:
    {severity, background}, the latter being the share of tests that do so without a cause.
    """
    found = [result for result in results if flipped(result)]
    told = []
    for where in dict.fromkeys(result["where"] for result in found):
        here = [result for result in results if result["where"] == where and result["value"] is not None]
        told += _of_place([result for result in found if result["where"] == where], here, options)
    return told


def _of_place(left: list[Result], results: Sequence[Result], options: Mapping[str, Any]) -> list[dict[str, Any]]:
    tests = Counter(scope for result in results for scope in _scopes(result))
    compared = Counter(scope[0] for scope in tests)
    told = []
    while left:
        counts = Counter(scope for result in left for scope in _scopes(result))
        chances = {
            scope: compared[scope[0]] * chance(count, tests[scope], options["background"])
            for scope, count in counts.items()
        }
        best = min(chances, key=lambda scope: (chances[scope], _KINDS.index(scope[0]), scope))
        if chances[best] >= SIGNIFICANT:
            break
        own = [one for one in left if best in _scopes(one)]
        told.append(_row(best, own, tests[best], options=options, many=True))
        left = [one for one in left if best not in _scopes(one)]
    for rail in dict.fromkeys(result["rail"] for result in left):
        scope = ("rail", rail, "", "")
        told.append(
            _row(scope, [one for one in left if one["rail"] == rail], tests[scope], options=options, many=False)
        )
    return told


def _scopes(result: Result) -> list[Scope]:
    """Return the rail, the ports and the pair of a test."""
    rail, peer_rail = result["rail"], result.get("peer_rail") or result["rail"]
    first, second = sorted((result["client"], result["server"]))
    ports = {(result["client"], rail), (result["server"], peer_rail)}
    return [("rail", rail, "", ""), *(("port", of, host, "") for host, of in ports), ("pair", rail, first, second)]


def chance(count: int, tests: int, background: float) -> float:
    """Return how likely ``count`` or more of ``tests`` are when each is one with the probability ``background``."""
    return min(1.0, math.fsum(_tail(count, tests, background))) if count else 1.0


def _tail(count: int, tests: int, background: float) -> Iterator[float]:
    logs = math.log(background), math.log1p(-background)
    whole = math.lgamma(tests + 1)
    for number in range(count, tests + 1):
        ways = whole - math.lgamma(number + 1) - math.lgamma(tests - number + 1)
        term = math.exp(ways + number * logs[0] + (tests - number) * logs[1])
        yield term
        if number > tests * background and term < 1e-12:
            return


def _row(scope: Scope, own: Sequence[Result], tests: int, *, options: Mapping[str, Any], many: bool) -> dict[str, Any]:
    """Return a finding; ``many``: more than the background explains."""
    kind, rail, host, peer = scope
    place = {"rail": rail, "port": f"{host} {rail}", "pair": f"{host} and {peer} {rail}"}[kind]
    readings = [_reading(result) for result in own]
    shown = [
        f"{one['client']} to {one['server']} {one['label']}: {_first(one)}, then {one['value']:.3g} {one['unit']}"
        for one in readings[:_SHOWN]
    ]
    more = "more than" if many else "no more than"
    text = (
        f"{place}: unsteady: {len(own)} of {tests} tests failed and passed when repeated, {more} the "
        f"background rate of {options['background']:g} explains ({'; '.join(shown)}{and_more(own, _SHOWN)})"
    )
    return {
        "where": own[0]["where"],
        "kind": kind,
        "rail": rail,
        "host": host or None,
        "peer": peer or None,
        "count": len(own),
        "tests": tests,
        "severity": options["severity"] if many else "warning",
        "text": text,
        "readings": [{key: one[key] for key in one if key != "label"} for one in readings],
    }


def _reading(result: Result) -> dict[str, Any]:
    same = {key: result[key] for key in ("client", "server", "test", "value", "unit")}
    first = first_reading(result)
    why = {} if first is not None else {"reason": next(one["reason"] for one in result["passes"] if one.get("fault"))}
    return {**same, "first": first, "label": label(result), **why}


def _first(reading: Mapping[str, Any]) -> str:
    return reading["reason"] if reading["first"] is None else f"{reading['first']:.3g}"
