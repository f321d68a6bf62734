# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The components that explain low readings: the fewest that have more of them than chance explains.

The most certain one is taken first, and what it explains speaks against no other.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass

from .components import NARROW_FIRST, Component, Low, Result, Totals, ends_of
from .significance import MOST_BACKGROUND, SIGNIFICANT, estimated, log_chance, log_excess

# Of which low readings are compared with those of the rest of the run.
_KINDS = NARROW_FIRST[:-1]
_RUN = Component("run")
# A direction is taken for a port only where it is that much more certain.
_PENALTY = {"direction": math.log(100)}
# So many pairs that read low each time may be expected of what comes and goes.
_EVER = 0.05
# What is no matter of single hosts must have low readings of so many pairs without a common port.
_WIDE = ("groups", "uplinks", "group", "paths", "rail")
_SPREAD = 3
# Of what is inside a component, this many are compared with it.
_INSIDE = 16


@dataclass(frozen=True)
class Explanation:
    """``found``: unsteady components with their low readings; ``rest``: what chance explains.

    ``steady``: pairs of which all readings are low, more of them than what comes and goes explains.
    ``background``: the share of low readings without a cause, as assumed or as seen in the run.
    """

    found: list[tuple[Component, list[Low]]]
    rest: list[Low]
    background: float
    steady: Sequence[Low] = ()


def explain(lows: Sequence[Low], totals: Totals, background: float) -> Explanation:
    """Return the components that are unsteady beyond the background, and beyond the rest of the run.

    What is left is the background of this run, up to MOST_BACKGROUND, or the run itself is unsteady: then nobody knows
    what it is.
    """
    steady = _steady(lows, totals)
    gone = {id(low) for low in steady}
    others = [low for low in lows if id(low) not in gone]
    found, rest = _greedy(others, totals, background, kinds=_KINDS)
    count, readings, usual = sum(low.number for low in rest), totals.tests[_RUN], max(background, MOST_BACKGROUND)
    if log_chance(count, max(count, readings), usual) < math.log(SIGNIFICANT):
        found, rest = [*found, (_RUN, rest)], []
    if log_chance(count, max(count, readings), background) < math.log(SIGNIFICANT):
        background = max(background, count / max(1, readings))
    left = _joined(found, steady, totals)
    return Explanation(found, rest, background, left)


def _steady(lows: Sequence[Low], totals: Totals) -> list[Low]:
    """Return the low readings of pairs of ports without any other reading, of which there are two or more."""
    pairs: dict[Component, list[Low]] = {}
    for low in lows:
        pairs.setdefault(_pair_of(low), []).append(low)
    whole = (own for pair, own in pairs.items() if sum(low.number for low in own) == totals.tests[pair] > 1)
    return [low for own in whole for low in own]


def _pair_of(low: Low) -> Component:
    return next(part for part in low.parts if part.kind == "pair")


def _joined(found: list[tuple[Component, list[Low]]], steady: Sequence[Low], totals: Totals) -> list[Low]:
    """Add low readings of steady pairs to what may well make a pair low in all of its readings; return the others."""
    left = []
    shares = {part: sum(low.number for low in own) / max(1, totals.tests[part]) for part, own in found}
    for low in steady:
        count = totals.tests[_pair_of(low)]
        fits = (own for part, own in found if part in low.parts and shares[part] ** count * totals.tests[part] > _EVER)
        own = next(fits, None)
        if own is None:
            left.append(low)
        else:
            own.append(low)
    return left


def _is_spread(lows: Sequence[Low], least: int) -> bool:
    """Return whether low readings are of so many pairs that have no port in common."""
    used: set[tuple[str, str]] = set()
    count = 0
    for low in lows:
        ends = ends_of(low.result)
        if used.isdisjoint(ends):
            used.update(ends)
            count += 1
            if count >= least:
                return True
    return count >= least


