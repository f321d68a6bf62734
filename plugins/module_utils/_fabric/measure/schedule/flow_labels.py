# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Which of several paths the packets of a test take: flow labels of RoCE, LIDs of an InfiniBand port.

Switches choose among parallel paths by a hash over UDP ports, and the source port follows from the flow label. What a
test gets depends on the seed, on the test, and on pass and round alone.
"""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from typing import NamedTuple

# Higher labels repeat the UDP source ports of these.
LARGEST = 16383
# A prime that does not divide LARGEST, so that the labels of a test differ.
_STEP = 4001


class Paths(NamedTuple):
    """``labels``: of the queue pairs in turn, () for none. ``offset``: added to the LID of the peer, None without."""

    labels: tuple[int, ...] = ()
    offset: int | None = None


NONE = Paths()
# UDP source ports of RoCE v2 begin here.
_FIRST_PORT = 0xC000


def number_of(seed: int, test: Sequence[object], at: tuple[int, int]) -> int:
    """Return a number that is another one in each pass and round (``at``) of a test."""
    words = "|".join(map(str, (seed, *test, *at)))
    return int.from_bytes(hashlib.sha256(words.encode()).digest()[:8], "big")


def labels(number: int, count: int) -> tuple[int, ...]:
    """Return ``count`` different flow labels that follow from a number."""
    return tuple(1 + (number + index * _STEP) % LARGEST for index in range(min(count, LARGEST)))


def source_port(label: int) -> int:
    """Return the UDP source port that follows from a label of at most LARGEST."""
    return _FIRST_PORT | label
