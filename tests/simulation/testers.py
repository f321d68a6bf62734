"""Testers on the hosts of a simulated fabric: lines of a schedule in, what they record of each test out."""

from __future__ import annotations

import random
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import lru_cache
from typing import NamedTuple

from .fabric import Tree
from .faults import Fault

#: Gb/s of a 100 Gb/s link after headers, and its scatter.
USUAL, SCATTER = 97.9, 0.004
#: Share of tests that read low, and that read 0, without a cause.
BACKGROUND, SILENT = 1e-3, 3e-4
#: perftest ends a transfer with an error below this share of the rate: packets are lost until retries end.
_DEAD = 0.05
_FIRST_PORT = 0xC000
_TABLE = (
    " RDMA_Write BW Test\n #bytes #iterations BW peak[Gb/sec] BW average[Gb/sec] MsgRate[Mpps]\n"
    " 65536 {count} 0.00 {value} 0.1"
)
_FAILED = "Completion with error at client\nFailed status 12: wr_id 0 syndrom 0x81"
_NO_SERVER = "Couldn't connect to {peer}:18515"
#: Exit codes of an expired time limit, and of a tester that did not try.
_EXPIRED, _REFUSED = 124, 125


class Told(NamedTuple):
    """One side of a test as a tester records it: exit code, output, seconds, lateness, and counters that grew."""

    rc: int
    text: str
    seconds: float = 11.2
    late: float = 0.03
    counters: tuple[tuple[str, int], ...] = ()


# A line of the schedule, as its host acts on it: round, rail, the peer's address.
Key = tuple[int, str, str]