class _Left:
    """Working copy: the low readings that nothing explains yet, by component, and the ``readings`` they are of.

    ``inside``: they are those of one component alone.
    """

    def __init__(self, lows: Sequence[Low], kinds: Collection[str], *, readings: int, inside: bool) -> None:
        self.by_part: dict[Component, set[int]] = {}
        self.counts: Counter[Component] = Counter()
        self.lows = lows
        self.kinds = kinds
        self.left = set(range(len(lows)))
        self.number = sum(low.number for low in lows)
        self.readings = readings
        self.inside = inside
        for at, low in enumerate(lows):
            for part in low.parts:
                if part.kind in kinds:
                    self.by_part.setdefault(part, set()).add(at)
                    self.counts[part] += low.number

    def take(self, part: Component, readings: int) -> list[Low]:
        """Remove the low readings of a component, which has so many ``readings``, and return them."""
        gone = sorted(self.by_part[part] & self.left)
        self.left -= set(gone)
        self.number -= sum(self.lows[at].number for at in gone)
        self.readings -= readings
        for at in gone:
            for other in self.lows[at].parts:
                if other.kind in self.kinds:
                    self.counts[other] -= self.lows[at].number
        return [self.lows[at] for at in gone]

    def own(self, part: Component) -> list[Low]:
        """Return the low readings of a component that are left."""
        return [self.lows[at] for at in sorted(self.by_part[part] & self.left)]


def _greedy(
    lows: Sequence[Low], totals: Totals, background: float, *, kinds: Collection[str], inside: bool = False
) -> tuple[list[tuple[Component, list[Low]]], list[Low]]:
    """Return the most certain components, each with the low readings that it explains, and the rest of these.

    ``inside``: these are the low readings of one component, to be explained by what is in it.
    """
    left = _Left(lows, kinds, readings=totals.tests[_RUN], inside=inside)
    found: list[tuple[Component, list[Low]]] = []
    while left.left and not (inside and len(found) >= _INSIDE):
        value, best = _best(left, totals, background)
        if value >= 0:
            break
        if best.kind in _WIDE and not _is_spread(left.own(best), min(_SPREAD, totals.compared["host"] // 2)):
            left.counts[best] = 0
            continue
        narrower = [kind for kind in NARROW_FIRST[: NARROW_FIRST.index(best.kind)] if kind in kinds]
        if narrower and not inside:
            best = _narrowed(best, left, totals, background=background, kinds=narrower) or best
        found.append((best, left.take(best, totals.tests[best])))
    return found, [lows[at] for at in sorted(left.left)]


def _best(left: _Left, totals: Totals, background: float) -> tuple[float, Component]:
    """Return how much less likely than permitted the low readings of the least likely component are, and which it is.

    The number is a logarithm, below 0 where chance does not explain them.
    """
    counts = ((part, count) for part, count in left.counts.items() if count > 0)
    values = (
        (_value(part, count, totals, background=background, left=left), NARROW_FIRST.index(part.kind), part)
        for part, count in counts
    )
    value, _order, part = min(values)
    return value, part


def _value(part: Component, count: int, totals: Totals, *, background: float, left: _Left | None = None) -> float:
    """Return the weaker evidence of two: against ``background``, and against what is ``left`` of the whole run."""
    allowed = math.log(SIGNIFICANT / max(1, totals.compared[part.kind])) - _PENALTY.get(part.kind, 0.0)
    readings = max(count, totals.tests[part])
    value = log_chance(count, readings, background) - allowed
    if left is None or left.inside or value >= 0:
        return value
    return max(value, log_excess(count, readings, low=left.number, readings=left.readings) - allowed)


def _narrowed(
    part: Component, left: _Left, totals: Totals, *, background: float, kinds: Collection[str]
) -> Component | None:
    """Return the first of some narrower components if they explain the readings of a wide one better than it does.

    Two bad ports make their rail unlikely as well; a bad rail makes all of its ports unlikely, but each of them less.
    """
    lows = left.own(part)
    own = sum(low.number for low in lows)
    background = estimated(background, left.number - own, left.readings - totals.tests[part])
    found, _rest = _greedy(lows, totals, background, kinds=kinds, inside=True)
    counts = [(one, sum(low.number for low in its)) for one, its in found]
    together = sum(_value(one, count, totals, background=background) for one, count in counts)
    return found[0][0] if found and together < _value(part, own, totals, background=background) else None


def suspects(rest: Iterable[Low], totals: Totals) -> dict[tuple[str, str], tuple[int, int, Result]]:
    """Return the ports in low readings that nothing explains: low readings, readings, and a test of each."""
    found: dict[tuple[str, str], tuple[int, int, Result]] = {}
    for low in rest:
        for host, rail in ends_of(low.result):
            count = low.number + found.get((host, rail), (0, 0, low.result))[0]
            found[host, rail] = count, totals.tests[Component("port", rail, host)], low.result
    return found
