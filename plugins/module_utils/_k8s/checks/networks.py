# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Whether the subnets of rails overlap networks of the cluster: those of pods, of services, and addresses of Nodes."""

from __future__ import annotations

import ipaddress
from collections.abc import Collection, Iterator, Mapping, Sequence
from typing import Any, NamedTuple, Union

from ..._common.reader import some
from ..._fabric.operator.pools import parsed_network
from ..client.api import Api, ApiError
from ..client.kinds import collection
from . import survey

_Network = Union[ipaddress.IPv4Network, ipaddress.IPv6Network]
_CURE = "Choose another rdma_fabric.supernet, or other subnets of the rails"
# Nodes whose pods are read: enough to see whether a network is in use.
_MOST_NODES = 8


class Overlaps(NamedTuple):
    """What stops a run, and what may be wrong."""

    problems: list[str]
    warnings: list[str]


class _Subnet(NamedTuple):
    """A subnet of a rail, and what of it is reserved."""

    rail: str
    network: _Network
    reserved: Sequence[Sequence[str]]

    def overlaps(self, other: _Network) -> bool:
        """Whether the two have addresses in common."""
        return other.version == self.network.version and self.network.overlaps(other)


def overlaps(
    api: Api, params: Mapping[str, Any], nodes: Sequence[Mapping[str, Any]], *, by_host: Mapping[str, str]
) -> Overlaps:
    """Return each overlap; ``params`` has the ``rails`` and ``hosts`` of the plan, ``by_host`` is host -> its Node.

    What cannot be read gives none, and neither does an address of a Node that the plan gives to its host.
    """
    subnets = list(_subnets(params["rails"]))
    found = Overlaps([], [])
    if not subnets:
        return found
    services, plugins = _services(api), _of_plugins(api)
    planned = _planned(params["hosts"], by_host)
    for own in subnets:
        text = f"the subnet {own.network} of {own.rail} overlaps"
        given = [f"{network}, {where}" for network, where in plugins if own.overlaps(network)]
        if given:
            found.problems.append(f"{text} networks of pods: {some(given)}. {_CURE}")
        elif unknown := _by_nodes(nodes, own):
            pods = _pods_within(api, unknown)
            listed = some([f"{network} of Node {name}" for name, network in unknown])
            if pods:
                found.problems.append(f"{text} networks of pods: {listed}. {_CURE}")
            elif all(network.version != own.network.version for network, _where in plugins):
                # A plugin that gives pods other addresses does without those of Nodes.
                found.warnings.append(
                    f"{text} spec.podCIDRs of Nodes: {listed}. No pod of these Nodes was found with an address of them,"
                    f" so the cluster's network may not use them. If it does, choose another rdma_fabric.supernet"
                )
        for service, where in services.items():
            if own.overlaps(service):
                found.problems.append(f"{text} {service}, {where}. {_CURE}")
        held = list(_held(nodes, own, planned))
        if held:
            found.problems.append(
                f"{text} addresses of Nodes, which are not those of rails: {some(held)}. {_CURE}, or list these"
                " addresses in rdma_fabric.reserved"
            )
    return found


def _subnets(rails: Sequence[Mapping[str, Any]]) -> Iterator[_Subnet]:
    for rail in rails:
        for own in (rail, rail.get("ipv6") or {}):
            network = parsed_network(own.get("subnet"))
            if network:
                yield _Subnet(rail["name"], network, own.get("reserved") or ())


def _planned(hosts: Mapping[str, Mapping[str, Any]], by_host: Mapping[str, str]) -> set[tuple[str, str]]:
    """Return Node and address for each address of a rail."""
    return {
        (by_host[name], _address(own.get("address")))
        for name, host in hosts.items()
        if name in by_host
        for rail in host.get("rails") or ()
        for own in (rail, rail.get("ipv6") or {})
    }


