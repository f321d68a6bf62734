"""Budgets: how many others a host meets, how often a schedule is repeated, and what suspects get."""

from __future__ import annotations

from typing import Any

import pytest

from ansible_collections.gpufabric.rdma.plugins.module_utils._fabric.intent import budgets
from ansible_collections.gpufabric.rdma.plugins.module_utils._fabric.intent.tests import complete


def asked(mode: str = "sampled", **change: Any) -> dict[str, Any]:
    return complete({"mode": mode, **change})


@pytest.mark.parametrize(
    ("budget", "hosts", "name"), [("auto", 1024, "standard"), ("auto", 1025, "quick"), ("deep", 4000, "deep")]
)
def test_the_default_depends_on_the_hosts(budget: str, hosts: int, name: str) -> None:
    assert budgets.name_of(asked(budget=budget), hosts) == name


@pytest.mark.parametrize(
    ("change", "met"),
    [
        ({"budget": "quick"}, 3),
        ({}, 30),
        ({"budget": "deep"}, 60),
        ({"directions": "one"}, 60),
        ({"mode": "topology"}, 15),
        ({"mode": "topology", "budget": "quick"}, 3),
        ({"rounds": 7, "budget": "deep"}, 7),
    ],
)
def test_meetings_fill_the_slots(change: dict[str, Any], met: int) -> None:
    assert budgets.meetings(asked(**change), 128) == met


@pytest.mark.parametrize(
    ("hosts", "rounds", "change", "times"),
    [
        (2, 2, {}, 30),
        (8, 14, {}, 4),
        (32, 62, {}, 1),
        (32, 62, {"budget": "deep"}, 2),
        (8, 14, {"budget": "quick"}, 1),
        (8, 28, {"kinds": ["write_bw", "read_bw"]}, 4),
        (8, 14, {"repeats": 2}, 2),
        # Who sets rounds has said how long the schedule is.
        (40, 6, {"mode": "sampled", "rounds": 3}, 1),
        (40, 6, {"mode": "sampled", "rounds": 3, "budget": "deep"}, 1),
        (40, 6, {"mode": "sampled", "rounds": 3, "repeats": 2}, 2),
        (8, 7, {"mode": "loopback"}, 1),
        (8, 7, {"mode": "incast"}, 1),
    ],
)
def test_short_schedules_are_repeated(hosts: int, rounds: int, change: dict[str, Any], times: int) -> None:
    assert budgets.repeats(asked(**{"mode": "all_pairs", **change}), hosts, rounds) == times


def test_suspects_get_more_only_where_tests_tell_ports_apart() -> None:
    assert budgets.more(asked(), 8) == 90 and budgets.more(asked(budget="deep"), 8) == 250
    assert budgets.more(asked(isolation=0), 8) == budgets.more(asked("loopback"), 8) == 0


@pytest.mark.parametrize(
    ("hosts", "change", "most"),
    [
        (64, {}, budgets.LOCATING),
        (2, {}, 2 * 2),
        (3, {"kinds": ["write_bw", "read_bw"]}, 6 * 3),
        (2, {"memory": "cuda:dmabuf"}, 2 * 3),
        (2, {"rails_at_once": False}, 2 * 2 * 8),
        (8, {"isolation": 0}, 0),
        (8, {"mode": "loopback"}, 0),
    ],
)
def test_a_pass_that_locates_a_fault_is_bounded(hosts: int, change: dict[str, Any], most: int) -> None:
    assert budgets.locating(asked(**change), hosts, 8) == most


def test_of_repeats_that_fill_slots_half_must_give_data() -> None:
    assert [budgets.needed(given, times) for given, times in ((3, 3), (None, 4), (None, 1))] == [3, 2, 1]
