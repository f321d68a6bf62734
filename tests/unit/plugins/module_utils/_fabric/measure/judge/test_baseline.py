"""Baselines: written from a good run, compared with a later one; nothing is left unsaid."""

from __future__ import annotations

import json
from typing import Any

import pytest
from tests.unit.support.report_factory import result, results

from ansible_collections.gpufabric.rdma.plugins.module_utils._common.errors import InputError
from ansible_collections.gpufabric.rdma.plugins.module_utils._fabric.measure.judge.baseline import compare
from ansible_collections.gpufabric.rdma.plugins.module_utils._fabric.measure.judge.earlier_report import (
    SCHEMA,
    EarlierReport,
)

LATENCY = {"test": "write_lat", "unit": "us", "value": 2.0, "expected": None}


def make(rows: list[dict[str, Any]]) -> EarlierReport:
    """The report of a run with these results."""
    report = {"schema": SCHEMA, "verdict": "pass", "results": rows}
    return EarlierReport.read(json.dumps(report), "/r/report.json")


def test_only_what_passed_is_compared() -> None:
    before = make(
        [
            result("a", "b"),
            result("b", "a", verdict="fail", value=500.0),
            result("a", "c", verdict="no_data", value=None),
        ]
    )
    assert compare([result("a", "b")], before, 0.1) == []
    assert [one["text"] for one in compare([result("a", "b"), result("b", "a")], before, 0.1)] == [
        "rail0 write_bw: 1 pairs of this run are not in the baseline (b to a)"
    ]


def test_a_run_where_nothing_passed_is_no_baseline() -> None:
    for rows in ([], [result("a", "b", verdict="fail")]):
        with pytest.raises(InputError) as caught:
            compare([result("a", "b")], make(rows), 0.1)
        assert str(caught.value) == (
            f"baseline: none of the {len(rows)} results in /r/report.json passed. Give the report.json of a run that"
            " passed"
        )


def test_a_run_equals_its_own_baseline() -> None:
    rows = results(4, 2)
    assert compare(rows, make(rows), 0.01) == []


def test_a_drop_is_named_with_both_values() -> None:
    before = make([result("a", "b"), result("a", "c"), result("a", "b", **LATENCY), result("b", "a", **LATENCY)])
    now = [
        result("a", "b", value=86.2),
        result("a", "c", value=300.0),
        result("a", "b", **{**LATENCY, "value": 2.6}),
        result("b", "a", **{**LATENCY, "value": 0.1}),
    ]
    found = compare(now, before, 0.1, severity="warning")
    assert [(one["test"], one["value"], one["before"], round(one["change"], 2), one["severity"]) for one in found] == [
        ("write_bw", 86.2, 98.01, -0.12, "warning"),
        ("write_lat", 2.6, 2.0, 0.3, "warning"),
    ]
    assert found[0]["text"] == ("a to b rail0 write_bw: 86.2 Gb/s, 98 Gb/s in the baseline (-12 %, 10 % allowed)")
    assert list(found[0]) == [
        "where",
        "rail",
        "client",
        "server",
        "test",
        "value",
        "before",
        "change",
        "severity",
        "text",
    ]
    assert compare(now, before, 0.5) == []


def test_sizes_are_compared_each_with_its_own() -> None:
    before = make([result("a", "b", size=4096, value=60.0), result("a", "b", size=65536)])
    now = [result("a", "b", size=4096, value=50.0), result("a", "b", size=65536), result("a", "b", size=1048576)]
    assert [one["text"] for one in compare(now, before, 0.1)] == [
        "a to b rail0 write_bw 4096 B: 50 Gb/s, 60 Gb/s in the baseline (-17 %, 10 % allowed)",
        "rail0 write_bw 1048576 B: 1 pairs of this run are not in the baseline (a to b)",
    ]


def test_what_is_on_one_side_only_is_said_once_for_a_rail() -> None:
    before = make([result("a", "b"), result("a", "c"), result("b", "c"), result("a", "b", rail="rail1")])
    now = [result("a", "b"), result("a", "c", verdict="no_data", value=900.0), result("x", "y")]
    assert [one["text"] for one in compare(now, before, 0.1)] == [
        "rail0 write_bw: 2 pairs of the baseline have no value in this run (a to c, b to c)",
        "rail1 write_bw: 1 pairs of the baseline have no value in this run (a to b)",
        "rail0 write_bw: 1 pairs of this run are not in the baseline (x to y)",
    ]
    entry = compare(now, before, 0.1)[0]
    assert (entry["severity"], entry["client"], entry["value"], entry["change"]) == ("warning", None, None, None)


@pytest.mark.parametrize("now", [[], [result("x", "y")], [result("a", "b", memory="cuda:dmabuf")]])
def test_nothing_in_common_is_a_failure(now: list[dict[str, Any]]) -> None:
    (entry,) = compare(now, make([result("a", "b")]), 0.1)
    assert entry["severity"] == "failure"
    assert entry["text"] == f"nothing was compared: no test in common, {len(now)} values in this run, 1 in the baseline"


GOOD = make([result("a", "b")])


@pytest.mark.parametrize("allowed", [0, 1, -0.1, 10, True, "0.1", None])
def test_the_allowed_drop_is_a_share(allowed: Any) -> None:
    with pytest.raises(InputError, match="allowed drop against the baseline: expected a share between 0 and 1"):
        compare([result("a", "b")], GOOD, allowed)
