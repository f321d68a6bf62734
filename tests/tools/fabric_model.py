"""A fabric of hosts x rails with planted faults, for simulations: what would each test have given?

Everything follows from a seed. A fault is permanent unless it has a share: every test that needs the bad part gives a
low value (fail) or nothing (no_data). Noise: values scatter, and now and then a test gives nothing for no reason and is
tried again, as fabric_judge does.
"""

from __future__ import annotations

import random
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

from ansible_collections.gpufabric.rdma.plugins.module_utils._fabric.measure.diagnosis.components import VIEW, View
from ansible_collections.gpufabric.rdma.plugins.module_utils._fabric.measure.diagnosis.follow_up import (
    diagnose,
    next_tests,
)
from ansible_collections.gpufabric.rdma.plugins.module_utils._fabric.measure.schedule.modes import circle
from ansible_collections.gpufabric.rdma.plugins.module_utils._fabric.measure.schedule.schedule import (
    Measurement,
    Round,
    planned,
    repeat,
    star_of,
    subject,
)

KINDS = ("host", "port", "rail", "direction", "pair", "mtu", "gpu")
BANDWIDTH, SMALL, CUDA = "write_bw", "write_lat", "cuda:dmabuf"
EXPECTED = {BANDWIDTH: 93.1, SMALL: 6.0}
USUAL = {BANDWIDTH: 97.9, SMALL: 3.0}
# Hosts of a leaf switch.
LEAF = 32
# Share of tests that give nothing for no reason, and how often such a test is tried again.
TRANSIENT, RETRIES = 1e-3, 2


@dataclass(frozen=True)
class Fault:
    """One bad thing. mtu and gpu: of a port, of a whole host (``rail`` None), mtu also of a rail (``host`` None).

    across: between leaves of LEAF hosts on a rail. uplinks: of the leaf ``host``, leaf: all tests of it. routing:
    between ``rail`` and ``peer_rail``, or between any two. pair: of two ports where ``peer_rail`` is given.
    ``share`` of the tests that need it show it: below 1 the fault is unsteady.
    """

    kind: str
    rail: str | None = None
    host: str | None = None
    peer: str | None = None
    direction: str | None = None
    peer_rail: str | None = None
    shows: str = field(default="fail", compare=False)
    share: float = field(default=1.0, compare=False)

    def breaks(self, test: Measurement) -> bool:
        """Whether the test needs what is bad. Latency tests use small messages and both directions."""
        if (self.kind == "mtu" and test.kind == SMALL) or (self.kind == "gpu" and test.memory == "host"):
            return False
        ends = ((test.client, test.rail), (test.server, test.server_rail))
        if self.kind == "across":
            return test.rail == self.rail and len({leaf_of(name) for name, _rail in ends}) > 1
        if self.kind in ("uplinks", "leaf"):
            leaves = {leaf_of(name) for name, _rail in ends}
            return test.rail == self.rail and len(leaves) > (self.kind == "uplinks") and self.host in leaves
        if self.kind == "routing":
            crossed = {test.rail, test.server_rail}
            return len(crossed) > 1 and (self.rail is None or crossed == {self.rail, self.peer_rail})
        if self.direction and test.kind != SMALL:
            return _is_at(self.host, self.rail, ends[self.direction == "receive"])
        if self.peer:
            far = self.peer_rail or self.rail
            ways = (ends, ends[::-1])
            return any(_is_at(self.host, self.rail, a) and _is_at(self.peer, far, b) for a, b in ways)
        return any(_is_at(self.host, self.rail, end) for end in ends)

    def hides(self, other: Fault) -> bool:
        """Whether nobody could see ``other`` beside this one, or not as what it is."""
        if self.kind == "host":
            return self.host in (other.host, other.peer)
        if None not in (self.rail, other.rail) and self.rail != other.rail:
            return False
        return self.host is None or self.host in (other.host, other.peer)


def leaf_of(name: str) -> str:
    """The leaf switch of a host."""
    return f"leaf{int(name[1:]) // LEAF}"


def _is_at(host: str | None, rail: str | None, end: tuple[str, str]) -> bool:
    return host in (None, end[0]) and rail in (None, end[1])


