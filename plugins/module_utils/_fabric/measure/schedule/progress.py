# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The line that shows how far a pass is. Rounds follow the clock, so no host is asked."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from .timing import count, length

_VERDICTS = {"pass": "passed", "fail": "failed", "no_data": "without data"}


@dataclass(frozen=True)
class Progress:
    """A pass. ``place``: hosts or pods; ``slot``: seconds of a round; ``verdicts``: tests of finished passes."""

    place: str
    number: int
    rounds: int
    slot: int
    verdicts: Mapping[str, int] = field(default_factory=dict)

    @property
    def seconds(self) -> int:
        """The length of the pass."""
        return self.rounds * self.slot


def line(progress: Progress, elapsed: float) -> str:
    """Return the line, ``elapsed`` seconds after the begin of the first round (less than 0 before it)."""
    done = max(0, min(progress.rounds, int(elapsed // progress.slot)))
    left = max(0, round(progress.seconds - elapsed))
    tests = [f"{progress.verdicts[name]} {word}" for name, word in _VERDICTS.items() if progress.verdicts.get(name)]
    so_far = f"finished passes: {', '.join(tests)}" if tests else "no finished pass"
    return (
        f"{progress.place}, pass {progress.number}: {done} of {count(progress.rounds, 'round')} done,"
        f" {length(left)} left; {so_far}"
    )
