# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Cutting the supernet: one subnet per rail, with addresses for hosts, pods and routers."""

from __future__ import annotations

import ipaddress
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

from ..._common.errors import ConflictError, InputError
from ..._common.reader import raise_problems, some
from ..intent.addressing import PLANNED, V6, Network, Span
from ..intent.intent import Intent, RailIntent

try:
    from netaddr import IPAddress, IPNetwork
except ImportError:
    IPAddress = IPNetwork = None

# A /64 has more addresses than anybody numbers, and nv-ipam counts those of a pool in a signed number of 64 bits: an
# IPv6 subnet has at most so many numbers of hosts, and its pool is the last network of this prefix length.
_IPV6_HOSTS, _IPV6_POOL = 1 << 20, 96


@dataclass(frozen=True)
class RailRange:
    """The addresses of one rail. Hosts have numbers from 1 to ``host_count``, pods get addresses of ``pool``.

    Without ``host_prefix``, host number n has address ``subnet + n``: hosts have the first half, pods the second, and
    ``gateway`` (or None) is the router of all. With it, each host has a subnet of that prefix, which begins with its
    router and its own address; the rest is for its pods. ``reserved``: what neither hosts nor pods get.
    ``per_node``: numbers of addresses in the block of each node that pods do not get.
    """

    subnet: IPNetwork
    pool: IPNetwork
    host_count: int
    gateway: str | None = None
    host_prefix: int | None = None
    reserved: tuple[Span, ...] = ()
    per_node: tuple[tuple[int, int], ...] = ()

    @property
    def bits(self) -> int:
        """Length of an address."""
        return 128 if self.subnet.version == V6 else 32

    @property
    def network(self) -> Network:
        """The subnet as other code takes it."""
        return ipaddress.ip_network(str(self.subnet))

    @property
    def is_point_to_point(self) -> bool:
        """Whether a host has a network of two addresses: its own and that of its router."""
        return self.host_prefix == self.bits - 1

    def host_interface(self, number: int) -> str:
        """Return the address of host ``number`` with its prefix length."""
        if self.host_prefix is None:
            return f"{self.subnet[number]}/{self.subnet.prefixlen}"
        return f"{self.subnet[(number - 1) * self._size + self.router_index + 1]}/{self.host_prefix}"

    def number_of(self, address: str) -> int | None:
        """Return the number of the host with an address (without prefix), None when it is not that of a host."""
        offset = int(IPAddress(address)) - int(self.subnet.first)
        if self.host_prefix is not None:
            block, rest = divmod(offset, self._size)
            offset = block + 1 if rest == self.router_index + 1 else 0
        return offset if 1 <= offset <= self.host_count and offset not in self.taken else None

    def router(self, number: int) -> str | None:
        """Return the address of the router of host ``number``, None without one."""
        return self.gateway if self.host_prefix is None else str(self.host_subnet(number)[self.router_index])

    def host_subnet(self, number: int) -> IPNetwork:
        """Return the network that host ``number`` and its pods are in."""
        return IPNetwork(self.host_interface(number)).cidr

    @property
    def router_index(self) -> int:
        """Which address of a host's own subnet is that of its router; a network of two has no address of its own."""
        return 0 if self.is_point_to_point else 1

    @cached_property
    def taken(self) -> Collection[int]:
        """The numbers that no host can have: their address is reserved, or that of the router."""
        found: set[int] = set()
        for first, last in self._others():
            low, high = first - int(self.subnet.first), last - int(self.subnet.first)
            if self.host_prefix is not None:
                low, high = low // self._size + 1, high // self._size + 1
            found.update(range(max(low, 1), min(high, self.host_count) + 1))
        return found

    def exclusions(self, hosts: int) -> Iterator[tuple[str, str]]:
        """Yield first and last of the addresses in the pool that pods do not get (``hosts``: numbers in use).

        nv-ipam ignores a range that begins before and ends after the network of a node, so ranges end with it.
        """
        networks = [self.pool]
        if self.host_prefix is not None:
            networks = [self.host_subnet(number) for number in range(1, hosts + 1)]
        spans = self._others()
        for number, network in enumerate(networks, 1):
            own = self.host_interface(number).partition("/")[0] if self.shares_subnets else ""
            if own:
                yield own, own
            for first, last in spans:
                low, high = max(first, int(network.first)), min(last, int(network.last))
                if low <= high:
                    yield self.text(low), self.text(high)

    @property
    def shares_subnets(self) -> bool:
        """Whether a host has its address in the network of its pods."""
        return self.host_prefix is not None and not self.is_point_to_point

    @property
    def gateway_is_of_hosts(self) -> bool:
        """Whether the router is in the subnet, but not in the pool."""
        return (
            bool(self.gateway) and IPAddress(self.gateway) in self.subnet and IPAddress(self.gateway) not in self.pool
        )

    @property
    def host_range(self) -> list[str]:
        """First and last address for hosts."""
        return [self.host_interface(number).partition("/")[0] for number in (1, self.host_count)]

    @property
    def pool_range(self) -> list[str]:
        """First and last address for pods."""
        return [str(self.pool[1]), str(self.pool[-2])]

    @property
    def _size(self) -> int:
        return 1 << (self.bits - (self.host_prefix or self.bits))

    def text(self, address: int) -> str:
        """Return an address from its number."""
        return str(IPAddress(address, self.subnet.version))

    def _others(self) -> list[tuple[int, int]]:
        """Return the first and last address of what others have, as numbers."""
        spans = [(int(span.first), int(span.last)) for span in self.reserved]
        return spans + ([(int(IPAddress(self.gateway)),) * 2] if self.gateway else [])


