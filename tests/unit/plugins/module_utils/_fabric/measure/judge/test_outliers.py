"""Outliers: what is found, and above all what is not."""

from __future__ import annotations

import random
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ansible_collections.gpufabric.rdma.plugins.module_utils._fabric.measure.judge.outliers import FEWEST, find

OPTIONS = {"severity": "warning", "deviations": 5.0, "margin": 0.05, "latency_margin": 0.25}
MARGIN = {"Gb/s": 0.05, "us": 0.25}


def results(values: list[float], unit: str = "Gb/s", **changes: Any) -> list[dict[str, Any]]:
    kind = "write_bw" if unit == "Gb/s" else "write_lat"
    base = {"where": "host", "rail": "rail0", "test": kind, "unit": unit, "verdict": "pass"}
    return [{**base, "client": f"h{i}", "server": "s", "value": value, **changes} for i, value in enumerate(values)]


def clients(found: list[dict[str, Any]]) -> list[str]:
    return [one["client"] for one in found]


def test_the_entry() -> None:
    rows = results([98.0, 98.01, 97.99, 98.0, 98.02, 98.0, 80.0])
    assert find(rows, {**OPTIONS, "severity": "failure"}) == [
        {
            "where": "host",
            "rail": "rail0",
            "client": "h6",
            "server": "s",
            "test": "write_bw",
            "value": 80.0,
            "median": 98.0,
            "deviations": 18.4,
            "severity": "failure",
            "text": "h6 to s rail0 write_bw: 80 Gb/s, 18 % less than the median of 7 (98 Gb/s)",
        }
    ]


@pytest.mark.parametrize(
    ("values", "unit", "found"),
    [
        # Better than the rest is no outlier; which way better is depends on the unit.
        ([98.0] * 6 + [120.0], "Gb/s", []),
        ([98.0] * 6 + [80.0], "Gb/s", ["h6"]),
        ([2.0] * 6 + [1.0], "us", []),
        ([2.0] * 6 + [4.0], "us", ["h6"]),
        # Within the margin of a quiet fleet.
        ([98.0] * 6 + [94.0], "Gb/s", []),
        ([2.0] * 6 + [2.4], "us", []),
        # A fleet that scatters: 20 % below is nothing special.
        ([100.0, 80.0, 95.0, 85.0, 110.0, 90.0, 105.0, 75.0], "Gb/s", []),
        # Too few, none, and half of them bad: nothing can be said.
        ([98.0] * (FEWEST - 2) + [10.0], "Gb/s", []),
        ([], "Gb/s", []),
        ([98.0] * 6 + [10.0] * 6, "Gb/s", []),
    ],
)
def test_what_is_an_outlier(values: list[float], unit: str, found: list[str]) -> None:
    assert clients(find(results(values, unit), OPTIONS)) == found


def test_failures_and_readings_without_data_are_not_told_again() -> None:
    rows = results([98.0] * 8)
    rows[0].update(value=10.0, verdict="fail")
    rows[1].update(value=900.0, verdict="no_data")
    rows[2].update(value=None, verdict="no_data")
    assert find(rows, OPTIONS) == []
    # Five usable values are left without the failed one's weight: too few when one more has no data.
    rows[3].update(value=50.0)
    assert clients(find(rows, OPTIONS)) == ["h3"]
    rows[4].update(value=None, verdict="no_data")
    assert find(rows, OPTIONS) == []


@pytest.mark.parametrize(
    "other",
    [
        {"rail": "rail1"},
        {"where": "pod"},
        {"test": "read_bw"},
        {"memory": "cuda:dmabuf"},
        {"peer_rail": "rail1"},
        {"gpu": {"client": {"bdf": "x", "path": "SYS"}, "server": {"bdf": "y", "path": "PIX"}}},
    ],
)
def test_only_the_like_is_compared(other: dict[str, Any]) -> None:
    assert find(results([98.0] * 9) + results([60.0] * 2, **other), OPTIONS) == []
    assert clients(find(results([98.0] * 9) + results([60.0], **{"where": "host"}), OPTIONS)) == ["h0"]


UNITS = st.sampled_from(["Gb/s", "us"])
MEDIANS = st.sampled_from([0.01, 2.0, 98.0, 392.0])


@given(UNITS, MEDIANS, st.lists(st.floats(-0.99, 0.99), max_size=60))
def test_a_quiet_fleet_never_cries(unit: str, level: float, noise: list[float]) -> None:
    # Two values differ by 0.8 of the margin at most, and their median is at least 0.9 of the level.
    values = [level * (1 + MARGIN[unit] / 2.5 * part) for part in noise]
    assert find(results(values, unit), OPTIONS) == []


@given(UNITS, MEDIANS, st.lists(st.floats(0, 1e4), max_size=FEWEST - 1))
def test_a_small_fleet_never_cries(unit: str, level: float, factors: list[float]) -> None:
    assert find(results([level * (0.01 + factor) for factor in factors], unit), OPTIONS) == []


@given(UNITS, MEDIANS, st.integers(FEWEST, 200), st.integers(0, 10**6), st.randoms(use_true_random=False))
def test_one_bad_value_in_a_quiet_fleet_is_found_alone(
    unit: str, level: float, count: int, where: int, rng: random.Random
) -> None:
    values = [level * rng.uniform(0.998, 1.002) for _ in range(count)]
    values[where % count] = level * (0.5 if unit == "Gb/s" else 2.0)
    assert clients(find(results(values, unit), OPTIONS)) == [f"h{where % count}"]


@given(st.lists(st.floats(1, 1000), min_size=1, max_size=40), st.randoms(use_true_random=False))
def test_order_and_scale_do_not_count(values: list[float], rng: random.Random) -> None:
    rows = results(values)
    found = set(clients(find(rows, OPTIONS)))
    shuffled = rng.sample(rows, len(rows))
    assert set(clients(find(shuffled, OPTIONS))) == found
    # A power of two changes no digit.
    assert set(clients(find([{**row, "value": row["value"] * 4} for row in rows], OPTIONS))) == found


@pytest.mark.parametrize("share", [0.003, 0.01, 0.02, 0.05, 0.10])
def test_fleets_that_scatter_normally_cry_in_less_than_one_of_a_hundred_runs(share: float) -> None:
    rng = random.Random(7)
    for count, runs in ((6, 600), (12, 600), (240, 40)):
        fleets = ([max(0.01, rng.gauss(100, 100 * share)) for _ in range(count)] for _ in range(runs))
        assert sum(bool(find(results(values), OPTIONS)) for values in fleets) <= runs / 100
