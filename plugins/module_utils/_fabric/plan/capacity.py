# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Whether the addresses of rails are enough for the hosts and pods that the intent names."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence

from ..._common.errors import InputError
from ..._common.reader import MOST, and_more
from ..intent.addressing import PLANNED, V6
from ..intent.intent import Intent
from .ranges import IPAddress, IPNetwork, RailRange

# The block of a node in an IPv6 pool. It is more than a node has pods, and does not change with the number of hosts.
_IPV6_BLOCK = 1 << 16


def block_size(pool: IPNetwork, hosts: int) -> int:
    """Return how many addresses of a pool each node gets: a power of two, 0 when there is not one each."""
    share = (pool.size - 2) // hosts
    if pool.version == V6:
        share = min(share, _IPV6_BLOCK)
    return 1 << (share.bit_length() - 1) if share else 0


def check_capacity(intent: Intent, ranges: Sequence[RailRange], group_size: int, *, most_pods: int) -> None:
    """Refuse blocks that are too small for the hosts and pods that the intent names (``most_pods``: a node can run)."""
    hosts = intent.capacity.hosts
    problems = []
    if group_size > hosts:
        problems.append(f"the group has {group_size} hosts, rdma_fabric.capacity.hosts is {hosts}")
    for own in ranges:
        problems += _too_small(intent, own, most_pods)
    if problems:
        told = list(dict.fromkeys(problems))
        raise InputError(
            f"{'; '.join(told[:MOST])}{and_more(told)}. Use a shorter rail_prefix or change rdma_fabric.capacity"
        )


def _too_small(intent: Intent, own: RailRange, most_pods: int) -> Iterator[str]:
    hosts, pods, prefix = intent.capacity.hosts, intent.capacity.pods_per_host, own.subnet.prefixlen
    available = own.host_count - len(own.taken)
    if hosts > available and own.host_prefix is not None:
        yield (
            f"a rail's subnet /{prefix} is too small: {hosts} subnets /{own.host_prefix} needed, {available} available"
        )
    elif hosts > available:
        yield (
            f"the host block of a rail (first half of a /{prefix}) is too small: {hosts} addresses needed, "
            f"{available} available"
        )
    if intent.pools.ipam not in PLANNED:
        return
    if own.host_prefix is not None:
        yield from _too_few_for_pods(own, min(pods, most_pods))
        return
    # nv-ipam rejects a block of one address.
    share = _power_of_two(max(pods, 2))
    size = block_size(own.pool, hosts)
    if size < share:
        yield (
            f"the pod block of a rail (second half of a /{prefix}) is too small: {hosts} hosts x {share} addresses = "
            f"{hosts * share} needed, {own.pool.size - 2} available"
        )
        return
    outside = list(_outside(own, size))
    yield from outside
    if outside:
        return
    spans = [(int(IPAddress(first)), int(IPAddress(last))) for first, last in own.exclusions(hosts)]
    for block in range(hosts if spans or own.per_node else 0):
        first = int(own.pool.first) + 1 + block * size
        left = size - _covered([*spans, *_shifted(own, first)], first, first + size - 1)
        if left < pods:
            yield (
                f"{own.subnet}: of the addresses {own.text(first)} to {own.text(first + size - 1)}, which one node"
                f" gets, {left} are not reserved, {pods} needed"
            )


def _too_few_for_pods(own: RailRange, pods: int) -> Iterator[str]:
    # Network, broadcast, router and host; a network of two addresses has the router and one other.
    network = own.host_subnet(1)
    yield from _outside(own, network.size)
    first, last = int(network.first), int(network.last)
    taken = [(first, first)] if own.is_point_to_point else [(first, first + 2), (last, last)]
    left = network.size - _covered([*taken, *_shifted(own, first)], first, last)
    if left < pods:
        yield f"a host's subnet /{own.host_prefix} has {left} addresses for pods, {pods} needed"


def _outside(own: RailRange, size: int) -> Iterator[str]:
    """Yield the numbers of ``pools.per_node_exclusions`` that no block of a node has: nv-ipam rejects them."""
    for first, last in own.per_node:
        if last >= size:
            yield (
                f"rdma_fabric.pools.per_node_exclusions: {first}-{last} is not in the block of a node, which has the"
                f" numbers 0 to {size - 1}"
            )


def _shifted(own: RailRange, start: int) -> Iterable[tuple[int, int]]:
    """Return the addresses that pods of one node do not get; its block begins with ``start``."""
    return ((start + first, start + last) for first, last in own.per_node)


def _covered(spans: Iterable[tuple[int, int]], first: int, last: int) -> int:
    """Return how many of the addresses from ``first`` to ``last`` are in one of the spans."""
    count, end = 0, first - 1
    for low, high in sorted(spans):
        low, high = max(low, end + 1), min(high, last)
        if low <= high:
            count, end = count + high - low + 1, high
    return count


def _power_of_two(number: int) -> int:
    return 1 << (number - 1).bit_length()
