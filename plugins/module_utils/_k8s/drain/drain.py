# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Empty a Node before its host reboots.

Pods go by the eviction API, so PodDisruptionBudgets hold. One that says no is asked again until the time is
over: a budget that lets one pod go at a time needs that.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any, NamedTuple
from urllib.parse import quote

from ..._common.change import Change
from ..._common.errors import ClusterError, ConflictError, FabricError
from ..checks.access import Permission, denied, grouped
from ..client import answers
from ..client.api import Api, ApiError
from ..client.kinds import collection
from ..client.poll import Clock, ticks
from . import cordon

POLL = 5.0
# Answers that may be another one later: no connection, a budget that says no, a server that is not well.
_LATER = frozenset((0, 429, 500, 502, 503, 504))
_MIRROR = "kubernetes.io/config.mirror"
_PERMISSIONS = [
    Permission("patch", "", "nodes"),
    Permission("list", "", "pods"),
    Permission("create", "", "pods/eviction"),
]


class Rules(NamedTuple):
    """What may be evicted, beside what a controller makes again; times in seconds (``grace`` None: each pod's own)."""

    unmanaged: bool = False
    local_storage: bool = False
    timeout: float = 600.0
    grace: int | None = None


class Pods(NamedTuple):
    """The pods of a node: those to evict, those that may stay, and what forbids a drain."""

    evict: tuple[Mapping[str, Any], ...]
    stay: tuple[str, ...]
    problems: tuple[str, ...]


def empty(
    api: Api, node: cordon.Node, rules: Rules, *, reason: str, check: bool, clock: Clock
) -> tuple[Change, list[str]]:
    """Refuse, cordon, drain, in this order: what is refused leaves the Node untouched."""
    name = node["metadata"]["name"]
    check_permissions(api)
    cordon.check_control_plane(api, node)
    pods = pods_of(api, name, rules)
    refuse(name, pods)
    before = {**cordon.view(node), "pods": sorted(name_of(pod) for pod in pods.evict)}
    if check:
        return Change(before, {**cordon.closed(node, reason), "pods": []}), before["pods"]
    _found, after = cordon.change(api, name, lambda live: cordon.closed(live, reason))
    try:
        # Of two nodes that were cordoned in the same moment each sees the other now.
        cordon.check_control_plane(api, node)
    except FabricError:
        cordon.change(api, name, cordon.opened)
        raise
    return Change(before, {**after, "pods": []}), drain(api, name, rules, clock=clock)


def check_permissions(api: Api) -> None:
    """ClusterError names what a drain needs and we may not do, before anything is cordoned."""
    missing = denied(api, _PERMISSIONS)
    if missing:
        raise ClusterError(f"permissions are missing: {grouped(missing)}; use an account that has them")


def pods_of(api: Api, node: str, rules: Rules) -> Pods:
    """Read the pods of a node and sort them.

    Pods of other nodes, which a proxy that drops the selector returns, are none of them.
    """
    path = collection("v1", "pods")
    found = api.items(path, fieldSelector=f"spec.nodeName={node}")
    own = [pod for pod in found if (pod.get("spec") or {}).get("nodeName") == node]
    for pod in own:
        if not all(isinstance(pod["metadata"].get(key), str) for key in ("namespace", "uid")):
            name = answers.quoted(pod["metadata"]["name"])
            raise ClusterError(
                f"the pod {name} of Node {node} has no namespace or uid in the answer to GET {path}."
                " Check the server, path and proxy of the kubeconfig"
            )
    return sort_pods(own, rules)


def sort_pods(pods: Iterable[Mapping[str, Any]], rules: Rules) -> Pods:
    """Sort pods into those to evict and those that stay: of DaemonSets, of the kubelet itself, and ended ones."""
    evict, stay, problems = [], [], []
    for pod in pods:
        if _stays(pod):
            stay.append(name_of(pod))
            continue
        evict.append(pod)
        # One that is going already needs nobody's consent.
        if not pod["metadata"].get("deletionTimestamp"):
            problems += _problems(pod, rules)
    return Pods(tuple(evict), tuple(stay), tuple(problems))


