"""What chance explains, when a suspect is cleared, and what a number of readings would have shown."""

from __future__ import annotations

import math

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ansible_collections.gpufabric.rdma.plugins.module_utils._fabric.measure.diagnosis.significance import (
    SIGNIFICANT,
    chance,
    decisive,
    least_count,
    log_chance,
    sensitivity,
    to_clear,
)


@settings(max_examples=50)
@given(st.integers(1, 400), st.integers(0, 400), st.sampled_from((0.001, 0.01, 0.3)))
def test_more_low_readings_are_less_likely(tests: int, count: int, background: float) -> None:
    count = min(count, tests - 1)
    assert log_chance(count + 1, tests, background) <= log_chance(count, tests, background) <= 0


def test_what_is_bad_for_sure_is_no_number_below_the_smallest_one() -> None:
    assert log_chance(20000, 30000, 0.001) < -50000 and chance(20000, 30000, 0.001) == 0.0
    assert log_chance(5, 4, 0.001) == -math.inf


@pytest.mark.parametrize(("tests", "background", "count"), [(12, 0.001, 2), (245760, 0.001, 3), (12, 0.05, 4)])
def test_links_are_bad_when_they_read_low_more_often_than_any_would_by_chance(
    tests: int, background: float, count: int
) -> None:
    assert decisive(tests, background) == count


# low, readings, share that is looked for -> more readings without a low one
@pytest.mark.parametrize(
    ("low", "tests", "share", "more"), [(1, 6, 0.5, 10), (1, 60, 0.1, 23), (2, 60, 0.1, 68), (0, 60, 0.1, 0)]
)
def test_a_suspect_is_cleared_by_readings_that_pass(low: int, tests: int, share: float, more: int) -> None:
    assert to_clear(low, tests, 0.001, share=share) == more


@pytest.mark.parametrize("background", [0.001, 0.5, 0.9, 0.95, 1.0])
@pytest.mark.parametrize("share", [0.1, 0.95, 1.0])
def test_a_component_all_of_whose_readings_are_low_is_not_cleared_unless_all_others_are_like_it(
    share: float, background: float
) -> None:
    assert (to_clear(8, 8, background, share=share) > 0) == (background < 0.9)


@given(st.integers(1, 500), st.sampled_from((1, 64, 8192)))
@settings(max_examples=40)
def test_the_fewest_that_accuse_are_no_chance(tests: int, compared: int) -> None:
    count = least_count(tests, 0.001, compared)
    assert count > tests or chance(count, tests, 0.001) * compared < SIGNIFICANT
    assert count == 1 or chance(count - 1, tests, 0.001) * compared >= SIGNIFICANT


# readings of a port, ports, more readings of a suspect -> least share of bad tests that is found in 95 % of runs
@pytest.mark.parametrize(
    ("tests", "ports", "more", "share"),
    [(60, 8192, 90, 0.1), (120, 8192, 250, 0.05), (6, 8192, 90, 0.4), (6, 8192, 0, 0.8), (2, 64, 0, None)],
)
def test_what_would_have_been_found(tests: int, ports: int, more: int, share: float | None) -> None:
    assert sensitivity(tests, 0.001, ports, more=more) == share


# hosts and rails -> least share of bad tests of a port: what is a large part of the run hardly differs from its rest
@pytest.mark.parametrize(("hosts", "rails", "share"), [(8, 1, 0.15), (16, 1, 0.1), (8, 2, 0.1), (8, 8, 0.07)])
def test_in_a_small_fabric_less_would_have_been_found(hosts: int, rails: int, share: float) -> None:
    readings = 30 * hosts * rails
    assert sensitivity(60, 0.001, hosts * rails, more=90, readings=readings) == share
