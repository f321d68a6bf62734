# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What the ports of an InfiniBand test need of perftest, by what their testers described (described.py).

perftest takes the index of a partition key in the table of its own port. It sends without a global header (GRH) unless
it gets the index of a GID, and does not see that a port demands one.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from ...._common.reader import some
from ...plan.partitions import FULL_MEMBER

Rail = Mapping[str, str]
_SHOWN = 8


def is_ib(rail: Rail) -> bool:
    """Return whether a described rail is an InfiniBand port."""
    return rail.get("gid_type") == "IB"


def needs_grh(one: Rail, other: Rail) -> bool:
    """Return whether packets between two ports need a GRH: LIDs do not reach other subnets, nor tell VFs apart."""
    apart = "prefix" in one and "prefix" in other and one["prefix"] != other["prefix"]
    return is_ib(one) and (apart or "yes" in (one.get("vf"), other.get("vf")))


def pkey_of(planned: Mapping[str, Any], where: str) -> int | None:
    """Return the partition in which a rail of the plan is used at a place, without the bit of full members."""
    key = planned.get("pkey", {}).get(where)
    return int(key, 16) & ~FULL_MEMBER if key else None


def _table(rail: Rail) -> dict[int, int]:
    pairs = (one.split(":") for one in rail.get("pkeys", "").split())
    return {int(index): int(key, 16) for index, key in pairs}


def pkey_index(rail: Rail, partition: int | None) -> int | None:
    """Return where the port has a partition, as a full member if it is one; index 0 for no partition.

    None when the port is not in the partition.
    """
    if partition is None:
        return 0
    found = [(not key & FULL_MEMBER, at) for at, key in _table(rail).items() if key & ~FULL_MEMBER == partition]
    return min(found)[1] if found else None


def partition_flaw(rail: Rail, partition: int | None) -> str:
    """Return why a port cannot be measured in a partition, "" when it can."""
    if not is_ib(rail) or "pkeys" not in rail or pkey_index(rail, partition) is not None:
        return ""
    keys = [f"0x{key:04x}" for _at, key in sorted(_table(rail).items())]
    return (
        f"{rail['device']} is not in the partition 0x{partition:04x}, it is in {some(keys, _SHOWN) or 'none'}."
        " Let the administrator of the subnet manager add the port to the partition"
    )


def apart(end: tuple[str, Rail], peer: tuple[str, Rail], partition: int | None) -> str:
    """Return why the partitions of two ports keep them from each other, "" when they do not.

    ``end`` and ``peer``: what the ports are called, and how they are described.
    """
    (name, one), (other_name, other) = end, peer
    keys = [_table(rail).get(at) if (at := pkey_index(rail, partition)) is not None else None for rail in (one, other)]
    if not (is_ib(one) and is_ib(other)) or keys[0] is None or keys[1] is None:
        return ""
    mine, its = keys[0], keys[1]
    if mine & ~FULL_MEMBER != its & ~FULL_MEMBER:
        text = f"its first partition is 0x{mine:04x}, that of {other_name} is 0x{its:04x}"
        return f"{name}: {text}. Set rdma_fabric.pkey to the partition of the rails"
    if mine | its < FULL_MEMBER:
        text = f"it is a limited member of the partition 0x{mine:04x}, and so is {other_name}"
        action = "Let the administrator of the subnet manager make them full members"
        return f"{name}: {text}. Limited members do not reach each other. {action}"
    return ""


def options(rail: Rail, partition: int | None, *, grh: bool, level: int | None) -> str:
    """Return the options of perftest for one end of a test; ``level``: the service level, None for perftest's."""
    index = pkey_index(rail, partition) or 0
    words = [f"-x {rail['gid']}"] if grh else []
    words += [f"--pkey_index={index}"] if index else []
    words += [f"-S {level}"] if level is not None else []
    return " ".join(words)