def rail_ranges(intent: Intent, names: Sequence[str]) -> tuple[RailRange, ...]:
    """Return the ranges of the rails in order; a rail takes its subnet from the supernet unless it has its own."""
    own = {rail.name: rail for rail in intent.rails}
    cut = _cut(intent, names, own)
    ranges = tuple(_range(intent, subnet, own.get(name)) for name, subnet in zip(names, cut))
    problems = [
        f"rdma_fabric.rails: {left.subnet} of {names[at]} and {right.subnet} of {names[at + 1 + more]} overlap"
        for at, left in enumerate(ranges)
        for more, right in enumerate(ranges[at + 1 :])
        if left.subnet.first <= right.subnet.last and right.subnet.first <= left.subnet.last
    ]
    raise_problems(problems + list(_misplaced(intent, names, ranges)))
    return ranges


def _cut(intent: Intent, names: Sequence[str], own: Mapping[str, RailIntent]) -> list[IPNetwork]:
    """Return the subnet of each rail: of the supernet by its position, so that one of its own moves no other."""
    given = {name: rail.subnet for name, rail in own.items() if rail.subnet}
    if all(name in given for name in names):
        return [_network(str(given[name])) for name in names]
    if intent.supernet is None:
        missing = some([name for name in names if name not in given])
        raise InputError(
            f"rdma_fabric.rails: {missing} have no subnet. Set {intent.path}.supernet, or one for each rail"
        )
    network, prefix, count = _network(str(intent.supernet)), intent.rail_prefix, len(names)
    available = 2 ** (prefix - network.prefixlen) if prefix >= network.prefixlen else 0
    if count > available:
        raise InputError(
            f"{intent.path}.supernet is too small: {count} rails need {count} subnets /{prefix}, {network} has "
            f"{available}. Use a larger supernet or a longer rail_prefix"
        )
    subnets = list(network.subnet(prefix, count=count))
    return [_network(str(given[name])) if name in given else subnet for name, subnet in zip(names, subnets)]


def _network(text: str) -> IPNetwork:
    """Return the network of an address with prefix."""
    if IPNetwork is None:
        raise InputError(
            "planning addresses requires the Python package netaddr, which is not installed on the controller. "
            "Install the packages of requirements.txt"
        )
    return IPNetwork(text).cidr


