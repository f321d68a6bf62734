# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The sections of the page below the verdict: causes, what was noticed, what bound the limits, counters, hosts."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from typing import Any

from ..._common.reader import and_more
from ..measure.diagnosis.wording import level
from ..measure.schedule.schedule import label
from .console import number
from .page_parts import PLACES, Cell, Data, badge, listed, more, place, table
from .ports import Key, Port, counters

_ROWS = 50
_LIMITS = 3
_CAUSES = 40
# Longer titles are cut; the whole sentence stands with the evidence.
_TITLE = 120
# Causes whose evidence is unfolded: all of them are to be read before one is repaired.
_OPEN = 2
# From more hosts than these on one can be searched for.
_FIND = 16


def causes(report: Mapping[str, Any]) -> Data | None:
    """Return what is broken: diagnoses with their evidence and commands, else what the failures have in common."""
    diagnoses = report.get("diagnoses", [])
    found: list[Data] = [] if diagnoses else [{"verdict": "fail", "text": text} for text in report["findings"]]
    if not diagnoses and not found and report["verdict"] != "pass" and report["results"]:
        found = [{"verdict": "no_data", "text": "No single cause was found; what did not pass is listed below."}]
    shown = [_diagnosis(one, at < _OPEN) for at, one in enumerate(diagnoses[:_CAUSES])]
    if not shown and not found:
        return None
    return {"diagnoses": shown, "more": more(_CAUSES, len(diagnoses), "causes"), "findings": found}


def noticed(report: Mapping[str, Any]) -> list[Data]:
    """Return gates, links, outliers and baseline: each a table, what decides the verdict first."""
    parts = [_gates(report), _unsteady(report), _links(report), _outliers(report), _baseline(report)]
    return [part for part in parts if part]


def warnings(report: Mapping[str, Any]) -> Data | None:
    """Return the first warnings."""
    rows = report["warnings"]
    return {"texts": list(rows[:_ROWS]), "more": more(_ROWS, len(rows), "warnings")} if rows else None


def comparison(report: Mapping[str, Any]) -> Data | None:
    """Return what changed since the earlier report."""
    made = report.get("comparison")
    if not made:
        return None
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
    return {
        "texts": list(made["text"]),
        "table": table(head, rows),
        "more": more(len(rows), len(changed), "tests"),
    }


def limits(report: Mapping[str, Any]) -> Data | None:
    """Return what bound the expectation, by rail, and the sentences that say so."""
    groups: dict[tuple[str, ...], list[Mapping[str, Any]]] = {}
    for r in report["results"]:
        key = (r["where"], r["rail"], r["test"], r["unit"], r["bound_by"] or "", _memory(r))
        groups.setdefault(key, []).append(r)
    rows = []
    for (where, rail, test, unit, bound, memory), own in groups.items():
        said = Counter(r["basis"] for r in own if r.get("basis")).most_common()
        lines = ["%s (%d tests)" % item for item in said[:_LIMITS]]
        lines += [and_more(said, _LIMITS).lstrip()] if len(said) > _LIMITS else []
        expected = "%s %s" % (_span(own), unit)
        rows.append([PLACES.get(where, where), rail, test, memory, bound, len(own), expected, Cell(lines=lines)])
    head = ("measured", "rail", "test", "memory", "bound by", "tests", "expected", "why")
    return listed("What bound the limits", head, rows[:_ROWS], total=len(rows), what="groups")


def grown(report: Mapping[str, Any]) -> Data | None:
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
    if not shown and not links:
        return None
    return {
        "table": table(head, shown),
        "more": more(len(shown), len(rows), "counters"),
        "links": links,
        "more_links": more(_ROWS, len(changed), "links"),
    }


def hosts(report: Mapping[str, Any], known: Mapping[Key, Port]) -> Data | None:
    """Return a part for each host to unfold, those that did not pass first."""
    order = sorted(report["hosts"], key=lambda name: report["hosts"][name]["verdict"] == "pass")
    places = list(dict.fromkeys(where for where, _host, _rail in known))
    texts: dict[str, list[str]] = {}
    for diagnosis in report.get("diagnoses", []):
        texts.setdefault(diagnosis.get("host") or "", []).append(diagnosis["text"])
    rails: dict[str, dict[str, Any]] = {name: {r["rail"]: r for r in report["hosts"][name]["rails"]} for name in order}
    for _where, name, rail in known:
        rails[name].setdefault(rail, {})
    parts = [
        _host(name, report["hosts"][name], rails[name], known=known, places=places, texts=texts.get(name, []))
        for name in order
    ]
    return {"find": len(order) > _FIND, "hosts": parts} if parts else None


