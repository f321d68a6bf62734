"""Gates of the user's own: true passes, nothing else does, and a wrong query is told before the run."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.unit.support.report_factory import plan, results

from ansible_collections.gpufabric.rdma.plugins.module_utils._common.errors import InputError
from ansible_collections.gpufabric.rdma.plugins.module_utils._fabric.intent import gates
from ansible_collections.gpufabric.rdma.plugins.module_utils._fabric.intent.gates import check, judge
from ansible_collections.gpufabric.rdma.plugins.module_utils._fabric.report.summary import build

ROOT = Path(__file__).resolve().parents[6]
REPORT = build(plan(4, 2), results(4, 2, {("gpu-001", "rail1"): ("fail", "slow")}))


def gate(query: str, **other: Any) -> list[dict[str, Any]]:
    return [{"name": "rule", "query": query, **other}]


def judged(query: str) -> tuple[str, str]:
    (found,) = judge(REPORT, gate(query))
    return found["verdict"], found["text"]


def test_the_entry() -> None:
    assert judge(REPORT, gate("min(rails[].worst) >= `380`", severity="warning")) == [
        {
            "name": "rule",
            "query": "min(rails[].worst) >= `380`",
            "severity": "warning",
            "verdict": "fail",
            "found": "false",
            "text": "rule: does not hold",
        }
    ]


@pytest.mark.parametrize(
    ("query", "verdict", "text"),
    [
        ("min(rails[].worst) > `10`", "pass", "rule: holds"),
        ("length(results[?verdict=='fail']) == `6`", "pass", "rule: holds"),
        ("hosts.\"gpu-001\".verdict == 'fail'", "pass", "rule: holds"),
        ("length(results[?counters.client.out_of_sequence > `0`]) == `0`", "pass", "rule: holds"),
        ("results[].{who: client} | length([?who=='gpu-001']) == `6`", "pass", "rule: holds"),
        ("verdict == 'pass'", "fail", "rule: does not hold"),
        ("rails[?fail > `0`].[where, rail]", "fail", 'rule: 1 found: [["host", "rail1"]]'),
        (
            "results[?value > `1000`]",
            "fail",
            "rule: found nothing ([]), which is neither true nor false. Compare it with a value, such as length(...) "
            "== `0`",
        ),
        (
            "diagnoses",
            "fail",
            "rule: found nothing (null), which is neither true nor false. Compare it with a value, such as "
            "length(...) == `0`",
        ),
        ("length(rails)", "fail", "rule: expected true, found 2. Compare it with the required value"),
        ("verdict", "fail", 'rule: expected true, found "fail". Compare it with the required value'),
        (
            "diagnoses == `null` && 'true'",
            "fail",
            'rule: expected true, found "true". Compare it with the required value',
        ),
        # An ordering of something that is not there is null, not false.
        (
            "outliers[0].value > `1`",
            "fail",
            "rule: found nothing (null), which is neither true nor false. Compare it with a value, such as "
            "length(...) == `0`",
        ),
        (
            "length(diagnoses) == `0`",
            "fail",
            "rule: could not be computed: In function length(), invalid type for value: None, expected one of: "
            "['string', 'array', 'object'], received: \"null\"",
        ),
    ],
)
def test_true_passes_and_nothing_else(query: str, verdict: str, text: str) -> None:
    assert judged(query) == (verdict, text)


@given(
    st.recursive(
        st.none() | st.booleans() | st.integers(0, 2) | st.sampled_from(["", "true"]),
        lambda inner: st.lists(inner, max_size=2) | st.dictionaries(st.text(max_size=2), inner, max_size=2),
        max_leaves=4,
    )
)
def test_a_value_passes_only_when_it_is_true(value: Any) -> None:
    (found,) = judge({"context": value}, gate("context"))
    assert (found["verdict"] == "pass") is (value is True)


def test_what_was_found_is_cut() -> None:
    (found,) = judge(REPORT, gate("results"))
    assert len(found["found"]) == gates.SHOWN and found["found"].endswith(" ...")
    assert found["text"].startswith("rule: 24 found: [")


BAD: list[tuple[Any, str]] = [
    ({}, "rdma_gates: expected a list, found a dict"),
    (
        ["x"],
        '3 problems: rdma_gates[0]: expected a dict, found "x" (text); rdma_gates[0].name: missing; every gate '
        "needs one; rdma_gates[0].query: missing; every gate needs one",
    ),
    (
        [{"name": "a", "query": "verdict == 'pass'", "severety": "x"}],
        'rdma_gates[0].severety: unknown key; did you mean "severity"?',
    ),
    (
        gate("verdict == 'pass'", severity="error"),
        'rdma_gates[0].severity: expected one of failure, warning, found "error" (text)',
    ),
    (gate("verdict == 'pass'") * 2, 'rdma_gates: the name "rule" is given to more than one gate'),
    (gate("results[?"), 'rdma_gates[0].query: Invalid jmespath expression: Incomplete expression: "results[?" ^'),
    (gate("lenght(results) == `1`"), 'rdma_gates[0].query: no function lenght(); did you mean "length"?'),
    (gate("length(results, rails) == `1`"), "rdma_gates[0].query: length() takes 1 arguments, found 2"),
    (
        gate("not_null() == `1` && verdict == 'pass'"),
        "rdma_gates[0].query: not_null() takes 1 arguments or more, found 0",
    ),
    (
        gate("length(results[?valeu < `90`]) == `0`"),
        'rdma_gates[0].query: no field of a report is named "valeu"; did you mean "value"?',
    ),
    (
        gate("nccl.verdict == 'pass'"),
        "rdma_gates[0].query: reads nccl, but collectives run only after the gates have decided, so it would find"
        " nothing. The verdict of the report includes them. Set their limits in rdma_fabric.tests.nccl.minimum",
    ),
    (gate("`true`"), "rdma_gates[0].query: does not read the report, so its result would never change"),
]


@pytest.mark.parametrize(("wrong", "message"), BAD, ids=range(len(BAD)))
def test_a_wrong_gate_is_told_before_the_run(wrong: Any, message: str) -> None:
    for use in (check, lambda found: judge(REPORT, found)):
        with pytest.raises(InputError) as caught:
            use(wrong)
        assert str(caught.value) == message


def test_no_gates_are_fine_and_need_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(gates, "jmespath", None)
    assert (check(None), check([]), judge(REPORT, [])) == ((), (), [])
    with pytest.raises(InputError) as caught:
        check(gate("verdict == 'pass'"))
    assert str(caught.value) == (
        "rdma_gates require the Python package jmespath, which is not installed on the controller. Install it, or "
        "leave rdma_gates empty"
    )


def properties(schema: Any) -> set[str]:
    """Names of all fields that a schema describes."""
    if isinstance(schema, list):
        return {name for part in schema for name in properties(part)}
    if not isinstance(schema, dict):
        return set()
    own = schema.get("properties", {}) if isinstance(schema.get("properties"), dict) else {}
    return set(own) | {name for part in schema.values() for name in properties(part)}


def test_every_field_of_the_report_is_known() -> None:
    schema = json.loads((ROOT / "docs" / "report.schema.json").read_text())
    assert {"results", "passes", "expected", "findings"} <= properties(schema)
    assert properties(schema) - gates.KEYS == set()


def test_the_gates_of_the_documentation_are_right() -> None:
    page = (ROOT / "docs" / "validation.md").read_text()
    queries = [line.split(": ", 1)[1].strip('"') for line in page.splitlines() if line.strip().startswith("query: ")]
    assert len(queries) == 2
    for number, query in enumerate(queries):
        check([{"name": str(number), "query": query}])
