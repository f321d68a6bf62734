# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The fewest causes that explain every test that did not pass: a set cover over what each test needed.

Candidates are parts that no test survived. The one that explains most is taken first; what is left then is tried with
parts that some tests survived, and at last blamed on pairs.
"""

from __future__ import annotations

import heapq
import statistics
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass

from .fleet import Failure, Fleet, Part, Scope

# Of two that explain as much, the one further left is taken.
_ORDER = ("port", "host", "send", "receive")
# A part that some tests survive is one cause instead of several pairs when most of its tests with so many partners
# did not pass, or any share of them with twice as many.
_PARTNERS = 3
# More pairs than this on one rail share a path between groups of hosts.
_MANY_PAIRS = 8


@dataclass(frozen=True)
class Cause:
    """A part with the failures that it explains. ``named``: their reasons say so themselves."""

    layer: str
    scope: Scope
    failures: tuple[Failure, ...]
    named: bool = False


def causes(fleet: Fleet) -> list[Cause]:
    """Return the fewest causes that explain all failures, each failure under every cause that it needs."""
    named = list(_named(fleet))
    left = [f for f in fleet.failures if not any(_needs(f, cause.scope) for cause in named)]
    found = named
    for explain in (_whole, _steady, _unsteady, _pairs):
        more = list(explain(fleet, left))
        found += more
        left = _without(left, more)
    return found


def _without(failures: Sequence[Failure], found: Iterable[Cause]) -> list[Failure]:
    gone = {failure for cause in found for failure in cause.failures}
    return [failure for failure in failures if failure not in gone]


def _needs(failure: Failure, scope: Scope) -> bool:
    if scope.rail not in (None, failure.rail):
        return False
    return scope.host is None or scope.host in (failure.client, failure.server)


def _named(fleet: Fleet) -> Iterator[Cause]:
    """Yield hosts and ports that reasons begin with (``h1: ...``, ``h1 rail0: ...``), unless that is most of them."""
    told = {scope for failure in fleet.failures for scope in _told(failure)}
    hosts = {scope for scope in told if scope.kind == "host"}
    if 2 * len(hosts) > len(fleet.hosts()):
        hosts = set()
    ports = {scope for scope in told if scope.kind == "port" and Scope("host", None, scope.host) not in hosts}
    per_rail = Counter(scope.rail for scope in ports)
    ports = {s for s in ports if s.rail and 2 * per_rail[s.rail] <= len(fleet.hosts_of[s.rail])}
    for scope in sorted(hosts | ports, key=str):
        failures = tuple(failure for failure in fleet.failures if _needs(failure, scope))
        yield Cause("base", scope, failures, named=True)


def _told(failure: Failure) -> Iterator[Scope]:
    for part in failure.reason.split("; ") if failure.reason else ():
        for host in (failure.client, failure.server):
            if part.startswith(f"{host}: "):
                yield Scope("host", None, host)
            elif part.startswith(f"{host} {failure.rail}: "):
                yield Scope("port", failure.rail, host)


def _whole(fleet: Fleet, failures: Sequence[Failure]) -> Iterator[Cause]:
    """Yield the fabric, or rails, on which nothing passed in some layer."""
    groups: dict[Part, list[Failure]] = {}
    for failure in failures:
        for scope in (Scope("all"), Scope("rail", failure.rail)):
            layer = _layer(fleet, failure, scope)
            if layer:
                groups.setdefault((layer, scope), []).append(failure)
    done: set[Failure] = set()
    for (layer, scope), group in sorted(groups.items(), key=lambda item: (item[0][1].kind != "all", str(item[0]))):
        rails = {failure.rail for failure in group}
        hosts = set().union(*(fleet.hosts_of[rail] for rail in rails))
        if (scope.kind == "all" and len(rails) < 2) or done.issuperset(group):
            continue
        if len(hosts) == 2 or not center(group):
            done.update(group)
            yield Cause(layer, scope, tuple(group))


def center(failures: Sequence[Failure]) -> set[str]:
    """Return who took part in every one of the failures: it may be this host as well as what they all used."""
    ends = {failures[0].client, failures[0].server}
    for failure in failures:
        ends &= {failure.client, failure.server}
        if not ends:
            break
    return ends


def _layer(fleet: Fleet, failure: Failure, scope: Scope) -> str:
    """Return the first layer of a failure in which nothing that needs ``scope`` passed, "" when there is none."""
    return next((layer for layer in failure.layers if not fleet.passes[layer, scope]), "")


def _scopes(failure: Failure, host: str) -> list[Scope]:
    """Return what a failed test needed of one of its hosts."""
    sides = [Scope(role, failure.rail, host) for role in failure.roles(host)]
    return [Scope("host", None, host), Scope("port", failure.rail, host), *sides]


def _steady(fleet: Fleet, failures: Sequence[Failure]) -> Iterator[Cause]:
    """Yield hosts, ports and directions that no test survived, as few as explain the failures."""
    explains: dict[Part, list[Failure]] = {}
    # Tests of a port are many and need the same: what is not cleared of it is looked up once.
    known: dict[tuple[object, ...], list[list[Failure]]] = {}
    for failure in failures:
        for host in (failure.client, failure.server):
            key = (failure.rail, host, failure.layers, *failure.roles(host))
            if key not in known:
                parts = [(_layer(fleet, failure, scope), scope) for scope in _scopes(failure, host)]
                known[key] = [explains.setdefault(part, []) for part in parts if part[0]]
            for group in known[key]:
                group.append(failure)
    # On one rail a host is not more than its port.
    for part in [p for p in explains if p[1].kind == "host" and len({f.rail for f in explains[p]}) < 2]:
        del explains[part]
    chosen = _cover(explains)
    for part in _needed(fleet, explains, chosen):
        yield Cause(*part, tuple(explains[part]))


def _cover(explains: dict[Part, list[Failure]]) -> list[Part]:
    """Return parts, each time the one that explains most of what is left."""
    heap = [(-len(group), _ORDER.index(part[1].kind), str(part), part) for part, group in explains.items()]
    heapq.heapify(heap)
    done: set[Failure] = set()
    chosen = []
    while heap:
        size, order, text, part = heapq.heappop(heap)
        left = sum(failure not in done for failure in explains[part])
        if left == -size:
            chosen.append(part)
            done.update(explains[part])
        elif left:
            heapq.heappush(heap, (-left, order, text, part))
    return chosen


def _needed(fleet: Fleet, explains: dict[Part, list[Failure]], chosen: Sequence[Part]) -> list[Part]:
    """Return the chosen parts without those whose every failure another chosen one explains as well."""
    count = Counter(failure for part in chosen for failure in explains[part])
    kept = []
    for part in sorted(chosen, key=lambda part: len(explains[part])):
        group = explains[part]
        if all(count[failure] > 1 for failure in group):
            count.subtract(group)
        else:
            kept.append(part)
    return [part for part in chosen if part in kept]


def _unsteady(fleet: Fleet, failures: Sequence[Failure]) -> Iterator[Cause]:
    """Yield hosts, ports and directions that some tests survived, where many partners met trouble only there."""
    left = list(failures)
    while left:
        groups: dict[Scope, list[Failure]] = {}
        for failure in left:
            for host in (failure.client, failure.server):
                for scope in _scopes(failure, host):
                    groups.setdefault(scope, []).append(failure)
        # Here the narrowest is taken: a port that passes one way is a direction.
        fitting = [(len(g), _ORDER.index(s.kind), s) for s, g in groups.items() if _is_star(fleet, s, g, groups)]
        if not fitting:
            return
        scope = max(fitting, key=lambda fit: (*fit[:2], str(fit[2])))[2]
        cause = Cause(groups[scope][0].layers[0], scope, tuple(groups[scope]))
        yield cause
        left = _without(left, [cause])


def _is_star(fleet: Fleet, scope: Scope, group: Sequence[Failure], groups: dict[Scope, list[Failure]]) -> bool:
    partners = {failure.other(scope.host) for failure in group}
    if len(partners) < _PARTNERS:
        return False
    if scope.kind == "host" and {f.rail for f in group} != _rails(fleet, scope.host):
        return False
    share = len(group) / (len(group) + fleet.passes["base", scope])
    if share <= 0.5 and len(partners) < 2 * _PARTNERS:
        return False
    theirs = [len(groups[Scope("port", f.rail, f.other(scope.host))]) for f in group]
    return scope.kind == "host" or 2 * statistics.median(theirs) <= len(group)


def _rails(fleet: Fleet, host: str | None) -> set[str]:
    rails = {rail for rail, hosts in fleet.hosts_of.items() if host in hosts}
    return rails if len(rails) > 1 else set()


def _pairs(fleet: Fleet, failures: Sequence[Failure]) -> Iterator[Cause]:
    """Yield one cause a pair; pairs that failed on all their rails are one, and so are very many on one rail."""
    groups: dict[Scope, list[Failure]] = {}
    for failure in failures:
        groups.setdefault(failure.pair, []).append(failure)
    per_rail = Counter(scope.rail for scope in groups)
    per_hosts = Counter((scope.host, scope.peer) for scope in groups)
    joined: dict[Part, list[Failure]] = {}
    for scope, group in groups.items():
        common = [rail for rail, hosts in fleet.hosts_of.items() if {scope.host, scope.peer} <= hosts]
        layer = _layer(fleet, group[0], scope) or group[0].layers[0]
        if 1 < per_hosts[scope.host, scope.peer] == len(common):
            scope = scope._replace(rail=None)
        elif per_rail[scope.rail] > _MANY_PAIRS:
            scope = Scope("path", scope.rail)
        joined.setdefault((layer, scope), []).extend(group)
    for part, group in joined.items():
        yield Cause(*part, tuple(group))
