"""What the benchmark of the measurement in pods reads out of an audit log."""

from __future__ import annotations

import json

import pytest
from tests.bench import jobs


def event(verb: str, resource: str, at: float, code: int = 200, sub: str = "") -> str:
    about = {"resource": resource, **({"subresource": sub} if sub else {})}
    time = f"2026-01-02T00:00:{at:09.6f}Z"
    return json.dumps(
        {"verb": verb, "objectRef": about, "responseStatus": {"code": code}, "requestReceivedTimestamp": time}
    )


def test_requests_are_counted_by_what_was_asked() -> None:
    events = [
        event("list", "pods", 1),
        event("get", "pods", 1.2, sub="log"),
        event("get", "pods", 2.1, 429, "log"),
        event("watch", "pods", 9),
    ]
    assert jobs.counted(events) == (
        {"get pods/log": 2, "list pods": 1, "watch pods": 1},
        2,
        1,
    )


@pytest.mark.parametrize(
    ("times", "expected"),
    [([], 0), ([5], 1), ([0, 0.5, 0.999, 1.0, 1.4], 4), ([0, 1, 2, 3], 1), ([1, 2, 2, 2, 9], 3)],
)
def test_the_busiest_second(times: list[float], expected: int) -> None:
    assert jobs.busiest(times) == expected


def test_a_row_of_the_table() -> None:
    row = {
        "nodes": 2,
        "kinds": {"get pods/exec": 2, "get pods/log": 4, "list pods": 1, "watch pods": 1, "get jobs": 2},
        "rate": 7,
        "refused": 0,
        "seconds": {"start": 1.2, "play": 30.0, "remove": 4.6},
        "peak": {"start": 50.0, "play": 51.0, "remove": 52.0},
        "lead": 20,
        "pass": 10,
    }
    assert jobs.table([row]).splitlines()[2] == (
        "| 2 | 10 | 5.00 | 2 | 4 | 1 | 1 | 2 | 7 | 0 | 1, 30, 5 | 20, 10 | 50, 51, 52 |"
    )
