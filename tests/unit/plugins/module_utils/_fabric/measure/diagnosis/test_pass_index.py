"""What a result says about: layers, directions of data, and which parts it clears."""

from __future__ import annotations

from typing import Any

import pytest

from ansible_collections.gpufabric.rdma.plugins.module_utils._fabric.intent.kinds import KINDS
from ansible_collections.gpufabric.rdma.plugins.module_utils._fabric.measure.diagnosis.pass_index import (
    Fleet,
    Scope,
    layers_of,
    pair_scope,
)


def result(client: str, server: str, verdict: str = "pass", **changes: Any) -> dict[str, Any]:
    return {
        "where": "host",
        "rail": "r0",
        "client": client,
        "server": server,
        "test": "write_bw",
        "verdict": verdict,
        "reason": "",
        **changes,
    }


@pytest.mark.parametrize(
    ("changes", "layers"),
    [
        ({}, ("base", "mtu")),
        ({"test": "write_lat"}, ("base",)),
        ({"test": "write_lat", "size": 65536}, ("base", "mtu")),
        ({"size": 1024}, ("base",)),
        ({"size": 65536, "mtu": 1024}, ("base",)),
        ({"size": 65536, "mtu": 4096}, ("base", "mtu")),
        ({"memory": "host"}, ("base", "mtu")),
        ({"memory": "cuda:dmabuf"}, ("base", "mtu", "gpu")),
        ({"test": "write_lat", "memory": "cuda:peermem"}, ("base", "gpu")),
    ],
)
def test_layers(changes: dict[str, Any], layers: tuple[str, ...]) -> None:
    assert layers_of(result("a", "b", **changes)) == layers


@pytest.mark.parametrize(
    ("kind", "ways"),
    [
        ("write_bw", (("a", "b"),)),
        ("send_bw", (("a", "b"),)),
        ("read_bw", (("b", "a"),)),
        ("read_lat", (("a", "b"), ("b", "a"))),
    ],
)
def test_ways(kind: str, ways: Any) -> None:
    assert KINDS[kind].ways("a", "b") == ways


def test_a_pass_clears_all_that_it_needed_and_nothing_else() -> None:
    fleet = Fleet.of([result("a", "b"), result("b", "a", "fail")])
    cleared = {scope for (layer, scope), count in fleet.passes.items() if layer == "mtu" and count}
    assert cleared == {
        Scope("all"),
        Scope("rail", "r0"),
        Scope("host", None, "a"),
        Scope("host", None, "b"),
        Scope("port", "r0", "a"),
        Scope("port", "r0", "b"),
        Scope("send", "r0", "a"),
        Scope("receive", "r0", "b"),
        pair_scope(("b", "r0"), ("a", "r0")),
    }
    assert not any(layer == "gpu" for layer, _scope in fleet.passes)


def test_a_pass_from_one_rail_to_another_clears_each_port_on_its_own_rail_and_the_way_between() -> None:
    fleet = Fleet.of([result("a", "b", peer_rail="r1"), result("b", "a", "fail", rail="r1", peer_rail="r0")])
    cleared = {scope for (layer, scope), count in fleet.passes.items() if layer == "base" and count}
    assert cleared == {
        Scope("all"),
        Scope("rail", "r0"),
        Scope("rail", "r1"),
        Scope("routing"),
        Scope("routing", "r0", peer_rail="r1"),
        Scope("host", None, "a"),
        Scope("host", None, "b"),
        Scope("port", "r0", "a"),
        Scope("port", "r1", "b"),
        Scope("send", "r0", "a"),
        Scope("receive", "r1", "b"),
        Scope("pair", "r0", "a", "b", "r1"),
    }
    assert fleet.hosts_of == {"r0": {"a"}, "r1": {"b"}}
    (failure,) = fleet.failures
    assert (failure.ends, failure.rails) == ((("b", "r1"), ("a", "r0")), ("r0", "r1"))
    assert not fleet.clears(failure, ("b", "r1")) and not fleet.clears(failure, ("a", "r0"))


def test_a_test_of_a_host_with_itself_is_one_of_its_tests() -> None:
    fleet = Fleet.of([result("a", "a", peer_rail="r1"), result("b", "a", "fail")])
    assert fleet.passes["base", Scope("host", None, "a")] == fleet.passes["base", Scope("port", "r1", "a")] == 1


def test_a_test_both_ways_counts_once_for_a_port_and_clears_both_directions() -> None:
    fleet = Fleet.of([result("a", "b", test="write_lat"), result("a", "b", "fail")])
    assert fleet.passes["base", Scope("port", "r0", "a")] == 1
    assert fleet.passes["base", Scope("send", "r0", "b")] == fleet.passes["base", Scope("receive", "r0", "b")] == 1
    assert fleet.passes["mtu", Scope("port", "r0", "a")] == 0


def test_a_partner_is_good_when_its_own_side_passed_with_another() -> None:
    fleet = Fleet.of([result("a", "b", "fail"), result("a", "c", "fail"), result("d", "b"), result("c", "d")])
    assert fleet.good_partners(fleet.failures, Scope("port", "r0", "a")) == {"b"}


def test_failures_are_told_apart_and_a_fleet_without_any_counts_nothing() -> None:
    assert len(set(Fleet.of([result("a", "b", "fail")] * 2).failures)) == 2
    healthy = Fleet.of([result("a", "b")])
    assert (healthy.failures, dict(healthy.passes), healthy.hosts()) == ([], {}, {"a", "b"})
    assert Fleet.of([]).hosts() == set()


@pytest.mark.parametrize(
    ("verdict", "passes", "firm"),
    [
        ("fail", [{"verdict": "fail"}], True),
        ("fail", [{"verdict": "no_data", "evidence": "none"}, {"verdict": "fail"}], True),
        ("fail", [{"verdict": "fail"}, {"verdict": "fail", "repeated": True}], True),
        # What was measured again on an overloaded host confirms nothing.
        ("fail", [{"verdict": "fail"}, {"verdict": "no_data", "repeated": True, "evidence": "none"}], False),
        ("no_data", [{"verdict": "no_data"}, {"verdict": "no_data"}], True),
        ("no_data", [{"verdict": "no_data"}, {"verdict": "no_data", "evidence": "weak"}], False),
    ],
)
def test_which_failures_may_confirm_a_diagnosis(verdict: str, passes: list[dict[str, Any]], firm: bool) -> None:
    (found,) = Fleet.of([result("a", "b", verdict, passes=passes)]).failures
    assert found.firm == firm
