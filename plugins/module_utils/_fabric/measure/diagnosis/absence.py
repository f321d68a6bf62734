# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What a test without a reading shows: a fault that was observed, a peer that did not answer, or nothing at all.

A tester that was late, had to be killed, or sent no log says nothing about hardware or a path. One that ran out of time
suggests something at most.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, NamedTuple

from ..readings.counters import link_went_down
from ..readings.exchange import NEVER_MET
from ..readings.perftest import KILLED, MISSED, OWN_CAUSES, TIMED_OUT, Run
from .wording import SUSPECTED, Diagnosis, listed

Result = Mapping[str, Any]
# Passes that ended within so many seconds before another one belong to the same minutes.
SAME_MINUTES = 600
# What an attempt without a reading is worth: FIRM may confirm a diagnosis, WEAK may only suggest one.
FIRM, WEAK, NONE = "firm", "weak", "none"
# Why an attempt is worth nothing, in the order in which they are reported.
LATE, THROTTLED, TIMEOUT, LOST = "late", "throttled", "timeout", "lost"
_ORDER = (LATE, THROTTLED, TIMEOUT, LOST)

# What a side fails on by itself; by its exit code also when its program is not there, or cannot run.
_OWN = re.compile("|".join(pattern for pattern, _meaning in OWN_CAUSES))
_NO_PROGRAM = (126, 127)
# So many seconds may the end of an echo seem to be before that of the side which it echoes: hosts read counters first.
_READING = 1.0
# A tester that did not try a test at all.
_REFUSED = 125
# What the device reports of a transfer or a connection: it also fails when the other side was stopped meanwhile.
_TRANSFER = re.compile(r"Failed status|Failed to modify QP|not one message was acknowledged")


class Shown(NamedTuple):
    """What an attempt shows: FIRM, WEAK or NONE; with NONE ``cause`` and of which hosts, the latest by ``seconds``.

    ``fault``: a transfer failed or a link went down, which stays a fault when the test passes later.
    """

    level: str
    cause: str = ""
    hosts: tuple[str, ...] = ()
    seconds: float = 0.0
    fault: bool = False


@dataclass
class Conduct:
    """How testers did in a pass from ``begin`` to ``end``: ``late`` by host and round in seconds, from STRAINED on.

    ``lost``: whose log does not reach the end of the pass. ``measured``: who measured something; ``overloaded``: who
    missed a round; of recent() in the same minutes.
    """

    late: Mapping[tuple[str, int], float]
    begin: int
    end: int
    lost: frozenset[str] = frozenset()
    measured: set[str] = field(default_factory=set)
    overloaded: frozenset[str] = frozenset()

    def __post_init__(self) -> None:
        """Work out who missed a round of this pass, and by how much at most."""
        self.worst: dict[str, float] = {}
        for (name, _at), seconds in self.late.items():
            if seconds >= MISSED:
                self.worst[name] = max(seconds, self.worst.get(name, 0.0))

    def late_at(self, names: Iterable[str], at: int, anywhere: bool = False) -> dict[str, float]:
        """Return who of ``names`` was late in round ``at`` or in one next to it, in seconds.

        ``anywhere``: also who missed any round of the pass.
        """
        found = {name: self._late_at(name, at, anywhere) for name in names}
        return {name: seconds for name, seconds in found.items() if seconds}

    def _late_at(self, name: str, at: int, anywhere: bool) -> float:
        if name not in self.overloaded:
            return 0.0
        near = max(self.late.get((name, one), 0.0) for one in (at - 1, at, at + 1))
        missed = self.worst.get(name, 0.0) if anywhere else near
        return missed if missed >= MISSED else self.late.get((name, at), 0.0)


def recent(passes: Mapping[int, Conduct], number: int) -> Conduct:
    """Return how testers did in a pass, and who measured or was overloaded in it or in the same minutes before it."""
    own = passes.get(number)
    if own is None:
        return Conduct({}, 0, 0)
    near = [one for at, one in passes.items() if at <= number and one.end >= own.begin - SAME_MINUTES]
    measured = set[str]().union(*(one.measured for one in near))
    return Conduct(own.late, own.begin, own.end, own.lost, measured, frozenset().union(*(one.worst for one in near)))


