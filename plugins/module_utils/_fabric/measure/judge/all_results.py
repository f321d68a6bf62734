# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The results of all tests. Each is worked out once, until a pass changes it: those of a fleet take seconds."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from typing import Any

from ..schedule.schedule import Measurement, subject
from . import verdict
from .outcome import needed
from .results import judge, result, worth_of
from .session import State


def results(state: State) -> list[dict[str, Any]]:
    """Return the results of all tests, in their order; what was not planned only where it showed something."""
    new = state.attempts.keys() - state.told.keys()
    for test in new:
        shown = test not in state.extra or _shows(state, test)
        found = state.told[test] = result(state, test) if shown else None
        (state.lacking.add if found and _missing(state, found) else state.lacking.discard)(test)
    # Plain tuples compare faster than named ones. Only the order of new ones is to be found.
    if len(state.told) > len(state.order):
        state.order = sorted(state.told, key=tuple)
    return [found for found in map(state.told.__getitem__, state.order) if found is not None]


def forget(state: State, names: Collection[str]) -> None:
    """Forget the results of tests of hosts that were lost: those that were not played have another reason now."""
    for test in [test for test in state.told if test.client in names or test.server in names]:
        del state.told[test]


def _shows(state: State, test: Measurement) -> bool:
    """Return whether a test has a reading, or failed in a way that is firm evidence."""
    judged = ((attempt, *judge(state, test, attempt)) for attempt in state.attempts[test])
    return any(
        outcome != verdict.NO_DATA or worth_of(state, test, attempt, outcome=outcome, reason=reason).fault
        for attempt, outcome, reason in judged
    )


def _missing(state: State, found: Mapping[str, Any]) -> bool:
    """Return whether a test was played and lacks readings that can be had: no data, and something to judge by."""
    passes = found["passes"]
    usable = sum(one["verdict"] != verdict.NO_DATA for one in passes)
    return bool(passes) and usable < needed(state, subject(found)) and found["bound_by"] != "unknown"
