# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The course of a measurement: the schedule, then what gave no data, then what locates the fault."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from ...intent import budgets
from ..diagnosis.follow_up import low_once, next_tests
from ..diagnosis.inside import rounds_inside
from ..diagnosis.permanent import Review
from ..diagnosis.suspects import open_suspects, rounds_of
from ..schedule import schedule, timing
from ..schedule.schedule import Measurement, Round
from . import all_results, path_probe, port_health, shared_links, unmeasured
from . import results as judge_results
from .flaws import blocked
from .resume import joined
from .session import State, faults
from .verdict import view_of

Results = list[dict[str, Any]]
# What reads low among the last tests of suspects is measured once or twice more.
_MOST_FOLLOW_UPS = 8
# Passes of single paths: each once, then those that differ.
_MOST_PROBES = 2


@dataclass
class Course:
    """Where the measurement is. ``kept``: results of an earlier report; ``what``: why the next pass is played.

    ``planned``: the rounds of the schedule. ``not_kept``: how many more passed there, and why they are measured again.
    ``unmeasured``: the ports without any test (unmeasured.py).
    """

    state: State
    names: list[str]
    margin: int
    planned: list[Round]
    kept: Results
    waiting: list[list[Round]]
    not_kept: str = ""
    unmeasured: list[dict[str, str]] = field(default_factory=list)
    retried: int = 0
    isolated: int = 0
    # Rounds of isolation that were played, for each reading that a test needs, and of tests that read low once.
    located: int = 0
    # Rounds for suspects alone that were played, and passes of them.
    followed: int = 0
    follow_ups: int = 0
    # The last pass that was absorbed, and how often single paths were tested.
    number: int = 0
    probed: int = 0
    what: str = ""
    played: int = 0
    clock: timing.Timing = field(default_factory=timing.Timing)
    # The results until the next pass is absorbed: a fleet's take seconds.
    found: Results | None = None
    review: Review | None = None

    @property
    def slot(self) -> int:
        """The length of the next slots in seconds."""
        tests = self.state.tests
        gpu, margin = timing.in_gpu_memory(tests), timing.margin_of(tests, self.margin)
        return self.clock.slot(int(tests["duration"]), margin, gpu=gpu)


def next_rounds(course: Course) -> list[Round]:
    """Return the rounds to play now: the schedule, then what gave no data, what isolation asks for, and suspects."""
    while course.waiting:
        rounds = _possible(course.state, course.waiting.pop(0))
        if rounds:
            course.what = "a trial for the length of slots" if course.waiting else "schedule"
            return rounds
    rounds = _retry(course) if course.retried < course.state.tests["retries"] else []
    if rounds:
        course.retried += 1
        course.what = "again what gave no data"
        return rounds
    return _isolate(course) or _follow_up(course) or _probe(course) or _together(course)


def _retry(course: Course) -> list[Round]:
    """Return rounds of what was played and lacks readings."""
    state = course.state
    results(course)
    again = schedule.whole(state.lacking, state.attempts)
    return _possible(state, schedule.pack(course.planned, again, state.tests))


def _isolate(course: Course) -> list[Round]:
    """Return rounds of the tests that locate the fault; [] when it is confirmed, or was tried often enough."""
    state = course.state
    if not isolation_left(course):
        return []
    named = schedule.named(state.tests["only"])
    view = view_of(state.plan, state.tests)
    asked = next_tests(_judged(course), course.names, state.rails, view=view, named=named)
    rounds = _locating(course, asked)
    course.isolated += bool(rounds)
    course.what = "isolation"
    # As often as any test: fewer runs than asked for would be no data.
    return rounds * state.needed


def _locating(course: Course, asked: Iterable[Measurement]) -> list[Round]:
    """Return rounds of tests that locate a fault, no more than was announced."""
    state = course.state
    most = min(_per_pass(course), locating_left(course))
    rounds = _possible(state, schedule.repeat(set(asked), state.tests))[:most]
    course.located += len(rounds)
    _ask_again(state, {test for round_ in rounds for test in round_})
    return rounds


def _judged(course: Course) -> Review:
    """Return the results without those that nothing can judge, which are no suspects."""
    found = results(course)
    if course.review is None:
        view = view_of(course.state.plan, course.state.tests)
        course.review = Review([result for result in found if result["bound_by"] != "unknown"], view)
    return course.review


