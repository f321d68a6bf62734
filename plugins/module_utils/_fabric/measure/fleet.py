# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What tests needed and which of it is known to work: the evidence that blame is drawn from.

A test needs its rail, both hosts, both ports, the sending side of one and the receiving side of the other. One that
passed clears all of them. Large messages need the MTU of the path besides, GPU memory needs the GPU path: these are
layers, and each layer keeps its own passes.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import lru_cache
from typing import Any, NamedTuple

from .options import LATENCY
from .schedule import Test, subject

Result = Mapping[str, Any]
BASE, MTU, GPU = "base", "mtu", "gpu"
# Bytes of payload that fit into a frame on any Ethernet.
SMALL = 1024
OPPOSITE = {"send": "receive", "receive": "send"}


class Scope(NamedTuple):
    """What may be bad. ``kind``: all, rail, host, port, send, receive or pair; a pair has its names in order."""

    kind: str
    rail: str | None = None
    host: str | None = None
    peer: str | None = None


Part = tuple[str, Scope]


@dataclass(frozen=True, eq=False)
class Failure:
    """A test that did not pass, equal only to itself. ``ways``: (sender, receiver), both ways for latency.

    ``passes``: its readings, as the result has them.
    """

    test: Test
    ways: tuple[tuple[str, str], ...]
    layers: tuple[str, ...]
    verdict: str
    reason: str
    passes: Sequence[Mapping[str, Any]] = ()

    @property
    def again(self) -> bool:
        """Whether it was measured again because it was the only failure of its pair."""
        return any(one.get("again") for one in self.passes)

    @property
    def arrived(self) -> bool:
        """Whether data came through in any reading, as little as it was."""
        return self.verdict == "fail" or any(one.get("value") for one in self.passes)

    @property
    def rail(self) -> str:
        """The rail of the client."""
        return self.test.rail

    @property
    def client(self) -> str:
        """The host that asked."""
        return self.test.client

    @property
    def server(self) -> str:
        """The host that answered."""
        return self.test.server

    @property
    def pair(self) -> Scope:
        """The pair of hosts on the rail, in whichever direction."""
        return pair_scope(self.rail, self.client, self.server)

    def other(self, host: str | None) -> str:
        """Return the partner of ``host``."""
        return self.server if host == self.client else self.client

    def roles(self, host: str) -> list[str]:
        """Return what ``host`` did in the test: send, receive, or both."""
        return [role for way in self.ways for role, name in zip(("send", "receive"), way) if name == host]

    @property
    def silent(self) -> bool:
        """Whether it is about small messages in host memory and gave no data, the first time."""
        return self.layers == (BASE,) and self.verdict == "no_data" and not self.again


def pair_scope(rail: str, one: str, other: str) -> Scope:
    """Return the scope of two hosts on a rail, the same for both directions."""
    return Scope("pair", rail, min(one, other), max(one, other))


def layers_of(result: Result) -> tuple[str, ...]:
    """Return the layers that a result says something about, the deepest last."""
    return _layers(result["test"], result.get("size"), result.get("mtu"), result.get("memory"))


# A fleet has few kinds of tests.
@lru_cache(maxsize=256)
def _layers(kind: str, size: int | None, mtu: int | None, memory: str | None) -> tuple[str, ...]:
    sizes = [number for number in (size, mtu) if number]
    large = min(sizes) > SMALL if sizes else kind not in LATENCY
    gpu = memory not in (None, "host")
    return (BASE, *((MTU,) if large else ()), *((GPU,) if gpu else ()))


def ways_of(kind: str, client: str, server: str) -> tuple[tuple[str, str], ...]:
    """Return (sender, receiver) of the data: a read pulls it to the client, latency tests send it to and fro."""
    if kind in LATENCY:
        return ((client, server), (server, client))
    return ((server, client),) if kind.startswith("read") else ((client, server),)


@dataclass
class Fleet:
    """What was measured in one place: failures, how many tests passed of those that need a part, hosts of a rail."""

    failures: list[Failure] = field(default_factory=list)
    passes: Counter[Part] = field(default_factory=Counter)
    hosts_of: dict[str, set[str]] = field(default_factory=dict)

    @classmethod
    def of(cls, results: Sequence[Result]) -> Fleet:
        """Read results: dicts with rail, client, server, test, verdict; optional reason, memory, size, mtu (bytes)."""
        fleet = cls()
        passed: Counter[tuple[str, str, str, str, tuple[str, ...]]] = Counter()
        for result in results:
            if result["verdict"] == "pass":
                passed[result["rail"], result["client"], result["server"], result["test"], layers_of(result)] += 1
            else:
                fleet.failures.append(_failure(result))
        for rail, client, server, *_rest in passed:
            fleet.hosts_of.setdefault(rail, set()).update((client, server))
        for failure in fleet.failures:
            fleet.hosts_of.setdefault(failure.rail, set()).update((failure.client, failure.server))
        if fleet.failures:
            fleet._clear(passed)
        return fleet

    def _clear(self, passed: Mapping[tuple[str, str, str, str, tuple[str, ...]], int]) -> None:
        """Count the passes of every part: first sides of ports, then what these belong to."""
        suspects = {failure.pair for failure in self.failures}
        sides: Counter[tuple[str, str, str, tuple[str, ...]]] = Counter()
        rails: Counter[tuple[str, tuple[str, ...]]] = Counter()
        for (rail, client, server, kind, layers), count in passed.items():
            ways = ways_of(kind, client, server)
            rails[rail, layers] += count
            for role, name in zip(("send", "receive"), ways[0]):
                sides[rail, name, role if len(ways) == 1 else "both", layers] += count
            if pair_scope(rail, client, server) in suspects:
                self._add(layers, [pair_scope(rail, client, server)], count)
        for (rail, host, side, layers), count in sides.items():
            roles = [Scope(role, rail, host) for role in OPPOSITE if side in (role, "both")]
            self._add(layers, [Scope("host", None, host), Scope("port", rail, host), *roles], count)
        for (rail, layers), count in rails.items():
            self._add(layers, [Scope("rail", rail), Scope("all")], count)

    def _add(self, layers: Sequence[str], scopes: Sequence[Scope], count: int) -> None:
        for layer in layers:
            for scope in scopes:
                self.passes[layer, scope] += count

    def hosts(self) -> set[str]:
        """Return everybody who was in a test."""
        return set().union(*self.hosts_of.values()) if self.hosts_of else set()

    def clears(self, failure: Failure, host: str) -> bool:
        """Return whether what ``host`` did in a failed test is known to work with somebody else."""
        layer = failure.layers[-1]
        return all(self.passes[layer, Scope(role, failure.rail, host)] for role in failure.roles(host))

    def good_partners(self, failures: Sequence[Failure], host: str) -> set[str]:
        """Return the partners of ``host`` in ``failures`` whose own side is cleared."""
        return {f.other(host) for f in failures if self.clears(f, f.other(host))}


def _failure(result: Result) -> Failure:
    test = subject(result)
    ways = ways_of(test.kind, test.client, test.server)
    reason = result.get("reason") or ""
    return Failure(test, ways, layers_of(result), result["verdict"], reason, result.get("passes", ()))
