# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Which Node is which host: by machine id, unless the inventory names the Node."""

from __future__ import annotations

import ipaddress
from collections.abc import Collection, Iterable, Mapping
from typing import Any, NamedTuple

from ..._common.errors import ClusterError
from ..._fabric.operator.machines import same_machine, shared

# What distributions put on such Nodes: kubeadm and most others, RKE, MicroK8s; k0s has a label for all roles.
_CONTROL_PLANE = (
    *(f"node-role.kubernetes.io/{role}" for role in ("control-plane", "controlplane", "master", "etcd")),
    "node.kubernetes.io/microk8s-controlplane",
)
_K0S_ROLE, _K0S_CONTROL_PLANE = "node.k0sproject.io/role", "control-plane"
_NO_NODE = "If the host is not a node of this cluster, set host_reboot_drain: false for it"


class Host(NamedTuple):
    """A host as the inventory and the host itself describe it.

    ``node``: the name of its Node in the inventory. ``kubelet``: what shows that it runs a kubelet; None: not known.
    """

    name: str
    node: str = ""
    machine_id: str = ""
    hostname: str = ""
    addresses: Collection[str] = ()
    kubelet: Collection[str] | None = None

    @classmethod
    def of(cls, params: Mapping[str, Any]) -> Host:
        """Take the host from the options of node_drain."""
        told = params["identity"]
        own = (told["machine_id"], told["hostname"], told["addresses"], told["kubelet"])
        return cls(params["inventory_host"], params["node"], *own)


def machine_id(node: Mapping[str, Any]) -> str:
    """Return the machine id that a node's kubelet reported; empty before it did."""
    return str(((node.get("status") or {}).get("nodeInfo") or {}).get("machineID") or "")


def nodes_of_hosts(
    hosts: Mapping[str, Mapping[str, Any]], nodes: Iterable[Mapping[str, Any]]
) -> tuple[dict[str, str], dict[str, str]]:
    """Return host -> node name, and host -> what is wrong for the others.

    ``hosts``: name -> {machine_id, node}; ``node`` overrides.
    """
    known = [(node["metadata"]["name"], machine_id(node)) for node in nodes]
    names = {name for name, _id in known}
    same = same_machine({host: str(given.get("machine_id") or "") for host, given in hosts.items()}, known)
    found: dict[str, str] = {}
    wrong: dict[str, str] = {}
    for host, given in hosts.items():
        wanted, identity = given.get("node"), str(given.get("machine_id") or "")
        matches = ([wanted] if wanted in names else []) if wanted else same[host]
        if len(matches) == 1:
            found[host] = matches[0]
        else:
            wrong[host] = _explain(host, wanted, identity, matches=matches)
    return _unique(found, wrong)


def nodes_of(hosts: Iterable[str], nodes_by_host: Mapping[str, str]) -> list[str]:
    """Return the nodes of those hosts that have one."""
    return [nodes_by_host[host] for host in hosts if host in nodes_by_host]


def _explain(host: str, wanted: Any, identity: str, *, matches: list[str]) -> str:
    if wanted:
        return f"host {host}: there is no Node {wanted}; correct rdma_host.node_name"
    if matches:
        return (
            f"host {host}: Nodes {', '.join(sorted(matches))} have its machine id {identity}; give every machine"
            " its own /etc/machine-id, or name the Node in rdma_host.node_name"
        )
    return (
        f"host {host}: no Node has its machine id {identity or '(unknown)'}; join the host to the cluster,"
        " or name its Node in rdma_host.node_name"
    )


def _unique(found: dict[str, str], wrong: dict[str, str]) -> tuple[dict[str, str], dict[str, str]]:
    """Move hosts that share one Node from the found to the wrong."""
    for node, hosts in shared(found).items():
        for host in hosts:
            del found[host]
            wrong[host] = f"host {host}: hosts {', '.join(hosts)} are all Node {node}; each needs its own Node"
    return found, wrong