def shown(sides: Sequence[tuple[str, Run | None]], reason: str, near: Conduct, *, at: int) -> Shown:
    """Return what an attempt without a reading in round ``at`` shows. ``sides``: (host, run) of client and server."""
    runs = [run for _name, run in sides if run is not None]
    silent = tuple(dict.fromkeys(name for name, run in sides if run is None or name in near.lost))
    if any(link_went_down(run.counters) for run in runs):
        return Shown(FIRM, fault=True)
    own_errors = [run for run in runs if _explains_itself(run)]
    if own_errors:
        return Shown(FIRM, fault=any(run.rc != _REFUSED for run in own_errors))
    if silent:
        return Shown(NONE, LOST, silent)
    late = near.late_at((name for name, _run in sides), at)
    if late:
        return overloaded(late)
    if any(run.rc == KILLED for run in runs):
        return Shown(NONE, TIMEOUT, tuple(dict.fromkeys(name for name, run in sides if run and run.rc == KILLED)))
    own = [run for run in runs if run.rc and not _echo(run, runs)]
    if any(_TRANSFER.search(run.text) for run in own) or not any(run.rc for run in runs) and _TRANSFER.search(reason):
        return Shown(FIRM, fault=True)
    in_time = not any(run.rc in TIMED_OUT for run in runs)
    if in_time or any(run.rc not in TIMED_OUT or NEVER_MET.search(run.text) for run in own):
        firm = near.measured.issuperset(name for name, _run in sides)
        met = in_time and not any(NEVER_MET.search(run.text) for run in runs)
        return Shown(FIRM if firm else WEAK, fault=firm and met and bool(own))
    late = near.late_at((name for name, _run in sides), at, anywhere=True)
    return overloaded(late) if late else Shown(WEAK)


def _echo(run: Run, runs: Sequence[Run]) -> bool:
    """Return whether a side failed because the other one had run out of time: the device's error came after that.

    Only the end of the other side lets the exchange of a test that has begun fail, whatever the clocks say.
    """
    ended = [_end(one) for one in runs if one.rc in TIMED_OUT and one.seconds is not None]
    if not ended or run.rc in TIMED_OUT or NEVER_MET.search(run.text):
        return False
    return not _TRANSFER.search(run.text) or _end(run) > min(ended) - _READING


def _end(run: Run) -> float:
    return (run.late or 0.0) + (run.seconds or 0.0)


def overloaded(late: Mapping[str, float]) -> Shown:
    """Return what an attempt shows whose hosts were late: by host in seconds."""
    return Shown(NONE, LATE, tuple(late), max(late.values()))


def _explains_itself(run: Run) -> bool:
    """Return whether a side failed for a reason of its own, whatever the other side did."""
    if run.rc in (0, KILLED, *TIMED_OUT) or (run.late or 0.0) >= MISSED:
        return False
    return run.rc in _NO_PROGRAM or bool(_OWN.search(run.text))


def combined(found: Iterable[Shown]) -> dict[str, Any] | None:
    """Return ``absence`` of a result all of whose attempts show nothing, None when one of them shows something."""
    found = list(found)
    if any(one.level != NONE for one in found):
        return None
    cause = min((one.cause for one in found), key=_ORDER.index)
    same = [one for one in found if one.cause == cause]
    hosts = list(dict.fromkeys(name for one in same for name in one.hosts))
    return absence(cause, hosts, max(one.seconds for one in same))


def absence(cause: str, hosts: Sequence[str], seconds: float = 0.0) -> dict[str, Any]:
    """Return ``absence`` of a result: why nothing is known, of which hosts, and how late they were."""
    return {"cause": cause, "hosts": list(hosts), "seconds": seconds}


def split(results: Sequence[Result]) -> tuple[Sequence[Result], list[Result]]:
    """Return the results that are evidence, and those of which nothing is known but why."""
    gone = [result for result in results if result.get("absence")]
    return ([result for result in results if not result.get("absence")] if gone else results), gone


