# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Results of a big fleet in few bytes, for the script of the page: six characters a result."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from ..measure.judge.verdict import VERDICTS
from ..measure.schedule.schedule import label

# 64 signs that need no escape in HTML, JSON or a regular expression; two of them count to 4096.
ALPHABET = "0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz-_"
CODES = [a + b for a in ALPHABET for b in ALPHABET]
# A value is its share of the map's largest, in steps of 1/LEVELS; NO_VALUE when there is none.
LEVELS = 4000
NO_VALUE = 4095
# Reasons and passed results that are embedded at most, so that the page stays below 5 MB.
REASONS = 2000
PASSED = 500_000


@dataclass
class Grid:
    """The results of one heat map: one place, rail (two when crossed) and test, with its size where it has one."""

    where: str
    rail: str
    peer_rail: str
    test: str
    unit: str
    results: list[Mapping[str, Any]] = field(default_factory=list)

    @property
    def name(self) -> str:
        """What the map is called: ``rail0``, ``rail0 to rail1``."""
        return "%s to %s" % (self.rail, self.peer_rail) if self.peer_rail else self.rail

    @property
    def bad(self) -> list[Mapping[str, Any]]:
        """The results that did not pass."""
        return [result for result in self.results if result["verdict"] != "pass"]


def grids(results: Iterable[Mapping[str, Any]]) -> list[Grid]:
    """Return the heat maps of a report in the order in which its results have them."""
    found: dict[tuple[str, ...], Grid] = {}
    for result in results:
        key = (result["where"], result["rail"], result.get("peer_rail") or "", label(result), result["unit"])
        if key not in found:
            found[key] = Grid(*key)
        found[key].results.append(result)
    return list(found.values())


def embedded(maps: Sequence[Grid], hosts: Sequence[str]) -> dict[str, Any]:
    """Return what the script reads: names of hosts, reasons, and for each map its packed results by verdict.

    Of more than PASSED results only those that did not pass are packed; of hosts as many as two characters can count.
    """
    index = dict(zip(hosts, range(len(CODES))))
    all_of_them = sum(len(grid.results) for grid in maps) <= PASSED
    reasons: dict[str, int] = {}
    packed = [_packed(grid, index, reasons, passed=all_of_them) for grid in maps]
    read = {"signs": ALPHABET, "no_value": NO_VALUE, "levels": LEVELS}
    return {**read, "hosts": list(index), "maps": packed, "reasons": list(reasons), "whole": all_of_them}


def _packed(grid: Grid, index: Mapping[str, int], reasons: dict[str, int], *, passed: bool) -> dict[str, Any]:
    scale = max((result["value"] for result in grid.results if result["value"] is not None), default=0) or 1
    parts: dict[str, list[str]] = {verdict: [] for verdict in VERDICTS}
    why: dict[str, list[int]] = {verdict: [] for verdict in VERDICTS}
    for result in grid.results:
        verdict, value = result["verdict"], result["value"]
        client, server = index.get(result["client"]), index.get(result["server"])
        if (verdict == "pass" and not passed) or client is None or server is None:
            continue
        level = NO_VALUE if value is None else round(value / scale * LEVELS)
        parts[verdict].append(CODES[client] + CODES[server] + CODES[level])
        if verdict != "pass":
            why[verdict].append(_reason(result["reason"], reasons))
    strings = {verdict: "".join(own) for verdict, own in parts.items()}
    return {**strings, "scale": scale, "unit": grid.unit, "why": why["fail"] + why["no_data"]}


def _reason(text: str, reasons: dict[str, int]) -> int:
    """Return the number of a reason, -1 for those that are too many to embed."""
    if text not in reasons and len(reasons) >= REASONS:
        return -1
    return reasons.setdefault(text, len(reasons))
