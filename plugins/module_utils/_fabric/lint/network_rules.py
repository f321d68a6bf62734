# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Rules for secondary networks and address pools."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from itertools import combinations
from typing import Any

from .objects import Network, Objects, at, dicts, label, loaded, network, number, text, texts
from .rule import ERROR, WARNING, Found, Rule

_NETWORKS = ("MacvlanNetwork", "HostDeviceNetwork", "IPoIBNetwork", "SriovNetwork", "SriovIBNetwork")
_WITH_RESOURCE = ("HostDeviceNetwork", "SriovNetwork", "SriovIBNetwork")
_POOLS = {"ippool": "IPPool", "cidrpool": "CIDRPool"}
_RESOURCE = re.compile(r"[\w.]+", re.ASCII)
_POOL_NAME = re.compile(r"[a-z0-9.-]+")
_PKEY = re.compile(r"0x[0-9a-fA-F]{1,4}")
_KEY_BITS, _MOST_KEYS = 0x7FFF, 128
_NO_NAMESPACES = ("default",)


def _ipam_json(objects: Objects) -> Iterator[Found]:
    for item in objects.of(*_NETWORKS):
        error = loaded(item, "spec", "ipam")[1]
        if error:
            yield Found(label(item), f"spec.ipam is not valid JSON ({error}). Correct it")


def _host_local(objects: Objects) -> Iterator[Found]:
    for name, ipam in _ipams(objects):
        if text(ipam, "type") == "host-local":
            yield Found(name, "Its addresses are of host-local, which knows one node only. Use nv-ipam or whereabouts")


def _pool_absent(objects: Objects) -> Iterator[Found]:
    # In manifests alone, the pool can be somewhere else.
    for item in objects.of(*_NETWORKS) if objects.complete else ():
        ipam = loaded(item, "spec", "ipam")[0]
        kind = _POOLS.get(text(ipam, "poolType") or "ippool", "")
        names = {text(pool, "metadata", "name") for pool in objects.of(kind)}
        wanted = text(ipam, "poolName")
        # Several pools in one name are read by nv-ipam alone.
        if text(ipam, "type") == "nv-ipam" and kind and _POOL_NAME.fullmatch(wanted) and wanted not in names:
            yield Found(label(item), f"spec.ipam: the {kind} {wanted} does not exist. Create it, or correct the name")


def _resource_name(objects: Objects) -> Iterator[Found]:
    for item in objects.of(*_WITH_RESOURCE):
        name = text(item, "spec", "resourceName").rpartition("/")[2]
        if name and not _RESOURCE.fullmatch(name):
            yield Found(label(item), f'spec.resourceName "{name}": expected letters, digits, _ and . Rename it')


def _link_state(objects: Objects) -> Iterator[Found]:
    for item in objects.of("SriovNetwork", "SriovIBNetwork"):
        if text(item, "spec", "linkState") == "disable":
            yield Found(
                label(item), "spec.linkState is disable, which keeps the link of its VFs down. Set auto or enable"
            )


def _macvlan_on_infiniband(objects: Objects) -> Iterator[Found]:
    for item in objects.of("MacvlanNetwork"):
        master = text(item, "spec", "master")
        nodes = [node for node, port in _ports(objects) if text(port, "name") == master and _is_infiniband(port)]
        if master and nodes:
            yield Found(
                label(item),
                f"Its master {master} is an InfiniBand port on {', '.join(nodes)}. Use an IPoIBNetwork",
            )


def _mtu(objects: Objects) -> Iterator[Found]:
    for item in objects.of("MacvlanNetwork"):
        master, wanted = text(item, "spec", "master"), number(item, "spec", "mtu")
        for node, port in _ports(objects):
            own = number(port, "mtu")
            if master and text(port, "name") == master and wanted and own and own < wanted:
                yield Found(
                    label(item), f"spec.mtu is {wanted}, but {master} of {node} has {own}. Raise the MTU of the port"
                )


def _pools_overlap(objects: Objects) -> Iterator[Found]:
    for (one, first), (other, second) in combinations(_subnets(objects), 2):
        if first.version == second.version and first.overlaps(second):
            yield Found(
                label(other), f"Its addresses {second} overlap those of {label(one)}, {first}. Use separate networks"
            )


def _pods_overlap(objects: Objects) -> Iterator[Found]:
    for node in objects.of("Node"):
        for cidr in texts(node, "spec", "podCIDRs"):
            pods = network(cidr)
            for pool, own in _subnets(objects):
                if pods is not None and pods.version == own.version and pods.overlaps(own):
                    yield Found(
                        label(pool),
                        f"Its addresses {own} overlap {pods}, those of pods on {text(node, 'metadata', 'name')}."
                        " Use another network",
                    )


