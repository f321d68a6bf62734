# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Which Node is which host: by machine id, unless the inventory names the Node."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any


def machine_id(node: Mapping[str, Any]) -> str:
    """Return the machine id that a node's kubelet reported; empty before it did."""
    return str(((node.get("status") or {}).get("nodeInfo") or {}).get("machineID") or "")


def nodes_of_hosts(
    hosts: Mapping[str, Mapping[str, Any]], nodes: Iterable[Mapping[str, Any]]
) -> tuple[dict[str, str], dict[str, str]]:
    """Return host -> node name, and host -> what is wrong for the others.

    ``hosts``: name -> {machine_id, node}; ``node`` overrides.
    """
    by_id: dict[str, list[str]] = {}
    for node in nodes:
        by_id.setdefault(machine_id(node), []).append(node["metadata"]["name"])
    names = {name for same in by_id.values() for name in same}
    found: dict[str, str] = {}
    wrong: dict[str, str] = {}
    for host, given in hosts.items():
        wanted, identity = given.get("node"), str(given.get("machine_id") or "")
        matches = ([wanted] if wanted in names else []) if wanted else by_id.get(identity, []) if identity else []
        if len(matches) == 1:
            found[host] = matches[0]
        else:
            wrong[host] = _explain(host, wanted, identity, matches)
    return _unique(found, wrong)


def _explain(host: str, wanted: Any, identity: str, matches: list[str]) -> str:
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
    hosts_of: dict[str, list[str]] = {}
    for host, node in found.items():
        hosts_of.setdefault(node, []).append(host)
    for node, hosts in hosts_of.items():
        if len(hosts) > 1:
            for host in hosts:
                del found[host]
                wrong[host] = f"host {host}: hosts {', '.join(hosts)} are all Node {node}; each needs its own Node"
    return found, wrong
