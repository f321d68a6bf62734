# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What is decided before the plan is written down."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass, replace

from ..._common.errors import InputError
from ..._common.reader import some
from ..intent.intent import Intent
from ..intent.networks import of_rail
from ..operator.profiles import registry
from .addresses import Seat
from .hosts import Host
from .rails import RailMap
from .ranges import RailRange


@dataclass(frozen=True)
class Layout:
    """What is decided before the plan is written down. ``ranges`` is empty without a supernet.

    ``ranges_ipv6``: those of IPv6 beside IPv4, with the same numbers of hosts.

    ``names``: host -> its own name and those of its groups. ``new``: (host, index of the rail) of new addresses;
    ``strangers``: the hosts whose addresses are not known although they may have some, folded.
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
    ranges_ipv6: tuple[RailRange, ...] = ()
    beside_ipv4: bool = False

    @property
    def ipv6(self) -> Layout | None:
        """The layout of the IPv6 addresses beside those of IPv4, None without them."""
        own = self.intent.ipv6
        return replace(self, intent=own, ranges=self.ranges_ipv6, ranges_ipv6=(), beside_ipv4=True) if own else None

    def resource(self, rail: str) -> str:
        """Return the resource of a rail that pods request."""
        return registry.resource(self.intent, of_rail(self.intent.networks.resource, rail))

    def pool(self, rail: str) -> str:
        """Return the name of the pool of a rail."""
        return of_rail(self.intent.networks.pool, rail) + ("-ipv6" if self.beside_ipv4 else "")


def check_pools(layout: Layout) -> None:
    """Refuse pools of two rails with one name."""
    names = [own.pool(rail) for own in (layout, layout.ipv6) if own for rail in layout.rails.names]
    twice = sorted({name for name in names if names.count(name) > 1})
    if twice:
        raise InputError(
            f"rdma_fabric.rails: the pool {some(twice)} would be that of two rails, since IPv6 pools have names that"
            " end with -ipv6. Name the rails or rdma_fabric.networks.pool otherwise"
        )
