# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Whether the subnets of rails overlap networks of the cluster: those of pods, of services, and addresses of Nodes."""

from __future__ import annotations

import ipaddress
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Union

from ..._common.reader import some
from ..._fabric.operator.pools import parsed_network
from ..client.api import Api, ApiError
from ..client.kinds import collection

_Network = Union[ipaddress.IPv4Network, ipaddress.IPv6Network]
_CURE = "Choose another rdma_fabric.supernet, or other subnets of the rails"


def problems(api: Api, params: Mapping[str, Any], nodes: Sequence[Mapping[str, Any]]) -> Iterator[str]:
    """Yield a problem for each overlap; ``params`` has the ``rails`` and ``hosts`` of the plan.

    What cannot be read gives none, and neither does an address of a Node that is that of a rail.
    """
    subnets = {
        rail["name"]: found for rail in params["rails"] for found in [parsed_network(rail.get("subnet"))] if found
    }
    if not subnets:
        return
    own = {_address(rail.get("address")) for host in params["hosts"].values() for rail in host.get("rails") or ()}
    reserved = {rail["name"]: rail.get("reserved") or () for rail in params["rails"]}
    services = _services(api)
    for name, subnet in subnets.items():
        text = f"the subnet {subnet} of {name} overlaps"
        pods = _of_pods(nodes, subnet)
        if pods:
            yield f"{text} networks of pods: {some(pods)}. {_CURE}"
        for service, where in services.items():
            if service.version == subnet.version and service.overlaps(subnet):
                yield f"{text} {service}, {where}. {_CURE}"
        held = [
            f"{address} of Node {node}"
            for node, address in _addresses(nodes)
            if _is_in(address, subnet, own) and not any(_is_between(address, span) for span in reserved[name])
        ]
        if held:
            yield (
                f"{text} addresses of Nodes, which are not those of rails: {some(held)}. {_CURE}, or list these"
                " addresses in rdma_fabric.reserved"
            )


def _of_pods(nodes: Sequence[Mapping[str, Any]], subnet: _Network) -> list[str]:
    found = []
    for node in nodes:
        for text in (node.get("spec") or {}).get("podCIDRs") or ():
            pods = parsed_network(text)
            if pods and pods.version == subnet.version and pods.overlaps(subnet):
                found.append(f"{pods} of Node {node['metadata']['name']}")
    return found


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


def _is_in(address: str, subnet: _Network, own: set[str]) -> bool:
    found = parsed_network(address)
    return found is not None and found.version == subnet.version and found.overlaps(subnet) and address not in own


def _is_between(address: str, span: Sequence[str]) -> bool:
    found, first, last = (ipaddress.ip_address(text) for text in (address, *span))
    return found.version == first.version and int(first) <= int(found) <= int(last)


def _address(text: Any) -> str:
    return str(text or "").partition("/")[0]
