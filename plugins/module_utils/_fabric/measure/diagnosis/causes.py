# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The fewest causes that explain every test that did not pass.

First what reasons name, then the fabric, rails and ways between rails on which nothing passed, then the hosts, ports
and directions that explain most, and at last pairs.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass

from ..schedule.schedule import Measurement, subject
from .components import Component, Low, Totals, lows_of, of_groups
from .explain import explain
from .pass_index import BASE, End, Failure, Fleet, Part, Scope, routing_scope
from .set_cover import FEW, Cover
from .significance import chance

# More pairs than this on one rail share a path between groups of hosts.
_MANY_PAIRS = 8
# From what most hosts share to what few do.
_WIDEST = ("all", "rail", "routing")
# Of groups, from what most tests use on; of two groups no one knows whose uplinks are bad.
_WIDE = ("group", "paths", "uplinks", "groups")
_FEW_GROUPS = 2
# Share of a rail's tests from which on it is the rail; two halves that do not reach each other fail a half.
_MOST = 2 / 3
# Components of hosts, which have a cause of their own.
_SINGLE = ("pair", "direction", "port", "host")
# How seldom one of as many ports fails by chance as often as one that is named on a rail whose tests come and go.
_SELDOM = 0.01


@dataclass(frozen=True)
class Cause:
    """A part with the failures that it explains. ``named``: their reasons say so themselves.

    ``component``: what it is about, where that is a path or comes and goes. ``unsteady``: others of its tests passed.
    """

    layer: str
    scope: Scope
    failures: tuple[Failure, ...]
    named: bool = False
    component: Component | None = None
    unsteady: bool = False


def causes(fleet: Fleet) -> list[Cause]:
    """Return the fewest causes that explain all failures, each failure under every cause that it needs."""
    named = list(_named(fleet))
    left = _without(fleet.failures, named)
    whole = list(_whole(fleet, left))
    left = _without(left, whole)
    groups = list(_groups(fleet, left))
    left = _without(left, groups)
    whole += groups
    shaky = _shaky(fleet, left)
    parts = list(_parts(fleet, left, shaky))
    rails = list(_unsteady_rails(fleet, left, parts))
    if rails:
        left = _without(left, rails)
        parts = list(_parts(fleet, left, shaky))
    parts = _of_their_own(fleet, parts, [*named, *whole, *rails])
    certain = [*named, *whole, *rails, *parts]
    unsteady = list(_unsteady(fleet, _without(left, parts), certain))
    paths = list(_paths(_without(left, [*parts, *unsteady]), shaky))
    pairs = _pairs(fleet, _without(left, [*parts, *unsteady, *paths]))
    return [*certain, *unsteady, *paths, *pairs]


def _without(failures: Sequence[Failure], found: Iterable[Cause]) -> list[Failure]:
    gone = {failure for cause in found for failure in cause.failures}
    return [failure for failure in failures if failure not in gone]


def _named(fleet: Fleet) -> Iterator[Cause]:
    """Yield hosts and ports that reasons begin with (``h1: ...``, ``h1 rail0: ...``), unless that is most of them."""
    told = {scope for failure in fleet.failures for scope in _told(failure)}
    hosts = {scope for scope in told if scope.kind == "host"}
    if 2 * len(hosts) > len(fleet.hosts()):
        hosts = set()
    ports = {scope for scope in told if scope.kind == "port" and Scope("host", None, scope.host) not in hosts}
    per_rail = Counter(scope.rail for scope in ports)
    ports = {s for s in ports if s.rail and 2 * per_rail[s.rail] <= len(fleet.hosts_of[s.rail])}
    groups: dict[Scope, list[Failure]] = {scope: [] for scope in sorted(hosts | ports, key=str)}
    for failure in fleet.failures:
        hosts_of = (Scope("host", None, host) for host, _rail in failure.ends)
        ports_of = (Scope("port", rail, host) for host, rail in failure.ends)
        for scope in dict.fromkeys((*hosts_of, *ports_of)):
            if scope in groups:
                groups[scope].append(failure)
    for scope, group in groups.items():
        yield Cause(BASE, scope, tuple(group), named=True)