@dataclass
class Fabric:
    """Hosts x rails with ``faults``; ``measure`` plays a test."""

    hosts: int
    rails: int
    faults: tuple[Fault, ...] = ()
    seed: int = 0
    noise: bool = True
    # Whether the others of a star make good for one that sends or receives too little.
    fair: bool = False

    def __post_init__(self) -> None:
        self.names = [f"h{number:04d}" for number in range(self.hosts)]
        self.rail_names = [f"rail{number}" for number in range(self.rails)]
        self.random = random.Random(self.seed)

    def measure(self, test: Measurement) -> dict[str, Any]:
        """The result of a test in the form of report.json."""
        broken = next((fault for fault in self.faults if fault.breaks(test) and self.shown(fault)), None)
        verdict, value = "pass", USUAL[test.kind]
        if broken:
            verdict = broken.shows
            value = None if verdict == "no_data" else value * (10 if test.kind == SMALL else 0.1)
        elif self.noise:
            value *= 1 + 0.004 * min(max(self.random.gauss(0, 1), -5), 5)
            lost = all(self.random.random() < TRANSIENT for _attempt in range(1 + RETRIES))
            verdict, value = ("no_data", None) if lost else (verdict, value)
        crossed = {key: getattr(test, key) for key in ("peer_rail", "star") if getattr(test, key)}
        return {
            "where": "host",
            "rail": test.rail,
            "client": test.client,
            "server": test.server,
            "test": test.kind,
            "value": value,
            "unit": "us" if test.kind == SMALL else "Gb/s",
            "expected": EXPECTED[test.kind],
            **crossed,
            "memory": test.memory,
            "verdict": verdict,
            "reason": {"pass": "", "fail": "planted"}.get(verdict, "Failed status 12"),
            "passes": [],
        }

    def shown(self, fault: Fault) -> bool:
        """Whether a fault shows this time."""
        return fault.share >= 1 or self.random.random() < fault.share

    def play(self, rounds: Sequence[Round]) -> list[dict[str, Any]]:
        """The results of all tests of the rounds."""
        return [result for round_ in rounds for result in self._round(round_)]

    def _round(self, round_: Round) -> list[dict[str, Any]]:
        stars: dict[Any, list[dict[str, Any]]] = {}
        found = [self.measure(test) for test in round_]
        for test, result in zip(round_, found):
            if test.star:
                stars.setdefault(star_of(test), []).append(result)
        for shares in stars.values():
            self._share(shares)
        return found

    def _share(self, shares: list[dict[str, Any]]) -> None:
        """Make shares of one star of tests that were measured as if each were alone: the sum is judged."""
        total = sum(result["value"] or 0 for result in shares) / len(shares)
        if self.fair and any(result["verdict"] == "pass" for result in shares):
            total = USUAL[BANDWIDTH]
        silent = any(result["value"] is None for result in shares)
        for result in shares:
            result["expected"] /= len(shares)
            if result["value"] is None:
                continue
            result["value"] /= len(shares)
            verdict = "no_data" if silent else "pass" if total >= EXPECTED[BANDWIDTH] else "fail"
            reason = {"no_data": "its share is not conclusive: a share gave no data", "pass": "", "fail": "planted"}[
                verdict
            ]
            result.update(verdict=verdict, reason=reason)


def sampled(names: Sequence[str], rails: Sequence[str], kind: str, count: int, seed: int) -> list[Round]:
    """``count`` seeded rounds of the circle, each in both directions; all rounds when there are not so many."""
    rounds = [pairs for pairs in circle(names) if pairs]
    chosen = random.Random(seed).sample(rounds, min(count, len(rounds)))
    return [
        tuple(Measurement(rail, *(pair[::-1] if swap else pair), kind) for pair in pairs for rail in rails)
        for pairs in chosen
        for swap in (False, True)
    ]


def ring(names: Sequence[str], rails: Sequence[str], kind: str) -> list[Round]:
    """Every host with both of its neighbours, in both directions."""
    pairs = [(names[at], names[(at + 1) % len(names)]) for at in range(len(names))]
    return repeat([Measurement(rail, *way, kind) for a, b in pairs for way in ((a, b), (b, a)) for rail in rails])


def every_pair(names: Sequence[str], rails: Sequence[str], kind: str) -> list[Round]:
    """The whole schedule."""
    return planned(names, rails, {"mode": "all_pairs", "kinds": [kind]})


def crossed(names: Sequence[str], rails: Sequence[str], kind: str) -> list[Round]:
    """The whole schedule, from every rail to every rail."""
    return planned(names, rails, {"mode": "all_pairs", "kinds": [kind], "cross_rail": True})


