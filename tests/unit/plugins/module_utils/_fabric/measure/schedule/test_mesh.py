"""Which ports the mesh tries, and how long that takes. Cost: 1 s."""

from __future__ import annotations

from collections import Counter

import pytest

from ansible_collections.gpufabric.rdma.plugins.module_utils._fabric.intent.tests import DEFAULTS
from ansible_collections.gpufabric.rdma.plugins.module_utils._fabric.measure.schedule.mesh import (
    PARTNERS,
    SLOT,
    Slot,
    lines,
    planned,
)
from ansible_collections.gpufabric.rdma.plugins.module_utils._fabric.measure.schedule.schedule import Field


def names(count: int) -> list[str]:
    return [f"gpu-{number:04d}" for number in range(1, count + 1)]


def rails(count: int) -> list[str]:
    return [f"rail{number}" for number in range(count)]


def mesh(*fields: Field) -> list[Slot]:
    return planned(fields, DEFAULTS, usable=lambda host, rail: True, wanted=lambda rail, a, b: True)


@pytest.mark.parametrize(
    ("hosts", "most"), [(2, 7), (3, 7), (9, 14), (33, 35), (63, 56), (64, 56), (65, 21), (301, 21)]
)
def test_it_takes_a_minute_at_most(hosts: int, most: int) -> None:
    assert len(mesh(Field(names(hosts), rails(8)))) * SLOT <= most


@pytest.mark.parametrize("hosts", [2, 3, 4, 7, 16, 63, 64])
def test_every_pair_is_tried_once_on_every_rail(hosts: int) -> None:
    slots = mesh(Field(names(hosts), rails(2)))
    tried = Counter(
        (one.rail, frozenset((one.client, one.server))) for slot in slots for one in slot if not one.peer_rail
    )
    assert set(tried.values()) == {1}
    assert len(tried) == 2 * hosts * (hosts - 1) // 2


@pytest.mark.parametrize(("hosts", "count"), [(2, 2), (3, 3), (64, 4), (5, 8)])
def test_each_rail_of_a_host_has_a_partner_on_every_other_rail(hosts: int, count: int) -> None:
    slots = mesh(Field(names(hosts), rails(count)))
    tried = Counter((one.client, one.rail, one.peer_rail) for slot in slots for one in slot if one.peer_rail)
    assert set(tried.values()) == ({1} if count > 1 else set())
    assert len(tried) == hosts * count * (count - 1)


def test_a_large_fleet_is_sampled_and_no_host_is_left_out() -> None:
    slots = mesh(Field(names(200), rails(1)))
    met = Counter(name for slot in slots for one in slot for name in (one.client, one.server))
    assert set(met.values()) == {16}


@pytest.mark.parametrize("hosts", [3, 20, 64, 65])
def test_a_host_has_few_partners_at_a_time_and_a_number_for_each_line(hosts: int) -> None:
    for slot in mesh(Field(names(hosts), rails(8))):
        partners = Counter((end[0], end[1]) for one in slot if not one.peer_rail for end in one.ends)
        assert max(partners.values()) <= PARTNERS
        used = [(host, one.port) for one in slot if not one.peer_rail for host in (one.client, one.server)]
        assert len(set(used)) == len(used)
        probes = [(one.client, one.rail, one.port) for one in slot if one.peer_rail]
        assert len(set(probes)) == len(probes)
        assert all(1 <= one.port < 1024 for one in slot if one.peer_rail)
        base = DEFAULTS["port_base"]
        assert all(base <= one.port < base + PARTNERS * 8 for one in slot if not one.peer_rail)


def test_classes_are_tried_at_the_same_time_and_apart() -> None:
    slots = mesh(Field(names(20)[:12], rails(2), "big"), Field(names(20)[12:], ["thin0"], "small"))
    assert len(slots) == 2
    assert {one.rail for one in slots[0]} == {"rail0", "rail1", "thin0"}
    assert all((one.rail == "thin0") == (one.client in names(20)[12:]) for slot in slots for one in slot)


def test_ports_that_cannot_be_used_are_left_out() -> None:
    slots = planned(
        [Field(names(3), rails(2))],
        DEFAULTS,
        usable=lambda host, rail: (host, rail) != ("gpu-0002", "rail1"),
        wanted=lambda rail, a, b: True,
    )
    assert ("gpu-0002", "rail1") not in {end for slot in slots for one in slot for end in one.ends}
    assert planned([Field(names(3), rails(2))], DEFAULTS, usable=lambda *_: False, wanted=lambda *_: True) == []


def test_lines() -> None:
    slots = mesh(Field(["a", "b"], ["rail0", "rail1"]))
    addresses = {(host, rail): f"10.{rail[-1]}.0.{'ab'.index(host) + 1}" for host in "ab" for rail in rails(2)}
    made = lines(slots, addresses, lambda contact: (9000, 4096))
    tail = "mesh -s 9000 -m 4096"
    assert made["a"] == [
        f"0 rail0 client 10.0.0.2 18500 {tail}",
        f"0 rail1 client 10.1.0.2 18501 {tail}",
        f"0 rail0 probe 10.1.0.2 2 {tail}",
        f"0 rail1 probe 10.0.0.2 1 {tail}",
        "END 4",
    ]
    assert [line.split()[2] for line in made["b"][:-1]] == ["server", "server", "probe", "probe"]
