"""What is measured beside the plan when a healthy fabric reads low once, and when all testers are lost. About 7 s."""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Callable
from typing import Any

import pytest
from tests.simulation import run, testers
from tests.simulation.fabric import Tree
from tests.simulation.testers import Network, Told

from ansible_collections.gpufabric.rdma.plugins.module_utils._fabric.measure.diagnosis.suspects import (
    Suspect,
    rounds_of,
)
from ansible_collections.gpufabric.rdma.plugins.module_utils._fabric.measure.schedule.schedule import Measurement

# Sender, receiver, rail and the number of the test -> its share of the rate.
Reads = Callable[[int, int, str, int], float]
PAIRS = [["gpu-0000", "gpu-0001"], ["gpu-0002", "gpu-0003"]]


class Readings(Network):
    """A network without faults of its own; ``reads`` tells what each test reads."""

    def __init__(self, tree: Tree, reads: Reads) -> None:
        super().__init__(tree, (), 0, 0.0)
        self.reads, self.number_of_tests = reads, 0
        self.clashes = 0

    def play(self, lines: Any, slot: int) -> Any:
        """Count hosts that send, or receive, on two rails at once."""
        used: Counter[tuple[str, str, str]] = Counter()
        for name, own in lines.items():
            for line in own:
                at, _rail, role, _rest = (line.split(" ", 3) + ["", "", ""])[:4]
                if role in ("client", "server"):
                    used[at, name, role] += 1
        self.clashes += sum(count > 1 for count in used.values())
        return super().play(lines, slot)

    def _test(self, s: int, r: int, rail: str, rest: Any, *, begin: float, late: float) -> tuple[Told, Told]:
        self.number_of_tests += 1
        told = testers._told(testers._table(int(self.reads(s, r, rail, self.number_of_tests) * 97.9 * 50)))
        return told, told


def once(_sender: int, _receiver: int, _rail: str, number: int) -> float:
    return 0.5 if number == 30 else 1.0


@pytest.mark.parametrize(("hosts", "tests"), [
    (8, {"budget": "standard", "mode": "ring"}),
    (8, {"budget": "standard", "directions": "one"}),
    (8, {"budget": "standard", "only": {"pairs": PAIRS}}),
    (40, {"budget": "quick", "repeats": 2}),
])  # fmt: skip
def test_one_low_reading_of_a_healthy_fabric(hosts: int, tests: dict[str, Any]) -> None:
    """Suspects meet partners that were not planned, once, where planned tests need several readings."""
    step = run.measured(Readings(Tree(hosts, 1), once), tests).step
    assert step.summary["verdict"] == "pass", step.summary
    assert [row["severity"] for row in step.unsteady] == ["warning"]


def test_rails_that_share_a_link_take_turns() -> None:
    seen: set[tuple[int, int, str]] = set()

    def low_on_both_rails(sender: int, receiver: int, rail: str, _number: int) -> float:
        key = (sender, receiver, rail)
        first = key in ((1, 2, "rail0"), (1, 3, "rail1")) and key not in seen
        seen.add(key)
        return 0.6 if first else 1.0

    network = Readings(Tree(8, 2), low_on_both_rails)
    tests = {"budget": "standard", "rails_at_once": "auto", "sharing": [["rail0", "rail1"]]}
    step = run.measured(network, tests).step
    # Only at the end each host is once on both rails at the same time.
    assert (step.summary["verdict"], network.clashes) == ("pass", 8)
    assert [row["verdict"] for row in step.schedule["shared_links"]] == ["pass"] * 4


def test_nobody_is_left_to_be_tested() -> None:
    suspect = Suspect("gpu-0000", "rail0", 3, Measurement("rail0", "gpu-0000", "gpu-0001", "write_bw"))
    assert rounds_of([suspect], [], [], left=9) == []


@pytest.mark.parametrize(("kind", "told"), [("leaf", "group"), ("uplinks", "uplinks")])
def test_a_leaf_switch_that_is_bad_in_few_tests_is_told_from_its_uplinks(kind: str, told: str) -> None:
    """In 5 % of its tests with others. Those of the schedule inside pass; only the tests that ask for it show it."""
    draw, inside = random.Random(4), Counter[str]()

    def reads(sender: int, receiver: int, rail: str, _number: int) -> float:
        own = (sender < 8) + (receiver < 8)
        inside[rail] += own == 2
        share = 0.05 if own == 1 else 0.4 if own == 2 and kind == "leaf" and inside[rail] > 56 else 0.0
        return 0.6 if rail == "rail0" and draw.random() < share else 1.0

    step = run.measured(Readings(Tree(24, 2, 2), reads), {"mode": "all_pairs", "budget": "standard"}).step
    found = [(row["kind"], row["rail"], row.get("group")) for row in step.unsteady if row["severity"] == "failure"]
    assert found == [(told, "rail0", "leaf000")]
    assert inside["rail0"] > 56 == inside["rail1"]


@pytest.mark.parametrize(("kind", "told"), [("port", ("port", "rail0")), ("host", ("host", None))])
def test_an_unsteady_port_is_told_from_its_host(kind: str, told: tuple[str, str | None]) -> None:
    """In the schedule the other rail of the host reads low once in both cases; only more tests show which it is."""
    draw, seen = random.Random(2), Counter[str]()

    def reads(sender: int, receiver: int, rail: str, _number: int) -> float:
        if 3 not in (sender, receiver):
            return 1.0
        seen[rail] += 1
        if rail == "rail0":
            return 0.6 if draw.random() < 0.1 else 1.0
        return 0.6 if seen[rail] == 20 or (kind == "host" and seen[rail] > 62 and draw.random() < 0.2) else 1.0

    step = run.measured(Readings(Tree(32, 2), reads), {"mode": "all_pairs", "budget": "standard"}).step
    found = [(row["kind"], row["rail"], row["host"]) for row in step.unsteady if row["severity"] == "failure"]
    assert found == [(*told, "gpu-0003")] and seen["rail1"] > 62
