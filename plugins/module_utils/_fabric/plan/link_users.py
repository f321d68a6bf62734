# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Ports that are not rails and use the PCIe links of rails, such as a NIC for storage, from the facts of hosts."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from typing import Any

from ..._common.fold import fold
from .capabilities import bridges_avoided
from .hosts import Host
from .link_rates import pcie_link, pcie_rate
from .rails import RailMap
from .uplinks import card

Port = Mapping[str, Any]
# The port beside, and the rails whose link cannot carry its traffic too, with that link.
_Beside = tuple[str, tuple[str, ...], str]


def told(hosts: Sequence[Host], rails: RailMap, gpus: Mapping[str, Mapping[str, Mapping[str, str]]]) -> Iterator[str]:
    """Yield what the plan warns of: for each port beside rails the hosts that have it on a link with one.

    ``gpus``: those whose memory tests use; the links that such tests do not cross are left out.
    """
    found: dict[_Beside, list[str]] = {}
    for host in hosts:
        if host.limited and host.name in rails.ports:
            for beside in _besides(host, rails, gpus):
                found.setdefault(beside, []).append(host.name)
    for (title, names, link), own in found.items():
        one = len(names) == 1
        yield (
            f"{fold(own)}: {title} is not a rail, and uses the {link} link of {' and '.join(names)}, which cannot carry"
            f" {'both' if one else 'all of them'} at the same time. Its traffic during the measurement lowers the"
            f" results of {'this rail' if one else 'these rails'}. Measure while it is idle"
        )


def _besides(host: Host, rails: RailMap, gpus: Mapping[str, Mapping[str, Mapping[str, str]]]) -> Iterator[_Beside]:
    own = rails.ports[host.name]
    used = {port["pci"] for port in own if port}
    bonds = {port["netdev"] for port in own if port and port["netdev"]}
    for other in host.ports:
        rate = other["speed"] or (other["max_speed"] if other["carrier"] else None)
        if other["pci"] in used or other["carrier"] is False or not rate or other["master"] in bonds:
            continue
        near = {*other["path"], card(other)}
        if not any(port and _ways(port, near) for port in own):
            continue
        avoided = bridges_avoided(host, rails, gpus)
        hit = {
            name: link
            for name, port, skipped in zip(rails.names, own, avoided)
            if port and (link := _narrowest(port, _ways(port, near), skipped, rate=rate))
        }
        if hit:
            yield _title(other, rate), tuple(hit), list(hit.values())[0]


def _ways(port: Port, near: Collection[str]) -> list[Mapping[str, Any]]:
    """Return the PCIe links of a port at the bridges and the card of another one (``near``)."""
    found = [link for link in port.get("uplinks", ()) if link["pci"] in near]
    own = card(port)
    return [*found, {**port["pcie"], "pci": own}] if own in near else found


def _narrowest(port: Port, chain: Sequence[Mapping[str, Any]], skipped: Collection[str], *, rate: float) -> str:
    """Return the narrowest link of a chain that cannot carry the rates of both ports, "" without one."""
    payload = port["pcie"].get("max_payload")
    wanted = rate + (port["speed"] or port["max_speed"] or 0)
    links = [
        (pcie_rate(link["speed"], link["width"], payload), pcie_link(link["speed"], link["width"]))
        for link in chain
        if link["speed"] and link["width"] and link["pci"] not in skipped
    ]
    narrow = min(links, default=(wanted, ""))
    return narrow[1] if narrow[0] < wanted else ""


def _title(port: Port, rate: float) -> str:
    name = f"{port['netdev']} ({port['pci']})" if port["netdev"] else str(port["pci"])
    return f"port {name} of {rate:g} Gb/s"
