"""Inside and between groups of hosts: what is apart in the report, and where nothing is. Cost: below a second."""

from __future__ import annotations

import json
from typing import Any

import jsonschema
from tests.unit.support import report_factory as factory
from tests.unit.support.page import to_html
from tests.unit.support.real_play import ROOT

from ansible_collections.gpufabric.rdma.plugins.module_utils._fabric.report import paths, summary

GROUPS = {"rack1": ["gpu-000", "gpu-001"], "rack2": ["gpu-002", "gpu-003"], "rack3": ["gpu-004", "gpu-005"]}
PARENTS = {"rack1": ["pod1"], "rack2": ["pod1"], "rack3": ["pod2"]}


def plan(groups: dict[str, list[str]], parents: dict[str, list[str]]) -> dict[str, Any]:
    return {**factory.plan(6, 1), "tests": {"groups": groups, "parents": parents}}


def results(hosts: int) -> list[dict[str, Any]]:
    """All ordered pairs; those to and from gpu-004 read less."""
    names = [f"gpu-{number:03d}" for number in range(hosts)]
    slow = {"value": 40.0, "verdict": "fail", "expected": 46.5}
    return [
        factory.result(client, server, **(slow if "gpu-004" in (client, server) else {}))
        for client in names
        for server in names
        if client != server
    ]


def test_each_level_has_its_row() -> None:
    rows = paths.rows(plan(GROUPS, PARENTS), results(6))
    found = [(row["levels"], row["pairs"], row["verdict"], row["worst"], row["expected"]) for row in rows]
    # Both directions: 3 pairs inside racks, 4 between the racks of pod1, 8 between pods.
    assert found == [(0, 6, "fail", 40.0, 46.5), (1, 8, "pass", 98.01, 93.1), (2, 16, "fail", 40.0, 46.5)]
    assert [paths.said(row["levels"]) for row in rows] == [
        "inside a group", "between groups", "between groups, 2 levels up",
    ]  # fmt: skip


def test_nothing_is_told_twice() -> None:
    assert paths.rows(plan({}, {}), results(4)) == []
    assert paths.rows({}, results(4)) == []
    one = {"rack1": [f"gpu-{number:03d}" for number in range(6)]}
    assert paths.rows(plan(one, {}), results(4)) == []
    # gpu-003 is in no group: its path is not known.
    two = {"rack1": ["gpu-000"], "rack2": ["gpu-001", "gpu-002"]}
    assert sum(row["pairs"] for row in paths.rows(plan(two, {}), results(4))) == 6


def test_a_latency_has_no_expectation_in_gigabits() -> None:
    measured = [
        factory.result("gpu-000", other, unit="us", value=2.0, expected=5.0) for other in ("gpu-001", "gpu-002")
    ]
    rows = paths.rows(plan(GROUPS, {}), measured)
    assert [(row["worst"], row["expected"]) for row in rows] == [(None, None)] * 2


def test_the_page_has_them() -> None:
    report = summary.build(plan(GROUPS, PARENTS), results(6))
    jsonschema.validate(report, json.loads((ROOT / "docs/report.schema.json").read_text()))
    page = to_html(report)
    assert "Inside and between groups of hosts" in page and "between groups, 2 levels up" in page
    assert "Inside and between" not in to_html(summary.build(factory.plan(6, 1), results(6)))
