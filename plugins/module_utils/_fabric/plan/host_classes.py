# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Which hosts are of which class (``rdma_fabric.classes``). Each class is planned by itself: no rail is in two of them.

Without classes there is one part: all hosts.
"""

from __future__ import annotations

import contextlib
import ipaddress
from collections import Counter
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from ..._common.errors import FabricError, InputError
from ..._common.fold import fold
from ..._common.reader import nearest, raise_problems, some
from ..intent.host_classes import KEY, LABEL, REST, HostClass, distinct, over
from ..intent.intent import Intent
from ..intent.tests import port_problems
from ..operator.common import merged
from ..operator.profiles import registry
from .fingerprints import fits, strangers, unlike
from .hosts import Host

# Values of the operator's chart: whether it installs the SR-IOV operator, and the settings of that.
_SRIOV_ENABLED, _SRIOV_CHART = "sriovNetworkOperator", "sriov-network-operator"
# What classes do not inherit, and the hosts of none of them have.
_REST_KEYS = ("rails", "rail_count", "supernet", "reserved", "ipv6")


@dataclass(frozen=True)
class Part:
    """Hosts that are planned together: those of a class, those of none (REST), or all ("").

    ``match``: what their facts show, empty text when they are not chosen by it. ``doubts``: warnings about the choice.
    """

    name: str
    intent: Intent
    hosts: tuple[Host, ...]
    match: str = ""
    doubts: tuple[str, ...] = ()


def parts(
    fabric: Mapping[str, Any],
    intent: Intent,
    classes: Sequence[HostClass],
    *,
    hosts: Sequence[Host],
    names: Mapping[str, Collection[str]],
) -> list[Part]:
    """Return the parts in the order of the classes, the hosts of no class first.

    ``names``: host -> its own name and those of its groups.
    """
    if not classes:
        return [Part("", intent, tuple(hosts))]
    homes = _homes(classes, hosts, names)
    found = [Part(own.name, own.intent, _of(hosts, homes, own.name), str(own.match or "")) for own in classes]
    rest = _of(hosts, homes, REST)
    if rest:
        whole = over(fabric, {key: fabric[key] for key in _REST_KEYS if key in fabric}, registry.sections())
        own_intent = Intent.from_params(whole, registry.names(), registry.sections())
        found.insert(0, Part(REST, own_intent, rest, doubts=tuple(strangers(classes, rest))))
    raise_problems(list(_empty(found)))
    return _labelled(found)


def _of(hosts: Sequence[Host], homes: Mapping[str, str], name: str) -> tuple[Host, ...]:
    return tuple(host for host in hosts if homes[host.name] == name)


def _homes(classes: Sequence[HostClass], hosts: Sequence[Host], names: Mapping[str, Collection[str]]) -> dict[str, str]:
    """Return host -> the name of its class."""
    known = {name for own in names.values() for name in own}
    problems = [
        f"{KEY}.classes[{own.name}].hosts: no host of the fabric is {one} or in a group of this name;"
        f" {nearest(one, known)}"
        for own in classes
        for one in own.hosts
        if one not in known
    ]
    homes: dict[str, str] = {}
    for host in hosts:
        named = [own for own in classes if set(own.hosts) & set(names[host.name])]
        problems += [text for own in named for text in unlike(own, host)]
        found = [*named, *(own for own in classes if own not in named and not own.hosts and fits(own.match, host))]
        homes[host.name] = found[0].name if found else REST
        if len(found) > 1:
            several = ", ".join(own.name for own in found)
            problems.append(
                f"{KEY}.classes: {host.name} is in {several}. A host has one class, since two network models on one"
                " host would share its ports. Narrow hosts or match"
            )
    unknown = [host.name for host in hosts if not host.facts and homes[host.name] == REST]
    if unknown and any(own.match and not own.hosts for own in classes):
        problems.append(
            f"{KEY}.classes: no facts of {fold(unknown)} are known, so no class can be found by fingerprint. Run"
            " without --limit, repair hosts that do not answer, or set hosts in each class that has match only"
        )
    raise_problems(problems)
    return homes


def _empty(found: Sequence[Part]) -> Iterator[str]:
    for part in found:
        title = "the hosts of no class" if part.name == REST else f"{KEY}.classes[{part.name}]"
        if not part.hosts:
            yield f"{title}: no host of the fabric is in this class. Correct hosts or match, or remove the class"
        elif not any(host.facts for host in part.hosts):
            shown = some([host.name for host in part.hosts])
            yield (
                f"{title}: no facts of its hosts ({shown}) are known, so its rails and objects cannot be planned. Run"
                " without --limit, repair one of these hosts, or include one host of each class"
            )


def _labelled(found: Sequence[Part]) -> list[Part]:
    """Return the parts with the label of their class, unless their selectors are distinct without it."""
    problems = [
        f"class {part.name}: node_labels sets {key} to {value}, but node_selector requires {wanted}. Use one value"
        for part in found
        for key, value in part.intent.node_labels.items()
        if (wanted := part.intent.node_selector.get(key, value)) != value
    ]
    raise_problems(problems)
    if distinct([part.intent.node_selector for part in found]):
        return list(found)
    return [replace(part, intent=_with_label(part)) for part in found]


def _with_label(part: Part) -> Intent:
    own = part.intent
    added = {LABEL: part.name}
    labels, selector = (dict(sorted({**some_, **added}.items())) for some_ in (own.node_labels, own.node_selector))
    return replace(own, node_labels=labels, node_selector=selector)


@contextlib.contextmanager
def told_of(part: Part) -> Iterator[None]:
    """Say in an error of which class it is."""
    try:
        yield
    except FabricError as error:
        if not part.name:
            raise
        raise type(error)(f"class {part.name}: {error}") from error


def entries(part: Part, written: Mapping[str, Any]) -> list[dict[str, Any]]:
    """Return the class as the plan lists it (``written``: the plan of its hosts); nothing without classes."""
    own = {
        "name": part.name,
        "match": part.match,
        "hosts": list(written["hosts"]),
        "rails": [rail["name"] for rail in written["rails"]],
        "profile": written["profile"],
        "labels": written["nodes"]["labels"],
        "selector": written["nodes"]["selector"],
        "resources": {rail["resource"]: rail["share"] for rail in written["rails"] if rail["share"]},
    }
    return [own] if part.name else []


def heading(part: Part, written: Mapping[str, Any]) -> list[str]:
    """Return the line of the table above the hosts of a class; nothing without classes."""
    if not part.name:
        return []
    labels = ", ".join(f"{key}={value}" for key, value in part.intent.node_selector.items())
    match = f"; fingerprint: {part.match}" if part.match else ""
    names = fold([host.name for host in part.hosts])
    return [f"class {part.name}: {names}; profile {written['profile']['name']}; nodes with {labels}{match}"]


def _check_values(values: Mapping[str, Any], own: Mapping[str, Any]) -> None:
    """InputError where a class needs another value of the operator's chart than those before."""
    keys = values.keys() & own.keys()
    # Where both use the SR-IOV operator, one without settings of it does not want those of the other.
    for key in keys | ({_SRIOV_CHART} if _SRIOV_ENABLED in keys else set()):
        if values.get(key) != own.get(key):
            raise InputError(
                f"{KEY}.classes: the value {key} of the operator's chart would differ between classes, but there is one"
                " chart (for the SR-IOV operator: sriov.assigned_by). Use the same value for all classes"
            )


