# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Which ports can be rails by themselves: judged per class of identical servers, never per host."""

from __future__ import annotations

import ipaddress
import re
from collections import Counter
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Union

from ..._common.fold import fold, fold_addresses
from ..._common.host_facts import HIDDEN_QUEUE_PAIRS, Use, is_job
from ..._common.reader import MOST, and_more
from ..intent.intent import Intent, Select
from ..operator.profiles import registry
from .hosts import Host

Port = Mapping[str, Any]
Network = Union[ipaddress.IPv4Network, ipaddress.IPv6Network]

_NETWORK = re.compile(r"[0-9a-f:.]+/\d+")


@dataclass(frozen=True)
class ServerClass:
    """Servers with the same network cards at the same PCI addresses.

    ``candidates`` are the PCI addresses of the ports that can be rails, in order; ``left_out`` maps the others to the
    reason. Ports that ``rdma_fabric.rails`` lists are in neither. ``problems``: why no automatic choice is possible.
    ``used``: the ports that are left out only because of what they carry; ``cards``: all that could carry rails.
    ``configured``: whether a host has rails of this collection already.
    """

    hosts: tuple[Host, ...]
    candidates: tuple[str, ...]
    left_out: Mapping[str, str]
    problems: tuple[str, ...]
    used: tuple[str, ...]
    cards: tuple[str, ...]
    configured: bool

    @property
    def title(self) -> str:
        """The names of its hosts, folded."""
        return fold([host.name for host in self.hosts])


def management(port: Port) -> str:
    """Return why a port is never a rail, whoever chooses it (it carries something else), or empty text."""
    if port["duty"] or not port["master"]:
        return str(port["duty"])
    return f"is a member of {port['master']}"


def recorded_rail(port: Port) -> str:
    """Return the rail that this collection made of a port, empty text when it made none."""
    return port["configured"]["rail"] if port["configured"] else ""


def server_classes(intent: Intent, hosts: Iterable[Host]) -> list[ServerClass]:
    """Return the classes of the hosts that have facts, in the order of their first hosts."""
    members: dict[tuple[Any, ...], list[Host]] = {}
    for host in hosts:
        if host.facts:
            key = tuple((port["pci"], port["vendor"], port["device"]) for port in host.ports)
            members.setdefault(key, []).append(host)
    return [_judge(intent, own) for own in members.values()]


def ports_at(hosts: Iterable[Host], pci: str) -> dict[str, Port]:
    """Return host name -> its port at a PCI address."""
    return {host.name: port for host in hosts for port in host.ports if port["pci"] == pci}


def supported_rate(ports: Iterable[Port]) -> float | None:
    """Return what identical ports can do, in Gb/s; None when no driver reports it. Their present speed never counts."""
    return max((port["max_speed"] for port in ports if port["max_speed"] is not None), default=None)


def shared(values: Mapping[str, str]) -> str:
    """Return one text for what differs from host to host: all values, each with its hosts unless it is the only one."""
    by_value: dict[str, list[str]] = {}
    for host, value in values.items():
        by_value.setdefault(value, []).append(host)
    if len(by_value) == 1:
        return next(iter(by_value))
    shown = [f"{value} on {fold(own)}" for value, own in list(by_value.items())[:MOST]]
    return ", ".join(shown) + and_more(list(by_value))


def _judge(intent: Intent, hosts: Sequence[Host]) -> ServerClass:
    ports = {port["pci"]: ports_at(hosts, port["pci"]) for port in hosts[0].ports}
    listed = {pci for rail in intent.rails for pci in rail.pci}
    unfit = {pci: reason for pci, own in ports.items() if (reason := _never(intent.select, own))}
    cards = [pci for pci, own in ports.items() if pci not in unfit and not any(map(management, own.values()))]
    kept = _kept(hosts, ports)
    found = {pci: _uses(intent, hosts, own) for pci, own in ports.items() if pci not in unfit and pci not in listed}
    used = {pci: together(uses) for pci, uses in found.items() if uses and all(uses.values())}
    left_out = {**unfit, **_not_asked_for(intent, found, kept), **used}
    rest = {pci: ports[pci] for pci in found if pci not in left_out}
    slower, usual, problems = _by_rate(intent.select, rest)
    partly = [_some_only(pci, ports[pci], found[pci]) for pci in rest if pci not in slower and any(found[pci].values())]
    only_used = (pci for pci in used if usual in (None, supported_rate(ports[pci].values()) or usual))
    return ServerClass(
        hosts=tuple(hosts),
        candidates=tuple(pci for pci in rest if pci not in slower),
        left_out={**left_out, **slower},
        problems=(*partly, *problems),
        used=tuple(only_used),
        cards=tuple(cards),
        configured=bool(kept),
    )


