# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Which host gets which number and address on each rail, without ever moving an address that fits."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass
from itertools import chain, islice

from ..._common.errors import ConflictError, InputError


@dataclass(frozen=True)
class Claim:
    """What one host brings: its number by inventory, and per rail the number of an address it already has."""

    host: str
    number: int | None
    kept: tuple[int | None, ...]


@dataclass(frozen=True)
class Seat:
    """What one host gets: its number, and per rail the number of its address there."""

    number: int
    rails: tuple[int, ...]


def assign(claims: Sequence[Claim], rails: Sequence[str], size: int, *, taken: Collection[int] = ()) -> dict[str, Seat]:
    """Return a seat for each host; numbers are 1..``size`` without ``taken``, unique on every rail.

    There are as many numbers as hosts, or more.
    Kept addresses come first, then the inventory's numbers, then the first free number in the order of
    ``claims``, which must be the order of the whole group.
    """
    # Kept addresses take some of them, each host at most one on each rail.
    enough = len(claims) * (len(rails) + 1)
    free = list(islice((number for number in range(1, size + 1) if number not in taken), enough))
    held = _kept(claims, rails)
    numbers = _numbers(claims, held, free=free, fixed=_fixed_numbers(claims, taken, size))
    _check_clashes(claims, rails, held)
    for claim in claims:
        for rail, kept in enumerate(claim.kept):
            if kept is None:
                held[rail].setdefault(numbers[claim.host], claim.host)
    return {claim.host: _seat(claim, numbers[claim.host], held, free=free) for claim in claims}


def _kept(claims: Sequence[Claim], rails: Sequence[str]) -> list[dict[int, str]]:
    """Return for each rail number -> host of the addresses that stay."""
    taken: list[dict[int, str]] = [{} for _rail in rails]
    problems = []
    for claim in claims:
        for rail, number in enumerate(claim.kept):
            if number is not None and taken[rail].setdefault(number, claim.host) != claim.host:
                other = taken[rail][number]
                problems.append(f"{other} and {claim.host} both have address number {number} of {rails[rail]}")
    if problems:
        raise ConflictError(
            f"the same address is in use on two hosts: {'; '.join(problems)}. Remove it from one of them"
        )
    return taken


def _numbers(
    claims: Sequence[Claim], taken: Sequence[dict[int, str]], *, free: Sequence[int], fixed: dict[str, int]
) -> dict[str, int]:
    """Return every host's number: by inventory, by an address that it has, or the first free one."""
    numbers = dict(fixed)
    given = set(numbers.values())
    for claim in claims:
        own = next((n for n in claim.kept if n is not None and n not in given), None)
        if claim.host not in numbers and own is not None:
            numbers[claim.host] = own
            given.add(own)
    held = given | {number for rail in taken for number in rail}
    # Numbers that are free on every rail first; when hosts hold different numbers on different rails
    # those can run out, and then a number that is free as a number only.
    rest = chain((n for n in free if n not in held), (n for n in sorted(held) if n not in given))
    for claim in claims:
        if claim.host not in numbers:
            numbers[claim.host] = _next(rest)
    return numbers


def _next(numbers: Iterator[int]) -> int:
    found = next(numbers, None)
    if found is None:
        raise InputError(
            "rdma_fabric.reserved: what is reserved on one rail, or in one version of IP, is reserved on all, and that"
            " leaves fewer addresses than there are hosts. Use a shorter rail_prefix, or reserve less"
        )
    return found


def _fixed_numbers(claims: Sequence[Claim], taken: Collection[int], size: int) -> dict[str, int]:
    owners: dict[int, str] = {}
    problems = []
    for claim in claims:
        if claim.number is None:
            continue
        if claim.number > size:
            problems.append(f"{claim.host}: {claim.number} is above {size}, the end of the host block")
        elif claim.number in taken:
            problems.append(f"{claim.host}: the address of {claim.number} is reserved, or that of a router")
        elif owners.setdefault(claim.number, claim.host) != claim.host:
            problems.append(f"{owners[claim.number]} and {claim.host} both have {claim.number}")
    if problems:
        raise InputError(f"rdma_host.number: {'; '.join(problems)}")
    return {host: number for number, host in owners.items()}


def _check_clashes(claims: Sequence[Claim], rails: Sequence[str], taken: Sequence[dict[int, str]]) -> None:
    """Refuse a number of the inventory whose address another host already has on a rail."""
    problems = []
    for claim in claims:
        for rail, kept in enumerate(claim.kept):
            holder = taken[rail].get(claim.number) if claim.number is not None and kept is None else None
            if holder:
                problems.append(f"{claim.host} wants {claim.number} on {rails[rail]}, which {holder} has")
    if problems:
        raise ConflictError(f"rdma_host.number: addresses are in use: {'; '.join(problems)}")


def _seat(claim: Claim, number: int, taken: Sequence[dict[int, str]], *, free: Sequence[int]) -> Seat:
    places = []
    for rail, kept in enumerate(claim.kept):
        place = number if kept is None else kept
        if taken[rail].get(place) != claim.host:
            place = _next(n for n in free if n not in taken[rail])
            taken[rail][place] = claim.host
        places.append(place)
    return Seat(number, tuple(places))