@dataclass
class Network:
    """A fabric with ``faults``. All that happens follows from ``seed`` and from what is played."""

    tree: Tree
    faults: tuple[Fault, ...] = ()
    seed: int = 0
    background: float = BACKGROUND
    clock: float = 0.0
    random: random.Random = field(init=False)

    def __post_init__(self) -> None:
        self.random = random.Random(self.seed)
        self.number = {name: number for number, name in enumerate(self.tree.names)}
        self.known = {address(n, rail): n for n in range(self.tree.hosts) for rail in self.tree.rail_names}
        # Hosts' conditions by host, all others by rail.
        self.strained = {
            fault.host: fault for fault in self.faults if fault.kind in ("overloaded", "late", "throttled")
        }
        places = [fault for fault in self.faults if fault.kind not in ("overloaded", "late", "throttled")]
        self.of_rail = {rail: [f for f in places if f.rail in (None, rail)] for rail in self.tree.rail_names}

    def play(self, lines: Mapping[str, Sequence[str]], slot: int) -> dict[str, dict[Key, Told]]:
        """What every host records of a pass, host -> test -> record; the clock goes on by its slots."""
        told: dict[str, dict[Key, Told]] = {name: {} for name in lines}
        late = {name: self._lateness(self.strained[self.number[name]], slot) for name in lines if self._strained(name)}
        rounds = 0
        for name, own in lines.items():
            sender = self.number[name]
            for line in own:
                number, rail, role, peer, rest = (*line.split(" ", 4), "", "", "")[:5]
                if role != "client":
                    continue
                at = int(number)
                rounds = max(rounds, at + 1)
                other = self.tree.names[self.known[peer]]
                begin = self.clock + at * slot
                delays = (late.get(name, {}).get(at, 0.03), late.get(other, {}).get(at, 0.03)) if late else (0.03, 0.03)
                client, server = self._test(sender, self.known[peer], rail, rest, begin=begin, late=delays)
                told[name][at, rail, peer] = client
                if other in told:
                    told[other][at, rail, address(sender, rail)] = server
        self.clock += rounds * slot
        return told

    def _strained(self, name: str) -> bool:
        return bool(self.strained) and self.number[name] in self.strained

    def _lateness(self, fault: Fault, slot: int) -> dict[int, float]:
        """How many seconds a host begins its rounds late, by round."""
        if fault.kind == "late":
            delay = self.random.uniform(2, 40)
            return {at: round(delay - at * slot, 2) for at in range(int(delay // slot) + 1) if delay - at * slot > 0.03}
        if fault.kind == "overloaded":
            rounds = (at for at in range(600) if self.random.random() < fault.share)
            return {at: round(self.random.uniform(0.3, 4.0), 2) for at in rounds}
        return {}

    def _test(
        self, sender: int, receiver: int, rail: str, rest: str, *, begin: float, late: tuple[float, float]
    ) -> tuple[Told, Told]:
        if max(late) >= 1:
            return self._missed(sender, receiver, rail, late)
        draw = self.random.random
        if draw() < SILENT:
            return same(0, _TABLE.format(count=100, value="0.00"))
        rate, grown = self._rate(sender, receiver, rail, rest, begin)
        if rate and draw() < self.background:
            rate *= self.random.uniform(0.5, 0.9)
        for host, delay in zip((sender, receiver), late):
            rate *= self._host(host, begin, delay)
        ours, theirs = (tuple((n, c) for end, n, c in grown if end == own) for own in (sender, receiver))
        if rate < _DEAD and any(one.hangs and one.touches(self.tree, sender, receiver, rail) for one in self.faults):
            return tuple(Told(_EXPIRED, "", seconds=14.0, late=delay) for delay in late)  # type: ignore[return-value]
        if rate < _DEAD:
            failed = Told(1, _FAILED, late=late[0], counters=ours)
            return failed, Told(1, "Couldn't read reports", late=late[1], counters=theirs)
        text = _table(int(rate * USUAL * 50 * (1 + SCATTER * min(max(self.random.gauss(0, 1), -4), 4))))
        if not grown and max(late) < 0.1:
            return _told(text), _told(text)
        return Told(0, text, late=late[0], counters=ours), Told(0, text, late=late[1], counters=theirs)

    def _rate(
        self, sender: int, receiver: int, rail: str, rest: str, begin: float
    ) -> tuple[float, Sequence[tuple[int, str, int]]]:
        """The share of its rate that a transfer reaches on the network; by host, the counters that grow meanwhile."""
        rate = 1.0
        grown: list[tuple[int, str, int]] = []
        near = [fault for fault in self.of_rail[rail] if fault.touches(self.tree, sender, receiver, rail)]
        if not near:
            return rate, ()
        asked = _asked(rest)
        ports = self._ports(asked)
        for fault in near:
            hit = fault.slowed(self.tree, (sender, receiver), ports, begin=begin + 1, duration=asked.duration)
            if hit and fault.factor < 1:
                # A queue pair that gets nothing ends the whole test.
                rate *= 0.0 if fault.factor == 0 else 1 - hit * (1 - fault.factor)
            if hit and fault.counter:
                host = receiver if fault.host is None else fault.host
                grown.append((host, fault.counter, 1 + self.random.randrange(400)))
        return rate, grown

    def _ports(self, asked: Asked) -> list[int]:
        """The UDP source port of each queue pair: of its flow label, or of its new number."""
        if asked.labels and not asked.cm:
            return [_FIRST_PORT | (asked.labels[at % len(asked.labels)] & 0x3FFF) for at in range(asked.pairs)]
        return [_FIRST_PORT | self.random.getrandbits(14) for _pair in range(asked.pairs)]

    def _host(self, host: int, begin: float, late: float) -> float:
        """What a host leaves of the rate of a test."""
        fault = self.strained.get(host)
        if fault is None or fault.kind == "late":
            return 1.0
        if fault.kind == "throttled":
            # Of all rails alike, since its processes share the quota.
            return fault.factor if fault.on(begin) else 1.0
        return self.random.uniform(0.6, 1.0) if late >= 0.3 else 1.0

    def _missed(self, sender: int, receiver: int, rail: str, late: tuple[float, float]) -> tuple[Told, Told]:
        """What both sides record if one of them is too late for a round."""
        told = []
        for at, delay in enumerate(late):
            if delay >= 1:
                told.append(Told(_REFUSED, f"gpufabric: missed the round, {int(delay)} s late", seconds=0, late=delay))
            elif at == 0:
                text = _NO_SERVER.format(peer=address(receiver, rail))
                told.append(Told(1, text, seconds=4.0, late=delay))
            else:
                told.append(Told(_EXPIRED, "", seconds=14.0, late=delay))
        return told[0], told[1]


class Asked(NamedTuple):
    """What a line asks perftest for, as far as the network depends on it."""

    pairs: int
    labels: tuple[int, ...]
    cm: bool
    duration: float


@lru_cache(maxsize=4096)
def _arguments(rest: str) -> Asked:
    words = rest.split()
    after = dict(zip(words, words[1:]))
    labels = after.get("--flow_label") or next(
        (w.partition("=")[2] for w in words if w.startswith("--flow_label=")), ""
    )
    numbers = tuple(int(label) for label in labels.split(",") if label)
    return Asked(int(after.get("-q", 1)), numbers, "-R" in words, float(after.get("-D", 1)))


def _asked(rest: str) -> Asked:
    # Behind the TCP port, which differs from line to line.
    return _arguments(rest.partition(" ")[2])


def address(host: int, rail: str) -> str:
    """The address of a host on a rail."""
    return f"10.{rail[4:]}.{host >> 8}.{host & 255}"


@lru_cache(maxsize=8192)
def _table(steps: int) -> str:
    return _TABLE.format(count=100, value=f"{steps / 50:.2f}")


@lru_cache(maxsize=8192)
def _told(text: str) -> Told:
    return Told(0, text)


def same(rc: int, text: str) -> tuple[Told, Told]:
    """The record of both sides when it is the same."""
    return Told(rc, text), Told(rc, text)
