# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Intent x facts -> plan. A pure function: the same input gives the same plan, byte for byte."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import asdict
from itertools import zip_longest
from typing import Any

from ..._common.errors import InputError
from ..._common.fold import fold
from ..._common.reader import raise_problems
from ..intent.addressing import PLANNED, V6
from ..intent.gates import check
from ..intent.host_classes import read_fabric
from ..intent.intent import Intent
from ..intent.networks import of_rail, vrf_problem
from ..intent.releases import line_of
from ..intent.thresholds import check_matches, groups_of
from ..lint.objects import Objects
from ..lint.registry import lint
from ..operator import line_fields, nic_configuration, schema
from ..operator.nodes import fabric_selector
from ..operator.policies import Group, policies
from ..operator.profiles import registry
from . import bonds, driver_images, host_classes, link_findings, link_users, partitions, routers, traffic
from .capabilities import expectations
from .capacity import block_size, check_capacity
from .groups import Known, known_of, resolve
from .host_classes import Part
from .hosts import Host, match_nodes, read_hosts
from .ib_fabric import with_switches
from .layout import Layout, check_pools
from .missing import alive, of_host
from .nccl_gpus import gpus_and_links
from .numbering import find_seats, new_addresses, strangers
from .rails import Port, RailMap, check_names_free, check_subnets, find_rails, netdev_names
from .ranges import RailRange, check_overlap, other_networks, rail_ranges
from .review import table
from .switch_ports import switch_ports
from .uplinks import sharing, told
from .vlans import checked as with_vlans
from .vlans import netdev as vlan_netdev
from .warnings import warnings

SCHEMA = 1


def plan(
    fabric: Mapping[str, Any],
    hosts: Mapping[str, Mapping[str, Any]],
    group: Sequence[str] | None = None,
    *,
    limit: Collection[str] | None = None,
    absent: Collection[str] = (),
    nodes: Sequence[Mapping[str, Any]] = (),
    groups: Mapping[str, Sequence[str]] | None = None,
    gates: Any = None,
    topology: Any = None,
) -> dict[str, Any]:
    """Return the plan as a dict.

    ``fabric`` is ``rdma_fabric``; ``hosts`` is name -> {facts, rdma_host, qos}; ``group`` all hosts in order (default:
    those of ``hosts``); ``limit`` the hosts of this run (default: all); ``absent`` those that did not answer;
    ``nodes`` the Nodes of ``cluster_info`` when known; ``groups`` the inventory's groups, name -> hosts, by which
    thresholds and tests may name hosts; ``gates`` is ``rdma_gates``, checked before anything is changed or measured;
    ``topology`` the content of the file that ``tests.groups`` are taken from.
    Raise a FabricError that lists all problems of one kind.
    """
    intent, classes = read_fabric(fabric, registry.names(), registry.sections())
    rules = check(gates)
    order = list(hosts) if group is None else list(group)
    chosen = set(order if limit is None else limit)
    members = read_hosts(hosts, order, chosen, absent=set(absent), absent_hosts=intent.absent_hosts)
    names = groups_of(order, groups or {})
    parts = host_classes.parts(fabric, intent, classes, hosts=members, names=names)
    matched = match_nodes(members, nodes)
    sources = Known(*known_of(members, matched, nodes), inventory=groups or {}, switches={}, file=topology)
    every = [_planned(part, names, matched, sources=sources) for part in parts]
    partitions.check_guids(parts, [one for one, _table in every])
    written = host_classes.joined([one for one, _table in every], order)
    check_matches(intent.thresholds, [rail["name"] for rail in written["rails"]], names, kinds=intent.tests["kinds"])
    groups_ = [Group(part.name, part.intent, one["rails"]) for part, (one, _table) in zip(parts, every)]
    written["objects"] = {**written["objects"], "policy": policies(groups_)}
    written["operator"] = {**written["operator"], **driver_images.of_plan(parts)}
    _check_fields(intent, written["objects"])
    return {
        **written,
        "warnings": [
            *written["warnings"],
            *driver_images.doubts(intent, members),
            *_known_problems(written, hosts),
        ],
        "gates": [asdict(rule) for rule in rules],
        "table": [line for _one, table in every for line in table],
    }


