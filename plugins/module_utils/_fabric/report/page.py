# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What the page says, as texts and numbers: verdict first, then what is broken. roles/rdma_validate has its template.

The script of the page draws the heat maps of more hosts than a table can show and finds a host in a long list; what it
draws is in tables too.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from ..measure.judge.verdict import amount
from ..measure.schedule.schedule import label
from . import collectives, page_sections, paths
from .console import number
from .page_maps import maps, strip
from .page_parts import WORDS, Data, badge, listed, place, signed, table, unmeasured
from .ports import all_ports
from .runs import about
from .summary import confirmed, count, stops, subset

_FAILED = 300
_ALL = 500


def page(report: Mapping[str, Any]) -> Data:
    """Return the data of the page, which JSON can hold; a section that has nothing to say is None or empty."""
    known = all_ports(report)
    return {
        "title": "RDMA fabric: %s" % headline(report),
        "head": _head(report),
        "causes": page_sections.causes(report),
        "comparison": page_sections.comparison(report),
        "noticed": [*filter(None, [unmeasured(report)]), *page_sections.noticed(report)],
        "warnings": page_sections.warnings(report),
        "rails": _rails(report),
        "paths": _paths(report),
        "gpu_memory": _gpu_memory(report),
        "nccl": _nccl(report),
        "ports": strip(report, known),
        "maps": maps(report),
        "failures": _failures(report),
        "limits": page_sections.limits(report),
        "counters": page_sections.grown(report),
        "hosts": page_sections.hosts(report, known),
        "results": _all_results(report),
        "schedule": page_sections.schedule(report),
        "about": _about(report),
    }


def _head(report: Mapping[str, Any]) -> Data:
    verdict = report["verdict"]
    counts = count(report["results"])
    line = "%d of %d tests passed on %d hosts" % (counts["pass"], len(report["results"]), len(report["hosts"]))
    rest = ["%d %s" % (counts[word], WORDS[word]) for word in ("fail", "no_data") if counts[word]]
    context = report["context"]
    when = " \u00b7 ".join(
        str(context[key]) for key in ("name", "started", "written", "collection") if context.get(key)
    )
    known = [*(" \u00b7 ".join(parts) for parts in about(report)), when]
    left_out = len(report.get("unmeasured", []))
    rest += ["%d port%s not measured" % (left_out, "s" * (left_out > 1))] if left_out else []
    return {
        "verdict": verdict,
        "headline": signed(verdict, headline(report)),
        "counts": ", ".join([line, *rest]),
        "reasons": _why(report),
        "about": [text for text in known if text],
    }


def headline(report: Mapping[str, Any]) -> str:
    """Return the verdict in words, with what a reader must not miss: confirmed faults, and that it is a subset."""
    faults = confirmed(report) if report["verdict"] == "no_data" else 0
    word = WORDS[report["verdict"]] + (", %d fault%s confirmed" % (faults, "s" * (faults > 1)) if faults else "")
    return word + (" (subset)" if subset(report) else "")


def _why(report: Mapping[str, Any]) -> list[str]:
    """Return what else the verdict comes from, so that nobody looks for a test that failed."""
    if not report["results"]:
        return ["Nothing was measured. No data is not a pass."]
    return [
        *_decided(report),
        *_of_nccl(report),
        *(["Not the whole fabric: %s." % "; ".join(subset(report))] if subset(report) else []),
    ]


def _decided(report: Mapping[str, Any]) -> list[str]:
    failing = stops(report)
    names = ["acceptance rule %s" % row["name"] for row in failing if "name" in row][:3]
    others = len([row for row in failing if "name" not in row])
    names += ["outliers and tests below the baseline: %d" % others] if others else []
    if names:
        return ["Failed in addition to single tests: %s." % ", ".join(names)]
    return ["No data is not a pass."] if report["verdict"] == "no_data" else []


def _of_nccl(report: Mapping[str, Any]) -> list[str]:
    if "nccl" not in report:
        return []
    own = WORDS[report["nccl"]["verdict"]]
    return ["Rails: %s. Collectives of NCCL: %s." % (WORDS[collectives.of_rails(report)], own)]


