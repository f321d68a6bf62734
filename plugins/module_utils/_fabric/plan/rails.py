# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Finding the rails: the same port on every host, by the user's PCI addresses or in PCI order."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import zip_longest

from ..._common.errors import InputError
from ..._common.fold import fold, fold_addresses
from ..._common.pci import NIC_VENDOR
from ..._common.reader import MOST, and_more, some
from ..intent.intent import Intent
from ..operator.profiles import registry
from ..operator.profiles.profile import Profile
from .doubt import CHOOSE, check_classes, check_kept, check_lost_cards, folded
from .hosts import Host
from .missing import REPORT, Found, complete, refusals
from .select import Network, Port, ServerClass, inside, management, ports_at, server_classes, supported_rate

_HINT = ". To report ports that single hosts lack as no_data, set rdma_fabric.absent_hosts: report"


@dataclass(frozen=True)
class RailMap:
    """``names`` in order; ``ports``: host name -> its ports in that order (hosts with facts only), None where missing.

    ``missing``: host -> rail without a port there -> the PCI addresses that it may have.
    """

    names: tuple[str, ...]
    ports: Mapping[str, tuple[Port | None, ...]]
    classes: tuple[ServerClass, ...] = ()
    missing: Mapping[str, Mapping[str, tuple[str, ...]]] = field(default_factory=dict)

    def of(self, host: str) -> list[tuple[str, Port]]:
        """Return the rails of a host and their ports, without those that are missing."""
        return [(name, port) for name, port in zip(self.names, self.ports.get(host, ())) if port]

    def present(self, host: str) -> list[Port]:
        """Return the ports of a host that are not missing."""
        return [port for _name, port in self.of(host)]

    def slots(self, host: str) -> list[tuple[int, Port | None]]:
        """Return index and port of the rails of a host, without those that are missing; None where nothing is known."""
        if host not in self.ports:
            return [(index, None) for index in range(len(self.names))]
        return [(index, port) for index, port in enumerate(self.ports[host]) if port]

    def at(self, index: int) -> dict[str, Port]:
        """Return host -> port of a rail, without hosts that lack it."""
        return {host: port for host, own in self.ports.items() if (port := own[index])}


def find_rails(intent: Intent, hosts: Sequence[Host]) -> RailMap:
    """Return the rails of all hosts that have facts.

    Rails that match no port on some hosts are one InputError that lists those hosts and what they have, unless missing
    ports are to be reported and are no more than single faults (missing.py).
    """
    classes = server_classes(intent, hosts)
    accepted = intent.absent_hosts == REPORT
    automatic = [own for own in classes if _chooses(intent, own)]
    known = complete(classes, [own.title for own in automatic] if accepted else ())
    lacking = known if accepted else {}
    whole = [own for own in automatic if own.title not in lacking]
    check_classes(intent, automatic, [host for host in hosts if not host.facts])
    names = _names(intent, [own for own in classes if own.title not in lacking], whole, lacking=known)
    check_lost_cards(whole)
    found = _every(intent, classes, names, lacking=lacking)
    problems = _problems(found, classes, accepted=accepted)
    if problems:
        others = not accepted and _problems(_every(intent, classes, names, lacking=known), classes, accepted=True)
        raise InputError(
            f"not every rail has a port on every host. {folded(problems)}. List the ports in "
            f"rdma_fabric.rails[].pci or rdma_host.rails, or change rdma_fabric.select{_HINT if others == {} else ''}"
        )
    ports = {host.name: found[host.name].ports for host in hosts if host.facts}
    gone = {name: found[name].missing for name in ports if found[name].missing}
    check_kept(intent, automatic, names, ports=ports, missing=gone)
    return RailMap(names, ports, tuple(classes), gone)


def _every(
    intent: Intent, classes: Sequence[ServerClass], names: Sequence[str], *, lacking: Mapping[str, ServerClass]
) -> dict[str, Found]:
    """Return host -> its ports; ``lacking``: title of a class without some ports -> the class that has all of them."""
    return {
        host.name: _host_rails(intent, host, names, candidates=lacking.get(own.title, own).candidates)
        for own in classes
        for host in own.hosts
    }


