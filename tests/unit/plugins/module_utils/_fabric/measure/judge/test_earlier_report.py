"""An earlier report is used or refused with its fault named: whatever is in the file, nothing ends in a traceback."""

from __future__ import annotations

import contextlib
import json
from collections.abc import Iterator
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.unit.support import report_factory as factory
from tests.unit.support import tester_logs

from ansible_collections.gpufabric.rdma.plugins.module_utils._common.errors import FabricError
from ansible_collections.gpufabric.rdma.plugins.module_utils._fabric.measure.judge import baseline, earlier_report
from ansible_collections.gpufabric.rdma.plugins.module_utils._fabric.measure.judge.earlier_report import (
    EarlierReport,
    UnusableReport,
)
from ansible_collections.gpufabric.rdma.plugins.module_utils._fabric.measure.judge.step import step
from ansible_collections.gpufabric.rdma.plugins.module_utils._fabric.measure.readings.tester_log import Evidence
from ansible_collections.gpufabric.rdma.plugins.module_utils._fabric.report import compare, page, runs, summary
from ansible_collections.gpufabric.rdma.plugins.module_utils._fabric.report.formats import render

PORT = {
    "machine_id": "8d1f",
    "device": "mlx5_0",
    "rate": "400 Gb/sec",
    "kind": "pci",
    "pci": "0000:10:00.0",
    "firmware": "28.43.2026",
    "drivers": "mlx5_core 24.10",
}
VERSIONS = {
    "machine_id": "8d1f",
    "kernel": "6.8.0",
    "perftest": "6.24",
    "drivers": {"mlx5_core": "24.10"},
    "rails": {"rail0": {"pci": "0000:10:00.0", "driver": "mlx5_core", "kind": "pci"}},
}
SCOPE = {
    "where": ["host"],
    "hosts": ["a", "b"],
    "rails": ["rail0"],
    "only": {},
    "limit": "",
    "image": "",
    "host_network": False,
    "subset": ["pods not measured"],
}
DIAGNOSIS = {
    "kind": "port",
    "where": "host",
    "rail": "rail0",
    "host": "a",
    "peer": None,
    "direction": None,
    "text": "a",
}
ROW = factory.result(
    "a", "b", memory="host", basis="link", counters={"client": {"out_of_sequence": 3}},
    link={"server": {"rate": "100"}}, spread={"min": 90.0, "max": 98.01, "n": 2},
    gpu={"server": {"bdf": "0000:1a:00.0", "path": "PIX"}},
    paths=[{"pass": 2, "value": 98.01, "verdict": "pass", "reason": "", "flow_labels": [7]}],
)  # fmt: skip
ROW["passes"] = [{**ROW["passes"][0], "flow_labels": [7, 16383], "lid_offset": 127}]
PLAN = tester_logs.plan(["a", "b"], ["rail0"])
REPORT: dict[str, Any] = {
    **summary.build({}, [ROW, factory.result("b", "a", verdict="fail")]), "diagnoses": [DIAGNOSIS], "scope": SCOPE,
    "run": {"id": "20261122T000000Z-00000a", "ended": "2026-11-22"}, "versions": {"a": VERSIONS, "b": VERSIONS},
    "endpoints": {"host": {"a": {"rail0": PORT}, "b": {"rail0": PORT}}},
    "tests": {**PLAN["tests"], "mode": "all_pairs", "size": 65536, "sizes": [], "latency_size": 2},
}  # fmt: skip
GARBAGE: list[Any] = [None, "x", 7, -1, 0, True, [], ["x"], [[]], {}, {"x": None}, float("nan"), 10**60, "\ud800"]
GONE = object()
TEXT = json.dumps(REPORT)
KNOWN = {name: {"machine_id": "8d1f", "drivers": {"mlx5_core": "24.10"}, "rails": {"rail0": PORT}} for name in "ab"}
TEXTS = {
    name: tester_logs.described(
        [f'rail0 device=mlx5_0 port=1 gid=3 address=10.0.0.{at} mtu=4096 rate="400 Gb/sec"'],
        "perftest=6.24 machine_id=8d1f",
    )
    for at, name in enumerate("ab", 1)
}