def node_of_host(host: Host, nodes: Collection[Mapping[str, Any]]) -> Mapping[str, Any] | None:
    """Return the Node of a host, None when the host is certainly not a node; ClusterError for anything in between.

    The Node is confirmed by a second property: machine ids are copied with disk images.
    """
    if not nodes:
        raise ClusterError(
            f"host {host.name}: the cluster has no Nodes at all. Check that the kubeconfig names the right cluster."
            f" {_NO_NODE}"
        )
    found, wrong = nodes_of_hosts({host.name: {"machine_id": host.machine_id, "node": host.node}}, nodes)
    if host.name in found:
        node = next(node for node in nodes if node["metadata"]["name"] == found[host.name])
        _confirm(host, node)
        return node
    if host.node or not host.machine_id or any(machine_id(node) == host.machine_id for node in nodes):
        raise ClusterError(f"{wrong[host.name]}. {_NO_NODE}")
    twins = [node["metadata"]["name"] for node in nodes if _same_name(host, node) or _same_address(host, node)]
    if twins:
        raise ClusterError(
            f"host {host.name}: Node {', '.join(twins)} has its hostname or address, but not its machine id"
            f" {host.machine_id}. Restart the kubelet so that it reports the machine id, or name the Node in"
            f" rdma_host.node_name. {_NO_NODE}"
        )
    if host.kubelet is None or host.kubelet:
        raise ClusterError(
            f"host {host.name}: no Node has its machine id {host.machine_id}, but {_kubelet(host)}. Check that the"
            f" kubeconfig names its cluster, or name its Node in rdma_host.node_name. {_NO_NODE}"
        )
    return None


def refuse_unconfigured(host: Host) -> None:
    """ClusterError when no cluster is configured and the host may be a node all the same."""
    if not host.node and host.kubelet is not None and not host.kubelet:
        return
    why = f"its Node is named in the inventory ({host.node})" if host.node else _kubelet(host)
    raise ClusterError(
        f"host {host.name}: no cluster is configured on the controller, but {why}. Set rdma_kubeconfig"
        " (option kubeconfig) to drain its Node, or host_reboot_drain: false to reboot the host without a drain"
    )


def _kubelet(host: Host) -> str:
    """Return what is known of the kubelet of a host that has one or may have one."""
    if host.kubelet is None:
        return "whether it runs a kubelet is unknown"
    return f"it runs or ran a kubelet ({'; '.join(host.kubelet)})"


def control_plane(node: Mapping[str, Any]) -> bool:
    """Whether a Node belongs to the control plane or to etcd."""
    labels = node["metadata"].get("labels") or {}
    return any(label in labels for label in _CONTROL_PLANE) or labels.get(_K0S_ROLE) == _K0S_CONTROL_PLANE


def _confirm(host: Host, node: Mapping[str, Any]) -> None:
    """ClusterError when nothing but the property by which the Node was found says that it is the host's."""
    by_name = bool(host.node) and bool(host.machine_id) and machine_id(node) == host.machine_id
    if by_name or _same_name(host, node) or _same_address(host, node):
        return
    name = node["metadata"]["name"]
    how = "is named in the inventory" if host.node else f"has its machine id {host.machine_id}"
    remedy = "Correct rdma_host.node_name" if host.node else "Give every machine its own /etc/machine-id"
    raise ClusterError(
        f"host {host.name}: Node {name} {how}, but nothing else matches. The Node has {_shown(_names(node))} and"
        f" {_shown(_addresses(node))}; the host has {_shown([host.hostname])} and {_shown(host.addresses)}. {remedy}"
    )


def _shown(values: Iterable[str]) -> str:
    return ", ".join(sorted(filter(None, values))) or "(none)"


def _reported(node: Mapping[str, Any], kinds: Collection[str]) -> set[str]:
    listed = (node.get("status") or {}).get("addresses") or []
    return {str(entry.get("address") or "") for entry in listed if entry.get("type") in kinds}


def _names(node: Mapping[str, Any]) -> set[str]:
    meta = node["metadata"]
    label = (meta.get("labels") or {}).get("kubernetes.io/hostname") or ""
    return {meta["name"], str(label), *_reported(node, ("Hostname", "InternalDNS"))} - {""}


def _addresses(node: Mapping[str, Any]) -> set[str]:
    return _reported(node, ("InternalIP",))


def _same_name(host: Host, node: Mapping[str, Any]) -> bool:
    """Whether a name of the Node is the host's; a name without a domain counts for any domain."""
    mine = host.hostname.lower().rstrip(".")
    for name in _names(node) if mine else ():
        other = name.lower().rstrip(".")
        short = "." not in mine or "." not in other
        if mine == other or (short and mine.split(".")[0] == other.split(".")[0]):
            return True
    return False


def _same_address(host: Host, node: Mapping[str, Any]) -> bool:
    return bool(_parsed(host.addresses) & _parsed(_addresses(node)))


def _parsed(texts: Iterable[str]) -> set[Any]:
    found = set()
    for text in texts:
        try:
            found.add(ipaddress.ip_address(text))
        except ValueError:
            continue
    return {address for address in found if not (address.is_loopback or address.is_link_local)}
