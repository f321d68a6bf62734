# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Ports that single hosts lack although the other hosts of their kind have them (``absent_hosts: report``).

A missing port is known by the PCI address that it should have, so that all other ports keep their rails. It is accepted
only where no other port of the host can be this rail, and where fewer than half of the hosts lack it.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from ..._common.errors import InputError
from ..._common.fold import fold
from ..._common.reader import some
from ..intent.intent import Intent
from .hosts import Host
from .select import Port, ServerClass

REPORT = "report"
# What identifies a card: its place and its model.
_Card = tuple[str, str, str]


@dataclass(frozen=True)
class Found:
    """The ports of a host in the order of the rails (None: missing), and why some cannot be rails.

    ``missing``: rail -> the PCI addresses that its port may have, empty when none is known.
    """

    ports: tuple[Port | None, ...]
    missing: Mapping[str, tuple[str, ...]]
    why: list[str] = field(default_factory=list)


def alive(intent: Intent, hosts: Sequence[Host]) -> Sequence[Host]:
    """Return the hosts without the ports that have no driver although most hosts have one for the same port."""
    if intent.absent_hosts != REPORT:
        return hosts
    all_, driven = Counter[_Card](), Counter[_Card]()
    for host in hosts:
        all_.update(map(_card, host.ports))
        driven.update(_card(port) for port in host.ports if not _is_dead(port))
    common = {card for card, count in driven.items() if 2 * count > all_[card]}
    return [_without(host, [port for port in host.ports if _is_dead(port) and _card(port) in common]) for host in hosts]


def _is_dead(port: Port) -> bool:
    return port["driver"] is None and port["netdev"] is None


def _without(host: Host, dead: Sequence[Port]) -> Host:
    if not host.facts or not dead:
        return host
    gone = {port["pci"]: port for port in dead}
    ports = [port for port in host.ports if port["pci"] not in gone]
    return replace(host, facts={**host.facts, "ports": ports, "dead_ports": gone})


def recorded(host: Host, rail: str, pcis: Sequence[str]) -> list[str]:
    """Return the addresses that a rail without a port had when its port was there, as far as the host recorded them."""
    facts = host.facts or {}
    dead = facts.get("dead_ports", {})
    found = list(facts.get("lost_addresses", {}).get(rail, ()))
    for pci in pcis:
        found += (dead.get(pci, {}).get("configured") or {}).get("addresses", ())
    return found


def _card(port: Mapping[str, Any]) -> _Card:
    return (port["pci"], port["vendor"], port["device"])


def _cards(own: ServerClass) -> frozenset[_Card]:
    return frozenset(map(_card, own.hosts[0].ports))


def complete(classes: Sequence[ServerClass], strict: Collection[str]) -> dict[str, ServerClass]:
    """Return the titles of classes that lack ports -> the class of which they are, which has all of them.

    More hosts must have all ports than lack some. A class that could be of several kinds is left out, and
    an InputError if its title is among ``strict``.
    """
    cards = {own.title: _cards(own) for own in classes}
    lacking: dict[str, list[ServerClass]] = {}
    for few in classes:
        above = [own for own in classes if cards[few.title] < cards[own.title] and _lacks_rails(few, own)]
        largest = [own for own in above if not any(cards[own.title] < cards[other.title] for other in above)]
        if largest:
            lacking[few.title] = largest
    doubtful = [few for few, kinds in lacking.items() if len({own.candidates for own in kinds}) > 1]
    told = [f"{few}, which could be as {' or as '.join(own.title for own in lacking[few])}" for few in doubtful]
    if any(few in strict for few in doubtful):
        raise InputError(
            f"rails cannot be chosen automatically, since ports are missing on {some(told)}. Repair the host, or set"
            " rdma_fabric.rail_count, and rdma_host.rails with all rails of the host and the PCI addresses that their"
            " ports have when they are present"
        )
    found = {few: kinds[0] for few, kinds in lacking.items() if few not in doubtful}
    sizes = Counter[str]()
    for own in classes:
        if own.title in found:
            sizes[found[own.title].title] += len(own.hosts)
    return {few: whole for few, whole in found.items() if sizes[whole.title] < len(whole.hosts)}


def _lacks_rails(few: ServerClass, whole: ServerClass) -> bool:
    """Return whether a class is another one without some of the ports of its rails, and chooses the same otherwise."""
    there = {port["pci"] for port in few.hosts[0].ports}
    rest = tuple(pci for pci in whole.candidates if pci in there)
    return few.candidates == rest != whole.candidates


def refusals(found: Mapping[str, Found], classes: Sequence[ServerClass], *, accepted: bool) -> dict[str, list[str]]:
    """Return host -> what is wrong with the rails that have no port there, without hosts of which it is ``accepted``.

    ``found``: of all hosts with facts.
    """
    lacking = Counter(rail for own in found.values() for rail in own.missing)
    ordinary = {
        card for own in classes if not any(found[host.name].missing for host in own.hosts) for card in _cards(own)
    }
    problems: dict[str, list[str]] = {}
    for own in classes:
        for host in own.hosts:
            missing = found[host.name].missing
            spare = list(_spare(host, own, found[host.name], ordinary=ordinary)) if missing else []
            for rail, pcis in missing.items():
                text = f"{rail}: no port {' or '.join(pcis)}" if pcis else f"0 ports match for {rail}"
                if not accepted:
                    problems.setdefault(host.name, []).append(text)
                elif 2 * lacking[rail] >= len(found):
                    told = f"{text} (also on {lacking[rail] - 1} other hosts)" if lacking[rail] > 1 else text
                    problems.setdefault(host.name, []).append(told)
                elif spare:
                    problems.setdefault(host.name, []).append(f"{text}, but {some(spare)} could be this port")
    return problems


def _spare(host: Host, own: ServerClass, found: Found, *, ordinary: frozenset[_Card] | set[_Card]) -> Iterator[str]:
    """Yield the ports of a host that could be rails, and that complete hosts do not have."""
    used = {port["pci"] for port in found.ports if port}
    for port in host.ports:
        if port["pci"] in own.candidates and port["pci"] not in used and _card(port) not in ordinary:
            yield port["pci"]


def reason(host: Host, pcis: Sequence[str]) -> str:
    """Return why a rail of a host has no port."""
    dead = [pci for pci in pcis if pci in (host.facts or {}).get("dead_ports", ())]
    if dead:
        return f"its port {' or '.join(dead)} has no driver"
    return f"it has no port {' or '.join(pcis)}" if pcis else "it has no port left that matches rdma_fabric.select"


def of_host(
    host: Host, missing: Mapping[str, Sequence[str]], resource: Callable[[str], str]
) -> dict[str, dict[str, dict[str, str]]]:
    """Return ``missing`` of a host of the plan: rail -> {reason, resource: which its node does not offer}.

    Nothing where it has all ports.
    """
    found = {rail: {"reason": reason(host, pcis), "resource": resource(rail)} for rail, pcis in missing.items()}
    return {"missing": found} if found else {}


def warnings(hosts: Sequence[Host], missing: Mapping[str, Mapping[str, Sequence[str]]]) -> Iterator[str]:
    """Yield the rails of hosts that have no port, once for all hosts alike. ``missing``: host -> rail -> addresses."""
    alike: dict[tuple[str, str], list[str]] = {}
    for host in hosts:
        for rail, pcis in missing.get(host.name, {}).items():
            alike.setdefault((rail, reason(host, pcis)), []).append(host.name)
    for (rail, why), names in alike.items():
        yield f"{fold(names)} {rail}: {why}. It is reported as no_data, and all other rails are planned"