def _planned(
    part: Part, names: Mapping[str, Collection[str]], matched: Mapping[str, str | None], *, sources: Known
) -> tuple[dict[str, Any], list[str]]:
    """Return the plan of the hosts of a part without the policy, and its table."""
    with host_classes.told_of(part):
        layout = _laid_out(part, names)
        written = _write(layout, matched)
        ports = with_switches(layout.rails.ports, layout.hosts, part.intent.tests["groups"], content=sources.file)
        switches = switch_ports(layout.rails.names, ports)
        homes, doubts = resolve(part.intent.tests, sources.of(written["hosts"], switches))
        members = partitions.lines(layout)
    marks = traffic.planned(part.intent, part.hosts, written["rails"])
    written["tests"] = {**part.intent.tests, "groups": homes, **(shared := sharing(written)), **marks}
    written["tests"].update({"routing": part.intent.routing} if part.intent.routing != "none" else {})
    doubts = [*doubts, *link_users.told(layout.hosts, layout.rails, written.get("gpus", {}))]
    written.update({"switches": switches} if switches else {})
    written.update({"partitions": members} if members else {})
    written["warnings"] += [*doubts, *told(shared, written["expectations"]), *traffic.doubts(marks), *part.doubts]
    written["classes"] = host_classes.entries(part, written)
    for own in written["hosts"].values():
        own.update({"class": part.name, "profile": written["profile"]})
    lines = [*table(part.intent, layout.rails, written["hosts"]), *traffic.told(marks)]
    return written, [*host_classes.heading(part, written), *lines]


def _laid_out(part: Part, names: Mapping[str, Collection[str]]) -> Layout:
    intent, members = part.intent, bonds.seen(part.intent, alive(part.intent, part.hosts))
    rails = find_rails(intent, members)
    raise_problems([text for name in rails.names if (text := vrf_problem(intent.networks, name))])
    netdevs = with_vlans(intent, rails.names, netdev_names(intent, rails))
    check_names_free(members, rails, netdevs)
    ranges, ranges_ipv6 = _ranges(intent, members, rails)
    seats = find_seats(intent, members, rails, ranges=ranges, second=ranges_ipv6)
    new = new_addresses(intent, members, rails, ranges=ranges, second=ranges_ipv6)
    doubtful = fold(strangers(intent, members, rails, ranges=ranges, second=ranges_ipv6))
    return Layout(intent, members, rails, netdevs, ranges, seats, names, new, doubtful, ranges_ipv6)


def _known_problems(written: Mapping[str, Any], hosts: Mapping[str, Mapping[str, Any]]) -> Iterator[str]:
    # Links that came up low are known before anything is measured.
    yield from (found["text"] for found in link_findings.find(written))
    facts = {name: own.get("facts") for name, own in hosts.items()}
    objects = Objects([*written["objects"]["policy"], *written["objects"]["networks"]], facts, selected=True)
    yield from (finding.line for finding in lint(objects))


def _ranges(
    intent: Intent, hosts: Sequence[Host], rails: RailMap
) -> tuple[tuple[RailRange, ...], tuple[RailRange, ...]]:
    """Return the ranges of the rails, and those of IPv6 beside IPv4."""
    first, second = (_ranges_of(own, hosts, rails) if own else () for own in (intent, intent.ipv6))
    if intent.addresses == "plan" and first:
        subnets = [[own.network for own in of_rail if own] for of_rail in zip_longest(first, second)]
        check_subnets(intent, hosts, rails, subnets=subnets)
    return first, second