def _kept(hosts: Iterable[Host], ports: Mapping[str, Mapping[str, Port]]) -> list[str]:
    """Return the ports that are rails of a host already, without those that ``rdma_host.rails`` gives to it."""
    return [
        pci
        for pci, own in ports.items()
        if any(recorded_rail(own[host.name]) and pci not in host.rails.values() for host in hosts)
    ]


def _not_asked_for(intent: Intent, ports: Collection[str], kept: Sequence[str]) -> dict[str, str]:
    """Return why ports are no rails that carry nothing now, while others are rails already: nobody asks for more."""
    asked = (intent.rail_count or 0) - sum(1 for rail in intent.rails if rail.pci or rail.bond)
    others = [pci for pci in ports if pci not in kept]
    known = [pci for pci in ports if pci in kept]
    if not known or asked > len(known):
        return {}
    return dict.fromkeys(others, "is not a rail yet, and rdma_fabric.rail_count allows no more")


def _never(select: Select, ports: Mapping[str, Port]) -> str:
    """Return why a port does not fit ``rdma_fabric.select``, by what is the same on all hosts of a class."""
    port = next(iter(ports.values()))
    drivers = sorted({one["driver"] for one in ports.values() if one["driver"]})
    rate = supported_rate(ports.values())
    if select.vendors and port["vendor"] not in select.vendors:
        return f"vendor {port['vendor']} is not in rdma_fabric.select.vendors"
    if select.drivers and not set(drivers) & set(select.drivers):
        return f"driver {', '.join(drivers) or 'none'} is not in rdma_fabric.select.drivers"
    if rate is not None and rate < select.min_speed:
        return f"it supports {rate:g} Gb/s, less than rdma_fabric.select.min_speed"
    return ""


def _uses(intent: Intent, hosts: Iterable[Host], ports: Mapping[str, Port]) -> dict[str, list[str]]:
    """Return host name -> what its port carries, without the hosts whose ``rdma_host.rails`` has the port."""
    return {
        host.name: _carried(intent, ports[host.name])
        for host in hosts
        if ports[host.name]["pci"] not in host.rails.values()
    }


def _carried(intent: Intent, port: Port) -> list[str]:
    refused = registry.get(intent.profile).refuses(port)
    if refused:
        return [refused]
    if intent.select.drivers and port["driver"] and port["driver"] not in intent.select.drivers:
        return [f"has driver {port['driver']}, which is not in rdma_fabric.select.drivers"]
    return foreign_uses(port, intent.rail_networks) if not recorded_rail(port) or _lost_address(port) else []


def _lost_address(port: Port) -> bool:
    """Return whether a rail's port has none of the addresses any more that were set there."""
    own = port["configured"]["addresses"]
    return bool(own) and not set(own) & set(port["addresses"])


def foreign_uses(port: Port, networks: Sequence[Network]) -> list[str]:
    """Return what a port carries beside this fabric, each as a verb and its object.

    What has an address inside the ``networks`` of rails is the fabric's own. TCP connections and queue pairs of a rail
    that this collection configured are jobs; on another port all count but the queue pairs of programs.
    """
    found = [management(port)] if management(port) else []
    found += [f"has address {address}" for address in port["addresses"] if not inside(address, *networks)]
    known = {f"address {address}" for address in port["addresses"]}
    others = ("mount", "bridge", "vlan", "bond", "unknown", *(() if recorded_rail(port) else ("tcp", "queue_pairs")))
    for use in port["uses"]:
        kind, text = use["kind"], use["text"]
        if text == HIDDEN_QUEUE_PAIRS.text or is_job(Use(kind, text)):
            continue
        if kind == "route" and not _own_routes(text, networks):
            found.append(f"has {text}")
        elif kind in others or (kind == "address" and text not in known):
            found.append(f"carries {text}")
    return found


