"""Who is diagnosed when hosts that share the port of one do not reach what it can."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest
from tests.tools.fabric_model import Fabric, Fault, isolate, stars

from ansible_collections.gpufabric.rdma.plugins.module_utils._fabric.measure.diagnosis.follow_up import (
    diagnose,
    next_tests,
)
from ansible_collections.gpufabric.rdma.plugins.module_utils._fabric.measure.schedule.schedule import Measurement

MODES = ("incast", "one_to_many")
FAULTS = [
    (),
    (Fault("port", "rail0", "h0001"),),
    (Fault("port", "rail1", "h0009"),),
    (Fault("host", None, "h0003"),),
    (Fault("rail", "rail0"),),
    (Fault("direction", "rail0", "h0001", None, "send"),),
    (Fault("direction", "rail0", "h0001", None, "receive"),),
    (Fault("pair", "rail0", "h0001", "h0003"),),
    (Fault("port", "rail0", "h0001"), Fault("port", "rail0", "h0007")),
    (Fault("port", "rail0", "h0001"), Fault("port", "rail0", "h0002")),
]


@pytest.mark.parametrize("hosts", [5, 10, 11])
@pytest.mark.parametrize("shows", ["fail", "no_data"])
@pytest.mark.parametrize("faults", FAULTS)
@pytest.mark.parametrize("mode", MODES)
def test_planted_faults_are_blamed_and_nobody_else(mode: str, faults: Any, shows: str, hosts: int) -> None:
    planted = tuple(replace(f, shows=shows) for f in faults if int((f.host or "h0")[1:]) < hosts)
    fabric = Fabric(hosts, 2, planted, noise=False)
    outcome = isolate(fabric, stars(fabric.names, fabric.rail_names, mode))
    assert (outcome.right, outcome.diagnosed, outcome.sure) == (len(planted), len(planted), len(planted)), (
        outcome.diagnoses
    )


@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("faults", FAULTS)
def test_where_the_others_make_good_for_a_slow_one_nobody_else_is_blamed(mode: str, faults: Any) -> None:
    fabric = Fabric(10, 2, faults, noise=False, fair=True)
    outcome = isolate(fabric, stars(fabric.names, fabric.rail_names, mode))
    bad = {(f.rail, f.host) for f in faults} | {(f.rail, f.peer) for f in faults if f.peer}
    assert {(b.rail, b.host) for b in outcome.diagnoses} <= bad


@pytest.mark.parametrize("goes", [0, 1, 2])
@pytest.mark.parametrize("shows", ["fail", "no_data"])
@pytest.mark.parametrize("faults", FAULTS)
@pytest.mark.parametrize("mode", MODES)
def test_the_innocent_are_not_blamed_for_sure_however_little_is_tried(
    mode: str, faults: Any, shows: str, goes: int
) -> None:
    fabric = Fabric(10, 2, tuple(replace(fault, shows=shows) for fault in faults), noise=False)
    outcome = isolate(fabric, stars(fabric.names, fabric.rail_names, mode), goes=goes)
    bad = {f.host for f in faults} | {f.peer for f in faults}
    assert all(b.host in (*bad, None) for b in outcome.diagnoses if b.confidence == "confirmed"), outcome.diagnoses
    assert all(b.host in bad or b.host is None for b in outcome.diagnoses if b.kind != "unknown" and shows == "fail")
    assert bool(outcome.diagnoses) == bool(faults)


class Crowded(Fault):
    """Breaks the star around a host, or all, and no test of two hosts."""

    def breaks(self, test: Measurement) -> bool:
        return bool(test.star) and self.rail == test.rail and self.host in (None, test.centre)


@pytest.mark.parametrize(("mode", "role", "word"), [("incast", "receive", "from"), ("one_to_many", "send", "to")])
def test_a_port_that_only_fails_with_several_at_once(mode: str, role: str, word: str) -> None:
    fabric = Fabric(10, 2, (Crowded("direction", "rail0", "h0001", None, role),), noise=False)
    rounds = stars(fabric.names, fabric.rail_names, mode)
    (before,) = isolate(fabric, rounds, goes=0).diagnoses
    assert (before.kind, before.host, before.direction, before.confidence) == ("direction", "h0001", role, "suspected")
    assert before.text == (
        f"h0001 rail0: too slow when {'receiving' if role == 'receive' else 'sending'} {word} h0000, h0002, "
        f"h0003, h0004 at once, "
        "while each of them passes in other stars (planted)"
    )
    outcome = isolate(fabric, rounds)
    (found,) = outcome.diagnoses
    assert (found.kind, found.host, found.direction, found.confidence, outcome.tests) == (
        "direction",
        "h0001",
        role,
        "suspected",
        4,
    )
    assert found.text.endswith("at once, while each of them passes alone (planted)")
    assert found.evidence == (f"{mode} with h0001 at the center did not pass", "9 stars of the rail passed")
    assert (found.failed, found.tests) == (4, 4)


@pytest.mark.parametrize("mode", MODES)
def test_a_rail_on_which_only_stars_fail(mode: str) -> None:
    fabric = Fabric(10, 2, (Crowded("rail", "rail0"),), noise=False)
    rounds = stars(fabric.names, fabric.rail_names, mode)
    (before,) = isolate(fabric, rounds, goes=0).diagnoses
    assert (before.kind, before.rail, before.host, before.confidence) == ("unknown", "rail0", None, "suspected")
    (found,) = isolate(fabric, rounds).diagnoses
    assert (found.kind, found.rail, found.confidence) == ("rail", "rail0", "suspected")
    assert found.text == (
        "rail0: none of its 10 stars passed, while every pair of hosts passes alone: suspect congestion on the "
        "rail (planted)"
    )


def test_without_tests_of_two_hosts_a_star_tells_no_more_than_that_somebody_in_it_is_bad() -> None:
    fabric = Fabric(10, 2, (Fault("port", "rail0", "h0001"),), noise=False)
    (found,) = isolate(fabric, stars(fabric.names, fabric.rail_names, "incast"), goes=0).diagnoses
    assert (found.kind, found.rail, found.host, found.confidence) == ("unknown", "rail0", None, "suspected")
    assert found.text == (
        "rail0: 5 stars did not pass; which of their hosts is the cause is unknown (h0000, h0001, "
        "h0002, h0003 and 1 more) (planted)"
    )


def test_the_only_one_who_is_in_all_failed_stars_is_the_suspect() -> None:
    """Seven hosts, three around each centre: four stars with h0001, three without it."""
    fabric = Fabric(7, 1, (Fault("port", "rail0", "h0001"),), noise=False)
    (found,) = isolate(fabric, stars(fabric.names, fabric.rail_names, "incast", 3), goes=0).diagnoses
    assert (found.kind, found.rail, found.host, found.confidence) == ("port", "rail0", "h0001", "suspected")
    assert found.text == (
        "h0001 rail0: 4 stars with this host did not pass, and it is the only host in all of them without a "
        "passing test (planted)"
    )


def test_shares_are_asked_for_alone_once() -> None:
    fabric = Fabric(10, 2, (Fault("port", "rail0", "h0001"),), noise=False)
    found = fabric.play(stars(fabric.names, fabric.rail_names, "incast"))
    asked = next_tests(found, fabric.names, fabric.rail_names)
    failed = [r for r in found if r["verdict"] == "fail"]
    assert {(t.client, t.server, t.rail, t.star) for t in asked} == {
        (r["client"], r["server"], r["rail"], "") for r in failed
    } and len(asked) == 20
    assert next_tests(found, fabric.names[5:], fabric.rail_names) == []
    later = [*found, *(fabric.measure(test) for test in asked)]
    assert not set(next_tests(later, fabric.names, fabric.rail_names)) & set(asked)


def test_a_silent_share_is_named_and_not_those_that_say_nothing_because_of_it() -> None:
    fabric = Fabric(10, 1, (Fault("direction", "rail0", "h0001", None, "send", shows="no_data"),), noise=False)
    found = fabric.play(stars(fabric.names, fabric.rail_names, "incast"))
    assert sum(r["verdict"] == "no_data" for r in found) == 16
    (diagnosed,) = diagnose(found)
    assert (diagnosed.host, diagnosed.failed) == ("h0001", 4)
