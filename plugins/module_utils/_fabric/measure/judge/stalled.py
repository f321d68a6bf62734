# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Time-outs that count as bad readings: those of single links while all other tests of the same time gave a reading.

A host that stands still, a slow start everywhere, or a tester that is late makes more than one test time out.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field

from ..diagnosis.absence import Conduct
from ..readings.exchange import NEVER_MET
from ..readings.perftest import TIMED_OUT, Run
from ..readings.tester_cpu import throttled

# The share of the other tests of a round that must give a reading: what stops more of them is no single link.
_FINE = 0.9


@dataclass
class InRound:
    """The tests of a round: how many, how many gave a reading, and how many did not, by host."""

    tests: int = 0
    good: int = 0
    silent: Counter[str] = field(default_factory=Counter)


def in_round(played: Iterable[tuple[str, str, bool]]) -> InRound:
    """Return what a round gave: of each test its client, its server, and whether it gave a reading."""
    here = InRound()
    for client, server, good in played:
        here.tests += 1
        here.good += good
        if not good:
            here.silent.update({client, server})
    return here


def is_stalled(sides: Sequence[tuple[str, Run | None]], here: InRound, near: Conduct, *, at: int) -> bool:
    """Return whether a test without a reading in round ``at`` shows that its link stood still.

    ``sides``: (host, run) of client and server. Both testers were there, on time and measured something, and all other
    tests of both hosts in the round gave a reading, as almost all tests of other hosts did.
    """
    names = [name for name, _run in sides]
    runs = [run for _name, run in sides if run is not None]
    if len(runs) < len(sides) or not any(run.rc in TIMED_OUT for run in runs):
        return False
    if any(run.rc not in TIMED_OUT and not NEVER_MET.search(run.text) for run in runs):
        return False
    alive = near.measured.issuperset(names) and near.lost.isdisjoint(names)
    if not alive or near.late_at(names, at, anywhere=True) or throttled(dict(sides)):
        return False
    alone = all(here.silent[name] == 1 for name in names)
    return alone and here.good > 0 and here.good >= _FINE * (here.tests - 1)
