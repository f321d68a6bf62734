# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Addresses, routes and the own ssh connection, from what ``ip`` and /proc print."""

from __future__ import annotations

import dataclasses
import ipaddress
import struct
from collections.abc import Iterable
from typing import Any, Union

from ..._common.errors import ParseError
from ..system import json_text

Network = Union[ipaddress.IPv4Network, ipaddress.IPv6Network]

# Not routes to anywhere: link-local and multicast.
_LOCAL = tuple(map(ipaddress.ip_network, ("169.254.0.0/16", "224.0.0.0/4", "fe80::/10", "ff00::/8")))
_ROUTE_UP = 0x1
# Flags of IPv6 routes that router advertisements made (linux/ipv6_route.h): DEFAULT, ADDRCONF, PREFIX_RT, ROUTEINFO.
_LEARNED = 0x8D0000
_DEFAULT_V6 = "0" * 32
# Open vSwitch: every port of every bridge has this master, and no bridge says which ports are its own.
_OVS_KIND, _OVS_MASTER = "openvswitch", "ovs-system"


@dataclasses.dataclass(frozen=True)
class Interface:
    """One entry of ``ip -d -j addr``; addresses are those of global scope, with prefix.

    ``vf_rate`` is the lowest limit that a VF of it has, in Gb/s; None when none is limited. ``lower`` is what
    a VLAN or macvlan stands on, ``kind`` what made it (``vlan``, ``bond``, empty for hardware). ``dynamic`` are
    the IPv6 addresses that router advertisements or DHCP gave, ``vlan`` the number of a VLAN interface.
    ``duplicates`` are the IPv6 addresses that another machine has, and ``tentative`` those of which the kernel does not
    know that yet.
    """

    name: str
    mac: str
    mtu: int
    min_mtu: int
    max_mtu: int
    master: str | None
    altnames: tuple[str, ...]
    addresses: tuple[str, ...]
    vf_rate: float | None
    lower: str | None
    kind: str
    dynamic: tuple[str, ...] = ()
    up: bool = False
    vlan: int | None = None
    duplicates: tuple[str, ...] = ()
    tentative: tuple[str, ...] = ()

    @classmethod
    def from_ip(cls, entry: dict[str, Any]) -> Interface:
        """Build it from one entry; ``permaddr`` (the MAC before bonding) wins over the MAC."""
        addresses: dict[str, dict[str, Any]] = {
            f"{ipaddress.ip_address(item['local'])}/{int(item['prefixlen'])}": item
            for item in entry.get("addr_info", [])
            if item.get("scope") == "global" and "local" in item
        }
        return cls(
            name=str(entry["ifname"]),
            mac=entry.get("permaddr") or entry.get("address", ""),
            mtu=int(entry.get("mtu", 0)),
            min_mtu=int(entry.get("min_mtu", 0)),
            max_mtu=int(entry.get("max_mtu", 0)),
            master=entry.get("master"),
            altnames=tuple(entry.get("altnames", ())),
            addresses=tuple(addresses),
            vf_rate=_vf_rate(entry.get("vfinfo_list", [])),
            lower=entry.get("link"),
            kind=entry.get("linkinfo", {}).get("info_kind", ""),
            up="UP" in entry.get("flags", ()),
            vlan=_vlan(entry.get("linkinfo", {})),
            dynamic=_flagged(addresses, "dynamic"),
            duplicates=_flagged(addresses, "dadfailed"),
            tentative=_flagged(addresses, "tentative"),
        )


def _vlan(made: dict[str, Any]) -> int | None:
    number = made.get("info_data", {}).get("id") if made.get("info_kind") == "vlan" else None
    return None if number is None else int(number)


def _flagged(addresses: dict[str, dict[str, Any]], flag: str) -> tuple[str, ...]:
    """Return the IPv6 addresses with a flag."""
    return tuple(address for address, item in addresses.items() if item.get(flag) and ":" in address)


def _vf_rate(functions: list[dict[str, Any]]) -> float | None:
    # Mb/s, 0 without a limit. "rate" is the newer attribute, "tx_rate" the older one.
    limits = [vf.get("rate", {}).get("max_tx") or vf.get("tx_rate") for vf in functions]
    return min((limit / 1000 for limit in limits if limit), default=None)


def parse_interfaces(text: str) -> dict[str, Interface]:
    """Parse the output of ``ip -d -j addr show`` into name -> Interface; ParseError otherwise."""
    try:
        entries = [entry for entry in json_text.loads(text or "[]") if entry]
        return {interface.name: interface for interface in map(Interface.from_ip, entries)}
    except (ValueError, KeyError, TypeError, AttributeError, OverflowError) as error:
        raise ParseError(f"the output of 'ip -d -j addr show' cannot be read: {error!r}") from error