def joined(found: Sequence[Mapping[str, Any]], order: Sequence[str]) -> dict[str, Any]:
    """Return the plans of the parts as one; ``order``: the hosts of the group."""
    if len(found) == 1:
        return dict(found[0])
    hosts = {name: own for plan in found for name, own in plan["hosts"].items()}
    rails = [rail for plan in found for rail in plan["rails"]]
    texts = port_problems(found[0]["tests"], len(rails))
    raise_problems([f"{KEY}.tests.port_base: {text}" for text in texts])
    _check_rails(rails, [own for plan in found for own in plan["classes"]])
    networks = [item for plan in found for item in plan["objects"]["networks"]]
    _check_objects(networks)
    secret = next((name for plan in found if (name := plan["operator"]["ufm_secret"])), None)
    values: dict[str, Any] = {}
    for plan in found:
        _check_values(values, plan["operator"]["chart_values"])
        values = merged(values, plan["operator"]["chart_values"])
    return {
        **found[0],
        "rails": [{**rail, "index": index} for index, rail in enumerate(rails)],
        "hosts": {name: hosts[name] for name in order},
        "classes": [own for plan in found for own in plan["classes"]],
        "absent": _in_order(order, [plan["absent"] for plan in found]),
        "objects": {"policy": [], "networks": networks},
        "tests": _tests(found),
        **({"switches": switches} if (switches := _every(found, "switches")) else {}),
        "nodes": {key: _common([plan["nodes"][key] for plan in found]) for key in ("labels", "selector")},
        "operator": {**found[0]["operator"], "chart_values": values, "ufm_secret": secret},
        "expectations": _every(found, "expectations"),
        **({"partitions": lines} if (lines := _partitions(found)) else {}),
        **{key: _every(found, key) for key in ("gpus", "nccl_gpus") if key in found[0]},
        "warnings": list(dict.fromkeys(text for plan in found for text in plan["warnings"])),
        "endpoints": {
            where: _in_order(order, [plan["endpoints"][where] for plan in found]) for where in found[0]["endpoints"]
        },
    }


