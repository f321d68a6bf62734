# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The sections of the page below the verdict: causes, what was noticed, what bound the limits, counters, hosts."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from html import escape
from typing import Any

from ..measure.diagnosis.wording import level
from ..measure.schedule.schedule import label
from .console import number
from .html_parts import PLACES, Raw, badge, more, place, section, table
from .ports import Key, Port, counters

_ROWS = 50
_LIMITS = 3
_CAUSES = 40
# Longer titles are cut; the whole sentence stands with the evidence.
_TITLE = 120
# Causes whose evidence is unfolded: all of them are to be read before one is repaired.
_OPEN = 2


def causes(report: Mapping[str, Any]) -> str:
    """Return what is broken: diagnoses with their evidence and commands, else what the failures have in common."""
    diagnoses = report.get("diagnoses", [])
    if diagnoses:
        shown = "".join(_diagnosis(diagnosis, number_ < _OPEN) for number_, diagnosis in enumerate(diagnoses[:_CAUSES]))
        body = shown + more(_CAUSES, len(diagnoses), "causes")
        return section("What is broken", body)
    items = "".join('<li class="fail">%s' % escape(text) for text in report["findings"])
    if not items and report["verdict"] != "pass" and report["results"]:
        items = '<li class="no_data">No single cause was found; what did not pass is listed below.'
    return section("What is broken", '<ul class="told">%s</ul>' % items if items else "")


def noticed(report: Mapping[str, Any]) -> str:
    """Return gates, links, outliers and baseline: each a table, what decides the verdict first."""
    parts = [_gates(report), _unsteady(report), _links(report), _outliers(report), _baseline(report), _warnings(report)]
    return "".join(parts)


def comparison(report: Mapping[str, Any]) -> str:
    """Return what changed since the earlier report."""
    made = report.get("comparison")
    if not made:
        return ""
    told = '<ul class="told">%s</ul>' % "".join("<li>%s" % escape(text) for text in made["text"])
    head = ("trend", "measured", "rail", "from", "to", "test", "before", "now", "change")
    changed = [*made["worse"], *made["better"]]
    rows = [
        [
            row["trend"],
            place(row),
            row["rail"],
            row["client"],
            row["server"],
            label(row),
            _was(row["before"]),
            _was(row["now"]),
            "" if row["change"] is None else "%+.0f %%" % (100 * row["change"]),
        ]
        for row in changed[:_ROWS]
    ]
    details = (
        "<details><summary>Test by test</summary>%s%s</details>"
        % (table(head, rows), more(len(rows), len(changed), "tests"))
        if rows
        else ""
    )
    return section("Compared with the earlier report", told + details)


def limits(report: Mapping[str, Any]) -> str:
    """Return what bound the expectation, by rail, and the sentences that say so."""
    groups: dict[tuple[str, ...], list[Mapping[str, Any]]] = {}
    for r in report["results"]:
        key = (r["where"], r["rail"], r["test"], r["unit"], r["bound_by"] or "", _memory(r))
        groups.setdefault(key, []).append(r)
    rows = []
    for (where, rail, test, unit, bound, memory), own in groups.items():
        said = Counter(r["basis"] for r in own if r.get("basis")).most_common()
        why = Raw("<br>".join(escape("%s (%d tests)" % item) for item in said[:_LIMITS]))
        if len(said) > _LIMITS:
            why = Raw(why + "<br>and %d more" % (len(said) - _LIMITS))
        rows.append([PLACES.get(where, where), rail, test, memory, bound, len(own), "%s %s" % (_span(own), unit), why])
    head = ("measured", "rail", "test", "memory", "bound by", "tests", "expected", "why")
    return section("What bound the limits", table(head, rows[:_ROWS]) + more(_ROWS, len(rows), "groups"))


def grown(report: Mapping[str, Any]) -> str:
    """Return the port counters that grew, and links that changed while they were tested."""
    rows = counters(report["results"])
    shown = [[place(r), r["host"], r["rail"], r["counter"], r["growth"], r["tests"]] for r in rows[:_ROWS]]
    head = ("measured", "host", "rail", "counter", "growth", "tests in which it grew")
    changed = [
        [place(r), r[side], r["rail"], ", ".join("%s %s" % item for item in link.items())]
        for r in report["results"]
        for side, link in (r.get("link") or {}).items()
    ]
    links = table(("measured", "host", "rail", "after the test"), changed[:_ROWS])
    body = table(head, shown) + more(len(shown), len(rows), "counters")
    if links:
        body += "<h3>Links that changed while they were tested</h3>" + links + more(_ROWS, len(changed), "links")
    return section("Counters that grew", body)


