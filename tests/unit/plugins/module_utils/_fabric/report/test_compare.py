"""Two reports side by side: each change has its direction, and what only one of them has is named."""

from __future__ import annotations

from typing import Any

import pytest
from tests.unit.support import report_factory as factory
from tests.unit.support.page import to_html

from ansible_collections.gpufabric.rdma.plugins.module_utils._fabric.measure.judge.earlier_report import EarlierReport
from ansible_collections.gpufabric.rdma.plugins.module_utils._fabric.report import compare, summary


def one(**changes: Any) -> dict[str, Any]:
    return summary.build({}, [factory.result("a", "b", **changes)])


def compared(now: dict[str, Any], before: dict[str, Any]) -> dict[str, Any]:
    return compare.compare(now, EarlierReport.read(before, "report.json"))


LATENCY = {"unit": "us", "test": "write_lat", "expected": 4.0}


@pytest.mark.parametrize(
    ("before", "now", "trend"),
    [
        ({}, {}, None),
        ({"value": 100.0}, {"value": 91.0}, None),
        ({"value": 100.0}, {"value": 89.0}, "worse"),
        ({"value": 100.0}, {"value": 120.0}, "better"),
        ({**LATENCY, "value": 2.0}, {**LATENCY, "value": 3.0}, "worse"),
        ({**LATENCY, "value": 3.0}, {**LATENCY, "value": 2.0}, "better"),
        ({}, {"verdict": "fail"}, "worse"),
        ({}, {"verdict": "no_data", "value": None}, "worse"),
        ({"verdict": "fail"}, {"verdict": "no_data", "value": None}, "worse"),
        ({"verdict": "no_data", "value": None}, {}, "better"),
        # The verdict counts before the value: faster and yet failed is worse.
        ({"value": 50.0}, {"value": 90.0, "verdict": "fail"}, "worse"),
        ({"verdict": "fail", "value": 0.0}, {"verdict": "fail", "value": 90.0}, None),
    ],
)
def test_trend_of_one_test(before: dict[str, Any], now: dict[str, Any], trend: str | None) -> None:
    made = compared(one(**now), one(**before))
    assert [row["trend"] for row in made["worse"] + made["better"]] == ([trend] if trend else [])
    assert made["compared"] == 1


def test_ports_that_only_one_report_has() -> None:
    before = summary.build({}, [factory.result("a", "b"), factory.result("a", "c")])
    now = summary.build({}, [factory.result("a", "b"), factory.result("a", "d")])
    made = compared(now, before)
    assert made["new"] == [{"where": "host", "host": "d", "rail": "rail0"}]
    assert made["missing"] == [{"where": "host", "host": "c", "rail": "rail0"}]
    assert "not measured now: c rail0 (host)" in made["text"]


def test_diagnoses_that_are_new_resolved_and_remaining() -> None:
    before = summary.build(**factory.fleet(4, 2, faults={("gpu-000", "rail0"): "slow", ("gpu-001", "rail1"): "cable"}))
    now = summary.build(**factory.fleet(4, 2, faults={("gpu-000", "rail0"): "slow", ("gpu-003", "rail1"): "slow"}))
    made = compared(now, before)
    assert [len(made["diagnoses"][word]) for word in ("new", "remaining", "resolved")] == [1, 1, 1]
    assert made["text"][1].startswith("new: gpu-003 rail1")
    # The two tests between these hosts had no data and fail now, which is better than nothing.
    assert "better: gpu-001 rail1 (host) in 6 tests" in made["text"]
    assert "worse: gpu-003 rail1 (host) in 4 tests" in made["text"]


def test_text_stays_short_when_everything_changed() -> None:
    faults = {(f"gpu-{h:03d}", "rail0"): "slow" for h in range(40)}
    made = compared(summary.build(**factory.fleet(40, 1, faults=faults)), summary.build(**factory.fleet(40, 1)))
    assert len(made["worse"]) == 40 * 39
    assert len(made["text"]) <= 14


def test_page_shows_the_comparison() -> None:
    now = one(verdict="fail", value=12.0)
    now["comparison"] = compared(now, one())
    page = to_html(now)
    assert "Compared with the earlier report" in page and "worse: a rail0 (host) in 1 test" in page
