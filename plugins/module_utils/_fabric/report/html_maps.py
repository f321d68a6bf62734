# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The heat maps of the page: tables for few hosts, drawings by the script for many, and a strip of all ports."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from html import escape
from typing import Any

from .console import number
from .html_parts import PLACES, SIGNS, WORDS, Raw, badge, more, place, section, table
from .matrix import Grid, embedded, grids
from .ports import Key, Port

# Up to this many hosts a map is a table with the numbers in it; above, a drawing with a table of what failed.
TEXT_UP_TO = 16
_HOSTS = 12
_OPEN = 2
# The strip of ports: its width in units of the drawing, the height of a rail, the least width of a mark.
_WIDTH, _HEIGHT, _LEAST = 1000, 16, 3
_EIGHTHS = 8


def maps(report: Mapping[str, Any]) -> str:
    """Return the section of heat maps, with the data for the script when there are drawings."""
    found = grids(report["results"])
    names = list(report["hosts"])
    if not found:
        return ""
    if len(names) <= TEXT_UP_TO:
        body = '<div class="maps">%s</div>' % "".join(_table_map(grid, names, found) for grid in found)
        return section("Who reached whom", body, "Row: sender. Column: receiver. %s." % " and ".join(_units(found)))
    body = "".join(_drawn_map(number_, grid, found) for number_, grid in enumerate(found))
    data = json.dumps(embedded(found, names), separators=(",", ":")).replace("<", "\\u003c")
    script = '<script type="application/json" id="data">%s</script>' % data
    note = "Row: sender. Column: receiver. Arrow keys move from test to test, F to the next that did not pass."
    return section("Who reached whom", body + script, note)


def strip(report: Mapping[str, Any], known: Mapping[Key, Port]) -> str:
    """Return a line for each rail that did not pass, in which each host has its place.

    The height of a mark is the share of the port's tests that did not pass. Few hosts need no such overview.
    """
    names = list(report["hosts"])
    if len(names) <= TEXT_UP_TO:
        return ""
    rows = []
    for row in report["rails"]:
        if row["verdict"] == "pass":
            continue
        own = [known.get((row["where"], name, row["rail"])) for name in names]
        marks = "".join(_marks(own, names))
        drawing = '<svg viewBox="0 0 %d %d" preserveAspectRatio="none" role="img" aria-label="%s, %s: %s">%s</svg>' % (
            _WIDTH,
            _HEIGHT,
            escape(row["rail"]),
            place(row),
            WORDS[row["verdict"]],
            marks,
        )
        rows.append([badge(row["verdict"]), place(row), row["rail"], _broken(own), Raw(drawing)])
    note = "Each line is a rail, from %s on the left to %s." % (names[0], names[-1])
    note += " A full bar: no test of that port passed."
    head = ("verdict", "measured", "rail", "half or more did not pass on", "ports of all hosts")
    return section("Ports of the rails that did not pass", table(head, rows, "strip"), note)


def _broken(own: Iterable[Port | None]) -> str:
    bad = [port.host for port in own if port is not None and port.share >= 0.5]
    return ", ".join(bad[:6]) + (" and %d more" % (len(bad) - 6) if len(bad) > 6 else "") or "none"


def _marks(own: Sequence[Port | None], names: Sequence[str]) -> Iterable[str]:
    """Yield a rectangle for each run of ports that look the same."""
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
            yield '<path class="%s" d="M%.5g 0h%.5gv%dh-%.5gz"/>' % (verdict, start * width, wide, _HEIGHT, wide)
        start = at
    # What did not pass is drawn last, so that nothing covers it.
    for left, wide, verdict, eighths, name in later:
        high = _HEIGHT * eighths // _EIGHTHS
        yield '<path class="%s" d="M%.5g %dh%.4gv%dh-%.4gz"><title>%s</title></path>' % (
            verdict,
            left,
            _HEIGHT - high,
            wide,
            high,
            wide,
            escape(name),
        )


def _look(port: Port | None) -> tuple[str, int]:
    """Return the verdict ("" when not measured) and how many eighths of the tests did not pass, at least one."""
    if port is None:
        return "", 0
    return port.verdict, max(1, round(port.share * _EIGHTHS)) if port.bad else 0


def _units(found: Sequence[Grid]) -> list[str]:
    return list(dict.fromkeys(grid.unit for grid in found))


def _title(grid: Grid, found: Sequence[Grid]) -> str:
    test = ", %s" % grid.test if len({other.test for other in found}) > 1 else ""
    return "%s, %s%s" % (grid.name, PLACES.get(grid.where, grid.where), test)


def _table_map(grid: Grid, hosts: Sequence[str], found: Sequence[Grid]) -> str:
    used = {name for result in grid.results for name in (result["client"], result["server"])}
    names = [name for name in hosts if name in used]
    cells = {(result["client"], result["server"]): result for result in grid.results}
    head = "".join('<th scope="col">%s' % escape(name) for name in names)
    rows = "".join(
        '<tr><th scope="row">%s%s' % (escape(row), "".join(_cell(cells.get((row, column))) for column in names))
        for row in names
    )
    return (
        '<figure class="map"><figcaption>%s</figcaption><div class="scroll" tabindex="0" role="region" aria-label="%s">'
        "<table><thead><tr><td>%s</thead><tbody>%s</tbody></table></div></figure>"
        % (escape(_title(grid, found)), escape(grid.name), head, rows)
    )


def _cell(result: Mapping[str, Any] | None) -> str:
    if result is None:
        return '<td class="none">'
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
    return '<td class="%s" title="%s">%s' % (verdict, escape(tip), ("%s %s" % (SIGNS[verdict], value)).strip())


def _drawn_map(at: int, grid: Grid, found: Sequence[Grid]) -> str:
    """Return a map that the script draws. Without script its sums and its table say what there is to see."""
    bad = grid.bad
    first = [other for other in found if other.bad][:_OPEN] or list(found[:1])
    verdict = "fail" if any(r["verdict"] == "fail" for r in bad) else "no_data" if bad else "pass"
    return (
        '<details class="drawn"%s><summary>%s %s <span class="quiet">%d of %d tests passed</span></summary>'
        '<canvas data-map="%d" tabindex="0" role="img" aria-label="Heat map of %s"></canvas>'
        '<output class="told" aria-live="polite"></output>%s%s</details>'
        % (
            " open" if any(grid is other for other in first) else "",
            badge(verdict),
            escape(_title(grid, found)),
            len(grid.results) - len(bad),
            len(grid.results),
            at,
            escape(grid.name),
            _legend(),
            _worst(grid),
        )
    )


def _legend() -> str:
    words = {"pass": "passed, the darker the faster", "fail": "failed", "no_data": "no data", "none": "not measured"}
    keys = ('<span><i class="key %s"></i>%s</span>' % pair for pair in words.items())
    return '<p class="legend">%s</p>' % " ".join(keys)


def _worst(grid: Grid) -> str:
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
    return table(("host", "sent and passed", "received and passed"), rows) + more(len(rows), len(bad), "hosts")
