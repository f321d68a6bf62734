"""Tests that failed and passed when they were repeated: what chance explains is a warning, more is a failure."""

from __future__ import annotations

from math import comb, exp
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ansible_collections.gpufabric.rdma.plugins.module_utils._fabric.measure.diagnosis.significance import (
    chance,
    least_count,
    log_excess,
)
from ansible_collections.gpufabric.rdma.plugins.module_utils._fabric.measure.diagnosis.unsteady import find

POLICY = {"severity": "failure", "background": 0.001}


def result(client: str, server: str, first: float | None = None, rail: str = "rail0", **change: Any) -> dict[str, Any]:
    """A test that passed with 390 Gb/s, at once or after a first reading that failed."""
    passes = [{"pass": 1, "value": first, "verdict": "fail", "reason": "slow"}] if first else []
    passes += [{"pass": 2, "value": 390.0, "verdict": "pass", "reason": "", **({"repeated": True} if first else {})}]
    return {
        "where": "host",
        "rail": rail,
        "client": client,
        "server": server,
        "test": "write_bw",
        "value": 390.0,
        "unit": "Gb/s",
        "verdict": "pass",
        "passes": passes,
        **change,
    }


def fleet(bad: dict[tuple[str, str], float], hosts: int = 20) -> list[dict[str, Any]]:
    names = [f"h{number}" for number in range(hosts)]
    return [result(a, b, bad.get((a, b))) for a in names for b in names if a != b]


TO_H1 = [(f"h{n}", "h1") if n % 2 else ("h1", f"h{n}") for n in range(2, 12)]
EVERYWHERE = [ends for n in range(0, 20, 2) for ends in ((f"h{n}", f"h{n + 1}"), (f"h{n + 1}", f"h{n}"))]


@pytest.mark.parametrize("severity", ["failure", "warning"])
@pytest.mark.parametrize(
    ("bad", "told"),
    [
        ([], []),
        # 380 tests: one, or two of different ports, come by chance.
        ([("h1", "h2")], [("rail", None, None, 1, "warning")]),
        ([("h1", "h2"), ("h3", "h4")], [("rail", None, None, 2, "warning")]),
        # So do both directions of one pair, and three of one port, where one of twenty ports is to be accused.
        ([("h1", "h2"), ("h2", "h1")], [("rail", None, None, 2, "warning")]),
        (TO_H1[:3], [("rail", None, None, 3, "warning")]),
        (TO_H1[:7], [("port", "h1", None, 7, "failure")]),
        # A port beside one by chance stays a port.
        ([*TO_H1[:7], ("h8", "h9")], [("port", "h1", None, 7, "failure"), ("rail", None, None, 1, "warning")]),
        # Many of different ports are the run's: 1 in 100 is its background, three times as many are not.
        (EVERYWHERE[:4], [("rail", None, None, 4, "warning")]),
        (EVERYWHERE, [("run", None, None, 20, "failure")]),
    ],
)
def test_who_is_named(bad: list[tuple[str, str]], told: list[Any], severity: str) -> None:
    found = find(fleet(dict.fromkeys(bad, 300.0)), {**POLICY, "severity": severity})
    expected = [(*one[:4], "warning" if severity == "warning" else one[4]) for one in told]
    assert [(one["kind"], one["host"], one["peer"], one["count"], one["severity"]) for one in found] == expected


@pytest.mark.parametrize("hosts", [4, 8, 20])
def test_the_fewest_low_readings_that_are_said_to_be_found_are_found(hosts: int) -> None:
    ports, each = hosts, 2 * (hosts - 1)
    to_h1 = [one for n in range(hosts) if n != 1 for one in ((f"h{n}", "h1"), ("h1", f"h{n}"))]
    found, said = [], []
    for count in range(1, each + 1):
        told = find(fleet(dict.fromkeys(to_h1[:count], 300.0), hosts), POLICY)
        found.append(any(one["severity"] == "failure" for one in told))
        # Each low reading was followed by another one.
        readings = hosts * (hosts - 1) + count
        said.append(least_count(each + count, POLICY["background"], ports, readings=readings) <= count)
    assert found == said and True in found and False in found


def test_what_one_of_two_rails_has_is_the_rails_and_what_both_have_the_runs() -> None:
    lows = dict.fromkeys(EVERYWHERE, 300.0)
    bad, good = fleet(lows), fleet({})
    (found,) = find([*bad, *({**one, "rail": "rail1"} for one in good)], POLICY)
    assert (found["kind"], found["rail"], found["count"]) == ("rail", "rail0", 20)
    (found,) = find([*bad, *({**one, "rail": "rail1"} for one in bad)], POLICY)
    assert (found["kind"], found["rail"], found["count"]) == ("run", None, 40)
    assert "more than the background rate of 0.01 that a run may have" in found["text"]


