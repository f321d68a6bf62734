# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What tests needed and which of it is known to work: the evidence for diagnoses.

A test needs its rail, both hosts, both ports, the sending side of one and the receiving side of the other. Where it
crosses from one rail to another it needs both rails and the way between them. One that passed clears all of them.
Large messages need the MTU of the path besides, GPU memory needs the GPU path: these are layers, and each layer keeps
its own passes.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import lru_cache
from typing import Any, NamedTuple

from ...intent.kinds import KINDS
from ..readings.perftest import NO_END
from ..schedule.schedule import Measurement, subject
from .components import VIEW, View, flipped

Result = Mapping[str, Any]
BASE, MTU, GPU = "base", "mtu", "gpu"
# Bytes of payload that fit into a frame on any Ethernet.
SMALL = 1024
# Low readings of others in a group that could be those of its leaf switch: a single one happens by chance.
_OTHERS = 2
OPPOSITE = {"send": "receive", "receive": "send"}


# A port: (host, rail).
End = tuple[str, str]


class Scope(NamedTuple):
    """What may be bad. ``kind``: all, rail, routing, host, port, send, receive, pair or path.

    A pair has its ends in order. ``peer_rail``: the other rail of what crosses; routing without rails: all ways between
    rails.
    """

    kind: str
    rail: str | None = None
    host: str | None = None
    peer: str | None = None
    peer_rail: str | None = None


Part = tuple[str, Scope]
# What tests that passed have in common: rail, the server's rail, kind, layers; and their (client, server).
_Passed = Mapping[tuple[str, str, str, tuple[str, ...]], Sequence[tuple[str, str]]]


@dataclass(frozen=True, eq=False)
class Failure:
    """A test that did not pass, equal only to itself. ``ends``: the client's and the server's port.

    ``ways``: (sender, receiver), both ways for latency. ``passes``: its readings, as the result has them.
    """

    test: Measurement
    ends: tuple[End, End]
    ways: tuple[tuple[End, End], ...]
    layers: tuple[str, ...]
    verdict: str
    reason: str
    passes: Sequence[Mapping[str, Any]] = ()

    @property
    def repeated(self) -> bool:
        """Whether it was measured again because it was the only failure of its pair."""
        return any(one.get("repeated") for one in self.passes)

    @property
    def low(self) -> int:
        """How many of its readings were too low."""
        return sum(one["verdict"] == "fail" for one in self.passes) if self.passes else int(self.verdict == "fail")

    @property
    def firm(self) -> bool:
        """Whether it may confirm a diagnosis: a reading, or evidence in every attempt."""
        if any(one.get("repeated") and one.get("evidence") for one in self.passes):
            return False
        return self.verdict == "fail" or not any(one.get("evidence") for one in self.passes)

    @property
    def timed_out(self) -> bool:
        """Whether both sides ran out of time, and neither says more."""
        return self.verdict == "no_data" and all(NO_END in part for part in self.reason.split("; "))

    @property
    def arrived(self) -> bool:
        """Whether data came through in any reading, as little as it was."""
        return self.verdict == "fail" or any(one.get("value") for one in self.passes)

    @property
    def rails(self) -> tuple[str, ...]:
        """The rail, or both in order when it crosses."""
        return tuple(sorted({rail for _host, rail in self.ends}))

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
        """The pair of ports, in whichever direction."""
        return pair_scope(*self.ends)

    def own(self, scope: Scope) -> list[End]:
        """Return the ends that belong to the host or port of ``scope``: both of a host that met itself."""
        return [end for end in self.ends if end[0] == scope.host and scope.rail in (None, end[1])]

    def other(self, end: End) -> End:
        """Return the end opposite to ``end``."""
        return self.ends[1] if end == self.ends[0] else self.ends[0]

    def partners(self, scope: Scope) -> list[End]:
        """Return the ends that the host or port of ``scope`` met."""
        return [self.other(end) for end in self.own(scope)]

    def roles(self, end: End) -> list[str]:
        """Return what the port did in the test: send, receive, or both."""
        return [role for way in self.ways for role, one in zip(("send", "receive"), way) if one == end]

    @property
    def silent(self) -> bool:
        """Whether it is about small messages in host memory and gave no data, the first time."""
        return self.layers == (BASE,) and self.verdict == "no_data" and not self.repeated


def pair_scope(one: End, other: End) -> Scope:
    """Return the scope of two ports, the same for both directions."""
    (host, rail), (peer, peer_rail) = (one, other) if one < other else (other, one)
    return Scope("pair", rail, host, peer, peer_rail if peer_rail != rail else None)


def routing_scope(rails: Sequence[str]) -> Scope:
    """Return the scope of the way between two rails, the same for both directions."""
    return Scope("routing", min(rails), peer_rail=max(rails))


def label(end: End, scope: Scope) -> str:
    """Return the name of a partner of ``scope``: a host, or a rail of the host itself."""
    host, rail = end
    return host if host != scope.host else f"{host} {rail}"


def layers_of(result: Result) -> tuple[str, ...]:
    """Return the layers that a result says something about, the deepest last."""
    return _layers(result["test"], result.get("size"), result.get("mtu"), memory=result.get("memory"))


# A fleet has few kinds of tests.
@lru_cache(maxsize=256)
def _layers(kind: str, size: int | None, mtu: int | None, *, memory: str | None) -> tuple[str, ...]:
    sizes = [number for number in (size, mtu) if number]
    own = KINDS[kind]
    usual = own.size is None or own.size > SMALL
    large = min(sizes) > SMALL if sizes else not own.latency and usual
    gpu = memory not in (None, "host")
    return (BASE, *((MTU,) if large else ()), *((GPU,) if gpu else ()))


