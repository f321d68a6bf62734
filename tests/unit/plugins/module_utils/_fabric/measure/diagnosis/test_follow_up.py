"""Who is diagnosed for what, which tests are asked for, and how often that is right in a simulated fabric."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import replace
from itertools import combinations, permutations
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.tools.fabric_model import (
    BANDWIDTH,
    KINDS,
    Fabric,
    Fault,
    again,
    crossed,
    every_pair,
    from_gpus,
    isolate,
    loopback,
    plant,
    ring,
    sampled,
)

from ansible_collections.gpufabric.rdma.plugins.module_utils._fabric.measure.diagnosis import unsteady
from ansible_collections.gpufabric.rdma.plugins.module_utils._fabric.measure.diagnosis.components import View
from ansible_collections.gpufabric.rdma.plugins.module_utils._fabric.measure.diagnosis.follow_up import (
    diagnose,
    next_tests,
)
from ansible_collections.gpufabric.rdma.plugins.module_utils._fabric.measure.schedule.schedule import (
    Measurement,
    planned,
    repeat,
    subject,
)

HOSTS, RAILS = ("a", "b", "c", "d", "e", "f"), ("r0", "r1")
Bad = Callable[[str, str, str], bool]


def result(rail: str, client: str, server: str, verdict: str = "pass", **changes: Any) -> dict[str, Any]:
    return {
        "where": "host",
        "rail": rail,
        "client": client,
        "server": server,
        "test": "write_bw",
        "verdict": verdict,
        "reason": "Failed status 12" if verdict == "no_data" else "",
        **changes,
    }


def results(
    bad: Bad, hosts: Sequence[str] = HOSTS, rails: Sequence[str] = RAILS, verdict: str = "fail", **changes: Any
) -> Any:
    """All ordered pairs on all rails; ``verdict`` of the bad ones."""
    return [
        result(rail, c, s, verdict if bad(rail, c, s) else "pass", **changes)
        for rail in rails
        for c, s in permutations(hosts, 2)
    ]


def told(found: Any) -> list[tuple[Any, ...]]:
    return sorted(((b.kind, b.rail, b.host, b.peer, b.direction, b.confidence) for b in diagnose(found)), key=str)


def ends(test: Measurement) -> tuple[str, str]:
    return test.client, test.server


@pytest.mark.parametrize(
    ("bad", "expected"),
    [
        (lambda *_: False, []),
        (lambda r, c, s: "a" in (c, s), [("host", None, "a", None, None, "confirmed")]),
        (lambda r, c, s: r == "r0" and "a" in (c, s), [("port", "r0", "a", None, None, "confirmed")]),
        (lambda r, c, s: r == "r0", [("rail", "r0", None, None, None, "confirmed")]),
        (lambda r, c, s: r == "r0" and c == "a", [("direction", "r0", "a", None, "send", "confirmed")]),
        (lambda r, c, s: r == "r0" and s == "a", [("direction", "r0", "a", None, "receive", "confirmed")]),
        (lambda r, c, s: r == "r0" and {c, s} == {"a", "b"}, [("pair", "r0", "a", "b", None, "confirmed")]),
        (lambda r, c, s: r == "r0" and (c, s) == ("b", "a"), [("pair", "r0", "b", "a", "send", "suspected")]),
        # On every rail that they share: one cause, not one a rail.
        (lambda r, c, s: {c, s} == {"a", "b"}, [("pair", None, "a", "b", None, "confirmed")]),
        # Two bad hosts that met each other, and a third that is bad on one rail.
        (
            lambda r, c, s: bool({"a", "b"} & {c, s}),
            [("host", None, "a", None, None, "confirmed"), ("host", None, "b", None, None, "confirmed")],
        ),
        (
            lambda r, c, s: "a" in (c, s) or (r == "r1" and "b" in (c, s)),
            [("host", None, "a", None, None, "confirmed"), ("port", "r1", "b", None, None, "confirmed")],
        ),
        # A bad rail beside a bad port of the other.
        (
            lambda r, c, s: r == "r0" or "a" in (c, s),
            [("port", "r1", "a", None, None, "confirmed"), ("rail", "r0", None, None, None, "confirmed")],
        ),
        # Every host bad is something that all share, never as many hosts.
        (lambda *_: True, [("rail", None, None, None, None, "confirmed")]),
        # All but two of six are bad: these two still pass with each other.
        (lambda r, c, s: not {c, s} <= {"e", "f"}, [("host", None, h, None, None, "confirmed") for h in "abcd"]),
    ],
)
def test_blame_of_all_pairs(bad: Bad, expected: Any) -> None:
    assert told(results(bad)) == expected


@pytest.mark.parametrize(
    ("hosts", "rails", "bad", "expected"),
    [
        # On a single rail a host is not more than its port.
        (HOSTS, ("r0",), lambda r, c, s: "a" in (c, s), [("port", "r0", "a", None, None, "confirmed")]),
        (HOSTS, ("r0",), lambda *_: True, [("rail", "r0", None, None, None, "confirmed")]),
        # Two hosts cannot be told apart, nor two bad ones of three from the rail.
        (("a", "b"), ("r0",), lambda *_: True, [("rail", "r0", None, None, None, "suspected")]),
        (("a", "b"), RAILS, lambda *_: True, [("rail", None, None, None, None, "suspected")]),
        (("a", "b", "c"), ("r0",), lambda *_: True, [("rail", "r0", None, None, None, "suspected")]),
        (("a", "b", "c"), ("r0",), lambda r, c, s: "a" in (c, s), [("port", "r0", "a", None, None, "confirmed")]),
    ],
)
def test_blame_in_small_fleets(hosts: Any, rails: Any, bad: Bad, expected: Any) -> None:
    assert told(results(bad, hosts, rails)) == expected


def test_a_host_that_has_only_some_rails() -> None:
    others = results(lambda *_: False, "bcdef", ("r0", "r1", "r2"))
    bad = [result(r, *way, "no_data") for r in RAILS for h in "bcd" for way in (("a", h), (h, "a"))]
    assert told([*others, *bad]) == [("host", None, "a", None, None, "confirmed")]


def test_a_read_is_sent_by_the_server() -> None:
    found = results(lambda r, c, s: r == "r0" and s == "a", test="read_bw")
    assert told(found) == [("direction", "r0", "a", None, "send", "confirmed")]


def test_places_are_judged_apart() -> None:
    pods = [{**r, "where": "pod"} for r in results(lambda r, c, s: "a" in (c, s))]
    assert [(b.where, b.kind, b.host) for b in diagnose([*results(lambda *_: False), *pods])] == [("pod", "host", "a")]


@pytest.mark.parametrize("memory", ["cuda:dmabuf", "cuda:peermem"])
def test_gpu_path(memory: str) -> None:
    host = results(lambda *_: False)
    gpu = results(lambda r, c, s: r == "r0" and "a" in (c, s), memory=memory)
    assert told([*host, *gpu]) == [("gpu", "r0", "a", None, None, "confirmed")]
    assert told([*host, *results(lambda r, c, s: "a" in (c, s), memory=memory)]) == [
        ("gpu", None, "a", None, None, "confirmed")
    ]
    assert told([*host, *results(lambda *_: True, memory=memory)]) == [("gpu", None, None, None, None, "confirmed")]
    # Bad in host memory too: not the GPU path.
    both = [*results(lambda r, c, s: "a" in (c, s)), *results(lambda r, c, s: "a" in (c, s), memory=memory)]
    assert told(both) == [("host", None, "a", None, None, "confirmed")]


@pytest.mark.parametrize("bad", [lambda r, c, s: "a" in (c, s), lambda r, c, s: r == "r0", lambda *_: True])
def test_what_passes_from_gpu_memory_and_not_from_host_memory_accuses_no_port_path_or_switch(bad: Bad) -> None:
    ring = [("a", "b"), ("b", "a"), ("c", "d"), ("d", "c"), ("e", "f"), ("f", "e")]
    beside = [
        result(r, c, s, verdict, memory="host", value=60.0, unit="Gb/s", passes=[{"pass": 1, "verdict": verdict}] * 2)
        for r in RAILS
        for c, s in ring
        for verdict in ("fail" if bad(r, c, s) else "pass",)
    ]
    every = [*results(lambda *_: False, memory="cuda:dmabuf", value=90.0, unit="Gb/s"), *beside]
    (found,) = diagnose(every)
    assert (found.kind, found.host, found.peer, found.confidence) == ("unknown", None, None, "suspected")
    assert found.failed == sum(one["verdict"] == "fail" for one in beside)
    assert "so ports, cables and switches are not the cause" in found.text and "a to b" in found.text
    assert next_tests(every, HOSTS, RAILS) == []
    # One reading may be low by chance.
    once = [{**one, "passes": one["passes"][:1]} if one.get("passes") else one for one in every]
    assert next_tests(once, HOSTS, RAILS) == sorted(subject(one) for one in beside if one["verdict"] == "fail")
    assert unsteady.find(every, {"severity": "failure", "background": 0.001}) == []
    # What fails from both is a matter of the fabric.
    both = [*results(bad, memory="cuda:dmabuf"), *beside]
    assert all("are not the cause" not in one.text for one in diagnose(both))


@pytest.mark.parametrize(
    ("bad", "expected"),
    [
        (lambda r, c, s: r == "r0" and "a" in (c, s), ("mtu", "r0", "a", None, None, "confirmed")),
        (lambda r, c, s: r == "r0", ("mtu", "r0", None, None, None, "confirmed")),
        (lambda r, c, s: r == "r0" and c == "a", ("mtu", "r0", "a", None, "send", "confirmed")),
        (lambda r, c, s: r == "r0" and {c, s} == {"a", "b"}, ("mtu", "r0", "a", "b", None, "confirmed")),
    ],
)
def test_mtu_path(bad: Bad, expected: Any) -> None:
    large = results(bad, verdict="no_data")
    assert told([*large, *results(lambda *_: False, test="write_lat")]) == [expected]
    assert told([*results(bad, verdict="no_data", size=65536), *results(lambda *_: False, size=256)]) == [expected]


@pytest.mark.parametrize(
    ("bad", "expected"),
    [
        (lambda r, c, s: r == "r0" and "a" in (c, s), ("port", "r0", "a", None, None, "confirmed")),
        (lambda r, c, s: r == "r0", ("rail", "r0", None, None, None, "confirmed")),
        (lambda r, c, s: r == "r0" and c == "a", ("direction", "r0", "a", None, "send", "confirmed")),
        (lambda r, c, s: r == "r0" and {c, s} == {"a", "b"}, ("pair", "r0", "a", "b", None, "confirmed")),
    ],
)
def test_large_messages_that_came_through_slowly_are_no_matter_of_the_mtu(bad: Bad, expected: Any) -> None:
    small = results(lambda *_: False, test="write_lat")
    assert told([*results(bad), *small]) == [expected]
    # One reading with data is enough, also an earlier one of a test that gave none in the end.
    mixed = results(bad, verdict="no_data")
    first = next(one for one in mixed if one["verdict"] == "no_data")
    first["passes"] = [{"pass": 1, "value": 0.008, "verdict": "fail", "reason": "slow"}]
    assert told([*mixed, *small]) == [expected]
    asked = next_tests(mixed, HOSTS, RAILS)
    assert [test for test in asked if test.kind == "write_lat"] == []


def test_reasons_may_say_mtu_but_an_acknowledgement_that_is_missing_does_not() -> None:
    def with_reason(reason: str) -> str:
        found = [
            {**r, "reason": reason if r["verdict"] != "pass" else ""}
            for r in results(lambda r, c, s: r == "r0" and "a" in (c, s))
        ]
        return diagnose(found)[0].kind

    assert with_reason("b (client): mtu mismatch: local=4096 remote=1024") == "mtu"
    status = "b (client): Failed status 12 (no acknowledgement: path broken one way, MTU too large for a hop, or loss)"
    assert with_reason(status) == "port"
    assert with_reason("9 Gb/s measured, 93 expected (95 % of the 100 Gb/s link of a at RDMA MTU 4096)") == "port"


def test_a_suspect_is_tried_with_partners_that_passed_until_it_is_sure() -> None:
    """One round of disjoint pairs: a-b fail, c-d and e-f pass."""
    way = [("a", "b"), ("c", "d"), ("e", "f")]
    found = [result("r0", *pair, "fail" if "a" in pair else "pass") for c, s in way for pair in ((c, s), (s, c))]
    assert told(found) == [("unknown", "r0", "a", "b", None, "suspected")]
    asked = next_tests(found, HOSTS, ["r0"])
    assert {(t.client, t.server) for t in asked} == {("a", "c"), ("c", "a"), ("b", "d"), ("d", "b")}
    assert len(repeat(asked)) == 2
    later = [*found, *(result(t.rail, *ends(t), "fail" if "a" in ends(t) else "pass") for t in asked)]
    # b passed with d, so its failure with a counts against a now.
    assert (told(later), next_tests(later, HOSTS, ["r0"])) == ([("port", "r0", "a", None, None, "confirmed")], [])


def test_both_ends_of_a_failed_pair_pass_with_others() -> None:
    found = [result("r0", *pair, "fail" if "a" in pair else "pass") for pair in (("a", "b"), ("c", "d"), ("e", "f"))]
    later = [*found, *(result(t.rail, t.client, t.server) for t in next_tests(found, HOSTS, ["r0"]))]
    assert told(later)[0][:4] == ("pair", "r0", "a", "b")


def beside_a_bad_host(*again: str) -> list[dict[str, Any]]:
    """Nothing passes with c; of the two others one direction failed too; ``again``: verdict of a second reading."""
    found = [result("r0", *pair, "no_data" if "c" in pair else "pass") for pair in permutations("abc", 2)]
    lone = next(r for r in found if (r["client"], r["server"]) == ("a", "b"))
    lone.update(
        verdict=(again or ("no_data",))[-1],
        passes=[
            {"verdict": "no_data", "reason": "rate of 0"},
            *({"verdict": verdict, "reason": "", "repeated": True} for verdict in again),
        ],
    )
    return found


def test_a_test_that_nothing_else_explains_is_measured_again_before_a_direction_is_blamed() -> None:
    found = beside_a_bad_host()
    assert [one[:3] for one in told(found)] == [("direction", "r0", "a"), ("port", "r0", "c")]
    assert Measurement("r0", "a", "b", "write_bw") in next_tests(found, HOSTS, ["r0"])
    assert [told[:3] for told in told(beside_a_bad_host("pass"))] == [("port", "r0", "c")]
    assert Measurement("r0", "a", "b", "write_bw") not in next_tests(beside_a_bad_host("no_data"), HOSTS, ["r0"])


def single(verdict: str, *again: str) -> list[dict[str, Any]]:
    """All pairs pass but one test of one pair; ``again``: the reason of a second reading."""
    found = results(lambda r, c, s: (r, c, s) == ("r0", "a", "b"))
    bad = next(r for r in found if r["verdict"] != "pass")
    passes = [
        {"verdict": verdict, "reason": "40 Gb/s measured"},
        *({"verdict": verdict, "reason": reason, "repeated": True} for reason in again),
    ]
    bad.update(verdict=verdict, reason=passes[0]["reason"], passes=passes)
    return found


@pytest.mark.parametrize("verdict", ["fail", "no_data"])
def test_the_only_failure_of_a_pair_is_measured_again_before_the_pair_is_blamed(verdict: str) -> None:
    found = single(verdict)
    assert told(found) == [("pair", "r0", "a", "b", "send", "suspected")]
    assert next_tests(found, HOSTS, RAILS) == [Measurement("r0", "a", "b", "write_bw")]
    later = single(verdict, "41 Gb/s measured")
    (diagnosed,) = diagnose(later)
    assert (diagnosed.kind, diagnosed.host, diagnosed.peer, diagnosed.confidence) == ("pair", "a", "b", "confirmed")
    assert diagnosed.evidence[1:3] == ("first measurement: 40 Gb/s measured", "repeated measurement: 41 Gb/s measured")
    assert "chance" not in diagnosed.text
    # Where nothing came back, small messages may tell why.
    assert [t.kind for t in next_tests(later, HOSTS, RAILS)] == (["write_lat"] if verdict == "no_data" else [])


@pytest.mark.parametrize(
    ("hosts", "rails", "bad"),
    [
        # A port that passes nothing one way is told without it.
        (HOSTS, RAILS, lambda r, c, s: r == "r0" and c == "a"),
        # Who may not be used is not asked for.
        (HOSTS[1:], RAILS, lambda r, c, s: (r, c, s) == ("r0", "a", "b")),
        (HOSTS, ("r1",), lambda r, c, s: (r, c, s) == ("r0", "a", "b")),
    ],
)
def test_what_is_explained_or_may_not_be_used_is_not_measured_again(hosts: Any, rails: Any, bad: Bad) -> None:
    assert next_tests(results(bad), hosts, rails) == []


def test_what_failed_between_ports_that_pass_with_others_is_repeated_once() -> None:
    found = results(lambda r, c, s: r == "r0" and {c, s} == {"a", "b"})
    assert next_tests(found, HOSTS, RAILS) == [
        Measurement("r0", "a", "b", "write_bw"),
        Measurement("r0", "b", "a", "write_bw"),
    ]
    later = [again(one, one) if one["verdict"] == "fail" else one for one in found]
    assert next_tests(later, HOSTS, RAILS) == []
    assert told(later) == [("pair", "r0", "a", "b", None, "confirmed")]


@pytest.mark.parametrize("share", [0.01, 0.02, 0.05, 0.1, 0.25, 0.5])
def test_a_path_that_is_slow_now_and_then_is_found_and_blamed_on_no_port(share: float) -> None:
    """128 hosts on leaves of 32: tests of rail0 across leaves come and go, drawn anew at each try."""
    for seed in (1, 2, 3):
        fabric = Fabric(128, 2, (Fault("across", "rail0", share=share),), seed=seed)
        outcome = isolate(fabric, sampled(fabric.names, fabric.rail_names, BANDWIDTH, 3, seed), goes=3)
        assert {(one.kind, one.rail, one.host) for one in outcome.diagnoses} <= {("unknown", "rail0", None)}
        found = unsteady.find(outcome.results, {"severity": "failure", "background": 0.001})
        assert [(one["kind"], one["rail"]) for one in found] == [("rail", "rail0")], (seed, found)
        # All low readings are on one of two rails: 12 or fewer may be by chance.
        assert found[0]["severity"] == ("failure" if found[0]["count"] > 12 else "warning")


LEAVES = {f"h{number:04d}": f"leaf{number // 32}" for number in range(96)}
VIEW = View(0.001, LEAVES)
# A share of bad tests and what is bad: tests of rail0 between leaves, or of leaf1 with others, or of leaf1.
PATHS = [(0.1, "across"), (0.5, "across"), (0.05, "uplinks"), (0.5, "uplinks"), (0.1, "leaf")]


@pytest.mark.parametrize(("share", "kind"), PATHS)
def test_a_path_between_leaves_that_is_slow_now_and_then_is_named_and_no_port_is(share: float, kind: str) -> None:
    """96 hosts with known leaves, 40 slots: whatever fails more than once is no matter of ports or pairs."""
    fault = Fault(kind, "rail0", None if kind == "across" else "leaf1", share=share)
    fabric = Fabric(96, 2, (fault,), seed=1)
    outcome = isolate(fabric, sampled(fabric.names, fabric.rail_names, BANDWIDTH, 20, 1), goes=3, view=VIEW)
    expected = {"across": "paths", "leaf": "group"}.get(kind, kind)
    assert {one.host for one in outcome.diagnoses} <= {None}
    assert {one.kind for one in outcome.diagnoses} <= {expected, "unknown"}
    found = unsteady.find(outcome.results, {"severity": "failure", "background": 0.001}, LEAVES)
    assert [(one["kind"], one["rail"], one.get("group"), one["severity"]) for one in found] == [
        (expected, "rail0", fault.host, "failure")
    ]


@pytest.mark.parametrize(
    ("kind", "host", "told"), [("leaf", "leaf1", "group"), ("uplinks", "leaf1", "uplinks"), ("across", None, "paths")]
)
def test_a_leaf_switch_or_its_uplinks_without_connection_are_named_and_no_port_is(
    kind: str, host: str | None, told: str
) -> None:
    fabric = Fabric(96, 2, (Fault(kind, "rail0", host),), seed=1)
    outcome = isolate(fabric, sampled(fabric.names, fabric.rail_names, BANDWIDTH, 3, 1), goes=3, view=VIEW)
    assert [(one.kind, one.rail, one.host, one.group, one.confidence) for one in outcome.diagnoses] == [
        (told, "rail0", None, host or "", "confirmed")
    ]
    assert unsteady.find(outcome.results, {"severity": "failure", "background": 0.001}, LEAVES) == []


def test_a_bad_port_on_a_path_that_is_slow_now_and_then_is_still_blamed() -> None:
    faults = (Fault("across", "rail0", share=0.1), Fault("port", "rail0", "h0007"))
    fabric = Fabric(128, 2, faults, seed=5)
    outcome = isolate(fabric, sampled(fabric.names, fabric.rail_names, BANDWIDTH, 3, 5), goes=3)
    assert ("port", "rail0", "h0007", "confirmed") in {
        (one.kind, one.rail, one.host, one.confidence) for one in outcome.diagnoses
    }
    assert {one.host for one in outcome.diagnoses} <= {"h0007", None}


def test_one_host_that_all_tests_share_is_told_from_the_rail() -> None:
    """Everybody sends to a (incast): a test without it tells."""
    found = [result("r0", name, "a", "fail") for name in HOSTS[1:]]
    asked = next_tests(found, HOSTS, ["r0"])
    assert asked == [Measurement("r0", "b", "c", "write_bw"), Measurement("r0", "c", "b", "write_bw")]
    assert told([*found, *(result("r0", t.client, t.server) for t in asked)])[0][:3] == ("port", "r0", "a")
    assert told([*found, *(result("r0", t.client, t.server, "fail") for t in asked)])[0][:3] == ("rail", "r0", None)


@pytest.mark.parametrize(
    "found", [results(lambda *_: False), results(lambda *_: True), [], results(lambda r, c, s: "a" in (c, s))]
)
def test_nothing_is_asked_for_when_all_is_explained(found: Any) -> None:
    assert next_tests(found, HOSTS, RAILS) == []


def test_probes_are_asked_for_a_sure_suspect_and_only_where_they_tell_something() -> None:
    slow = results(lambda r, c, s: r == "r0" and "a" in (c, s))
    assert next_tests(slow, HOSTS, RAILS) == []
    silent = [{**r, "verdict": "no_data", "reason": "Failed status 12"} if r["verdict"] == "fail" else r for r in slow]
    asked = next_tests(silent, HOSTS, RAILS)
    assert [(t.rail, t.kind, ends(t)) for t in asked] == [("r0", "write_lat", ("a", "b"))]
    answers = [result(t.rail, t.client, t.server, "no_data", test=t.kind) for t in asked]
    # Small messages without an answer are tried once more before they speak against an MTU, and no more than that.
    assert next_tests([*silent, *answers], HOSTS, RAILS) == asked
    readings = [{"verdict": "no_data"}, {"verdict": "no_data", "repeated": True}]
    again = [{**answer, "passes": readings} for answer in answers]
    assert next_tests([*silent, *again], HOSTS, RAILS) == []
    assert told([*silent, *again]) == [("port", "r0", "a", None, None, "confirmed")]
    assert told([*silent, *({**answer, "verdict": "pass"} for answer in again)])[0][0] == "mtu"


def test_small_messages_of_a_whole_rail_are_tried_once_more() -> None:
    silent = results(lambda r, c, s: r == "r0", verdict="no_data")
    asked = next_tests(silent, HOSTS, RAILS)
    assert [t.kind for t in asked] == ["write_lat"]
    answers = [result(t.rail, t.client, t.server, "no_data", test=t.kind) for t in asked]
    assert next_tests([*silent, *answers], HOSTS, RAILS) == asked


def test_what_fails_from_gpu_memory_is_tried_from_host_memory_and_then_with_small_messages() -> None:
    silent = [
        {**r, "verdict": "no_data"} if r["verdict"] == "fail" else r
        for r in results(lambda r, c, s: r == "r0" and "a" in (c, s), memory="cuda:dmabuf")
    ]
    asked = next_tests(silent, HOSTS, RAILS)
    assert [(t.kind, t.memory, ends(t)) for t in asked] == [
        ("write_bw", "host", ("a", "b")),
        ("write_bw", "host", ("b", "a")),
    ]
    passed = [result(t.rail, *ends(t), memory="host") for t in asked]
    assert told([*silent, *passed]) == [("gpu", "r0", "a", None, None, "confirmed")]
    assert next_tests([*silent, *passed], HOSTS, RAILS) == []
    failed = [result(t.rail, *ends(t), "no_data", memory="host") for t in asked]
    assert told([*silent, *failed]) == [("port", "r0", "a", None, None, "confirmed")]
    assert [(t.kind, t.memory) for t in next_tests([*silent, *failed], HOSTS, RAILS)] == [("write_lat", "host")]


def test_suspects_are_tried_again_with_the_size_that_failed() -> None:
    pairs = [("a", "b"), ("c", "d"), ("e", "f")]
    found = [
        result("r0", *pair, "fail" if "a" in pair and size > 4096 else "pass", size=size)
        for size in (4096, 65536)
        for pair in pairs
    ]
    asked = next_tests(found, HOSTS, ["r0"])
    assert asked and {t.size for t in asked} == {65536}
    # One that was measured with another size only is not the same test.
    other = [result(t.rail, *ends(t), size=256) for t in asked]
    assert next_tests([*found, *other], HOSTS, ["r0"]) == asked


def test_only_names_and_rails_that_may_be_used_are_asked_for() -> None:
    found = [result(r, *p, "fail" if "a" in p else "pass") for r in RAILS for p in (("a", "b"), ("c", "d"), ("d", "c"))]
    asked = next_tests(found, ["a", "b", "d"], ["r1"])
    assert asked and {t.rail for t in asked} == {"r1"}
    assert {name for t in asked for name in (t.client, t.server)} == {"a", "b", "d"}


HOST_NAMES = [f"h{number}" for number in range(7)]
Draws = st.lists(
    st.tuples(
        st.sampled_from(list(permutations(HOST_NAMES, 2))),
        st.sampled_from(RAILS),
        st.sampled_from(("pass", "pass", "fail", "no_data")),
        st.sampled_from(("write_bw", "read_bw")),
    ),
    max_size=60,
)


@given(Draws, st.randoms(use_true_random=False))
@settings(max_examples=150)
def test_any_evidence_is_explained_and_isolation_ends(draws: Any, random: Any) -> None:
    """No order in what passed and what did not: every failure is under a diagnosis, no test is asked for twice."""
    found = [result(rail, *pair, verdict, test=kind) for pair, rail, verdict, kind in draws]
    goes = 0
    while True:
        diagnoses, failed = diagnose(found), [r for r in found if r["verdict"] != "pass"]
        assert bool(diagnoses) == bool(failed)
        assert sum(b.failed for b in diagnoses) >= len(failed)
        assert all(b.failed <= b.tests for b in diagnoses)
        asked = next_tests(found, HOST_NAMES, RAILS)
        if not asked:
            return
        seen = {(r["rail"], r["client"], r["server"], r["test"]) for r in found}
        assert len(set(asked)) == len(asked)
        # What read low once is asked for until two of its readings are, or three where others come and go as well.
        alone = {(r["rail"], r["client"], r["server"], r["test"]) for r in failed if len(r.get("passes", ())) < 4}
        assert not (seen - alone) & {(t.rail, t.client, t.server, t.kind) for t in asked}
        good = {(r["rail"], name) for r in found if r["verdict"] == "pass" for name in (r["client"], r["server"])}
        for test in asked:
            if test.kind != "write_lat" and test.rail in {rail for rail, _name in good}:
                assert good & {(test.rail, test.client), (test.rail, test.server)}
        for t in asked:
            one = result(t.rail, t.client, t.server, random.choice(("pass", "fail")), test=t.kind)
            before = [r for r in found if subject(r) == t]
            found = [r for r in found if r not in before] + [again(before[0] if before else None, one)]
        goes += 1
        assert goes < 60


@given(st.randoms(use_true_random=False))
@settings(max_examples=20)
def test_the_order_of_results_does_not_matter(random: Any) -> None:
    fabric = Fabric(8, 4, (Fault("host", None, "h0001"), Fault("port", "rail2", "h0005")), noise=False)
    found = fabric.play(sampled(fabric.names, fabric.rail_names, BANDWIDTH, 2, 3))
    mixed = random.sample(found, len(found))
    assert set(b.text for b in diagnose(mixed)) == set(b.text for b in diagnose(found))
    assert next_tests(mixed, fabric.names, fabric.rail_names) == next_tests(found, fabric.names, fabric.rail_names)


SCHEDULES = {
    "all pairs": every_pair,
    "ring": ring,
    "1 round": lambda names, rails, kind: sampled(names, rails, kind, 1, 7),
    "3 rounds": lambda names, rails, kind: sampled(names, rails, kind, 3, 7),
}


@pytest.mark.parametrize("schedule", list(SCHEDULES))
@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("count", [1, 4])
def test_planted_faults_are_blamed_and_nobody_else(schedule: str, kind: str, count: int) -> None:
    for seed in range(3):
        fabric = Fabric(24, 6, seed=seed)
        rounds = SCHEDULES[schedule](fabric.names, fabric.rail_names, BANDWIDTH)
        rounds = from_gpus(rounds) if kind == "gpu" else rounds
        fabric.faults = plant(fabric, [kind] * count, rounds)
        outcome = isolate(fabric, rounds)
        assert (outcome.right, outcome.diagnosed) == (count, count), [fabric.faults, outcome.diagnoses]
        assert outcome.goes <= 4


@pytest.mark.parametrize("seed", range(3))
def test_a_healthy_fleet_accuses_nobody_and_costs_nothing_more(seed: int) -> None:
    fabric = Fabric(232, 2, seed=seed)
    outcome = isolate(fabric, sampled(fabric.names, fabric.rail_names, BANDWIDTH, 3, seed))
    assert (outcome.diagnoses, outcome.tests, outcome.rounds) == ([], 0, 0)


def test_the_simulation_sees_a_fault_that_is_not_blamed() -> None:
    """Where nothing may be tried again and everybody met one partner, the two cannot be told apart."""
    fabric = Fabric(8, 2, (Fault("port", "rail0", "h0001"),))
    rounds = sampled(fabric.names, fabric.rail_names, BANDWIDTH, 1, 0)
    assert isolate(fabric, rounds, goes=0).right == 0
    assert isolate(fabric, rounds).right == 1


CROSSED = [
    ((), []),
    ((Fault("port", "rail1", "h0002"),), ["confirmed"]),
    ((Fault("host", None, "h0002"),), ["confirmed"]),
    ((Fault("rail", "rail1"),), ["confirmed"]),
    ((Fault("direction", "rail1", "h0002", None, "send"),), ["confirmed"]),
    ((Fault("direction", "rail1", "h0002", None, "receive"),), ["confirmed"]),
    # Only on its own rail, on which one is the client's and one the server's, and in both orders of their names.
    ((Fault("pair", "rail0", "h0001", "h0003", None, "rail2"),), ["confirmed"]),
    ((Fault("pair", "rail2", "h0001", "h0003", None, "rail0"),), ["confirmed"]),
    ((Fault("pair", "rail1", "h0001", "h0003"),), ["confirmed"]),
    ((Fault("routing", "rail0", peer_rail="rail2"),), ["confirmed"]),
    ((Fault("routing"),), ["confirmed"]),
    # Two at once: each is one cause.
    ((Fault("routing"), Fault("port", "rail1", "h0002")), ["confirmed", "confirmed"]),
    ((Fault("routing", "rail0", peer_rail="rail2"), Fault("rail", "rail1")), ["confirmed", "confirmed"]),
    ((Fault("port", "rail0", "h0000"), Fault("port", "rail2", "h0005")), ["confirmed", "confirmed"]),
]


@pytest.mark.parametrize("shows", ["fail", "no_data"])
@pytest.mark.parametrize(("faults", "confirmed"), CROSSED)
def test_planted_faults_are_blamed_where_tests_cross_from_rail_to_rail(faults: Any, confirmed: Any, shows: str) -> None:
    fabric = Fabric(6, 3, tuple(replace(fault, shows=shows) for fault in faults), noise=False)
    outcome = isolate(fabric, crossed(fabric.names, fabric.rail_names, BANDWIDTH))
    assert (outcome.right, outcome.diagnosed) == (len(faults), len(faults)), outcome.diagnoses
    assert [diagnosed.confidence for diagnosed in outcome.diagnoses] == confirmed


@pytest.mark.parametrize("hosts", [6, 7, 16])
def test_a_suspect_among_crossed_samples_is_tried_again_on_its_own_rail(hosts: int) -> None:
    fabric = Fabric(hosts, 2, (Fault("port", "rail1", "h0002"),), noise=False)
    tests = {"mode": "sampled", "rounds": 1, "cross_rail": True}
    found = fabric.play(planned(fabric.names, fabric.rail_names, tests))
    asked = next_tests(found, fabric.names, fabric.rail_names)
    assert {(test.rail, test.peer_rail) for test in asked} == {("rail1", "")}
    assert {name for test in asked for name in ends(test)} >= {"h0002"}
    outcome = isolate(fabric, planned(fabric.names, fabric.rail_names, tests))
    assert (outcome.right, outcome.diagnosed, outcome.sure) == (1, 1, 1), outcome.diagnoses


def test_a_large_frame_that_vanishes_between_rails_is_a_matter_of_the_mtu_there() -> None:
    class Narrow(Fault):
        def breaks(self, test: Measurement) -> bool:
            return test.kind != "write_lat" and super().breaks(test)

    fabric = Fabric(6, 3, (Narrow("routing", shows="no_data"),), noise=False)
    (found,) = isolate(fabric, crossed(fabric.names, fabric.rail_names, BANDWIDTH)).diagnoses
    assert (found.kind, found.rail, found.host, found.confidence) == ("mtu", None, None, "confirmed")
    assert found.text.startswith("between rails: small messages pass, large ones do not: check the MTU of each port")


LOOPBACK = [
    ((), 3, []),
    ((Fault("port", "rail1", "h0002"),), 3, ["confirmed"]),
    ((Fault("direction", "rail1", "h0002", None, "send"),), 3, ["confirmed"]),
    # Nothing else was tried with the host: it may be what its rails share outside.
    ((Fault("host", None, "h0002"),), 3, ["suspected"]),
    ((Fault("pair", "rail0", "h0002", "h0002", None, "rail1"),), 3, ["confirmed"]),
    ((Fault("rail", "rail1"),), 3, ["confirmed"]),
    ((Fault("routing", "rail0", peer_rail="rail1"),), 3, ["confirmed"]),
    ((Fault("routing"),), 3, ["confirmed"]),
    ((Fault("routing", "rail0", peer_rail="rail1"),), 2, ["confirmed"]),
]


@pytest.mark.parametrize("shows", ["fail", "no_data"])
@pytest.mark.parametrize(("faults", "rails", "confirmed"), LOOPBACK)
def test_planted_faults_are_blamed_inside_hosts(faults: Any, rails: int, confirmed: Any, shows: str) -> None:
    fabric = Fabric(6, rails, tuple(replace(fault, shows=shows) for fault in faults), noise=False)
    outcome = isolate(fabric, loopback(fabric.names, fabric.rail_names, BANDWIDTH), goes=0)
    assert (outcome.right, outcome.diagnosed) == (len(faults), len(faults)), outcome.diagnoses
    assert [diagnosed.confidence for diagnosed in outcome.diagnoses] == confirmed


def test_two_rails_of_one_host_cannot_be_told_apart() -> None:
    fabric = Fabric(6, 2, (Fault("port", "rail1", "h0002"),), noise=False)
    (found,) = isolate(fabric, loopback(fabric.names, fabric.rail_names, BANDWIDTH), goes=0).diagnoses
    assert (found.kind, found.rail, found.host, found.peer, found.peer_rail, found.confidence) == (
        "unknown",
        "rail0",
        "h0002",
        "h0002",
        "rail1",
        "suspected",
    )
    assert found.text == "h0002 rail0 or h0002 rail1: none of the 2 tests between them passed (planted)"


def test_one_host_alone_is_not_the_fabric() -> None:
    fabric = Fabric(1, 3, (Fault("host", None, "h0000"),), noise=False)
    outcome = isolate(fabric, loopback(fabric.names, fabric.rail_names, BANDWIDTH), goes=0)
    assert (outcome.right, outcome.diagnosed, outcome.sure) == (1, 1, 0), outcome.diagnoses


def test_suspects_share_no_partner_while_there_are_enough() -> None:
    fabric = Fabric(64, 4, tuple(Fault("host", None, f"h{n:04d}") for n in (3, 9, 40)), noise=False)
    found = fabric.play(sampled(fabric.names, fabric.rail_names, BANDWIDTH, 1, 5))
    asked = next_tests(found, fabric.names, fabric.rail_names)
    pairs = {frozenset((t.client, t.server)) for t in asked}
    assert all(not one & other for one, other in combinations(pairs, 2))
    assert len(repeat(asked)) == 2
    assert set(Counter(frozenset((t.client, t.server)) for t in asked).values()) == {8}
