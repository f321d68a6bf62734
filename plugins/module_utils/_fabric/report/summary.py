# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The report as one value, from which every format is rendered."""

from __future__ import annotations

import re
import statistics
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from ..intent.tests import complete
from ..measure.diagnosis.wording import CONFIRMED_FAULT, level
from ..measure.judge import unmeasured
from ..measure.judge.earlier_report import SCHEMA
from ..measure.judge.verdict import FAIL, NO_DATA, PASS, VERDICTS, findings, overall, rail_rows
from ..plan.switch_ports import Switches, text
from . import gpu_memory, paths, runs

# What judges may add; a list that was not asked for is absent from the report.
PARTS = ("diagnoses", "unmeasured", "unsteady", "outliers", "links", "gates", "baseline", "schedule")
# What is known about the run; absent when the results are those of no run.
ABOUT = ("run", "scope", "versions")


def build(
    plan: Mapping[str, Any],
    results: Sequence[Mapping[str, Any]],
    warnings: Sequence[str] = (),
    *,
    context: Mapping[str, Any] | None = None,
    parts: Mapping[str, Any] | None = None,
) -> dict[str, Any]:
    """Join plan and results into the report (docs/report.schema.json).

    ``results`` are the dicts of fabric_judge; ``context`` holds times (seconds), requests and versions of the run;
    ``parts`` the lists of PARTS that are known. What is a failure among gates, unsteady tests, outliers and baselines
    fails the whole.
    """
    ordered = sorted((dict(result) for result in results), key=_order)
    given = parts or {}
    known = {name: list(given[name]) for name in PARTS if given.get(name) is not None}
    if "diagnoses" in known:
        # What makes readings missing comes before what the rest of them show.
        known["diagnoses"] = sorted(known["diagnoses"], key=lambda diagnosis: diagnosis.get("kind") != "overload")
    if "links" in known:
        known["links"] = _once(known["links"])
    left_out = known.get("unmeasured", [])
    report = {
        "schema": SCHEMA,
        "verdict": overall(ordered, left_out),
        **{name: given[name] for name in ABOUT if given.get(name)},
        "findings": [*_findings(ordered, known.get("diagnoses", [])), *unmeasured.texts(left_out)],
        "rails": _rails(ordered, left_out),
        "hosts": _hosts(plan, ordered, left_out),
        "results": ordered,
        "warnings": _not_told(warnings, known.get("links", [])),
        "context": dict(context or {}),
        **_tests(plan),
        **_paths(plan, ordered),
        **known,
        **_endpoints(given.get("endpoints")),
    }
    if stops(report):
        report["verdict"] = FAIL
    return report


def _tests(plan: Mapping[str, Any]) -> dict[str, Any]:
    """Return how was measured, under its key: ``rdma_fabric.tests`` without what names hosts."""
    if "tests" not in plan:
        return {}
    return {"tests": {key: value for key, value in complete(plan["tests"]).items() if key not in ("only", "groups")}}


def _paths(plan: Mapping[str, Any], results: Sequence[Mapping[str, Any]]) -> dict[str, Any]:
    """Return what was measured inside and between groups of hosts, and from GPU and host memory, under their keys."""
    rows, memory = paths.rows(plan, results), gpu_memory.rows(results)
    return {**({"paths": rows} if rows else {}), **({"gpu_memory": memory} if memory else {})}


def _endpoints(places: Sequence[Mapping[str, Any]] | None) -> dict[str, Any]:
    """Return the ports that were measured, place -> host -> rail, under their key."""
    return {"endpoints": {place["where"]: place["hosts"] for place in places}} if places else {}


def subset(report: Mapping[str, Any]) -> list[str]:
    """Return why the run does not cover the whole fabric, [] when it does or nobody knows."""
    return list((report.get("scope") or {}).get("subset") or [])


def confirmed(report: Mapping[str, Any]) -> int:
    """Return how many confirmed faults a report names."""
    return sum(level(diagnosis) == CONFIRMED_FAULT for diagnosis in report.get("diagnoses", []))


def _once(links: Sequence[dict[str, Any]]) -> list[dict[str, Any]]:
    """Return the links; what a transceiver showed in several places, with other values in each, only for the first."""
    found: dict[tuple[Any, ...], dict[str, Any]] = {}
    for number, one in enumerate(links):
        port, _colon, text = one["text"].partition(": ")
        # Light that is sent and light that is received can have the same threshold.
        known = (port, one["expected"], " receive" in text.partition(", expected")[0])
        found.setdefault(known if one["kind"] == "optics" else (number,), one)
    return list(found.values())


def _not_told(warnings: Sequence[str], links: Sequence[Mapping[str, Any]]) -> list[str]:
    """Return the warnings without those that stand among the links: the plan has warned of them already."""
    told = {link["text"] for link in links}
    return [warning for warning in warnings if warning not in told]


def with_gates(report: Mapping[str, Any], gates: Sequence[Mapping[str, Any]]) -> dict[str, Any]:
    """Return the report with the gates that were judged over it."""
    judged = {**report, "gates": list(gates)}
    return {**judged, "verdict": FAIL} if stops(judged) else judged


