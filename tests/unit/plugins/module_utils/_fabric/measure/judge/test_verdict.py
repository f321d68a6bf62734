"""Whom failures point at."""

from __future__ import annotations

from itertools import permutations
from typing import Any

import pytest

from ansible_collections.gpufabric.rdma.plugins.module_utils._fabric.measure.judge.verdict import (
    amount,
    findings,
    overall,
    rail_rows,
    summary,
)

HOSTS = ("a", "b", "c", "d")


def results(bad: Any = lambda *_: False, hosts: tuple[str, ...] = HOSTS, rails: tuple[str, ...] = ("r0", "r1")) -> Any:
    return [
        {
            "where": "host",
            "rail": rail,
            "client": c,
            "server": s,
            "test": "write_bw",
            "value": None if bad(rail, c, s) else 10.0,
            "unit": "Gb/s",
            "verdict": "no_data" if bad(rail, c, s) else "pass",
            "reason": "why" if bad(rail, c, s) else "",
        }
        for rail in rails
        for c, s in permutations(hosts, 2)
    ]


@pytest.mark.parametrize(
    ("found", "verdict"),
    [([], "no_data"), (["pass"], "pass"), (["pass", "no_data"], "no_data"), (["pass", "fail", "no_data"], "fail")],
)
def test_overall(found: list[str], verdict: str) -> None:
    assert overall([{"verdict": v} for v in found]) == verdict


@pytest.mark.parametrize(
    ("bad", "expected"),
    [
        (lambda *_: False, []),
        (
            lambda r, c, s: r == "r1" and "b" in (c, s),
            [
                "hosts: b r1: none of its 6 tests passed, while other ports passed: check the host, NIC port "
                "and cable (why)"
            ],
        ),
        (
            lambda r, c, s: "b" in (c, s),
            ["hosts: b: no test passed on any rail, while other hosts passed: check the host itself (why)"],
        ),
        (
            lambda r, c, s: r == "r0",
            ["hosts: r0: none of 12 tests passed: check the switch, VLAN and configuration of the rail (why)"],
        ),
        (
            lambda r, c, s: r == "r0" and c == "b",
            ["hosts: b r0: no test with it as sender passed, while the other direction passed (why)"],
        ),
        (
            lambda r, c, s: r == "r0" and s == "b",
            ["hosts: b r0: no test with it as receiver passed, while the other direction passed (why)"],
        ),
        (
            lambda r, c, s: r == "r0" and (c, s) == ("a", "b"),
            [
                "hosts: r0: a to b: 1 of 2 tests did not pass, while both hosts pass with others: "
                "check the path between them; a single failure may be chance (why)"
            ],
        ),
        (
            lambda r, c, s: (r == "r0" and "a" in (c, s)) or (r == "r1" and "b" in (c, s)),
            [
                "hosts: a r0: none of its 6 tests passed, while other ports passed: check the host, NIC port "
                "and cable (why)",
                "hosts: b r1: none of its 6 tests passed, while other ports passed: check the host, NIC port "
                "and cable (why)",
            ],
        ),
    ],
)
def test_findings(bad: Any, expected: list[str]) -> None:
    assert findings(results(bad)) == expected


def test_two_hosts_cannot_be_told_apart() -> None:
    assert findings(results(lambda *_: True, ("a", "b"), ("r0",))) == [
        "hosts: r0: none of 2 tests passed: check the switch, VLAN and configuration of the rail, and the ports "
        "of a and b (why)"
    ]


def test_rows_count_every_direction_and_skip_what_has_no_value() -> None:
    rows = rail_rows(results(lambda r, c, s: (r, c, s) == ("r0", "a", "b")))
    assert rows[0] == {
        "where": "host",
        "rail": "r0",
        "pairs": 12,
        "pass": 11,
        "fail": 0,
        "no_data": 1,
        "worst": 10.0,
        "median": 10.0,
    }


@pytest.mark.parametrize(
    ("value", "unit", "text"),
    [
        (0.0361, "Gb/s", "36.1 Mb/s"),
        (0.0, "Gb/s", "0 Gb/s"),
        (1.0, "Gb/s", "1 Gb/s"),
        (97.93, "Gb/s", "97.9 Gb/s"),
        (392.16, "Gb/s", "392.2 Gb/s"),
        (2940.0, "us", "2.94 ms"),
        (2.5, "us", "2.5 us"),
        (294.0, "us", "294.0 us"),
    ],
)
def test_values_have_units_that_suit_them(value: float, unit: str, text: str) -> None:
    assert amount(value, unit) == text


def test_a_row_never_mixes_latency_and_rate() -> None:
    rate = {"where": "host", "rail": "r0", "value": 97.0, "unit": "Gb/s", "verdict": "pass"}
    (row,) = rail_rows([rate, {**rate, "value": 2.5, "unit": "us"}])
    assert (row["pairs"], row["worst"], row["median"]) == (2, 97.0, 97.0)


def test_summary_has_the_blames_and_their_sentences() -> None:
    found = summary(results(lambda r, c, s: r == "r1" and "b" in (c, s)))
    assert [(b["kind"], b["rail"], b["host"], b["failed"], b["tests"]) for b in found["diagnoses"]] == [
        ("port", "r1", "b", 6, 6)
    ]
    assert found["findings"] == [f"hosts: {b['text']}" for b in found["diagnoses"]]
    assert summary(results())["diagnoses"] == []