def _rails(report: Mapping[str, Any]) -> Data | None:
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
    return listed("Rails", head, rows, total=len(rows), what="rails")


def _paths(report: Mapping[str, Any]) -> Data | None:
    head = (
        "verdict",
        "measured",
        "rail",
        "hosts",
        "tests",
        "pass",
        "fail",
        "no data",
        "worst",
        "median",
        "expected Gb/s",
    )
    rows = [
        [
            badge(row["verdict"]),
            place(row),
            row["rail"],
            paths.said(row["levels"]),
            *(row[key] for key in ("pairs", "pass", "fail", "no_data")),
            *(number(row[key]) for key in ("worst", "median", "expected")),
        ]
        for row in report.get("paths", [])
    ]
    return listed("Inside and between groups of hosts", head, rows, total=len(rows), what="rows")


def _gpu_memory(report: Mapping[str, Any]) -> Data | None:
    head = ("measured", "rail", "test", "GPU memory", "host memory", "share", "tests", "low", "where to look")
    rows = [
        [
            place(row),
            row["rail"],
            label(row),
            *(_value(row[key], row["unit"]) for key in ("gpu", "host")),
            "" if row["share"] is None else "%.0f %%" % (100 * row["share"]),
            row["tests"],
            badge("fail", str(row["low"])) if row["low"] else "0",
            row["finding"],
        ]
        for row in report.get("gpu_memory", [])
    ]
    return listed("GPU memory and host memory", head, rows, total=len(rows), what="rows")


def _nccl(report: Mapping[str, Any]) -> Data | None:
    made = report.get("nccl")
    if not made:
        return None
    head = ("verdict", "collective", "hosts", "GB/s", "expected", "connections", "GPU", "NCCL", "reason")
    rows = [
        [
            badge(r["verdict"]),
            collectives.name(r),
            len(r["hosts"]),
            number(r["value"]),
            number(r["expected"]),
            collectives.transports(r),
            r["gpu"],
            ", ".join(r["nccl"]),
            r["reason"] or r["expected_from"],
        ]
        for r in made["results"]
    ]
    rows += [
        [badge("no_data"), host or "all hosts", "", "", "", "", "", "", reason]
        for host, reason in made["left_out"].items()
    ]
    note = " ".join(text.rstrip(".") + "." for text in made["findings"][-1:])
    return listed("Collectives of NCCL", head, rows[:_FAILED], total=len(rows), what="collectives", note=note)


def _failures(report: Mapping[str, Any]) -> Data | None:
    bad = [result for result in report["results"] if result["verdict"] != "pass"]
    return listed("What did not pass", _RESULT, _results(bad[:_FAILED]), total=len(bad), what="tests")


def _all_results(report: Mapping[str, Any]) -> Data | None:
    """Return the table of all results, only their number when they are many."""
    results = report["results"]
    if not results:
        return None
    return {"count": len(results), "table": None if len(results) > _ALL else table(_RESULT, _results(results))}


_RESULT = ("verdict", "measured", "rail", "from", "to", "test", "value", "expected", "bound by", "passes", "reason")


def _results(results: Iterable[Mapping[str, Any]]) -> list[Sequence[Any]]:
    return [
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


def _rail(result: Mapping[str, Any]) -> str:
    peer = result.get("peer_rail")
    return "%s to %s" % (result["rail"], peer) if peer else str(result["rail"])


def _value(value: float | None, unit: str) -> str:
    return "-" if value is None else amount(value, unit)


def _reason(result: Mapping[str, Any]) -> str:
    spread = result.get("spread")
    told = "repeated %d times: %s to %s" % (spread["n"], number(spread["min"]), number(spread["max"])) if spread else ""
    return "; ".join(text for text in (result["reason"], told) if text)


def _about(report: Mapping[str, Any]) -> Data | None:
    rows = [[key, value] for key, value in report["context"].items() if not isinstance(value, (dict, list))]
    return table(("about this run", "value"), rows)