def _held(nodes: Sequence[Mapping[str, Any]], subnet: _Subnet, planned: Collection[tuple[str, str]]) -> Iterator[str]:
    for node, address in _addresses(nodes):
        found = parsed_network(address)
        if not found or not subnet.overlaps(found) or (node, address) in planned:
            continue
        if not any(_is_between(address, span) for span in subnet.reserved):
            yield f"{address} of Node {node}"


def _of_plugins(api: Api) -> list[tuple[_Network, str]]:
    """Return the networks of pods in objects of Calico and Cilium, which do without spec.podCIDRs of Nodes."""
    pools = survey.listed(api, "crd.projectcalico.org/v1", "ippools")
    texts = [
        (spec.get("cidr"), f"IPPool {item['metadata']['name']} of Calico")
        for item in pools
        for spec in [item.get("spec") or {}]
        if not spec.get("disabled")
    ]
    for item in survey.listed(api, "cilium.io/v2", "ciliumnodes"):
        cidrs = ((item.get("spec") or {}).get("ipam") or {}).get("podCIDRs") or ()
        texts += [(cidr, f"CiliumNode {item['metadata']['name']}") for cidr in cidrs]
    return [(network, where) for text, where in texts for network in [parsed_network(text)] if network]


def _by_nodes(nodes: Sequence[Mapping[str, Any]], subnet: _Subnet) -> list[tuple[str, _Network]]:
    """Return Node and network of pods that overlap."""
    return [
        (node["metadata"]["name"], pods)
        for node in nodes
        for text in (node.get("spec") or {}).get("podCIDRs") or ()
        for pods in [parsed_network(text)]
        if pods and subnet.overlaps(pods)
    ]


def _pods_within(api: Api, networks: Sequence[tuple[str, _Network]]) -> bool:
    """Return whether a pod of some Nodes has an address of the Node's network of pods."""
    for node, network in networks[:_MOST_NODES]:
        for pod in survey.listed(api, "v1", "pods", fieldSelector=f"spec.nodeName={node}"):
            for item in (pod.get("status") or {}).get("podIPs") or ():
                own = parsed_network(item.get("ip"))
                if own and own.version == network.version and network.overlaps(own):
                    return True
    return False


def _services(api: Api) -> dict[_Network, str]:
    """Return the networks of services; older clusters show one address of them only."""
    try:
        ranges = list(api.items(collection("networking.k8s.io/v1", "servicecidrs")))
    except ApiError as error:
        # Kubernetes has these objects since 1.33, and an account may be allowed less than to list them.
        if error.status not in (403, 404):
            raise
        ranges = []
    texts = [(cidr, item["metadata"]["name"]) for item in ranges for cidr in item.get("spec", {}).get("cidrs") or ()]
    found = {own: f"ServiceCIDR {name}" for cidr, name in texts for own in [parsed_network(cidr)] if own}
    return found or _kubernetes(api)


def _kubernetes(api: Api) -> dict[_Network, str]:
    try:
        service = api.get(f"{collection('v1', 'services', 'default')}/kubernetes")
    except ApiError as error:
        if error.status != 403:
            raise
        service = None
    texts = ((service or {}).get("spec") or {}).get("clusterIPs") or ()
    return {own: "the address of Service kubernetes" for text in texts for own in [parsed_network(text)] if own}


def _addresses(nodes: Sequence[Mapping[str, Any]]) -> Iterator[tuple[str, str]]:
    for node in nodes:
        for item in (node.get("status") or {}).get("addresses") or ():
            if item.get("type") in ("InternalIP", "ExternalIP"):
                yield node["metadata"]["name"], str(item.get("address"))


def _is_between(address: str, span: Sequence[str]) -> bool:
    found, first, last = (ipaddress.ip_address(text) for text in (address, *span))
    return found.version == first.version and int(first) <= int(found) <= int(last)


def _address(text: Any) -> str:
    return str(text or "").partition("/")[0]
