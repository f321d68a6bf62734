# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""How much is measured (``rdma_fabric.tests.budget``): slots of the schedule, and more slots for suspects alone.

What the budget leaves open can be set: ``tests.rounds`` (whom a host meets) and ``tests.repeats``. Where one of them is
set, no slots are filled with repeats.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

AUTO = "auto"
# Above this many hosts budget auto measures less: results are too many to be judged in memory.
STANDARD_UP_TO = 1024
# Slots of one pass that locates a fault, at most, for each reading that a test needs.
LOCATING = 64
# Modes whose tests say nothing about single ports, or not about the network: each test is measured once.
_ONCE = ("incast", "one_to_many", "loopback")


@dataclass(frozen=True)
class Budget:
    """``slots`` of the schedule for each kind and size of test, and up to ``more`` for suspects alone.

    ``share``: a port that reads low in this share of its tests is to be found. ``fills``: whether a schedule of fewer
    slots is repeated.
    """

    slots: int
    more: int
    share: float
    fills: bool = True


BUDGETS: Mapping[str, Budget] = {
    "quick": Budget(6, 90, 0.5, fills=False),
    "standard": Budget(60, 90, 0.1),
    "deep": Budget(120, 250, 0.05),
}


def name_of(tests: Mapping[str, Any], hosts: int) -> str:
    """Return the name of the budget for so many hosts."""
    name = str(tests["budget"])
    return name if name != AUTO else "standard" if hosts <= STANDARD_UP_TO else "quick"


def budget_of(tests: Mapping[str, Any], hosts: int) -> Budget:
    """Return the budget for so many hosts. ``tests``: complete."""
    return BUDGETS[name_of(tests, hosts)]


def meetings(tests: Mapping[str, Any], hosts: int) -> int:
    """Return how many others a host meets: ``tests.rounds``, or what fits into the slots of the budget.

    Mode topology has as many meetings between groups as inside.
    """
    if tests["rounds"] is not None:
        return int(tests["rounds"])
    each = (2 if tests["directions"] == "swap" else 1) * (2 if tests["mode"] == "topology" else 1)
    return max(3, budget_of(tests, hosts).slots // each)


def repeats(tests: Mapping[str, Any], hosts: int, rounds: int) -> int:
    """Return how often a schedule of ``rounds`` is measured: ``tests.repeats``, or what fits into the budget.

    Who sets ``tests.rounds`` has said how long the schedule is.
    """
    if tests["repeats"] is not None:
        return int(tests["repeats"])
    budget = budget_of(tests, hosts)
    if not budget.fills or tests["mode"] in _ONCE or tests["rounds"] is not None or not rounds:
        return 1
    slots = budget.slots * len(tests["kinds"]) * max(1, len(tests["sizes"]))
    return max(1, round(slots / rounds))


def needed(given: int | None, times: int) -> int:
    """Return how many of ``times`` readings a test must have: all that were ``given``, half of what fills slots."""
    return int(given or (times + 1) // 2)


def more(tests: Mapping[str, Any], hosts: int) -> int:
    """Return how many slots may be added for suspects alone; 0 where isolation is off or the mode tells nothing."""
    return 0 if tests["mode"] in _ONCE or not tests["isolation"] else budget_of(tests, hosts).more


def locating(tests: Mapping[str, Any], hosts: int, rails: int) -> int:
    """Return how many slots a pass that locates a fault has at most, for each reading that a test needs.

    In a small fabric each pair in both directions, each kind and size alone and the probes beside them are fewer.
    """
    if tests["mode"] == "loopback" or not tests["isolation"]:
        return 0
    sizes = len(tests["kinds"]) * max(1, len(tests["sizes"]))
    tried = sizes * (1 if tests["memory"] == "host" else 2) + 1
    in_turns = tests["rails_at_once"] is False or bool(tests.get("sharing"))
    turns = (rails if in_turns else 1) * (rails if tests["cross_rail"] else 1)
    return min(LOCATING, hosts * (hosts - 1) * tried * turns)