def _told(failure: Failure) -> Iterator[Scope]:
    if not failure.firm:
        # A lost tester is named by absence.py.
        return
    for part in failure.reason.split("; ") if failure.reason else ():
        for host, rail in failure.ends:
            if part.startswith(f"{host}: "):
                yield Scope("host", None, host)
            elif part.startswith(f"{host} {rail}: "):
                yield Scope("port", rail, host)


def _whole(fleet: Fleet, failures: Sequence[Failure]) -> Iterator[Cause]:
    """Yield the fabric, rails, or ways between rails, on which nothing passed in some layer."""
    groups: dict[Part, list[Failure]] = {}
    for failure in failures:
        for scope in _shared(failure):
            layer = _layer(fleet, failure, scope)
            if layer:
                groups.setdefault((layer, scope), []).append(failure)
    done: set[Failure] = set()
    for (layer, scope), group in sorted(groups.items(), key=_width):
        rails = {rail for failure in group for rail in failure.rails}
        hosts = set().union(*(fleet.hosts_of[rail] for rail in rails))
        if scope.kind == "routing":
            # What a bad rail explains says nothing about the ways between rails.
            group = [failure for failure in group if failure not in done]
        if (scope.kind == "all" and len(rails) < 2) or done.issuperset(group):
            continue
        if len(hosts) == 2 or not center(group):
            done.update(group)
            yield Cause(layer, _narrowed(scope, group), tuple(group))


def _groups(fleet: Fleet, failures: Sequence[Failure]) -> Iterator[Cause]:
    """Yield leaf switches, their uplinks and paths between groups on which no test of several hosts passed."""
    homes = fleet.view.homes
    if not homes or not failures:
        return
    failed: dict[Component, list[Failure]] = {}
    for failure in failures:
        if len(failure.rails) == 1 and failure.layers:
            one, other = (homes.get(name, "") for name in (failure.client, failure.server))
            for part in of_groups(failure.rails[0], one, other):
                failed.setdefault(part, []).append(failure)
    alive = {
        part
        for result in fleet.results
        if result["verdict"] == "pass"
        for part in of_groups(result["rail"], homes.get(result["client"], ""), homes.get(result["server"], ""))
    }
    done: set[Failure] = set()
    # The widest first: a leaf switch has its uplinks, and all paths those of each group.
    for part, group in sorted(failed.items(), key=lambda item: (_WIDE.index(item[0].kind), item[0])):
        left = [failure for failure in group if failure not in done]
        if part not in alive and left and _several(homes, part, left) and fleet.passes[BASE, Scope("rail", part.rail)]:
            done.update(left)
            yield Cause(BASE, _scope_of(part), tuple(left), component=part)


def _several(homes: Mapping[str, str], part: Component, group: Sequence[Failure]) -> bool:
    """Return whether several hosts on each side of a path failed: of one, its port may be the cause."""
    hosts = {name for failure in group for name in (failure.client, failure.server)}
    counts = Counter(homes.get(name, "") for name in hosts)
    ends = [name for name in (part.one, part.other) if name] or list(counts)
    # What several other groups fail with is no matter of one of them.
    others = part.kind in ("group", "groups") or len(counts) > _FEW_GROUPS
    return others and all(counts[name] > 1 for name in ends)


def _width(item: tuple[Part, list[Failure]]) -> tuple[int, bool, str]:
    """Sort what most hosts share to the front; all ways between rails come before single ones."""
    scope = item[0][1]
    return _WIDEST.index(scope.kind), scope.rail is not None, str(item[0])


