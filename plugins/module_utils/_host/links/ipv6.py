# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""IPv6 addresses of rails: only those of a plan are changed, and another machine on the link may have them."""

from __future__ import annotations

import ipaddress
from collections.abc import Collection, Iterable, Mapping
from typing import Any, NamedTuple, Protocol

from ..facts.inventory import HostInventory
from ..facts.rail_ports import Rail

# By PCI address: state of a link, and record of a port.
States = Mapping[str, Mapping[str, Any]]
Record = Mapping[str, Mapping[str, Any]]


class Link(Protocol):
    """A network device with its addresses, as ``Netdev`` and ``Interface`` are."""

    @property
    def name(self) -> str:
        """Name."""

    @property
    def addresses(self) -> tuple[str, ...]:
        """All addresses, with prefix."""

    @property
    def duplicates(self) -> tuple[str, ...]:
        """Those of IPv6 that another machine has."""

    @property
    def tentative(self) -> tuple[str, ...]:
        """Those of IPv6 that the kernel does not use yet, duplicates among them."""


class Checked(NamedTuple):
    """A port or VLAN interface, with the addresses that must be its own (``wanted``)."""

    title: str
    link: Link
    carrier: bool
    wanted: Collection[str]


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


def managed(link: Link, ipv6: Collection[str], wanted: Collection[str]) -> list[str]:
    """Return the addresses of a link that are managed, ordered: all of IPv4, and those of IPv6 among ``ipv6``.

    A wanted one that another machine has is not among them: the kernel does not use it. One that is not wanted is: it
    is set, and to be removed.
    """
    unused = {*link.duplicates} & {*wanted}
    return sorted(one for one in link.addresses if one not in unused and (not is_ipv6(one) or one in ipv6))


def dark(inventory: HostInventory) -> list[str]:
    """Return the names of links that are up without a carrier, and of the VLAN interfaces on them."""
    names = [link.name for port in inventory.ports if (link := port.netdev) and link.up and link.carrier is False]
    return [*names, *(one.name for one in inventory.interfaces if one.vlan is not None and one.lower in names)]


def to_check(inventory: HostInventory, ports: States, vlans: States) -> list[Checked]:
    """Return the ports and VLAN interfaces of wanted states."""
    carrying = {port.netdev.name: port for port in inventory.ports if port.netdev}
    found = [
        Checked(port.title, port.netdev, bool(port.netdev.carrier), ports[port.pci]["addresses"])
        for port in carrying.values()
        if port.netdev and port.pci in ports
    ]
    for one in inventory.interfaces:
        port = carrying.get(one.lower or "")
        if port and port.netdev and one.name in vlans:
            title = f"{port.title}: {one.name}"
            found.append(Checked(title, one, bool(port.netdev.carrier), vlans[one.name]["addresses"]))
    return found


def duplicates(one: Checked) -> list[str]:
    """Return the wanted addresses that another machine has."""
    return [address for address in one.link.duplicates if address in one.wanted]


def taken(one: Checked) -> list[str]:
    """Say which wanted addresses another machine has."""
    return [
        f"{one.title}: another machine on this link has the address {address}, as the kernel found. Remove it"
        " there, or set rdma_host.number of one of the hosts"
        for address in duplicates(one)
    ]


def unchecked(one: Checked) -> list[str]:
    """Say of which wanted addresses the kernel does not know yet whether another machine has them.

    Without a carrier it cannot know.
    """
    found = [address for address in one.link.tentative if address in one.wanted and address not in one.link.duplicates]
    return [
        f"{one.title}: the kernel still checks whether {address} is a duplicate" for address in found if one.carrier
    ]