def _ask_again(state: State, tests: Iterable[Measurement]) -> None:
    for test in tests:
        if state.attempts.get(test):
            state.repeated.setdefault(test, len(state.attempts[test]))


def _follow_up(course: Course) -> list[Round]:
    """Return rounds of suspects alone, and of tests that read low among them; [] when the budget or nothing is left."""
    state, whole = course.state, budgets.more(course.state.tests, len(course.names))
    if not whole or course.follow_ups >= _MOST_FOLLOW_UPS:
        return []
    judged, left = _judged(course), whole - course.followed
    budget = budgets.budget_of(state.tests, len(course.names))
    view = view_of(state.plan, state.tests)
    found = open_suspects(judged, view, budget.share) if left > 0 else []
    alive = [name for name in course.names if name in state.endpoints and name not in state.lost]
    # Rails that share a link, or are to be tested one after the other, take turns here too.
    named = schedule.named(state.tests["only"])
    alone = rounds_of(found, judged.results, alive, left=left, named=named)
    alone += rounds_inside(judged, view, alive, left=left - len(alone), named=named)
    rounds = _possible(state, [turn for round_ in alone for turn in schedule.repeat(round_, state.tests)][:left])
    # While isolation is left, it asks for these too, and had nothing to ask for.
    asks = (course.follow_ups or rounds) and not isolation_left(course)
    repeated = _locating(course, low_once(judged, course.names, state.rails, view=view) if asks else [])
    if not rounds and not repeated:
        return []
    tests = {test for round_ in rounds for test in round_}
    state.extra.update(tests - state.attempts.keys())
    course.followed += len(rounds)
    course.follow_ups += 1
    course.what = "suspects alone"
    _ask_again(state, tests)
    return [*rounds, *repeated]


def _probe(course: Course) -> list[Round]:
    """Return rounds of single paths between hosts that read low, within the budget of suspects; twice at most."""
    state, left = course.state, budgets.more(course.state.tests, len(course.names)) - course.followed
    if course.probed >= _MOST_PROBES or left <= 0:
        return []
    course.probed += 1
    found = path_probe.planned(state, _judged(course).results, view_of(state.plan, state.tests), left=left)
    if not found:
        course.probed = _MOST_PROBES
    number = course.number + 1
    for at, (_round, paths) in enumerate(found):
        state.chosen.update({(number, at, test): path for test, path in paths.items()})
    state.probing |= {number} if found else set()
    course.followed += len(found)
    course.what = "single paths"
    return [round_ for round_, _paths in found]


def _together(course: Course) -> list[Round]:
    """Return rounds of rails that share a PCIe link, all at once; once."""
    state = course.state
    if state.together_in:
        return []
    state.together_in = course.number + 1
    course.what = "rails that share a PCIe link, at once"
    alive = [name for name in course.names if name in state.endpoints and name not in state.lost]
    return shared_links.planned(state, schedule.fields(state.plan, alive), unmeasured.missing(state.plan))


def isolation_left(course: Course) -> int:
    """Return how many passes may still be played to locate the fault."""
    if course.state.mode == "loopback":
        return 0
    return max(0, int(course.state.tests["isolation"]) - course.isolated)


def _per_pass(course: Course) -> int:
    """Return how many rounds a pass of isolation has at most, for each reading that a test needs."""
    return budgets.locating(course.state.tests, len(course.names), len(course.state.rails))


def locating_left(course: Course) -> int:
    """Return how many rounds may still be played to locate faults, for each reading that a test needs."""
    return max(0, _per_pass(course) * int(course.state.tests["isolation"]) - course.located)


def _possible(state: State, rounds: Sequence[Round]) -> list[Round]:
    kept = (tuple(test for test in round_ if not blocked(state, test)) for round_ in rounds)
    return [round_ for round_ in kept if round_]


def results(course: Course) -> Results:
    """Return the results of this run and of the earlier one, in the order of what they measured."""
    if course.found is None:
        course.review = None
        course.found = all_results.results(course.state)
        if course.kept:
            both = joined(course.kept, course.found, lambda test: faults(course.state, test, None))
            course.found = sorted(both, key=schedule.subject)
    return course.found


