"""The chosen cells of the table: a fabric, its faults, how it is measured, and what the report must be right about."""

from __future__ import annotations

import random
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from .fabric import Tree
from .faults import ALWAYS, FLOW, TIME, Fault
from .run import measured
from .score import Score, score
from .testers import BACKGROUND, Network

# What a cell is to prove: the run passes; every fault is found and nothing else is; faults are found as their kind;
# nothing healthy is confirmed, which holds for all cells; the run itself is unsteady, and nothing else is named.
PASSES, EXACT, FOUND, UNACCUSED, UNSTEADY = "passes", "exact", "found", "unaccused", "unsteady"
#: Rate that is to be proven of each, with one-sided confidence of 95 %, and of runs that accuse nothing healthy.
TARGETS: Mapping[str, float] = {PASSES: 0.995, EXACT: 0.99, FOUND: 0.95, UNSTEADY: 0.99}
INNOCENT = 0.99
_LARGE = 1024
LARGE_TARGET = 0.90

ALL_PAIRS: Mapping[str, Any] = {"mode": "all_pairs", "budget": "standard"}
QUICK: Mapping[str, Any] = {"mode": "sampled", "budget": "quick"}
STANDARD: Mapping[str, Any] = {"mode": "sampled", "budget": "standard"}
DEEP: Mapping[str, Any] = {"mode": "sampled", "budget": "deep"}
SCHEDULES = {id(ALL_PAIRS): "all pairs, standard", id(QUICK): "quick", id(STANDARD): "standard", id(DEEP): "deep"}

T8, T32, T128, T1024 = Tree(8, 4), Tree(32, 2, 2), Tree(128, 2, 3), Tree(1024, 1, 4, leaf=16)
Draw = random.Random
Plant = Callable[[Draw, Tree], list[Fault]]


@dataclass(frozen=True)
class Cell:
    """``runs``: needed for the claim if none misses. ``background``: share of tests that read low without a cause."""

    name: str
    tree: Tree
    tests: Mapping[str, Any]
    plant: Plant
    claim: str
    runs: int
    background: float = BACKGROUND

    @property
    def title(self) -> str:
        """The fabric and the schedule."""
        levels = f"{self.tree.levels} level{'s' if self.tree.levels > 1 else ''}"
        return f"{self.tree.hosts} hosts x {self.tree.rails}, {levels}, {SCHEDULES[id(self.tests)]}"

    @property
    def target(self) -> float | None:
        """The rate that is to be proven, None where only accusations count."""
        return LARGE_TARGET if self.claim == FOUND and self.tree.hosts >= _LARGE else TARGETS.get(self.claim)

    def faults(self, seed: int) -> tuple[Fault, ...]:
        """What is planted in run ``seed``."""
        return tuple(self.plant(random.Random(seed * 7919 + 1), self.tree))

    def run(self, seed: int) -> Score:
        """Simulate one run."""
        faults = self.faults(seed)
        return score(self.tree, faults, measured(Network(self.tree, faults, seed, self.background), self.tests))

    def reached(self, one: Score) -> bool:
        """Whether a run is right."""
        if self.claim == PASSES:
            return one.passed
        if self.claim == UNSTEADY:
            return not one.passed and set(one.named) == {"run"}
        return one.exact if self.claim == EXACT else one.found == one.planted


def _healthy(_draw: Draw, _tree: Tree) -> list[Fault]:
    return []


def place(kind: str, **more: Any) -> Plant:
    """One fault of a kind at random."""

    def plant(draw: Draw, tree: Tree) -> list[Fault]:
        return [one(draw, tree, kind, **more)]

    return plant


def one(draw: Draw, tree: Tree, kind: str, **more: Any) -> Fault:
    """A fault of a kind somewhere in a fabric."""
    own: dict[str, Any] = {"salt": draw.getrandbits(32)}
    if kind not in ("host", "overloaded", "late", "throttled"):
        own["rail"] = draw.choice(tree.rail_names)
    if kind in ("leaf", "uplinks", "uplink", "spine"):
        own["group"] = tree.group(draw.randrange(tree.hosts), 1 if kind == "spine" else 0)
        own["index"] = draw.randrange(tree.spines)
    elif kind != "rail":
        own["host"] = draw.randrange(tree.hosts)
    return Fault(kind, **{**own, "factor": draw.choice((0.0, 0.3, 0.5, 0.7)), **more})


# Of those that come and go; a link that only loses packets is slow.
_SLOW = {"factor": 0.6}
LOSSY = {"by": TIME, "share": 0.1, "burst": 5.0, "counter": "rx_crc_errors_phy", **_SLOW}
FLAPPING = {"by": TIME, "share": 0.02, "burst": 2.0, "factor": 0.0, "counter": "link_down_events_phy"}
HALF = {"factor": 0.5}


def flow(share: float) -> dict[str, Any]:
    """Of a fault that hits a share of flows."""
    return {"by": FLOW, "share": share, **_SLOW}