def hosts(report: Mapping[str, Any], known: Mapping[Key, Port]) -> str:
    """Return a part for each host to unfold, those that did not pass first."""
    order = sorted(report["hosts"], key=lambda name: report["hosts"][name]["verdict"] == "pass")
    places = list(dict.fromkeys(where for where, _host, _rail in known))
    texts: dict[str, list[str]] = {}
    for diagnosis in report.get("diagnoses", []):
        texts.setdefault(diagnosis.get("host") or "", []).append(diagnosis["text"])
    rails: dict[str, dict[str, Any]] = {name: {r["rail"]: r for r in report["hosts"][name]["rails"]} for name in order}
    for _where, name, rail in known:
        rails[name].setdefault(rail, {})
    parts = [_host(name, report["hosts"][name], rails[name], known, places, texts.get(name, [])) for name in order]
    find = '<p class="find" hidden><label>Find a host <input type="search" id="find"></label></p>'
    return section("Hosts", (find if len(order) > 16 else "") + "\n".join(parts))


def schedule(report: Mapping[str, Any]) -> str:
    """Return how it was measured: rounds, slots, the share of time in perftest, and who was late."""
    head = ("measured", "mode", "rounds", "slot", "a pass", "passes", "in perftest", "latest host", "details")
    rows = [
        [
            PLACES.get(row.get("where", ""), ""),
            row.get("mode"),
            row.get("rounds"),
            _unit(row.get("slot"), "s"),
            _unit(row.get("seconds"), "s"),
            row.get("passes"),
            _percent(row.get("share")),
            _latest(row.get("lateness")),
            row.get("text"),
        ]
        for row in report.get("schedule", [])
    ]
    return section("How it was measured", table(head, rows))


def _diagnosis(diagnosis: Mapping[str, Any], unfolded: bool) -> str:
    title = _title(diagnosis["text"])
    whole = "" if title == diagnosis["text"] else "<p>%s</p>" % escape(diagnosis["text"])
    tag = '<span class="tag">%s</span>' % escape(level(diagnosis))
    facts = "%s, %s: %d of %d tests did not pass" % (
        diagnosis["kind"],
        PLACES.get(diagnosis["where"], diagnosis["where"]),
        diagnosis["failed"],
        diagnosis["tests"],
    )
    evidence = "".join("<li>%s" % escape(text) for text in diagnosis["evidence"])
    lines = zip(("Try it by hand: first the server", "then the client"), diagnosis["reproduce"])
    steps = "".join('<p class="step">%s</p><pre tabindex="0">%s</pre>' % (words, escape(line)) for words, line in lines)
    return (
        '<article class="diagnosis"><h3>%s %s</h3><details class="bad"%s><summary class="quiet">%s</summary>%s%s'
        "</details></article>"
        % (
            escape(title),
            tag,
            " open" if unfolded else "",
            escape(facts),
            "%s<ul>%s</ul>" % (whole, evidence) if evidence or whole else "",
            steps,
        )
    )


