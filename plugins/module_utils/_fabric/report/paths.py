# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Results inside and between the groups of hosts, apart: uplinks of switches are part of the latter only."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from ..measure.judge.verdict import overall, rail_rows
from ..measure.schedule import crossing


def rows(plan: Mapping[str, Any], results: Sequence[Mapping[str, Any]]) -> list[dict[str, Any]]:
    """Return a row per place, rail and levels of uplinks between the two ends, [] where all tests have the same.

    ``levels``: 0 inside a group. Tests of hosts that are in no group are left out. The other keys are those of rails.
    """
    tests = plan.get("tests", {})
    homes = crossing.homes(tests) if tests.get("groups") else {}
    groups: dict[int, list[Mapping[str, Any]]] = {}
    for result in results:
        ends = [homes.get(result[side]) for side in ("client", "server")]
        if ends[0] and ends[1]:
            groups.setdefault(crossing.levels(tests, ends[0], ends[1]), []).append(result)
    if len(groups) < 2:
        return []
    return [row for level in sorted(groups) for row in _rows(level, groups[level])]


def _rows(level: int, results: Sequence[Mapping[str, Any]]) -> list[dict[str, Any]]:
    own: dict[tuple[str, str], list[Mapping[str, Any]]] = {}
    for result in results:
        own.setdefault((result["where"], result["rail"]), []).append(result)
    return [
        {**row, "levels": level, "verdict": overall(own[row["where"], row["rail"]]), **_expected(own, row)}
        for row in rail_rows(results)
    ]


def _expected(own: Mapping[tuple[str, str], Sequence[Mapping[str, Any]]], row: Mapping[str, Any]) -> dict[str, Any]:
    """Return the lowest expectation in Gb/s, None where no test has one."""
    rates = [each["expected"] for each in own[row["where"], row["rail"]] if each["unit"] == "Gb/s" and each["expected"]]
    return {"expected": min(rates) if rates else None}


def said(levels: int) -> str:
    """Return between which hosts the tests of such a row are."""
    if not levels:
        return "inside a group"
    return "between groups" + (f", {levels} levels up" if levels > 1 else "")
