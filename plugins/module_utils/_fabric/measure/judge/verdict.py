# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Pass, fail or no_data: single results, their sums per rail, and whom they point at."""

from __future__ import annotations

import statistics
from collections import Counter
from collections.abc import Mapping, Sequence
from typing import Any

from ..diagnosis.components import VIEW, View
from ..diagnosis.follow_up import diagnose
from ..diagnosis.wording import Diagnosis
from ..readings.perftest import Sample
from ..schedule import crossing
from .expectation import ABOVE, Expectation

PASS, FAIL, NO_DATA = "pass", "fail", "no_data"
VERDICTS = (PASS, FAIL, NO_DATA)
Result = Mapping[str, Any]


def view_of(plan: Mapping[str, Any], tests: Mapping[str, Any]) -> View:
    """Return how results of a plan are read. ``tests``: complete."""
    return View(plan["thresholds"]["unsteady"]["background"], crossing.homes(tests))


def judge(sample: Sample | None, reason: str, expectation: Expectation) -> tuple[str, str]:
    """Return the verdict of one test and its reason ("" for a pass). No data is never a pass."""
    if sample is None:
        return NO_DATA, reason
    value = sample.value
    if expectation.ceiling is not None and not possible(value, expectation):
        most = gigabits(expectation.ceiling)
        return NO_DATA, f"{gigabits(value)} measured, more than the {most} that is possible: an invalid reading"
    if expectation.unit == "us":
        return _latency(value, expectation)
    if expectation.least is None:
        return NO_DATA, f"nothing to judge by: {expectation.why}"
    if value < expectation.least:
        return FAIL, f"{gigabits(value)} measured, {gigabits(expectation.least)} expected ({expectation.why})"
    return PASS, ""


def possible(value: float, expectation: Expectation) -> bool:
    """Return whether a rate is not above what the link carries; where that is not known, each is possible."""
    return expectation.ceiling is None or value <= expectation.ceiling * ABOVE


def _latency(value: float, expectation: Expectation) -> tuple[str, str]:
    """Return the verdict of a latency in us. Without a limit a reading passes; the fleet's outliers are told apart."""
    most = expectation.most
    if most is not None and value > most:
        return FAIL, f"{amount(value, 'us')} measured, at most {amount(most, 'us')} expected ({expectation.why})"
    return PASS, ""


def gigabits(value: float) -> str:
    """Return a rate in Gb/s for people, as amount does."""
    return amount(value, "Gb/s")


def amount(value: float, unit: str) -> str:
    """Return a value for people: three significant digits, more when it is large, and a unit that suits it."""
    if unit == "Gb/s" and 0 < value < 1:
        value, unit = value * 1000, "Mb/s"
    elif unit == "us" and value >= 1000:
        value, unit = value / 1000, "ms"
    return f"{value:.1f} {unit}" if value >= 100 else f"{value:.3g} {unit}"


def overall(results: Sequence[Result], unmeasured: Sequence[Mapping[str, str]] = ()) -> str:
    """Return the verdict of all: pass only when there are results, every one passed, and no port is unmeasured."""
    verdicts = {result["verdict"] for result in results}
    if verdicts == {PASS} and not unmeasured:
        return PASS
    return FAIL if FAIL in verdicts else NO_DATA


def rail_rows(results: Sequence[Result]) -> list[dict[str, Any]]:
    """Return one row per place and rail: pairs (each direction counts), verdicts, worst and median Gb/s."""
    groups: dict[tuple[str, str], list[Result]] = {}
    for result in results:
        groups.setdefault((result["where"], result["rail"]), []).append(result)
    rows = []
    for (where, rail), group in groups.items():
        # A latency is no rate: the worst of both would mean nothing. Neither would that of two kinds of memory.
        gpu = [result for result in group if result.get("memory") not in (None, "host")]
        rated = [result for result in gpu or group if result["unit"] == "Gb/s"]
        values = [result["value"] for result in rated if result["value"] is not None]
        counts = Counter(result["verdict"] for result in group)
        rows.append(
            {
                "where": where,
                "rail": rail,
                "pairs": len(group),
                **{verdict: counts[verdict] for verdict in VERDICTS},
                "worst": min(values) if values else None,
                "median": statistics.median(values) if values else None,
            }
        )
    return rows


def summary(
    results: Sequence[Result], unmeasured: Sequence[Mapping[str, str]] = (), *, view: View = VIEW
) -> dict[str, Any]:
    """Return the sums over all results, the rows per rail, the diagnoses and their sentences.

    ``unmeasured``: ports without any test.
    """
    counts = Counter(result["verdict"] for result in results)
    diagnoses = diagnose(results, view)
    return {
        "verdict": overall(results, unmeasured),
        "tests": len(results),
        **{verdict: counts[verdict] for verdict in VERDICTS},
        "rails": rail_rows(results),
        "findings": _sentences(diagnoses),
        "diagnoses": [found.to_dict() for found in diagnoses],
    }


def findings(results: Sequence[Result]) -> list[str]:
    """Return the sentences of all diagnoses, each with its place."""
    return _sentences(diagnose(results))


def _sentences(diagnoses: Sequence[Diagnosis]) -> list[str]:
    return [f"{'hosts' if found.where == 'host' else 'pods'}: {found.text}" for found in diagnoses]
