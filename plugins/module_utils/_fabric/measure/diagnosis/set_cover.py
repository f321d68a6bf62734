# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The hosts, ports and directions that explain failures best: a set cover, taken greedily by likelihood.

A part that no test survived may always be taken. One that some tests survive is taken only when many partners are in
trouble with it and hardly with anybody else: else it is a good part that met bad ones, or some bad pairs.
"""

from __future__ import annotations

import heapq
import math
import statistics
from collections import Counter
from collections.abc import Iterator, Sequence
from itertools import chain

from .pass_index import BASE, OPPOSITE, End, Failure, Fleet, Part, Scope

# So many partners in trouble are no chance any more; twice as many whatever the share of tests is.
FEW = 3
# How seldom a test fails without a cause.
_CHANCE = 1e-3
# Of two that explain as well, the one further left is taken.
_ORDER = ("port", "host", "send", "receive")


class Cover:
    """Working copy: which failures each part would explain, and how many of them are left."""

    def __init__(self, fleet: Fleet, failures: Sequence[Failure]) -> None:
        self.fleet = fleet
        self.needs = _needs(fleet, failures)
        self.explains: dict[Part, list[Failure]] = {}
        for failure, parts in self.needs.items():
            for part in chain(*parts):
                self.explains.setdefault(part, []).append(failure)
        self.left = {part: len(group) for part, group in self.explains.items()}
        self.done: set[Failure] = set()

    def chosen(self) -> list[tuple[Part, list[Failure]]]:
        """Return the parts that explain most of the failures, each with all that it explains."""
        waiting = [part for part, group in self.explains.items() if _may_be(self.fleet, part, group)]
        taken: list[Part] = []
        while True:
            new, waiting = self._round(waiting)
            taken += new
            # What was taken may have cleared the view of what had to wait.
            if not new or not waiting:
                return [(part, self.explains[part]) for part in self._needed(taken)]

    def _round(self, parts: Sequence[Part]) -> tuple[list[Part], list[Part]]:
        """Return the parts that were taken, best first, and those that may not be taken yet."""
        heap = [(-self._score(part), _ORDER.index(part[1].kind), str(part), part) for part in parts]
        heapq.heapify(heap)
        taken: list[Part] = []
        waiting: list[Part] = []
        while heap:
            score, order, text, part = heapq.heappop(heap)
            now = -self._score(part)
            if now > score:
                if now < 0:
                    heapq.heappush(heap, (now, order, text, part))
            elif self.fleet.passes[part] == 0 or self._is_star(part):
                taken.append(part)
                self._take(part)
            else:
                waiting.append(part)
        return taken, waiting

    def _score(self, part: Part) -> float:
        """Return how much likelier the failures that are left become when the part is bad, as a logarithm."""
        failed, passed = self.left[part], self.fleet.passes[part]
        if not failed:
            return 0.0
        share = failed / (failed + passed)
        return failed * math.log(share / _CHANCE) + (passed * math.log(1 - share) if passed else 0.0)

    def _take(self, part: Part) -> None:
        for failure in self.explains[part]:
            if failure not in self.done:
                self.done.add(failure)
                for other in chain(*self.needs[failure]):
                    self.left[other] -= 1

    def _is_star(self, part: Part) -> bool:
        scope = part[1]
        group = [failure for failure in self.explains[part] if failure not in self.done]
        met = {end for failure in group for end in failure.partners(scope)}
        partners = {host for host, _rail in met}
        share = len(group) / (len(group) + self.fleet.passes[part])
        if len(partners) < FEW or (share <= 0.5 and len(partners) < 2 * FEW):
            return False
        if not self._is_bad_all_over(scope):
            return False
        whole = {Scope("host", None, host) for host in partners}
        suspects = whole if scope.kind == "host" else {Scope("port", rail, host) for host, rail in met}
        theirs = [self.left.get((BASE, suspect), 0) for suspect in suspects]
        return 2 * statistics.median(theirs) <= len(group)

    def _is_bad_all_over(self, scope: Scope) -> bool:
        """Return whether more than a third of the tests failed on each rail of a host, in each direction of a port."""
        if scope.kind == "host":
            rails = [rail for rail, hosts in self.fleet.hosts_of.items() if scope.host in hosts]
            inside = [Scope("port", rail, scope.host) for rail in rails]
        else:
            inside = [scope._replace(kind=role) for role in OPPOSITE] if scope.kind == "port" else []
        return all(2 * self.left.get((BASE, part), 0) > self.fleet.passes[BASE, part] for part in inside)

    def _needed(self, taken: Sequence[Part]) -> list[Part]:
        """Return the parts without those whose every failure another one explains as well."""
        count = Counter(failure for part in taken for failure in self.explains[part])
        dropped = set()
        for part in sorted(taken, key=lambda part: len(self.explains[part])):
            group = self.explains[part]
            if all(count[failure] > 1 for failure in group):
                count.subtract(group)
                dropped.add(part)
        return [part for part in taken if part not in dropped]


def _needs(fleet: Fleet, failures: Sequence[Failure]) -> dict[Failure, tuple[list[Part], list[Part]]]:
    """Return the parts that each failure needed of its client and of its server."""
    # Tests of a port are many and need the same: which parts these are is worked out once.
    known: dict[tuple[object, ...], list[Part]] = {}

    def of_end(failure: Failure, end: End) -> list[Part]:
        key = (end, failure.layers, *failure.roles(end))
        if key not in known:
            known[key] = list(_of_end(fleet, failure, end))
        return known[key]

    needs = {failure: (of_end(failure, failure.ends[0]), of_end(failure, failure.ends[1])) for failure in failures}
    for failure, (of_client, of_server) in needs.items():
        if failure.client == failure.server:
            # It needs its host once.
            needs[failure] = of_client, [part for part in of_server if part not in of_client]
    return needs


def _may_be(fleet: Fleet, part: Part, group: Sequence[Failure]) -> bool:
    """Return whether a part can be a cause at all; on one rail a host is not more than its port."""
    if fleet.passes[part] and len(group) < FEW:
        return False
    scope = part[1]
    return scope.kind != "host" or len({rail for failure in group for _host, rail in failure.own(scope)}) > 1


def _of_end(fleet: Fleet, failure: Failure, end: End) -> Iterator[Part]:
    """Yield what a failed test needed of one of its ends, in each layer that fewer tests survived than the last."""
    host, rail = end
    sides = [Scope(role, rail, host) for role in failure.roles(end)]
    for scope in (Scope("host", None, host), Scope("port", rail, host), *sides):
        least = -1
        for layer in failure.layers:
            passed = fleet.passes[layer, scope]
            if least < 0 or passed < least:
                yield layer, scope
                least = passed