def _too_small(objects: Objects) -> Iterator[Found]:
    for pool in objects.of("IPPool"):
        subnet, size = network(at(pool, "spec", "subnet")), number(pool, "spec", "perNodeBlockSize")
        if subnet is None or not size or size < 1:
            continue
        served = {text(one, "nodeName") for one in dicts(pool, "status", "allocations")}
        blocks = subnet.num_addresses // size
        if blocks < 1:
            yield Found(label(pool), f"{subnet} has fewer addresses than one block ({size}). Use a larger network")
        elif served and len(served) >= blocks:
            yield Found(
                label(pool),
                f"{subnet} is divided into blocks of {size} addresses: {blocks}, nodes with a block: {len(served)}. Use"
                " a larger network before you add nodes",
            )


def _isolation(objects: Objects) -> Iterator[Found]:
    for policy in objects.of("NicClusterPolicy"):
        config = loaded(policy, "spec", "secondaryNetwork", "multus", "config")[0]
        if at(config, "namespaceIsolation") is not True:
            continue
        everywhere = {*_NO_NAMESPACES, *text(config, "globalNamespaces").replace(" ", "").split(",")}
        for item in objects.of(*_NETWORKS):
            namespace = text(item, "spec", "networkNamespace") or "default"
            if namespace not in everywhere:
                yield Found(
                    label(item),
                    f"{label(policy)} has namespaceIsolation, so only pods in {namespace} can use this network. Add"
                    f" {namespace} to globalNamespaces if pods of other namespaces need it",
                )


def _partitions(objects: Objects) -> Iterator[Found]:
    keys: set[int] = set()
    for item in objects.of("NetworkAttachmentDefinition"):
        config = loaded(item, "spec", "config")[0]
        found = [text(plugin, "pkey") for plugin in (config, *dicts(config, "plugins"))]
        keys.update(int(key, 16) & _KEY_BITS for key in found if _PKEY.fullmatch(key))
    if len(keys) > _MOST_KEYS:
        yield Found(
            "NetworkAttachmentDefinitions",
            f"They have {len(keys)} partition keys, and a node can be in {_MOST_KEYS} partitions. Use fewer, or place"
            " their pods on different nodes",
        )


def _ipams(objects: Objects) -> Iterator[tuple[str, Any]]:
    """Yield the name of each network and its configuration of addresses."""
    for item in objects.of(*_NETWORKS):
        yield label(item), loaded(item, "spec", "ipam")[0]


def _ports(objects: Objects) -> Iterator[tuple[str, Mapping[str, Any]]]:
    """Yield node and port of all ports that the SR-IOV operator reports."""
    for state in objects.of("SriovNetworkNodeState"):
        for port in dicts(state, "status", "interfaces"):
            yield text(state, "metadata", "name"), port


def _is_infiniband(port: Mapping[str, Any]) -> bool:
    return text(port, "linkType").upper() in ("IB", "INFINIBAND")


def _subnets(objects: Objects) -> list[tuple[Mapping[str, Any], Network]]:
    found = [(pool, network(at(pool, "spec", "subnet"))) for pool in objects.of("IPPool")]
    found += [(pool, network(at(pool, "spec", "cidr"))) for pool in objects.of("CIDRPool")]
    return [(pool, subnet) for pool, subnet in found if subnet is not None]


_STATES = "an SR-IOV node state"
RULES = (
    Rule("ipam-json", ERROR, "Pods of the network do not start", "the CNI specification", _ipam_json),
    Rule("host-local", ERROR, "Pods on different nodes get the same address", "whereabouts #70", _host_local),
    Rule(
        "pool-absent", ERROR, "Pods of the network do not start", "nv-ipam's documentation", _pool_absent, "a cluster"
    ),
    Rule("network-resource", ERROR, "The network has no resource", "the operator's webhook", _resource_name),
    Rule(
        "network-link-state",
        ERROR,
        "Pods have a port without a link",
        "network-operator #249, sriov-network-operator #307, #382",
        _link_state,
    ),
    Rule(
        "macvlan-infiniband",
        ERROR,
        "Pods of the network do not start",
        "network-operator #1017",
        _macvlan_on_infiniband,
        _STATES,
    ),
    Rule("network-mtu", ERROR, "Pods of the network do not start", "the kernel's macvlan driver", _mtu, _STATES),
    Rule(
        "pools-overlap", WARNING, "Pods of two networks get the same address", "nv-ipam's documentation", _pools_overlap
    ),
    Rule("pods-overlap", ERROR, "Pods cannot reach other pods", "Kubernetes' documentation", _pods_overlap, "Nodes"),
    Rule("pool-size", WARNING, "Further nodes get no addresses", "nv-ipam's documentation", _too_small),
    Rule("network-isolation", WARNING, "Pods elsewhere cannot use it", "Multus' documentation", _isolation),
    Rule("partition-keys", WARNING, "Pods of some networks do not start", "NVIDIA's documentation", _partitions),
)
