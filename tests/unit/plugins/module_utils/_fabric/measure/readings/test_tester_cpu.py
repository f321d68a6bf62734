"""CPU limits of testers, and CPUs that they share. Cost: below 1 s."""

from __future__ import annotations

import pytest

from ansible_collections.gpufabric.rdma.plugins.module_utils._fabric.measure.readings import tester_cpu
from ansible_collections.gpufabric.rdma.plugins.module_utils._fabric.measure.readings.perftest import Run


@pytest.mark.parametrize(
    ("cpus", "number"), [("-", 0), ("", 0), ("5", 1), ("0-3", 4), ("0-3,8,10-11", 7), ("5-3,8", 1)]
)
def test_count(cpus: str, number: int) -> None:
    assert tester_cpu.count(cpus) == number


def stopped(times: int, periods: int, ran: float | None = 10.5) -> Run:
    return Run(0, "", ran=ran, amounts={"nr_throttled": times, "nr_periods": periods})


def test_a_tester_that_was_hardly_stopped_counts() -> None:
    sides = {"a": stopped(4, 100), "b": stopped(5, 100), "c": None, "d": Run(0, ""), "e": stopped(300, 100)}
    sides["f"] = stopped(50, 100, ran=None)
    assert tester_cpu.throttled(sides) == {"b": 0.05, "e": 1.0}
    assert (
        tester_cpu.text({"b": 0.05, "e": 1.0})
        == "the CPU limit stopped the tester of b in 5% of the time, e in 100% of the time"
    )


@pytest.mark.parametrize(
    ("host", "found"),
    [
        ({}, None),
        ({"allowed": "0-127", "online": "0-127", "quota": "-"}, None),
        # One CPU for each test, and they are its own.
        ({"allowed": "8-16", "online": "0-127", "quota": "9.00"}, None),
        # All that the machine has.
        ({"allowed": "0-3", "online": "0-3", "quota": "-"}, None),
        ({"allowed": "8-9", "online": "0-127", "quota": "-"}, "can use 2 of 128 CPUs (8-9) for 8 tests at once"),
        ({"allowed": "0-127", "online": "0-127", "quota": "2.00"}, "is 2, and 8 tests at once need as many CPUs"),
        ({"allowed": "0-127", "online": "0-127", "quota": "9.00"}, "no CPUs of its own (it can use 128)"),
    ],
)  # fmt: skip
def test_who_shares_cores(host: dict[str, str], found: str | None) -> None:
    told = list(tester_cpu.sentences(host, 8))
    assert len(told) == (found is not None)
    assert found is None or found in told[0]
