# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The report as text for a terminal: a table rail by rail, then what went wrong."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

_HEAD = ("where", "rail", "pairs", "pass", "fail", "no_data", "worst Gb/s", "median Gb/s", "verdict")
_SHOWN = 10


def table(report: Mapping[str, Any]) -> str:
    """Return one line a rail and place: pairs, pass, fail, no_data, worst and median Gb/s, and the verdict."""
    rows = [_HEAD, *(_row(rail) for rail in report["rails"])]
    widths = [max(len(row[column]) for row in rows) for column in range(len(_HEAD))]
    lines = [
        "  ".join(_pad(cell, width, index) for index, (cell, width) in enumerate(zip(row, widths))) for row in rows
    ]
    return "\n".join([*(line.rstrip() for line in lines), "verdict: %s" % report["verdict"]])


def problems(report: Mapping[str, Any], shown: int = _SHOWN) -> list[str]:
    """Return a line for each result that did not pass, the first ``shown`` of them, and how many more there are."""
    bad = [result for result in report["results"] if result["verdict"] != "pass"]
    lines = [_problem(result) for result in bad[:shown]]
    if len(bad) > shown:
        lines.append("... and %d more; report.html has all" % (len(bad) - shown))
    return lines


def number(value: float | None) -> str:
    """Return a rate for people: three significant digits, ``-`` for none."""
    if value is None:
        return "-"
    return "%.1f" % value if value >= 100 else "%.3g" % value


def _problem(result: Mapping[str, Any]) -> str:
    return "%s %s %s -> %s %s: %s: %s" % (
        result["where"],
        result["rail"],
        result["client"],
        result["server"],
        result["test"],
        result["verdict"],
        result["reason"],
    )


def _row(rail: Mapping[str, Any]) -> tuple[str, ...]:
    counts = (str(rail[key]) for key in ("pairs", "pass", "fail", "no_data"))
    return (rail["where"], rail["rail"], *counts, number(rail["worst"]), number(rail["median"]), rail["verdict"])


def _pad(cell: str, width: int, column: int) -> str:
    return cell.ljust(width) if column in (0, 1, len(_HEAD) - 1) else cell.rjust(width)


def text(report: Mapping[str, Any], shown: int = _SHOWN) -> str:
    """Return the whole console report: problems, warnings, table."""
    parts: Sequence[str] = [
        *problems(report, shown),
        *report["findings"],
        *("warning: %s" % warning for warning in report["warnings"]),
        table(report),
    ]
    return "\n".join(parts) + "\n"
