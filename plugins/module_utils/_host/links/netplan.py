# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""netplan: one file of our own with a definition a rail."""

from __future__ import annotations

import json
import posixpath
import re
from collections.abc import Mapping

from ..naming.systemd_files import own_driver
from .network_managers import NETWORKD, PREFIX, TITLE, Claim, LinkFile
from .routing import Route

# Late: netplan merges definitions by name, and ours have names of their own.
FILE = "90-gpufabric-rails.yaml"


def files(links: tuple[LinkFile, ...], etc: str, backend: str) -> dict[str, str]:
    """Return path -> text of the file; ``backend`` is who brings the links up."""
    lines = [line for link in links if not link.vlan for line in _definition(link, backend)]
    vlans = [line for link in links if link.vlan for line in _definition(link, backend)]
    head = [f"# {TITLE}", "network:", "  version: 2", "  ethernets:"]
    text = "\n".join([*head, *lines, *(["  vlans:", *vlans] if vlans else [])]) + "\n"
    return {f"{etc}/netplan/{FILE}": text} if links else {}


def connection(link: LinkFile) -> str:
    """Return the name of the NetworkManager connection that netplan makes of a rail."""
    return f"netplan-{link.name}"


def named(found: Claim | None, sources: Mapping[str, str]) -> Claim | None:
    """Return the claim with the file of netplan in it where netplan made the claiming file.

    ``sources`` is path -> text of netplan's own files.
    """
    match = re.search(r"/run/.*?netplan-(.+)\.(network|nmconnection)$", found.path) if found else None
    if not found or not match:
        return found
    key = re.compile(rf"^\s+['\"]?{re.escape(match.group(1))}['\"]?:", re.MULTILINE)
    places = [path for path, text in sources.items() if key.search(text)]
    place = places[-1] if places else posixpath.basename(found.path)
    return found._replace(path=f"'{match.group(1)}' in {place} (netplan)", setting="mtu: ")


def _definition(link: LinkFile, backend: str) -> list[str]:
    networkd = backend == NETWORKD
    # Every value is JSON, which is YAML as well. NetworkManager's definitions match no driver, and know no carrier.
    lines = [
        *_place(link, networkd),
        f"renderer: {'networkd' if networkd else 'NetworkManager'}",
        f"mtu: {link.mtu}",
        "dhcp4: false",
        "dhcp6: false",
        "accept-ra: false",
        "link-local: [ipv6]",
        "optional: true",
        *(["ignore-carrier: true"] if networkd else []),
        *([f"addresses: {json.dumps(list(link.addresses))}"] if link.addresses else []),
        *_routing(link),
    ]
    # netplan calls a VLAN interface as its definition.
    return [f"    {link.vlan.netdev if link.vlan else link.name}:", *(f"      {line}" for line in lines)]


def _place(link: LinkFile, networkd: bool) -> list[str]:
    if link.vlan:
        return [f"id: {link.vlan.number}", f"link: {PREFIX}{link.vlan.over}"]
    netdev, driver = link.port.netdev, own_driver(link.port)
    mac = netdev.mac if netdev else ""
    also = f", driver: {json.dumps(driver)}" if driver and networkd else ""
    return [f"match: {{macaddress: {json.dumps(mac)}{also}}}"]


def _routing(link: LinkFile) -> list[str]:
    if not link.routes:
        return []
    routes = [
        f"{{to: {json.dumps(one.network)}, {_way(one)}, from: {json.dumps(one.source)}, table: {one.table}}}"
        for one in link.routes
    ]
    rules = [
        f"{{{'from' if one.source else 'to'}: {json.dumps(one.source or one.destination)}, table: {one.table},"
        f" priority: {one.table}}}"
        for one in link.rules
    ]
    return [f"routes: [{', '.join(routes)}]", f"routing-policy: [{', '.join(rules)}]"]


def _way(route: Route) -> str:
    return f"via: {json.dumps(route.gateway)}" if route.gateway else "scope: link"
