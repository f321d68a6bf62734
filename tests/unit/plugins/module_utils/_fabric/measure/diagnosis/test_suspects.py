"""Ports that read low now and then: who is suspect, and the rounds in which they are tested alone."""

from __future__ import annotations

from itertools import permutations
from typing import Any

import pytest

from ansible_collections.gpufabric.rdma.plugins.module_utils._fabric.measure.diagnosis.components import View
from ansible_collections.gpufabric.rdma.plugins.module_utils._fabric.measure.diagnosis.follow_up import diagnose
from ansible_collections.gpufabric.rdma.plugins.module_utils._fabric.measure.diagnosis.inside import rounds_inside
from ansible_collections.gpufabric.rdma.plugins.module_utils._fabric.measure.diagnosis.suspects import (
    open_suspects,
    rounds_of,
)
from ansible_collections.gpufabric.rdma.plugins.module_utils._fabric.measure.diagnosis.unsteady import find

VIEW = View(0.001, {})
NAMES = [f"h{number}" for number in range(8)]


def results(*low: tuple[str, str, str]) -> list[dict[str, Any]]:
    """All pairs on two rails; a test in ``low`` read too little before it passed."""
    return [
        {
            "where": "host",
            "rail": rail,
            "client": a,
            "server": b,
            "test": "write_bw",
            "value": 97.9,
            "unit": "Gb/s",
            "verdict": "pass",
            "passes": [{"verdict": verdict} for verdict in (["fail"] if (rail, a, b) in low else []) + ["pass"]],
        }
        for rail in ("rail0", "rail1")
        for a in NAMES
        for b in NAMES
        if a != b
    ]


def test_both_ports_of_a_low_reading_are_suspects_and_nobody_else_is() -> None:
    assert open_suspects(results(), VIEW, 0.1) == []
    found = open_suspects(results(("rail1", "h1", "h2")), VIEW, 0.1)
    assert [(one.host, one.rail) for one in found] == [("h1", "rail1"), ("h2", "rail1")]
    assert {one.needs for one in found} == {68}


def test_suspects_are_tested_at_the_same_time_in_both_directions_with_good_partners_only() -> None:
    made = results(("rail1", "h1", "h2"), ("rail0", "h5", "h1"))
    found = open_suspects(made, VIEW, 0.1)
    rounds = rounds_of(found, made, NAMES, left=90)
    ports = {(one.host, one.rail) for one in found}
    assert len(ports) == 4 and len(rounds) <= 90
    sent = {(test.client, test.rail) for round_ in rounds for test in round_} & ports
    received = {(test.server, test.rail) for round_ in rounds for test in round_} & ports
    assert sent == received == ports
    for round_ in rounds:
        hosts = [name for pair in {(test.client, test.server) for test in round_} for name in pair]
        assert len(hosts) == len(set(hosts))
        assert all(len({(t.client, t.rail), (t.server, t.rail)} & ports) == 1 for t in round_)
    partners = {t.client if (t.server, t.rail) in ports else t.server for round_ in rounds for t in round_}
    assert len(partners) >= 5


def test_rounds_end_with_the_budget_and_without_partners() -> None:
    made = results(("rail1", "h1", "h2"))
    found = open_suspects(made, VIEW, 0.1)
    assert len(rounds_of(found, made, NAMES, left=7)) == 7
    assert rounds_of(found, made, ["h1", "h2"], left=7) == [] == rounds_of([], made, NAMES, left=7)


def grouped(*dead: str) -> tuple[list[dict[str, Any]], View]:
    """Each pair of 12 hosts in 3 groups once, in both directions at the same time; no test with ``dead`` is fast."""
    homes = {f"h{number}": f"g{number % 3}" for number in range(12)}
    pairs = [(a, b) for at, a in enumerate(homes) for b in list(homes)[at + 1 :]]
    row = {"where": "host", "rail": "rail0", "test": "write_bw", "unit": "Gb/s", "reason": ""}
    found = []
    for a, b in pairs:
        low = "uplinks" in dead and "g1" in (homes[a], homes[b]) and homes[a] != homes[b]
        low = low or ("group" in dead and "g1" in (homes[a], homes[b]))
        one = {"value": 40.0 if low else 97.9, "verdict": "fail" if low else "pass"}
        found.append({**row, "client": a, "server": b, **one, "passes": [{"pass": 1, "reason": "", **one}]})
    return found, View(0.001, homes)


@pytest.mark.parametrize("dead", ["uplinks", "group"])
def test_a_leaf_switch_or_its_uplinks_on_which_nothing_passes_is_permanent_and_not_unsteady(dead: str) -> None:
    made, view = grouped(dead)
    assert [one.kind for one in diagnose(made, view)] == [dead]
    assert find(made, {"severity": "failure", "background": 0.001}, view.homes) == []
    assert open_suspects(made, view, 0.1) == []
    assert rounds_inside(made, view, list(view.homes), left=90, named=lambda test: True) == []


@pytest.mark.parametrize(
    ("others", "confidence"), [(0, "confirmed"), (1, "confirmed"), (2, "suspected"), (4, "suspected")]
)
def test_a_port_that_failed_with_one_group_only_is_not_confirmed_while_that_group_has_other_failures(
    others: int, confidence: str
) -> None:
    """Receiving from three hosts of g1 failed: the port, or the leaf switch of g1 that drops now and then."""
    homes = {f"h{number}": f"g{number // 4}" for number in range(12)}
    met = [("h4", "h8"), ("h5", "h8"), ("h6", "h8")]
    more = [("h0", "h4"), ("h5", "h1"), ("h6", "h2"), ("h3", "h7")][:others]
    fine = [(a, b) for a, b in permutations(homes, 2) if b != "h8" and (a, b) not in more]
    row = {"where": "host", "rail": "rail0", "test": "write_bw", "unit": "Gb/s", "reason": ""}
    made = [{**row, "client": a, "server": b, "verdict": "fail", "value": 40.0} for a, b in (*met, *more)]
    made += [{**row, "client": a, "server": b, "verdict": "pass", "value": 97.9} for a, b in fine]
    told = [one for one in diagnose(made, View(0.001, homes)) if one.host == "h8"]
    assert [(one.kind, one.confidence) for one in told] == [("direction", confidence)]
