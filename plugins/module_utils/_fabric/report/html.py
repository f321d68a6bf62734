# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The report as one HTML file: verdict first, a heat map a rail, every result. No script, nothing from a network."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from html import escape
from typing import Any

from .console import number
from .style import CSS

_WORDS = {"pass": "passed", "fail": "failed", "no_data": "no data"}
_PLACES = {"host": "bare hosts", "pod": "pods"}
# Above this many hosts a heat map's cells are squares of colour; their text is in the tooltip.
_TEXT_UP_TO = 16
_ROWS = 2000


def to_html(report: Mapping[str, Any]) -> str:
    """Return the page. It is readable without style, by keyboard, in dark mode and printed."""
    body = [_head(report), _findings(report), _rails(report), *_maps(report), _failures(report), _hosts(report)]
    body += [_all_results(report), _foot(report)]
    title = "RDMA fabric: %s" % _WORDS[report["verdict"]]
    return (
        '<!DOCTYPE html>\n<html lang="en">\n<head>\n<meta charset="utf-8">\n'
        '<meta name="viewport" content="width=device-width, initial-scale=1">\n'
        '<meta name="color-scheme" content="light dark">\n'
        "<title>%s</title>\n<style>%s</style>\n</head>\n<body>\n<main>\n%s\n</main>\n</body>\n</html>\n"
        % (escape(title), CSS, "\n".join(part for part in body if part))
    )


def _head(report: Mapping[str, Any]) -> str:
    total = len(report["results"])
    passed = sum(1 for result in report["results"] if result["verdict"] == "pass")
    line = "%d of %d tests passed on %d hosts" % (passed, total, len(report["hosts"]))
    context = report["context"]
    when = " · ".join(str(context[key]) for key in ("name", "started", "collection") if context.get(key))
    return (
        '<header class="%s"><p class="verdict">%s</p><h1>RDMA fabric</h1><p>%s</p><p class="quiet">%s</p></header>'
        % (report["verdict"], _WORDS[report["verdict"]], escape(line), escape(when))
    )


def _findings(report: Mapping[str, Any]) -> str:
    items = [("finding", text) for text in report["findings"]] + [("warning", text) for text in report["warnings"]]
    if not items:
        return ""
    rows = "".join('<li class="%s"><b>%s</b> %s</li>' % (kind, kind, escape(text)) for kind, text in items)
    return '<section aria-label="Findings"><h2>What stands out</h2><ul class="findings">%s</ul></section>' % rows


def _rails(report: Mapping[str, Any]) -> str:
    head = ("measured", "rail", "tests", "pass", "fail", "no data", "worst Gb/s", "median Gb/s", "verdict")
    rows = [
        [
            _PLACES.get(rail["where"], rail["where"]), rail["rail"], rail["pairs"], rail["pass"], rail["fail"],
            rail["no_data"], number(rail["worst"]), number(rail["median"]), _badge(rail["verdict"]),
        ]
        for rail in report["rails"]
    ]
    return "<section><h2>Rails</h2>%s</section>" % _table(head, rows)


def _maps(report: Mapping[str, Any]) -> list[str]:
    groups: dict[tuple[str, str], list[Mapping[str, Any]]] = {}
    for result in report["results"]:
        groups.setdefault((result["where"], result["rail"]), []).append(result)
    maps = [_map(where, rail, results) for (where, rail), results in groups.items()]
    if not maps:
        return []
    return ['<section><h2>Who reached whom</h2><p class="quiet">Row: sender. Column: receiver. Gb/s.</p>'
            '<div class="maps">%s</div></section>' % "".join(maps)]


