"""Thresholds: which one holds for a rail of a host, and those that would judge nothing."""

from __future__ import annotations

from typing import Any

import pytest
from tests.unit.support.plan_factory import fleet, host_facts, port, rail_port

from ansible_collections.gpufabric.rdma.plugins.module_utils._common.errors import InputError
from ansible_collections.gpufabric.rdma.plugins.module_utils._fabric.intent.intent import Intent
from ansible_collections.gpufabric.rdma.plugins.module_utils._fabric.intent.thresholds import (
    Thresholds,
    check_matches,
    groups_of,
)
from ansible_collections.gpufabric.rdma.plugins.module_utils._fabric.operator.profiles.registry import names
from ansible_collections.gpufabric.rdma.plugins.module_utils._fabric.plan.plan import plan

NET = {"supernet": "192.168.0.0/16"}
GROUPS = {"all": ["a", "b", "c"], "old": ["c"], "others": ["x"]}
NAMES = groups_of(["a", "b", "c"], GROUPS)
KINDS = ("write_bw", "read_bw", "write_lat")


def thresholds(*overrides: dict[str, Any], **fleet: Any) -> Thresholds:
    return Intent.from_params({**NET, "thresholds": {**fleet, "overrides": list(overrides)}}, names()).thresholds


def test_the_last_override_that_matches_wins() -> None:
    own = thresholds(
        {"rails": ["rail1"], "floor": 180},
        {"hosts": ["old"], "tolerance": 0.8},
        {"hosts": ["c"], "rails": ["rail1"], "tolerance": 0.7},
        {"kinds": ["read_bw"], "tolerance": 0.6},
        tolerance=0.9,
    )
    found = {
        (rail, host): (own.of(rail, NAMES[host]).tolerance, own.of(rail, NAMES[host]).floor)
        for rail in ("rail0", "rail1")
        for host in "abc"
    }
    assert found == {
        ("rail0", "a"): (0.9, None),
        ("rail0", "b"): (0.9, None),
        ("rail0", "c"): (0.8, None),
        ("rail1", "a"): (0.9, 180.0),
        ("rail1", "b"): (0.9, 180.0),
        ("rail1", "c"): (0.7, 180.0),
    }
    assert own.side("rail0", NAMES["c"]) == {
        "tolerance": 0.8,
        "bidirectional": 0.9,
        "floor": None,
        "latency_us": None,
        "kinds": {"read_bw": {"tolerance": 0.6}},
    }


def test_a_kind_that_gets_what_all_have_is_not_listed() -> None:
    assert thresholds({"kinds": ["read_bw"], "tolerance": 0.95}).side("rail0", NAMES["a"])["kinds"] == {}


PATH = "rdma_fabric.thresholds.overrides[0]"


@pytest.mark.parametrize(
    ("override", "message"),
    [
        ({"rails": ["rail2"], "floor": 1}, f'{PATH}.rails: no rail rail2; did you mean "rail1"?'),
        (
            {"hosts": ["odl"], "floor": 1},
            f'{PATH}.hosts: odl is neither a host of the fleet nor a group with one; did you mean "old"?',
        ),
        (
            {"hosts": ["others"], "floor": 1},
            f"{PATH}.hosts: others is neither a host of the fleet nor a group with one; known here: a, all, b, c, old",
        ),
        ({"kinds": ["send_bw"], "floor": 1}, f'{PATH}.kinds: send_bw is not measured; did you mean "read_bw"?'),
        (
            {"kinds": ["write_bw"], "latency_us": 5},
            f"{PATH}.latency_us: it judges latency, and these tests measure none (write_bw)",
        ),
        (
            {"kinds": ["write_lat"], "tolerance": 0.5},
            f"{PATH}.tolerance: it judges bandwidth, and these tests measure none (write_lat)",
        ),
        (
            {"rails": ["x"], "hosts": ["a"], "kinds": ["y"], "floor": 1},
            f"2 problems: {PATH}.rails: no rail x; known here: rail0, rail1; {PATH}.kinds: y is not measured; known "
            "here: read_bw, write_bw, write_lat",
        ),
    ],
)
def test_a_threshold_that_judges_nothing_is_refused(override: dict[str, Any], message: str) -> None:
    with pytest.raises(InputError) as caught:
        check_matches(thresholds(override), ("rail0", "rail1"), NAMES, kinds=KINDS)
    assert str(caught.value) == message


def test_a_limit_of_latency_needs_a_test_of_latency() -> None:
    check_matches(thresholds(latency_us=5), ("rail0",), NAMES, kinds=KINDS)
    with pytest.raises(InputError) as caught:
        check_matches(thresholds(latency_us=5), ("rail0",), NAMES, kinds=("write_bw",))
    assert str(caught.value) == "rdma_fabric.thresholds.latency_us: no latency is measured (tests: write_bw)"


def test_the_plan_takes_thresholds_by_group_and_for_hosts_outside_of_the_limit() -> None:
    fabric = {**NET, "thresholds": {"overrides": [{"hosts": ["old", "gpu-0003"], "tolerance": 0.5}]}}
    groups = {"old": ["gpu-0002", "elsewhere"]}
    made = plan(fabric, fleet(3), limit=["gpu-0001", "gpu-0002"], groups=groups)
    assert {name: side["tolerance"] for name, side in made["expectations"]["rail0"].items()} == {
        "gpu-0001": 0.95,
        "gpu-0002": 0.5,
    }
    with pytest.raises(InputError, match="old is neither a host of the fleet nor a group with one"):
        plan(fabric, fleet(3))


def test_the_plan_refuses_a_rail_that_is_not_there() -> None:
    with pytest.raises(InputError) as caught:
        plan({**NET, "thresholds": {"overrides": [{"rails": ["rail10"], "floor": 1}]}}, fleet(2))
    assert str(caught.value) == f'{PATH}.rails: no rail rail10; did you mean "rail1"?'


def test_ports_of_one_card_share_its_pcie_link() -> None:
    ports = [rail_port(0), port("0000:18:00.1", "enp24s0f1"), rail_port(1)]
    hosts = {"a": {"facts": host_facts(1, ports=ports), "rdma_host": {}}}
    made = plan(NET, hosts)["expectations"]
    assert [made[rail]["a"]["pcie"]["ports"] for rail in ("rail0", "rail1", "rail2")] == [2, 2, 1]