@dataclass
class Fleet:
    """What was measured in one place: failures, how many tests passed of those that need a part, hosts of a rail."""

    failures: list[Failure] = field(default_factory=list)
    passes: Counter[Part] = field(default_factory=Counter)
    hosts_of: dict[str, set[str]] = field(default_factory=dict)
    # The ports of tests that passed of which another reading was low.
    flips: list[tuple[End, End]] = field(default_factory=list)
    results: Sequence[Result] = ()
    view: View = VIEW

    @classmethod
    def of(cls, results: Sequence[Result], view: View = VIEW) -> Fleet:
        """Read results: dicts with rail, client, server, test, verdict; others as in report.json, mtu in bytes."""
        fleet = cls(results=results, view=view)
        passed: defaultdict[tuple[str, str, str, tuple[str, ...]], list[tuple[str, str]]] = defaultdict(list)
        for result in results:
            if result["verdict"] == "pass":
                rail = result["rail"]
                peer_rail = result.get("peer_rail") or rail
                pair = result["client"], result["server"]
                passed[rail, peer_rail, result["test"], layers_of(result)].append(pair)
                if len(result.get("passes", ())) > 1 and flipped(result):
                    fleet.flips.append(((result["client"], rail), (result["server"], peer_rail)))
            else:
                fleet.failures.append(_failure(result))
        hosts_of: defaultdict[str, set[str]] = defaultdict(set)
        for (rail, peer_rail, _kind, _layers), pairs in passed.items():
            hosts_of[rail].update(client for client, _server in pairs)
            hosts_of[peer_rail].update(server for _client, server in pairs)
        for failure in fleet.failures:
            for host, rail in failure.ends:
                hosts_of[rail].add(host)
        fleet.hosts_of = dict(hosts_of)
        if fleet.failures:
            fleet._clear(passed)
        return fleet

    def _clear(self, passed: _Passed) -> None:
        """Count the passes of every part."""
        suspects = {ends: one.pair for one in self.failures for ends in (one.ends, one.ends[::-1])}
        for (rail, peer_rail, kind, layers), pairs in passed.items():
            self._add(layers, _ways_between(rail, peer_rail), len(pairs))
            ways = KINDS[kind].ways("client", "server")
            roles = {way[at]: (role,) for way in ways[:1] for at, role in enumerate(OPPOSITE)}
            both = tuple(OPPOSITE) if len(ways) > 1 else ()
            clients, servers = (Counter(pair[at] for pair in pairs) for at in (0, 1))
            self._add_sides(layers, rail, clients, roles=both or roles["client"])
            self._add_sides(layers, peer_rail, servers, roles=both or roles["server"])
            for (client, server), count in Counter(pairs).items():
                pair = suspects.get(((client, rail), (server, peer_rail)))
                if pair:
                    self._add(layers, [pair], count)
                if client == server:
                    # A test of a host with itself is one of its tests, not two.
                    self._add(layers, [Scope("host", None, client)], -count)

    def _add_sides(self, layers: Sequence[str], rail: str, counts: Mapping[str, int], *, roles: Sequence[str]) -> None:
        """Count the passes of hosts and of what their ports on ``rail`` did."""
        for host, count in counts.items():
            own = [Scope(role, rail, host) for role in roles]
            self._add(layers, [Scope("host", None, host), Scope("port", rail, host), *own], count)

    def _add(self, layers: Sequence[str], scopes: Sequence[Scope], count: int) -> None:
        for layer in layers:
            for scope in scopes:
                self.passes[layer, scope] += count

    def hosts(self) -> set[str]:
        """Return everybody who was in a test."""
        return set().union(*self.hosts_of.values()) if self.hosts_of else set()

    def clears(self, failure: Failure, end: End) -> bool:
        """Return whether what the port ``end`` did in a failed test is known to work with somebody else."""
        host, rail = end
        return all(self.passes[failure.layers[-1], Scope(role, rail, host)] for role in failure.roles(end))

    def good_partners(self, failures: Sequence[Failure], scope: Scope) -> set[str]:
        """Return whom the host or port of ``scope`` met in ``failures`` and whose own side is cleared."""
        return {label(end, scope) for f in failures for end in f.partners(scope) if self.clears(f, end)}

    def met_a_weak_group(self, failures: Sequence[Failure], scope: Scope) -> bool:
        """Return whether all partners are in one group that has other low readings: it may be their leaf switch."""
        homes = self.view.homes
        groups = {homes.get(host, "") for failure in failures for host, _rail in failure.partners(scope)}
        if len(groups) != 1 or "" in groups:
            return False
        rails = {rail for failure in failures for rail in failure.rails}
        low = [*(one.ends for one in self.failures), *self.flips]
        others = [ends for ends in low if scope.host not in {host for host, _rail in ends}]
        inside = [ends for ends in others if any(rail in rails and homes.get(host) in groups for host, rail in ends)]
        return len(inside) >= _OTHERS


def _ways_between(rail: str, peer_rail: str) -> list[Scope]:
    """Return the rails that a test needed, and the way between them."""
    if rail == peer_rail:
        return [Scope("rail", rail), Scope("all")]
    crossed = [Scope("routing"), routing_scope((rail, peer_rail))]
    return [Scope("rail", rail), Scope("rail", peer_rail), *crossed, Scope("all")]


def _failure(result: Result) -> Failure:
    test = subject(result)
    ends = (test.client, test.rail), (test.server, test.server_rail)
    reason = result.get("reason") or ""
    ways = KINDS[test.kind].ways(*ends)
    return Failure(test, ends, ways, layers_of(result), result["verdict"], reason, result.get("passes", ()))
