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
class Addressing:
    """``gateway``: none or last, where the router of each rail is; ``host_prefix``: that of a subnet per host, or None.

    ``reserved``: addresses that neither hosts nor pods get. ``ipam``: who gives pods their addresses; ``routes``:
    networks that pods reach through the router.
    """

    gateway: str
    host_prefix: int | None
    reserved: tuple[Span, ...]
    ipam: str
    routes: tuple[Network, ...]


def read_addressing(reader: Reader, pools: Reader) -> Addressing:
    """Read the keys of ``rdma_fabric`` and of its section ``pools``; problems are noted in the readers."""
    found = Addressing(
        gateway=reader.text("gateway", "none", choices=("none", "last")),
        host_prefix=reader.integer("host_prefix", None, 16, high=31),
        reserved=tuple(each(reader, "reserved", _span, expected="an IPv4 address, or two with - between them")),
        ipam=pools.text("ipam", IPAM[0], choices=IPAM),
        routes=tuple(each(pools, "routes", Network, expected="an IPv4 network such as 10.0.0.0/8")),
    )
    if found.routes and found.ipam not in PLANNED:
        pools.refuse("routes", f"ipam {found.ipam} brings its own routes. Remove routes")
    if found.host_prefix and found.ipam == "whereabouts":
        pools.refuse("ipam", "whereabouts has one network for all nodes, with host_prefix each node has its own")
    if found.host_prefix and found.gateway != "none":
        reader.refuse("gateway", "with host_prefix each host's subnet has its own router. Remove gateway")
    pools.close()
    return found


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
