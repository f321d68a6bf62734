"""Faults under which links stay up: each is named as what it is, and nothing healthy is.

A run takes two to three minutes on a quiet machine, six on a busy one; `make soak` plants more faults.
"""

from __future__ import annotations

from tests.scenario import HOSTS, touching, verdicts
from tests.scenario.state import leftovers
from tests.scenario.told import Judged, measured


def right(seen: dict[str, Judged]) -> dict[str, str]:
    """The sentence of each fault, if all are named and nothing else is."""
    assert {name: (one.all, one.wrong) for name, one in seen.items() if not one.named or one.wrong} == {}
    return {name: one.text for name, one in seen.items()}


def test_one_way_loss_and_a_duplicate_address() -> None:
    """The mesh sees both: these pairs are not measured."""
    _run, result, seen = measured({"one-way loss": ("lab-1", 0), "duplicate address": ("lab-2", 1)})
    texts = right(seen)
    assert "do not arrive at lab-1, those of the opposite direction do" in texts["one-way loss"]
    assert "Remove it from lab-2" in texts["duplicate address"]
    assert verdicts(touching(result, "lab-1", "rail0")) == {"no_data"}
    assert [line for name in HOSTS for line in leftovers(name)] == []
