# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What an earlier run applied and the plan does not have any more: objects of network models that carry our mark.

They go before anything is applied: a network of another kind may make the same NetworkAttachmentDefinition.
"""

from __future__ import annotations

import json
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from ..._common.reader import some
from ..._fabric.operator import attachments
from ..._fabric.operator.common import MANAGED_BY, made_by_us
from ..._fabric.operator.pools import KINDS as POOL_KINDS
from ..._fabric.operator.profiles import registry
from ..._fabric.operator.profiles.profile import Kind
from ..client.api import Api, ApiError
from ..client.kinds import collection, label, path_of
from .ownership import owned_fields

_OURS = ",".join(f"{key}={value}" for key, value in MANAGED_BY.items())
_DONE = ("Succeeded", "Failed")


@dataclass(frozen=True)
class Places:
    """Where objects of network models are: ``step`` that applies them, namespaces of the operators and of networks."""

    step: str
    operator: str
    networks: str
    sriov: str


@dataclass(frozen=True)
class Found:
    """``items``: objects to remove; ``unseen``: what the account may not list or delete, so something may be left."""

    items: tuple[dict[str, Any], ...]
    unseen: tuple[str, ...]


def find(api: Api, places: Places, planned: Sequence[Mapping[str, Any]]) -> Found:
    """Return the objects with our mark that are not among those ``planned``; one list for each kind."""
    keep = {_key(item) for item in planned}
    items: list[dict[str, Any]] = []
    unseen: list[str] = []
    for kind in registry.kinds():
        # Where one namespace holds all operators, objects that only the platform makes are not changed.
        if kind.step != places.step or (kind.patched and places.sriov == places.operator):
            continue
        inside = places.networks if kind.for_pods else places.sriov if kind.by_sriov else places.operator
        try:
            if kind.for_pods:
                found, refused = _everywhere(api, kind, inside)
            else:
                found, refused = list(_of_kind(api, kind, inside if kind.namespaced else None)), []
        except ApiError as error:
            if error.status != 403:
                raise
            found, refused = [], [f"list {kind.kind}"]
        items += [item for item in found if _key(item) not in keep]
        unseen += refused
    return Found(tuple(items), tuple(unseen))


def _everywhere(api: Api, kind: Kind, inside: str) -> tuple[list[dict[str, Any]], list[str]]:
    """Return the objects of all namespaces, since that of the networks can have changed, and what is refused.

    In other namespaces than ``inside``, the label alone is not enough: a copy of an object by another manager has it.
    """
    try:
        every = list(_of_kind(api, kind, None))
    except ApiError as error:
        if error.status != 403:
            raise
        return list(_of_kind(api, kind, inside)), [f"list {kind.kind} outside of namespace {inside}"]
    former = [item for item in every if item["metadata"]["namespace"] != inside and owned_fields(item)]
    kept = [item for item in former if not _deletable(api, item)]
    found = [item for item in every if item["metadata"]["namespace"] == inside]
    return [*found, *(item for item in former if item not in kept)], [f"delete {label(item)}" for item in kept]


def _deletable(api: Api, item: Mapping[str, Any]) -> bool:
    try:
        api.call("DELETE", path_of(api, item), {"dryRun": "All"})
    except ApiError as error:
        return error.status != 403
    return True


def _of_kind(api: Api, kind: Kind, space: str | None) -> Iterator[dict[str, Any]]:
    marked = {} if kind.patched else {"labelSelector": _OURS}
    for item in api.items(collection(kind.api_version, kind.plural, space), **marked):
        # The operator copies labels to what it makes of our objects; that goes with them.
        made = made_by_us(item) and not item["metadata"].get("ownerReferences")
        own = bool(owned_fields(item)) if kind.patched else made
        if own and not item["metadata"].get("deletionTimestamp"):
            yield {**item, "apiVersion": kind.api_version, "kind": kind.kind}


def _key(item: Mapping[str, Any]) -> tuple[Any, ...]:
    meta = item.get("metadata") or {}
    return item.get("apiVersion"), item.get("kind"), meta.get("namespace"), meta.get("name")


def made_of(items: Sequence[Mapping[str, Any]]) -> list[dict[str, Any]]:
    """Return the NetworkAttachmentDefinitions that the operator made of networks, and removes with them."""
    return [
        {"apiVersion": attachments.API, "kind": attachments.KIND, "metadata": {"name": name, "namespace": space}}
        for item in items
        if item["kind"] != attachments.KIND
        for space, name in _networks([item])
    ]


def problems(api: Api, items: Sequence[Mapping[str, Any]]) -> list[str]:
    """Return why objects cannot be removed: pods use them; after one list of pods when there is something to remove."""
    networks = {label(item): set(_networks([item])) for item in items}
    resources = {label(item): _resource(item) for item in items}
    if not (any(networks.values()) or any(resources.values())):
        return []
    found: dict[str, list[str]] = {}
    try:
        every = list(api.items(collection("v1", "pods")))
    except ApiError as error:
        if error.status != 403:
            raise
        return [
            f"{name}: an earlier run applied it, the plan does not have it, and whether pods use it cannot be read"
            f" ({error}). Use an account with permission to list pods"
            for name in networks
            if networks[name] or resources[name]
        ]
    for pod in every:
        meta = pod["metadata"]
        if (pod.get("status") or {}).get("phase") in _DONE or made_by_us(pod):
            continue
        used, asked = _attached(pod), _requested(pod)
        # What a claim holds is not in the pod. Only one in a secondary network can have a VF by it.
        claims = bool(used and (pod.get("spec") or {}).get("resourceClaims"))
        for name in networks:
            if networks[name] & used or (resources[name] and (claims or resources[name] in asked)):
                found.setdefault(name, []).append(f"{meta['namespace']}/{meta['name']}")
    return [
        f"{name}: an earlier run applied it, the plan does not have it, and these pods use it: {some(pods)}. Remove"
        " these workloads and rerun the playbook, or restore the former values of rdma_fabric"
        for name, pods in found.items()
    ]


def _networks(items: Sequence[Mapping[str, Any]]) -> Iterator[tuple[str, str]]:
    """Yield (namespace, name) of the definitions that stand for networks."""
    attaching = {kind.kind for kind in registry.kinds() if kind.attaches}
    for item in items:
        meta = item["metadata"]
        if item["kind"] in attaching:
            yield (
                str((item.get("spec") or {}).get("networkNamespace") or meta.get("namespace") or "default"),
                meta["name"],
            )
        elif item["kind"] == attachments.KIND:
            yield str(meta.get("namespace")), meta["name"]


def _resource(item: Mapping[str, Any]) -> str:
    """Return the name that a policy gives its resource, without the prefix; pools and networks have none."""
    if item["kind"] in POOL_KINDS or list(_networks([item])):
        return ""
    return str((item.get("spec") or {}).get("resourceName") or "")


def _requested(pod: Mapping[str, Any]) -> Collection[str]:
    containers = (pod.get("spec") or {}).get("containers") or []
    limits = [(one.get("resources") or {}).get("limits") or {} for one in containers]
    return {key.rpartition("/")[2] for limit in limits for key in limit}


def _attached(pod: Mapping[str, Any]) -> set[tuple[str, str]]:
    """Return (namespace, name) of the definitions that a pod names; both forms of the annotation."""
    meta = pod["metadata"]
    text = str((meta.get("annotations") or {}).get(attachments.NETWORKS) or "").strip()
    if text.startswith("["):
        try:
            entries = [one for one in json.loads(text) if isinstance(one, Mapping)]
        except ValueError:
            return set()
        return {(str(one.get("namespace") or meta["namespace"]), str(one.get("name"))) for one in entries}
    names = [one.strip().partition("@")[0] for one in text.split(",") if one.strip()]
    pairs = [one.rpartition("/") for one in names]
    return {(space or meta["namespace"], name) for space, _slash, name in pairs}
