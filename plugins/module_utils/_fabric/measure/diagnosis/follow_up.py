# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What failures point at, and the few further tests that confirm it.

A host that failed is not bad yet: it may have met a bad one. So it is tried again with partners that passed with
others, never with another suspect, until two of them failed with it or one passed. And a single test that nothing else
explains may have failed by chance: it is measured once more before it becomes a diagnosis.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Collection, Iterator, Sequence
from dataclasses import dataclass, field

from ...intent.kinds import KINDS, PROBE
from ..schedule.schedule import Measurement, subject
from . import absence, duplicates, fan, host_memory
from .causes import Cause, causes, center
from .components import VIEW, View
from .pass_index import BASE, GPU, MTU, OPPOSITE, End, Failure, Fleet, Result, Scope
from .permanent import Review, Reviewed
from .significance import decisive, estimated
from .wording import CONFIRMED, ENOUGH_PARTNERS, WHOLE, Diagnosis, is_confirmed, tell

# How often one good partner is used in one go: rounds of the retry, each for one direction.
_USES = 4
# How many tests of a rail are repeated in one go.
_REPEATS = 64


def diagnose(results: Sequence[Result], view: View = VIEW) -> list[Diagnosis]:
    """Return the fewest causes that explain all tests that did not pass, place by place; [] when all passed.

    ``results``: dicts of report.json. Every failure is explained by at least one diagnosis: silence is never a pass.
    """
    told = []
    for where in dict.fromkeys(result["where"] for result in results):
        everything = [result for result in results if result["where"] == where]
        here, gone = absence.split(everything)
        told += absence.diagnoses(where, gone, everything)
        here, hit = duplicates.split(here)
        told += duplicates.diagnoses(where, hit)
        here, slow = host_memory.split(here)
        told += host_memory.diagnoses(where, slow)
        pairs, failed = fan.split(here)
        fleet = Fleet.of(pairs, view)
        told += [tell(fleet, where, cause) for cause in causes(fleet)]
        told += fan.diagnoses(where, failed, pairs, results=here)
    return sorted(told, key=_weight)


def _weight(found: Diagnosis) -> tuple[object, ...]:
    """Sort what takes most with it to the front."""
    first = (found.where, found.kind != "overload", found.confidence != CONFIRMED)
    return (*first, -found.failed, found.rail or "", found.host or "", found.peer or "")


def next_tests(
    results: Reviewed,
    names: Sequence[str],
    rails: Sequence[str],
    *,
    view: View = VIEW,
    named: Callable[[Measurement], bool] = lambda test: True,
) -> list[Measurement]:
    """Return the tests that tell the remaining suspects apart, [] when all is explained or nothing can be tried.

    ``results``: of one place, every test that was asked for among them, also those that could not be played: none
    is asked for twice but the only one that a cause explains and small messages without an answer, and a suspect not
    more than twice a direction, so that this ends. A reading that was asked for as the second has ``repeated`` in the
    result's ``passes``. ``names``, ``rails``: who may be used; ``named``: whether a test is
    not excluded (tests.only). A confirmed suspect is probed as well, to see on which
    layer it fails: from host memory where it failed from GPU memory, then with small messages (MTU), unless large ones
    came through too slowly. Of failed stars their shares are asked for alone. schedule.repeat() makes rounds of the
    tests.
    """
    review = Review.of(results, view)
    if not review.fleet.failures and not review.stars and not review.slow_memory:
        return []
    found = review.causes
    chooser = _Chooser(review.fleet, names, rails, {subject(result) for result in review.results}, named)
    chooser.suspects(found)
    chooser.centers()
    chooser.singles(found)
    chooser.repeats(found)
    chooser.probe(found)
    chooser.shares(review.stars, review.pairs)
    chooser.again(review.slow_memory)
    return sorted(chooser.tests)


def low_once(results: Reviewed, names: Sequence[str], rails: Sequence[str], *, view: View = VIEW) -> list[Measurement]:
    """Return the tests that read low between two ports that pass with others, and may have done so by chance."""
    review = Review.of(results, view)
    if not review.fleet.failures:
        return []
    chooser = _Chooser(review.fleet, names, rails, ())
    chooser.repeats(review.causes)
    return sorted(chooser.tests)


@dataclass
class _Need:
    """A side of a suspect's port on ``rail`` that nobody has seen to work.

    ``role``: what it did in ``failed``, the test to be tried again. ``met``: good partners with whom it failed.
    """

    failed: Measurement
    rail: str
    role: str
    layer: str
    met: set[str] = field(default_factory=set)


