# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What hosts bring to the numbering: the addresses that their rails have, or had."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from itertools import zip_longest

from ..._common.errors import InputError
from ..._common.reader import some
from ..intent.addressing import V6
from ..intent.intent import Intent
from .addresses import Claim, Seat, assign
from .hosts import Host
from .missing import recorded
from .rails import RailMap
from .ranges import RailRange


def find_seats(
    intent: Intent,
    hosts: Sequence[Host],
    rails: RailMap,
    *,
    ranges: Sequence[RailRange],
    second: Sequence[RailRange] = (),
) -> dict[str, Seat]:
    """Return the hosts' seats; with ``addresses: keep`` only the numbers mean something.

    ``second``: the ranges of IPv6 beside IPv4, in which each host has the same number.
    """
    if intent.addresses != "plan":
        ranges, second = (), ()
    claims = [Claim(host.name, host.number, _kept(host, rails, ranges, second=second)) for host in hosts]
    size = max([len(hosts), *(host.number or 0 for host in hosts)])
    if ranges:
        size = min(own.host_count for own in (*ranges, *second))
    taken = {number for own in (*ranges, *second) for number in own.taken}
    seats = assign(claims, rails.names[: len(ranges)], size, taken=taken)
    _check_second(seats, rails.names, list(zip(ranges, second)))
    return seats


def _check_second(seats: Mapping[str, Seat], names: Sequence[str], both: Sequence[tuple[RailRange, RailRange]]) -> None:
    """Refuse numbers of addresses that hosts keep and that are not those of hosts in the other version of IP."""
    problems = [
        f"{host} has the address number {number} on {name}"
        for host, seat in seats.items()
        for name, number, ranges in zip(names, seat.rails, both)
        if any(number > own.host_count or number in own.taken for own in ranges)
    ]
    if problems:
        raise InputError(
            f"IPv4 and IPv6 addresses of a host have the same number, and the subnets of one version do not have all"
            f" numbers that are in use for hosts: {some(problems)}. Use a shorter prefix of the rails, reserve other"
            " addresses, or remove these addresses from the ports"
        )


def _kept(
    host: Host, rails: RailMap, ranges: Sequence[RailRange], *, second: Sequence[RailRange]
) -> tuple[int | None, ...]:
    """Return for each rail the number of the address that the host has inside the rail's host block.

    One of IPv6 counts where there is none of IPv4.
    """
    if not host.facts:
        return (None,) * len(ranges)
    return tuple(
        next((number for own in both if own and (number := _number_of(texts, own)) is not None), None)
        for texts, both in zip(_texts(host, rails), zip_longest(ranges, second))
    )


def _texts(host: Host, rails: RailMap) -> Iterator[list[str]]:
    """Yield the addresses of each rail, also recorded ones that are gone unless ``number`` is set."""
    missing = rails.missing.get(host.name, {})
    for name, port in zip(rails.names, rails.ports[host.name]):
        known = (port["configured"] or {}).get("addresses", ()) if port else recorded(host, name, missing.get(name, ()))
        yield [*(port["addresses"] if port else ()), *(known if host.number is None else ())]


def _number_of(texts: Sequence[str], own: RailRange) -> int | None:
    for text in texts:
        if (":" in text) == (own.subnet.version == V6):
            number = own.number_of(text.split("/")[0])
            if number is not None:
                return number
    return None


def strangers(
    intent: Intent,
    hosts: Sequence[Host],
    rails: RailMap,
    *,
    ranges: Sequence[RailRange],
    second: Sequence[RailRange] = (),
) -> list[str]:
    """Return the hosts whose addresses are not known although they may have some.

    These are hosts outside of the run without facts, and hosts without any port of a rail that record none. Where no
    host has an address yet, the latter have none either.
    """
    kept = {host.name: _kept(host, rails, ranges, second=second) for host in hosts if intent.addresses != "keep"}
    begun = any(number is not None for own in kept.values() for number in own)
    return [
        host.name
        for host in hosts
        if not (host.facts or host.limited)
        or (begun and host.facts and not host.number and not any(rails.ports[host.name]) and not any(kept[host.name]))
    ]


def new_addresses(
    intent: Intent,
    hosts: Sequence[Host],
    rails: RailMap,
    *,
    ranges: Sequence[RailRange],
    second: Sequence[RailRange] = (),
) -> frozenset[tuple[str, int]]:
    """Return the hosts and indices of rails whose address comes from the order: neither host nor inventory names it."""
    if intent.addresses == "keep":
        return frozenset()
    return frozenset(
        (host.name, index)
        for host in hosts
        if host.facts and host.number is None
        for index, kept in enumerate(_kept(host, rails, ranges, second=second))
        if kept is None and rails.ports[host.name][index]
    )
