# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What chance explains: numbers of low readings against the share that reads low without a cause."""

from __future__ import annotations

import math
from collections.abc import Iterator
from functools import lru_cache

# So seldom may chance alone accuse any component of one kind (port, rail, ...). There are ten kinds, so that at most
# 0.4 % of the runs of a healthy fabric fail.
SIGNIFICANT = 0.0004
# More low readings without a cause than this share make the run itself unsteady.
MOST_BACKGROUND = 0.01
# A suspect is cleared when a fault of the share that is looked for would so seldom show as few low readings.
_MISSED = 0.02
# A fault that shows in all tests is looked for with this share: in tests of another kind it may be less.
_LARGEST = 0.9
# The share of runs in which a fault is to be found.
POWER = 0.95
# The shares of bad tests among which the sensitivity is told.
SHARES = (0.01, 0.02, 0.03, 0.05, 0.07, 0.1, 0.15, 0.2, 0.25, 0.3, 0.4, 0.5, 0.6, 0.7, 0.8, 0.9, 0.95)


def chance(count: int, tests: int, background: float) -> float:
    """Return how likely ``count`` or more of ``tests`` are when each is one with the probability ``background``."""
    return math.exp(log_chance(count, tests, background))


@lru_cache(maxsize=1 << 16)
def log_chance(count: int, tests: int, background: float) -> float:
    """Return the logarithm of ``chance``, which is too small for a number where much is bad."""
    if count <= 0:
        return 0.0
    if count > tests:
        return -math.inf
    if count <= tests * background:
        return math.log(min(1.0, math.fsum(_tail(count, tests, background))))
    total = term = 1.0
    for number in range(count, tests):
        term *= (tests - number) / (number + 1) * background / (1 - background)
        total += term
        if term < 1e-12 * total:
            break
    return min(0.0, _log_term(count, tests, background) + math.log(total))


def estimated(background: float, low: int, readings: int) -> float:
    """Return the share of low readings without a cause: what is assumed, or what ``readings`` show where that is more.

    It is no more than a run may have.
    """
    return max(background, min(MOST_BACKGROUND, low / max(1, readings)))


@lru_cache(maxsize=1 << 16)
def log_excess(count: int, tests: int, *, low: int, readings: int) -> float:
    """Return the logarithm of how likely ``count`` or more of ``low`` readings are among ``tests`` of all ``readings``.

    This is Fisher's exact test: whatever the background is, it is the same everywhere if nothing is wrong.
    """
    tests = min(tests, readings)
    if count * readings <= tests * low or readings - tests < low - count:
        return 0.0
    total = term = 1.0
    for number in range(count, min(tests, low)):
        term *= (tests - number) * (low - number) / ((number + 1) * (readings - tests - low + number + 1))
        total += term
        if term < 1e-12 * total:
            break
    ways = _log_ways(tests, count) + _log_ways(readings - tests, low - count) - _log_ways(readings, low)
    return min(0.0, ways + math.log(total))


def _log_ways(number: int, chosen: int) -> float:
    return math.lgamma(number + 1) - math.lgamma(chosen + 1) - math.lgamma(number - chosen + 1)


def _log_term(count: int, tests: int, background: float) -> float:
    return _log_ways(tests, count) + count * math.log(background) + (tests - count) * math.log1p(-background)


def _tail(count: int, tests: int, background: float) -> Iterator[float]:
    for number in range(count, tests + 1):
        term = math.exp(_log_term(number, tests, background))
        yield term
        if number > tests * background and term < 1e-12:
            return


def decisive(tests: int, background: float) -> int:
    """Return how many low readings in a row make one of ``tests`` links bad: one or two come by chance."""
    count = 2
    while tests * background**count >= SIGNIFICANT and count < 10:
        count += 1
    return count


def to_clear(low: int, tests: int, background: float, *, share: float) -> int:
    """Return how many more readings, none of them low, clear a component that read ``low`` in ``tests``.

    This is Wald's sequential test of ``share`` against the background, by what would clear it; 0 when it is cleared.
    """
    share = min(_LARGEST, max(share, 5 * background))
    if share <= background:
        # Nothing tells a fault from what every component of this run shows.
        return 0
    for_low = math.log(share / background)
    for_good = math.log1p(-share) - math.log1p(-background)
    evidence = low * for_low + (tests - low) * for_good - math.log(_MISSED)
    return max(0, math.ceil(evidence / -for_good))


@lru_cache(maxsize=4096)
def least_count(tests: int, background: float, compared: int, *, readings: int = 0) -> int:
    """Return the fewest low readings of ``tests`` that accuse one of ``compared`` components.

    ``readings``: those of the run, if it is to be told from the rest of the run too, or to make the run unsteady.
    """
    count = max(1, int(tests * background))
    limit = math.log(SIGNIFICANT / max(1, compared))
    while count <= tests and not _accuses(count, tests, background, limit=limit, readings=readings):
        count += 1
    return count


def _accuses(count: int, tests: int, background: float, *, limit: float, readings: int) -> bool:
    if log_chance(count, tests, background) >= limit:
        return False
    if not readings or log_excess(count, tests, low=count, readings=readings) < limit:
        return True
    return log_chance(count, readings, MOST_BACKGROUND) < math.log(SIGNIFICANT)


@lru_cache(maxsize=4096)
def sensitivity(tests: int, background: float, compared: int, *, more: int = 0, readings: int = 0) -> float | None:
    """Return the least share of bad tests that would have been found in 95 % of runs; None when not even 0.95.

    ``more``: readings that a suspect gets when one of its ``tests`` read low. ``readings``: those of the run.
    """
    shares = (s for s in SHARES if _found(s, tests, background, compared=compared, more=more, whole=readings) >= POWER)
    return next(shares, None)


def _found(share: float, tests: int, background: float, *, compared: int, more: int, whole: int) -> float:
    """Return how likely a component that is bad in ``share`` of its tests is accused."""
    at_once = chance(least_count(tests, background, compared, readings=whole), tests, share)
    if not more or not tests:
        return at_once
    needed = least_count(tests + more, background, compared, readings=whole and whole + more)
    # All of it, without the runs in which nothing made it a suspect.
    unseen = (1 - share) ** tests * chance(needed, more, share)
    return max(at_once, chance(needed, tests + more, share) - unseen)