def _title(text: str) -> str:
    """Return the beginning of a long sentence, up to where a part of it ends."""
    if len(text) <= _TITLE:
        return text
    ends = [text.rfind(mark, 0, _TITLE) for mark in ("; ", ": ", ", ", " ")]
    return text[: next(end for end in (*ends, _TITLE) if end > _TITLE // 3)] + " \u2026"


def _gates(report: Mapping[str, Any]) -> str:
    order = sorted(report.get("gates", []), key=lambda gate: gate["verdict"] == "pass")
    rows = [
        [
            badge(_gate_verdict(g)),
            g["name"],
            g["severity"],
            g["text"],
            g.get("found"),
            Raw("<code>%s</code>" % escape(g["query"])),
        ]
        for g in order
    ]
    return section("Acceptance rules", table(("verdict", "rule", "severity", "says", "found", "query"), rows))


def _gate_verdict(gate: Mapping[str, Any]) -> str:
    return "pass" if gate["verdict"] == "pass" else "fail" if gate["severity"] == "failure" else "no_data"


def _links(report: Mapping[str, Any]) -> str:
    rows = report.get("links", [])
    shown = [[r["host"], r["rail"], r["kind"], r["found"], r["expected"], r["text"]] for r in rows[:_ROWS]]
    body = table(("host", "rail", "property", "found", "expected", "details"), shown)
    return section("Links below what they can be", body + more(len(shown), len(rows), "links"))


def _unsteady(report: Mapping[str, Any]) -> str:
    head = ("measured", "rail", "host", "severity", "unsteady", "of tests", "says")
    rows = [
        [
            PLACES.get(row["where"], row["where"]),
            row["rail"],
            " and ".join(filter(None, (row["host"], row["peer"]))),
            row["severity"],
            row["count"],
            row["tests"],
            row["text"],
        ]
        for row in report.get("unsteady", [])
    ]
    return section("Unsteady tests", table(head, rows[:_ROWS]) + more(min(_ROWS, len(rows)), len(rows), "findings"))


def _outliers(report: Mapping[str, Any]) -> str:
    rows = report.get("outliers", [])
    shown = [
        [
            _severity(r),
            place(r),
            r["rail"],
            r["client"],
            r["server"],
            r["test"],
            number(r["value"]),
            number(r["median"]),
            number(r["deviations"]),
            r["text"],
        ]
        for r in rows[:_ROWS]
    ]
    head = ("severity", "measured", "rail", "from", "to", "test", "value", "rail median", "deviations", "details")
    return section("Outliers of the fleet", table(head, shown) + more(len(shown), len(rows), "outliers"))


def _baseline(report: Mapping[str, Any]) -> str:
    rows = report.get("baseline", [])
    # What is only on one side names no pair and has no numbers: the text says it.
    shown = [
        [
            _severity(r),
            place(r) if r["where"] else "",
            *(r[key] or "" for key in ("rail", "client", "server", "test")),
            *("" if r[key] is None else number(r[key]) for key in ("value", "before")),
            "" if r["change"] is None else "%+.0f %%" % (100 * r["change"]),
            r["text"],
        ]
        for r in rows[:_ROWS]
    ]
    head = ("severity", "measured", "rail", "from", "to", "test", "value", "baseline", "change", "details")
    return section("Against the baseline", table(head, shown) + more(len(shown), len(rows), "tests"))


def _warnings(report: Mapping[str, Any]) -> str:
    rows = report["warnings"]
    items = "".join('<li class="no_data">%s' % escape(text) for text in rows[:_ROWS])
    body = '<ul class="told">%s</ul>%s' % (items, more(_ROWS, len(rows), "warnings")) if items else ""
    return section("Warnings", body)


def _severity(row: Mapping[str, Any]) -> Raw:
    return badge("fail" if row["severity"] == "failure" else "no_data", row["severity"])


def _host(
    name: str,
    host: Mapping[str, Any],
    rails: Mapping[str, Mapping[str, Any]],
    known: Mapping[Key, Port],
    places: Sequence[str],
    texts: Sequence[str],
) -> str:
    keys = ["pci", "netdev", "address", "mtu"]
    head = ["rail", "PCI address", "interface", "address", "MTU"]
    if any("switch" in planned for planned in rails.values()):
        keys.append("switch")
        head.append("switch")
    for where in places:
        head += ["passed (%s)" % PLACES.get(where, where), "worst Gb/s"]
    rows = []
    for rail, planned in rails.items():
        row: list[Any] = [rail, *(planned.get(key) for key in keys)]
        for where in places:
            row += _port(known.get((where, name, rail)))
        rows.append(row)
    told = "".join('<p class="cause">%s</p>' % escape(text) for text in texts)
    sums = "%d passed, %d failed, %d without data" % (host["pass"], host["fail"], host["no_data"])
    return (
        '<details class="host%s" data-host="%s"><summary>%s %s <span class="quiet">%s</span></summary>%s%s</details>'
        % (
            "" if host["verdict"] == "pass" else " bad",
            escape(name),
            badge(host["verdict"]),
            escape(name),
            sums,
            told,
            table(head, rows),
        )
    )


def _port(port: Port | None) -> list[Any]:
    if port is None:
        return ["not measured", "-"]
    text = "%d of %d" % (port.counts["pass"], port.tests)
    return [Raw(badge(port.verdict, text)) if port.bad else text, number(port.worst)]


def _memory(result: Mapping[str, Any]) -> str:
    paths = sorted({side["path"] for side in (result.get("gpu") or {}).values() if side.get("path")})
    return (result.get("memory") or "") + (" (%s)" % ", ".join(paths) if paths else "")


def _span(own: Sequence[Mapping[str, Any]]) -> str:
    """Return the least and the largest expectation, one number when they are the same."""
    known = [result["expected"] for result in own if result["expected"] is not None]
    if not known:
        return "-"
    ends = [number(min(known)), number(max(known))]
    return " to ".join(dict.fromkeys(ends))


def _was(side: Mapping[str, Any]) -> str:
    return "%s %s" % (side["verdict"], number(side["value"]))


def _unit(value: Any, unit: str) -> str:
    return "" if value is None else "%s %s" % (value, unit)


def _percent(share: float | None) -> str:
    return "" if share is None else "%.0f %%" % (100 * share)


def _latest(lateness: Mapping[str, float] | None) -> str:
    if not lateness:
        return ""
    name = max(lateness, key=lambda host: lateness[host])
    return "%s, %.3g s" % (name, lateness[name])
