# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Groups of hosts for mode topology: named in the inventory, or taken from where the fabric is known already."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from ..._common.errors import InputError, ParseError
from ..._common.reader import nearest, some
from ..intent.host_groups import IBNETDISCOVER, KEY, Groups
from .hosts import Host
from .switch_ports import Switches
from .topology_file import parse_conf, parse_data

# Hosts of which nothing is known now, such as those that returned no facts.
UNKNOWN = "unknown"


@dataclass(frozen=True)
class Known:
    """What groups can be taken from.

    ``names``: host of the run -> the names that it goes by. ``labels``: host -> labels of its Node, for hosts that
    have one. ``facts``: hosts with facts. ``inventory``: group -> hosts. ``switches`` as in the plan. ``file``:
    the content of the topology file, text or what YAML or JSON make of it.
    """

    names: Mapping[str, Sequence[str]]
    labels: Mapping[str, Mapping[str, str]]
    facts: Collection[str]
    inventory: Mapping[str, Sequence[str]]
    switches: Switches
    file: Any = None

    def of(self, hosts: Collection[str], switches: Switches) -> Known:
        """Return what is known of some hosts, with the switches of their rails."""
        names = {host: own for host, own in self.names.items() if host in hosts}
        return replace(self, names=names, facts=[host for host in self.facts if host in hosts], switches=switches)


def known_of(
    hosts: Sequence[Host], nodes_of: Mapping[str, str | None], nodes: Sequence[Mapping[str, Any]]
) -> tuple[dict[str, list[str]], dict[str, Mapping[str, str]], list[str]]:
    """Return of the hosts of this run the names that they go by, the labels of their Nodes, and which gave facts."""
    run = [host for host in hosts if host.limited]
    labels = {node["name"]: node.get("labels", {}) for node in nodes}
    names = {}
    for host in run:
        goes_by = (host.name, (host.facts or {}).get("hostname"), nodes_of[host.name])
        names[host.name] = [name for name in dict.fromkeys(goes_by) if name]
    labelled = {host: labels[node] for host, node in nodes_of.items() if node in labels}
    return names, labelled, [host.name for host in run if host.facts]


def resolve(tests: Mapping[str, Any], known: Known) -> tuple[Groups, list[str]]:
    """Return group -> hosts of the run for the ``tests`` of the intent, and warnings.

    A host that returned no facts and is in no group joins the group UNKNOWN: its tests end as no_data. InputError names
    other hosts in none. Of switches it is no error, since a port without link is on none: such hosts are UNKNOWN too,
    and there are no groups at all when no port is on one, so that only measuring refuses.
    """
    source = tests["groups"]
    where = source.get("from") if isinstance(source.get("from"), str) else ""
    if tests["mode"] != "topology" and not tests.get("oversubscription"):
        return ({} if where else dict(source)), []
    if not where:
        return _complete(source, known, "name every host once"), []
    if where == "inventory_groups":
        return _by_inventory(source["names"], known), []
    if where == "node_label":
        return _by_label(source["label"], known), []
    if where == "file":
        return _by_file(source["path"], known), []
    if where == IBNETDISCOVER:
        remedy = f"record {source['path']} again with ibnetdiscover on a host of the fabric"
        return _by_switch(known, f"a node GUID of {source['path']}", remedy)
    return _by_switch(known, "an LLDP neighbour", "let lldpd run on the hosts, and LLDP on the switch ports")


def of_run(hosts: Sequence[str], groups: Mapping[str, Sequence[str]], remedy: str = "name every host once") -> Groups:
    """Return the groups with the hosts of this run; InputError when a host is in none or in several."""
    run = set(hosts)
    found = {name: [host for host in members if host in run] for name, members in groups.items()}
    homes = Counter(host for members in found.values() for host in members)
    homeless = [name for name in hosts if name not in homes]
    if homeless and not groups:
        raise InputError(f"{KEY}: no host groups were found; see the plan's warnings")
    if homeless:
        raise InputError(f"{KEY}: {some(homeless)} in no group; {remedy}")
    several = [host for host, count in homes.items() if count > 1]
    if several:
        raise InputError(f"{KEY}: {some(several)} in several groups; name every host once")
    return {name: members for name, members in found.items() if members}


