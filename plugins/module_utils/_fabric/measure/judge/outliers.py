# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Values far from the rest of their rail: what passed and yet is not like the others."""

from __future__ import annotations

import statistics
from collections.abc import Mapping, Sequence
from typing import Any

from ..schedule.schedule import label

# Fewer values than this say nothing about what is usual.
FEWEST = 6
# MAD to standard deviation, for values that scatter normally.
NORMAL = 1.4826
# The MAD of few values is often small by chance; it is widened by 1 + FEW / count (a factor of 2 for ten values).
FEW = 10


def find(results: Sequence[Mapping[str, Any]], options: Mapping[str, Any]) -> list[dict[str, Any]]:
    """Return ``outliers`` of the report.

    Each is {where, rail, client, server, test, value, median, deviations, severity, text}.
    ``results`` are those of the report; ``options`` the plan's ``thresholds.outliers``: {severity, deviations, margin,
    latency_margin}. A value is compared with those of its place, rail, test, size, memory and GPU paths, and is an
    outlier when it is worse than their median by more than ``deviations`` x 1.4826 x MAD and by more than the margin (a
    share of the median), so that a quiet fleet does not cry. Only what passed is told: a failure is told already.
    """
    groups: dict[tuple[Any, ...], list[Mapping[str, Any]]] = {}
    for result in results:
        if result["value"] is not None and result["verdict"] != "no_data":
            groups.setdefault(_group(result), []).append(result)
    return [found for group in groups.values() for found in _of_group(group, options)]


def _group(result: Mapping[str, Any]) -> tuple[Any, ...]:
    get = result.get
    named = (result["where"], result["rail"], result["test"], result["unit"])
    return (*named, get("size"), get("peer_rail"), get("memory"), get("star"), _gpu_paths(get("gpu")))


def _gpu_paths(gpu: Mapping[str, Any] | None) -> tuple[str | None, ...]:
    return tuple((gpu.get(side) or {}).get("path") for side in ("client", "server")) if gpu else ()


def _of_group(group: Sequence[Mapping[str, Any]], options: Mapping[str, Any]) -> list[dict[str, Any]]:
    if len(group) < FEWEST:
        return []
    latency = group[0]["unit"] == "us"
    values = [result["value"] for result in group]
    median = statistics.median(values)
    margin = options["latency_margin" if latency else "margin"]
    limit = options["deviations"]
    # The deviation is never so small that less than the margin is an outlier.
    deviation = max(NORMAL * _mad(values, median) * (1 + FEW / len(values)), margin * median / limit)
    found = []
    for result in group:
        worse = (result["value"] - median if latency else median - result["value"]) / deviation
        if worse > limit and result["verdict"] == "pass":
            found.append(_outlier(result, median, worse, count=len(group), severity=options["severity"]))
    return found


def _mad(values: Sequence[float], median: float) -> float:
    """Return the median distance from the median."""
    return statistics.median(abs(value - median) for value in values)


def _outlier(result: Mapping[str, Any], median: float, worse: float, *, count: int, severity: str) -> dict[str, Any]:
    same = {key: result[key] for key in ("where", "rail", "client", "server", "test", "value")}
    unit = result["unit"]
    change = abs(result["value"] - median) / median * 100
    text = (
        f"{result['client']} to {result['server']} {result['rail']} {label(result)}: {result['value']:.3g} {unit}, "
        f"{change:.0f} % {'more' if unit == 'us' else 'less'} than the median of {count} ({median:.3g} {unit})"
    )
    return {**same, "median": median, "deviations": round(worse, 1), "severity": severity, "text": text}
