# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""systemd-networkd: the .network file of a rail."""

from __future__ import annotations

import posixpath
from collections.abc import Mapping

from ..facts.devices import Port
from ..naming import systemd_files
from ..system import systemd
from .network_managers import TITLE, Claim, LinkFile
from .routing import network_of, source_of


def files(links: tuple[LinkFile, ...], etc: str) -> dict[str, str]:
    """Return path -> text of the rails' files."""
    return {f"{etc}/systemd/network/{base_name(link.rail, False)}": text(link) for link in links}


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
    sections = {
        "Match": systemd_files.match_settings(link.port),
        "Link": [("MTUBytes", str(link.mtu)), ("RequiredForOnline", "no")],
        "Network": [
            *addresses,
            ("ConfigureWithoutCarrier", "yes"),
            ("IPv6AcceptRA", "no"),
            ("LLDP", "yes"),
        ],
        **_routing(link),
    }
    return systemd.file_text(TITLE, sections)


def claim(networks: Mapping[str, str], port: Port, own: str) -> Claim | None:
    """Return the .network file of somebody else that holds for a port; ``own`` is the name of our file."""
    path = systemd_files.first_match(networks, port, ".network")
    return Claim(path, posixpath.basename(path) < own, "MTUBytes=") if path else None


def _routing(link: LinkFile) -> dict[str, list[tuple[str, str]]]:
    if link.table is None or not link.addresses:
        return {}
    address = link.addresses[0]
    return {
        "Route": [
            ("Destination", network_of(address)),
            ("Scope", "link"),
            ("PreferredSource", source_of(address)),
            ("Table", str(link.table)),
        ],
        "RoutingPolicyRule": [
            ("From", source_of(address)),
            ("Table", str(link.table)),
            ("Priority", str(link.table)),
        ],
    }
