# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Readings that are low now and then: as many as chance explains are a warning, more a failure."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from ...._common.reader import and_more
from ..schedule.schedule import label
from .components import (
    REMEDIES,
    Component,
    Low,
    Totals,
    View,
    lows_of,
    place_of,
)
from .explain import Explanation, explain
from .permanent import Review, Reviewed, without_permanent
from .significance import MOST_BACKGROUND

Result = Mapping[str, Any]
_SHOWN = 3
# So many readings of a finding are in the report.
_KEPT = 200


def first_reading(result: Result) -> float | None:
    """Return the reading by which a test failed first."""
    failed = (one for one in result["passes"] if one["verdict"] == "fail")
    found: float | None = next((one.get("value") for one in failed), None)
    return found


def understood(results: Reviewed, view: View) -> tuple[Explanation, Totals]:
    """Return what the low readings of one place have in common, without those that a permanent fault explains."""
    review = Review.of(results, view)
    if not review.lows:
        return Explanation([], [], view.background), Totals()
    left = without_permanent(review)
    if len(left) == len(review.results):
        return explain(review.lows, review.totals, view.background), review.totals
    totals = Totals.of(left, view.homes)
    return explain(lows_of(left, view.homes), totals, view.background), totals


def find(
    results: Sequence[Result], options: Mapping[str, Any], homes: Mapping[str, str] | None = None
) -> list[dict[str, Any]]:
    """Return ``unsteady`` of the report.

    Each is {where, kind, rail, host, peer, count, tests, severity, text, readings}, and group, peer_group, direction
    where it has them: ``count`` of the ``tests`` (readings) of a component were low. ``options``: the plan's
    ``thresholds.unsteady``: {severity, background}, the latter being the share of readings that are low without a
    cause. ``homes``: host -> its group.
    """
    told = []
    for where in dict.fromkeys(result["where"] for result in results):
        here = [result for result in results if result["where"] == where]
        told += _of_place(here, options, homes or {})
    return told


def _of_place(results: Sequence[Result], options: Mapping[str, Any], homes: Mapping[str, str]) -> list[dict[str, Any]]:
    seen, totals = understood(results, View(options["background"], homes))
    told = [
        _row(part, own, totals.tests[part], background=seen.background, severity=options["severity"])
        for part, own in seen.found
    ]
    # What failed for good has a diagnosis; by chance is what passed.
    chance = [low for low in seen.rest if low.result["verdict"] == "pass"]
    for rail in dict.fromkeys(low.result["rail"] for low in chance):
        own = [low for low in chance if low.result["rail"] == rail]
        tests = totals.tests[Component("rail", rail)]
        told.append(_row(Component("rail", rail), own, tests, background=seen.background, severity=""))
    return told


def _row(part: Component, own: Sequence[Low], tests: int, *, background: float, severity: str) -> dict[str, Any]:
    """Return a finding; ``severity``: of more than the background explains, "" of less."""
    count = sum(low.number for low in own)
    shown = [_shown(_reading(low.result)) for low in own[:_SHOWN]]
    many = "more" if severity else "no more"
    rate = f"{background:.2g}" if part.kind != "run" else f"{MOST_BACKGROUND:g} that a run may have"
    text = (
        f"{place_of(part)}: unsteady: {count} of {tests} readings are too low or show a fault, {many} than the "
        f"background rate of {rate} explains ({'; '.join(shown)}{and_more(own, _SHOWN)})"
    )
    return {
        "where": own[0].result["where"],
        "kind": part.kind,
        "rail": part.rail or None,
        **dict(_names(part)),
        "count": count,
        "tests": tests,
        "severity": severity or "warning",
        "text": f"{text}: {REMEDIES[part.kind]}" if severity else text,
        "readings": [
            {key: value for key, value in _reading(low.result).items() if key != "label"} for low in own[:_KEPT]
        ],
    }


def _names(part: Component) -> Iterator[tuple[str, str | None]]:
    """Yield the keys that name a component."""
    of_hosts = part.kind in ("pair", "direction", "port", "host")
    yield "host", part.one if of_hosts else None
    yield "peer", part.other if part.kind == "pair" else None
    if part.kind == "direction":
        yield "direction", part.other
    if part.one and not of_hosts:
        yield "group", part.one
    if part.other and not of_hosts:
        yield "peer_group", part.other


def _reading(result: Result) -> dict[str, Any]:
    same = {key: result[key] for key in ("client", "server", "test", "value", "unit")}
    first = first_reading(result)
    why = {} if first is not None else {"reason": _reason(result)}
    return {**same, "first": first, "label": label(result), **why}


def _reason(result: Result) -> str:
    found: str = next((one["reason"] for one in result["passes"] if one.get("fault")), result.get("reason") or "")
    return found


def _shown(reading: Mapping[str, Any]) -> str:
    first = reading["reason"] if reading["first"] is None else f"{reading['first']:.3g}"
    then = f", then {reading['value']:.3g} {reading['unit']}" if reading["value"] != reading["first"] else ""
    unit = "" if then or reading["first"] is None else f" {reading['unit']}"
    return f"{reading['client']} to {reading['server']} {reading['label']}: {first}{unit}{then}"
