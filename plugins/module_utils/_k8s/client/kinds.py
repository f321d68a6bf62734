# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Paths of kinds in the API: a table for ours, one request for the discovery of any other."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping
from typing import Any
from urllib.parse import quote

from ..._common.errors import InputError
from ..._fabric.operator.profiles import registry
from . import answers
from .api import Api, ApiError

NICS = "mellanox.com/v1alpha1"
POOLS = "nv-ipam.nvidia.com/v1alpha1"
# Kinds of the Operator Lifecycle Manager.
OLM = "operators.coreos.com"
DEFINITIONS = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions"

# (apiVersion, kind) -> (plural, namespaced), beside those of network models.
KNOWN: dict[tuple[str, str], tuple[str, bool]] = {
    ("v1", "ConfigMap"): ("configmaps", True),
    ("v1", "Namespace"): ("namespaces", False),
    ("v1", "Node"): ("nodes", False),
    ("v1", "Pod"): ("pods", True),
    ("v1", "Secret"): ("secrets", True),
    ("v1", "Service"): ("services", True),
    ("v1", "ServiceAccount"): ("serviceaccounts", True),
    ("apiextensions.k8s.io/v1", "CustomResourceDefinition"): ("customresourcedefinitions", False),
    ("apps/v1", "DaemonSet"): ("daemonsets", True),
    ("apps/v1", "Deployment"): ("deployments", True),
    ("batch/v1", "Job"): ("jobs", True),
    (f"{OLM}/v1", "OperatorGroup"): ("operatorgroups", True),
    (f"{OLM}/v1alpha1", "ClusterServiceVersion"): ("clusterserviceversions", True),
    (f"{OLM}/v1alpha1", "InstallPlan"): ("installplans", True),
    (f"{OLM}/v1alpha1", "Subscription"): ("subscriptions", True),
    ("rbac.authorization.k8s.io/v1", "RoleBinding"): ("rolebindings", True),
    (NICS, "NicClusterPolicy"): ("nicclusterpolicies", False),
}


def collection(api_version: str, plural: str, namespace: str | None = None) -> str:
    """Return the path of a collection, in one namespace or in all."""
    base = "/api/v1" if api_version == "v1" else f"/apis/{api_version}"
    return f"{base}/namespaces/{quote(namespace)}/{plural}" if namespace else f"{base}/{plural}"


def path_of(api: Api, item: Mapping[str, Any]) -> str:
    """Return the path of an object; InputError when it has no name, kind or (where needed) namespace."""
    meta = item.get("metadata") or {}
    version, kind, name = item.get("apiVersion"), item.get("kind"), meta.get("name")
    if not (version and kind and name):
        raise InputError(f"object {label(item)}: apiVersion, kind and metadata.name are needed")
    plural, namespaced = _resource(api, version, kind)
    namespace = meta.get("namespace")
    if namespaced and not namespace:
        raise InputError(f"object {label(item)}: {kind} needs metadata.namespace")
    return f"{collection(version, plural, namespace if namespaced else None)}/{quote(name)}"


def _resource(api: Api, version: str, kind: str) -> tuple[str, bool]:
    for own in registry.kinds():
        if (own.api_version, own.kind) == (version, kind):
            return own.plural, own.namespaced
    if (version, kind) not in KNOWN:
        served = api.document("/api/v1" if version == "v1" else f"/apis/{version}") or {}
        for entry in served.get("resources") or []:
            if "/" not in entry["name"]:
                KNOWN[version, entry["kind"]] = (entry["name"], entry["namespaced"])
    if (version, kind) not in KNOWN:
        raise InputError(f"kind {kind} of {version} is not served by the cluster and not known here")
    return KNOWN[version, kind]


def served(api: Api, groups: Collection[str]) -> Iterator[tuple[str, str, str]]:
    """Yield apiVersion, plural and kind of what can be in a namespace and is served of API ``groups``."""
    for group in _typed(api, "/apis", "APIGroupList").get("groups") or []:
        for version in group["versions"] if group["name"] in groups else []:
            name = f"{group['name']}/{version['version']}"
            # A group whose definitions have just been removed is not served any more.
            for entry in _typed(api, f"/apis/{name}", "APIResourceList").get("resources") or []:
                if entry["namespaced"] and "/" not in entry["name"]:
                    yield name, entry["name"], entry["kind"]


def groups(api: Api) -> set[str]:
    """Return the names of the API groups that the cluster serves."""
    return {str(group["name"]) for group in _typed(api, "/apis", "APIGroupList").get("groups") or []}


def _typed(api: Api, path: str, kind: str) -> dict[str, Any]:
    """Return the document of a kind at ``path``, empty when its custom resource is not served."""
    answer = api.document(path)
    if answer is None and answers.custom(path):
        return {}
    if answer is None or answer.get("kind") != kind:
        found = f"{'nothing' if answer is None else 'another document'} instead of {kind}"
        raise ApiError(answers.foreign("GET", path, api.transport.server, found=found))
    return answer


def label(item: Mapping[str, Any]) -> str:
    """Return ``Kind namespace/name`` as messages and diffs name an object."""
    meta = item.get("metadata") or {}
    name = "/".join(part for part in (meta.get("namespace"), meta.get("name")) if part)
    return f"{item.get('kind', '?')} {name or '?'}"
