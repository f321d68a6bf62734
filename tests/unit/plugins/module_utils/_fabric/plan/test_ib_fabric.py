"""Switches of InfiniBand rails from recorded output of ibnetdiscover. Costs below 1 s."""

from __future__ import annotations

import random
from pathlib import Path
from typing import Any

import pytest
from tests.unit.support.plan_factory import fleet

from ansible_collections.gpufabric.rdma.plugins.module_utils._common.errors import InputError, ParseError
from ansible_collections.gpufabric.rdma.plugins.module_utils._fabric.plan.ib_fabric import parse
from ansible_collections.gpufabric.rdma.plugins.module_utils._fabric.plan.plan import plan

RECORDED = (Path(__file__).parents[5] / "fixtures/ibnetdiscover/two-leaves.txt").read_text()
PATH = "/etc/fabric/ibnetdiscover.txt"
LEAF1 = {"system": "leaf1", "chassis": "0xb83fd20300a00001"}
LEAF2 = {"system": "leaf2", "chassis": "0xb83fd20300a00002"}
GROUPS = "rdma_fabric.tests.groups"


def planned(content: Any = RECORDED, hosts: int = 3, **fabric: Any) -> dict[str, Any]:
    tests = {"mode": "topology", "groups": {"from": "ibnetdiscover", "path": PATH}}
    own = {"profile": "ipoib", "supernet": "192.168.0.0/16", "tests": tests, **fabric}
    return plan(own, fleet(hosts, link_layer="infiniband"), topology=content)


def test_each_adapter_is_on_a_port_of_a_switch() -> None:
    assert parse(RECORDED) == {
        "b83fd20300180001": {**LEAF1, "port": "1"},
        "b83fd20300180002": {**LEAF1, "port": "2"},
        "b83fd20300280001": {**LEAF2, "port": "1"},
        "b83fd20300280002": {**LEAF2, "port": "2"},
        "b83fd20300180003": {**LEAF2, "port": "3"},
    }


def test_the_order_of_nodes_means_nothing() -> None:
    """A property over orders: what an adapter is on follows from its own lines."""
    head, *nodes = RECORDED.split("\n\nvendid")
    for seed in range(20):
        random.Random(seed).shuffle(nodes)
        assert parse("\n\nvendid".join([head, *nodes])) == parse(RECORDED)


@pytest.mark.parametrize(
    ("lines", "expected"),
    [
        # Of an adapter with two ports the first one counts; without a cable there is no line of it.
        (
            ['Ca\t2 "H-1"\t# "h"', '[1](2) \t"S-a"[7]\t\t# lid 3 lmc 0 "s" lid 1 4xNDR', '[2](3) \t"S-b"[8]\t\t# "t"'],
            "7",
        ),
        (['Ca\t2 "H-1"\t# "h"', '[2](3) \t"S-b"[8]\t\t# lid 3 lmc 0 "t" lid 1 4xNDR'], None),
        # Back to back, on a router, or on a switch whose lines are cut.
        (['Ca\t1 "H-1"\t# "h"', '[1](2) \t"H-5"[1]\t\t# lid 3 lmc 0 "other" lid 1 4xNDR'], None),
        (['Switch\t1 "S-1"\t# "s"', '[1](2) \t"S-a"[7]\t\t# lid 3 lmc 0 "s" lid 1 4xNDR'], None),
        (['Ca\t1 "H-1"\t# "h"', '[1](2) \t"S-a"[7]'], None),
        ([], None),
    ],
)
def test_adapters_that_are_on_no_switch_are_left_out(lines: list[str], expected: str | None) -> None:
    if expected is None:
        with pytest.raises(ParseError, match="no adapter .Ca. with a link to a switch"):
            parse("\n".join(lines))
    else:
        assert [own["port"] for own in parse("\n".join(lines)).values()] == [expected]


def test_groups_are_the_switches_of_the_first_rail() -> None:
    made = planned()
    assert made["tests"]["groups"] == {"leaf1": ["gpu-0001", "gpu-0002"], "leaf2": ["gpu-0003"]}
    assert made["switches"] == {
        "rail0": {
            "gpu-0001": {"switch": "leaf1", "port": "1"},
            "gpu-0002": {"switch": "leaf1", "port": "2"},
            "gpu-0003": {"switch": "leaf2", "port": "3"},
        },
        "rail1": {
            "gpu-0001": {"switch": "leaf2", "port": "1"},
            "gpu-0002": {"switch": "leaf2", "port": "2"},
        },
    }


def test_switches_of_one_name_are_told_apart() -> None:
    """Unmanaged switches have the name of their model."""
    made = planned(RECORDED.replace('"leaf1"', '"Quantum"').replace('"leaf2"', '"Quantum"'))
    assert list(made["tests"]["groups"]) == ["Quantum (0xb83fd20300a00001)", "Quantum (0xb83fd20300a00002)"]


def test_hosts_that_the_file_lacks_are_named() -> None:
    made = planned(hosts=4)
    assert made["tests"]["groups"]["unknown"] == ["gpu-0004"]
    assert f"{GROUPS}: gpu-0004 without a node GUID of {PATH}, or on switches of their own: the group unknown" in [
        *made["warnings"]
    ]
    made = planned(RECORDED.replace("b83fd203", "b83fd2ff"))
    assert (made["tests"]["groups"], made.get("switches")) == ({}, None)
    assert (
        f"{GROUPS}: no host shows a node GUID of {PATH} on a rail; record {PATH} again with ibnetdiscover on a host of"
        " the fabric"
    ) in made["warnings"]


@pytest.mark.parametrize(
    ("content", "problem"),
    [
        ("SwitchName=leaf1 Nodes=gpu-1", "it has no adapter (Ca) with a link to a switch. Expected the output of"),
        ([], "expected the output of ibnetdiscover, found a list"),
    ],
)
def test_another_file_is_refused(content: Any, problem: str) -> None:
    with pytest.raises(InputError) as caught:
        planned(content)
    assert f"{GROUPS}.path: {PATH}: {problem}" in str(caught.value)


def test_names_from_the_fabric_are_made_plain() -> None:
    """A node of the fabric may be hostile: the name of a switch has no control characters, and an end."""
    (first, *_others) = parse(RECORDED.replace('"leaf1"', '"\x1b[31m' + "x" * 900 + '"')).values()
    name = {own["system"] for own in (first, *_others)}
    assert all(text.isprintable() and len(text) <= 300 for text in name)
