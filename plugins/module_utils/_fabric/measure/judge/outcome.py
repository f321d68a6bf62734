# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Which attempt decides on a test, of several."""

from __future__ import annotations

from collections.abc import Sequence

from ...intent.kinds import KINDS
from ..schedule.schedule import Measurement
from . import verdict
from .flaws import blocked
from .session import Attempt, State

# An attempt, its verdict and its reason.
Judged = Sequence[tuple[Attempt, str, str]]


def needed(state: State, test: Measurement) -> int:
    """Return how many readings a test needs: one where only a suspect was to meet a partner."""
    return 1 if test in state.extra else state.needed


def decided(state: State, test: Measurement, judged: Judged) -> tuple[Attempt | None, str, str]:
    """Return the attempt that decides, and its verdict and reason.

    All of its readings count. A test fails where most of them are too low. Where only some are, it passes, and the low
    ones count for the ports and paths that it used (unsteady.py); those of stars and of loopback let it fail.
    """
    if not judged:
        return None, verdict.NO_DATA, blocked(state, test) or state.failure or "not played"
    usable = [one for one in judged if one[1] != verdict.NO_DATA]
    low = [one for one in usable if one[1] == verdict.FAIL]
    asked_again = test in state.repeated and len(judged) > state.repeated[test]
    # Nothing counts the low readings of a star or of a host with itself, so one of them decides.
    alone = bool(test.star) or test.client == test.server
    if 2 * len(low) > len(usable) or (low and alone and not asked_again):
        return _worst(test, low)
    wanted = needed(state, test)
    if usable and (asked_again or len(usable) >= wanted):
        return _worst(test, [one for one in usable if one[1] == verdict.PASS])
    attempt, outcome, reason = [one for one in judged if one[1] == verdict.NO_DATA][-1]
    some = f"{len(usable)} of {wanted} runs gave data; " if usable else ""
    return attempt, outcome, some + reason


def _worst(test: Measurement, judged: Judged) -> tuple[Attempt, str, str]:
    def value(one: tuple[Attempt, str, str]) -> float:
        reached = one[0].sample.value if one[0].sample else 0.0
        return -reached if KINDS[test.kind].latency else reached

    return min(judged, key=value) if len(judged) > 1 else judged[0]
