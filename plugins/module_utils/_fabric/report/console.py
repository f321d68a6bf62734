# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The report as text for a terminal: what is broken, then a table rail by rail. Short whatever the fleet's size."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from ..._common.reader import left_out
from ..measure.diagnosis.wording import level
from ..measure.judge import unmeasured
from ..measure.judge.verdict import overall
from ..measure.schedule.schedule import label
from .collectives import lines as collectives
from .runs import about
from .summary import confirmed, stops, subset

_HEAD = ("where", "rail", "pairs", "pass", "fail", "no_data", "worst Gb/s", "median Gb/s", "verdict")
_SHOWN = 10
# Lines beside those that ``shown`` asks for; with its default the whole has at most 30.
_OTHERS = 20
_RAILS = 8


def text(report: Mapping[str, Any], shown: int = _SHOWN) -> str:
    """Return the whole console report, at most shown + 20 lines.

    Causes, what failed, comparison, warnings, what was measured and by which run, table.
    """
    rails = ["; ".join(parts) for parts in about(report) if parts] + table(report).splitlines()
    noticed = [*_noticed(report), *_first(collectives(report), 3)]
    lines = [*_causes(report, shown), *noticed, *_compared(report), *_warned(report)]
    room = max(shown + _OTHERS - len(rails), 1)
    if len(lines) > room:
        lines = [*lines[: room - 1], "...%s lines; report.html has all" % left_out(len(lines) - room + 1)]
    return "\n".join([*lines, *rails]) + "\n"


def table(report: Mapping[str, Any]) -> str:
    """Return one line a rail and place: pairs, pass, fail, no_data, worst and median Gb/s, and the verdict.

    Above 8 lines those that passed become one line a place.
    """
    rows = [_HEAD, *_rows(report["rails"])]
    widths = [max(len(row[column]) for row in rows) for column in range(len(_HEAD))]
    lines = [
        "  ".join(_pad(cell, width, index) for index, (cell, width) in enumerate(zip(row, widths))) for row in rows
    ]
    return "\n".join([*(line.rstrip() for line in lines), "verdict: %s" % verdict_line(report)])


def verdict_line(report: Mapping[str, Any]) -> str:
    """Return the verdict, faults that are confirmed in spite of missing results, and what the run does not cover."""
    faults = confirmed(report) if report["verdict"] == "no_data" else 0
    found = str(report["verdict"]) + (", %d fault%s confirmed" % (faults, "s" * (faults > 1)) if faults else "")
    left_out = subset(report)
    return "%s (subset: %s)" % (found, "; ".join(left_out)) if left_out else found


def problems(report: Mapping[str, Any], shown: int = _SHOWN) -> list[str]:
    """Return a line for each result that did not pass, the first ``shown`` of them, and how many more there are."""
    bad = [result for result in report["results"] if result["verdict"] != "pass"]
    return _first([_problem(result) for result in bad[:shown]], shown, len(bad))


def number(value: float | None) -> str:
    """Return a rate for people: three significant digits, ``-`` for none."""
    if value is None:
        return "-"
    return "%.1f" % value if value >= 100 else "%.3g" % value


def _causes(report: Mapping[str, Any], shown: int) -> list[str]:
    """Blames say what results would only repeat; without diagnoses the findings and the results themselves."""
    diagnoses = report.get("diagnoses", [])
    left_out = ["NO DATA: " + text for text in unmeasured.texts(report.get("unmeasured", []))]
    if not diagnoses:
        found = [text for text in report["findings"] if "NO DATA: " + text not in left_out]
        return [*problems(report, shown), *_first(found, shown), *_first(left_out, shown)]
    bad = sum(1 for result in report["results"] if result["verdict"] != "pass")
    lines = ["%s: %s" % (level(diagnosis), diagnosis["text"]) for diagnosis in diagnoses[:shown]]
    rest = ["%d of %d tests did not pass; report.html lists them" % (bad, len(report["results"]))]
    return [*_first(lines, shown, len(diagnoses)), *_first(left_out, shown), *rest]


