# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Finding the rails: the same port on every host, by the user's PCI addresses or in PCI order."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from .._core.errors import InputError
from .fields import MOST, and_more, some
from .hosts import Host
from .intent import Intent, Select

Port = Mapping[str, Any]


@dataclass(frozen=True)
class RailMap:
    """``names`` in order; ``ports``: host name -> its ports in that order (hosts with facts only)."""

    names: tuple[str, ...]
    ports: Mapping[str, tuple[Port, ...]]


def find_rails(intent: Intent, hosts: Sequence[Host]) -> RailMap:
    """Return the rails of all hosts that have facts.

    A rail that matches no port on some host is one InputError that lists those hosts and what they have.
    """
    known = [host for host in hosts if host.facts]
    names = _names(intent, known)
    ports: dict[str, tuple[Port, ...]] = {}
    problems: list[str] = []
    for host in known:
        found, why = _host_rails(intent, host, names)
        ports[host.name] = found
        if why:
            problems.append(f"{host.name}: {', '.join(why)} (it has {_inventory(host)})")
    if problems:
        raise InputError(
            f"not every rail has a port on every host. {'; '.join(problems)}. List the ports in "
            "rdma_fabric.rails[].pci or rdma_host.rails, or change rdma_fabric.select"
        )
    return RailMap(names, ports)


def management(port: Port) -> str:
    """Return why a port is never a rail (it carries something else), or empty text."""
    if port["duty"] or not port["master"]:
        return str(port["duty"])
    return f"is a member of {port['master']}"


def _names(intent: Intent, hosts: Sequence[Host]) -> tuple[str, ...]:
    if intent.rails:
        return tuple(rail.name for rail in intent.rails)
    counts = {host.name: len(_candidates(intent.select, host)) for host in hosts}
    count = intent.rail_count
    if count is None:
        if len(set(counts.values())) > 1:
            raise InputError(_disagreement(counts, hosts))
        count = next(iter(counts.values()))
    more = [host for host in hosts if counts[host.name] > count]
    if more:
        raise InputError(
            f"rdma_fabric.rail_count is {count}, but more ports than that match rdma_fabric.select: "
            f"{_inventories(more)}. Narrow the selection, or list PCI addresses in rdma_fabric.rails"
        )
    if count == 0:
        vendors = ", ".join(intent.select.vendors) or "any"
        raise InputError(
            f"no port can be a rail (rdma_fabric.select: vendors {vendors}): {_inventories(hosts)}. Change "
            "rdma_fabric.select, or list PCI addresses in rdma_fabric.rails"
        )
    return tuple(f"rail{index}" for index in range(count))


def _disagreement(counts: Mapping[str, int], hosts: Sequence[Host]) -> str:
    usual = Counter(counts.values()).most_common(1)[0][0]
    others = [host for host in hosts if counts[host.name] != usual]
    differ = "; ".join(f"{counts[host.name]} on {host.name} ({_inventory(host)})" for host in others[:MOST])
    return (
        f"hosts do not agree on the number of rails: {usual} on {len(hosts) - len(others)} of {len(hosts)} hosts, but "
        f"{differ}{and_more(others)}. Set rdma_fabric.rail_count, list PCI addresses in rdma_fabric.rails, or change "
        "rdma_fabric.select"
    )


def _candidates(select: Select, host: Host) -> list[Port]:
    """Return the ports that can be rails by themselves, in PCI order (the order of the facts)."""
    return [port for port in host.ports if _selected(select, port) and not management(port)]


def _selected(select: Select, port: Port) -> bool:
    # The one profile so far lays macvlan over rails, which the kernel refuses on InfiniBand.
    return (
        (not select.vendors or port["vendor"] in select.vendors)
        and (not select.drivers or port["driver"] in select.drivers)
        and (port["speed"] is None or port["speed"] >= select.min_speed)
        and port["link_layer"] != "infiniband"
    )


