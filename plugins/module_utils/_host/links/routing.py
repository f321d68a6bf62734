# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Source routing: what a rail sends from its address leaves through that rail.

Where several rails share a subnet, the kernel would send everything through the first of them. What is behind the
router of a rail is reached from its address alone, since each rail has a way to the networks of all.
A line is an argument list of ``ip rule`` or ``ip route``, and is compared and run as it is.
"""

from __future__ import annotations

import ipaddress
from collections import Counter
from collections.abc import Collection, Iterable, Mapping
from typing import Any, NamedTuple

from ..._common.errors import InputError, ParseError
from ..facts.rail_ports import Rail
from ..system import json_text

CHOICES = ("auto", "always", "never")
# Tables of the rails, in the order of the plan. The number is the priority of the rule, too: behind local (0),
# before main (32766), and far from what others use.
FIRST_TABLE = 27600
TABLES = range(FIRST_TABLE, FIRST_TABLE + 64)


class Rule(NamedTuple):
    """Packets from ``source``, or to ``destination``, take the table."""

    source: str
    destination: str
    table: int

    def __str__(self) -> str:
        """Return the line."""
        what = f"from {self.source}" if self.source else f"to {self.destination}"
        return f"{what} lookup {self.table} priority {self.table}"


class Route(NamedTuple):
    """A network that the rail reaches directly, or through ``gateway``, with ``source`` as sender."""

    network: str
    gateway: str
    source: str
    table: int

    def line(self, netdev: str) -> str:
        """Return the line for the name that the rail's link has."""
        # The kernel leaves an IPv6 route without its source when the address is removed.
        source = f" src {self.source}" if self.source else ""
        if self.gateway:
            return f"{self.network} via {self.gateway} dev {netdev}{source} table {self.table}"
        # Routes of IPv6 have no scope.
        scope = "" if ":" in self.network else " scope link"
        return f"{self.network} dev {netdev}{source}{scope} table {self.table}"


def tables(rails: Iterable[Rail], asked: str) -> dict[str, int]:
    """Return rail -> table of the rails that get one.

    ``auto``: those with an address whose subnet another rail of the host has as well, or with a router.
    InputError for ``never`` with a router, since its routes are in a table of the rail.
    """
    rails = tuple(rails)
    routed = [rail.name for rail in rails if any(way.routes for way in rail.ways)]
    if routed and asked == "never":
        raise InputError(
            f"the plan has a router for rails {', '.join(routed)}, whose routes need source routing. Set"
            " source_routing: auto, or plan the rails without a router"
        )
    networks = {rail.name: [network_of(address) for address in rail.addresses] for rail in rails}
    counts = Counter(network for own in networks.values() for network in own)
    shared = {name for name, own in networks.items() if any(counts[network] > 1 for network in own)}
    return {
        name: TABLES[index]
        for index, (name, own) in enumerate(networks.items())
        if own and asked != "never" and (asked == "always" or name in routed or name in shared)
    }


def of_rail(rail: Rail, table: int | None) -> tuple[list[Rule], list[Route]]:
    """Return rules and routes of a rail; none without a table."""
    rules: list[Rule] = []
    routes: list[Route] = []
    for way in rail.ways if table else ():
        number, source = table or 0, source_of(way.address)
        rules += [Rule(source, "", number), *([Rule("", way.beyond, number)] if way.beyond else [])]
        routes.append(Route(network_of(way.address), "", source, number))
        routes += [Route(network, way.gateway, source, number) for network in way.routes]
    return rules, routes


def wanted(rails: Iterable[Rail], table_of: Mapping[str, int], netdevs: Mapping[str, str]) -> list[str]:
    """Return the lines of all rails, ordered; ``netdevs`` is PCI address -> name now."""
    found = []
    for rail in rails:
        rules, routes = of_rail(rail, table_of.get(rail.name))
        found += [*map(str, rules), *(route.line(netdevs[rail.pci]) for route in routes)]
    return sorted(found)


def settable(lines: Iterable[str], found: Collection[str], dark: Iterable[str]) -> list[str]:
    """Return the lines without IPv6 routes that cannot be set yet: through links without a carrier (``dark``).

    The kernel does not use an address before it knows that no other machine has it. ``found``: lines that are set.
    """
    names = [f" dev {name} " for name in dark]
    waits = {line for line in lines if ":" in line and any(name in line for name in names)}
    return [line for line in lines if line in found or line not in waits]


def parse(rules: str, routes: str) -> list[str]:
    """Return the lines of our tables from ``ip -N -j rule show`` and ``ip -N -j route show table all``.

    ParseError when the output has another form.
    """
    try:
        found = [str(_rule(one)) for one in _entries(rules) if ("src" in one or "dst" in one) and _ours(one)]
        found += [_route(one).line(one["dev"]) for one in _entries(routes) if _ours(one)]
    except (ValueError, KeyError, TypeError, AttributeError) as error:
        raise ParseError(f"the output of 'ip -N -j rule show' or 'ip route' cannot be read: {error!r}") from error
    return sorted(found)


def commands(before: Iterable[str], after: Iterable[str]) -> list[list[str]]:
    """Return the commands that lead from some lines to others; what goes, goes first."""
    before, after = list(before), list(after)
    gone = [_command(line, "del") for line in before if line not in after]
    # A rule that is there twice would be there twice: it is only added where it is not.
    return gone + [_command(line, "add" if _is_rule(line) else "replace") for line in after if line not in before]


def source_of(address: str) -> str:
    """Return the address without its prefix."""
    return str(ipaddress.ip_interface(address).ip)


def network_of(address: str) -> str:
    """Return the subnet of an address with prefix."""
    return str(ipaddress.ip_interface(address).network)


def _command(line: str, verb: str) -> list[str]:
    return ["ip", *(["-6"] if ":" in line else []), "rule" if _is_rule(line) else "route", verb, *line.split()]


def _is_rule(line: str) -> bool:
    return line.startswith(("from ", "to "))


def _rule(entry: Mapping[str, Any]) -> Rule:
    table = int(entry["table"])
    if "dst" in entry:
        whole = 128 if ":" in entry["dst"] else 32
        return Rule("", f"{entry['dst']}/{entry.get('dstlen', whole)}", table)
    return Rule(str(entry["src"]), "", table)


def _route(entry: Mapping[str, Any]) -> Route:
    network = str(ipaddress.ip_network(entry["dst"]))
    return Route(network, entry.get("gateway", ""), entry.get("prefsrc", ""), int(entry["table"]))


def _entries(text: str) -> list[dict[str, Any]]:
    return list(json_text.loads(text or "[]"))


def _ours(entry: Mapping[str, Any]) -> bool:
    table = str(entry.get("table", ""))
    return table.isdecimal() and int(table) in TABLES
