# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The heat maps of the page: tables for few hosts, drawings by the script for many, and a strip of all ports."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from ..._common.reader import some
from .console import number
from .matrix import Grid, embedded, grids
from .page_parts import PLACES, WORDS, Cell, Data, badge, more, place, signed, table
from .ports import Key, Port

# Up to this many hosts a map is a table with the numbers in it; above, a drawing with a table of what failed.
TEXT_UP_TO = 16
_HOSTS = 12
_OPEN = 2
# The strip of ports: its width in units of the drawing, the height of a rail, the least width of a mark.
_WIDTH, _HEIGHT, _LEAST = 1000, 16, 3
_EIGHTHS = 8


def maps(report: Mapping[str, Any]) -> Data | None:
    """Return the section of heat maps, with the data for the script when there are drawings."""
    found = grids(report["results"])
    names = list(report["hosts"])
    if not found:
        return None
    note = "Row: sender. Column: receiver."
    if len(names) <= TEXT_UP_TO:
        units = " and ".join(dict.fromkeys(grid.unit for grid in found))
        return {"note": "%s %s." % (note, units), "tables": [_table_map(grid, names, found) for grid in found]}
    note += " Arrow keys move from test to test, F to the next that did not pass."
    drawn = [_drawn_map(grid, found) for grid in found]
    return {"note": note, "tables": [], "drawn": drawn, "data": embedded(found, names)}


def strip(report: Mapping[str, Any], known: Mapping[Key, Port]) -> Data | None:
    """Return a line for each rail that did not pass, in which each host has its place.

    The height of a mark is the share of the port's tests that did not pass. Few hosts need no such overview.
    """
    names = list(report["hosts"])
    if len(names) <= TEXT_UP_TO:
        return None
    rows = []
    for row in report["rails"]:
        if row["verdict"] == "pass":
            continue
        own = [known.get((row["where"], name, row["rail"])) for name in names]
        words = "%s, %s: %s" % (row["rail"], place(row), WORDS[row["verdict"]])
        drawing = Cell(strip=words, width=_WIDTH, height=_HEIGHT, marks=list(_marks(own, names)))
        rows.append([badge(row["verdict"]), place(row), row["rail"], _broken(own), drawing])
    note = "Each line is a rail, from %s on the left to %s." % (names[0], names[-1])
    note += " A full bar: no test of that port passed."
    head = ("verdict", "measured", "rail", "half or more did not pass on", "ports of all hosts")
    return {"note": note, "table": table(head, rows, "strip")} if rows else None


def _broken(own: Iterable[Port | None]) -> str:
    bad = [port.host for port in own if port is not None and port.share >= 0.5]
    return some(bad, 6) or "none"


def _marks(own: Sequence[Port | None], names: Sequence[str]) -> Iterable[Data]:
    """Yield a rectangle for each run of ports that look the same: its verdict, its SVG path and who it is."""
    looks = [_look(port) for port in own]
    width = _WIDTH / len(own)
    start = 0
    later = []
    for at in range(1, len(own) + 1):
        if at < len(own) and looks[at] == looks[start]:
            continue
        verdict, eighths = looks[start]
        wide = (at - start) * width
        if eighths:
            name = names[start] if at == start + 1 else "%s to %s" % (names[start], names[at - 1])
            later.append((start * width, max(wide, _LEAST), verdict, eighths, name))
            verdict = "pass"
        if verdict:
            path = "M%.5g 0h%.5gv%dh-%.5gz" % (start * width, wide, _HEIGHT, wide)
            yield {"verdict": verdict, "path": path, "title": ""}
        start = at
    # What did not pass is drawn last, so that nothing covers it.
    for left, wide, verdict, eighths, name in later:
        high = _HEIGHT * eighths // _EIGHTHS
        path = "M%.5g %dh%.4gv%dh-%.4gz" % (left, _HEIGHT - high, wide, high, wide)
        yield {"verdict": verdict, "path": path, "title": name}


def _look(port: Port | None) -> tuple[str, int]:
    """Return the verdict ("" when not measured) and how many eighths of the tests did not pass, at least one."""
    if port is None:
        return "", 0
    return port.verdict, max(1, round(port.share * _EIGHTHS)) if port.verdict != "pass" else 0


def _title(grid: Grid, found: Sequence[Grid]) -> str:
    test = ", %s" % grid.test if len({other.test for other in found}) > 1 else ""
    return "%s, %s%s" % (grid.name, PLACES.get(grid.where, grid.where), test)


def _table_map(grid: Grid, hosts: Sequence[str], found: Sequence[Grid]) -> Data:
    used = {name for result in grid.results for name in (result["client"], result["server"])}
    names = [name for name in hosts if name in used]
    cells = {(result["client"], result["server"]): result for result in grid.results}
    rows = [{"host": row, "cells": [_cell(cells.get((row, column))) for column in names]} for row in names]
    return {"title": _title(grid, found), "name": grid.name, "hosts": names, "rows": rows}


def _cell(result: Mapping[str, Any] | None) -> Data | None:
    if result is None:
        return None
    verdict = result["verdict"]
    value = "none" if result["value"] is None else number(result["value"])
    tip = "%s to %s: %s %s, %s%s" % (
        result["client"],
        result["server"],
        value,
        result["unit"],
        WORDS[verdict],
        ": " + result["reason"] if result["reason"] else "",
    )
    return {"verdict": verdict, "title": tip, "text": signed(verdict, value)}


def _drawn_map(grid: Grid, found: Sequence[Grid]) -> Data:
    """Return a map that the script draws. Without script its sums and its table say what there is to see."""
    bad = grid.bad
    first = [other for other in found if other.bad][:_OPEN] or list(found[:1])
    verdict = "fail" if any(r["verdict"] == "fail" for r in bad) else "no_data" if bad else "pass"
    return {
        "open": any(grid is other for other in first),
        "verdict": badge(verdict),
        "title": _title(grid, found),
        "name": grid.name,
        "counts": "%d of %d tests passed" % (len(grid.results) - len(bad), len(grid.results)),
        **_worst(grid),
    }


def _worst(grid: Grid) -> Data:
    """Return the hosts with the largest share of tests that did not pass, sent and received apart."""
    sums: dict[str, list[int]] = {}
    for result in grid.results:
        for at, name in ((0, result["client"]), (2, result["server"])):
            row = sums.setdefault(name, [0, 0, 0, 0])
            row[at] += result["verdict"] == "pass"
            row[at + 1] += 1
    bad = [(name, row) for name, row in sums.items() if row[0] + row[2] < row[1] + row[3]]
    bad.sort(key=lambda item: ((item[1][0] + item[1][2]) / (item[1][1] + item[1][3]), item[0]))
    rows = [[name, "%d of %d" % (row[0], row[1]), "%d of %d" % (row[2], row[3])] for name, row in bad[:_HOSTS]]
    head = ("host", "sent and passed", "received and passed")
    return {"table": table(head, rows), "more": more(len(rows), len(bad), "hosts")}
