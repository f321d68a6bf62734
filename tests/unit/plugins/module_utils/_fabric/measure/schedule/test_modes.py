"""Who meets whom, as properties over many counts."""

from __future__ import annotations

from collections import Counter
from itertools import combinations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ansible_collections.gpufabric.rdma.plugins.module_utils._fabric.measure.schedule import modes


def names(count: int) -> list[str]:
    return [f"h{number}" for number in range(count)]


def nobody_twice(rounds: list[modes.Pairs]) -> bool:
    used = [[name for pair in round_ for name in pair] for round_ in rounds]
    return all(len(one) == len(set(one)) for one in used)


def meetings(rounds: list[modes.Pairs]) -> Counter[str]:
    return Counter(name for round_ in rounds for pair in round_ for name in pair)


def pairs(rounds: list[modes.Pairs]) -> list[frozenset[str]]:
    return [frozenset(pair) for round_ in rounds for pair in round_]


@given(st.integers(2, 41))
@settings(max_examples=40, deadline=None)
def test_circle_meets_every_pair_once(count: int) -> None:
    rounds = modes.circle(names(count))
    assert Counter(pairs(rounds)) == Counter(frozenset(pair) for pair in combinations(names(count), 2))
    assert nobody_twice(rounds) and len(rounds) == count - 1 + count % 2


@pytest.mark.parametrize("count", [0, 1])
def test_one_host_alone_meets_nobody(count: int) -> None:
    assert [round_ for round_ in modes.circle(names(count)) if round_] == []


@given(st.integers(3, 60))
@settings(max_examples=40, deadline=None)
def test_a_ring_uses_each_host_twice_in_two_rounds_or_three(count: int) -> None:
    rounds = modes.neighbours(names(count))
    assert set(meetings(rounds).values()) == {2} and len(meetings(rounds)) == count
    assert nobody_twice(rounds) and len(rounds) == 2 + count % 2
    assert len(set(pairs(rounds))) == count


def test_a_ring_of_two_is_one_pair() -> None:
    assert modes.neighbours(["a", "b"]) == [[("a", "b")]]


@given(st.integers(2, 60), st.integers(1, 8), st.integers(0, 99))
@settings(max_examples=150, deadline=None)
def test_sampled_uses_each_host_k_times_with_other_partners(count: int, k: int, seed: int) -> None:
    rounds = modes.sampled(names(count), k, seed)
    times = meetings(rounds)
    wanted = min(k, count - 1)
    assert set(times) == set(names(count))
    assert set(times.values()) <= ({wanted} if count % 2 == 0 or wanted == count - 1 else {wanted, wanted + 1})
    # Who rests in some round meets later: at most as many meet once more as rested.
    assert sum(times.values()) <= count * wanted + wanted
    assert nobody_twice(rounds) and len(pairs(rounds)) == len(set(pairs(rounds)))
    assert len(rounds) <= wanted + (2 if count % 2 else 0)


def test_the_same_seed_gives_the_same_samples_and_another_one_others() -> None:
    assert modes.sampled(names(40), 3, 7) == modes.sampled(names(40), 3, 7)
    assert modes.sampled(names(40), 3, 7) != modes.sampled(names(40), 3, 8)
    assert modes.shuffled(reversed(names(9)), 1) == modes.shuffled(names(9), 1)


@given(st.lists(st.integers(1, 9), min_size=1, max_size=9), st.integers(1, 4), st.integers(0, 9))
@settings(max_examples=100, deadline=None)
def test_groups_meet_inside_and_across(sizes: list[int], k: int, seed: int) -> None:
    groups = {f"g{i}": [f"g{i}-h{j}" for j in range(size)] for i, size in enumerate(sizes)}
    rounds = modes.grouped(groups, k, seed)
    assert nobody_twice(rounds)
    inside: Counter[str] = Counter()
    across: dict[str, set[str]] = {name: set() for name in groups}
    for a, b in (pair for round_ in rounds for pair in round_):
        one, other = a.split("-")[0], b.split("-")[0]
        inside.update([a, b] if one == other else [])
        if one != other:
            across[one].add(other)
            across[other].add(one)
    for name, members in groups.items():
        assert all(inside[member] >= min(k, len(members) - 1) for member in members)
        assert len(across[name]) >= min(k, len(groups) - 1)


def test_a_meeting_of_groups_takes_every_member_of_the_smaller_one() -> None:
    rounds = modes.grouped({"big": ["a", "b", "c"], "small": ["x", "y"]}, 1, 1)
    across = [pair for round_ in rounds for pair in round_ if len(set(pair) & {"x", "y"}) == 1]
    assert len(across) == 2 and {name for pair in across for name in pair} >= {"x", "y"}


@given(st.integers(3, 60), st.integers(2, 16))
@settings(max_examples=80, deadline=None)
def test_every_host_is_the_centre_of_one_star(count: int, width: int) -> None:
    rounds = modes.stars(names(count), width)
    assert sorted(centre for round_ in rounds for centre, _others in round_) == sorted(names(count))
    for round_ in rounds:
        used = [name for centre, others in round_ for name in (centre, *others)]
        assert len(used) == len(set(used))
    assert {len(others) for round_ in rounds for _centre, others in round_} == {min(width, count - 1)}
    assert len(rounds) <= max(2 * width + 1, count if count <= width else 0)