def _shared(failure: Failure) -> list[Scope]:
    """Return what a failed test shares with others beside its hosts."""
    rails = [Scope("rail", rail) for rail in failure.rails]
    crossed = [Scope("routing"), routing_scope(failure.rails)] if len(failure.rails) > 1 else []
    return [Scope("all"), *rails, *crossed]


def _narrowed(scope: Scope, group: Sequence[Failure]) -> Scope:
    """Return the way between two rails where nothing else was tried, all such ways where every test crossed."""
    rails = {failure.rails for failure in group}
    if scope.kind == "rail" or any(len(pair) == 1 for pair in rails):
        return scope
    return Scope("routing") if len(rails) > 1 else routing_scope(rails.pop())


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


def _parts(fleet: Fleet, left: Sequence[Failure], shaky: Mapping[str, float]) -> Iterator[Cause]:
    """Yield hosts, ports and directions, but for those that fail no more often than others on a ``shaky`` rail may."""
    for part, failures in Cover(fleet, left).chosen():
        cause = Cause(*part, tuple(failures))
        if not _by_chance(fleet, cause, shaky):
            yield cause


def _of_their_own(fleet: Fleet, parts: Sequence[Cause], known: Sequence[Cause]) -> list[Cause]:
    """Return the parts without those that fail no more often than the paths that all of their failures used."""
    steady = [cause for cause in parts if not fleet.passes[cause.layer, cause.scope]]
    if len(steady) == len(parts):
        return steady
    found, totals = _comes_and_goes(fleet, [*known, *steady])
    wide = [
        ({subject(low.result) for low in own}, sum(low.number for low in own) / totals.tests[part])
        for part, own in found
        if part.kind not in _SINGLE
    ]
    return [
        cause
        for cause in parts
        if cause in steady or not any(_is_usual(fleet, cause, tests, share=share) for tests, share in wide)
    ]


def _is_usual(fleet: Fleet, cause: Cause, tests: Collection[Measurement], *, share: float) -> bool:
    """Return whether a part may well fail so often because of what reads low in this ``share`` of its ``tests``."""
    failed = len(cause.failures)
    if sum(failure.test in tests for failure in cause.failures) < _MOST * failed:
        return False
    alike = 2 * max(len(fleet.hosts_of[rail]) for failure in cause.failures for rail in failure.rails)
    return alike * chance(failed, failed + fleet.passes[cause.layer, cause.scope], share) >= _SELDOM


def _shaky(fleet: Fleet, failures: Sequence[Failure]) -> dict[str, float]:
    """Return the rails on which tests of many ports come and go, each with the share of its tests that failed once."""
    flips: dict[str, list[End]] = {}
    for ends in fleet.flips if failures else ():
        if ends[0][1] == ends[1][1]:
            flips.setdefault(ends[0][1], []).extend(ends)
    found = {}
    for rail, ports in flips.items():
        tests = len(ports) // 2
        if tests >= FEW and 2 * max(Counter(ports).values()) <= tests:
            failed = sum(rail in failure.rails for failure in failures)
            found[rail] = min(0.99, (failed + tests) / (failed + fleet.passes[BASE, Scope("rail", rail)]))
    return found


def _by_chance(fleet: Fleet, cause: Cause, shaky: Mapping[str, float]) -> bool:
    """Return whether one of as many ports may well fail so often on a rail whose tests come and go."""
    rails = {rail for failure in cause.failures for rail in failure.rails}
    if not rails <= shaky.keys():
        return False
    share = max(shaky[rail] for rail in rails)
    if all(failure.repeated for failure in cause.failures):
        share *= share
    failed = len(cause.failures)
    alike = 2 * max(len(fleet.hosts_of[rail]) for rail in rails)
    return alike * chance(failed, failed + fleet.passes[cause.layer, cause.scope], share) >= _SELDOM


