# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What is in the cluster, read once: version, nodes, operator, NFD, Multus, objects of our kinds."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from typing import Any
from urllib.parse import urlsplit, urlunsplit

from ..._fabric.intent import platforms
from ..._fabric.operator import attachments, gpu_operator
from ..._fabric.operator.common import made_by_us
from ..._fabric.operator.deployments import images, is_available, is_operator
from ..._fabric.operator.olm import version_of
from ..._fabric.operator.profiles import registry
from ..client.api import Api, ApiError
from ..client.kinds import NICS, collection, groups
from ..client.nodes import machine_id
from ..client.pods import ready_nodes

_LABELS = ("feature.node.kubernetes.io/pci-", "network.nvidia.com/", "nvidia.com/", "kubernetes.io/hostname")
# GPUs, and the resources of network models.
_RESOURCES = ("nvidia.com/",)
_NFD = "node-feature-discovery"


def version(api: Api) -> tuple[str, tuple[int, int] | None]:
    """Return the API server's version as it says it, and (major, minor) when that can be told."""
    found = api.document("/version") or {}
    digits = ["".join(c for c in str(found.get(key) or "") if c.isdigit()) for key in ("major", "minor")]
    numbers = (int(digits[0]), int(digits[1])) if all(digits) else None
    said = found.get("gitVersion")
    return said if isinstance(said, str) else "", numbers


def platform(api: Api) -> str:
    """Return which kind of cluster this is, by the API groups that it serves."""
    served = groups(api)
    found = [own.name for own in platforms.PLATFORMS.values() if own.group in served]
    return found[0] if found else platforms.DEFAULT


def cluster(api: Api, name: str) -> dict[str, str]:
    """Return how a report names the cluster: name, server and version, "" for what is unknown. No credentials."""
    try:
        found = version(api)[0]
    except ApiError as error:
        # An account can lack this permission; a server that does not answer ends the run.
        if not error.status:
            raise
        found = ""
    server = urlsplit(api.transport.server)
    place = server._replace(netloc=server.netloc.rpartition("@")[2], query="", fragment="")
    return {"name": name, "server": urlunsplit(place).rstrip("/"), "version": found}


def listed(api: Api, version_: str, plural: str, **query: Any) -> list[dict[str, Any]]:
    """Return the objects of a collection; none when we may not list it, which the access reviews tell."""
    try:
        return list(api.items(collection(version_, plural), **query))
    except ApiError as error:
        if error.status == 403:
            return []
        raise


def node_summary(node: Mapping[str, Any], ready: set[str], wanted: Collection[str] = ()) -> dict[str, Any]:
    """Return of a node what matters here, and the ``wanted`` labels: full nodes of a fleet are megabytes."""
    name, labels = node["metadata"]["name"], node["metadata"].get("labels") or {}
    allocatable = (node.get("status") or {}).get("allocatable") or {}
    resources = (*_RESOURCES, *registry.resource_prefixes())
    return {
        "name": name,
        "machine_id": machine_id(node),
        "labels": {key: value for key, value in sorted(labels.items()) if key.startswith(_LABELS) or key in wanted},
        "ready": name in ready,
        "allocatable": {key: value for key, value in sorted(allocatable.items()) if key.startswith(resources)},
    }


def summaries(nodes: list[dict[str, Any]], wanted: Collection[str] = ()) -> list[dict[str, Any]]:
    """Return the summary of every node, with these labels too."""
    ready = ready_nodes(nodes)
    return [node_summary(node, ready, wanted) for node in nodes]


def operators(deployments: Iterable[Mapping[str, Any]]) -> list[dict[str, Any]]:
    """Return the network operators that are installed: where, version, image, Helm release, and whether available."""
    found = []
    for item in filter(is_operator, deployments):
        labels, notes = (item["metadata"].get(key) or {} for key in ("labels", "annotations"))
        image = images(item)[0]
        tag = image.partition("@")[0].rpartition("/")[2].partition(":")[2]
        found.append(
            {
                **_place(item),
                # OLM names images by digest, and the release in a label.
                "version": (
                    labels.get("app.kubernetes.io/version") or version_of(labels.get("olm.owner", "")) or tag
                ).lstrip("v"),
                "image": image,
                "release": notes.get("meta.helm.sh/release-name") or "",
                "available": is_available(item),
            }
        )
    return found


def discoveries(deployments: Iterable[Mapping[str, Any]]) -> list[dict[str, Any]]:
    """Return the masters of Node Feature Discovery: namespace, name, image."""
    found = []
    for item in deployments:
        labels = item["metadata"].get("labels") or {}
        named = labels.get("app.kubernetes.io/name") == _NFD or _NFD in item["metadata"]["name"] + images(item)[0]
        role = labels.get("role") or ""
        if named and (role == "master" or "master" in item["metadata"]["name"]):
            found.append({**_place(item), "image": images(item)[0]})
    return found


def multuses(daemonsets: Iterable[Mapping[str, Any]]) -> list[dict[str, Any]]:
    """Return the DaemonSets that run Multus: namespace, name, image."""
    return [
        {**_place(item), "image": images(item)[0]}
        for item in daemonsets
        if any("multus" in image.rpartition("/")[2] for image in images(item))
    ]


def gpu_operators(api: Api, provider: str) -> list[dict[str, Any]]:
    """Return what ClusterPolicies of the GPU Operator state about RDMA; none where there are none, or to be seen."""
    return [gpu_operator.summary(item, provider) for item in listed(api, gpu_operator.API, gpu_operator.PLURAL)]


def _place(item: Mapping[str, Any]) -> dict[str, Any]:
    return {"namespace": item["metadata"]["namespace"], "name": item["metadata"]["name"]}


def objects(api: Api) -> dict[str, list[dict[str, Any]]]:
    """Return the objects of our kinds: name, namespace, and whether they were made by us."""
    return {
        kind: [
            {
                "name": item["metadata"]["name"],
                "namespace": item["metadata"].get("namespace"),
                "ours": made_by_us(item),
            }
            for item in listed(api, version_, plural)
        ]
        for kind, version_, plural in _our_kinds()
    }


def _our_kinds() -> list[tuple[str, str, str]]:
    """Return kind, apiVersion and plural of the objects of a plan, and of what the operator makes of them."""
    found = sorted(registry.kinds(), key=lambda kind: kind.namespaced)
    return [
        ("NicClusterPolicy", NICS, "nicclusterpolicies"),
        *((kind.kind, kind.api_version, kind.plural) for kind in found),
    ]


def workloads(pods: Iterable[Mapping[str, Any]]) -> list[dict[str, Any]]:
    """Return the pods of others that ask for RDMA resources or secondary networks: namespace, name, node."""
    found, prefixes = [], registry.resource_prefixes()
    for pod in pods:
        limits = [c.get("resources", {}).get("limits") or {} for c in pod["spec"].get("containers") or []]
        uses = any(key.startswith(prefixes) for limit in limits for key in limit)
        if (uses or attachments.NETWORKS in (pod["metadata"].get("annotations") or {})) and not made_by_us(pod):
            found.append({**_place(pod), "node": pod["spec"].get("nodeName")})
    return found
