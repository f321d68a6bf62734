# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""IPv4 and IPv6 in one intent: its two versions, and what only several keys about addresses show together."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from typing import TYPE_CHECKING

from .addressing import NV_IPAM, V4, V6, Family

if TYPE_CHECKING:
    from .intent import Intent


def by_version(intent: Intent, family: Family) -> Intent:
    """Return the intent with the IPv6 addresses of ``family`` and of its rails; with only them, when it has no others.

    Reserved addresses and routes of pods are of both versions in one list.
    """
    ipv4, ipv6 = (
        replace(
            intent,
            version=version,
            reserved=tuple(span for span in intent.reserved if span.first.version == version),
            pools=replace(intent.pools, routes=tuple(one for one in intent.pools.routes if one.version == version)),
        )
        for version in (V4, V6)
    )
    ipv6 = replace(
        ipv6,
        rails=tuple(replace(rail, subnet=rail.subnet_ipv6, gateway=rail.gateway_ipv6) for rail in intent.rails),
        supernet=family.supernet,
        rail_prefix=family.rail_prefix,
        gateway=family.gateway,
        host_prefix=family.host_prefix,
    )
    if not ipv6.own_networks:
        return ipv4
    return replace(ipv4, ipv6=ipv6) if ipv4.own_networks else ipv6


def address_problems(read: Intent, intent: Intent, *, wanted: bool) -> Iterator[str]:
    """Yield what is wrong; ``read``: the intent before it was parted by version.

    ``wanted``: whether there is a section of IPv6 without a supernet.
    """
    versions = [own for own in (intent, intent.ipv6) if own]
    has_ipv6 = any(own.version == V6 for own in versions)
    if wanted and not has_ipv6:
        yield "rdma_fabric.ipv6.supernet: missing. Set it, or subnet_ipv6 of the rails"
    if intent.version == V6 and (read.gateway != "none" or read.host_prefix or any(own.gateway for own in read.rails)):
        yield (
            "rdma_fabric.gateway: the rails have IPv6 addresses only, so gateway and host_prefix of IPv4 have no"
            " effect. Set those of rdma_fabric.ipv6 (gateway_ipv6 of rails), or set rdma_fabric.supernet as well"
        )
    if not has_ipv6 and any(rail.gateway_ipv6 for rail in read.rails):
        yield "rdma_fabric.rails: gateway_ipv6 has no effect without IPv6 addresses. Set subnet_ipv6, or remove it"
    for own in versions:
        yield from _router_problems(own)
    known = {own.version for own in versions}
    for span in read.reserved:
        if span.first.version not in known:
            yield f"rdma_fabric.reserved: {span} is in no subnet of a rail"
    for network in read.pools.routes:
        if network.version not in known:
            yield f"rdma_fabric.pools.routes: the rails have no IPv{network.version} addresses. Remove {network}"
    if has_ipv6 and intent.pools.ipam == "dhcp":
        yield "rdma_fabric.pools.ipam: the CNI plugin dhcp gives IPv4 addresses only. Set another ipam, or remove ipv6"
    if intent.ipv6:
        yield from _dual_problems(intent, intent.ipv6)


def _router_problems(intent: Intent) -> Iterator[str]:
    at, key = ("", "gateway") if intent.version == V4 else ("ipv6.", "gateway_ipv6")
    of_rails = any(rail.gateway for rail in intent.rails)
    own_routers = f"with {at}host_prefix each host's subnet has its own router. Remove"
    if intent.pools.routes and not (intent.host_prefix or intent.gateway != "none" or of_rails):
        yield f"rdma_fabric.pools.routes: need a router. Set {at}gateway, {at}host_prefix, or {key} of the rails"
    if intent.host_prefix and of_rails:
        yield f"rdma_fabric.rails: {own_routers} {key} of the rails"
    if intent.host_prefix and intent.gateway != "none":
        yield f"{intent.path}.gateway: {own_routers} {at}gateway"
    if intent.host_prefix and intent.pools.ipam == "whereabouts":
        yield (
            f"rdma_fabric.pools.ipam: whereabouts has one network for all nodes, with {at}host_prefix each node has its"
            " own"
        )


def _dual_problems(ipv4: Intent, ipv6: Intent) -> Iterator[str]:
    if ipv4.pools.ipam == NV_IPAM and bool(ipv4.host_prefix) != bool(ipv6.host_prefix):
        yield (
            "rdma_fabric.ipv6.host_prefix: the IPv4 and the IPv6 pool of a network must be of one kind. Set host_prefix"
            " and ipv6.host_prefix, or neither of them"
        )
    routed = any(own.gateway != "none" or any(rail.gateway for rail in own.rails) for own in (ipv4, ipv6))
    if ipv4.pools.ipam == "whereabouts" and routed:
        yield (
            "rdma_fabric.pools.ipam: whereabouts gives the same router to IPv4 and IPv6 addresses. Set another ipam, or"
            " remove the gateway"
        )
