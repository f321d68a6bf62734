"""The words of a diagnosis: what to look at, evidence, and counts that are right."""

from __future__ import annotations

from collections.abc import Callable
from itertools import permutations
from typing import Any

import pytest

from ansible_collections.gpufabric.rdma.plugins.module_utils._fabric.measure.diagnosis.follow_up import diagnose
from ansible_collections.gpufabric.rdma.plugins.module_utils._fabric.measure.diagnosis.wording import Diagnosis

HOSTS, RAILS = ("a", "b", "c", "d", "e", "f"), ("r0", "r1")
Bad = Callable[[str, str, str], bool]


def results(bad: Bad, **changes: Any) -> list[dict[str, Any]]:
    return [
        {
            "where": "host",
            "rail": rail,
            "client": c,
            "server": s,
            "test": "write_bw",
            "verdict": "fail" if bad(rail, c, s) else "pass",
            "reason": "too slow" if bad(rail, c, s) else "",
            **changes,
        }
        for rail in RAILS
        for c, s in permutations(HOSTS, 2)
    ]


def silent(found: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """The same, where no data came through at all."""
    lost = {"verdict": "no_data", "reason": "Failed status 12"}
    return [{**one, **lost} if one["verdict"] == "fail" else one for one in found]


def never(*_: str) -> bool:
    return False


def only(found: list[dict[str, Any]]) -> Diagnosis:
    (one,) = diagnose(found)
    return one


@pytest.mark.parametrize(
    ("found", "text", "counts"),
    [
        (
            results(lambda *_: True),
            "all rails: none of 60 tests passed: check the components that all hosts share (too slow)",
            (60, 60),
        ),
        (
            results(lambda r, c, s: r == "r0"),
            "r0: none of 30 tests passed: check the switch, VLAN and configuration of the rail (too slow)",
            (30, 30),
        ),
        (
            results(lambda r, c, s: "a" in (c, s)),
            "a: no test passed on any rail, while other hosts passed: check the host itself (too slow)",
            (20, 20),
        ),
        (
            results(lambda r, c, s: r == "r0" and "a" in (c, s)),
            "a r0: none of its 10 tests passed, while other ports passed: check the host, NIC port and cable "
            "(too slow)",
            (10, 10),
        ),
        (
            results(lambda r, c, s: r == "r0" and "a" in (c, s) and "b" not in (c, s)),
            "a r0: 8 of its 10 tests did not pass, while other ports passed: check the host, NIC port and cable "
            "(too slow)",
            (8, 10),
        ),
        (
            [one for one in results(lambda *_: True) if one["rail"] == "r0" and "a" in (one["client"], one["server"])],
            "a r0: none of its 10 tests passed: check the host, NIC port and cable (too slow)",
            (10, 10),
        ),
        (
            results(lambda r, c, s: r == "r0" and s == "a"),
            "a r0: no test with it as receiver passed, while the other direction passed (too slow)",
            (5, 5),
        ),
        (
            results(lambda r, c, s: r == "r0" and c == "a" and s != "b"),
            "a r0: 4 of 5 tests with it as sender did not pass, while the other direction passed (too slow)",
            (4, 5),
        ),
        (
            results(lambda r, c, s: r == "r0" and {c, s} == {"a", "b"}),
            (
                "r0: a to b, b to a: 2 of 2 tests did not pass, while both hosts pass with others: check the path "
                "between them (too slow)"
            ),
            (2, 2),
        ),
        (
            silent(results(lambda r, c, s: r == "r0" and "a" in (c, s))) + results(never, test="write_lat"),
            "a r0: small messages pass, large ones do not: check the MTU of each port on the path (Failed status 12)",
            (10, 10),
        ),
        (
            results(lambda r, c, s: r == "r0" and "a" in (c, s), memory="cuda:dmabuf") + results(never),
            (
                "a r0: tests from host memory pass, tests from GPU memory do not: check the peer memory module "
                "or DMA-BUF, ACS "
                "and the PCIe path (too slow)"
            ),
            (10, 10),
        ),
        (
            results(lambda r, c, s: r == "r0" and (c in "abc") != (s in "abc")),
            "r0: 18 tests between hosts that pass with others did not pass (a to d, a to e, a to f, b to d and "
            "14 more): "
            "check a shared path (too slow)",
            (18, 18),
        ),
    ],
)
def test_sentences_and_counts(found: list[dict[str, Any]], text: str, counts: tuple[int, int]) -> None:
    one = only(found)
    assert (one.text, (one.failed, one.tests)) == (text, counts)


@pytest.mark.parametrize(
    ("found", "evidence"),
    [
        (
            results(lambda r, c, s: r == "r0" and "a" in (c, s)),
            ("did not pass with b, c, d, e and 1 more; 5 of these 5 pass with others", "passes on r1", "10 fail"),
        ),
        (
            results(lambda r, c, s: r == "r0" and c == "a"),
            (
                "did not pass with b, c, d, e and 1 more; 5 of these 5 pass with others",
                "5 tests passed with it as receiver",
                "passes on r1",
                "5 fail",
            ),
        ),
        (results(lambda r, c, s: r == "r0"), ("6 hosts are affected: a, b, c, d and 2 more", "30 fail")),
        (results(lambda r, c, s: r == "r0" and {c, s} == {"a", "b"}), ("a and b pass with others", "2 fail")),
        (
            results(lambda r, c, s: r == "r0" and "a" in (c, s)) + results(never, test="write_lat"),
            (
                "did not pass with b, c, d, e and 1 more; 5 of these 5 pass with others",
                "passes on r1",
                "tests passed with small messages: 10",
                "10 fail",
            ),
        ),
    ],
)
def test_evidence(found: list[dict[str, Any]], evidence: tuple[str, ...]) -> None:
    assert only(found).evidence == evidence


def crossed(bad: Callable[[tuple[str, str], tuple[str, str]], bool]) -> list[dict[str, Any]]:
    """All ports with all ports of other hosts; ``bad``: by the client's and the server's (host, rail)."""
    return [
        {
            "where": "host",
            "rail": r,
            "client": c,
            "server": s,
            "test": "write_bw",
            "reason": "",
            "verdict": "fail" if bad((c, r), (s, p)) else "pass",
            **({"peer_rail": p} if p != r else {}),
        }
        for c, s in permutations(HOSTS, 2)
        for r in ("r0", "r1", "r2")
        for p in ("r0", "r1", "r2")
    ]


def inside(bad: Callable[[str, set[str]], bool], hosts: str = "abcdef") -> list[dict[str, Any]]:
    """All rails with all other rails of the same host; ``bad``: by the host and both rails."""
    return [
        {
            "where": "host",
            "rail": r,
            "client": h,
            "server": h,
            "test": "write_bw",
            "reason": "",
            "peer_rail": p,
            "verdict": "fail" if bad(h, {r, p}) else "pass",
        }
        for h in hosts
        for r, p in permutations(("r0", "r1", "r2"), 2)
    ]


@pytest.mark.parametrize(
    ("found", "text", "evidence"),
    [
        (
            crossed(lambda a, b: ("a", "r1") in (a, b)),
            "a r1: none of its 30 tests passed, while other ports passed: check the host, NIC port and cable",
            (
                "did not pass with b, c, d, e and 1 more; 5 of these 5 pass with others",
                "passes on r0, r2",
                "30 fail",
            ),
        ),
        (
            crossed(lambda a, b: a[1] != b[1]),
            "between rails: none of 180 tests passed, while tests within each rail passed: check the routing "
            "between rails",
            ("6 hosts are affected: a, b, c, d and 2 more", "180 fail"),
        ),
        (
            crossed(lambda a, b: {a[1], b[1]} == {"r0", "r2"}),
            (
                "r0 and r2: none of 60 tests between them passed, while tests within each rail passed: check the "
                "routing between rails"
            ),
            ("6 hosts are affected: a, b, c, d and 2 more", "60 fail"),
        ),
        (
            crossed(lambda a, b: {a, b} == {("a", "r1"), ("b", "r0")}),
            "a r1 to b r0, b r0 to a r1: 2 of 2 tests did not pass, while both hosts pass with others: check "
            "the path between them",
            ("a r1 and b r0 pass with others", "2 fail"),
        ),
        (
            crossed(lambda a, b: a[1] == "r0" and b[1] == "r2"),
            "r0 to r2: 30 tests between hosts that pass with others did not pass (a to b, a to c, a to d, "
            "a to e and 26 more): check a shared path",
            ("6 hosts are affected: a, b, c, d and 2 more", "30 fail"),
        ),
        (
            inside(lambda h, rails: h == "a" and "r1" in rails),
            "a r1: none of its 4 tests passed, while other ports passed: check the host, NIC port and cable",
            ("did not pass with a r0, a r2; 2 of these 2 pass with others", "passes on r0, r2", "4 fail"),
        ),
        (
            inside(lambda h, rails: h == "a" and rails == {"r0", "r1"}),
            "a r0 to a r1, a r1 to a r0: 2 of 2 tests did not pass, while both rails pass with others: check the "
            "path between these "
            "rails of the host",
            ("a r0 and a r1 pass with others", "2 fail"),
        ),
        (
            inside(lambda h, _: h == "a"),
            "a: no test passed on any rail, while other hosts passed: check the host itself",
            ("did not pass with a r0, a r1, a r2; 0 of these 3 pass with others", "6 fail"),
        ),
        (
            inside(lambda *_: True),
            "between rails: none of 36 tests passed: check the routing between rails",
            ("6 hosts are affected: a, b, c, d and 2 more", "36 fail"),
        ),
    ],
)
def test_what_crosses_from_rail_to_rail(found: list[dict[str, Any]], text: str, evidence: tuple[str, ...]) -> None:
    one = only(found)
    assert (one.text, one.evidence) == (text, evidence)


def test_the_rail_of_the_peer_is_told_where_it_is_another() -> None:
    pair = only(crossed(lambda a, b: (a, b) == (("b", "r2"), ("a", "r1")))).to_dict()
    assert [pair[key] for key in ("kind", "rail", "host", "peer", "peer_rail", "direction")] == [
        "pair",
        "r2",
        "b",
        "a",
        "r1",
        "send",
    ]
    routing = only(crossed(lambda a, b: {a[1], b[1]} == {"r0", "r2"})).to_dict()
    assert [routing[key] for key in ("kind", "rail", "host", "peer", "peer_rail", "confidence")] == [
        "routing",
        "r0",
        None,
        None,
        "r2",
        "confirmed",
    ]


def test_two_that_only_met_each_other_are_told_as_such() -> None:
    found = [
        {
            "where": "host",
            "rail": "r0",
            "client": c,
            "server": s,
            "test": "write_bw",
            "reason": "",
            "verdict": "fail" if "a" in (c, s) else "pass",
        }
        for c, s in (("a", "b"), ("c", "d"), ("e", "f"))
    ]
    one = only(found)
    assert (one.kind, one.confidence, one.text) == (
        "unknown",
        "suspected",
        "a r0 or b r0: none of the 1 tests between them passed",
    )


def test_what_takes_most_with_it_comes_first_and_the_sure_before_the_likely() -> None:
    found = results(lambda r, c, s: "a" in (c, s) or (r == "r0" and {c, s} == {"b", "c"}))
    assert [one.kind for one in diagnose(found)] == ["host", "pair"]


def test_to_dict_has_the_keys_of_the_report_and_lists() -> None:
    one = only(results(lambda r, c, s: r == "r0" and s == "a")).to_dict()
    assert list(one) == [
        "where",
        "kind",
        "rail",
        "host",
        "peer",
        "direction",
        "confidence",
        "failed",
        "tests",
        "evidence",
        "text",
        "reproduce",
    ]
    assert (one["kind"], one["host"], one["direction"], one["reproduce"]) == ("direction", "a", "receive", [])
    assert isinstance(one["evidence"], list)