def _host_rails(intent: Intent, host: Host, names: Sequence[str]) -> tuple[tuple[Port, ...], list[str]]:
    """Return the host's ports in rail order and, when some are missing, why."""
    by_pci = {port["pci"]: port for port in host.ports}
    listed = {rail.name: rail.pci for rail in intent.rails}
    chosen: dict[str, Port] = {}
    why = [f'rdma_host.rails names "{name}", which is no rail' for name in host.rails if name not in names]
    for name in names:
        wanted = (host.rails[name],) if name in host.rails else listed.get(name, ())
        port = next((by_pci[pci] for pci in wanted if pci in by_pci), None)
        if port is None and wanted:
            why.append(f"{name}: no port {' or '.join(wanted)}")
        elif port is not None:
            why.extend(_unfit(name, port))
            chosen[name] = port
    rest = _rest(intent.select, host, names, listed, chosen)
    free = [name for name in names if name not in host.rails and not listed.get(name)]
    if len(rest) < len(free):
        why.append(f"{len(rest)} ports match for {', '.join(free)}")
    chosen.update(zip(free, rest))
    return tuple(chosen[name] for name in names if name in chosen), why + _twice(chosen)


def _rest(
    select: Select,
    host: Host,
    names: Sequence[str],
    listed: Mapping[str, tuple[str, ...]],
    chosen: Mapping[str, Port],
) -> list[Port]:
    """Return the candidates that no rail has by its PCI address."""
    if all(name in host.rails or listed.get(name) for name in names):
        return []
    used = {port["pci"] for port in chosen.values()}
    return [port for port in _candidates(select, host) if port["pci"] not in used]


def _unfit(name: str, port: Port) -> list[str]:
    reason = management(port)
    if port["link_layer"] == "infiniband":
        reason = "is an InfiniBand port, which cannot carry macvlan"
    return [f"{name}: {port['pci']} {reason}"] if reason else []


def _twice(chosen: Mapping[str, Port]) -> list[str]:
    counts = Counter(port["pci"] for port in chosen.values())
    return [f"{pci} is given to more than one rail" for pci, count in counts.items() if count > 1]


def _inventory(host: Host) -> str:
    """Return what a host has, short: address, netdev, vendor, speed and why it is no rail."""
    texts = []
    for port in host.ports:
        parts = [port["pci"], port.get("netdev") or "no netdev", "vendor " + port["vendor"]]
        parts += [f"{port['speed']:g} Gb/s"] if port["speed"] is not None else []
        parts += [port["link_layer"]] if port["link_layer"] == "infiniband" else []
        reason = management(port)
        texts.append(" ".join(parts) + (", " + reason if reason else ""))
    return "; ".join(texts) or "no network port"


def netdev_names(intent: Intent, rails: RailMap) -> tuple[str, ...]:
    """Return the name that each rail's interface has on every host once the hosts are prepared.

    Raise one InputError when the names cannot be equal on all hosts.
    """
    if intent.rename:
        return rails.names
    problems = []
    names: list[str] = []
    for index, rail in enumerate(rails.names):
        current: dict[str | None, list[str]] = {}
        for host, ports in rails.ports.items():
            current.setdefault(ports[index]["netdev"], []).append(host)
        if len(current) > 1 or None in current:
            problems.append(f"{rail} is {'; '.join(_on(name, hosts) for name, hosts in current.items())}")
        names.append(next(iter(current)) or "")
    if problems:
        raise InputError(
            f"names must be equal on all hosts when rdma_fabric.rename is false: {'; '.join(problems)}. Set "
            "rename: true"
        )
    return tuple(names)


def check_names_free(hosts: Iterable[Host], rails: RailMap, names: Sequence[str]) -> None:
    """Refuse names that another interface of a host (not one of its rails) already has."""
    problems = []
    for host in hosts:
        own = {port["pci"] for port in rails.ports.get(host.name, ())}
        for port in host.ports:
            if port["netdev"] in names and port["pci"] not in own:
                problems.append(f"{host.name} has {port['netdev']} at {port['pci']}")
    if problems:
        raise InputError(
            f"names of rails are taken by other interfaces, so they cannot be equal on all hosts: {some(problems)}. "
            "Name the rails otherwise in rdma_fabric.rails"
        )


def _on(name: str | None, hosts: Sequence[str]) -> str:
    return f"{name or 'without a netdev (no driver)'} on {some(hosts)}"


def _inventories(hosts: Sequence[Host]) -> str:
    return "; ".join(f"{host.name} has {_inventory(host)}" for host in hosts[:MOST]) + and_more(hosts)