def schedule(report: Mapping[str, Any]) -> Data | None:
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
    return listed("How it was measured", head, rows, total=len(rows), what="places")


def _diagnosis(diagnosis: Mapping[str, Any], unfolded: bool) -> Data:
    title = _title(diagnosis["text"])
    where = PLACES.get(diagnosis["where"], diagnosis["where"])
    sums = (diagnosis["kind"], where, diagnosis["failed"], diagnosis["tests"])
    words = ("Reproduce it manually: start the server first", "then the client")
    return {
        "title": title,
        "level": level(diagnosis),
        "open": unfolded,
        "facts": "%s, %s: %d of %d tests did not pass" % sums,
        "text": "" if title == diagnosis["text"] else diagnosis["text"],
        "evidence": list(diagnosis["evidence"]),
        "steps": [{"text": text, "command": command} for text, command in zip(words, diagnosis["reproduce"])],
    }


def _title(text: str) -> str:
    """Return the beginning of a long sentence, up to where a part of it ends."""
    if len(text) <= _TITLE:
        return text
    ends = [text.rfind(mark, 0, _TITLE) for mark in ("; ", ": ", ", ", " ")]
    return text[: next(end for end in (*ends, _TITLE) if end > _TITLE // 3)] + " \u2026"


def _gates(report: Mapping[str, Any]) -> Data | None:
    order = sorted(report.get("gates", []), key=lambda gate: gate["verdict"] == "pass")
    rows = [
        [
            badge(_gate_verdict(g)),
            g["name"],
            g["severity"],
            g["text"],
            g.get("found"),
            Cell(code=g["query"]),
        ]
        for g in order
    ]
    head = ("verdict", "rule", "severity", "says", "found", "query")
    return listed("Acceptance rules", head, rows, total=len(rows), what="rules")


def _gate_verdict(gate: Mapping[str, Any]) -> str:
    return "pass" if gate["verdict"] == "pass" else "fail" if gate["severity"] == "failure" else "no_data"


def _links(report: Mapping[str, Any]) -> Data | None:
    rows = report.get("links", [])
    shown = [[r["host"], r["rail"], r["kind"], r["found"], r["expected"], r["text"]] for r in rows[:_ROWS]]
    head = ("host", "rail", "property", "found", "expected", "details")
    return listed("Links and ports", head, shown, total=len(rows), what="links")


def _unsteady(report: Mapping[str, Any]) -> Data | None:
    head = ("measured", "rail", "host or group", "severity", "low", "of readings", "details")
    rows = [
        [
            PLACES.get(row["where"], row["where"]),
            row["rail"] or "all",
            " and ".join(row[key] for key in ("host", "peer", "group", "peer_group") if row.get(key)),
            row["severity"],
            row["count"],
            row["tests"],
            row["text"],
        ]
        for row in report.get("unsteady", [])
    ]
    return listed("Unsteady tests", head, rows[:_ROWS], total=len(rows), what="findings")


def _outliers(report: Mapping[str, Any]) -> Data | None:
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
    return listed("Outliers of the fleet", head, shown, total=len(rows), what="outliers")


def _baseline(report: Mapping[str, Any]) -> Data | None:
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
    return listed("Against the baseline", head, shown, total=len(rows), what="tests")


def _severity(row: Mapping[str, Any]) -> Cell:
    return badge("fail" if row["severity"] == "failure" else "no_data", row["severity"])


def _host(
    name: str,
    host: Mapping[str, Any],
    rails: Mapping[str, Mapping[str, Any]],
    *,
    known: Mapping[Key, Port],
    places: Sequence[str],
    texts: Sequence[str],
) -> Data:
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
    return {
        "name": name,
        "verdict": badge(host["verdict"]),
        "counts": "%d passed, %d failed, %d without data" % (host["pass"], host["fail"], host["no_data"]),
        "bad": host["verdict"] != "pass",
        "texts": list(texts),
        "table": table(head, rows),
    }


def _port(port: Port | None) -> list[Any]:
    if port is None:
        return ["not measured", "-"]
    if not port.tests:
        return [badge(port.verdict, port.reason), "-"]
    text = "%d of %d" % (port.passed, port.tests)
    return [badge(port.verdict, text) if port.bad else text, number(port.worst)]


def _memory(result: Mapping[str, Any]) -> str:
    gpu = result.get("gpu")
    paths = sorted({side["path"] for side in gpu.values() if side.get("path")}) if gpu else []
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
