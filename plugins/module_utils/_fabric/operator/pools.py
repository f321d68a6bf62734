# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Pools of nv-ipam: where pods of one rail get their addresses, and what a change of it takes from pods.

nv-ipam gives each node a block of a pool. When the pool changes, it keeps the blocks that the new pool could have, and
assigns the others anew, while running pods keep their addresses: an address can then be assigned twice.
"""

from __future__ import annotations

import ipaddress
import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Union

from ..intent.addressing import NV_IPAM
from ..intent.intent import Intent
from .attachments import NETWORKS
from .common import metadata, node_selector
from .nodes import fabric_selector

KINDS = ("IPPool", "CIDRPool")
_STATUS = ("k8s.v1.cni.cncf.io/network-status", "k8s.v1.cni.cncf.io/networks-status")
# Annotations of pods in secondary networks.
NOTES = {NETWORKS, *_STATUS}
# What pods get beside their address.
_HARMLESS = {"routes", "defaultGateway"}
# Fields from which follows whether a block stays; of other ones (gateways) it is not computed.
_COMPUTED = {
    "subnet",
    "perNodeBlockSize",
    "cidr",
    "perNodeNetworkPrefix",
    "nodeSelector",
    "staticAllocations",
    "exclusions",
}

Address = Union[ipaddress.IPv4Address, ipaddress.IPv6Address]
Network = Union[ipaddress.IPv4Network, ipaddress.IPv6Network]


def pools(
    intent: Intent, rails: Sequence[Mapping[str, Any]], fixed: Mapping[str, Sequence[Mapping[str, str]]]
) -> list[dict[str, Any]]:
    """Return the pools of the rails of the plan, one per version of IP, unless others give pods their addresses.

    ``fixed``: name of a pool -> the subnets of Nodes that have their own, {nodeName, prefix}.
    """
    if intent.pools.ipam != NV_IPAM:
        return []
    wanted = [(own, one) for rail in rails for own, one in _versions(intent, rail)]
    return [_pool(own, one, fixed.get(one["pool"]) or ()) for own, one in wanted]


def _versions(intent: Intent, rail: Mapping[str, Any]) -> list[tuple[Intent, Mapping[str, Any]]]:
    """Return the intent and the addresses of a rail for each version of IP."""
    second = [(intent.ipv6, rail["ipv6"])] if intent.ipv6 else []
    return [(intent, rail), *second]


def _pool(intent: Intent, rail: Mapping[str, Any], fixed: Sequence[Mapping[str, str]]) -> dict[str, Any]:
    spec = _routed(rail, fixed) if rail["host_prefix"] else _flat(rail)
    routes = pod_routes(intent, rail)
    if routes:
        spec["routes"] = [{"dst": network} for network in routes]
    if rail["exclusions"]:
        spec["exclusions"] = [{"startIP": first, "endIP": last} for first, last in rail["exclusions"]]
    if intent.pools.per_node_exclusions:
        numbers = intent.pools.per_node_exclusions
        spec["perNodeExclusions"] = [{"startIndex": first, "endIndex": last} for first, last in numbers]
    selector = fabric_selector(intent.node_selector)
    if selector:
        spec["nodeSelector"] = node_selector(selector)
    return {
        "apiVersion": "nv-ipam.nvidia.com/v1alpha1",
        "kind": "CIDRPool" if rail["host_prefix"] else "IPPool",
        "metadata": metadata(rail["pool"], intent.operator.namespace),
        "spec": spec,
    }


def _flat(rail: Mapping[str, Any]) -> dict[str, Any]:
    """Return a pool of one network for all nodes, each of which gets a block of addresses."""
    spec = {"subnet": rail["pool_subnet"], "perNodeBlockSize": rail["block_size"]}
    return {**spec, "gateway": rail["gateway"]} if rail["gateway"] else spec


def _routed(rail: Mapping[str, Any], fixed: Sequence[Mapping[str, str]]) -> dict[str, Any]:
    """Return a pool of one network per node: that of its host, which begins with the router."""
    spec = {
        "cidr": rail["pool_subnet"],
        "perNodeNetworkPrefix": rail["host_prefix"],
        "gatewayIndex": rail["router_index"],
    }
    return {**spec, "staticAllocations": [dict(one) for one in fixed]} if fixed else spec


def pod_routes(intent: Intent, rail: Mapping[str, Any]) -> list[str]:
    """Return the networks that pods reach through the router of a rail."""
    return [*rail["routes"], *(str(network) for network in intent.pools.routes)]


def address_source(intent: Intent, rail: Mapping[str, Any]) -> dict[str, Any]:
    """Return the part ``ipam`` of a CNI plugin's configuration: where the addresses of a rail's pods come from."""
    kind = intent.pools.ipam
    if kind == NV_IPAM:
        return {
            "type": NV_IPAM,
            "poolName": ",".join(one["pool"] for _own, one in _versions(intent, rail)),
            "poolType": "cidrpool" if rail["host_prefix"] else "ippool",
        }
    if kind == "whereabouts":
        return _whereabouts(intent, rail)
    return {} if kind == "none" else {"type": kind}


def _whereabouts(intent: Intent, rail: Mapping[str, Any]) -> dict[str, Any]:
    ranges = [_range(one) for _own, one in _versions(intent, rail)]
    found: dict[str, Any] = {"type": "whereabouts", **(ranges[0] if len(ranges) == 1 else {"ipRanges": ranges})}
    if rail["gateway"]:
        found["gateway"] = rail["gateway"]
    routes = pod_routes(intent, rail)
    return {**found, "routes": [{"dst": network} for network in routes]} if routes else found


def _range(rail: Mapping[str, Any]) -> dict[str, Any]:
    taken = [network for first, last in rail["exclusions"] for network in _networks_of(first, last)]
    return {"range": rail["pool_subnet"], **({"exclude": taken} if taken else {})}


def _networks_of(first: str, last: str) -> list[str]:
    span: Any = ipaddress.ip_address(first), ipaddress.ip_address(last)
    return [str(network) for network in ipaddress.summarize_address_range(*span)]


@dataclass(frozen=True)
class Block:
    """The addresses of one node."""

    node: str
    first: Address
    last: Address


@dataclass(frozen=True)
class Effect:
    """What a change of a pool does. ``text``: the fields that change. ``kept``, ``lost``: blocks, and nodes of others.

    ``network``: all addresses of the pool before the change; None when they cannot be read. ``new``: there was no pool.
    ``excluded``: first and last of the addresses that somebody else has after the change.
    """

    text: str
    network: Network | None
    kept: tuple[Block, ...]
    lost: list[str]
    new: bool = False
    excluded: tuple[tuple[Address, Address], ...] = ()


def creation(spec: Mapping[str, Any]) -> Effect | None:
    """Return what creating a pool does; None when its addresses cannot be read, which is left to nv-ipam."""
    network = parsed_network(spec.get("subnet") or spec.get("cidr"))
    return Effect("", network, (), [], new=True) if network is not None else None


def effect(live: Mapping[str, Any], spec: Mapping[str, Any], labels: Mapping[str, Mapping[str, str]]) -> Effect | None:
    """Return what applying ``spec`` to a pool changes for addresses, None for nothing; ``labels``: those of nodes."""
    old = live.get("spec") or {}
    changed = sorted(key for key in spec if spec[key] != old.get(key) and key not in _HARMLESS)
    if not changed:
        return None
    blocks = list(_blocks(live))
    kept = () if set(changed) - _COMPUTED else tuple(block for block in blocks if _fits(block, spec))
    if "nodeSelector" in changed:
        kept = tuple(block for block in kept if _selects(spec["nodeSelector"], labels.get(block.node) or {}))
    return Effect(
        ", ".join(f"spec.{key} from {_shown(old.get(key))} to {_shown(spec[key])}" for key in changed),
        parsed_network(old.get("subnet") or old.get("cidr")),
        kept,
        sorted({block.node for block in blocks} - {block.node for block in kept}),
        excluded=tuple(_excluded(spec)) if "exclusions" in changed else (),
    )


def _excluded(spec: Mapping[str, Any]) -> Iterator[tuple[Address, Address]]:
    for item in spec["exclusions"]:
        yield ipaddress.ip_address(item["startIP"]), ipaddress.ip_address(item["endIP"])


def users(change: Effect, pods: Iterable[Mapping[str, Any]]) -> Iterator[str]:
    """Yield the pods that hold addresses of blocks that do not stay.

    What is unknown counts as held; but not with a new pool, from which no pod can have an address.
    """
    for pod in pods:
        meta, node = pod["metadata"], (pod.get("spec") or {}).get("nodeName")
        if (pod.get("status") or {}).get("phase") in ("Succeeded", "Failed"):
            continue
        addresses = _held(pod)
        if addresses is None:
            touched = node in change.lost if change.kept or change.lost else bool(node)
            touched = touched or bool(change.excluded)
            found = ["addresses not known"] if touched and not change.new else []
        else:
            found = [str(address) for address in addresses if _is_lost(address, node, change)]
        if found:
            yield f"{meta['namespace']}/{meta['name']} ({', '.join(found)})"


def _is_lost(address: Address, node: Any, change: Effect) -> bool:
    if change.network is not None and address not in change.network:
        return False
    if any(_inside(address, Block("", *span)) for span in change.excluded):
        return True
    return not any(block.node == node and _inside(address, block) for block in change.kept)


def _inside(address: Address, block: Block) -> bool:
    return address.version == block.first.version and int(block.first) <= int(address) <= int(block.last)


def _held(pod: Mapping[str, Any]) -> list[Address] | None:
    """Return the addresses of a pod in secondary networks; None when it has some that are not known (yet)."""
    notes = pod["metadata"].get("annotations") or {}
    text = next((notes[key] for key in _STATUS if notes.get(key)), "")
    if not text:
        return None if notes.get(NETWORKS) and not (pod.get("spec") or {}).get("hostNetwork") else []
    try:
        texts = [str(ip) for network in json.loads(text) for ip in network.get("ips") or []]
        return [ipaddress.ip_address(ip.partition("/")[0]) for ip in texts]
    except (ValueError, TypeError, AttributeError):
        return None


def _blocks(live: Mapping[str, Any]) -> Iterator[Block]:
    for item in (live.get("status") or {}).get("allocations") or ():
        try:
            if live.get("kind") == "CIDRPool":
                network = ipaddress.ip_network(item["prefix"])
                yield Block(str(item["nodeName"]), network[0], network[-1])
            else:
                first, last = (ipaddress.ip_address(item[key]) for key in ("startIP", "endIP"))
                yield Block(str(item["nodeName"]), first, last)
        except (ValueError, KeyError, TypeError):
            continue  # nv-ipam does not take over what it cannot read either


def _fits(block: Block, spec: Mapping[str, Any]) -> bool:
    """Whether nv-ipam takes a block over into a pool of this spec."""
    network = parsed_network(spec.get("subnet") or spec.get("cidr"))
    if network is None or block.first not in network or block.last not in network:
        return False
    try:
        if "cidr" in spec:
            if not _fixed_so(block, spec):
                return False
            size, skipped = 2 ** (network.max_prefixlen - int(spec["perNodeNetworkPrefix"])), 0
        else:
            # Blocks begin after the network's own address, which networks of one or two addresses do not have.
            size, skipped = int(spec["perNodeBlockSize"]), 0 if network.num_addresses <= 2 else 1
    except (ValueError, KeyError, TypeError):
        return False
    offset = int(block.first) - int(network.network_address) - skipped
    return size > 0 and int(block.last) - int(block.first) + 1 == size and offset >= 0 and offset % size == 0


def _fixed_so(block: Block, spec: Mapping[str, Any]) -> bool:
    """Whether the fixed networks of a CIDRPool let a node keep its own."""
    fixed = {one.get("nodeName"): parsed_network(one.get("prefix")) for one in spec.get("staticAllocations") or ()}
    if block.node in fixed:
        own = fixed[block.node]
        return own is not None and block.first == own[0]
    return not any(network is not None and block.first in network for network in fixed.values())


def parsed_network(text: Any) -> Network | None:
    """Return the network that a field of an object names; None when it names none."""
    try:
        return ipaddress.ip_network(str(text), strict=False)
    except ValueError:
        return None


def _selects(selector: Mapping[str, Any], labels: Mapping[str, str]) -> bool:
    """Whether a NodeSelector surely selects a node with these labels; only In and Exists are understood."""
    return any(
        bool(term.get("matchExpressions"))
        and not term.get("matchFields")
        and all(_matches(rule, labels) for rule in term["matchExpressions"])
        for term in selector.get("nodeSelectorTerms") or ()
    )


def _matches(rule: Mapping[str, Any], labels: Mapping[str, str]) -> bool:
    value = labels.get(rule["key"])
    if rule["operator"] == "In":
        return value in rule["values"]
    return rule["operator"] == "Exists" and value is not None


def _shown(value: Any) -> str:
    if value is None:
        return "nothing"
    return value if isinstance(value, str) else json.dumps(value, separators=(",", ":"))