def _range(intent: Intent, subnet: IPNetwork, rail: RailIntent | None) -> RailRange:
    reserved = tuple(
        span for span in intent.reserved if int(span.first) <= subnet.last and int(span.last) >= subnet.first
    )
    if intent.host_prefix is not None:
        count = 2 ** max(intent.host_prefix - subnet.prefixlen, 0)
        if subnet.version == V6:
            count = min(count, _IPV6_HOSTS)
        return RailRange(subnet, subnet, count, None, intent.host_prefix, reserved, intent.pools.per_node_exclusions)
    # The pool is a network of its own, not an exclusion of the rail's: nv-ipam hands out its blocks of
    # addresses from the start of the subnet without regard to exclusions, so the first nodes would get nothing.
    hosts, pool = subnet.subnet(subnet.prefixlen + 1)
    gateway = str(rail.gateway) if rail and rail.gateway else str(subnet[-2]) if intent.gateway == "last" else None
    count = hosts.size - 1
    if subnet.version == V6:
        count = min(count, _IPV6_HOSTS)
        pool = IPNetwork((pool.last, max(_IPV6_POOL, pool.prefixlen)), version=V6).cidr
    return RailRange(subnet, pool, count, gateway, None, reserved, intent.pools.per_node_exclusions)


def _misplaced(intent: Intent, names: Sequence[str], ranges: Sequence[RailRange]) -> Iterator[str]:
    """Yield what lies outside of the network that it should be in."""
    for name, own in zip(names, ranges):
        prefix = intent.host_prefix
        if prefix is not None and prefix <= own.subnet.prefixlen:
            yield (
                f"{intent.path}.host_prefix: {prefix} is not longer than that of {own.subnet}, the subnet of {name}."
                " Use a longer host_prefix, or a shorter rail_prefix"
            )
        if own.gateway and own.gateway_is_of_hosts and intent.pools.ipam in PLANNED:
            yield (
                f"rdma_fabric.rails: the gateway {own.gateway} of {name} is not in {own.pool}, that of its pods:"
                " they cannot reach it. Use an address of both, such as the last one"
            )
        elif own.gateway and IPAddress(own.gateway) not in own.subnet:
            yield f"rdma_fabric.rails: the gateway {own.gateway} of {name} is not in its subnet {own.subnet}"
    for span in intent.reserved:
        if not any(span in own.reserved for own in ranges):
            yield f"rdma_fabric.reserved: {span} is in no subnet of a rail"


def check_overlap(
    names: Sequence[str],
    ranges: Sequence[RailRange],
    networks: Mapping[str, Sequence[str]],
    *,
    path: str = "rdma_fabric",
) -> None:
    """Refuse rail subnets that overlap networks which hosts use otherwise (``networks``: host -> CIDRs)."""
    users: dict[str, list[str]] = {}
    for host, texts in networks.items():
        for text in texts:
            users.setdefault(text, []).append(host)
    problems = []
    for text, hosts in users.items():
        other = _network(text)
        for name, own in zip(names, ranges):
            if own.subnet in other or other in own.subnet:
                problems.append(f"{own.subnet} ({name}) and {text} of {some(hosts)}")
    if problems:
        raise ConflictError(
            f"the planned subnets overlap networks that hosts use already: {'; '.join(problems)}. Choose another "
            f"{path}.supernet"
        )


def other_networks(facts: Mapping[str, Any], rail_ports: Sequence[Mapping[str, Any]]) -> list[str]:
    """Return the networks that a host uses outside of its rails, also those of ports that could be rails."""
    rails = {port["pci"] for port in rail_ports}
    own = {network for port in rail_ports for network in _networks(port)}
    others = [network for port in facts["ports"] if port["pci"] not in rails for network in _networks(port)]
    # A rail's own network may stand among the facts' networks, from an earlier run.
    return [text for text in dict.fromkeys([*facts["networks"], *others]) if text not in own]


def _networks(port: Mapping[str, Any]) -> list[str]:
    return [str(_network(address)) for address in port["addresses"]]
