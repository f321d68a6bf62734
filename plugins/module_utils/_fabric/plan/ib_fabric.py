# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""On which switch ports InfiniBand rails are, from a file with the output of ``ibnetdiscover`` (infiniband-diags)."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, Optional

from ..._common.errors import InputError, ParseError
from ..._common.reader import describe
from ..intent.host_groups import IBNETDISCOVER, KEY
from ..intent.typed import plain
from .hosts import Host

Ports = Mapping[str, Sequence[Optional[Mapping[str, Any]]]]
# A channel adapter begins with its node GUID, and a switch with its own. Below it is a line for each port with a link.
_NODE = re.compile(r'(Ca|Switch|Rt)\s+[0-9]+\s+"[A-Z]-([0-9a-f]{1,16})"')
# Port 1 of an adapter, the only one of the RDMA devices of rails. After '#' are LIDs and the name of the switch.
_LINK = re.compile(r'\[1\]\([0-9a-f]+\)\s+"S-([0-9a-f]{1,16})"\[([0-9]{1,5})\]\s*#[^"]*"([^"]*)"')


def parse(text: str) -> dict[str, dict[str, str]]:
    """Return node GUID of an adapter -> {system, chassis, port} of its switch, as LLDP reports it of Ethernet.

    ParseError for text without such an adapter.
    """
    found: dict[str, dict[str, str]] = {}
    adapter = ""
    for line in text.splitlines():
        node = _NODE.match(line)
        if node:
            adapter = node[2].zfill(16) if node[1] == "Ca" else ""
        link = _LINK.match(line)
        if link and adapter:
            found[adapter] = {"system": plain(link[3]), "chassis": f"0x{link[1].zfill(16)}", "port": link[2]}
    if not found:
        raise ParseError("it has no adapter (Ca) with a link to a switch. Expected the output of ibnetdiscover")
    return found


def with_switches(ports: Ports, hosts: Iterable[Host], groups: Mapping[str, Any], *, content: Any) -> Ports:
    """Return the ports of rails (host -> its ports), with the switches of the file that ``groups`` are taken from.

    ``content``: of that file. Adapters are found by the node GUID of the RDMA device of a port.
    """
    if groups.get("from") != IBNETDISCOVER or content is None:
        return ports
    try:
        if not isinstance(content, str):
            raise ParseError(f"expected the output of ibnetdiscover, found {describe(content)}")
        known = parse(content)
    except ParseError as error:
        raise InputError(f"{KEY}.path: {groups['path']}: {error}") from error
    guids = {host.name: _guids(host) for host in hosts}
    return {name: [port and _placed(port, guids.get(name, {}), known) for port in own] for name, own in ports.items()}


def _guids(host: Host) -> dict[str, str]:
    """Return the RDMA devices of a host -> their node GUIDs as ibnetdiscover prints them."""
    devices = (host.facts or {}).get("rdma_devices", ())
    return {device["name"]: device["node_guid"].replace(":", "").lower() for device in devices}


def _placed(
    port: Mapping[str, Any], guids: Mapping[str, str], known: Mapping[str, Mapping[str, str]]
) -> dict[str, Any]:
    found = next((known[guids[name]] for name in port["rdma"] if guids.get(name) in known), None)
    return {**port, "switch": found or port["switch"]}
