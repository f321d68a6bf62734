"""Links that came up low."""

from __future__ import annotations

from typing import Any

import pytest
from tests.unit.support.plan_factory import fleet, host_facts, rail_port

from ansible_collections.gpufabric.rdma.plugins.module_utils._fabric.plan.link_findings import below, find, usual
from ansible_collections.gpufabric.rdma.plugins.module_utils._fabric.plan.plan import plan

RAIL = {"name": "rail0", "link_layer": "ethernet", "mtu": 9000}
FULL = {"speed": 32.0, "width": 16, "max_speed": 32.0, "max_width": 16, "max_payload": 256, "ports": 1}


def side(**change: Any) -> dict[str, Any]:
    return {"rate": 400.0, "mtu": 4096, "pcie": FULL, **change}


def found(*sides: dict[str, Any]) -> list[tuple[str, str, str, str]]:
    made = {"rails": [RAIL], "expectations": {"rail0": {f"h{i}": one for i, one in enumerate(sides)}}}
    return [(one["host"], one["kind"], one["found"], one["expected"]) for one in find(made)]


def texts(*sides: dict[str, Any]) -> list[str]:
    made = {"rails": [RAIL], "expectations": {"rail0": {f"h{i}": one for i, one in enumerate(sides)}}}
    return [one["text"] for one in find(made, {"h1": {"rail0": {"mtu": "1024"}}})]


NARROW = {**FULL, "width": 8}
OLDER = {**FULL, "speed": 16.0}
LOW = {"pci": "0000:00:01.0", "speed": 32.0, "width": 8, "rails": ["rail0"]}
FOUND: list[tuple[tuple[dict[str, Any], ...], list[tuple[str, str, str, str]]]] = [
    ((side(), side(), side()), []),
    ((side(), side(rate=100.0), side()), [("h1", "rate", "100 Gb/s", "400 Gb/s")]),
    # As many fast as slow ones: the fast ones count as usual.
    ((side(), side(rate=100.0)), [("h1", "rate", "100 Gb/s", "400 Gb/s")]),
    ((side(), side(rate=None), side()), []),
    ((side(), side(pcie=NARROW)), [("h1", "pcie", "PCIe x8 32 GT/s", "PCIe x16 32 GT/s")]),
    (
        (side(), side(), side(pcie={**OLDER, "max_speed": 16.0})),
        [("h2", "pcie", "PCIe x16 16 GT/s", "PCIe x16 32 GT/s")],
    ),
    ((side(), side(pcie=None)), []),
    # All alike in a slower slot: no finding while it carries the port, one for each when it does not.
    ((side(rate=200.0, pcie=OLDER), side(rate=200.0, pcie=OLDER)), []),
    (
        (side(pcie=OLDER), side(pcie=OLDER)),
        [(host, "pcie", "PCIe x16 16 GT/s", "PCIe x16 32 GT/s") for host in ("h0", "h1")],
    ),
    ((side(rate=200.0, pcie={**OLDER, "ports": 2}),), [("h0", "pcie", "PCIe x16 16 GT/s", "PCIe x16 32 GT/s")]),
    # A link above the port that is slower than on the other hosts, or than both of its ends support.
    ((side(), side(), side(uplinks=[LOW])), [("h2", "pcie", "PCIe x8 32 GT/s", "PCIe x16 32 GT/s")]),
    ((side(uplinks=[LOW]), side(uplinks=[LOW])), []),
    (
        (side(uplinks=[{**LOW, "best_speed": 32.0, "best_width": 16}]),) * 2,
        [(host, "pcie", "PCIe x8 32 GT/s", "PCIe x16 32 GT/s") for host in ("h0", "h1")],
    ),
    ((side(rate=100.0, uplinks=[{**LOW, "best_speed": 32.0, "best_width": 16}]),), []),
    # What the NIC can do counts where it is more than most ports of the rail have.
    (
        (side(rate=100.0, max_rate=400.0), side(rate=100.0, max_rate=400.0), side(max_rate=400.0)),
        [("h0", "rate", "100 Gb/s", "400 Gb/s"), ("h1", "rate", "100 Gb/s", "400 Gb/s")],
    ),
    (
        (side(rate=200.0, max_rate=400.0), side(rate=200.0, max_rate=400.0)),
        [("h0", "rate", "200 Gb/s", "400 Gb/s"), ("h1", "rate", "200 Gb/s", "400 Gb/s")],
    ),
    (
        (side(max_rate=400.0), side(rate=200.0, max_rate=200.0), side(max_rate=400.0)),
        [("h1", "rate", "200 Gb/s", "400 Gb/s")],
    ),
    # igb has all that it can; a driver may know less than the port has; a port without a link has no rate.
    ((side(rate=1.0, max_rate=1.0), side(rate=1.0, max_rate=1.0)), []),
    ((side(max_rate=None), side(max_rate=100.0), side(rate=None, max_rate=400.0)), []),
    # An older card without a maximum of its own.
    ((side(pcie={**FULL, "max_speed": None, "max_width": None}),), []),
]


