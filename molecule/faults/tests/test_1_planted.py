"""Faults under which links stay up: each is named as what it is, and nothing healthy is.

A run takes two to three minutes on a quiet machine, six on a busy one; `make soak` plants more faults.
"""

from __future__ import annotations

import pytest
from tests.scenario import HOSTS, bandwidth, touching, verdicts
from tests.scenario.planted import LINK_SPEED, TOLERANCE
from tests.scenario.state import leftovers
from tests.scenario.told import Judged, measured

# What a link of LINK_SPEED carries at RDMA MTU 4096 after 82 bytes of headers, and the share of it that is asked for.
EXPECTED = LINK_SPEED * 4096 / (4096 + 82) * TOLERANCE


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


def test_exchanged_cables() -> None:
    _run, result, seen = measured({"exchanged cables": ("lab-3", 0)})
    text = right(seen)["exchanged cables"]
    assert "exchange these two cables" in text
    assert verdicts(touching(result, "lab-3")) == {"no_data"}
    assert verdicts(r for r in bandwidth(result) if r not in touching(result, "lab-3")) == {"pass"}


def test_the_expectation_of_rate_limited_links_is_computed() -> None:
    """No floor decides here: all links carry their rate but one, which carries half of it."""
    _run, result, seen = measured({"half rate": ("lab-2", 1)})
    text = right(seen)["half rate"]
    own = touching(result, "lab-2", "rail1")
    assert {r["bound_by"] for r in bandwidth(result)} == {"link"}
    assert [r["expected"] for r in bandwidth(result)] == [pytest.approx(EXPECTED, rel=0.001)] * 12
    assert len(own) == 4
    assert verdicts(own) == {"fail"}
    assert verdicts(r for r in bandwidth(result) if r not in own) == {"pass"}
    assert f"of the {LINK_SPEED} Gb/s of link_speed" in text