def _noticed(report: Mapping[str, Any]) -> list[str]:
    """Gates first, since they decide; then links, unsteady tests, outliers, the baseline and GPU memory."""
    failing = stops(report)
    gates = ["gate %s: %s" % (row["name"], row["text"]) for row in failing if "name" in row]
    told = [
        ("fail: " if row in failing else "warning: ") + row["text"]
        for name in ("unsteady", "outliers", "baseline")
        for row in report.get(name, [])[:5]
    ]
    links = ["link: " + row["text"] for row in report.get("links", [])[:5]]
    rows = sum(len(report.get(name, [])) for name in ("unsteady", "outliers", "baseline"))
    # What costs most first: findings, then the rails where GPU memory is slowest.
    memory = sorted(report.get("gpu_memory", []), key=lambda row: (not row["finding"], row["share"] or 1.0))
    told = [*_first(told, 3, rows), *_first([row["finding"] or row["text"] for row in memory], 2)]
    return [*_first(gates, 3), *_first(links, 2, len(report.get("links", []))), *told]


def _compared(report: Mapping[str, Any]) -> list[str]:
    return ["compared: " + line for line in _first(report.get("comparison", {}).get("text", []), 3)]


def _warned(report: Mapping[str, Any]) -> list[str]:
    return _first(["warning: %s" % warning for warning in report["warnings"]], 5)


def _first(lines: Sequence[str], most: int, total: int | None = None) -> list[str]:
    """Return the first lines, and how many more there are of ``total`` (default: of these lines)."""
    more = (len(lines) if total is None else total) - min(most, len(lines))
    return [*lines[:most], "...%s; report.html has all" % left_out(more)] if more else list(lines[:most])


def _problem(result: Mapping[str, Any]) -> str:
    place = "%s %s %s -> %s" % tuple(result[key] for key in ("where", "rail", "client", "server"))
    return "%s %s: %s: %s" % (place, label(result), result["verdict"], result["reason"])


def _rows(rails: Sequence[Mapping[str, Any]]) -> list[tuple[str, ...]]:
    if len(rails) <= _RAILS:
        return [_row(rail) for rail in rails]
    bad = [rail for rail in rails if rail["verdict"] != "pass"]
    good = [rail for rail in rails if rail["verdict"] == "pass"]
    places = [_together([rail for rail in good if rail["where"] == where]) for where in ("host", "pod")]
    rows = [_row(rail) for rail in [*bad[:_RAILS], *(place for place in places if place)]]
    if len(bad) > _RAILS:
        rows.append(_row({**(_together(bad[_RAILS:]) or {}), "where": "..."}))
    return rows


def _together(rails: Sequence[Mapping[str, Any]]) -> dict[str, Any] | None:
    """Return one row for several rails; the median of medians says enough."""
    if not rails:
        return None
    worst = [rail["worst"] for rail in rails if rail["worst"] is not None]
    medians = sorted(rail["median"] for rail in rails if rail["median"] is not None)
    return {
        **{key: sum(rail[key] for rail in rails) for key in ("pairs", "pass", "fail", "no_data")},
        "where": rails[0]["where"],
        "rail": "%d rails" % len(rails) if len(rails) > 1 else rails[0]["rail"],
        "worst": min(worst) if worst else None,
        "median": medians[len(medians) // 2] if medians else None,
        "verdict": overall(rails),
    }


def _row(rail: Mapping[str, Any]) -> tuple[str, ...]:
    counts = (str(rail[key]) for key in ("pairs", "pass", "fail", "no_data"))
    return (rail["where"], rail["rail"], *counts, number(rail["worst"]), number(rail["median"]), rail["verdict"])


def _pad(cell: str, width: int, column: int) -> str:
    return cell.ljust(width) if column in (0, 1, len(_HEAD) - 1) else cell.rjust(width)
