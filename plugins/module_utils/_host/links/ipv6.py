# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""IPv6 addresses of rails: only those of a plan are changed, and another machine on the link may have them."""

from __future__ import annotations

import ipaddress
from collections.abc import Iterable, Mapping
from typing import Any

from ..facts.devices import Port
from ..facts.rail_ports import Rail

# By PCI address: state of a link, and record of a port.
States = Mapping[str, Mapping[str, Any]]
Record = Mapping[str, Mapping[str, Any]]


def is_ipv6(address: str) -> bool:
    """Whether an address is one of IPv6."""
    return ipaddress.ip_interface(address).version == 6


def known(*states: States) -> dict[str, set[str]]:
    """Return the IPv6 addresses in states, by PCI address."""
    found: dict[str, set[str]] = {}
    for pci, state in (item for one in states for item in one.items()):
        found.setdefault(pci, set()).update(filter(is_ipv6, state["addresses"]))
    return found


def is_used(rails: Iterable[Rail], record: Record) -> bool:
    """Whether IPv6 addresses of rails are to be set, or were set."""
    return any(planned(rails, record).values())


def planned(rails: Iterable[Rail], record: Record) -> dict[str, set[str]]:
    """Return the IPv6 addresses of the plan, and those of earlier ones. All others are left alone."""
    own = {rail.pci: {"addresses": rail.addresses} for rail in rails}
    return known(own, *({pci: entry[key] for pci, entry in record.items()} for key in ("before", "set")))


def dark(ports: Iterable[Port]) -> list[str]:
    """Return the names of links that are up without a carrier."""
    return [link.name for port in ports if (link := port.netdev) and link.up and link.carrier is False]


def duplicates(port: Port, wanted: States) -> list[str]:
    """Return the wanted addresses of a port that another machine has."""
    return _wanted_among(port, wanted, port.netdev.duplicates if port.netdev else ())


def taken(port: Port, wanted: States) -> list[str]:
    """Say which wanted addresses of a port another machine has."""
    return [
        f"{port.title}: another machine on this link has the address {address}, as the kernel found. Remove it"
        " there, or set rdma_host.number of one of the hosts"
        for address in duplicates(port, wanted)
    ]


def unchecked(port: Port, wanted: States) -> list[str]:
    """Say of which wanted addresses the kernel does not know yet whether another machine has them.

    Without a carrier it cannot know.
    """
    link = port.netdev
    waiting = _wanted_among(port, wanted, link.tentative) if link and link.carrier else []
    return [f"{port.title}: the kernel still checks whether {address} is a duplicate" for address in waiting]


def _wanted_among(port: Port, wanted: States, addresses: Iterable[str]) -> list[str]:
    return [address for address in addresses if address in wanted.get(port.pci, {}).get("addresses", ())]
