# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""A host's slice of the plan: which port is which rail. Ports are found by PCI address."""

from __future__ import annotations

import dataclasses
import ipaddress
import re
from collections.abc import Iterable, Mapping
from typing import Any

from ..._common.errors import ConflictError, InputError
from ..._common.pci import PciAddress
from .devices import Netdev, Port
from .inventory import HostInventory

# The kernel's IFNAMSIZ less the final zero.
MAX_NAME = 15
_LAST_VLAN = 4094
# No character that .link files or sysctl keys treat specially.
_NETDEV = re.compile(rf"[a-zA-Z][a-zA-Z0-9_-]{{0,{MAX_NAME - 1}}}")


@dataclasses.dataclass(frozen=True)
class Way:
    """An address of a rail, with prefix, and the router and routes of its version of IP (as in ``Rail``)."""

    address: str
    gateway: str = ""
    routes: tuple[str, ...] = ()
    beyond: str = ""


@dataclasses.dataclass(frozen=True)
class Rail:
    """One rail on one host: ``netdev`` is the name it shall have, ``address`` has a prefix.

    ``doubt``: the hosts that are not known to the plan, one of which may have the address. ``gateway``: the router, ""
    for none; ``routes``: the networks behind it; ``beyond``: the one of them that all addresses of the host reach
    that way, "" for none. ``vlan``: the number of the VLAN interface that has the address, 0 for none. ``ipv6``: a
    second address beside one of IPv4. ``members``: PCI addresses of the members of the bond that the rail is, the first
    one being ``pci``; none for a port.
    """

    name: str
    pci: str
    driver: str | None
    netdev: str
    address: str | None
    mtu: int
    doubt: str = ""
    gateway: str = ""
    routes: tuple[str, ...] = ()
    beyond: str = ""
    vlan: int = 0
    ipv6: Way | None = None
    members: tuple[str, ...] = ()

    @property
    def bond(self) -> str:
        """The bond that the rail is, "" for a port. It keeps its name, so that is the one of the rail's interface."""
        return self.netdev if self.members else ""

    @property
    def vlan_netdev(self) -> str:
        """The name of the rail's VLAN interface, "" for none."""
        return f"{self.netdev}.{self.vlan}" if self.vlan else ""

    @property
    def vlan_name(self) -> str:
        """What files and connections of the VLAN interface are named after, "" for none."""
        return f"{self.name}.{self.vlan}" if self.vlan else ""

    @property
    def ways(self) -> tuple[Way, ...]:
        """The addresses with their routers."""
        first = [Way(self.address, self.gateway, self.routes, self.beyond)] if self.address else []
        return (*first, *([self.ipv6] if self.ipv6 else []))

    @property
    def addresses(self) -> tuple[str, ...]:
        """The addresses of the plan, with prefix; without any, the port keeps those that it has."""
        return tuple(way.address for way in self.ways)

    @classmethod
    def from_params(cls, params: Mapping[str, Any]) -> Rail:
        """Build it from an entry of ``plan.hosts[name].rails``; InputError names the rail."""
        name, netdev = params["rail"], params["netdev"]
        if not _NETDEV.fullmatch(netdev):
            raise InputError(
                f"rail {name}: '{netdev}' cannot be the name of a network device; expected a letter, "
                "then at most 14 letters, digits, '_' or '-'"
            )
        way, second = _way(name, params), _way(name, params.get("ipv6") or {})
        return cls(
            name=name,
            pci=str(PciAddress.parse(params["pci"])),
            driver=params.get("driver"),
            netdev=netdev,
            address=way.address if way else None,
            mtu=params["mtu"],
            doubt=params.get("doubt") or "",
            vlan=_vlan(name, netdev, params.get("vlan") or 0),
            gateway=way.gateway if way else "",
            routes=way.routes if way else (),
            beyond=way.beyond if way else "",
            ipv6=second,
            members=tuple(str(PciAddress.parse(one)) for one in params.get("members") or ()),
        )

    def doubts(self, link: Netdev | None) -> list[str]:
        """Say why the address must not be set: it is new to its port, and another host may have it."""
        if not self.doubt or (link and self.address in link.addresses):
            return []
        return [
            f"rail {self.name}: {self.address} may be in use: the addresses of {self.doubt} are unknown. Run "
            "without --limit, or set rdma_host.number of this host, or of those whose ports are missing"
        ]

    def mtu_problems(self, link: Netdev | None) -> list[str]:
        """Say which MTUs the rail's link can have when that of the rail is not one of them."""
        if link is None or not link.max_mtu or link.min_mtu <= self.mtu <= link.max_mtu:
            return []
        return [
            f"rail {self.name}: {self.pci} ({link.name}) supports an MTU from {link.min_mtu} to {link.max_mtu}, "
            f"{self.mtu} requested. Change the MTU of the fabric"
        ]


