# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The results of one place as all steps of the diagnosis read them, and what a permanent fault explains of them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any, Union

from ..schedule.schedule import subject
from . import absence, duplicates, fan, host_memory
from .causes import Cause, causes
from .components import Low, Totals, View, lows_of
from .pass_index import Fleet

Result = Mapping[str, Any]
# What comes and goes is told as unsteady, and one pair or an unknown path explains no more than itself. A leaf switch,
# its uplinks and the paths between groups are paths too, but known ones.
_OPEN = ("pair", "path")


@dataclass
class Review:
    """The results of one place. What several steps need of them is worked out once: a fleet's take seconds."""

    results: Sequence[Result]
    view: View

    @classmethod
    def of(cls, results: Reviewed, view: View) -> Review:
        """Return a review of results, which may be one already."""
        return results if isinstance(results, Review) else cls(results, view)

    @cached_property
    def _of_network(self) -> tuple[Sequence[Result], list[Result]]:
        known, _hit = duplicates.split(absence.split(self.results)[0])
        return host_memory.split(known)

    @cached_property
    def _parts(self) -> tuple[Sequence[Result], list[fan.Star]]:
        return fan.split(self._of_network[0])

    @property
    def pairs(self) -> Sequence[Result]:
        """The results of pairs, without what absence, duplicate addresses and slow host memory explain."""
        return self._parts[0]

    @property
    def slow_memory(self) -> list[Result]:
        """The results that only host memory makes too slow."""
        return self._of_network[1]

    @property
    def stars(self) -> list[fan.Star]:
        """The stars that failed."""
        return self._parts[1]

    @cached_property
    def fleet(self) -> Fleet:
        """What passed and failed of the pairs."""
        return Fleet.of(self.pairs, self.view)

    @cached_property
    def causes(self) -> list[Cause]:
        """The causes of all that failed of the pairs."""
        return causes(self.fleet)

    @cached_property
    def lows(self) -> list[Low]:
        """The results with low readings."""
        return lows_of(self.results, self.view.homes)

    @cached_property
    def totals(self) -> Totals:
        """How many readings each component has."""
        return Totals.of(self.results, self.view.homes)


Reviewed = Union[Sequence[Result], Review]


def without_permanent(review: Review) -> Sequence[Result]:
    """Return the results of one place that say something about faults that come and go.

    Stars are none of them: their sum is judged, and no share of it.
    """
    results = review.results
    if not any(result["verdict"] == "fail" or result.get("star") for result in results):
        return results
    gone = {
        failure.test
        for cause in review.causes
        if (cause.scope.kind not in _OPEN or cause.component) and not cause.unsteady
        for failure in cause.failures
    }
    gone.update(map(subject, review.slow_memory))
    if not gone:
        return [result for result in results if not result.get("star")]
    return [result for result in results if not result.get("star") and subject(result) not in gone]
