# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Pass, fail or no_data: single results, their sums per rail, and whom they point at."""

from __future__ import annotations

import statistics
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from .limits import ABOVE, Expectation
from .perftest import Sample

PASS, FAIL, NO_DATA = "pass", "fail", "no_data"
VERDICTS = (PASS, FAIL, NO_DATA)
Result = Mapping[str, Any]


def judge(sample: Sample | None, reason: str, expectation: Expectation) -> tuple[str, str]:
    """Return the verdict of one test and its reason ("" for a pass). No data is never a pass."""
    if sample is None:
        return NO_DATA, reason
    value = sample.value
    if expectation.ceiling is not None and value > expectation.ceiling * ABOVE:
        possible = gigabits(expectation.ceiling)
        return NO_DATA, f"{gigabits(value)} measured, more than the {possible} that is possible: a wrong reading"
    if expectation.unit == "us":
        return _latency(value, expectation)
    if expectation.least is None:
        return NO_DATA, f"nothing to judge by: {expectation.why}"
    if value < expectation.least:
        return FAIL, f"{gigabits(value)} measured, {gigabits(expectation.least)} expected ({expectation.why})"
    return PASS, ""


def _latency(value: float, expectation: Expectation) -> tuple[str, str]:
    """Return the verdict of a latency in us. Without a limit a reading passes; the fleet's outliers are told apart."""
    most = expectation.most
    if most is not None and value > most:
        return FAIL, f"{value:.3g} us measured, at most {most:.3g} us expected ({expectation.why})"
    return PASS, ""


def gigabits(value: float) -> str:
    """Return a rate in Gb/s with three significant digits, more when the rate is large."""
    return f"{value:.1f} Gb/s" if value >= 100 else f"{value:.3g} Gb/s"


def overall(results: Sequence[Result]) -> str:
    """Return the verdict of all: pass only when there are results and every one passed."""
    verdicts = {result["verdict"] for result in results}
    if verdicts == {PASS}:
        return PASS
    return FAIL if FAIL in verdicts else NO_DATA


def rail_rows(results: Sequence[Result]) -> list[dict[str, Any]]:
    """Return one row per place and rail: pairs (each direction counts), verdicts, worst and median Gb/s."""
    groups: dict[tuple[str, str], list[Result]] = {}
    for result in results:
        groups.setdefault((result["where"], result["rail"]), []).append(result)
    rows = []
    for (where, rail), group in groups.items():
        values = [result["value"] for result in group if result["value"] is not None]
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


def summary(results: Sequence[Result]) -> dict[str, Any]:
    """Return the sums over all results, the rows per rail and the findings."""
    counts = Counter(result["verdict"] for result in results)
    return {
        "verdict": overall(results),
        "tests": len(results),
        **{verdict: counts[verdict] for verdict in VERDICTS},
        "rails": rail_rows(results),
        "findings": findings(results),
    }


def findings(results: Sequence[Result]) -> list[str]:
    """Return sentences that name what failures have in common: a rail, a host, a host's rail, a direction."""
    told = []
    for where in dict.fromkeys(result["where"] for result in results):
        place = [result for result in results if result["where"] == where]
        told += [f"{'hosts' if where == 'host' else 'pods'}: {text}" for text in _of_place(place)]
    return told


def _of_place(results: Sequence[Result]) -> list[str]:
    told = []
    bad_hosts = _hosts_bad_everywhere(results)
    for host in bad_hosts:
        told.append(f"{host}: no test passed on any rail, others pass: the host itself{_most(results, host)}")
    rest = [result for result in results if not bad_hosts & {result["client"], result["server"]}]
    for rail in dict.fromkeys(result["rail"] for result in rest):
        told += _of_rail(rail, [result for result in rest if result["rail"] == rail])
    return told


def _hosts_bad_everywhere(results: Sequence[Result]) -> set[str]:
    if len({result["rail"] for result in results}) < 2:
        return set()
    names = {name for result in results for name in (result["client"], result["server"])}
    bad = {name for name in names if not any(_passed(result) for result in _touching(results, name))}
    good_exist = any(_passed(result) for result in results)
    return bad if good_exist else set()


def _of_rail(rail: str, results: Sequence[Result]) -> list[str]:
    failed = [result for result in results if not _passed(result)]
    if not failed:
        return []
    if len(failed) == len(results):
        where = "switch, VLAN or configuration of the rail, or both hosts"
        return [f"{rail}: none of {len(results)} tests passed: {where}{_most(failed)}"]
    names = sorted({name for result in failed for name in (result["client"], result["server"])})
    bad = [name for name in names if not any(_passed(result) for result in _touching(results, name))]
    told = [_bad_port(name, rail, _touching(results, name)) for name in bad]
    others = [result for result in failed if not set(bad) & {result["client"], result["server"]}]
    return told + (_one_way(rail, results, others) or _pairs(rail, results, others))


def _bad_port(name: str, rail: str, results: Sequence[Result]) -> str:
    count = f"none of its {len(results)} tests passed"
    return f"{name} {rail}: {count}, others pass: host, NIC port or cable{_most(results)}"


def _pairs(rail: str, results: Sequence[Result], failed: Sequence[Result]) -> list[str]:
    if not failed:
        return []
    pairs = sorted({f"{result['client']} to {result['server']}" for result in failed})
    shown = ", ".join(pairs[:4]) + (", ..." if len(pairs) > 4 else "")
    count = f"{len(failed)} of {len(results)} tests"
    return [f"{rail}: {count} between hosts that pass otherwise did not ({shown}){_most(failed)}"]


def _one_way(rail: str, results: Sequence[Result], failed: Sequence[Result]) -> list[str]:
    """Return a sentence when all the failures share one sender or one receiver whose every such test failed."""
    for side, word in (("client", "sender"), ("server", "receiver")):
        names = {result[side] for result in failed}
        if len(names) == 1:
            name = names.pop()
            same = [result for result in results if result[side] == name]
            if len(same) == len(failed) > 1:
                return [f"{name} {rail}: no test with it as {word} passed, the other direction does{_most(failed)}"]
    return []


def _passed(result: Result) -> bool:
    return bool(result["verdict"] == PASS)


def _touching(results: Iterable[Result], name: str) -> list[Result]:
    return [result for result in results if name in (result["client"], result["server"])]


def _most(results: Iterable[Result], name: str = "") -> str:
    """Return the most frequent reason in brackets."""
    reasons = Counter(r["reason"] for r in (_touching(results, name) if name else results) if r["reason"])
    return f" ({reasons.most_common(1)[0][0]})" if reasons else ""