def loopback(names: Sequence[str], rails: Sequence[str], kind: str) -> list[Round]:
    """Every rail of a host with every other rail of the same host."""
    return planned(names, rails, {"mode": "loopback", "kinds": [kind]})


def stars(names: Sequence[str], rails: Sequence[str], mode: str, fan: int = 4) -> list[Round]:
    """Every host in the middle of a star once."""
    return planned(names, rails, {"mode": mode, "fan": fan})


def from_gpus(rounds: Sequence[Round]) -> list[Round]:
    """The same rounds in GPU memory."""
    return [tuple(test._replace(memory=CUDA) for test in round_) for round_ in rounds]


def plant(fabric: Fabric, kinds: Sequence[str], rounds: Sequence[Round]) -> tuple[Fault, ...]:
    """One fault of each kind in ``kinds`` at random, none of which hides another; pairs are some that meet."""
    draw = random.Random(fabric.seed + 1)
    planted: list[Fault] = []
    while len(planted) < len(kinds):
        fault = _draw(draw, fabric, kinds[len(planted)], rounds)
        if not any(fault.hides(other) or other.hides(fault) for other in planted):
            planted.append(fault)
    return tuple(planted)


def _draw(draw: random.Random, fabric: Fabric, kind: str, rounds: Sequence[Round]) -> Fault:
    rail, host = draw.choice(fabric.rail_names), draw.choice(fabric.names)
    shows = draw.choice(("fail", "no_data"))
    if kind == "rail":
        return Fault(kind, rail, shows=shows)
    if kind == "host":
        return Fault(kind, None, host, shows=shows)
    if kind == "direction":
        return Fault(kind, rail, host, direction=draw.choice(("send", "receive")), shows=shows)
    if kind == "pair":
        test = draw.choice(draw.choice(rounds))
        return Fault(kind, rail, *sorted((test.client, test.server)), shows=shows)
    if kind == "mtu":
        # Large frames vanish: there is never a value. At a port, or in the switch of the rail.
        return Fault(kind, rail, draw.choice((host, host, host, None)), shows="no_data")
    if kind == "gpu":
        return Fault(kind, draw.choice((rail, rail, rail, None)), host, shows=shows)
    return Fault(kind, rail, host, shows=shows)


@dataclass(frozen=True)
class Outcome:
    """What isolation made of a fabric: counts of diagnoses, and what it cost beyond the first schedule."""

    planted: int
    diagnosed: int
    right: int
    sure: int
    tests: int
    rounds: int
    goes: int
    diagnoses: list[Any] = field(compare=False)
    results: list[dict[str, Any]] = field(compare=False, repr=False)


def again(before: dict[str, Any] | None, result: dict[str, Any]) -> dict[str, Any]:
    """The result of a test that was measured once more: it fails where most readings do, as for the judge."""
    if before is None:
        return result
    first, second = ({key: one.get(key) for key in ("value", "verdict", "reason")} for one in (before, result))
    passes = [*(before.get("passes") or [first]), {**second, "repeated": True}]
    usable = [one for one in passes if one["verdict"] != "no_data"]
    low = [one for one in usable if one["verdict"] == "fail"]
    deciding = low if 2 * len(low) > len(usable) else [one for one in usable if one["verdict"] == "pass"]
    last = (deciding or passes)[-1]
    return {**result, **{key: last[key] for key in ("value", "verdict", "reason")}, "passes": passes}


def isolate(fabric: Fabric, rounds: Sequence[Round], goes: int = 10, view: View = VIEW) -> Outcome:
    """Play the schedule and what isolation asks for, at most ``goes`` times, and compare diagnoses with faults."""
    found = {subject(result): result for result in fabric.play(rounds)}
    tests = extra = count = 0
    while count < goes:
        more = next_tests(list(found.values()), fabric.names, fabric.rail_names, view=view)
        if not more:
            break
        count, tests, played = count + 1, tests + len(more), repeat(more)
        extra += len(played)
        for result in fabric.play(played):
            found[subject(result)] = again(found.get(subject(result)), result)
    diagnoses = diagnose(list(found.values()), view)
    diagnosed = [Fault(b.kind, b.rail, b.host, b.peer, b.direction, b.peer_rail or None) for b in diagnoses]
    right = len(set(diagnosed) & set(fabric.faults))
    sure = sum(b.confidence == "confirmed" for b in diagnoses)
    return Outcome(
        len(fabric.faults), len(diagnosed), right, sure, tests, extra, count, diagnoses, list(found.values())
    )
