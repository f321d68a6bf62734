# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""How the addresses of rails are laid out: routers, addresses of others, where pods get theirs."""

from __future__ import annotations

import ipaddress
import re
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, TypeVar, Union

from ..._common.reader import Reader

NV_IPAM, STATIC = "nv-ipam", "static"
IPAM = (NV_IPAM, "whereabouts", "dhcp", STATIC, "none")
# Those that take the addresses of the plan: its pools and routers.
PLANNED = (NV_IPAM, "whereabouts")
V4, V6 = 4, 6
Network = Union[ipaddress.IPv4Network, ipaddress.IPv6Network]
Address = Union[ipaddress.IPv4Address, ipaddress.IPv6Address]
Read = TypeVar("Read")


@dataclass(frozen=True)
class _Version:
    """How addresses of one version are read, the default length of a rail's prefix, and which lengths are possible."""

    network: Callable[[str], Network]
    address: Callable[[str], Address]
    expected: str
    rail_prefix: int
    rail_prefixes: tuple[int, int]
    host_prefixes: tuple[int, int]


def _ipv4_network(text: str) -> Network:
    if ":" in text:
        raise ValueError("IPv6 has keys of its own: the section ipv6, and subnet_ipv6 of a rail")
    return ipaddress.IPv4Network(text)


_OF_VERSION = {
    V4: _Version(_ipv4_network, ipaddress.IPv4Address, "an IPv4 network such as 192.168.0.0/16", 24, (8, 28), (16, 31)),
    # A /64 is what routers and address plans expect of a link.
    V6: _Version(
        ipaddress.IPv6Network, ipaddress.IPv6Address, "an IPv6 network such as fd00:10::/48", 64, (16, 124), (17, 127)
    ),
}


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
    """``ipam``: who gives pods their addresses; ``routes``: networks that pods reach through the router of a rail.

    ``per_node_exclusions``: first and last number of addresses in the block of each node that pods do not get.
    """

    ipam: str
    routes: tuple[Network, ...]
    per_node_exclusions: tuple[tuple[int, int], ...] = ()


@dataclass(frozen=True)
class Family:
    """The addresses of rails in one version of IP: the keys of ``rdma_fabric`` and of ``rdma_fabric.ipv6``."""

    supernet: Network | None
    rail_prefix: int
    gateway: str
    host_prefix: int | None


def read_family(reader: Reader, version: int) -> Family:
    """Read the keys of one version; the section of IPv6 has nothing else."""
    known = _OF_VERSION[version]
    network = one(reader, "supernet", known.network, expected=known.expected)
    rails, hosts = known.rail_prefixes, known.host_prefixes
    family = Family(
        supernet=network,
        rail_prefix=reader.integer("rail_prefix", known.rail_prefix, rails[0], high=rails[1]),
        gateway=reader.text("gateway", "none", choices=("none", "last")),
        host_prefix=reader.integer("host_prefix", None, hosts[0], high=hosts[1]),
    )
    if version == V6:
        reader.close()
    return family


def read_subnet(reader: Reader, version: int, *, subnet: str, gateway: str) -> tuple[Network | None, Address | None]:
    """Read the subnet and the router of a rail of its own."""
    known = _OF_VERSION[version]
    network = one(reader, subnet, known.network, expected=known.expected)
    low, high = known.rail_prefixes
    if network is not None and not low <= network.prefixlen <= high:
        reader.refuse(subnet, f"expected a prefix length from {low} to {high}, found {network.prefixlen}")
    return network, one(reader, gateway, known.address, expected=f"an IPv{version} address")


def read_reserved(reader: Reader) -> tuple[Span, ...]:
    """Read the addresses that neither hosts nor pods get; problems are noted in the reader."""
    return tuple(each(reader, "reserved", _span, expected="an address, or two with - between them"))


def read_pools(reader: Reader) -> Pools:
    """Read the section; problems are noted in the reader."""
    pools = Pools(
        ipam=reader.text("ipam", IPAM[0], choices=IPAM),
        routes=tuple(each(reader, "routes", ipaddress.ip_network, expected="a network such as 10.0.0.0/8")),
        per_node_exclusions=tuple(
            each(reader, "per_node_exclusions", _numbers, expected="a number, or two such as 0-3")
        ),
    )
    if pools.per_node_exclusions and pools.ipam != NV_IPAM:
        reader.refuse(
            "per_node_exclusions", f"only {NV_IPAM} has blocks of nodes, but ipam is {pools.ipam}. Remove one"
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
    span = Span(ipaddress.ip_address(first.strip()), ipaddress.ip_address((last if dash else first).strip()))
    if span.first.version != span.last.version:
        raise ValueError("one of the addresses is IPv4, the other IPv6")
    if int(span.last) < int(span.first):
        raise ValueError("the second address is below the first")
    return span


def _numbers(text: str) -> tuple[int, int]:
    match = re.fullmatch(r"([0-9]{1,9})(?:-([0-9]{1,9}))?", text)
    if not match:
        raise ValueError("not a number")
    first, last = int(match[1]), int(match[2] or match[1])
    if last < first:
        raise ValueError("the second number is below the first")
    return first, last
