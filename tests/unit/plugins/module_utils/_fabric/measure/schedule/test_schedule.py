"""What is measured in which round: modes, rails, kinds and sizes, restrictions, repetitions."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from itertools import permutations
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ansible_collections.gpufabric.rdma.plugins.module_utils._common.errors import InputError
from ansible_collections.gpufabric.rdma.plugins.module_utils._fabric.measure.schedule.schedule import (
    Measurement,
    mode_of,
    only,
    pack,
    planned,
    repeat,
    whole,
)

TWO = ["r0", "r1"]


def names(count: int) -> list[str]:
    return [f"h{number}" for number in range(count)]


def all_tests(rounds: list[tuple[Measurement, ...]]) -> list[Measurement]:
    return [test for round_ in rounds for test in round_]


@given(st.integers(2, 33), st.integers(1, 4))
@settings(max_examples=30, deadline=None)
def test_every_ordered_pair_once_per_rail_and_nobody_twice_in_a_round(hosts: int, rails: int) -> None:
    rail_names = [f"r{number}" for number in range(rails)]
    rounds = planned(names(hosts), rail_names, {"mode": "all_pairs"})
    count = Counter((test.rail, test.client, test.server) for test in all_tests(rounds))
    assert set(count) == {(r, a, b) for r in rail_names for a, b in permutations(names(hosts), 2)}
    assert set(count.values()) == {1}
    for round_ in rounds:
        for rail in rail_names:
            used = [name for test in round_ if test.rail == rail for name in (test.client, test.server)]
            assert len(used) == len(set(used))


MODES: list[dict[str, Any]] = [
    {"mode": "all_pairs"},
    {"mode": "ring"},
    {"mode": "sampled", "rounds": 2},
    {"mode": "loopback"},
    {"mode": "sampled", "cross_rail": True},
    {"mode": "ring", "rails_at_once": False},
    {"mode": "ring", "kinds": ["write_bw", "read_lat"], "sizes": [4096, 65536]},
]


@given(st.integers(2, 20), st.integers(2, 5), st.sampled_from(MODES))
@settings(max_examples=80, deadline=None)
def test_a_host_has_one_partner_in_a_round_and_a_rail_one_test(hosts: int, rails: int, tests: dict[str, Any]) -> None:
    rounds = planned(names(hosts), [f"r{number}" for number in range(rails)], tests)
    assert len(set(all_tests(rounds))) == len(all_tests(rounds))
    for round_ in rounds:
        partners: dict[str, set[frozenset[str]]] = {}
        ends: Counter[tuple[str, str]] = Counter()
        for test in round_:
            for name in (test.client, test.server):
                partners.setdefault(name, set()).add(frozenset((test.client, test.server)))
            ends.update([(test.client, test.rail), (test.server, test.server_rail)])
        assert all(len(found) == 1 for found in partners.values())
        assert set(ends.values()) == {1}


@pytest.mark.parametrize(("hosts", "rounds"), [(2, 2), (3, 6), (4, 6), (5, 10), (16, 30)])
def test_number_of_rounds(hosts: int, rounds: int) -> None:
    assert len(planned(names(hosts), ["r"], {})) == rounds


@pytest.mark.parametrize(("hosts", "mode"), [(2, "all_pairs"), (32, "all_pairs"), (33, "sampled"), (1024, "sampled")])
def test_mode_of_a_fleet(hosts: int, mode: str) -> None:
    assert mode_of({}, hosts) == mode
    assert mode_of({"mode": "ring"}, hosts) == "ring"


@pytest.mark.parametrize(("budget", "slots"), [("quick", 6), ("standard", 60), ("deep", 120)])
def test_a_large_fleet_is_measured_in_the_slots_of_the_budget(budget: str, slots: int) -> None:
    assert len(planned(names(232), ["r"], {"budget": budget})) == slots


def test_both_directions_follow_each_other() -> None:
    first, second = planned(["a", "b"], ["r"], {})
    assert (first, second) == ((Measurement("r", "a", "b", "write_bw"),), (Measurement("r", "b", "a", "write_bw"),))


@pytest.mark.parametrize("directions", ["one", "together"])
def test_one_direction_is_half(directions: str) -> None:
    assert planned(["a", "b"], ["r"], {"directions": directions}) == [(Measurement("r", "a", "b", "write_bw"),)]


def test_kinds_and_sizes_follow_each_other_and_latency_has_its_own_size() -> None:
    tests = {"kinds": ["write_bw", "read_lat"], "sizes": [4096, 65536], "directions": "one"}
    assert [(test.kind, test.size) for test in all_tests(planned(["a", "b"], ["r"], tests))] == [
        ("write_bw", 4096),
        ("write_bw", 65536),
        ("read_lat", 0),
    ]
    assert [test.size for test in all_tests(planned(["a", "b"], ["r"], {"sizes": [4096]}))] == [0, 0]


def test_rails_one_at_a_time() -> None:
    rounds = planned(["a", "b"], TWO, {"rails_at_once": False, "directions": "one"})
    assert [[test.rail for test in round_] for round_ in rounds] == [["r0"], ["r1"]]


FOUR = ["r0", "r1", "r2", "r3"]
PAIRS_OF_RAILS = [["r0", "r1"], ["r2", "r3"]]


def busy(rounds: Sequence[Sequence[Measurement]], groups: list[list[str]], *, both: bool) -> int:
    """Return by how many rails a shared link is used at most in one direction at the same time."""
    used: Counter[tuple[Any, ...]] = Counter()
    for number, round_ in enumerate(rounds):
        for test in round_:
            for host, rail, usual in ((test.client, test.rail, "out"), (test.server, test.server_rail, "in")):
                for at, group in enumerate(groups):
                    for direction in ("out", "in") if both else (usual,):
                        used[number, host, at, direction] += rail in group
    return max(used.values())


@pytest.mark.parametrize(
    ("tests", "groups", "rounds"),
    [
        # Two rails of a link go in opposite directions: no longer than all at once.
        ({}, PAIRS_OF_RAILS, 2),
        ({}, [["r0", "r1", "r2", "r3"]], 4),
        ({}, [["r0", "r1", "r2"]], 4),
        ({"directions": "one"}, PAIRS_OF_RAILS, 2),
        ({"directions": "together"}, PAIRS_OF_RAILS, 2),
        ({"rails_at_once": False}, PAIRS_OF_RAILS, 8),
        ({"rails_at_once": True}, [], 2),
        ({}, [], 2),
    ],
)
def test_rails_that_share_a_link_go_in_opposite_directions_or_in_turns(
    tests: dict[str, Any], groups: list[list[str]], rounds: int
) -> None:
    planned_ = planned(["a", "b"], FOUR, {**tests, "sharing": groups})
    assert len(planned_) == rounds
    assert not groups or busy(planned_, groups, both=tests.get("directions") == "together") == 1
    usual = planned(["a", "b"], FOUR, {**tests, "rails_at_once": True})
    assert Counter(all_tests(planned_)) == Counter(all_tests(usual))


GROUPS = st.lists(st.lists(st.sampled_from(FOUR), min_size=2, max_size=4, unique=True), max_size=3)


@given(
    st.integers(3, 9), st.sampled_from([mode for mode in MODES if mode["mode"] != "loopback"]), GROUPS, st.integers()
)
@settings(max_examples=80, deadline=None)
def test_no_shared_link_is_used_twice_in_one_direction(
    hosts: int, mode: dict[str, Any], groups: list[list[str]], pick: int
) -> None:
    tests = {**mode, "sharing": groups}
    rounds = planned(names(hosts), FOUR, tests)
    assert Counter(all_tests(rounds)) == Counter(all_tests(planned(names(hosts), FOUR, mode)))
    again = repeat([test for at, test in enumerate(all_tests(rounds)) if pick >> (at % 30) & 1], tests)
    for played in (rounds, again):
        assert not groups or not played or busy(played, groups, both=False) <= 1


def test_a_star_tests_rails_that_share_a_link_in_turns() -> None:
    tests = {"mode": "incast", "fan": 2, "sharing": [["r0", "r1"]]}
    rounds = planned(["a", "b", "c"], TWO, tests)
    assert {len({test.rail for test in round_}) for round_ in rounds} == {1}
    assert {len({test.rail for test in round_}) for round_ in repeat(all_tests(rounds), tests)} == {1}


def test_cross_rail_uses_each_way_once() -> None:
    rounds = planned(["a", "b"], ["r0", "r1", "r2"], {"cross_rail": True})
    ways = Counter((t.client, t.rail, t.server_rail) for t in all_tests(rounds))
    assert len(ways) == 2 * 9 and set(ways.values()) == {1}
    assert {t.peer_rail for t in rounds[0]} == {""}


def test_loopback_meets_every_two_rails_of_each_host() -> None:
    rounds = planned(["a", "b"], ["r0", "r1", "r2"], {"mode": "loopback"})
    assert {(t.client, t.rail, t.peer_rail) for t in all_tests(rounds)} == {
        (host, *ways) for host in "ab" for ways in permutations(["r0", "r1", "r2"], 2)
    }
    assert all(t.client == t.server for t in all_tests(rounds))


@pytest.mark.parametrize(("mode", "centre"), [("incast", "server"), ("one_to_many", "client")])
def test_stars_have_every_host_in_their_middle_once(mode: str, centre: str) -> None:
    rounds = planned(names(10), ["r"], {"mode": mode, "fan": 4})
    stars = Counter((number, getattr(t, centre)) for number, round_ in enumerate(rounds) for t in round_)
    assert sorted(name for _number, name in stars) == names(10)
    assert set(stars.values()) == {4}


def test_topology_needs_every_host_in_one_group() -> None:
    groups = {"one": ["h0", "h1"], "two": ["h2", "gone"]}
    rounds = planned(names(3), ["r"], {"mode": "topology", "groups": groups, "rounds": 1, "directions": "one"})
    assert [{frozenset((t.client, t.server)) for t in round_} for round_ in rounds][0] == {frozenset(("h0", "h1"))}
    for change, message in (
        ({"one": ["h0", "h1"]}, "h2 in no group; name every host once"),
        ({**groups, "three": ["h0"]}, "h0 in several groups; name every host once"),
    ):
        with pytest.raises(InputError) as error:
            planned(names(3), ["r"], {"mode": "topology", "groups": change})
        assert str(error.value) == f"rdma_fabric.tests.groups: {message}"


NO: list[tuple[int, list[str], dict[str, Any], str]] = [
    (
        1,
        TWO,
        {"mode": "all_pairs"},
        "rdma_fabric.tests.mode all_pairs needs 2 hosts, 1 given (h0); widen --limit or "
        "the group of the fabric, or take another mode",
    ),
    (
        2,
        TWO,
        {"mode": "incast"},
        "rdma_fabric.tests.mode incast needs 3 hosts, 2 given (h0, h1); widen --limit or "
        "the group of the fabric, or take another mode",
    ),
    (3, ["r0"], {"mode": "loopback"}, "rdma_fabric.tests.mode loopback needs two rails, the plan has 1"),
    (3, ["r0"], {"cross_rail": True}, "rdma_fabric.tests.cross_rail needs two rails, the plan has 1"),
    (3, TWO, {"only": {"hosts": ["h9"]}}, "only.hosts or pairs: h9 not in this run, which has h0, h1, h2"),
    (3, TWO, {"only": {"pairs": [["h0", "gpu"]]}}, "only.hosts or pairs: gpu not in this run, which has h0, h1, h2"),
    (3, TWO, {"only": {"rails": ["r7"]}}, "only.rails: r7 not in this run, which has r0, r1"),
    (3, TWO, {"only": {"pairs": [["h0", "h1"]], "hosts": ["h2"]}}, "no test is planned, only matches none"),
    (3, TWO, {"mode": "loopback", "only": {"rails": ["r0"]}}, "no test is planned, only matches none"),
    (3, TWO, {"kinds": []}, "no test is planned"),
]


@pytest.mark.parametrize(("hosts", "rails", "tests", "message"), NO, ids=[row[3][:30] for row in NO])
def test_what_cannot_be_planned_is_an_error(hosts: int, rails: list[str], tests: dict[str, Any], message: str) -> None:
    with pytest.raises(InputError) as error:
        planned(names(hosts), rails, tests)
    assert str(error.value) == f"nothing was measured: {message}"


def test_only_named_hosts_rails_and_pairs() -> None:
    tests = all_tests(planned(names(5), TWO, {"only": {"hosts": ["h3"]}}))
    assert len(tests) == 2 * 4 * 2 and all("h3" in (t.client, t.server) for t in tests)
    assert {t.rail for t in all_tests(planned(names(5), TWO, {"only": {"rails": ["r1"]}}))} == {"r1"}
    pairs = [["h0", "h1"], ["h1", "h0"], ["h3", "h4"]]
    rounds = planned(names(5), ["r0"], {"mode": "sampled", "only": {"pairs": pairs}, "directions": "one"})
    assert rounds == [(Measurement("r0", "h1", "h0", "write_bw"), Measurement("r0", "h3", "h4", "write_bw"))]


def test_a_few_tests_of_a_long_schedule_need_few_rounds() -> None:
    rounds = planned(names(20), ["r"], {})
    wanted = {Measurement("r", f"h{i}", f"h{i + 10}", "write_bw") for i in range(10)}
    packed = pack(rounds, wanted, {})
    assert len(packed) == 1 and set(packed[0]) == wanted
    assert pack(rounds, set(all_tests(rounds)), {}) == rounds


@given(st.lists(st.tuples(st.integers(0, 9), st.integers(0, 9), st.integers(0, 2)), max_size=60))
@settings(max_examples=50, deadline=None)
def test_repeats_use_everybody_once_a_round_and_forget_nothing(picks: list[tuple[int, int, int]]) -> None:
    wanted = {Measurement(f"r{rail}", f"h{a}", f"h{b}", "write_bw") for a, b, rail in picks if a != b}
    rounds = repeat(wanted)
    assert Counter(all_tests(rounds)) == Counter(wanted)
    for round_ in rounds:
        pairs = {(test.client, test.server) for test in round_}
        used = [name for pair in pairs for name in pair]
        assert len(used) == len(set(used))


@given(st.integers(3, 9), st.integers(2, 4), st.sampled_from(MODES), st.integers(0, 2**30))
@settings(max_examples=60, deadline=None)
def test_repeats_of_a_mode_keep_its_rules(hosts: int, rails: int, tests: dict[str, Any], pick: int) -> None:
    every = all_tests(planned(names(hosts), [f"r{number}" for number in range(rails)], tests))
    wanted = {test for number, test in enumerate(every) if pick >> (number % 30) & 1}
    rounds = repeat(wanted, tests)
    assert Counter(all_tests(rounds)) == Counter(wanted)
    for round_ in rounds:
        ends = Counter(end for t in round_ for end in ((t.client, t.rail), (t.server, t.server_rail)))
        assert set(ends.values()) == {1}
        if not tests.get("rails_at_once", True):
            assert set(Counter(name for t in round_ for name in (t.client, t.server)).values()) == {1}


def test_rails_of_a_pair_stay_together_when_repeated() -> None:
    tests = [Measurement(rail, "a", "b", "write_bw") for rail in TWO]
    assert repeat(tests) == [tuple(tests)]


def test_a_star_is_repeated_as_a_whole() -> None:
    tests = {"mode": "incast", "fan": 3}
    rounds = planned(names(8), ["r"], tests)
    one = rounds[0][0]
    star = whole([one], all_tests(rounds))
    assert len(star) == 3 and {t.server for t in star} == {one.server}
    assert repeat(star, tests) == [tuple(sorted(star))]
    alone = one._replace(star="")
    assert whole([alone], [*all_tests(rounds), alone]) == [alone]
    assert len(repeat([*star, alone], tests)) == 2


def test_only_drops_rounds_that_are_left_empty() -> None:
    rounds = planned(["a", "b"], TWO, {})
    assert only(rounds, {rounds[1][0]}) == [(rounds[1][0],)]