def refuse(node: str, pods: Pods) -> None:
    """ConflictError with every pod that must not be evicted without consent."""
    if pods.problems:
        raise ConflictError(f"Node {node} cannot be drained: {'; '.join(pods.problems)}")


def drain(api: Api, node: str, rules: Rules, *, clock: Clock) -> list[str]:
    """Evict until only pods that may stay are left; return the names of those that went.

    ClusterError at the end of the time says which pods are left and what holds each. ConflictError
    when a pod came that must not be evicted.
    """
    asked: dict[str, str] = {}
    held: dict[str, str] = {}
    for _elapsed in ticks(rules.timeout, POLL, clock):
        pods = pods_of(api, node, rules)
        refuse(node, pods)
        held = {pod["metadata"]["uid"]: _evict(api, pod, rules.grace) for pod in pods.evict}
        asked.update({pod["metadata"]["uid"]: name_of(pod) for pod in pods.evict})
        if not held:
            return sorted(asked.values())
    left = "; ".join(f"pod {asked[uid]}: {why}" for uid, why in held.items())
    raise ClusterError(f"Node {node} is not empty after {rules.timeout:.0f} s: {left}")


def name_of(pod: Mapping[str, Any]) -> str:
    """Return ``namespace/name``."""
    return f"{pod['metadata'].get('namespace')}/{pod['metadata']['name']}"


def _stays(pod: Mapping[str, Any]) -> bool:
    meta = pod["metadata"]
    ended = (pod.get("status") or {}).get("phase") in ("Succeeded", "Failed")
    return ended or _MIRROR in (meta.get("annotations") or {}) or _controller(pod) == "DaemonSet"


def _controller(pod: Mapping[str, Any]) -> str:
    owners = pod["metadata"].get("ownerReferences") or []
    return next((str(owner.get("kind")) for owner in owners if owner.get("controller")), "")


def _problems(pod: Mapping[str, Any], rules: Rules) -> list[str]:
    found = []
    if not rules.unmanaged and not _controller(pod):
        found.append(
            f"pod {name_of(pod)} has no controller that would recreate it. Move it, or set evict_unmanaged: true to "
            "delete it"
        )
    every = (pod.get("spec") or {}).get("volumes") or []
    volumes = [str(volume.get("name")) for volume in every if volume.get("emptyDir") is not None]
    if not rules.local_storage and volumes:
        found.append(
            f"pod {name_of(pod)} keeps data on the node (emptyDir {', '.join(volumes)}). Move it, or set "
            "evict_local_storage: true to delete the data"
        )
    return found


def _evict(api: Api, pod: Mapping[str, Any], grace: int | None) -> str:
    """Ask for the eviction of one pod; return why it is still there."""
    meta = pod["metadata"]
    if meta.get("deletionTimestamp"):
        finalizers = ", ".join(meta.get("finalizers") or [])
        return f"it is ending since {meta['deletionTimestamp']}" + (f", finalizers {finalizers}" if finalizers else "")
    options: dict[str, Any] = {"preconditions": {"uid": meta["uid"]}}
    if grace is not None:
        options["gracePeriodSeconds"] = grace
    body = {
        "apiVersion": "policy/v1",
        "kind": "Eviction",
        "metadata": {"name": meta["name"], "namespace": meta["namespace"]},
        "deleteOptions": options,
    }
    path = f"{collection('v1', 'pods', meta['namespace'])}/{quote(meta['name'])}/eviction"
    try:
        # Whoever is refused is asked again by the caller: trying again here would hold up all the others.
        api.call("POST", path, {}, body=body, tries=1)
    except ApiError as error:
        # Gone, or another pod of this name: the next look tells.
        if error.status in (404, 409):
            return "it is being replaced"
        if error.status not in _LATER:
            raise
        return _why(error)
    return "its eviction was accepted, but it has not ended"


def _why(error: ApiError) -> str:
    said = [str(c.get("message")) for c in answers.causes(error.answer) if c.get("reason") == "DisruptionBudget"]
    if said:
        return "; ".join(said)
    return str(error.answer.get("message") or error)
