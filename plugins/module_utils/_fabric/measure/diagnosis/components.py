# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What low readings have in common: ports and hosts, and the paths between groups of hosts.

A reading is low when it is below the limit or shows a fault. It counts for every component that its test needs.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from functools import lru_cache
from typing import Any, NamedTuple

from ...intent.kinds import KINDS

Result = Mapping[str, Any]
# From what few tests need to what most do; groups are those of rdma_fabric.tests.groups.
NARROW_FIRST = ("pair", "direction", "port", "groups", "uplinks", "group", "paths", "host", "rail", "run")
# What to check of a component.
REMEDIES = {
    "pair": "check the path between them",
    "direction": "check the port, its cable and its host",
    "port": "check the port, its cable and its host",
    "groups": "check the spines and uplinks between these groups",
    "uplinks": "check the uplinks of this group",
    "group": "check the leaf switch of this group",
    "paths": "check the spines; which one is unknown",
    "host": "check the host",
    "rail": "check the switches of the rail; which one is unknown",
    "run": "check what else used the hosts and the fabric, and measure again",
}
# What hosts share beside rails.
PATHS = ("group", "uplinks", "groups", "paths")


class View(NamedTuple):
    """How results are read. ``background``: share of low readings without a cause; ``homes``: host -> its group."""

    background: float
    homes: Mapping[str, str]


# Where neither is known.
VIEW = View(0.001, {})


class Component(NamedTuple):
    """Something that can be unsteady, of one of the kinds of NARROW_FIRST; ``one`` and ``other``: hosts or groups.

    ``other`` of a direction: send or receive. A rail "" is all rails.
    """

    kind: str
    rail: str = ""
    one: str = ""
    other: str = ""


# Two ports: (host, rail), in order.
_Pair = tuple[tuple[str, str], tuple[str, str]]


class Low(NamedTuple):
    """A result with a ``number`` of low readings, and the components that its test needs."""

    result: Result
    number: int
    parts: tuple[Component, ...]


def place_of(part: Component) -> str:
    """Return a component in words."""
    kind, rail, one, other = part
    words = {
        "rail": rail,
        "port": f"{one} {rail}",
        "pair": f"{one} and {other} {rail}",
        "host": f"{one}, all rails",
        "direction": f"{one} {rail} as {'sender' if other == 'send' else 'receiver'}",
        "group": f"group {one} {rail}",
        "uplinks": f"group {one} {rail}, tests with other groups",
        "groups": f"groups {one} and {other} {rail}",
        "paths": f"{rail}, tests between groups",
        "run": "this run, all rails",
    }
    return words[kind]


def readings(result: Result) -> tuple[int, int]:
    """Return how many readings of a test were low, and how many there are."""
    passes = result.get("passes")
    if passes and len(passes) == 1:
        verdict = passes[0]["verdict"]
        low = int(verdict == "fail" or bool(passes[0].get("fault")))
        return low, low + (verdict == "pass")
    if not passes:
        return int(result["verdict"] == "fail"), int(result["verdict"] != "no_data")
    low = sum(one["verdict"] == "fail" or bool(one.get("fault")) for one in passes)
    return low, low + sum(one["verdict"] == "pass" for one in passes)


def flipped(result: Result) -> bool:
    """Return whether a test passed of which another reading was too low, or showed a fault."""
    return result["verdict"] == "pass" and len(result["passes"]) > 1 and readings(result)[0] > 0


def ends_of(result: Result) -> tuple[tuple[str, str], tuple[str, str]]:
    """Return the ports of a test: those of the client and of the server."""
    rail = result["rail"]
    return (result["client"], rail), (result["server"], result.get("peer_rail") or rail)


