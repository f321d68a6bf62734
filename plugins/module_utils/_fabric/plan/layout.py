# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What is decided before the plan is written down."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass

from ..intent.intent import Intent
from .addresses import Seat
from .hosts import Host
from .rails import RailMap
from .ranges import RailRange


@dataclass(frozen=True)
class Layout:
    """What is decided before the plan is written down. ``ranges`` is empty without a supernet.

    ``names``: host -> its own name and those of its groups. ``new``: (host, index of the rail) of new addresses;
    ``strangers``: the hosts outside of this run whose addresses are not known, folded.
    """

    intent: Intent
    hosts: tuple[Host, ...]
    rails: RailMap
    netdevs: tuple[str, ...]
    ranges: tuple[RailRange, ...]
    seats: Mapping[str, Seat]
    names: Mapping[str, Collection[str]]
    new: Collection[tuple[str, int]]
    strangers: str
