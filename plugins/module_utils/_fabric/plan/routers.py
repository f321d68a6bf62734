# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Routers of rails: what hosts and pods reach through them, and which subnet each Node has."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from .hosts import Host
from .layout import Layout
from .ranges import RailRange


def routes(layout: Layout, own: RailRange | None) -> list[str]:
    """Return the networks that hosts and pods of a rail reach through its router."""
    if own is None or own.router(1) is None or layout.intent.addresses == "keep":
        return []
    others = layout.intent.own_networks if layout.intent.routing == "between_rails" else ()
    found = [*([own.subnet] if own.host_prefix else []), *others]
    return list(dict.fromkeys(map(str, found)))


def router_of(layout: Layout, host: Host, index: int) -> dict[str, Any]:
    """Return the router of a rail and what is behind it; ``beyond`` is the part of the rail that is behind it, too."""
    own = layout.ranges[index] if layout.ranges else None
    found = routes(layout, own)
    if own is None or not found:
        return {}
    router = own.router(layout.seats[host.name].rails[index])
    return {"gateway": router, "routes": found, "beyond": str(own.subnet) if own.host_prefix else None}


def node_subnets(layout: Layout, nodes: Mapping[str, str | None]) -> dict[str, list[dict[str, str]]]:
    """Return pool -> the subnets of Nodes of which each has its own: those of the hosts that they are."""
    second = layout.ipv6
    found = node_subnets(second, nodes) if second else {}
    if layout.intent.host_prefix is None or layout.intent.addresses == "keep":
        return found
    return found | {
        layout.pool(name): [
            {"nodeName": node, "prefix": str(own.host_subnet(layout.seats[host.name].rails[index]))}
            for host in layout.hosts
            if (node := nodes[host.name])
        ]
        for index, (name, own) in enumerate(zip(layout.rails.names, layout.ranges))
    }
