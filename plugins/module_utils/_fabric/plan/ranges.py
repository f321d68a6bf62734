# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Cutting the supernet: one subnet a rail, its first half for hosts, its second half for pods.

The standard library's ``ipaddress`` is enough here, so the controller needs no further package.
"""

from __future__ import annotations

import ipaddress
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from ..._common.errors import ConflictError, InputError
from ..._common.reader import some
from ..intent.intent import Intent

Network = ipaddress.IPv4Network


@dataclass(frozen=True)
class RailRange:
    """The addresses of one rail: host number n has address ``subnet + n`` for n in 1..``host_count``."""

    subnet: Network
    pool: Network
    host_count: int

    def host_address(self, number: int) -> str:
        """Return the address of host ``number`` without prefix."""
        return str(self.subnet[number])

    @property
    def host_range(self) -> list[str]:
        """First and last address for hosts."""
        return [str(self.subnet[1]), str(self.subnet[self.host_count])]

    @property
    def pool_range(self) -> list[str]:
        """First and last address for pods."""
        return [str(self.pool[1]), str(self.pool[-2])]


def rail_ranges(supernet: Network, prefix: int, count: int) -> tuple[RailRange, ...]:
    """Return the ranges of ``count`` rails, in order, each with a subnet of ``prefix``."""
    available = 2 ** (prefix - supernet.prefixlen) if prefix >= supernet.prefixlen else 0
    if count > available:
        raise InputError(
            f"rdma_fabric.supernet is too small: {count} rails need {count} subnets /{prefix}, {supernet} has "
            f"{available}. Use a larger supernet or a longer rail_prefix"
        )
    size = 2 ** (32 - prefix)
    first = int(supernet.network_address)
    return tuple(_range(Network((first + index * size, prefix))) for index in range(count))


def _range(subnet: Network) -> RailRange:
    half = subnet.num_addresses // 2
    # The pool is a network of its own, not an exclusion of the rail's: nv-ipam hands out its blocks of
    # addresses from the start of the subnet without regard to exclusions, so the first nodes would get nothing.
    pool = Network((int(subnet.network_address) + half, subnet.prefixlen + 1))
    return RailRange(subnet, pool, half - 1)


def block_size(pool: Network, hosts: int) -> int:
    """Return how many addresses of a pool each node gets: a power of two, 0 when there is not one each."""
    share = (pool.num_addresses - 2) // hosts
    return 1 << (share.bit_length() - 1) if share else 0


def check_capacity(intent: Intent, ranges: RailRange, group_size: int) -> None:
    """Refuse blocks that are too small for the hosts and pods that the intent names."""
    hosts, pods = intent.capacity.hosts, intent.capacity.pods_per_host
    prefix = ranges.subnet.prefixlen
    problems = []
    if group_size > hosts:
        problems.append(f"the group has {group_size} hosts, rdma_fabric.capacity.hosts is {hosts}")
    if hosts > ranges.host_count:
        problems.append(
            f"the host block of a rail (first half of a /{prefix}) is too small: {hosts} addresses needed, "
            f"{ranges.host_count} available"
        )
    # nv-ipam rejects a block of one address.
    share = _power_of_two(max(pods, 2))
    if block_size(ranges.pool, hosts) < share:
        problems.append(
            f"the pod block of a rail (second half of a /{prefix}) is too small: {hosts} hosts x {share} addresses = "
            f"{hosts * share} needed, {ranges.pool.num_addresses - 2} available"
        )
    if problems:
        raise InputError(f"{'; '.join(problems)}. Use a shorter rail_prefix or change rdma_fabric.capacity")


def _power_of_two(number: int) -> int:
    return 1 << (number - 1).bit_length()


def check_overlap(
    names: Sequence[str],
    ranges: Sequence[RailRange],
    networks: Mapping[str, Sequence[str]],
) -> None:
    """Refuse rail subnets that overlap networks which hosts use otherwise (``networks``: host -> CIDRs)."""
    users: dict[str, list[str]] = {}
    for host, texts in networks.items():
        for text in texts:
            users.setdefault(text, []).append(host)
    problems = []
    for text, hosts in users.items():
        other = ipaddress.ip_network(text, strict=False)
        for name, own in zip(names, ranges):
            if other.version == 4 and own.subnet.overlaps(other):
                problems.append(f"{own.subnet} ({name}) and {text} of {some(hosts)}")
    if problems:
        raise ConflictError(
            f"the planned subnets overlap networks that hosts use already: {'; '.join(problems)}. Choose another "
            "rdma_fabric.supernet"
        )


def other_networks(facts: Mapping[str, Any], rail_ports: Sequence[Mapping[str, Any]]) -> list[str]:
    """Return the networks that a host uses outside of its rails, also those of ports that could be rails."""
    rails = {port["pci"] for port in rail_ports}
    own = {network for port in rail_ports for network in _networks(port)}
    others = [network for port in facts["ports"] if port["pci"] not in rails for network in _networks(port)]
    # A rail's own network may stand among the facts' networks, from an earlier run.
    return [text for text in dict.fromkeys([*facts["networks"], *others]) if text not in own]


def _networks(port: Mapping[str, Any]) -> list[str]:
    return [str(ipaddress.ip_interface(address).network) for address in port["addresses"]]
