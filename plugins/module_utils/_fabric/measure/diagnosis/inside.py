# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Tests inside a leaf switch whose tests with other groups read low now and then: is it the switch or its uplinks?

Few tests of a schedule stay inside a leaf switch, so that a switch that is bad in few of them looks like its uplinks.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from itertools import cycle, islice

from ..schedule import modes
from ..schedule.schedule import Measurement, Round, subject
from .components import Component, Low, Totals, View
from .explain import Explanation
from .permanent import Reviewed
from .significance import to_clear
from .unsteady import understood


def rounds_inside(
    results: Reviewed, view: View, names: Sequence[str], *, left: int, named: Callable[[Measurement], bool]
) -> list[Round]:
    """Return rounds of tests inside groups whose uplinks are unsteady, at most ``left``, until it is not the switch.

    That is when a switch with the share of bad tests that its uplinks have would have shown more low readings inside.
    """
    seen, totals = understood(results, view)
    rounds: list[Round] = []
    for part, own in seen.found:
        members = [name for name in names if view.homes.get(name) == part.one]
        if part.kind == "uplinks" and len(members) > 1:
            needs = _needed(part, own, seen, totals=totals)
            rounds += islice(_rounds(subject(own[0].result), members, named), -(-needs // (len(members) // 2)))
    return rounds[: max(0, left)]


def _needed(part: Component, own: Sequence[Low], seen: Explanation, *, totals: Totals) -> int:
    """Return how many readings inside the group of ``part`` are missing, if none of them is low."""
    group = Component("group", part.rail, part.one)
    lows = [*seen.rest, *(low for _part, theirs in seen.found for low in theirs)]
    inside = sum(low.number for low in lows if group in low.parts and part not in low.parts)
    share = sum(low.number for low in own) / max(1, totals.tests[part])
    return to_clear(inside, totals.tests[group] - totals.tests[part], seen.background, share=share)


def _rounds(like: Measurement, members: Sequence[str], named: Callable[[Measurement], bool]) -> Iterator[Round]:
    """Yield rounds of disjoint pairs without end, each pair in both directions in turn."""
    for at, pairs in enumerate(cycle(modes.circle(members))):
        ways = (pair if at % 2 else pair[::-1] for pair in pairs)
        tests = (like._replace(client=one, server=other, peer_rail="", star="") for one, other in ways)
        yield tuple(test for test in tests if named(test))
