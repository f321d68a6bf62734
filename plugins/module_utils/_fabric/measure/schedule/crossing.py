# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Which uplinks of switches a path between hosts crosses, by the groups of rdma_fabric.tests."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any


def homes(tests: Mapping[str, Any]) -> dict[str, str]:
    """Return host -> its group, for ``tests`` of a plan."""
    return {host: name for name, members in tests["groups"].items() for host in members}


def levels(tests: Mapping[str, Any], one: str, other: str) -> int:
    """Return how many levels of switches above their own lie between two groups of hosts, 0 for one group.

    ``tests``: those of the plan, whose ``parents`` are the larger groups of each group.
    """
    return 0 if one == other else _parting(tests, one, other)[1]


def uplinks(tests: Mapping[str, Any], one: str, other: str) -> tuple[str, float]:
    """Return the groups whose uplinks lie between two groups of hosts, and by how much these are oversubscribed.

    ("", 1.0) inside a group, for hosts in none ("") and without oversubscription.
    """
    ratios = tests["oversubscription"]
    if not ratios or one == other or "" in (one, other):
        return "", 1.0
    ends, level = _parting(tests, one, other)
    return f"{ends[0]} and {ends[1]}", float(ratios[min(level, len(ratios)) - 1])


def _parting(tests: Mapping[str, Any], one: str, other: str) -> tuple[list[str], int]:
    """Return the largest groups of both that differ, and how many levels of switches lie between the two."""
    paths = [[*tests.get("parents", {}).get(name, ()), name] for name in (one, other)]
    common = next((at for at, names in enumerate(zip(*paths)) if len(set(names)) > 1), min(map(len, paths)))
    # Groups that part at their lowest level are joined by the switches right above them.
    return [path[min(common, len(path) - 1)] for path in paths], max(map(len, paths)) - common