def _paths(failures: Sequence[Failure], shaky: Mapping[str, float]) -> Iterator[Cause]:
    """Yield the shared path of each rail whose tests come and go: what failed there twice is no matter of pairs."""
    for rail in sorted(shaky):
        group = [failure for failure in failures if failure.rails == (rail,)]
        if group:
            yield Cause(BASE, Scope("path", rail), tuple(group))


def _unsteady(fleet: Fleet, failures: Sequence[Failure], certain: Iterable[Cause]) -> Iterator[Cause]:
    """Yield what comes and goes with more low readings than chance explains: no pair is to blame for these."""
    open_ = {failure.test: failure for failure in failures}
    for part, own in _comes_and_goes(fleet, certain)[0] if failures else ():
        tests = (subject(low.result) for low in own)
        group = [open_[test] for test in tests if test in open_]
        if group and part.kind != "pair":
            yield Cause(BASE, _scope_of(part), tuple(group), component=part, unsteady=True)


def _comes_and_goes(fleet: Fleet, known: Iterable[Cause]) -> tuple[list[tuple[Component, list[Low]]], Totals]:
    """Return what explains the low readings beside those of ``known`` causes, and how many readings there are."""
    gone = {failure.test for cause in known for failure in cause.failures}
    # What crosses from rail to rail has causes of its own.
    left = [result for result in fleet.results if not result.get("peer_rail") and subject(result) not in gone]
    totals = Totals.of(left, fleet.view.homes)
    return explain(lows_of(left, fleet.view.homes), totals, fleet.view.background).found, totals


def _scope_of(part: Component) -> Scope:
    if part.kind == "direction":
        return Scope(part.other, part.rail, part.one)
    if part.kind in ("port", "host"):
        return Scope(part.kind, part.rail or None, part.one)
    return Scope("path", part.rail or None)


def _unsteady_rails(fleet: Fleet, failures: Sequence[Failure], parts: Sequence[Cause]) -> Iterator[Cause]:
    """Yield rails on which most tests did not pass, and not because of hosts that are bad on all their rails.

    What no part explains that nothing survived gives it away: were these bad ports, all others would pass.
    """
    steady = [cause for cause in parts if not fleet.passes[cause.layer, cause.scope]]
    own = _without(failures, [cause for cause in parts if cause.scope.kind == "host"])
    for rail in sorted({rail for failure in _without(failures, steady) for rail in failure.rails}):
        group = [failure for failure in own if rail in failure.rails]
        if all(len(failure.rails) > 1 for failure in group):
            # What only crosses from it to other rails does not speak against the rail.
            continue
        if len(group) > _MOST * (len(group) + fleet.passes[BASE, Scope("rail", rail)]) and not center(group):
            yield Cause(BASE, Scope("rail", rail), tuple(group))


def _pairs(fleet: Fleet, failures: Sequence[Failure]) -> Iterator[Cause]:
    """Yield one cause a pair; pairs that failed on all their rails are one, and so are very many on one rail."""
    groups: dict[Scope, list[Failure]] = {}
    for failure in failures:
        groups.setdefault(failure.pair, []).append(failure)
    per_rail = Counter(group[0].rails for group in groups.values())
    per_hosts = Counter((scope.host, scope.peer) for scope in groups if scope.peer_rail is None)
    joined: dict[Part, list[Failure]] = {}
    for scope, group in groups.items():
        common = [rail for rail, hosts in fleet.hosts_of.items() if {scope.host, scope.peer} <= hosts]
        layer = _layer(fleet, group[0], scope) or group[0].layers[0]
        rails = group[0].rails
        if 1 < per_hosts[scope.host, scope.peer] == len(common):
            scope = scope._replace(rail=None, peer_rail=None)
        elif per_rail[rails] > _MANY_PAIRS:
            scope = Scope("path", rails[0], peer_rail=rails[1] if len(rails) > 1 else None)
        joined.setdefault((layer, scope), []).extend(group)
    for part, group in joined.items():
        yield Cause(*part, tuple(group))
