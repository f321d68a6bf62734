# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What the attempts of InfiniBand tests showed of their ports: which of them demand a global header (GRH).

A port that demands one refuses every queue pair without it, so what it refuses only sometimes is a fault.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

from ..readings.exchange import path_refused
from ..readings.perftest import Run
from ..schedule.schedule import Measurement

End = tuple[str, str]
# Refused queue pairs, or passes with one, after which a port is taken to demand a GRH if it never accepted one without.
REFUSALS, PASSES = 3, 2


def ends_of(test: Measurement) -> tuple[End, End]:
    """Return host and rail of the client and of the server of a test."""
    return (test.client, test.rail), (test.server, test.server_rail)


@dataclass
class Grh:
    """By port the passes in which it refused queue pairs without a GRH, and the ports that accepted one.

    ``demanding``: the ports that demand one; it changes between passes only. ``attempts``: those refused, by test.
    """

    refused: dict[End, list[int]] = field(default_factory=dict)
    accepted: set[End] = field(default_factory=set)
    attempts: dict[Measurement, list[Any]] = field(default_factory=dict)
    demanding: frozenset[End] = frozenset()

    def add(self, test: Measurement, attempt: Any, runs: Sequence[Run | None]) -> None:
        """Add an attempt (session.Attempt) that had no GRH."""
        for end, run in zip(ends_of(test), runs):
            if path_refused(run):
                self.refused.setdefault(end, []).append(attempt.number)
                self.attempts.setdefault(test, []).append(attempt)
            elif attempt.sample is not None and run is not None and run.exchange != "cm":
                self.accepted.add(end)

    def settle(self) -> bool:
        """Work out which ports demand a GRH; return whether there are more than before."""
        before = self.demanding
        self.demanding = before | {
            end
            for end, passes in self.refused.items()
            if end not in self.accepted and (len(passes) >= REFUSALS or len(set(passes)) >= PASSES)
        }
        return self.demanding != before

    def demanded_by(self, test: Measurement) -> list[End]:
        """Return the ports of a test that demand a GRH."""
        return [end for end in dict.fromkeys(ends_of(test)) if end in self.demanding]

    def explains(self, test: Measurement, attempt: Any) -> bool:
        """Return whether an attempt failed only for want of a GRH."""
        return bool(self.demanded_by(test)) and any(attempt is one for one in self.attempts.get(test, ()))