@dataclass
class Totals:
    """How many readings each component has."""

    tests: Counter[Component] = field(default_factory=Counter)
    compared: Counter[str] = field(default_factory=Counter)

    @classmethod
    def of(cls, results: Iterable[Result], homes: Mapping[str, str]) -> Totals:
        """Count the readings of results."""
        sides: Counter[tuple[str, str, str]] = Counter()
        pairs: Counter[_Pair] = Counter()
        for result in results:
            count = readings(result)[1]
            client, server, rail = result["client"], result["server"], result["rail"]
            if not count or client == server:
                continue
            peer_rail = result.get("peer_rail") or rail
            roles = _roles(result["test"])
            sides[client, rail, roles[0]] += count
            sides[server, peer_rail, roles[1]] += count
            one, other = (client, rail), (server, peer_rail)
            pairs[(one, other) if one < other else (other, one)] += count
        totals = cls()
        totals._add_sides(sides)
        totals._add_pairs(pairs, homes)
        totals.compared = Counter(component.kind for component in totals.tests)
        return totals

    def _add_sides(self, sides: Mapping[tuple[str, str, str], int]) -> None:
        whole = 0
        for (host, rail, role), count in sides.items():
            self.tests[Component("port", rail, host)] += count
            self.tests[Component("host", "", host)] += count
            whole += count
            if role:
                self.tests[Component("direction", rail, host, role)] += count
        self.tests[Component("run")] = whole // 2

    def _add_pairs(self, pairs: Mapping[_Pair, int], homes: Mapping[str, str]) -> None:
        between: Counter[tuple[str, str, str]] = Counter()
        for (one, other), count in pairs.items():
            self.tests[_pair(one, other)] = count
            if one[1] != other[1]:
                self.tests[Component("rail", one[1])] += count
                self.tests[Component("rail", other[1])] += count
            else:
                between[one[1], homes.get(one[0], ""), homes.get(other[0], "")] += count
        for (rail, home, away), count in between.items():
            self.tests[Component("rail", rail)] += count
            for component in of_groups(rail, home, away):
                self.tests[component] += count

    def rails(self) -> int:
        """Return how many rails have readings."""
        return self.compared["rail"]


@lru_cache(maxsize=64)
def _roles(kind: str) -> tuple[str, str]:
    """Return what client and server of a kind of test do: send or receive, "" for both."""
    ways = KINDS[kind].ways("client", "server")
    own = dict(zip(ways[0], ("send", "receive"))) if len(ways) == 1 else {}
    return own.get("client", ""), own.get("server", "")


def _pair(one: tuple[str, str], other: tuple[str, str]) -> Component:
    return Component("pair", one[1], one[0], other[0] if one[1] == other[1] else f"{other[0]} {other[1]}")


def of_groups(rail: str, one: str, other: str) -> Iterator[Component]:
    """Yield what a test between hosts of two groups needs beside its ports."""
    for group in {one, other} - {""}:
        yield Component("group", rail, group)
    if one != other and one and other:
        yield Component("uplinks", rail, one)
        yield Component("uplinks", rail, other)
        yield Component("groups", rail, *sorted((one, other)))
        yield Component("paths", rail)


def lows_of(results: Iterable[Result], homes: Mapping[str, str]) -> list[Low]:
    """Return the results of tests between two hosts that have low readings."""
    found = []
    for result in results:
        count = readings(result)[0] if result["verdict"] != "no_data" else 0
        if count and result["client"] != result["server"]:
            found.append(Low(result, count, tuple(_parts(result, homes))))
    return found


def _parts(result: Result, homes: Mapping[str, str]) -> Iterator[Component]:
    ends = ends_of(result)
    ways = KINDS[result["test"]].ways(*ends)
    yield Component("run")
    for host, rail in ends:
        yield Component("port", rail, host)
        yield Component("host", "", host)
    if len(ways) == 1:
        for role, (host, rail) in zip(("send", "receive"), ways[0]):
            yield Component("direction", rail, host, role)
    one, other = sorted(ends)
    yield _pair(one, other)
    for rail in sorted({one[1], other[1]}):
        yield Component("rail", rail)
    if one[1] == other[1]:
        yield from of_groups(one[1], homes.get(one[0], ""), homes.get(other[0], ""))
