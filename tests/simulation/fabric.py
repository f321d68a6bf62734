"""The switches of a fabric, and which of them a queue pair's packets pass.

Each rail is a tree of its own. Hosts are in leaves, leaves in blocks, blocks in pods. Between two hosts whose lowest
common switch is n levels above the leaf, a packet takes one of ``spines`` uplinks at each of the n levels. Which ones
follows from a hash of addresses and UDP source port, so that it is fixed for a queue pair and a direction.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

_MASK = 0xFFFFFFFF


@dataclass(frozen=True)
class Tree:
    """``hosts`` on ``rails``, with ``levels`` of switches: 1 is a single switch on each rail.

    ``leaf``: hosts of a leaf. ``fan``: groups that a larger group has. ``spines``: uplinks of a switch to choose from.
    """

    hosts: int
    rails: int
    levels: int = 1
    leaf: int = 8
    fan: int = 4
    spines: int = 4

    @cached_property
    def names(self) -> list[str]:
        """The hosts."""
        return [f"gpu-{number:04d}" for number in range(self.hosts)]

    @cached_property
    def rail_names(self) -> list[str]:
        """The rails."""
        return [f"rail{number}" for number in range(self.rails)]

    def size(self, level: int) -> int:
        """How many hosts are below a switch of a level; level 0 is the leaf."""
        return self.hosts if level >= self.levels - 1 else self.leaf * self.fan**level

    def group(self, host: int, level: int = 0) -> int:
        """The number of the group of a level that a host is in."""
        return host // self.size(level)

    def groups(self) -> dict[str, list[str]]:
        """The leaves by name, as an inventory has them; {} for a single switch."""
        if self.levels == 1:
            return {}
        leaves: dict[str, list[str]] = {}
        for number, name in enumerate(self.names):
            leaves.setdefault(leaf_name(self.group(number)), []).append(name)
        return leaves

    def parents(self) -> dict[str, list[str]]:
        """The larger groups of each leaf, the largest first; {} where there are none."""
        if self.levels < 3:
            return {}
        return {
            leaf_name(self.group(host)): [f"group{level}-{self.group(host, level)}" for level in self._larger()]
            for host in range(0, self.hosts, self.size(0))
        }

    def _larger(self) -> range:
        return range(self.levels - 2, 0, -1)

    def climb(self, one: int, other: int) -> int:
        """How many levels above the leaf the lowest common switch of two hosts is."""
        return next(level for level in range(self.levels) if self.group(one, level) == self.group(other, level))

    def choice(self, sender: int, receiver: int, port: int, level: int) -> int:
        """Which of the uplinks of a level packets from ``sender`` to ``receiver`` take."""
        return mixed(sender * 4099 + receiver, port * 16 + level) % self.spines


def leaf_name(number: int) -> str:
    """The name of a leaf."""
    return f"leaf{number:03d}"


def mixed(one: int, other: int) -> int:
    """A hash of two numbers: the same everywhere, unlike that of Python."""
    value = (one * 0x9E3779B1 ^ other * 0x85EBCA77) & _MASK
    value = ((value ^ (value >> 15)) * 0x2C1B3C6D) & _MASK
    value = ((value ^ (value >> 12)) * 0x297A2D39) & _MASK
    return value ^ (value >> 15)