def _complete(groups: Mapping[str, Sequence[str]], known: Known, remedy: str) -> Groups:
    """Return the groups of the run, with the hosts that returned no facts."""
    at_home = {host for members in groups.values() for host in members}
    lost = [host for host in known.names if host not in at_home and host not in known.facts]
    return of_run(list(known.names), {**groups, UNKNOWN: [*groups.get(UNKNOWN, ()), *lost]}, remedy)


def _by_inventory(names: Sequence[str], known: Known) -> Groups:
    for name in names:
        if name not in known.inventory:
            raise InputError(f"{KEY}.names: the inventory has no group {name}; {nearest(name, known.inventory)}")
    groups = {name: known.inventory[name] for name in names}
    return _complete(groups, known, f"put every host into exactly one of the inventory groups {some(names)}")


def _by_label(label: str, known: Known) -> Groups:
    if not known.labels:
        raise InputError(f"{KEY}: no host is known as a Node; join the hosts first, and let the account list nodes")
    groups: Groups = {}
    for host in known.names:
        value = known.labels.get(host, {}).get(label)
        if value:
            groups.setdefault(value, []).append(host)
    return _complete(groups, known, f"give each host's Node the label {label}")


def _by_file(path: str, known: Known) -> Groups:
    try:
        named = parse_conf(known.file) if isinstance(known.file, str) else parse_data(known.file)
    except ParseError as exc:
        raise InputError(f"{KEY}.path: {path}: {exc}") from exc
    homes = {name: group for group, names in named.items() for name in names}
    counts = Counter(name for names in named.values() for name in dict.fromkeys(names))
    shorts = Counter(_short(name) for name in homes)
    homes = {**{_short(name): group for name, group in homes.items() if shorts[_short(name)] == 1}, **homes}
    groups: Groups = {}
    for host, names in known.names.items():
        found = next((name for name in (*names, *map(_short, names)) if name in homes), None)
        if found and counts[found] > 1:
            raise InputError(f"{KEY}.path: {path}: {found} is in several groups; a host has one leaf switch here")
        if found:
            groups.setdefault(homes[found], []).append(host)
    return _complete(groups, known, f"{path} has no switch or block with them")


def _short(name: str) -> str:
    """Return a name without its domain; an IP address stays whole."""
    first = name.split(".")[0]
    return name if first.isdigit() else first


def _by_switch(known: Known, source: str, remedy: str) -> tuple[Groups, list[str]]:
    """Group by the switch of the first rail; a host without one there goes with those whom it meets on another rail.

    ``source``: what shows the switch of a port; ``remedy``: what to do when there is none at all.
    """
    rails = list(known.switches.values())
    homes = {host: rails[0][host]["switch"] for host in known.names if rails and host in rails[0]}
    groups_of: dict[tuple[int, str], str] = {}
    for at, rail in enumerate(rails):
        for host, home in homes.items():
            if host in rail:
                groups_of.setdefault((at, rail[host]["switch"]), home)
    lost = []
    groups: Groups = {}
    for host in known.names:
        on = ((at, rail[host]["switch"]) for at, rail in enumerate(rails) if host in rail)
        home = homes.get(host) or next((groups_of[key] for key in on if key in groups_of), UNKNOWN)
        groups.setdefault(home, []).append(host)
        if home == UNKNOWN and host in known.facts:
            lost.append(host)
    if list(groups) == [UNKNOWN]:
        return {}, [f"{KEY}: no host shows {source} on a rail; {remedy}"]
    told = f"{KEY}: {some(lost)} without {source}, or on switches of their own: the group {UNKNOWN}"
    return of_run(list(known.names), groups), [told] if lost else []