def verdicts(course: Course) -> dict[str, int]:
    """Return how many tests of the passes so far have which verdict; each may still be measured again."""
    if course.found is not None:
        told = (result["verdict"] for result in course.found if result["passes"])
    else:
        # Only after the trial at the begin of a schedule, so these are few.
        tried = course.state.attempts.items()
        told = (judge_results.judge(course.state, test, own[-1])[0] for test, own in tried if own)
    return dict(Counter(told))


def notes(course: Course, told: Mapping[str, Any]) -> list[str]:
    """Return the warnings that are no matter of a test: of PCIe links (``summary``), and of the earlier report."""
    return [*shared_links.warnings(told.get("shared_links", ())), *resumed(course)]


def resumed(course: Course) -> list[str]:
    """Return a sentence about the results of an earlier report that are taken over."""
    if not course.kept and not course.not_kept:
        return []
    count = len(course.kept) + len(course.state.attempts)
    told = f"{len(course.kept)} of {count} results are those of the earlier report: they passed there"
    return [f"{told}; {course.not_kept}" if course.not_kept else told]


def worst(course: Course, rounds: Sequence[Round]) -> int:
    """Return the seconds of the next pass and of what waits, every retry counted.

    Each of these passes may make the slots of the next one longer, and let it begin later.
    """
    passes = [len(part) for part in (rounds, *course.waiting) if part]
    if not passes:
        return 0
    passes += [sum(passes)] * (course.state.tests["retries"] - course.retried)
    together = 0 if course.state.together_in else shared_links.most(course.state)
    passes += [together] if together else []
    tests, first = course.state.tests, course.clock.stretched
    duration, margin = int(tests["duration"]), timing.margin_of(tests, course.margin)
    slots = (timing.stretched(duration, margin, first + number) for number in range(len(passes)))
    lead = course.clock.lead + timing.LONGEST_LEAD * (len(passes) - 1)
    return lead + sum(count * slot for count, slot in zip(passes, slots))


def _more(course: Course) -> tuple[int, int]:
    """Return how many rounds may still be added to locate faults, and for suspects alone."""
    suspects = budgets.more(course.state.tests, len(course.names)) - course.followed
    return locating_left(course) * course.state.needed, max(0, suspects)


def _longest(course: Course) -> int:
    """Return the seconds of the longest slots."""
    tests = course.state.tests
    return timing.stretched(int(tests["duration"]), timing.margin_of(tests, course.margin), timing.STRETCHES)


def worst_more(course: Course) -> int:
    """Return the seconds that locating faults and suspects may add at worst."""
    return sum(_more(course)) * _longest(course)


def announce(course: Course, rounds: Sequence[Round], number: int) -> str:
    """Return what to say before pass ``number``."""
    told = timing.announce(
        course.state.mode, rounds, course.slot, number=number, what=course.what, worst=worst(course, rounds)
    )
    return told + announce_more(course)


def announce_more(course: Course) -> str:
    """Return what is added to the line before a pass: how much locating faults and suspects may take."""
    budget = budgets.name_of(course.state.tests, len(course.names))
    return timing.announce_more(budget, *_more(course), slot=_longest(course))


def summary(
    course: Course, rounds: Sequence[Round], passes: int, *, read: Sequence[str] = (), mesh: Sequence[int] = ()
) -> dict[str, Any]:
    """Return the report's ``schedule``; before the end it counts what is to come as well.

    ``read``: sentences about what was read of ports. ``mesh``: the seconds of each slot of the mesh that comes next.
    """
    coming = len(rounds) + sum(len(part) for part in course.waiting)
    if rounds:
        text = announce(course, rounds, passes + 1)
    else:
        text = timing.told(course.clock, passes, course.played, duration=int(course.state.tests["duration"]))
    return {
        "where": course.state.where,
        "mode": course.state.mode,
        "rounds": course.played + coming + len(mesh),
        "slot": course.slot if rounds else course.clock.last or course.slot,
        "seconds": course.clock.seconds + coming * course.slot + sum(mesh),
        "passes": passes + bool(rounds),
        "share": course.clock.share,
        "lateness": dict(sorted(course.clock.lateness.items())),
        "text": text,
        "traffic": [] if rounds else [*port_health.proofs(course.state.tests, course.state.ports), *read],
        **({"shared_links": shared} if not rounds and (shared := shared_links.rows(course.state)) else {}),
    }
