# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Which hosts run collectives together, and what each runs."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from ...intent.nccl import NETWORK
from ...intent.tests import complete

_FEWEST = 2
# Seconds to start the processes, CUDA and the communicators of a collective, and more for each host.
_START = 90
_PER_HOST = 2
# A collective that is slower (GB/s) is given up.
_SLOWEST = 1.0


@dataclass(frozen=True)
class Unit:
    """Hosts that run collectives together, by their names in the inventory."""

    name: str
    scope: str
    hosts: tuple[str, ...]


@dataclass(frozen=True)
class Collective:
    """One run of nccl-tests in a unit; ``ranks``: GPUs in a communicator."""

    collective: str
    path: str

    @property
    def program(self) -> str:
        """The program of nccl-tests."""
        return f"{self.collective}_perf"

    def ranks(self, hosts: int, gpus: int) -> int:
        """Return how many GPUs a communicator has."""
        return hosts if self.path == NETWORK else hosts * gpus


def options(plan: Mapping[str, Any]) -> dict[str, Any]:
    """Return ``tests.nccl`` of a plan."""
    return dict(complete(plan.get("tests") or {})["nccl"])


def rounds(plan: Mapping[str, Any], hosts: Sequence[str]) -> list[list[Unit]]:
    """Return the units, those of one list at the same time: pairs first, then groups.

    Each host is in one pair; with an odd number the last one is with the first in a list of its own. A group with fewer
    than two hosts of the run runs nothing.
    """
    chosen = options(plan)["scopes"]
    found = []
    if "pairs" in chosen and len(hosts) >= _FEWEST:
        pairs = [_pair(hosts[at], hosts[at + 1]) for at in range(0, len(hosts) - 1, 2)]
        found.append(pairs)
        if len(hosts) % 2:
            found.append([_pair(hosts[0], hosts[-1])])
    if "groups" in chosen:
        members = [(name, [host for host in hosts if host in own]) for name, own in _groups(plan).items()]
        groups = [Unit(name, "groups", tuple(own)) for name, own in members if len(own) >= _FEWEST]
        found += [groups] if groups else []
        if not members and len(hosts) >= _FEWEST + ("pairs" in chosen):
            found.append([Unit("all", "groups", tuple(hosts))])
    return [units for units in found if units]


def _pair(one: str, other: str) -> Unit:
    return Unit(f"{one} and {other}", "pairs", (one, other))


def _groups(plan: Mapping[str, Any]) -> Mapping[str, Sequence[str]]:
    groups = (plan.get("tests") or {}).get("groups") or {}
    return {name: own for name, own in groups.items() if isinstance(own, (list, tuple))}


def collectives(plan: Mapping[str, Any]) -> list[Collective]:
    """Return what each unit runs, in order."""
    chosen = options(plan)
    return [Collective(name, path) for path in chosen["paths"] for name in chosen["collectives"]]


def seconds(plan: Mapping[str, Any], hosts: int) -> int:
    """Return how long one collective of so many hosts may take."""
    chosen = options(plan)
    # Warm-up, checks and both kinds of buffers come on top of the timed iterations.
    data = chosen["size"] * (chosen["iterations"] + 10) * 2 * 2 / 1e9
    return int(_START + _PER_HOST * hosts + data / _SLOWEST)
