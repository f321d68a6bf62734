"""What a run would have shown, for each port, leaf switch and rail."""

from __future__ import annotations

from typing import Any

from ansible_collections.gpufabric.rdma.plugins.module_utils._fabric.measure.diagnosis import coverage
from ansible_collections.gpufabric.rdma.plugins.module_utils._fabric.measure.diagnosis.components import View

NAMES = [f"h{number}" for number in range(8)]
HOMES = {name: "leaf1" if name < "h4" else "leaf2" for name in NAMES}


def results(times: int, without: str = "") -> list[dict[str, Any]]:
    """All pairs in both directions on one rail, measured so often; ``without`` is measured with h0 only."""
    return [
        {"rail": "rail0", "client": a, "server": b, "test": "write_bw", "verdict": "pass", "passes": passes}
        for a in NAMES
        for b in NAMES
        if a != b and (without not in (a, b) or "h0" in (a, b))
        for passes in [[{"verdict": "pass"}] * times]
    ]


def test_more_readings_show_smaller_shares() -> None:
    found = coverage.rows(results(4), View(0.001, HOMES), 90)
    told = {(row["kind"], row.get("host"), row.get("group")): (row["readings"], row["share"]) for row in found}
    assert told["port", "h3", None] == (56, 0.15)
    assert told["group", None, "leaf1"] == (176, 0.1)
    assert told["rail", None, None] == (224, 0.07)
    assert len(told) == 8 + 2 + 1
    assert coverage.text(found) == (
        "would have shown in 95 % of runs: ports that are bad in 15 % of their tests, leaf switches that are bad in "
        "10 % of their tests, rails that are bad in 7 % of their tests"
    )


def test_who_has_too_few_readings_is_named() -> None:
    found = coverage.rows(results(1, without="h5"), View(0.001, {}), 0)
    assert {row["host"]: row["share"] for row in found if row["kind"] == "port"}["h5"] is None
    assert "(1 of 8 have too few readings for that: h5 rail0)" in coverage.text(found)
    assert coverage.rows([], View(0.001, {}), 90) == [] and coverage.text([]) == ""


def test_of_two_readings_nothing_can_be_said() -> None:
    found = coverage.rows(results(1)[:1], View(0.001, {}), 0)
    assert coverage.text(found) == (
        "would have shown in 95 % of runs: no fault of ports, which have too few readings, no fault of rails, which "
        "have too few readings"
    )