def _vlan(name: str, netdev: str, number: int) -> int:
    if not 0 <= number <= _LAST_VLAN:
        raise InputError(f"rail {name}: {number} is not the number of a VLAN; expected 1 to {_LAST_VLAN}")
    if number and len(f"{netdev}.{number}") > MAX_NAME:
        raise InputError(
            f"rail {name}: {netdev}.{number}, the name of its VLAN interface, is longer than {MAX_NAME} characters. "
            "Shorten the name of the rail"
        )
    return number


def _way(name: str, params: Mapping[str, Any]) -> Way | None:
    """Return the address of an entry, None without one; InputError names the rail."""
    address, gateway, beyond = (params.get(key) or "" for key in ("address", "gateway", "beyond"))
    if not address:
        return None
    try:
        own = ipaddress.ip_interface(address)
    except ValueError as error:
        raise InputError(f"rail {name}: '{address}' is not an address with prefix: {error}") from error
    if not gateway:
        return Way(str(own))
    try:
        router = ipaddress.ip_address(gateway)
        routes = [ipaddress.ip_network(network) for network in params.get("routes") or ()]
        rest = [ipaddress.ip_network(beyond)] if beyond else []
    except ValueError as error:
        raise InputError(f"rail {name}: gateway, routes or beyond cannot be read: {error}") from error
    if router not in own.network:
        raise InputError(f"rail {name}: the gateway {gateway} is not in {own.network}, the network of its address")
    others = [str(network) for network in (*routes, *rest) if network.version != own.version]
    if others:
        raise InputError(f"rail {name}: {', '.join(others)} cannot be reached from {own}. Use networks of its version")
    return Way(str(own), str(router), tuple(map(str, routes)), "".join(map(str, rest)))


def parse_rails(entries: Iterable[Mapping[str, Any]]) -> tuple[Rail, ...]:
    """Parse the slice; InputError when two rails share a name, a port, a netdev or an address."""
    rails = tuple(Rail.from_params(entry) for entry in entries)
    for field in ("name", "pci", "netdev", "address"):
        seen: dict[str, str] = {}
        for rail in rails:
            for value in rail.addresses if field == "address" else (getattr(rail, field),):
                if value in seen:
                    raise InputError(f"rails {seen[value]} and {rail.name} have the same {field}: {value}")
                seen[value] = rail.name
    return rails


def find_links(inventory: HostInventory, rails: Iterable[Rail]) -> dict[str, Netdev]:
    """Return PCI address -> network device of all rails.

    All rails are checked before the answer: ConflictError lists every port that is missing, has
    no network device, or must be left alone (default route, ssh connection, member of a bond), and every bond that is
    not the planned one or has no RDMA device.
    """
    found: dict[str, Netdev] = {}
    problems: list[str] = []
    for rail in rails:
        try:
            found[rail.pci] = rail_link(inventory, rail)
        except (InputError, ConflictError) as error:
            problems.append(f"rail {rail.name}: {error}")
    if problems:
        raise ConflictError("; ".join(problems))
    return found


def rail_link(inventory: HostInventory, rail: Rail) -> Netdev:
    """Return the network device of a rail, a port or a bond; ConflictError says why it cannot serve as a rail."""
    if rail.bond:
        bond = next((one for one in inventory.bonds if one.name == rail.bond), None)
        if bond is None:
            raise ConflictError(f"there is no bond {rail.bond}. Create it with the network manager of the host")
        members = tuple(sorted(port.pci for _name, port in bond.members if port))
        if members != tuple(sorted(rail.members)):
            found, expected = ", ".join(members) or "none", ", ".join(rail.members)
            raise ConflictError(
                f"the bond {rail.bond} has the members {found}, expected {expected} as planned. Plan again, or "
                "correct the bond"
            )
        if bond.problem:
            raise ConflictError(f"the bond {rail.bond} {bond.problem}. Correct the bond, or choose another rail")
        inventory = inventory.through_bonds({rail.pci: rail.bond})
    return usable_link(inventory, inventory.port(rail.pci))


def without_bonds(rails: Iterable[Rail]) -> tuple[Rail, ...]:
    """Return the rails that are ports."""
    return tuple(rail for rail in rails if not rail.bond)


def refuse_bonds(rails: Iterable[Rail], why: str) -> None:
    """ConflictError that names the rails that are bonds, where only ports are supported."""
    found = [f"{rail.name} ({rail.bond})" for rail in rails if rail.bond]
    if found:
        raise ConflictError(f"rails that are bonds: {', '.join(found)}. {why}")


def usable_link(inventory: HostInventory, port: Port) -> Netdev:
    """Return the network device of a port; ConflictError says why it cannot serve as a rail."""
    link = port.netdev
    if link is None:
        raise ConflictError(
            f"{port.pci} has no network device (driver: {port.driver or 'none'}). Bind its network driver"
        )
    owner = inventory.owner(link.name)
    if owner:
        raise ConflictError(f"{port.pci}: {owner}. Such a port cannot be a rail")
    if link.master:
        raise ConflictError(
            f"{port.title} is a member of {link.master}. A rail must not be a member of another device: remove it "
            "from there, or choose another port"
        )
    return link