def paths(value: Any, path: tuple[Any, ...] = ()) -> Iterator[tuple[Any, ...]]:
    yield path
    steps = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    for key, item in steps:
        yield from paths(item, (*path, key))


def damaged(path: tuple[Any, ...], value: Any) -> Any:
    """The report with another value at a path, or without it for GONE."""
    found = {"": json.loads(TEXT)}
    place: Any = found
    *before, last = ("", *path)
    for key in before:
        place = place[key]
    if value is GONE:
        del place[last]
    else:
        place[last] = value
    return found.get("")


def use(report: EarlierReport) -> list[dict[str, Any]]:
    """All that later runs do with an earlier report but to render it; the results that were taken over."""
    now = {"scope": SCOPE, "hosts": REPORT["versions"], "plan": {}, "unread": []}
    for when in ("changed", "never"):
        runs.decide(when, runs.Last("p", report, "", {}), now)
    compare.compare(REPORT, report)
    # A report in which nothing passed is no baseline.
    with contextlib.suppress(FabricError):
        baseline.compare(REPORT["results"], report, 0.1)
    found = step(PLAN, "host", Evidence(TEXTS, {}, (), "stop"), earlier=report, hosts=KNOWN)
    return [result for result in found.results if "resumed" in result]


def show(results: list[dict[str, Any]]) -> None:
    built = summary.build(PLAN, results)
    render(built, PLAN, 10)
    page.page(built)


def test_a_whole_report_is_read_and_used() -> None:
    report = EarlierReport.read(TEXT, "/r/report.json")
    assert (report.path, report.verdict, report.run_id) == ("/r/report.json", "fail", "20261122T000000Z-00000a")
    assert [(where, test.client) for where, test in report.rows] == [("host", "a"), ("host", "b")]
    assert list(report.passed().values()) == [ROW]
    assert EarlierReport.read(REPORT, "/r/report.json") == report
    (kept,) = use(report)
    assert (kept["client"], kept["value"], kept["resumed"]) == ("a", 98.01, "20261122T000000Z-00000a")
    # What single paths showed then is no evidence of today.
    assert "paths" not in kept
    show([kept])


def test_a_report_is_used_or_refused_whatever_is_in_it() -> None:
    """About 2,500 reports, 1 s. What is taken over of a damaged result is rendered too."""
    for path in paths(REPORT):
        for value in (GONE, *GARBAGE):
            made = damaged(path, value)
            with contextlib.suppress(UnusableReport):
                kept = use(EarlierReport.read(made, "p"))
                if path[:2] == ("results", 0):
                    show(kept)


JSON = st.recursive(
    st.none() | st.booleans() | st.floats() | st.integers() | st.sampled_from(["pass", "a", "us", "host"]),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.sampled_from([*REPORT, *ROW]), inner, max_size=8),
    max_leaves=12,
)


@given(JSON | st.fixed_dictionaries({"schema": st.just(earlier_report.SCHEMA), "verdict": JSON, "results": JSON}))
def test_any_document_is_read_or_refused(document: Any) -> None:
    with contextlib.suppress(UnusableReport):
        EarlierReport.read(document, "p")


@given(st.binary(max_size=40), st.integers(0, len(TEXT)), st.integers(0, 40))
def test_any_damage_of_the_file_is_read_or_refused(noise: bytes, at: int, cut: int) -> None:
    whole = TEXT.encode()
    with contextlib.suppress(UnusableReport):
        use(EarlierReport.read(whole[:at] + noise + whole[at + cut :], "p"))


GIVE = "Give the report.json of an earlier run"