@pytest.mark.parametrize(("sides", "expected"), FOUND, ids=range(len(FOUND)))
def test_findings(sides: tuple[dict[str, Any], ...], expected: list[tuple[str, str, str, str]]) -> None:
    assert found(*sides) == expected


@pytest.mark.parametrize(
    ("said", "planned", "expected"),
    [
        ({"mtu": "1024"}, 4096, ["1024"]),
        ({"mtu": "4096"}, 4096, []),
        ({"mtu": "1024"}, 1024, []),
        ({"mtu": "-"}, 4096, []),
        ({"error": "link down"}, 4096, []),
        ({}, 4096, []),
    ],
)
def test_mtus_are_those_that_testers_say(said: dict[str, str], planned: int, expected: list[str]) -> None:
    made = {"rails": [RAIL], "expectations": {"rail0": {"h0": side(mtu=planned), "h1": side(mtu=planned)}}}
    found = find(made, {"h0": {"rail0": said, "rail1": {"mtu": "256"}}, "stranger": {"rail0": said}})
    assert [one["found"] for one in found] == expected


def test_texts_say_what_was_lost_and_where_to_look() -> None:
    assert texts(side(), side(rate=200.0, pcie=OLDER), side(pcie=NARROW)) == [
        "h1 rail0: the link came up at 200 Gb/s, most ports of the rail run at 400 Gb/s: check cable, "
        "transceiver, switch port "
        "and autonegotiation",
        "h1 rail0: PCIe x16 16 GT/s, the card supports PCIe x16 32 GT/s: enough for its 200 Gb/s port; check slot, "
        "riser and BIOS",
        "h2 rail0: PCIe x8 32 GT/s, the card supports PCIe x16 32 GT/s: it carries 227 Gb/s, its port needs 392 "
        "Gb/s; check "
        "slot, riser and BIOS",
        "h1 rail0: RDMA MTU 1024, expected 4096: check for an MTU below 9000 on host and switch",
    ]
    assert texts(side(), side(), side(rate=None, pcie={**OLDER, "max_speed": 16.0}))[0] == (
        "h2 rail0: PCIe x16 16 GT/s, most ports of the rail have PCIe x16 32 GT/s: it carries 227 Gb/s; check "
        "slot, riser "
        "and BIOS"
    )


SLOWER = {**RAIL, "speed": 200.0}


def test_ports_that_are_meant_to_be_slower_than_their_nic() -> None:
    sides = {
        "h0": side(rate=200.0, max_rate=400.0),
        "h1": side(rate=100.0, max_rate=400.0),
        "h2": side(max_rate=400.0),
        "h3": side(rate=100.0),
        "h4": side(rate=100.0),
    }
    found = find({"rails": [SLOWER], "expectations": {"rail0": sides}})
    assert [(one["host"], one["found"], one["expected"]) for one in found] == [
        (host, "100 Gb/s", "200 Gb/s") for host in ("h1", "h3", "h4")
    ]
    assert found[0]["text"] == (
        "h1 rail0: the link came up at 100 Gb/s, rdma_fabric.link_speed is 200 Gb/s: check cable, transceiver, "
        "switch port and autonegotiation"
    )