def _problems(found: Mapping[str, Found], classes: Sequence[ServerClass], *, accepted: bool) -> dict[str, list[str]]:
    """Return what is wrong with the rails of hosts -> these hosts; missing ports are ``accepted`` as single faults."""
    missing = refusals(found, classes, accepted=accepted)
    problems: dict[str, list[str]] = {}
    for own in classes:
        for host in own.hosts:
            why = [*missing.get(host.name, ()), *found[host.name].why]
            if why:
                problems.setdefault(f"{', '.join(why)} (it has {_inventory(own)})", []).append(host.name)
    return problems


def _chooses(intent: Intent, own: ServerClass) -> bool:
    """Return whether the user left the choice of some port of a class to the plan."""
    if intent.rails:
        named = {rail.name for rail in intent.rails if rail.pci}
        return any(rail.name not in named | set(host.rails) for host in own.hosts for rail in intent.rails)
    return intent.rail_count is None or any(len(host.rails) < intent.rail_count for host in own.hosts)


def _names(
    intent: Intent,
    classes: Sequence[ServerClass],
    automatic: Sequence[ServerClass],
    *,
    lacking: Collection[str],
) -> tuple[str, ...]:
    """Return the names of the rails; ``lacking``: titles of classes that lack ports which others have."""
    if intent.rails:
        return tuple(rail.name for rail in intent.rails)
    counts = [len(own.candidates) for own in classes]
    count = intent.rail_count
    if count is None:
        if len(set(counts)) > 1:
            single = len({len(own.candidates) for own in classes if own.title not in lacking}) == 1
            raise InputError(_disagreement(classes) + (_HINT if single else ""))
        count = counts[0]
    more = [own for own in automatic if len(own.candidates) > count]
    if more:
        raise InputError(
            f"rdma_fabric.rail_count is {count}, but more ports than that match rdma_fabric.select: "
            f"{_inventories(more)}. Narrow the selection, or list PCI addresses in rdma_fabric.rails"
        )
    if count == 0:
        vendors = ", ".join(intent.select.vendors) or "any"
        raise InputError(
            f"no port can be a rail (rdma_fabric.select: vendors {vendors}): {_inventories(classes)}. Change "
            f"rdma_fabric.select, or list PCI addresses in rdma_fabric.rails{_other_type(intent, classes)}"
        )
    # Rails of classes need names of their own.
    prefix = f"{intent.class_name}-" if intent.class_name else ""
    return tuple(f"{prefix}rail{index}" for index in range(count))


def _other_type(intent: Intent, classes: Sequence[ServerClass]) -> str:
    """Return what to do where ports could carry the network model as InfiniBand or as Ethernet; empty text for none."""
    layer = registry.get(intent.profile).link_layer
    found = any(
        port["vendor"] == NIC_VENDOR and port["link_layer"] != layer for own in classes for port in own.hosts[0].ports
    )
    return ". To change the type of NVIDIA ports, see docs/roles/nic_firmware.md (LINK_TYPE)" if found else ""


def _disagreement(classes: Sequence[ServerClass]) -> str:
    sizes: Counter[int] = Counter()
    for own in classes:
        sizes[len(own.candidates)] += len(own.hosts)
    usual = sizes.most_common(1)[0][0]
    others = [own for own in classes if len(own.candidates) != usual]
    differ = "; ".join(f"{len(own.candidates)} on {own.title} ({_inventory(own)})" for own in others[:MOST])
    return (
        f"hosts do not agree on the number of rails: {usual} on {sizes[usual]} of {sum(sizes.values())} hosts, but "
        f"{differ}{and_more(others)}. Set rdma_fabric.rail_count, list PCI addresses in rdma_fabric.rails, or change "
        "rdma_fabric.select"
    )


def _host_rails(intent: Intent, host: Host, names: Sequence[str], *, candidates: Sequence[str]) -> Found:
    """Return the host's ports in rail order, which are missing, and why others cannot be rails."""
    by_pci = {port["pci"]: port for port in host.ports}
    listed = {rail.name: rail.pci for rail in intent.rails}
    chosen: dict[str, Port] = {}
    missing: dict[str, tuple[str, ...]] = {}
    why = [f'rdma_host.rails names "{name}", which is not a rail' for name in host.rails if name not in names]
    for name in names:
        wanted = (host.rails[name],) if name in host.rails else listed.get(name, ())
        port = next((by_pci[pci] for pci in wanted if pci in by_pci), None)
        if port is None and wanted:
            missing[name] = tuple(wanted)
        elif port is not None:
            chosen[name] = port
    free = [name for name in names if name not in host.rails and not listed.get(name)]
    used = {port["pci"] for port in chosen.values()} | {pci for pcis in missing.values() for pci in pcis}
    rest = [pci for pci in candidates if pci not in used]
    if free and rest and len(rest) != len(free):
        why.append(f"{len(rest)} ports match for {', '.join(free)}")
    for name, pci in zip_longest(free, rest[: len(free)]):
        if pci in by_pci:
            chosen[name] = by_pci[pci]
        elif not rest or pci:
            missing[name] = (pci,) if pci else ()
    profile = registry.get(intent.profile)
    unfit = [text for name, port in chosen.items() for text in _unfit(name, port, profile)]
    return Found(tuple(map(chosen.get, names)), missing, [*why, *unfit, *_twice(chosen)])


