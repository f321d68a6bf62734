# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The report as one HTML file: verdict first, then what is broken. Nothing comes from a network, nothing needs script.

The script draws the heat maps of more hosts than a table can show and finds a host in a long list; what it draws is
told in tables too.
"""

from __future__ import annotations

import base64
import hashlib
from collections.abc import Iterable, Mapping
from html import escape
from typing import Any

from ..measure.judge.verdict import amount
from ..measure.schedule.schedule import label
from . import html_sections
from .console import number
from .html_maps import maps, strip
from .html_parts import SIGNS, WORDS, badge, more, place, section, table
from .ports import ports
from .runs import about
from .script import SCRIPT
from .style import CSS
from .summary import confirmed, count, stops, subset

_FAILED = 300
_ALL = 500


def digest(text: str) -> str:
    """Return how a policy names an inline style or script, so that no other one runs."""
    return "'sha256-%s'" % base64.b64encode(hashlib.sha256(text.encode()).digest()).decode()


# A browser that is given this fetches nothing, sends nothing and runs nothing but our script, whatever the page holds.
_POLICY = "default-src 'none'; style-src %s; script-src %s; form-action 'none'; base-uri 'none'" % (
    digest(CSS),
    digest(SCRIPT),
)


def to_html(report: Mapping[str, Any]) -> str:
    """Return the page. It is readable without style and script, by keyboard, in dark mode and printed."""
    known = ports(report["results"])
    body = [
        _head(report),
        html_sections.causes(report),
        html_sections.comparison(report),
        html_sections.noticed(report),
        _rails(report),
        strip(report, known),
        maps(report),
        _failures(report),
        html_sections.limits(report),
        html_sections.grown(report),
        html_sections.hosts(report, known),
        _all_results(report),
        html_sections.schedule(report),
        _foot(report),
    ]
    title = "RDMA fabric: %s" % headline(report)
    return (
        '<!DOCTYPE html>\n<html lang="en">\n<head>\n<meta charset="utf-8">\n'
        '<meta http-equiv="Content-Security-Policy" content="%s">\n'
        '<meta name="viewport" content="width=device-width, initial-scale=1">\n'
        '<meta name="color-scheme" content="light dark">\n'
        "<title>%s</title>\n<style>%s</style>\n</head>\n<body>\n<main>\n%s\n</main>\n<script>%s</script>\n</body>\n</html>\n"
        % (_POLICY, escape(title), CSS, "\n".join(part for part in body if part), SCRIPT)
    )


def _head(report: Mapping[str, Any]) -> str:
    verdict = report["verdict"]
    counts = count(report["results"])
    total = len(report["results"])
    line = "%d of %d tests passed on %d hosts" % (counts["pass"], total, len(report["hosts"]))
    rest = ["%d %s" % (counts[word], WORDS[word]) for word in ("fail", "no_data") if counts[word]]
    context = report["context"]
    when = " · ".join(str(context[key]) for key in ("name", "started", "written", "collection") if context.get(key))
    known = [*(" \u00b7 ".join(parts) for parts in about(report)), when]
    return '<header class="%s"><p class="verdict">%s</p><h1>RDMA fabric</h1><p>%s</p>%s%s</header>' % (
        verdict,
        escape(("%s %s" % (SIGNS[verdict], headline(report))).strip()),
        escape(", ".join([line, *rest])),
        "".join("<p><b>%s</b></p>" % escape(text) for text in _why(report)),
        "".join('<p class="quiet">%s</p>' % escape(text) for text in known if text),
    )


def headline(report: Mapping[str, Any]) -> str:
    """Return the verdict in words, with what a reader must not miss: confirmed faults, and that it is a subset."""
    faults = confirmed(report) if report["verdict"] == "no_data" else 0
    word = WORDS[report["verdict"]] + (", %d fault%s confirmed" % (faults, "s" * (faults > 1)) if faults else "")
    return word + (" (subset)" if subset(report) else "")


def _why(report: Mapping[str, Any]) -> list[str]:
    """Return what else the verdict comes from, so that nobody looks for a test that failed."""
    if not report["results"]:
        return ["Nothing was measured. No data is not a pass."]
    return [*_decided(report), *(["Not the whole fabric: %s." % "; ".join(subset(report))] if subset(report) else [])]


def _decided(report: Mapping[str, Any]) -> list[str]:
    failing = stops(report)
    names = ["acceptance rule %s" % row["name"] for row in failing if "name" in row][:3]
    others = len([row for row in failing if "name" not in row])
    names += ["outliers and tests below the baseline: %d" % others] if others else []
    if names:
        return ["Failed beside single tests: %s." % ", ".join(names)]
    return ["No data is not a pass."] if report["verdict"] == "no_data" else []


def _rails(report: Mapping[str, Any]) -> str:
    latency = any("latency_worst" in rail for rail in report["rails"])
    head = ["verdict", "measured", "rail", "tests", "pass", "fail", "no data", "worst Gb/s", "median Gb/s"]
    head += ["worst us", "median us"] if latency else []
    rows = []
    for rail in report["rails"]:
        row = [
            badge(rail["verdict"]),
            place(rail),
            rail["rail"],
            rail["pairs"],
            rail["pass"],
            rail["fail"],
            rail["no_data"],
            number(rail["worst"]),
            number(rail["median"]),
        ]
        rows.append(row + ([number(rail.get("latency_worst")), number(rail.get("latency_median"))] if latency else []))
    return section("Rails", table(head, rows))


def _failures(report: Mapping[str, Any]) -> str:
    bad = [result for result in report["results"] if result["verdict"] != "pass"]
    if not bad:
        return ""
    return section("What did not pass", _result_table(bad[:_FAILED]) + more(_FAILED, len(bad), "tests"))


def _all_results(report: Mapping[str, Any]) -> str:
    results = report["results"]
    if not results:
        return ""
    if len(results) > _ALL:
        return '<p class="quiet">%d results; all of them are in report.json.</p>' % len(results)
    return "<section><details><summary>All %d results</summary>%s</details></section>" % (
        len(results),
        _result_table(results),
    )


def _result_table(results: Iterable[Mapping[str, Any]]) -> str:
    head = ("verdict", "measured", "rail", "from", "to", "test", "value", "expected", "bound by", "passes", "reason")
    rows = [
        [
            badge(r["verdict"]),
            place(r),
            _rail(r),
            r["client"],
            r["server"],
            label(r),
            _value(r["value"], r["unit"]),
            _value(r["expected"], r["unit"]),
            r["bound_by"] or "",
            len(r["passes"]),
            _reason(r),
        ]
        for r in results
    ]
    return table(head, rows)


def _rail(result: Mapping[str, Any]) -> str:
    peer = result.get("peer_rail")
    return "%s to %s" % (result["rail"], peer) if peer else str(result["rail"])


def _value(value: float | None, unit: str) -> str:
    return "-" if value is None else amount(value, unit)


def _reason(result: Mapping[str, Any]) -> str:
    spread = result.get("spread")
    told = "repeated %d times: %s to %s" % (spread["n"], number(spread["min"]), number(spread["max"])) if spread else ""
    return "; ".join(text for text in (result["reason"], told) if text)


def _foot(report: Mapping[str, Any]) -> str:
    rows = [[key, value] for key, value in report["context"].items() if not isinstance(value, (dict, list))]
    return "<footer>%s</footer>" % table(("about this run", "value"), rows) if rows else ""
