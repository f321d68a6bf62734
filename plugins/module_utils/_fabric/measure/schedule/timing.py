# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""How long slots are, what they were used for, and who was late; all times in seconds."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from ..readings.perftest import KILLED, MISSED, STRAINED, TIMED_OUT
from ..readings.tester_log import Log
from .schedule import Round

# The tester ends everything in the last second of a slot. The rest is for a server that begins late: its client tries
# again every 0.2 s.
GUARD = 1.3
SHORTEST = 4
# From this many rounds on it is worth to hand out lines once more, so that all slots but those of a few first rounds
# are as short as they can be.
WORTH_A_TRIAL = 6
TRIAL = 4
# After a pass with late or timed-out tests a slot has one margin more, at most this many times.
STRETCHES = 2
# Seconds that a test from GPU memory may need beside, until a pass has shown it: both sides start CUDA after they are
# connected, all rails at once, and load the driver's state first where persistence mode is off.
GPU_START = 12
# From this share of them on also the rest of the schedule is played so; one dead port must not slow down a fleet.
MANY = 0.25
# More seconds than these are not added to the time before the first round.
LONGEST_LEAD = 60
_WORDS = ("h", "min", "s")


@dataclass
class Timing:
    """What the passes so far told: ``busy`` seconds of perftest in ``slots`` seconds of slots.

    ``longest``: from the begin of a slot to the end of the clean test that ended last in its slot; ``longest_gpu``: of
    those from GPU memory, ``longest`` then of the others. ``lateness``: by host the largest delay of a round, by its
    own clock. ``seconds``: all slots of all passes; ``last``: length of the last ones. ``tight``: a test ran out of
    time or a round was missed, so slots are not made shorter. ``stretched``: by how many margins they are longer;
    ``owed``: the first retry will be, by what a trial told. ``lead``: how much later first rounds should begin, since
    hosts missed one.
    """

    longest: float = 0.0
    longest_gpu: float = 0.0
    busy: float = 0.0
    slots: int = 0
    seconds: int = 0
    last: int = 0
    tight: bool = False
    stretched: int = 0
    owed: bool = False
    lead: int = 0
    lateness: dict[str, float] = field(default_factory=dict)

    def slot(self, duration: int, margin: int, *, gpu: bool = False) -> int:
        """Return the length of the next slots: ``duration`` plus ``margin``, or less when clean tests needed less.

        After tests that were late or ran out of time they are longer by up to STRETCHES margins. ``gpu``: there are
        tests from GPU memory, of which the others tell nothing.
        """
        most = stretched(duration, margin, self.stretched)
        longest = max(self.longest, self.longest_gpu)
        if self.tight or not (self.longest_gpu if gpu else longest):
            return most
        return max(SHORTEST, min(most, math.ceil(round(longest + GUARD, 2))))

    def starts(self, duration: int) -> str:
        """Return what is told of the time that tests from GPU memory need besides ``duration``, "" without such."""
        gpu, host = (round(longest - duration, 1) for longest in (self.longest_gpu, self.longest))
        if gpu <= 0:
            return ""
        beside = f", tests from host memory {host:.1f} s" if host > 0 else ""
        return f"tests from GPU memory needed up to {gpu:.1f} s besides their duration{beside}"

    @property
    def share(self) -> float | None:
        """Perftest's share of the slots that were played; None before."""
        return round(self.busy / self.slots, 3) if self.slots else None

    def add(
        self, logs: Mapping[str, Log], rounds: int, slot: int, *, waiting: bool = False
    ) -> dict[tuple[str, int], float]:
        """Add what the logs of a pass of ``rounds`` slots tell; return by host and round who was late.

        ``waiting``: the rest of the schedule follows, and no retry.
        """
        strained = 0
        own: dict[tuple[str, int], float] = {}
        self.seconds += rounds * slot
        self.last = slot
        for name, log in logs.items():
            late = max((run.late or 0.0 for run in log.runs.values()), default=0.0)
            if late >= STRAINED:
                for (at, _rail, _peer), run in log.runs.items():
                    own[name, at] = max(own.get((name, at), 0.0), run.late or 0.0)
            self.lateness[name] = max(self.lateness.get(name, 0.0), late)
            strained += self._add_lengths(log, slot)
        many = strained >= MANY * sum(len(log.runs) for log in logs.values())
        self.owed = self.owed or strained > 0
        if self.owed and (not waiting or many):
            self.stretched = min(self.stretched + 1, STRETCHES)
            self.owed = False
        return own

    def _add_lengths(self, log: Log, slot: int) -> int:
        """Add what one log tells; return how many of its tests were late or ran out of time."""
        perftest: dict[int, float] = {}
        strained = 0
        for (number, _rail, _peer), run in log.runs.items():
            late = run.late or 0.0
            strained += late >= MISSED or run.rc in (*TIMED_OUT, KILLED)
            if number == 0 and late >= MISSED:
                self.lead = min(LONGEST_LEAD, max(self.lead, math.ceil(late)))
            if run.rc == 0:
                length_of = late + (run.seconds or 0.0)
                if run.memory.startswith("cuda"):
                    self.longest_gpu = max(self.longest_gpu, length_of)
                else:
                    self.longest = max(self.longest, length_of)
                perftest[number] = max(perftest.get(number, 0.0), run.ran or 0.0)
        self.busy += sum(perftest.values())
        self.slots += slot * len(perftest)
        self.tight = self.tight or strained > 0
        return strained