def _ranges_of(intent: Intent, hosts: Sequence[Host], rails: RailMap) -> tuple[RailRange, ...]:
    if not intent.own_networks:
        return ()
    ranges = rail_ranges(intent, rails.names)
    profile = registry.get(intent.profile)
    if ranges[0].is_point_to_point and intent.pools.ipam in PLANNED and not profile.takes_port:
        raise InputError(
            f"{intent.path}.host_prefix: a network of two addresses has none for pods beside those of host and router,"
            f" and pods of profile {profile.name} share the port with the host."
            f" Use {ranges[0].bits - 3} or less, or another profile"
        )
    check_capacity(intent, ranges, len(hosts), most_pods=profile.devices(intent))
    networks = {host.name: other_networks(host.facts, rails.present(host.name)) for host in hosts if host.facts}
    check_overlap(rails.names, ranges, networks, path=intent.path)
    return ranges


def _write(layout: Layout, nodes: Mapping[str, str | None]) -> dict[str, Any]:
    """Return the plan of a layout (``nodes``: host -> Node name)."""
    intent, members = layout.intent, layout.hosts
    check_pools(layout)
    rails = [_rail(layout, index) for index in range(len(layout.rails.names))]
    run, gpus = [host for host in members if host.limited], gpus_and_links(layout.intent.tests, layout.rails, members)
    profile = registry.get(intent.profile)
    return {
        "schema": SCHEMA,
        "profile": {
            "name": profile.name,
            "operator_makes_vfs": profile.operator_makes_vfs(intent),
            "host_vfs": profile.host_vfs(intent),
        },
        "rails": rails,
        "hosts": {host.name: _host(layout, host, nodes[host.name]) for host in members},
        "absent": [host.name for host in members if host.absent],
        "objects": {"policy": [], "networks": _networks(layout, rails, nodes)},
        "nodes": {"labels": dict(intent.node_labels), "selector": fabric_selector(intent.node_selector)},
        "operator": {
            "release": intent.operator.release,
            "platform": intent.operator.platform.name,
            "machine_pool": intent.operator.machine_pool if intent.operator.platform.machines else None,
            "namespace": intent.operator.namespace,
            "nfd": intent.operator.nfd,
            "existing": intent.operator.existing,
            "multus": intent.operator.multus,
            "image_repository": intent.operator.image_repository,
            "image_pull_secrets": list(intent.operator.image_pull_secrets),
            "network_namespace": intent.network_namespace,
            "ufm_secret": intent.sriov.ib_kubernetes.ufm_secret,
            "chart_values": {}
            if intent.operator.platform.catalog
            else nic_configuration.chart_values(intent, profile.values(intent)),
        },
        "expectations": expectations(intent, layout.rails, run, names=layout.names, gpus=gpus.get("gpus", {})),
        "thresholds": {
            "gpu_paths": dict(intent.thresholds.gpu_paths),
            "outliers": asdict(intent.thresholds.outliers),
            "unsteady": asdict(intent.thresholds.unsteady),
        },
        **gpus,
        "warnings": list(warnings(layout, nodes)),
        "endpoints": {where: [host.name for host in run] for where in ("host", "pod")},
    }


def _rail(layout: Layout, index: int) -> dict[str, Any]:
    name = layout.rails.names[index]
    ports = list(layout.rails.at(index).values())
    profile, networks = registry.get(layout.intent.profile), layout.intent.networks
    return {
        "name": name,
        "index": index,
        "netdev": layout.netdevs[index],
        "master": vlan_netdev(layout.netdevs[index], layout.intent.vlan_of(name)),
        "link_layer": ports[0]["link_layer"],
        **_rail_addresses(layout, index),
        "mtu": registry.mtu_of(layout.intent),
        "speed": layout.intent.link_speed,
        "resource": layout.resource(name),
        "share": 0 if (claimed := registry.by_claims(layout.intent)) else profile.devices(layout.intent),
        "network": of_rail(networks.name, name),
        **({"claim": of_rail(networks.name, name)} if claimed else {}),
        "pool": layout.pool(name),
        "vendors": sorted({port["vendor"] for port in ports}),
        "drivers": sorted({port["driver"] for port in ports if port["driver"]}),
        **bonds.of_rail(ports),
        **partitions.of_rail(layout.intent),
        **({"ipv6": {**_rail_addresses(ipv6, index), "pool": ipv6.pool(name)}} if (ipv6 := layout.ipv6) else {}),
    }


