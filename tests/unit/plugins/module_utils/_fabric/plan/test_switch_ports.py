"""Switch ports in the plan, and what a diagnosis says of them."""

from __future__ import annotations

from typing import Any

import pytest

from ansible_collections.gpufabric.rdma.plugins.module_utils._fabric.plan.switch_ports import evidence, switch_ports


def port(system: str, chassis: str, name: str = "swp1") -> dict[str, Any]:
    return {"switch": {"system": system, "chassis": chassis, "port": name}}


def test_switches_by_rail_and_host() -> None:
    ports = {"a": [port("leaf1", "m1", "swp7"), {"switch": None}], "b": [{}, port("", "m2")]}
    assert switch_ports(["rail0", "rail1"], ports) == {
        "rail0": {"a": {"switch": "leaf1", "port": "swp7"}},
        "rail1": {"b": {"switch": "m2", "port": "swp1"}},
    }
    assert switch_ports(["rail0"], {"a": [{"switch": None}]}) == {}


def test_switches_that_kept_one_name_are_told_apart() -> None:
    ports = {"a": [port("sonic", "m1")], "b": [port("sonic", "m2")], "c": [port("leaf3", "m3")]}
    found = switch_ports(["rail0"], ports)["rail0"]
    assert [found[host]["switch"] for host in "abc"] == ["sonic (m1)", "sonic (m2)", "leaf3"]


SWITCHES = {
    "rail0": {"a": {"switch": "leaf1", "port": "swp7"}, "b": {"switch": "leaf2", "port": "swp8"}},
    "rail1": {"a": {"switch": "leaf3", "port": "swp7"}},
}


@pytest.mark.parametrize(
    ("diagnosis", "told"),
    [
        ({"kind": "port", "rail": "rail0", "host": "a", "peer": None}, ["a rail0 is on leaf1 port swp7"]),
        (
            {"kind": "host", "rail": None, "host": "a", "peer": None},
            ["a rail0 is on leaf1 port swp7, rail1 is on leaf3 port swp7"],
        ),
        (
            {"kind": "pair", "rail": "rail0", "host": "a", "peer": "b"},
            ["a rail0 is on leaf1 port swp7", "b rail0 is on leaf2 port swp8"],
        ),
        (
            {"kind": "pair", "rail": "rail0", "host": "b", "peer": "a", "peer_rail": "rail1"},
            ["b rail0 is on leaf2 port swp8", "a rail1 is on leaf3 port swp7"],
        ),
        ({"kind": "rail", "rail": "rail0", "host": None, "peer": None}, ["the rail is on leaf1, leaf2"]),
        ({"kind": "rail", "rail": None, "host": None, "peer": None}, []),
        ({"kind": "port", "rail": "rail1", "host": "b", "peer": None}, []),
    ],
)
def test_evidence_names_switch_ports(diagnosis: dict[str, Any], told: list[str]) -> None:
    assert evidence(SWITCHES, diagnosis) == told
    assert evidence({}, diagnosis) == []


def test_evidence_of_many_rails_is_cut() -> None:
    switches = {f"rail{n}": {"a": {"switch": f"leaf{n}", "port": "1"}} for n in range(8)}
    (text,) = evidence(switches, {"kind": "host", "rail": None, "host": "a", "peer": None})
    assert text.endswith("rail3 is on leaf3 port 1 and 4 rails more")
