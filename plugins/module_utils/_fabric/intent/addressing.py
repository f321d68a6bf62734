# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""How the addresses of rails are laid out: routers, addresses of others, where pods get theirs."""

from __future__ import annotations

import ipaddress
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, TypeVar

from ..._common.reader import Reader

NV_IPAM, STATIC = "nv-ipam", "static"
IPAM = (NV_IPAM, "whereabouts", "dhcp", STATIC, "none")
# Those that take the addresses of the plan: its pools and routers.
PLANNED = (NV_IPAM, "whereabouts")
Network = ipaddress.IPv4Network
Address = ipaddress.IPv4Address
Read = TypeVar("Read")


@dataclass(frozen=True)
class Span:
    """Addresses from ``first`` to ``last``."""

    first: Address
    last: Address

    def __str__(self) -> str:
        """Return it as a user writes it."""
        return str(self.first) if self.first == self.last else f"{self.first}-{self.last}"


@dataclass(frozen=True)
class Pools:
    """``ipam``: who gives pods their addresses; ``routes``: networks that pods reach through the router of a rail."""

    ipam: str
    routes: tuple[Network, ...]


def read_reserved(reader: Reader) -> tuple[Span, ...]:
    """Read the addresses that neither hosts nor pods get; problems are noted in the reader."""
    return tuple(each(reader, "reserved", _span, expected="an IPv4 address, or two with - between them"))


def read_pools(reader: Reader) -> Pools:
    """Read the section; problems are noted in the reader."""
    pools = Pools(
        ipam=reader.text("ipam", IPAM[0], choices=IPAM),
        routes=tuple(each(reader, "routes", Network, expected="an IPv4 network such as 10.0.0.0/8")),
    )
    if pools.routes and pools.ipam not in PLANNED:
        reader.refuse("routes", f"ipam {pools.ipam} brings its own routes. Remove routes")
    reader.close()
    return pools


def one(reader: Reader, key: str, read: Callable[[str], Read], *, expected: str) -> Read | None:
    """Return a value read from text, None without one or when it is not as expected, which is noted."""
    text = reader.text(key, None)
    return _converted(reader, key, read, text=text, expected=expected) if text is not None else None


def each(reader: Reader, key: str, read: Callable[[str], Read], *, expected: str) -> list[Read]:
    """Return values read from a list of texts, without those that are not as expected, which are noted."""
    found = [_converted(reader, key, read, text=text, expected=expected) for text in reader.texts(key)]
    return [value for value in found if value is not None]


def _converted(reader: Reader, key: str, read: Callable[[str], Read], *, text: str, expected: str) -> Any:
    try:
        return read(text)
    except ValueError as error:
        reader.refuse(key, f'expected {expected}, found "{text}" ({error})')
        return None


def _span(text: str) -> Span:
    first, dash, last = text.partition("-")
    span = Span(Address(first.strip()), Address((last if dash else first).strip()))
    if span.last < span.first:
        raise ValueError("the second address is below the first")
    return span
