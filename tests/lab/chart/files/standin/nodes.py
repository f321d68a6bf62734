# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What the operator's components do to nodes and pools. Pure."""

from __future__ import annotations

import ipaddress
from collections.abc import Collection
from typing import Any

from .components import NIC_LABEL, WAIT_LABEL, Object

CONFIGURATION_LABEL = "network.nvidia.com/operator.nic-configuration.wait"
UPGRADE_LABEL = "nvidia.com/ofed-driver-upgrade-state"


def is_nic_node(node: Object) -> bool:
    """Whether NFD, or whoever stands in for it, says that the node has a NIC of the vendor."""
    return bool((node["metadata"].get("labels") or {}).get(NIC_LABEL) == "true")


def label_changes(node: Object, waiting: bool, driver: bool) -> dict[str, str | None]:
    """The operator's own labels that a node lacks or has too many: {label: value or None to remove}."""
    nic = is_nic_node(node)
    wanted = {
        WAIT_LABEL: ("true" if waiting else "false") if nic else None,
        CONFIGURATION_LABEL: "false" if nic else None,
        UPGRADE_LABEL: "upgrade-done" if nic and driver else None,
    }
    labels = node["metadata"].get("labels") or {}
    return {key: value for key, value in wanted.items() if labels.get(key) != value}


def capacity_patch(node: Object, resources: dict[str, int], before: Collection[str] = ()) -> list[Object]:
    """JSON patch of a Node's status, so that it announces these extended resources.

    It is what a kubelet writes for its device plugins, which do not run here. before: what they announced until now;
    what they do no more goes to 0, as a kubelet shows it.
    """
    found = (node.get("status") or {}).get("capacity") or {}
    wanted = {key: "0" for key in found if key in before}
    wanted.update({key: str(count) for key, count in resources.items()})
    return [
        {"op": "add", "path": f"/status/{part}/{key.replace('/', '~1')}", "value": value}
        for key, value in sorted(wanted.items())
        if found.get(key) != value
        for part in ("capacity", "allocatable")
    ]


def allocations(pool: Object, nodes: list[Object]) -> list[Object]:
    """Blocks of perNodeBlockSize, one for each matching node: status.allocations of an IPPool.

    They start behind the network address and end before the broadcast address; a node keeps its block, the
    next one gets the first free, and who finds none gets none (no error is shown).
    """
    spec = pool["spec"]
    names = [one["metadata"]["name"] for one in nodes if _matches(spec, one)]
    subnet, size = ipaddress.ip_network(spec["subnet"], strict=False), int(spec["perNodeBlockSize"])
    start, end = int(subnet.network_address) + 1, int(subnet.broadcast_address)
    count = (end - start) // size
    old = (pool.get("status") or {}).get("allocations") or []
    blocks = {one["nodeName"]: _block(one, start, size, count) for one in old if one["nodeName"] in names}
    blocks = {name: block for name, block in blocks.items() if block is not None}
    for name in sorted(names):
        free = next((block for block in range(count) if block not in blocks.values()), None)
        if name not in blocks and free is not None:
            blocks[name] = free
    kind = ipaddress.IPv4Address if subnet.version == 4 else ipaddress.IPv6Address
    return [
        {
            "nodeName": name,
            "startIP": str(kind(start + block * size)),
            "endIP": str(kind(start + block * size + size - 1)),
        }
        for name, block in sorted(blocks.items(), key=lambda item: item[1] or 0)
        if block is not None
    ]


def prefixes(pool: Object, nodes: list[Object]) -> list[Object]:
    """A network of perNodeNetworkPrefix for each matching node: status.allocations of a CIDRPool.

    After the vendor's CRD, not recorded. Assumed: they begin with the first network of the pool; a node keeps its
    network, the next one gets the first free, and who finds none gets none. A static allocation is the node's own.
    """
    spec = pool["spec"]
    names = sorted(one["metadata"]["name"] for one in nodes if _matches(spec, one))
    whole = ipaddress.ip_network(spec["cidr"], strict=False)
    size = int(spec["perNodeNetworkPrefix"])
    fixed = {one.get("nodeName"): one["prefix"] for one in spec.get("staticAllocations") or []}
    old = (pool.get("status") or {}).get("allocations") or []
    kept = {one["nodeName"]: one["prefix"] for one in old if _fits(one["prefix"], whole, size)}
    found = {name: fixed.get(name) or kept.get(name) for name in names}
    taken = {*fixed.values(), *found.values()}
    free = (str(one) for one in whole.subnets(new_prefix=size) if str(one) not in taken)
    for name in names:
        found[name] = found[name] or next(free, None)
    return [_network(name, prefix, spec.get("gatewayIndex")) for name, prefix in found.items() if prefix]


def _fits(prefix: str, whole: Any, size: int) -> bool:
    one = ipaddress.ip_network(prefix)
    return one.version == whole.version and one.prefixlen == size and one.subnet_of(whole)


def _network(name: str, prefix: str, gateway: int | None) -> Object:
    found = {"nodeName": name, "prefix": prefix}
    if gateway is not None:
        found["gateway"] = str(ipaddress.ip_network(prefix)[gateway])
    return found


def _block(allocation: Object, start: int, size: int, count: int) -> int | None:
    """The number of an allocated block, None when it does not fit the pool (any more)."""
    first = int(ipaddress.ip_address(allocation["startIP"])) - start
    last = int(ipaddress.ip_address(allocation["endIP"])) - start
    if first % size or last - first != size - 1 or not 0 <= first // size < count:
        return None
    return first // size


def _matches(spec: Object, node: Object) -> bool:
    terms = (spec.get("nodeSelector") or {}).get("nodeSelectorTerms")
    if terms is None:
        return True
    return any(_term(term, node) for term in terms)


def _term(term: Object, node: Object) -> bool:
    labels = node["metadata"].get("labels") or {}
    fields = {"metadata.name": node["metadata"]["name"]}
    wanted = [(labels, one) for one in term.get("matchExpressions") or []]
    wanted += [(fields, one) for one in term.get("matchFields") or []]
    return bool(wanted) and all(_expression(one, values) for values, one in wanted)


def _expression(expression: Object, values: dict[str, Any]) -> bool:
    found, listed = values.get(expression["key"]), expression.get("values") or []
    answers = {
        "In": found in listed,
        "NotIn": found not in listed,
        "Exists": found is not None,
        "DoesNotExist": found is None,
    }
    return answers.get(expression["operator"], False)