def _map(where: str, rail: str, results: Sequence[Mapping[str, Any]]) -> str:
    names = sorted({name for result in results for name in (result["client"], result["server"])})
    cells = {(result["client"], result["server"]): result for result in results}
    dense = len(names) > _TEXT_UP_TO
    head = "".join('<th scope="col"><span>%s</span></th>' % escape(name) for name in names)
    rows = "".join(
        '<tr><th scope="row">%s</th>%s</tr>'
        % (escape(row), "".join(_cell(cells.get((row, column)), dense) for column in names))
        for row in names
    )
    return (
        '<figure class="map%s"><figcaption>%s, %s</figcaption><div class="scroll"><table>'
        "<thead><tr><td></td>%s</tr></thead><tbody>%s</tbody></table></div></figure>"
        % (" dense" if dense else "", escape(rail), _PLACES.get(where, where), head, rows)
    )


def _cell(result: Mapping[str, Any] | None, dense: bool) -> str:
    if result is None:
        return '<td class="none"></td>'
    text = number(result["value"]) if result["value"] is not None else "none"
    tip = "%s to %s: %s, %s%s" % (
        result["client"], result["server"], text, _WORDS[result["verdict"]],
        ": " + result["reason"] if result["reason"] else "",
    )
    return '<td class="%s" title="%s">%s</td>' % (result["verdict"], escape(tip), "" if dense else text)


def _failures(report: Mapping[str, Any]) -> str:
    bad = [result for result in report["results"] if result["verdict"] != "pass"]
    if not bad:
        return ""
    return "<section><h2>What did not pass</h2>%s</section>" % _result_table(bad)


def _hosts(report: Mapping[str, Any]) -> str:
    parts = []
    for name, host in report["hosts"].items():
        head = ("rail", "PCI address", "interface", "address", "MTU")
        keys = ("rail", "pci", "netdev", "address", "mtu")
        rows = [["" if rail.get(key) is None else rail[key] for key in keys] for rail in host["rails"]]
        summary = "%s %s <span class='quiet'>%d passed, %d failed, %d without data</span>" % (
            _badge(host["verdict"]), escape(name), host["pass"], host["fail"], host["no_data"])
        parts.append("<details><summary>%s</summary>%s</details>" % (summary, _table(head, rows)))
    return "<section><h2>Hosts</h2>%s</section>" % "".join(parts)


def _all_results(report: Mapping[str, Any]) -> str:
    results = report["results"]
    if len(results) > _ROWS:
        return '<p class="quiet">%d results; all of them are in report.json.</p>' % len(results)
    return "<section><details><summary>All %d results</summary>%s</details></section>" % (
        len(results), _result_table(results))


def _result_table(results: Iterable[Mapping[str, Any]]) -> str:
    head = ("where", "rail", "from", "to", "test", "measured", "expected", "bound by", "passes", "verdict", "reason")
    rows = [
        [
            _PLACES.get(r["where"], r["where"]), r["rail"], r["client"], r["server"], r["test"], number(r["value"]),
            number(r["expected"]), r["bound_by"] or "", len(r["passes"]), _badge(r["verdict"]), r["reason"],
        ]
        for r in results
    ]
    return _table(head, rows)


def _foot(report: Mapping[str, Any]) -> str:
    rows = [[key, value] for key, value in report["context"].items() if not isinstance(value, (dict, list))]
    return "<footer>%s</footer>" % _table(("about this run", ""), rows) if rows else ""


class _Raw(str):
    """Text that is HTML already."""


def _badge(verdict: str) -> _Raw:
    return _Raw('<span class="badge %s">%s</span>' % (verdict, _WORDS[verdict]))


def _table(head: Sequence[str], rows: Sequence[Sequence[Any]]) -> str:
    titles = "".join('<th scope="col">%s</th>' % escape(title) for title in head)
    body = "".join("<tr>%s</tr>" % "".join(_td(cell) for cell in row) for row in rows)
    return '<div class="scroll"><table><thead><tr>%s</tr></thead><tbody>%s</tbody></table></div>' % (titles, body)


def _td(cell: Any) -> str:
    text = cell if isinstance(cell, _Raw) else escape(str(cell))
    numeric = isinstance(cell, (int, float)) or (isinstance(cell, str) and cell.replace(".", "", 1).isdigit())
    return "<td%s>%s</td>" % (' class="number"' if numeric else "", text)