@pytest.mark.parametrize(
    ("found", "fault"),
    [
        ("", "expected JSON, found an error: Expecting value: line 1 column 1 (char 0)"),
        (b"\xff\xfe{", "expected JSON, found an error: 'utf-16-le' codec can't decode byte 0x7b in position 2:"
         " truncated data"),
        ("[" * 100_000, "expected JSON, found lists or dicts nested too deeply"),
        ("[3]", "expected a dict, found a list"),
        ("null", "expected a dict, found nothing (null)"),
        ("{}", f"schema: expected {earlier_report.SCHEMA}, found nothing (null)"),
        ({**REPORT, "schema": "mine"}, f'schema: expected {earlier_report.SCHEMA}, found "mine" (text)'),
        ({**REPORT, "results": None}, "results: expected a list, found nothing (null)"),
        ({**REPORT, "results": [ROW, ROW]}, "results[1]: expected each test once, found the test of results[0]"),
        (damaged(("verdict",), GONE), "verdict: expected a value, found nothing (null)"),
        (damaged(("verdict",), "ok"), 'verdict: expected pass, fail or no_data, found "ok" (text)'),
        (damaged(("run",), "x"), 'run: expected a dict, found "x" (text)'),
        (damaged(("versions", "a"), None), "versions.a: expected a dict, found nothing (null)"),
        (damaged(("endpoints", "host"), "x"), 'endpoints.host: expected a dict, found "x" (text)'),
        (damaged(("scope", "subset"), [1]), "scope.subset[0]: expected text, found 1 (number)"),
        (damaged(("results", 1), 1), "results[1]: expected a dict, found 1 (number)"),
        (damaged(("results", 0, "rail"), ["r"]), "results[0].rail: expected text, found a list"),
        (damaged(("results", 0, "reason"), GONE), "results[0].reason: expected a value, found nothing (null)"),
        (damaged(("results", 0, "value"), 0),
         "results[0].value: expected a number above 0 in a result that passed, found 0 (number)"),
        (damaged(("results", 0, "value"), True),
         "results[0].value: expected a number from 0 to 1000000000000000.0, found true (true or false)"),
        (damaged(("results", 0, "unit"), "us"),
         'results[0].unit: expected Gb/s, the unit of write_bw, found "us" (text)'),
        (damaged(("results", 0, "memory"), 1), "results[0].memory: expected text, found 1 (number)"),
        ({**REPORT, "results": [{**ROW, "size": "4096"}]},
         'results[0].size: expected a whole number from 0 to 1099511627776, found "4096" (text)'),
        (damaged(("results", 0, "passes", 0, "value"), "x"),
         'results[0].passes[0].value: expected a number from 0 to 1000000000000000.0, found "x" (text)'),
        (damaged(("results", 0, "passes", 0, "flow_labels", 1), "; reboot"),
         'results[0].passes[0].flow_labels[1]: expected a whole number from 1 to 16383, found "; reboot" (text)'),
        (damaged(("results", 0, "passes", 0, "lid_offset"), 128),
         "results[0].passes[0].lid_offset: expected a whole number from 0 to 127, found 128 (number)"),
        (damaged(("results", 0, "paths"), [{}]), "results[0].paths[0].pass: expected a value, found nothing (null)"),
    ],
)  # fmt: skip
def test_a_fault_is_named(found: Any, fault: str) -> None:
    with pytest.raises(UnusableReport) as caught:
        EarlierReport.read(found, "/r/report.json")
    assert str(caught.value) == f"/r/report.json is not a report of this collection: {fault}. {GIVE}"
    assert caught.value.problem == f"/r/report.json is not a report of this collection: {fault}"


@pytest.mark.parametrize("version", ["1", "3"])
def test_another_schema_is_named_whatever_else_is_in_the_report(version: str) -> None:
    other = f"gpufabric.rdma/report/{version}"
    with pytest.raises(UnusableReport) as caught:
        EarlierReport.read({"schema": other, "results": "x"}, "/r/report.json")
    assert str(caught.value) == (
        f"/r/report.json has the schema {other}, expected {earlier_report.SCHEMA}: another version of this collection"
        " wrote it. Run a new measurement, and give its report.json"
    )


def test_a_file_that_is_too_large_is_not_parsed(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(earlier_report, "LARGEST", 1 << 20)
    with pytest.raises(UnusableReport, match=r": expected at most 1 MiB, found more\. Give "):
        EarlierReport.read(b" " * ((1 << 20) + 1), "p")


@pytest.mark.parametrize("row", [ROW, {**ROW, "memory": "host"}, {key: ROW[key] for key in ROW if key != "memory"}])
def test_a_test_is_the_same_with_and_without_its_default_memory(row: dict[str, Any]) -> None:
    report = EarlierReport.read(REPORT, "p")
    assert list(earlier_report.by_identity([row])) == list(report.rows)[:1]