def carriers(interfaces: Iterable[Interface], name: str) -> frozenset[str]:
    """Return a network device and all that it stands on: the port of a VLAN, the members of a bond or bridge."""
    interfaces = tuple(interfaces)
    by_name = {interface.name: interface for interface in interfaces}
    found = {name}
    todo = [name]
    while todo:
        one = by_name.get(todo.pop())
        if one is None:
            continue
        master = _OVS_MASTER if one.kind == _OVS_KIND else one.name
        below = {interface.name for interface in interfaces if interface.master == master}
        new = (below | ({one.lower} if one.lower else set())) - found
        found |= new
        todo += sorted(new)
    return frozenset(found)


def stacked_on(interfaces: Iterable[Interface], name: str) -> list[Interface]:
    """Return all network devices that are stacked on one: VLANs, and the bonds and bridges that it is a member of."""
    interfaces = tuple(interfaces)
    found: dict[str, Interface] = {}
    todo = [name]
    while todo:
        below = todo.pop()
        masters = {one.master for one in interfaces if one.name == below and one.master}
        for one in interfaces:
            is_upper = one.lower == below or one.name in masters
            is_ovs = _OVS_MASTER in masters and one.kind == _OVS_KIND
            if (is_upper or is_ovs) and one.name not in found and one.name != name:
                found[one.name] = one
                todo.append(one.name)
    return list(found.values())


@dataclasses.dataclass(frozen=True)
class Route:
    """One IPv4 route of the main table, or an IPv6 default route (network None)."""

    netdev: str
    network: ipaddress.IPv4Network | None

    @property
    def is_default(self) -> bool:
        """Whether the route leads everywhere."""
        return self.network is None or self.network.prefixlen == 0


def parse_routes(ipv4: str, ipv6: str) -> list[Route]:
    """Parse /proc/net/route, and the default routes of /proc/net/ipv6_route; ParseError when the former is another."""
    try:
        routes = [_route4(line.split()) for line in ipv4.splitlines()[1:] if len(line.split()) >= 8]
    except (ValueError, struct.error) as error:
        raise ParseError(f"/proc/net/route cannot be read: {error}") from error
    for fields in (line.split() for line in ipv6.splitlines()):
        # A default route of prefix 0 on lo is the kernel's own "unreachable".
        if len(fields) == 10 and fields[:2] == [_DEFAULT_V6, "00"] and fields[9] != "lo":
            routes.append(Route(fields[9], None))
    return [route for route in routes if route]


def _route4(fields: list[str]) -> Route | None:
    if not int(fields[3], 16) & _ROUTE_UP:
        return None
    # The kernel prints the words in the byte order of the machine; all supported ones are little.
    network, mask = (struct.pack("<I", int(fields[i], 16)) for i in (1, 7))
    prefix = bin(int.from_bytes(mask, "big")).count("1")
    return Route(fields[0], ipaddress.IPv4Network((network, prefix), strict=False))


def own_networks(
    interfaces: Iterable[Interface], routes: Iterable[Route], rail_capable: Iterable[str]
) -> tuple[str, ...]:
    """Return the subnets that the host uses on interfaces that cannot be rails, ordered; of IPv6 those of addresses."""
    skipped = set(rail_capable) | {"lo"}
    found = {
        ipaddress.ip_interface(address).network
        for interface in interfaces
        if interface.name not in skipped
        for address in interface.addresses
    }
    found.update(route.network for route in routes if route.network and route.netdev not in skipped)
    # Host routes (one a pod with some CNIs) say nothing that a subnet does not.
    wanted = [net for net in found if 0 < net.prefixlen < net.max_prefixlen]
    return tuple(str(net) for net in sorted(wanted, key=lambda net: (net.version, int(net[0]), net.prefixlen)))


def ssh_netdev(connection: str, interfaces: Iterable[Interface]) -> str | None:
    """Return the interface with the server's address of SSH_CONNECTION, None without one.

    ``connection`` is ``client_ip client_port server_ip server_port``.
    """
    fields = connection.split()
    if len(fields) != 4:
        return None
    address = fields[2].replace("::ffff:", "").split("%")[0]
    for interface in interfaces:
        if address in (item.split("/")[0] for item in interface.addresses):
            return interface.name
    return None


def parse_ipv6_routes(text: str, learned: bool) -> list[tuple[str, Network]]:
    """Parse /proc/net/ipv6_route: the routes that lead out of a device, on request with ``learned`` ones.

    Those were learned from router advertisements by the kernel.
    """
    found: list[tuple[str, Network]] = []
    for fields in (line.split() for line in text.splitlines()):
        if len(fields) != 10 or fields[9] == "lo":
            continue
        try:
            net = ipaddress.IPv6Network((int(fields[0], 16), int(fields[1], 16)), strict=False)
            is_learned = bool(int(fields[8], 16) & _LEARNED)
        except ValueError:
            continue
        # /128 are the host's own addresses and neighbours.
        if net.prefixlen < 128 and not is_local(net) and (learned or not is_learned):
            found.append((fields[9], net))
    return found


def is_local(net: Network) -> bool:
    """Whether a network is link-local or multicast, so that a route to it leads nowhere else."""
    return any(net.version == local.version and net.subnet_of(local) for local in _LOCAL)  # type: ignore[arg-type]
