# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The report as one value, from which every format is rendered."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from ..measure.verdict import VERDICTS, findings, overall, rail_rows

SCHEMA = "gpufabric.rdma/report/1"


def build(
    plan: Mapping[str, Any],
    results: Sequence[Mapping[str, Any]],
    warnings: Sequence[str] = (),
    context: Mapping[str, Any] | None = None,
) -> dict[str, Any]:
    """Join plan and results into the report (docs/report.schema.json).

    ``results`` are the dicts of fabric_judge; ``context`` holds times (seconds), requests and versions of the run.
    """
    ordered = sorted((dict(result) for result in results), key=_order)
    return {
        "schema": SCHEMA,
        "verdict": overall(ordered),
        "findings": findings(ordered),
        "rails": [{**row, "verdict": overall(_on(ordered, row))} for row in rail_rows(ordered)],
        "hosts": {name: _host(name, plan, ordered) for name in _host_names(plan, ordered)},
        "results": ordered,
        "warnings": list(warnings),
        "context": dict(context or {}),
    }


def count(results: Sequence[Mapping[str, Any]]) -> dict[str, int]:
    """Return how many results there are of each verdict."""
    counts = dict.fromkeys(VERDICTS, 0)
    for result in results:
        counts[result["verdict"]] += 1
    return counts


def name_of(host: str, rail: str, where: str) -> str:
    """Return the name by which all formats call one port: ``lab-1 rail0 (pod)``."""
    return "%s %s (%s)" % (host, rail, where)


def _on(results: Sequence[dict[str, Any]], row: Mapping[str, Any]) -> list[dict[str, Any]]:
    return [result for result in results if (result["where"], result["rail"]) == (row["where"], row["rail"])]


def _order(result: Mapping[str, Any]) -> tuple[str, ...]:
    return tuple(str(result[key]) for key in ("where", "rail", "test", "client", "server"))


def _host_names(plan: Mapping[str, Any], results: Sequence[Mapping[str, Any]]) -> list[str]:
    named = {result[side] for result in results for side in ("client", "server")}
    return sorted(named | set(plan.get("hosts", {})))


def _host(name: str, plan: Mapping[str, Any], results: Sequence[Mapping[str, Any]]) -> dict[str, Any]:
    own = [result for result in results if name in (result["client"], result["server"])]
    planned = plan.get("hosts", {}).get(name, {})
    keys = ("rail", "pci", "netdev", "address", "mtu")
    return {
        "verdict": overall(own),
        **count(own),
        "node": planned.get("node"),
        "rails": [{key: rail.get(key) for key in keys} for rail in planned.get("rails", [])],
    }