def _mixture(count: int) -> Plant:
    kinds: list[tuple[str, dict[str, Any]]] = [
        ("host", flow(0.3)), ("port", {"by": ALWAYS}), ("port", flow(0.25)), ("send", {"by": ALWAYS}),
        ("receive", flow(0.5)), ("port", FLAPPING), ("port", LOSSY), ("spine", HALF), ("overloaded", {"share": 0.1}),
        ("late", {}), ("thermal", {"by": TIME, "share": 0.5, **_SLOW}),
    ]  # fmt: skip

    def plant(draw: Draw, tree: Tree) -> list[Fault]:
        found: list[Fault] = []
        while len(found) < count:
            kind, more = draw.choice(kinds)
            fault = one(draw, tree, kind, **more)
            if fault.host is None or fault.host not in [other.host for other in found]:
                found.append(fault)
        return found

    return plant


# Of larger fabrics other cells show as much.
_SMALL_ONLY = (
    "uplinks of a leaf bad in 1 % of flows",
    "lossy cable",
    "flapping port",
    "port that hangs in 10 % of its tests",
)


def _cells() -> list[Cell]:
    found = [
        Cell("healthy, 8", T8, ALL_PAIRS, _healthy, PASSES, 600),
        Cell("healthy, 32", T32, ALL_PAIRS, _healthy, PASSES, 600),
        Cell("healthy, 8, 1 % low", T8, ALL_PAIRS, _healthy, PASSES, 600, 0.01),
        Cell("healthy, 32, 1 % low", T32, ALL_PAIRS, _healthy, PASSES, 600, 0.01),
        Cell("busy, 32, 5 % low", T32, ALL_PAIRS, _healthy, UNSTEADY, 300, 0.05),
        Cell("healthy, 128, quick", T128, QUICK, _healthy, PASSES, 600),
        Cell("healthy, 128", T128, STANDARD, _healthy, PASSES, 600),
        Cell("healthy, 1024, quick", T1024, QUICK, _healthy, PASSES, 300),
        Cell("healthy, 1024", T1024, STANDARD, _healthy, PASSES, 60),
    ]
    for size, tree, tests, kinds in (
        ("8", T8, ALL_PAIRS, ("host", "port", "send", "rail")),
        ("32", T32, ALL_PAIRS, ("host", "port", "send", "receive", "rail", "leaf", "uplinks")),
        ("128", T128, STANDARD, ("host", "port", "receive", "rail", "leaf", "uplinks")),
    ):
        # Those of ports prove the target in the larger fabric too; the others would take too long.
        few = () if size != "128" else ("host", "rail", "leaf", "uplinks")
        found += [
            Cell(f"{kind}, {size}", tree, tests, place(kind), EXACT, 100 if kind in few else 300) for kind in kinds
        ]
    found += [Cell(f"{kind}, 1024, quick", T1024, QUICK, place(kind), EXACT, 100) for kind in ("port", "send")]
    comes_and_goes: list[tuple[str, str, dict[str, Any]]] = [
        ("port in 10 % of its tests", "port", flow(0.1)),
        ("direction in 20 % of its tests", "receive", flow(0.2)),
        ("host in 5 % of its tests", "host", flow(0.05)),
        ("rail in 5 % of its tests", "rail", flow(0.05)),
        ("leaf in 5 % of its tests", "leaf", flow(0.05)),
        ("one of 4 spines at half rate", "spine", HALF),
        ("one uplink of a leaf at half rate", "uplink", HALF),
        ("uplinks of a leaf bad in 1 % of flows", "uplinks", flow(0.01)),
        ("uplinks of a leaf bad in 10 % of flows", "uplinks", flow(0.1)),
        ("uplinks of a leaf bad in 50 % of flows", "uplinks", flow(0.5)),
        ("lossy cable", "port", LOSSY),
        ("flapping port", "port", FLAPPING),
        ("port that hangs in 10 % of its tests", "port", {**flow(0.1), "factor": 0.0, "hangs": True}),
    ]
    for what, kind, more in comes_and_goes:
        claim = UNACCUSED if more.get("share") == 0.01 else FOUND
        found.append(Cell(f"{what}, 32", T32, ALL_PAIRS, place(kind, **more), claim, 100))
        if what not in _SMALL_ONLY:
            found.append(Cell(f"{what}, 128", T128, STANDARD, place(kind, **more), claim, 100))
    found += [
        Cell("port in 10 % of its tests, 8", T8, ALL_PAIRS, place("port", **flow(0.1)), FOUND, 100),
        Cell("port in 50 % of its tests, 128, quick", T128, QUICK, place("port", **flow(0.5)), FOUND, 100),
        Cell("port in 5 % of its tests, 128, deep", T128, DEEP, place("port", **flow(0.05)), FOUND, 60),
        Cell("port in 10 % of its tests, 1024", T1024, STANDARD, place("port", **flow(0.1)), FOUND, 30),
        Cell("overloaded host, 128", T128, STANDARD, place("overloaded", share=0.1), UNACCUSED, 100),
        Cell("late host, 128", T128, STANDARD, place("late"), UNACCUSED, 100),
        Cell("throttled tester, 32", T32, ALL_PAIRS, place("throttled", by=TIME, share=0.3, **_SLOW), UNACCUSED, 100),
        Cell(
            "NIC that throttles when hot, 32", T32, ALL_PAIRS, place("thermal", by=TIME, share=0.5, **_SLOW), FOUND, 100
        ),
        Cell("mixture of 5, 32", T32, ALL_PAIRS, _mixture(5), UNACCUSED, 300),
        Cell("mixture of 3, 128", T128, STANDARD, _mixture(3), UNACCUSED, 100),
    ]
    return found


CELLS = {cell.name: cell for cell in _cells()}
