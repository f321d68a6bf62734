# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Waiting with an end: clock and sleep are parameters, so that no test has to wait."""

from __future__ import annotations

import threading
import time
from collections.abc import Iterator, Sequence
from typing import Callable, NamedTuple

# Gets, with each poll of a wait, its seconds and what it waits for.
Tell = Callable[[float, Sequence[str]], None]


def silent(_elapsed: float, _reasons: Sequence[str]) -> None:
    """Tell nobody."""


class Clock(NamedTuple):
    """Seconds that only grow, and a way to let them pass."""

    now: Callable[[], float] = time.monotonic
    sleep: Callable[[float], None] = time.sleep


def ticks(timeout: float, interval: float, clock: Clock) -> Iterator[float]:
    """Yield the seconds since the start: at once, then every ``interval``, and a last time at ``timeout``."""
    start = clock.now()
    while True:
        elapsed = clock.now() - start
        yield elapsed
        left = timeout - (clock.now() - start)
        if left <= 0:
            return
        clock.sleep(min(interval, left))


class Pace:
    """At most ``burst`` at once, and after that ``rate`` a second. Safe to use from several threads."""

    def __init__(self, rate: float, burst: int, clock: Clock) -> None:
        self._step = 1 / rate
        self._ahead = burst / rate
        self._clock = clock
        self._lock = threading.Lock()
        # When the bucket is full again.
        self._full = clock.now()

    def wait(self) -> None:
        """Return when it is our turn."""
        with self._lock:
            now = self._clock.now()
            self._full = max(self._full, now) + self._step
            left = self._full - now - self._ahead
        if left > 0:
            self._clock.sleep(left)
