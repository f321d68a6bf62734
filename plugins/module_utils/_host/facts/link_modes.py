# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""How fast a port can be: the link modes that its driver supports, from the kernel's ETHTOOL_GLINKSETTINGS."""

from __future__ import annotations

import struct

GLINKSETTINGS = 0x4C
# struct ethtool_link_settings: cmd, speed, seven bytes, the words of a mask, then what does not matter here. The
# masks follow, in words of 32 bits: supported, advertised, advertised by the partner.
_HEADER = struct.Struct("=II7xb32x")
_MASKS = 3
# Gb/s -> first and last bits of its modes (enum ethtool_link_mode_bit_indices). 56 Gb/s is left out: cards of 40 Gb/s
# have it between themselves only. So are the modes below 1 Gb/s.
_BITS = {
    1: ((4, 5), (17, 17), (41, 41), (68, 68)),
    2.5: ((15, 15), (47, 47)),
    5: ((48, 48),),
    10: ((12, 12), (18, 19), (42, 46)),
    20: ((21, 22),),
    25: ((31, 33),),
    40: ((23, 26),),
    50: ((34, 35), (40, 40), (52, 56)),
    100: ((36, 39), (57, 61), (75, 79)),
    200: ((62, 66), (80, 84), (103, 108)),
    400: ((69, 73), (85, 89), (109, 114)),
    800: ((93, 98), (115, 120)),
    1600: ((121, 124),),
}
_SPEEDS = {bit: speed for speed, spans in _BITS.items() for low, high in spans for bit in range(low, high + 1)}


def request(words: int = 0) -> bytes:
    """Return what the kernel is asked: room for masks of ``words`` words; with 0 it answers how many it has."""
    return _HEADER.pack(GLINKSETTINGS, 0, words) + bytes(4 * words * _MASKS)


def words(reply: bytes) -> int:
    """Return the words of a mask as the kernel answers to a question with another number: less than 0."""
    return max(-int(_HEADER.unpack_from(reply)[2]), 0)


def max_speed(reply: bytes | None) -> float | None:
    """Return the highest supported speed in Gb/s, None when there is no answer or no mode that is known here."""
    if reply is None or len(reply) < _HEADER.size:
        return None
    size = 4 * max(int(_HEADER.unpack_from(reply)[2]), 0)
    # Words in the host's byte order, which is little-endian wherever these cards are.
    mask = int.from_bytes(reply[_HEADER.size : _HEADER.size + size], "little")
    return max((float(speed) for bit, speed in _SPEEDS.items() if mask >> bit & 1), default=None)
