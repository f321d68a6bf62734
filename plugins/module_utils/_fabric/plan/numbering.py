# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What hosts bring to the numbering: the addresses that their rails have, or had."""

from __future__ import annotations

from collections.abc import Sequence

from ..intent.intent import Intent
from .addresses import Claim, Seat, assign
from .hosts import Host
from .rails import Port, RailMap
from .ranges import RailRange


def find_seats(
    intent: Intent, hosts: Sequence[Host], rails: RailMap, *, ranges: Sequence[RailRange]
) -> dict[str, Seat]:
    """Return the hosts' seats; with ``addresses: keep`` only the numbers mean something."""
    planned = ranges if intent.addresses == "plan" else ()
    claims = [Claim(host.name, host.number, _kept(host, rails, planned)) for host in hosts]
    size = planned[0].host_count if planned else max([len(hosts), *(host.number or 0 for host in hosts)])
    taken = {number for own in planned for number in own.taken}
    return assign(claims, rails.names[: len(planned)], size, taken=taken)


def _kept(host: Host, rails: RailMap, ranges: Sequence[RailRange]) -> tuple[int | None, ...]:
    """Return for each rail the number of the address that the host has inside the rail's host block."""
    if not host.facts:
        return (None,) * len(ranges)
    return tuple(_number_of(host, port, own) for port, own in zip(rails.ports[host.name], ranges))


def _number_of(host: Host, port: Port, own: RailRange) -> int | None:
    """Return the number of the port's address, also of a recorded one that is gone, unless ``number`` is set."""
    recorded = port["configured"]["addresses"] if port["configured"] and host.number is None else []
    for text in (*port["addresses"], *recorded):
        if ":" not in text:
            number = own.number_of(text.split("/")[0])
            if number is not None:
                return number
    return None


def new_addresses(
    intent: Intent, hosts: Sequence[Host], rails: RailMap, *, ranges: Sequence[RailRange]
) -> frozenset[tuple[str, int]]:
    """Return the hosts and indices of rails whose address comes from the order: neither host nor inventory names it."""
    if intent.addresses == "keep":
        return frozenset()
    return frozenset(
        (host.name, index)
        for host in hosts
        if host.facts and host.number is None
        for index, kept in enumerate(_kept(host, rails, ranges))
        if kept is None
    )