def _unfit(name: str, port: Port, profile: Profile) -> list[str]:
    refused = profile.refuses(port)
    reason = f"{refused}, which cannot carry {profile.name}" if refused else management(port)
    return [f"{name}: {port['pci']} {reason}"] if reason else []


def _twice(chosen: Mapping[str, Port]) -> list[str]:
    counts = Counter(port["pci"] for port in chosen.values())
    return [f"{pci} is given to more than one rail" for pci, count in counts.items() if count > 1]


def _inventory(own: ServerClass) -> str:
    """Return what the hosts of a class have, short: address, netdev, vendor, rate and why a port is not a rail."""
    texts = []
    for port in own.hosts[0].ports:
        rate = supported_rate(ports_at(own.hosts, port["pci"]).values())
        parts = [port["pci"], port.get("netdev") or "no netdev", "vendor " + port["vendor"]]
        parts += [f"{rate:g} Gb/s"] if rate is not None else []
        reason = own.left_out.get(port["pci"])
        texts.append(" ".join(parts) + (f": {reason}" if reason else ""))
    return "; ".join(texts) or "no network port"


def netdev_names(intent: Intent, rails: RailMap) -> tuple[str, ...]:
    """Return the name that each rail's interface has on every host once the hosts are prepared.

    Raise one InputError when the names cannot be equal on all hosts.
    """
    if intent.rename:
        return tuple(intent.bonds.get(name, name) for name in rails.names)
    problems = []
    names: list[str] = []
    for index, rail in enumerate(rails.names):
        current: dict[str | None, list[str]] = {}
        for host, port in rails.at(index).items():
            current.setdefault(port["netdev"], []).append(host)
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
        own = {port["pci"] for _rail, port in rails.of(host.name)}
        for port in host.ports:
            if port["netdev"] in names and port["pci"] not in own:
                problems.append(f"{host.name} has {port['netdev']} at {port['pci']}")
    if problems:
        raise InputError(
            f"names of rails are taken by other interfaces, so they cannot be equal on all hosts: {some(problems)}. "
            "Name the rails otherwise in rdma_fabric.rails"
        )


def check_subnets(
    intent: Intent, hosts: Iterable[Host], rails: RailMap, *, subnets: Sequence[Sequence[Network]]
) -> None:
    """Refuse a port chosen automatically that has an address inside the supernet, but of no use to its rail.

    ``subnets``: those of each rail.
    """
    listed = {rail.name for rail in intent.rails if rail.pci}
    problems: dict[str, list[str]] = {}
    for host in hosts:
        for name, port, own in zip(rails.names, rails.ports.get(host.name, ()), subnets):
            if port is None or port["configured"] or name in listed or name in host.rails:
                continue
            for address in port["addresses"]:
                if inside(address, *intent.rail_networks) and not inside(address, *own):
                    told = " and ".join(map(str, own))
                    problems.setdefault(f"{name} ({port['pci']}, subnet {told})", []).append(address)
    if problems:
        texts = [f"{rail} has address {fold_addresses(addresses)}" for rail, addresses in problems.items()]
        raise InputError(
            f"ports with addresses inside rdma_fabric.supernet, but outside the subnets of their rails: {some(texts)}. "
            f"If these ports are rails, {CHOOSE}; otherwise use another rdma_fabric.supernet"
        )


def _on(name: str | None, hosts: Sequence[str]) -> str:
    return f"{name or 'without a netdev (no driver)'} on {fold(hosts)}"


def _inventories(classes: Sequence[ServerClass]) -> str:
    return "; ".join(f"{own.title} has {_inventory(own)}" for own in classes[:MOST]) + and_more(classes)