def margin_of(tests: Mapping[str, Any], margin: int) -> int:
    """Return ``margin``, with the time that CUDA may need to start if ``tests`` use GPU memory."""
    return margin + (GPU_START if in_gpu_memory(tests) else 0)


def in_gpu_memory(tests: Mapping[str, Any]) -> bool:
    """Return whether tests use the memory of GPUs."""
    return bool(tests["memory"] != "host")


def stretched(duration: int, margin: int, times: int) -> int:
    """Return the most seconds of a slot after ``times`` passes with late or timed-out tests."""
    return duration + margin * (1 + min(times, STRETCHES))


def split(rounds: Sequence[Round], hosts: int) -> list[list[Round]]:
    """Return the passes of a schedule: one, or a short trial and the rest.

    A trial has a tenth of the rounds, at most TRIAL. What most of the ``hosts`` do not take part in tells too little:
    of three hosts one rests in each round.
    """
    trial = min(TRIAL, max(1, len(rounds) // 10))
    heard = {name for round_ in rounds[:trial] for test in round_ for name in (test.client, test.server)}
    if len(rounds) < WORTH_A_TRIAL or 4 * len(heard) < 3 * hosts:
        return [list(rounds)]
    return [list(rounds[:trial]), list(rounds[trial:])]


def length(seconds: int) -> str:
    """Return a time as people say it: ``1 h 3 min``, ``4 min 48 s``."""
    parts = zip((seconds // 3600, seconds // 60 % 60, seconds % 60), _WORDS)
    told = [f"{number} {word}" for number, word in parts if number]
    return " ".join(told[:2]) or "0 s"


def announce(mode: str, rounds: Sequence[Round], slot: int, *, number: int, what: str, worst: int) -> str:
    """Return the line that is shown before a pass. ``worst``: seconds of this pass, what waits and all retries."""
    tests = [test for round_ in rounds for test in round_]
    kinds = ", ".join(dict.fromkeys(test.kind for test in tests))
    return (
        f"pass {number} ({what}), mode {mode}: {count(len(tests), 'test')} of {kinds} in {count(len(rounds), 'round')}"
        f" of {slot} s, {length(slot * len(rounds))}; with all retries at worst {length(worst)}"
        " beside the start of each pass"
    )


def announce_more(budget: str, locating: int, suspects: int, *, slot: int) -> str:
    """Return what is added to the line before a pass: how many rounds of at most ``slot`` failures may add.

    ``locating``: to locate faults. ``suspects``: for suspects alone, by the ``budget``.
    """
    what = ((locating, "to locate faults"), (suspects, f"(budget {budget}) for ports that read low intermittently"))
    more = [f"up to {count(number, 'round')} {why}" for number, why in what if number]
    most = length(slot * (locating + suspects))
    return f"; failures add {' and '.join(more)}, at worst {most}" if more else ""


def count(number: int, word: str) -> str:
    """Return a number with its word: ``1 test``, ``12 tests``, ``2 passes``."""
    return f"{number} {word}{'' if number == 1 else 'es' if word.endswith('s') else 's'}"


def told(timing: Timing, passes: int, rounds: int, *, duration: int = 0) -> str:
    """Return the sentence of the report about how the measurement went; ``duration`` of a test in seconds."""
    played = f"{count(passes, 'pass')}, {count(rounds, 'round')}, {length(timing.seconds)}"
    if not timing.slots:
        return f"{played}; no clean test"
    late = max(timing.lateness.values(), default=0.0)
    starts = timing.starts(duration) if duration else ""
    return (
        f"{played}; perftest ran in {100 * timing.busy / timing.slots:.0f} % of the time of its slots;"
        f" latest start {late:.1f} s{_latest(timing.lateness, late)}" + (f"; {starts}" if starts else "")
    )


def _latest(lateness: Mapping[str, float], late: float) -> str:
    names = sorted(name for name, seconds in lateness.items() if seconds == late)
    return f" ({', '.join(names[:3])}{', ...' if len(names) > 3 else ''})" if late else ""
