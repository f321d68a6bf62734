# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The report of collectives: JSON, a table, JUnit and Prometheus. It never names a port as the cause."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any
from xml.etree import ElementTree

from ..._common.errors import harmless
from ..measure.judge.verdict import FAIL, NO_DATA, PASS, VERDICTS, overall
from .collectives import cases, name, transports
from .formats import to_json
from .prometheus import gauge

SCHEMA = 1
_TAGS = {FAIL: "failure", NO_DATA: "error"}
_LOOK = (
    "the way between GPU and NIC (PCIe ACS, DMA-BUF or peer memory), the GPU that each process uses, the settings of"
    " NCCL, and NVLink"
)


def build(
    results: Sequence[Mapping[str, Any]], *, verbs: Mapping[str, Any], run: str, left_out: Mapping[str, str]
) -> dict[str, Any]:
    """Return the report. ``verbs``: {verdict, run} of the last measurement with perftest; ``left_out``: host -> why."""
    return {
        "schema": SCHEMA,
        "run": run,
        "verdict": NO_DATA if left_out and overall(results) == PASS else overall(results),
        "verbs": dict(verbs),
        "left_out": dict(left_out),
        "results": [dict(result) for result in results],
        "findings": findings(results, verbs),
    }


def started(run: str) -> dict[str, Any]:
    """Return the report that stands until a run wrote its own, so that no earlier one is taken for it."""
    reason = {"": "the run did not end, or is still in progress"}
    return build([], verbs={}, run=run, left_out=reason)


def findings(results: Sequence[Mapping[str, Any]], verbs: Mapping[str, Any]) -> list[str]:
    """Return where to look, in one sentence for each collective that did not pass and a last one for all of them."""
    if not results:
        return ["No collective was run: it needs two hosts with GPUs and the same rails"]
    found = [f"{name(result)}: {result['reason']}" for result in results if result["verdict"] != PASS]
    if not any(result["verdict"] == FAIL for result in results):
        return found
    if verbs.get("verdict") == PASS:
        return [*found, f"The rails passed in run {verbs.get('run')}, and NCCL did not. Check {_LOOK}"]
    state = f"has the verdict {verbs['verdict']}" if verbs.get("verdict") else "is missing"
    return [*found, f"The measurement of the rails {state}. Make it pass first: NCCL does not show which port is slow"]


def text(report: Mapping[str, Any]) -> str:
    """Return the table for people."""
    rows = [("collective", "GB/s", "expected", "verdict", "transport")]
    for result in report["results"]:
        found = (_number(result["value"]), _number(result["expected"]), result["verdict"], transports(result))
        rows.append((name(result), *found))
    widths = [max(len(row[at]) for row in rows) for at in range(4)]
    lines = ["  ".join([*(cell.ljust(width) for cell, width in zip(row, widths)), row[-1]]).rstrip() for row in rows]
    lines += [f"{host or 'all hosts'}: not measured: {reason}" for host, reason in report["left_out"].items()]
    lines += report["findings"]
    return harmless("\n".join([f"NCCL: {report['verdict']}", *lines, ""]))


def _number(value: float | None) -> str:
    return "-" if value is None else f"{value:.1f}"


def to_junit(report: Mapping[str, Any]) -> str:
    """Return one test case for each collective and for each host that was left out; a run without any is an error."""
    found = cases(report)
    verdicts = [verdict for _name, verdict, _reason in found]
    counts = {"tests": len(found), "failures": verdicts.count(FAIL), "errors": verdicts.count(NO_DATA)}
    suite = ElementTree.Element("testsuite", {"name": "gpufabric.rdma nccl", **{k: str(v) for k, v in counts.items()}})
    for title, verdict, reason in found:
        case = ElementTree.SubElement(suite, "testcase", {"classname": "nccl", "name": harmless(title)})
        if verdict != PASS:
            ElementTree.SubElement(case, _TAGS[verdict], {"message": harmless(reason)})
    return ElementTree.tostring(suite, encoding="unicode") + "\n"


def to_prometheus(report: Mapping[str, Any]) -> str:
    """Return the metrics of a run."""
    results = report["results"]
    labels = [{key: result[key] for key in ("collective", "path", "unit")} for result in results]
    values = [(own, result["value"]) for own, result in zip(labels, results) if result["value"] is not None]
    limits = [(own, result["expected"]) for own, result in zip(labels, results) if result["expected"] is not None]
    verdicts = [({"verdict": one}, float(report["verdict"] == one)) for one in VERDICTS]
    lines = [
        *gauge("nccl_verdict", "Verdict of the collectives.", verdicts),
        *gauge("nccl_bus_bandwidth_gigabytes", "Bus bandwidth out of place in GB/s.", values),
        *gauge("nccl_expected_gigabytes", "Least bus bandwidth in GB/s.", limits),
    ]
    return harmless("\n".join(lines) + "\n")


def files(report: Mapping[str, Any]) -> dict[str, str]:
    """Return the files of the report by name."""
    return {
        "nccl.json": to_json(report),
        "nccl.txt": text(report),
        "nccl-junit.xml": to_junit(report),
        "nccl.prom": to_prometheus(report),
    }
