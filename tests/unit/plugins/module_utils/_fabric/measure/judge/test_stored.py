"""A damaged report.json is named as one: whatever value is replaced in it, nothing ends in a traceback."""

from __future__ import annotations

import contextlib
import copy
import json
from collections.abc import Iterator
from typing import Any

import pytest
from tests.unit.support import report_factory as factory

from ansible_collections.gpufabric.rdma.plugins.module_utils._common.errors import FabricError, InputError
from ansible_collections.gpufabric.rdma.plugins.module_utils._fabric.measure.judge import earlier, stored
from ansible_collections.gpufabric.rdma.plugins.module_utils._fabric.measure.readings import identity
from ansible_collections.gpufabric.rdma.plugins.module_utils._fabric.report import compare, runs, summary

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
REPORT: dict[str, Any] = {
    **summary.build({}, [factory.result("a", "b", size=65536)]), "diagnoses": [DIAGNOSIS], "scope": SCOPE,
    "run": {"id": "20261122T000000Z-00000a", "ended": "2026-11-22"}, "versions": {"a": VERSIONS, "b": VERSIONS},
    "endpoints": {"host": {"a": {"rail0": PORT}, "b": {"rail0": PORT}}},
    "tests": {"mode": "ring", "size": 65536, "sizes": []},
}  # fmt: skip
GARBAGE: list[Any] = [None, "x", 7, -1, True, [], ["x"], [[]], {}, {"x": None}, float("nan")]


def paths(value: Any, path: tuple[Any, ...] = ()) -> Iterator[tuple[Any, ...]]:
    yield path
    steps = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    for key, item in steps:
        yield from paths(item, (*path, key))


def damaged(path: tuple[Any, ...], value: Any) -> Any:
    found = {"": copy.deepcopy(REPORT)}
    place: Any = found
    *before, last = ("", *path)
    for key in before:
        place = place[key]
    place[last] = value
    return found[""]


def use(report: Any) -> None:
    """All that later runs do with an earlier report."""
    now = {"scope": SCOPE, "hosts": REPORT["versions"], "plan": {}, "unread": []}
    for when in ("changed", "never"):
        runs.decide(when, {"path": "p", "report": report, "plan": {}, "problem": ""}, now)
    if "results" in report:
        for result in earlier.of_report(report)["results"]:
            assert hash(tuple(result.get(key) for key in compare.IDENTITY)) is not None
        then = ((earlier.of_report(report)["endpoints"] or {}).get("host") or {}).get("a", {}).get("rail0")
        identity.another(then, PORT)
    with contextlib.suppress(FabricError):
        compare.compare(REPORT, report)


def test_a_report_is_used_or_named_whatever_is_in_it() -> None:
    """About 2,000 reports, 0.5 s."""
    assert stored.problem(REPORT) == ""
    use(REPORT)
    for path in paths(REPORT):
        for value in GARBAGE:
            report = damaged(path, value)
            if not stored.problem(report):
                use(report)


@pytest.mark.parametrize(("path", "value", "told"), [
    (("run",), "x", 'run: expected a dict, found "x" (text)'),
    (("versions", "a"), None, "versions.a: expected a dict, found nothing (null)"),
    (("endpoints", "host"), "x", 'endpoints.host: expected a dict, found "x" (text)'),
    (("results", 0, "rail"), ["r"], "results[0].rail: expected text, found a list"),
    (("results", 0, "verdict"), "good", 'results[0].verdict: expected pass, fail or no_data, found "good" (text)'),
    (("scope", "subset"), [1], "scope.subset[0]: expected text, found 1 (number)"),
])  # fmt: skip
def test_what_is_wrong_is_named(path: tuple[Any, ...], value: Any, told: str) -> None:
    report = damaged(path, value)
    assert stored.problem(json.loads(json.dumps(report))) == told
    with pytest.raises(InputError, match=r"^compare: this is not a report of this collection: "):
        compare.check(report)