def _rail_addresses(layout: Layout, index: int) -> dict[str, Any]:
    """Return the addresses of a rail in one version of IP."""
    own, hosts = (layout.ranges[index] if layout.ranges else None), layout.intent.capacity.hosts
    return {
        "subnet": str(own.subnet) if own else None,
        "host_range": own.host_range if own else None,
        "pool_range": own.pool_range if own else None,
        "pool_subnet": str(own.pool) if own else None,
        "gateway": own.gateway if own else None,
        "host_prefix": own.host_prefix if own else None,
        "router_index": own.router_index if own else None,
        "routes": routers.routes(layout, own),
        "exclusions": list(own.exclusions(hosts)) if own else [],
        **({"reserved": [[str(span.first), str(span.last)] for span in own.reserved]} if own and own.reserved else {}),
        "block_size": block_size(own.pool, hosts) if own and not own.host_prefix else None,
    }


def _host(layout: Layout, host: Host, node: str | None) -> dict[str, Any]:
    return {
        "number": layout.seats[host.name].number,
        "machine_id": host.facts.get("machine_id") if host.facts else None,
        "node": node,
        "rails": [_host_rail(layout, host, index, port=port) for index, port in layout.rails.slots(host.name)],
        **of_host(host, layout.rails.missing.get(host.name, {}), layout.resource),
    }


def _host_rail(layout: Layout, host: Host, index: int, *, port: Port | None) -> dict[str, Any]:
    """Return one rail of one host; what only facts tell is None for a host without facts."""
    known: Port = port or {}
    return {
        "rail": layout.rails.names[index],
        "pci": known.get("pci"),
        "driver": known.get("driver"),
        "mac": known.get("mac"),
        "current": known.get("netdev"),
        "netdev": layout.netdevs[index],
        "address": _address(layout, host, index, port=known),
        "mtu": registry.mtu_of(layout.intent),
        **bonds.of_host(known),
        **({"vlan": vlan} if (vlan := layout.intent.vlan_of(layout.rails.names[index])) else {}),
        **_doubt(layout, host, index),
        **routers.router_of(layout, host, index),
        **_ipv6(layout, host, index, port=known),
    }


def _ipv6(layout: Layout, host: Host, index: int, *, port: Port) -> dict[str, Any]:
    """Return the address of IPv6 beside that of IPv4, and its router."""
    own = layout.ipv6
    if own is None:
        return {}
    address = _address(own, host, index, port=port)
    return {"ipv6": {"address": address, **routers.router_of(own, host, index)}}


def _doubt(layout: Layout, host: Host, index: int) -> dict[str, str]:
    """Return who may have the address of a rail already: no order tells, as other hosts keep what they have."""
    doubtful = host.limited and layout.strangers and (host.name, index) in layout.new
    return {"doubt": layout.strangers} if doubtful else {}


def _address(layout: Layout, host: Host, index: int, *, port: Port) -> str | None:
    if layout.intent.addresses == "keep":
        is_ipv6 = layout.intent.version == V6
        return next((text for text in port.get("addresses", ()) if (":" in text) == is_ipv6), None)
    own = layout.ranges[index]
    return own.host_interface(layout.seats[host.name].rails[index])


def _check_fields(intent: Intent, objects: Mapping[str, Sequence[Mapping[str, Any]]]) -> None:
    line = line_of(intent.operator.release)
    if line:
        every = [item for part in objects.values() for item in part]
        line_fields.check(line, every)
        schema.check(line, every, intent.operator.policy_overrides)


def _networks(
    layout: Layout, rails: Sequence[Mapping[str, Any]], nodes: Mapping[str, str | None]
) -> list[dict[str, Any]]:
    intent = layout.intent
    if not layout.ranges and intent.pools.ipam in PLANNED:
        return []
    profile = registry.get(intent.profile)
    return [*profile.pools(intent, rails, routers.node_subnets(layout, nodes)), *profile.networks(intent, rails)]