def test_a_link_below_its_nic_says_where_to_look() -> None:
    assert texts(side(rate=200.0, max_rate=400.0, pcie=None), side(rate=200.0, mtu=1024, pcie=None)) == [
        "h0 rail0: the link came up at 200 Gb/s, its NIC supports 400 Gb/s: check cable, transceiver, switch port and "
        "autonegotiation"
    ]


def test_plans_carry_what_the_nic_can_do() -> None:
    hosts = fleet(2)
    for number, name in enumerate(hosts, 1):
        hosts[name]["facts"] = host_facts(number, ports=[rail_port(0, speed=200.0), rail_port(1)])
    intent = {"supernet": "192.168.0.0/16"}
    assert plan(intent, hosts)["warnings"] == [
        f"{host} rail0: the link came up at 200 Gb/s, its NIC supports 400 Gb/s: check cable, transceiver, switch port "
        "and autonegotiation"
        for host in hosts
    ]
    assert plan({**intent, "link_speed": 200}, hosts)["warnings"] == []


def test_a_real_plan() -> None:
    hosts = fleet(3)
    hosts["gpu-0002"] = {"facts": host_facts(2, ports=[rail_port(0, speed=100.0), rail_port(1)]), "rdma_host": {}}
    assert find(plan({"supernet": "192.168.0.0/16"}, hosts)) == [
        {
            "host": "gpu-0002",
            "rail": "rail0",
            "kind": "rate",
            "found": "100 Gb/s",
            "expected": "400 Gb/s",
            "text": "gpu-0002 rail0: the link came up at 100 Gb/s, most ports of the rail run at 400 Gb/s: "
            "check cable, "
            "transceiver, switch port and autonegotiation",
        }
    ]


def test_usual() -> None:
    assert (usual([]), usual([None]), usual([1, 2]), usual([1, 1, 2]), usual([3, None])) == (None, None, 2, 1, 3)


@pytest.mark.parametrize(
    ("link", "change", "told"),
    [
        ({"rate": "200 Gb/sec (4X HDR)", "mtu": "9000", "pcie": "16.0 GT/s PCIe x16"}, {}, []),
        ({"rate": "100 Gb/sec (4X EDR)"}, {}, ["the link is at 100 Gb/s after the test, 200 Gb/s in the plan"]),
        # Soft-RoCE says 2.5 whatever is underneath: whoever gave a floor knows.
        ({"rate": "2.5 Gb/sec (1X SDR)"}, {"floor": 0.5}, []),
        ({"rate": "2.5 Gb/sec (1X SDR)"}, {"rate": None}, []),
        ({"mtu": "1500"}, {}, ["MTU 1500 after the test, 9000 in the plan"]),
        ({"pcie": "16.0 GT/s PCIe x8"}, {}, ["PCIe x8 16 GT/s after the test, PCIe x16 16 GT/s in the plan"]),
        # A VF has no link of its own.
        ({"pcie": "Unknown x0"}, {}, []),
        ({"pcie": "16.0 GT/s PCIe x0"}, {}, []),
        ({"pcie": "16.0 GT/s PCIe x8"}, {"pcie": None}, []),
        ({"rate": "", "mtu": "-", "pcie": ""}, {}, []),
    ],
)
def test_what_is_below_the_plan_after_a_test(link: dict[str, str], change: dict[str, Any], told: list[str]) -> None:
    own = {"rate": 200.0, "floor": None, "pcie": {"speed": 16.0, "width": 16}, **change}
    assert below(RAIL, own, link) == told
    assert below({**RAIL, "link_layer": "infiniband"}, own, link) == [text for text in told if "MTU" not in text]
