# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Which uplinks of switches a path between hosts crosses, by the groups of rdma_fabric.tests."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any


def homes(tests: Mapping[str, Any]) -> dict[str, str]:
    """Return host -> its group, for ``tests`` of a plan that say by how much uplinks are oversubscribed."""
    groups = tests["groups"] if tests["oversubscription"] else {}
    return {host: name for name, members in groups.items() for host in members}


def uplinks(tests: Mapping[str, Any], one: str, other: str) -> tuple[str, float]:
    """Return the groups whose uplinks lie between two groups of hosts, and by how much these are oversubscribed.

    ("", 1.0) inside a group and for hosts in none (""). ``tests``: those of the plan, whose ``parents`` are the larger
    groups of each group.
    """
    if one == other or "" in (one, other):
        return "", 1.0
    paths = [[*tests.get("parents", {}).get(name, ()), name] for name in (one, other)]
    common = next((at for at, names in enumerate(zip(*paths)) if len(set(names)) > 1), min(map(len, paths)))
    # Groups that part at their lowest level are joined by the switches right above them.
    level = max(map(len, paths)) - common
    ends = [path[min(common, len(path) - 1)] for path in paths]
    ratios = tests["oversubscription"]
    return f"{ends[0]} and {ends[1]}", float(ratios[min(level, len(ratios)) - 1])