def inside(address: str, *networks: Network) -> bool:
    """Return whether an address lies in one of the networks."""
    own = ipaddress.ip_interface(address)
    return any(own.version == network.version and own.ip in network for network in networks)


def _own_routes(text: str, own: Sequence[Network]) -> bool:
    """Return whether all routes of a use lead to rails; one that the text does not name may lead anywhere."""
    try:
        networks = [ipaddress.ip_network(found) for found in _NETWORK.findall(text)]
    except ValueError:
        return False
    count = int(first) if (first := text.partition(" ")[0]).isdecimal() else 1
    return len(networks) == count and all(any(_within(net, rail) for rail in own) for net in networks)


def _within(network: Network, other: Network) -> bool:
    return network.version == other.version and network.subnet_of(other)  # type: ignore[arg-type]


def together(found: Mapping[str, Sequence[str]]) -> str:
    """Return the uses of a port on all hosts of its class as one text; addresses differ from host to host."""
    texts = list(dict.fromkeys(text for uses in found.values() for text in uses))
    addresses = [text[len("has address ") :] for text in texts if text.startswith("has address ")]
    others = [text for text in texts if not text.startswith("has address ")]
    folded = [f"has address {fold_addresses(addresses)}"] if addresses else []
    return ", ".join([*folded, *others[:MOST]]) + and_more(others)


def _some_only(pci: str, ports: Mapping[str, Port], found: Mapping[str, Sequence[str]]) -> str:
    used = {host: uses for host, uses in found.items() if uses}
    free = [host for host in found if host not in used]
    return f"{_title(pci, ports)} {together(used)} on {fold(list(used))}, but not on {fold(free)}"


def _title(pci: str, ports: Mapping[str, Port]) -> str:
    names = {port["netdev"] for port in ports.values()}
    return f"{pci} ({names.pop() or 'no network device'})" if len(names) == 1 else pci


def _by_rate(select: Select, ports: Mapping[str, Mapping[str, Port]]) -> tuple[dict[str, str], float | None, list[str]]:
    """Return which ports are left out because the rails support another rate, that rate, and why none can be chosen.

    A port that is a rail already stays one.
    """
    rates = {pci: supported_rate(own.values()) for pci, own in ports.items()}
    kept = {pci for pci, own in ports.items() if any(port["configured"] for port in own.values())}
    known = {pci: rate for pci, rate in rates.items() if rate is not None}
    unknown = [pci for pci in rates if pci not in known and pci not in kept]
    if unknown and (known or select.min_speed or not _alike(ports)):
        return {}, None, [_unreadable(unknown, ports)]
    if not set(known) - kept:
        return {}, None, []
    counts = Counter(known.values())
    usual = max(counts, key=lambda rate: (counts[rate], rate))
    if usual != max(counts):
        told = ", ".join(f"{counts[rate]} support {rate:g} Gb/s" for rate in sorted(counts, reverse=True))
        return {}, None, [f"of the ports that can be rails {told}; set rdma_fabric.select.min_speed"]
    others = {pci: rate for pci, rate in known.items() if rate != usual and pci not in kept}
    reason = "it supports {:g} Gb/s, the rails support {:g} Gb/s"
    return {pci: reason.format(rate, usual) for pci, rate in others.items()}, usual, []


def _alike(ports: Mapping[str, Mapping[str, Port]]) -> bool:
    return len({(port["vendor"], port["device"]) for own in ports.values() for port in own.values()}) < 2


def _unreadable(pcis: Sequence[str], ports: Mapping[str, Mapping[str, Port]]) -> str:
    titles = ", ".join(_title(pci, ports[pci]) for pci in pcis)
    return (
        f"the driver does not report which rates {titles} can support, so the port cannot be compared with the others "
        "(the current speed of a link is not evidence)"
    )
