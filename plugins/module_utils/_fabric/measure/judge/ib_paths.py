# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What the attempts of InfiniBand tests showed of their ports: which demand a global header (GRH), and other LIDs.

A port that demands a GRH refuses every queue pair without it, so what it refuses only sometimes is a fault.

With an LMC each port has several LIDs, and each is a path. Packets have the first LID of their sender, while the queue
pair expects the one that its perftest was given: InfiniBand lets a port drop these (9.6.1.5), and there is no option of
perftest for the LID of the sender. So a failure by another LID is a fault only where other tests pass by one.
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


@dataclass
class Lids:
    """By rail whether a test gave a reading by another LID than the first, and the attempts without one.

    ``first_only``: rails on which no test did, with the pass after which all tests use the first LIDs.
    """

    reached: set[str] = field(default_factory=set)
    failed: dict[str, list[Any]] = field(default_factory=dict)
    first_only: dict[str, int] = field(default_factory=dict)

    def add(self, rail: str, attempt: Any) -> None:
        """Add an attempt (session.Attempt) by another LID than the first."""
        if attempt.sample is not None:
            self.reached.add(rail)
        else:
            self.failed.setdefault(rail, []).append(attempt)

    def settle(self, number: int) -> None:
        """Work out after a pass on which rails the other LIDs lead nowhere."""
        for rail in self.failed.keys() - self.reached:
            self.first_only.setdefault(rail, number)

    def usable(self, rail: str, number: int | None) -> bool:
        """Return whether tests use other LIDs in a pass; None: in the next one."""
        last = self.first_only.get(rail)
        return last is None or (number is not None and number <= last)

    def unproven(self, rail: str, attempt: Any) -> bool:
        """Return whether an attempt without a reading says nothing, since no test passed by another LID."""
        return rail not in self.reached and any(attempt is one for one in self.failed.get(rail, ()))