def stops(report: Mapping[str, Any]) -> list[dict[str, Any]]:
    """Return what fails the whole beside single tests: what is of severity ``failure`` of gates and findings."""
    gates = [gate for gate in report.get("gates", []) if gate["verdict"] == FAIL]
    rows = [*gates, *(row for name in ("unsteady", "outliers", "baseline") for row in report.get(name, []))]
    return [row for row in rows if row["severity"] == "failure"]


def count(results: Iterable[Mapping[str, Any]]) -> dict[str, int]:
    """Return how many results there are of each verdict."""
    counts = dict.fromkeys(VERDICTS, 0)
    for result in results:
        counts[result["verdict"]] += 1
    return counts


def name_of(host: str, rail: str, where: str) -> str:
    """Return the name by which all formats call one port: ``lab-1 rail0 (pod)``."""
    return "%s %s (%s)" % (host, rail, where)


def brief(report: Mapping[str, Any], path: str, shown: int = 10) -> dict[str, Any]:
    """Return the few values that a workflow hands on (``set_stats``): verdict, counts, the first causes, the folder."""
    causes = report["findings"]
    causes = [*causes, *report.get("nccl", {}).get("findings", ())]
    causes = [*causes, *(row["text"] for row in report.get("unsteady", []) if row["severity"] == "failure")]
    return {
        "verdict": report["verdict"],
        "hosts": len(report["hosts"]),
        "tests": len(report["results"]),
        **count(report["results"]),
        "diagnoses": causes[:shown],
        "gates": [row["name"] for row in stops(report) if "name" in row],
        "path": path,
        "run": (report.get("run") or {}).get("id", ""),
        "subset": subset(report),
        "release": (report.get("run") or {}).get("release") or "",
        "cluster": runs.cluster(report),
    }


def _findings(results: Sequence[Mapping[str, Any]], diagnoses: Sequence[Mapping[str, Any]]) -> list[str]:
    """Return what failures have in common. Blames rest on more tests, so they take the place of the guess."""
    if diagnoses:
        return [diagnosis["text"] for diagnosis in diagnoses]
    return [] if all(result["verdict"] == PASS for result in results) else findings(results)


def _rails(results: Sequence[Mapping[str, Any]], left_out: Sequence[Mapping[str, Any]]) -> list[dict[str, Any]]:
    """Return a row a rail and place. Rates and latencies are never mixed: latency has columns of its own, in us.

    ``left_out``: the ports without any test.
    """
    without: dict[tuple[str, str], list[Mapping[str, Any]]] = {}
    for one in left_out:
        without.setdefault((one["where"], one["rail"]), []).append(one)
    groups: dict[tuple[str, str], list[Mapping[str, Any]]] = {}
    for result in results:
        groups.setdefault((result["where"], result["rail"]), []).append(result)
    rows = []
    for row in rail_rows(results):
        own = groups[row["where"], row["rail"]]
        found = overall(own, without.pop((row["where"], row["rail"]), []))
        rows.append({**row, "verdict": found, **_latency(own)})
    nothing = {"pairs": 0, **count([]), "worst": None, "median": None, "verdict": NO_DATA}
    rows += [{"where": where, "rail": rail, **nothing} for where, rail in without]
    return sorted(rows, key=lambda row: row["where"])


def _latency(results: Iterable[Mapping[str, Any]]) -> dict[str, float]:
    values = [result["value"] for result in results if result["unit"] == "us" and result["value"] is not None]
    return {"latency_worst": max(values), "latency_median": statistics.median(values)} if values else {}


def _order(result: Mapping[str, Any]) -> tuple[Any, ...]:
    """Sort by place, rail and test first, as the heat maps need it."""
    get = result.get
    what = (result["where"], result["rail"], result["test"], get("size", 0), get("memory", "host"))
    return (*what, result["client"], result["server"], get("peer_rail", ""))


def _hosts(
    plan: Mapping[str, Any], results: Sequence[Mapping[str, Any]], left_out: Sequence[Mapping[str, Any]]
) -> dict[str, Any]:
    own: dict[str, list[Mapping[str, Any]]] = {name: [] for name in plan.get("hosts", {})}
    for result in results:
        for name in dict.fromkeys((result["client"], result["server"])):
            own.setdefault(name, []).append(result)
    without: dict[str, list[Mapping[str, Any]]] = {}
    for one in left_out:
        own.setdefault(one["host"], [])
        without.setdefault(one["host"], []).append(one)
    planned, switches = plan.get("hosts", {}), plan.get("switches", {})
    return {
        name: {
            "verdict": overall(own[name], without.get(name, [])),
            **_host(name, planned.get(name, {}), own[name], switches=switches),
        }
        for name in sorted(own, key=_natural)
    }


def _natural(name: str) -> list[Any]:
    """Return a key by which gpu-9 comes before gpu-10, so that neighbours of a rack are neighbours in a map."""
    return [int(part) if at % 2 else part for at, part in enumerate(re.split(r"(\d+)", name))]


def _host(
    name: str, planned: Mapping[str, Any], own: Sequence[Mapping[str, Any]], *, switches: Switches
) -> dict[str, Any]:
    keys = ("rail", "pci", "netdev", "address", "mtu")
    rails = [{key: rail.get(key) for key in keys} for rail in planned.get("rails", [])]
    for rail in rails:
        switch = text(switches.get(rail["rail"] or "", {}).get(name))
        rail.update({"switch": switch} if switch else {})
    return {**count(own), "node": planned.get("node"), "rails": rails}