def _partitions(found: Sequence[Mapping[str, Any]]) -> list[str]:
    """Return the lines for the subnet manager; a partition that two classes have is one."""
    lines = list(dict.fromkeys(line for plan in found for line in plan.get("partitions", ())))
    default = [line for line in lines if line.startswith("Default=")]
    if len(default) > 1:
        raise InputError(
            f"{KEY}.classes: the InfiniBand rails of several classes are in the default partition, which has one MTU."
            " Use one mtu for these classes, or set sriov.pkey"
        )
    return lines


def _in_order(order: Sequence[str], parts_: Sequence[Collection[str]]) -> list[str]:
    chosen = {name for part in parts_ for name in part}
    return [name for name in order if name in chosen]


def _every(found: Sequence[Mapping[str, Any]], key: str) -> dict[str, Any]:
    return {name: own for plan in found for name, own in plan.get(key, {}).items()}


def _tests(found: Sequence[Mapping[str, Any]]) -> dict[str, Any]:
    """Return ``tests``, of which classes differ in groups, in traffic classes and in rails that share PCIe links."""
    sharing = {
        key: [group for plan in found for group in plan["tests"].get(key, plan["tests"].get("sharing", ()))]
        for key in ("sharing", "host_sharing")
        if any(key in plan["tests"] for plan in found)
    }
    traffic = {rail: own for plan in found for rail, own in plan["tests"].get("traffic", {}).items()}
    return {
        **found[0]["tests"],
        "groups": _groups(found),
        "traffic": traffic,
        **sharing,
    }


def _groups(found: Sequence[Mapping[str, Any]]) -> dict[str, list[str]]:
    """Return the groups of ``tests.groups``, which may have hosts of several classes."""
    groups: dict[str, list[str]] = {}
    for plan in found:
        for name, hosts in plan["tests"]["groups"].items():
            groups[name] = list(dict.fromkeys([*groups.get(name, ()), *hosts]))
    return groups


def _common(dicts: Sequence[Mapping[str, str]]) -> dict[str, str]:
    """Return what all dicts have."""
    return {key: value for key, value in dicts[0].items() if all(other.get(key) == value for other in dicts)}


def _check_rails(rails: Sequence[Mapping[str, Any]], classes: Sequence[Mapping[str, Any]]) -> None:
    """Refuse what two classes may not have in common: names, networks of addresses, resources."""
    home = {rail: own["name"] for own in reversed(classes) for rail in own["rails"]}
    names = [rail["name"] for rail in rails]
    problems = [
        f"more than one class has a rail of the name {name}, but classes have no rail in common. Name the rails of a"
        " class otherwise in its rails. Hosts with the same network model and number of rails need no classes: list"
        f" the PCI addresses of each kind of host in {KEY}.rails[].pci"
        for name in sorted({name for name in names if names.count(name) > 1})
    ]
    owners: dict[str, set[str]] = {}
    for own in classes:
        for resource in own["resources"]:
            owners.setdefault(resource, set()).add(own["name"])
    problems += [
        f"the classes {', '.join(sorted(several))} have the same resource {resource}, by which pods could not choose"
        " their hosts. Set networks.resource of a class"
        for resource, several in owners.items()
        if len(several) > 1
    ]
    both = [(rail["name"], text) for rail in rails for text in (rail["subnet"], rail.get("ipv6", {}).get("subnet"))]
    subnets = [(name, ipaddress.ip_network(text)) for name, text in both if text]
    problems += [
        f"{net} of {name} (class {home[name]}) and {other} of {peer} (class {home[peer]}) overlap. Set another supernet"
        " of a class"
        for at, (name, net) in enumerate(subnets)
        for peer, other in subnets[at + 1 :]
        if net.version == other.version and net.overlaps(other) and home[name] != home[peer]
    ]
    raise_problems([f"{KEY}.classes: {text}" for text in problems])


def _check_objects(objects: Sequence[Mapping[str, Any]]) -> None:
    """Refuse two objects of one name: the second one would replace the first."""
    keys = Counter(
        f"{item['kind']} {item['metadata'].get('namespace', '')}/{item['metadata']['name']}" for item in objects
    )
    twice = [key for key, count in keys.items() if count > 1]
    if twice:
        raise InputError(
            f"{KEY}.classes: more than one class has {some(twice)}. Set networks.name or networks.pool of a class"
        )
