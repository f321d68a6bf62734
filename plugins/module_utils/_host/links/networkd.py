# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""systemd-networkd: the .network file of a rail."""

from __future__ import annotations

import posixpath
from collections.abc import Iterator, Mapping

from ..facts.devices import Port
from ..naming import systemd_files
from ..system import systemd
from .network_managers import TITLE, Claim, LinkFile, Vlan


def files(links: tuple[LinkFile, ...], etc: str) -> dict[str, str]:
    """Return path -> text of the rails' files."""
    found = {f"{etc}/systemd/network/{base_name(link.rail, False)}": text(link) for link in links}
    devices = {f"{etc}/systemd/network/{systemd_files.PREFIX}{link.rail}.netdev": link.vlan for link in links}
    return {**found, **{path: _device(vlan) for path, vlan in devices.items() if vlan}}


def base_name(rail: str, by_netplan: bool) -> str:
    """Return the name of a rail's file, ours or the one that netplan makes."""
    return f"{systemd_files.NETPLAN_PREFIX if by_netplan else systemd_files.PREFIX}{rail}.network"


def text(link: LinkFile) -> str:
    """Return the text of a rail's file.

    The rail is configured without a cable too, and no boot waits for it. Router
    advertisements are not taken: a rail must not become a default route.
    """
    addresses = [("KeepConfiguration", "yes")]
    if link.addresses is not None:
        addresses = [("Address", address) for address in link.addresses]
    network = [*addresses, ("ConfigureWithoutCarrier", "yes"), ("IPv6AcceptRA", "no"), ("LLDP", "yes")]
    network += [("VLAN", link.carries)] if link.carries else []
    match = [("Name", link.vlan.netdev)] if link.vlan else systemd_files.match_settings(link.port)
    sections = [
        ("Match", match),
        ("Link", [("MTUBytes", str(link.mtu)), ("RequiredForOnline", "no")]),
        ("Network", network),
        *routing_sections(link),
    ]
    return systemd.file_text(TITLE, sections)


def claim(networks: Mapping[str, str], port: Port, own: str) -> Claim | None:
    """Return the .network file of somebody else that holds for a port; ``own`` is the name of our file."""
    path = systemd_files.first_match(networks, port, ".network")
    return Claim(path, posixpath.basename(path) < own, "MTUBytes=") if path else None


def _device(vlan: Vlan) -> str:
    sections = {"NetDev": [("Name", vlan.netdev), ("Kind", "vlan")], "VLAN": [("Id", str(vlan.number))]}
    return systemd.file_text(TITLE, sections)


def routing_sections(link: LinkFile) -> Iterator[tuple[str, list[tuple[str, str]]]]:
    """Yield the sections of source routing of a rail's file."""
    for route in link.routes:
        # Routes of IPv6 have no scope.
        direct = [] if ":" in route.network else [("Scope", "link")]
        way = [("Gateway", route.gateway)] if route.gateway else direct
        yield (
            "Route",
            [("Destination", route.network), *way, ("PreferredSource", route.source), ("Table", str(route.table))],
        )
    for rule in link.rules:
        what = ("From", rule.source) if rule.source else ("To", rule.destination)
        yield "RoutingPolicyRule", [what, ("Table", str(rule.table)), ("Priority", str(rule.table))]
