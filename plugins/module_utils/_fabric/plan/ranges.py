# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Cutting the supernet: one subnet per rail, its first half for hosts, its second half for pods."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from ..._common.errors import ConflictError, InputError
from ..._common.reader import some
from ..intent.intent import Intent

try:
    from netaddr import IPNetwork
except ImportError:
    IPNetwork = None


@dataclass(frozen=True)
class RailRange:
    """The addresses of one rail: host number n has address ``subnet + n`` for n in 1..``host_count``."""

    subnet: IPNetwork
    pool: IPNetwork
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


def rail_ranges(supernet: str, prefix: int, count: int) -> tuple[RailRange, ...]:
    """Return the ranges of ``count`` rails, in order, each with a subnet of ``prefix``."""
    network = _network(supernet)
    available = 2 ** (prefix - network.prefixlen) if prefix >= network.prefixlen else 0
    if count > available:
        raise InputError(
            f"rdma_fabric.supernet is too small: {count} rails need {count} subnets /{prefix}, {network} has "
            f"{available}. Use a larger supernet or a longer rail_prefix"
        )
    return tuple(_range(subnet) for subnet in network.subnet(prefix, count=count))


def _network(text: str) -> IPNetwork:
    """Return the network of an address with prefix."""
    if IPNetwork is None:
        raise InputError(
            "planning addresses requires the Python package netaddr, which is not installed on the controller. "
            "Install the packages of requirements.txt"
        )
    return IPNetwork(text).cidr


def _range(subnet: IPNetwork) -> RailRange:
    # The pool is a network of its own, not an exclusion of the rail's: nv-ipam hands out its blocks of
    # addresses from the start of the subnet without regard to exclusions, so the first nodes would get nothing.
    hosts, pool = subnet.subnet(subnet.prefixlen + 1)
    return RailRange(subnet, pool, hosts.size - 1)


def block_size(pool: IPNetwork, hosts: int) -> int:
    """Return how many addresses of a pool each node gets: a power of two, 0 when there is not one each."""
    share = (pool.size - 2) // hosts
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
            f"{hosts * share} needed, {ranges.pool.size - 2} available"
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
        other = _network(text)
        for name, own in zip(names, ranges):
            if own.subnet in other or other in own.subnet:
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
    return [str(_network(address)) for address in port["addresses"]]