@dataclass
class _Chooser:
    """Working copy of one call: what is asked for, and how often each partner is used in it."""

    fleet: Fleet
    names: Sequence[str]
    rails: Sequence[str]
    seen: Collection[Measurement]
    named: Callable[[Measurement], bool] = lambda test: True
    tests: set[Measurement] = field(default_factory=set)
    used: Counter[str] = field(default_factory=Counter)
    places: dict[str, int] = field(default_factory=dict)
    pool: list[str] = field(default_factory=list)

    def __post_init__(self) -> None:
        self.places = {name: place for place, name in enumerate(self.names)}
        passed = {scope.host for _layer, scope in self.fleet.passes if scope.kind == "host"}
        self.pool = [name for name in self.names if name in passed]

    def suspects(self, found: Sequence[Cause]) -> None:
        """Ask for tests of every suspect with partners that passed, all rails of a pair together."""
        needs = self._needs(found)
        for host in sorted(needs, key=lambda host: self.places[host]):
            left = needs[host]
            while left:
                partner, fits = self._partner(host, left)
                if not fits:
                    break
                self.used[partner] += 1
                self.tests.update(_test(need, host, partner) for need in fits)
                left = [need for need in left if need not in fits]

    def _needs(self, found: Sequence[Cause]) -> dict[str, list[_Need]]:
        """Return for every host the sides that failed without a pass and without enough good partners."""
        needs: dict[tuple[str, str, str], _Need] = {}
        closed = {cause.scope for cause in found if is_confirmed(self.fleet, cause) or cause.scope.kind in WHOLE}
        for failure in self.fleet.failures:
            for end in failure.ends:
                for role in self._open(failure, end, closed):
                    need = needs.setdefault((*end, role), _Need(failure.test, end[1], role, failure.layers[-1]))
                    partner = failure.other(end)
                    if role in failure.roles(end) and self.fleet.clears(failure, partner):
                        need.met.add(partner[0])
        by_host: dict[str, list[_Need]] = {}
        for (host, _rail, _role), need in needs.items():
            if len(need.met) < ENOUGH_PARTNERS:
                by_host.setdefault(host, []).append(need)
        return by_host

    def _open(self, failure: Failure, end: End, closed: set[Scope]) -> list[str]:
        """Return the sides of a port in a failed test that neither passed anywhere nor are in a confirmed diagnosis."""
        host, rail = end
        above = {Scope("all"), Scope("rail", rail), Scope("host", None, host), Scope("port", rail, host)}
        if rail not in self.rails or host not in self.places or not closed.isdisjoint(above):
            return []
        sides = {role: Scope(role, rail, host) for role in OPPOSITE}
        layer = failure.layers[-1]
        return [role for role, side in sides.items() if side not in closed and not self.fleet.passes[layer, side]]

    def _partner(self, host: str, needs: Sequence[_Need]) -> tuple[str, list[_Need]]:
        """Return the partner who fits most needs, least used first, and then the next in the order of names."""
        free = [name for name in self.pool if self.used[name] < _USES and name != host]
        later = [name for name in free if self.places[name] > self.places[host]]
        order = [*later, *free[: len(free) - len(later)]]
        best: tuple[str, list[_Need]] = ("", [])
        for uses in range(_USES):
            for partner in order:
                if self.used[partner] != uses:
                    continue
                fits = [need for need in needs if self._fits(need, host, partner)]
                if len(fits) == len(needs):
                    return partner, fits
                best = max(best, (partner, fits), key=lambda found: len(found[1]))
        return best

    def _fits(self, need: _Need, host: str, partner: str) -> bool:
        side = Scope(OPPOSITE[need.role], need.rail, partner)
        test = _test(need, host, partner)
        return bool(self.fleet.passes[need.layer, side]) and test not in self.seen and self.named(test)

    def centers(self) -> None:
        """Where all failures of a rail share one host: ask for a test without it, which tells it from the rail."""
        for rail in self.rails:
            failures = [failure for failure in self.fleet.failures if rail in failure.rails]
            if not failures or self.fleet.passes[BASE, Scope("rail", rail)]:
                continue
            leaves = [name for name in self.names if name in self.fleet.hosts_of[rail] - center(failures)]
            if len(leaves) >= 2 and center(failures):
                ways = ((leaves[0], leaves[1]), (leaves[1], leaves[0]))
                both = {_between(failures[0].test, rail, client, server=server) for client, server in ways}
                self.tests.update(test for test in both.difference(self.seen) if self.named(test))

    def singles(self, found: Sequence[Cause]) -> None:
        """Ask once more for the one test that a cause alone explains, unless that cause is confirmed without it."""
        explained = Counter(failure for cause in found for failure in cause.failures)
        for cause in found:
            own = [failure for failure in cause.failures if explained[failure] == 1]
            if len(own) != 1 or own[0].repeated or cause.named or is_confirmed(self.fleet, cause):
                continue
            # The share of a star is tried alone.
            test = own[0].test._replace(star="")
            is_new = test == own[0].test or test not in self.seen
            if is_new and self._may_use(test) and self._is_last_resort(own[0]):
                self.tests.add(test)

    def repeats(self, found: Sequence[Cause]) -> None:
        """Ask once more for what failed between two ports that both pass with others: it may come and go.

        Of many links a few read low twice by chance: they are asked for until that is no chance.
        """
        tests = len(self.fleet.results)
        # What passed another time shows how often tests read low by chance.
        enough = decisive(tests, estimated(self.fleet.view.background, len(self.fleet.flips), tests))
        named = {failure for cause in found if cause.named for failure in cause.failures}
        asked: Counter[str] = Counter()
        for failure in self.fleet.failures:
            rail = failure.test.rail
            if failure.verdict != "fail" or failure.low >= enough or failure in named or asked[rail] >= _REPEATS:
                continue
            works = all(self.fleet.clears(failure, end) for end in failure.ends)
            if works and not failure.test.star and self._may_use(failure.test):
                self.tests.add(failure.test)
                asked[rail] += 1

    def shares(self, failed: Sequence[fan.Star], pairs: Sequence[Result]) -> None:
        """Ask for the shares of failed stars, each alone: their sum does not tell who held it back."""
        self.tests.update(test for test in fan.shares_alone(failed, pairs) if self._may_use(test))

    def again(self, slow: Sequence[Result]) -> None:
        """Ask once more for what only host memory makes too slow: a single reading may be low by chance."""
        once = [subject(result) for result in slow if len(result.get("passes", ())) < 2]
        self.tests.update(test for test in once[:_REPEATS] if self._may_use(test))

    def _is_last_resort(self, failure: Failure) -> bool:
        """Return whether its hosts are not tried with others, and one of them was seen to work on the rail at all."""
        asked = {end for test in self.tests for end in ((test.client, test.rail), (test.server, test.server_rail))}
        if not asked.isdisjoint(failure.ends):
            return False
        return any(self.fleet.passes[BASE, Scope("port", rail, host)] for host, rail in failure.ends)

    def _may_use(self, test: Measurement) -> bool:
        known = {test.rail, test.server_rail} <= set(self.rails) and {test.client, test.server} <= self.places.keys()
        return known and self.named(test)

    def probe(self, found: Sequence[Cause]) -> None:
        """Ask whether a suspect passes without GPU memory, and if not, without large messages: one at a time."""
        for cause in found:
            whole = cause.scope.kind in WHOLE
            only_time = all(failure.timed_out for failure in cause.failures)
            if cause.named or cause.layer != BASE or not (whole or only_time or is_confirmed(self.fleet, cause)):
                continue
            tried = {side for failure in cause.failures for side in _sides(cause, failure, failure.test)}
            slow = any(failure.arrived for failure in cause.failures)
            large = any(MTU in failure.layers for failure in cause.failures)
            for failure in self._samples(cause, cause.failures):
                new = (test for test in _probes(failure, slow) if tried.isdisjoint(_sides(cause, failure, test)))
                test = next(new, None)
                if test and test not in self.seen and self._may_use(test):
                    self.tests.add(test)
                    tried |= _sides(cause, failure, test)
            if large and not slow:
                # They may have been lost by chance, and then the MTU is not seen.
                silent = self._samples(cause, [failure for failure in cause.failures if failure.silent])
                self.tests.update(failure.test for failure in silent if self._may_use(failure.test))

    def _samples(self, cause: Cause, failures: Sequence[Failure]) -> list[Failure]:
        """Return one failure for every rail and side of a cause, with one partner where it can be, least used first."""
        any_host = cause.scope.host is None or cause.scope.kind == "pair"
        ends = {failure: _end(cause, failure) for failure in failures}
        partners = {failure: failure.other(end) for failure, end in ends.items()}
        one: dict[object, Failure] = {}
        for failure in sorted(failures, key=lambda f: (self.used[partners[f][0]], partners[f], f.client)):
            if any_host or self.fleet.clears(failure, partners[failure]):
                end = ends[failure]
                one.setdefault((end[1], tuple(failure.roles(end)) if cause.scope.host else ()), failure)
        self.used.update({partners[failure][0] for failure in one.values()})
        return list(one.values())