@given(low=st.integers(0, 60), own=st.integers(0, 60), tests=st.integers(1, 200), more=st.integers(0, 400))
@settings(deadline=None, max_examples=60)
def test_an_excess_is_the_tail_of_the_hypergeometric_distribution(low: int, own: int, tests: int, more: int) -> None:
    readings, low = tests + more, min(low, tests + more)
    own = min(own, low, tests)
    exact = sum(comb(tests, n) * comb(more, low - n) for n in range(own, min(tests, low) + 1)) / comb(readings, low)
    told = exp(log_excess(own, tests, low=low, readings=readings))
    assert told == pytest.approx(exact) or (told == 1.0 and own * readings <= tests * low)


def pair(*lows: list[float]) -> list[dict[str, Any]]:
    """A fleet in which tests of h1 and h2 read low before they passed."""
    results = fleet({})
    for (client, server), low in zip((("h1", "h2"), ("h2", "h1")), lows):
        own = next(one for one in results if (one["client"], one["server"]) == (client, server))
        first = [{"pass": 1, "value": value, "verdict": "fail", "reason": "slow"} for value in low]
        own["passes"] = [*first, *own["passes"] * len(low)]
    return results


def test_all_readings_count_and_both_are_told() -> None:
    (found,) = find(pair([300.0, 310.0], [320.0, 330.0]), POLICY)
    assert [found[key] for key in ("kind", "host", "peer", "count", "tests")] == ["pair", "h1", "h2", 4, 8]
    assert found["text"] == (
        "h1 and h2 rail0: unsteady: 4 of 8 readings are too low or show a fault, more than the background rate of "
        "0.001 explains (h1 to h2 write_bw: 300, then 390 Gb/s; h2 to h1 write_bw: 320, then 390 Gb/s): check the path "
        "between them"
    )
    assert found["readings"][0] == {
        "client": "h1",
        "server": "h2",
        "test": "write_bw",
        "first": 300.0,
        "value": 390.0,
        "unit": "Gb/s",
    }


@pytest.mark.parametrize(
    "passes",
    [
        # No data at first, whatever the reason, is no reading that failed.
        [
            {"pass": 1, "value": None, "verdict": "no_data", "reason": "late"},
            {"pass": 2, "value": 390.0, "verdict": "pass", "reason": "", "repeated": True},
        ],
        [{"pass": 1, "value": 300.0, "verdict": "no_data"}, {"pass": 2, "value": 390.0, "verdict": "pass"}],
    ],
)
def test_what_gave_no_data_at_first_is_not_unsteady(passes: list[dict[str, Any]]) -> None:
    assert find([result("h1", "h2", passes=passes)], POLICY) == []


def test_an_observed_fault_that_passed_when_repeated_is_told_with_its_reason() -> None:
    why = "h1 (client): Failed status 12"
    passes = [
        {"pass": 1, "value": None, "verdict": "no_data", "reason": why, "fault": True},
        {"pass": 2, "value": 390.0, "verdict": "pass", "reason": ""},
    ]
    (found,) = find([result("h1", "h2", passes=passes)], POLICY)
    assert found["text"].endswith("(h1 to h2 write_bw: h1 (client): Failed status 12, then 390 Gb/s)")
    assert found["readings"] == [
        {
            "client": "h1",
            "server": "h2",
            "test": "write_bw",
            "first": None,
            "value": 390.0,
            "unit": "Gb/s",
            "reason": why,
        }
    ]


@pytest.mark.parametrize(("count", "tests", "background"), [(1, 6, 0.001), (3, 384, 0.001), (2, 5, 0.3), (5, 5, 0.5)])
def test_chance_is_the_tail_of_the_binomial_distribution(count: int, tests: int, background: float) -> None:
    exact = sum(comb(tests, n) * background**n * (1 - background) ** (tests - n) for n in range(count, tests + 1))
    assert chance(count, tests, background) == pytest.approx(exact)


def test_chance_in_a_big_fleet_needs_no_small_numbers() -> None:
    assert chance(500_000, 1_000_000, 0.5) == pytest.approx(0.5, abs=0.001)
    assert chance(0, 10, 0.001) == 1.0