def diagnoses(where: str, gone: Sequence[Result], results: Sequence[Result]) -> list[Diagnosis]:
    """Return what is to be said of tests of which nothing is known. None of it is ever confirmed.

    ``results``: all of the measurement: what most hosts lack is no matter of single ones.
    """
    told: list[Diagnosis] = []
    hosts = len({result[side] for result in results for side in ("client", "server")}) if gone else 0
    for cause in _ORDER:
        own = [result for result in gone if result["absence"]["cause"] == cause]
        if own:
            told += {LATE: _late, THROTTLED: _throttled, TIMEOUT: _timeout, LOST: _lost}[cause](where, own, hosts)
    return told


def _late(where: str, gone: Sequence[Result], hosts: int) -> list[Diagnosis]:
    seconds: dict[str, float] = {}
    for result in gone:
        for name in result["absence"]["hosts"]:
            seconds[name] = max(seconds.get(name, 0.0), result["absence"]["seconds"])
    what = f"{_tests(gone)} gave no data. Reduce the load and validate again"
    text = overload(seconds)
    host = next(iter(seconds)) if len(seconds) == 1 else None
    return [_diagnosis(where, "overload", host, gone=gone, text=f"{text}; {what}")]


def overload(seconds: Mapping[str, float]) -> str:
    """Return the sentence about hosts that were late: by host in seconds."""
    worst = max(seconds.values())
    if len(seconds) == 1:
        return f"{next(iter(seconds))} started up to {worst:.1f} s late: the host or the controller is overloaded"
    return f"{listed(seconds)} started up to {worst:.1f} s late: the hosts or the controller are overloaded"


def _throttled(where: str, gone: Sequence[Result], hosts: int) -> list[Diagnosis]:
    names = list(dict.fromkeys(name for result in gone for name in result["absence"]["hosts"]))
    text = (
        f"{_tests(gone)} read too little while the CPU limit stopped the tester of {listed(names)}. Remove the limit (a"
        " LimitRange of the namespace sets one), or set cpus to a higher value, and validate again"
    )
    return [_diagnosis(where, "tester", names[0] if len(names) == 1 else None, gone=gone, text=text)]


def _timeout(where: str, gone: Sequence[Result], hosts: int) -> list[Diagnosis]:
    pairs = listed({f"{result['client']} to {result['server']}" for result in gone})
    text = (
        f"{_tests(gone)} ran out of time and had to be killed ({pairs}). Check for a slow start of perftest or of its "
        "GPU memory, then set slot_margin to a higher value"
    )
    return [_diagnosis(where, "tester", None, gone=gone, text=text)]


def _lost(where: str, gone: Sequence[Result], hosts: int) -> list[Diagnosis]:
    names = list(dict.fromkeys(name for result in gone for name in result["absence"]["hosts"]))
    if not names or 2 * len(names) > hosts > 2:
        text = f"{_tests(gone)} gave no data: no results from {listed(names) or 'any host'}"
        return [_diagnosis(where, "tester", None, gone=gone, text=f"{text} ({gone[0]['reason']})")]
    told = []
    for name in names:
        own = [result for result in gone if name in result["absence"]["hosts"]]
        told.append(
            _diagnosis(
                where, "tester", name, gone=own, text=f"{name}: {_tests(own)} gave no data ({_of_host(name, own)})"
            )
        )
    return told


def _of_host(name: str, gone: Sequence[Result]) -> str:
    """Return the part of a reason that is about a host, all of it when there is none."""
    parts = (part for result in gone for part in result["reason"].split("; "))
    return next((part[len(name) + 2 :] for part in parts if part.startswith(f"{name}: ")), gone[0]["reason"])


def _diagnosis(where: str, kind: str, host: str | None, *, gone: Sequence[Result], text: str) -> Diagnosis:
    evidence = (f"{len(gone)} no_data, none of them shows a fault of hardware or of a path",)
    return Diagnosis(where, kind, None, host, None, None, SUSPECTED, len(gone), len(gone), evidence, text)


def _tests(gone: Sequence[Result]) -> str:
    return "1 test" if len(gone) == 1 else f"{len(gone)} tests"
