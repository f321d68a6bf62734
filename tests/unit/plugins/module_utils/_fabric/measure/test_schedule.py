"""Rounds: properties over many sizes, and the exact lines of a small schedule."""

from __future__ import annotations

from collections import Counter
from itertools import permutations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ansible_collections.gpufabric.rdma.plugins.module_utils._core.errors import InputError
from ansible_collections.gpufabric.rdma.plugins.module_utils._fabric.measure.schedule import Test as Trial
from ansible_collections.gpufabric.rdma.plugins.module_utils._fabric.measure.schedule import (
    all_pairs,
    circle,
    lines,
    only,
    perftest_args,
    port,
    repeat,
)

TESTS = {"duration": 10, "size": 65536, "queue_pairs": 4, "tx_depth": 128, "mtu": None, "port_base": 18500}


def names(count: int) -> list[str]:
    return [f"h{number}" for number in range(count)]


@given(st.integers(2, 41), st.integers(1, 4))
@settings(max_examples=30, deadline=None)
def test_every_ordered_pair_once_per_rail_and_nobody_twice_in_a_round(hosts: int, rails: int) -> None:
    rail_names = [f"r{number}" for number in range(rails)]
    rounds = all_pairs(names(hosts), rail_names, ["write_bw"])
    count = Counter((test.rail, test.client, test.server) for round_ in rounds for test in round_)
    assert set(count) == {(r, a, b) for r in rail_names for a, b in permutations(names(hosts), 2)}
    assert set(count.values()) == {1}
    for round_ in rounds:
        for rail in rail_names:
            used = [name for test in round_ if test.rail == rail for name in (test.client, test.server)]
            assert len(used) == len(set(used))


@pytest.mark.parametrize(("hosts", "rounds"), [(2, 2), (3, 6), (4, 6), (5, 10), (16, 30)])
def test_number_of_rounds(hosts: int, rounds: int) -> None:
    assert len(all_pairs(names(hosts), ["r"], ["write_bw"])) == rounds


def test_both_directions_follow_each_other() -> None:
    first, second = all_pairs(["a", "b"], ["r"], ["write_bw"])
    assert (first, second) == ((Trial("r", "a", "b", "write_bw"),), (Trial("r", "b", "a", "write_bw"),))


@pytest.mark.parametrize("count", [0, 1])
def test_one_host_alone_meets_nobody(count: int) -> None:
    assert [pairs for pairs in circle(names(count)) if pairs] == []


def test_kinds_follow_each_other_and_unknown_ones_are_refused() -> None:
    rounds = all_pairs(["a", "b"], ["r"], ["write_bw", "read_bw"])
    assert [test.kind for round_ in rounds for test in round_] == ["write_bw"] * 2 + ["read_bw"] * 2
    with pytest.raises(InputError) as error:
        all_pairs(["a", "b"], ["r"], ["write_lat"])
    assert str(error.value) == (
        "rdma_fabric.tests.kinds: write_lat cannot be judged yet; expected some of write_bw, read_bw, send_bw"
    )


@given(st.lists(st.tuples(st.integers(0, 9), st.integers(0, 9), st.integers(0, 2)), max_size=60))
@settings(max_examples=50, deadline=None)
def test_repeats_use_everybody_once_a_round_and_forget_nothing(picks: list[tuple[int, int, int]]) -> None:
    wanted = {Trial(f"r{rail}", f"h{a}", f"h{b}", "write_bw") for a, b, rail in picks if a != b}
    rounds = repeat(wanted)
    assert Counter(test for round_ in rounds for test in round_) == Counter(wanted)
    for round_ in rounds:
        pairs = {(test.client, test.server) for test in round_}
        used = [name for pair in pairs for name in pair]
        assert len(used) == len(set(used))


def test_rails_of_a_pair_stay_together_when_repeated() -> None:
    tests = [Trial(rail, "a", "b", "write_bw") for rail in ("r0", "r1")]
    assert repeat(tests) == [tuple(tests)]


def test_only_drops_rounds_that_are_left_empty() -> None:
    rounds = all_pairs(["a", "b"], ["r0", "r1"], ["write_bw"])
    assert only(rounds, {rounds[1][0]}) == [(rounds[1][0],)]


def test_ports_differ_between_rails_and_neighbouring_rounds() -> None:
    rails = ["r0", "r1", "r2"]
    ports = [port(18500, rails, number, rail) for number in range(8) for rail in rails]
    assert ports == list(range(18500, 18524))
    assert port(18500, rails, 8, "r0") == 18500


@pytest.mark.parametrize(
    ("change", "expected"),
    [
        ({}, "-F --report_gbits -c RC -q 4 -s 65536 -t 128 -D 10 -f 2"),
        ({"duration": 4}, "-F --report_gbits -c RC -q 4 -s 65536 -t 128 -D 4"),
        ({"mtu": 4096}, "-F --report_gbits -c RC -q 4 -s 65536 -t 128 -D 10 -f 2 -m 4096"),
    ],
)
def test_perftest_args(change: dict[str, int], expected: str) -> None:
    assert perftest_args({**TESTS, **change}) == expected


def test_lines_of_both_sides_agree() -> None:
    rounds = all_pairs(["a", "b"], ["r0"], ["write_bw"])
    addresses = {("a", "r0"): "10.0.0.1", ("b", "r0"): "10.0.0.2"}
    args = "-F --report_gbits -c RC -q 4 -s 65536 -t 128 -D 10 -f 2"
    assert lines(rounds, ["r0"], TESTS, addresses) == {
        "a": [f"0 r0 client 10.0.0.2 18500 write_bw {args}", f"1 r0 server 10.0.0.2 18501 write_bw {args}", "END 2"],
        "b": [f"0 r0 server 10.0.0.1 18500 write_bw {args}", f"1 r0 client 10.0.0.1 18501 write_bw {args}", "END 2"],
    }