def _test(need: _Need, host: str, partner: str) -> Measurement:
    """Return the test in which ``host`` is on the side of ``need``; who reads is the client and receives."""
    is_client = (need.role == "receive") == (KINDS[need.failed.kind].sends == "server")
    client, server = (host, partner) if is_client else (partner, host)
    return _between(need.failed, need.rail, client, server=server)


def _between(test: Measurement, rail: str, client: str, *, server: str) -> Measurement:
    """Return the same test of two other hosts, on one rail alone."""
    return test._replace(rail=rail, client=client, server=server, peer_rail="", star="")


def _end(cause: Cause, failure: Failure) -> End:
    """Return the end of a failed test that a cause is about, the server's where it is about no host."""
    return next(iter(failure.own(cause.scope)), failure.ends[1])


def _sides(cause: Cause, failure: Failure, test: Measurement) -> set[tuple[str, str, str, str]]:
    """Return which sides of a cause ``test`` tries in the place of a failed one: latency both at once."""
    end = _end(cause, failure)
    roles = failure.roles(end) if cause.scope.host else [""]
    both = KINDS[test.kind].latency and roles != [""]
    return {(end[1], role, test.kind, test.memory) for role in (OPPOSITE if both else roles)}


def _probes(failure: Failure, slow: bool) -> Iterator[Measurement]:
    """Yield the tests that leave out, one after the other, what a failed one may have failed on.

    ``slow``: large messages came through, so small ones tell nothing.
    """
    if GPU in failure.layers:
        yield failure.test._replace(memory="host", star="")
    if MTU in failure.layers and not slow:
        yield failure.test._replace(kind=PROBE, size=0, memory="host", star="")
