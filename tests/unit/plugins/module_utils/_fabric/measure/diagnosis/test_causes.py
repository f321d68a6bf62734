"""What explains failures that no simple picture does: named hosts, parts that some tests survive, shared paths."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from itertools import permutations
from typing import Any

import pytest

from ansible_collections.gpufabric.rdma.plugins.module_utils._fabric.measure.diagnosis.causes import causes, center
from ansible_collections.gpufabric.rdma.plugins.module_utils._fabric.measure.diagnosis.pass_index import Fleet

RAILS = ("r0", "r1")
HOSTS = tuple(f"h{number:02d}" for number in range(16))


def fleet(reason: Callable[[str, str, str], str], hosts: Sequence[str] = HOSTS) -> Fleet:
    """All pairs; a reason that is not "" is a test without data."""
    return Fleet.of(
        [
            {
                "where": "host",
                "rail": rail,
                "client": c,
                "server": s,
                "test": "write_bw",
                "reason": reason(rail, c, s),
                "verdict": "no_data" if reason(rail, c, s) else "pass",
            }
            for rail in RAILS
            for c, s in permutations(hosts, 2)
        ]
    )


def told(found: Fleet) -> list[tuple[Any, ...]]:
    return sorted(((*c.scope[:4], c.named, len(c.failures)) for c in causes(found)), key=str)


def test_reasons_name_a_host_even_one_that_passed_before_its_tester_died() -> None:
    found = fleet(
        lambda r, c, s: "h03: no log was returned; h03 (client): gone" if "h03" in (c, s) and r == "r0" else ""
    )
    assert told(found) == [("host", None, "h03", None, True, 30)]


def test_reasons_name_a_port() -> None:
    found = fleet(lambda r, c, s: "h03 r1: no link" if "h03" in (c, s) and r == "r1" and c < s else "")
    assert told(found) == [("port", "r1", "h03", None, True, 15)]


def test_two_hosts_are_enough_when_a_reason_names_one() -> None:
    assert told(fleet(lambda r, c, s: "h00: unreachable", HOSTS[:2])) == [("host", None, "h00", None, True, 4)]


def test_when_most_are_named_it_is_something_that_they_share() -> None:
    missing = fleet(lambda r, c, s: f"{c}: perftest is not installed; {s}: perftest is not installed")
    assert told(missing) == [("all", None, None, None, False, 480)]
    links = fleet(lambda r, c, s: f"{c} r1: no link; {s} r1: no link" if r == "r1" else "")
    assert told(links) == [("rail", "r1", None, None, False, 240)]


def test_a_name_that_begins_like_another_is_not_taken_for_it() -> None:
    found = fleet(lambda r, c, s: "h1: gone" if "h10" in (c, s) else "")
    assert told(found) == [("host", None, "h10", None, False, 60)]


@pytest.mark.parametrize("survivors", [1, 3, 7])
def test_a_port_that_some_tests_survive_is_one_cause(survivors: int) -> None:
    lucky = HOSTS[1 : 1 + survivors]
    found = fleet(lambda r, c, s: "x" if r == "r0" and "h00" in (c, s) and not {c, s} & set(lucky) else "")
    assert told(found) == [("port", "r0", "h00", None, False, 2 * (15 - survivors))]


def test_a_host_that_some_tests_survive_on_all_its_rails_is_one_cause() -> None:
    found = fleet(lambda r, c, s: "x" if "h00" in (c, s) and not {c, s} & {"h01", "h02"} else "")
    assert told(found) == [("host", None, "h00", None, False, 52)]


def test_a_direction_that_some_tests_survive_is_one_cause() -> None:
    found = fleet(lambda r, c, s: "x" if r == "r0" and c == "h00" and s not in ("h01", "h02") else "")
    assert told(found) == [("send", "r0", "h00", None, False, 13)]


def test_a_rail_that_some_tests_survive_is_one_cause_not_as_many_ports() -> None:
    lucky = {("h00", "h05"), ("h03", "h07"), ("h09", "h02"), ("h11", "h12")}
    found = fleet(lambda r, c, s: "x" if r == "r0" and (c, s) not in lucky else "")
    assert told(found) == [("rail", "r0", None, None, False, 236)]


def test_most_ports_of_a_rail_bad_are_ports_while_the_others_pass() -> None:
    found = fleet(lambda r, c, s: "x" if r == "r0" and not {c, s} <= set(HOSTS[12:]) else "")
    assert told(found) == [("port", "r0", host, None, False, 30) for host in HOSTS[:12]]


@pytest.mark.parametrize("hosts", [4, 5, 16])
def test_two_bad_ports_on_two_rails_are_not_a_host(hosts: int) -> None:
    bad = {("r0", "h00"), ("r1", "h01")}
    found = fleet(lambda r, c, s: "x" if bad & {(r, c), (r, s)} else "", HOSTS[:hosts])
    assert [(rail, host) for _kind, rail, host, *_ in told(found)] == sorted(bad)


def test_a_cut_between_two_groups_is_one_cause_of_the_rail_not_as_many_hosts_or_pairs() -> None:
    found = fleet(lambda r, c, s: "x" if r == "r0" and (c < "h08") != (s < "h08") else "")
    assert told(found) == [("path", "r0", None, None, False, 128)]


def test_a_few_bad_pairs_stay_pairs() -> None:
    bad = [{"h00", "h01"}, {"h02", "h03"}, {"h02", "h04"}]
    found = fleet(lambda r, c, s: "x" if r == "r0" and {c, s} in bad else "")
    assert told(found) == [("pair", "r0", *sorted(pair), False, 2) for pair in bad]


def test_a_host_that_met_only_bad_ones_is_not_needed_to_explain() -> None:
    """A ring in which h01 has bad neighbours on both sides."""
    ways = [(HOSTS[n], HOSTS[(n + 1) % 16]) for n in range(16)]
    bad = {"h00", "h02"}
    found = Fleet.of(
        [
            {"rail": "r0", "client": a, "server": b, "test": "write_bw", "verdict": "fail" if bad & {a, b} else "pass"}
            for way in ways
            for a, b in (way, way[::-1])
        ]
    )
    assert [cause.scope.host for cause in causes(found)] == ["h00", "h02"]


def test_center() -> None:
    found = fleet(lambda r, c, s: "x" if r == "r0" and c == "h05" else "")
    assert center(found.failures) == {"h05"}
    assert center(fleet(lambda *_: "x").failures) == set()


def test_a_direction_that_met_another_bad_one_is_not_a_port() -> None:
    found = fleet(lambda r, c, s: "x" if r == "r0" and s in ("h00", "h01") else "", HOSTS[:8])
    assert [scope[0] for scope in told(found)] == ["receive", "receive"]
