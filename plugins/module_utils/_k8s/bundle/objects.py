# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Which objects of a cluster are in a support bundle, and of which pods the logs. Pure: no requests."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import Any, NamedTuple

from ..._fabric.operator import attachments
from ..._fabric.operator.profiles import registry
from ..checks import lint_objects

# Beside the kinds of network models, and those that lint examines. Nothing here holds secrets of its own.
_MORE = (
    (attachments.API, attachments.KIND, attachments.PLURAL),
    ("configuration.net.nvidia.com/v1alpha1", "NicDevice", "nicdevices"),
    ("configuration.net.nvidia.com/v1alpha1", "NicConfigurationTemplate", "nicconfigurationtemplates"),
    ("maintenance.nvidia.com/v1alpha1", "NodeMaintenance", "nodemaintenances"),
)
# Pods last: their logs follow.
WORKLOADS = (("apps/v1", "Deployment", "deployments"), ("apps/v1", "DaemonSet", "daemonsets"), ("v1", "Pod", "pods"))
_GOOD = ("Running", "Succeeded")


class Log(NamedTuple):
    """A log of a container. ``previous``: of the container before its last restart."""

    namespace: str
    pod: str
    container: str
    previous: bool


def kinds() -> list[tuple[str, str, str]]:
    """Return apiVersion, kind and plural of what is listed in the whole cluster."""
    models = [(kind.api_version, kind.kind, kind.plural) for kind in registry.kinds()]
    return sorted({*models, *lint_objects.KINDS, *_MORE}, key=lambda one: (one[1], one[0]))


def is_agent(daemonset: Mapping[str, Any]) -> bool:
    """Return whether a DaemonSet is the agent of an operator that reports for each node."""
    agents = {kind.report.agent for kind in registry.kinds() if kind.report}
    return daemonset["metadata"]["name"] in agents


def slim(kind: str, item: Mapping[str, Any]) -> dict[str, Any]:
    """Return an object without what is large and of no use: a Node lists all images that it has."""
    if kind != "Node":
        return dict(item)
    status = {key: value for key, value in (item.get("status") or {}).items() if key != "images"}
    return {**item, "status": status}


def logs(pods: Iterable[Mapping[str, Any]]) -> Iterator[Log]:
    """Yield the logs of pods: first of those with a problem, then of Deployments, then of all others."""
    for pod in sorted(pods, key=_rank):
        meta, spec, status = pod["metadata"], pod.get("spec") or {}, pod.get("status") or {}
        states = [*_dicts(status.get("initContainerStatuses")), *_dicts(status.get("containerStatuses"))]
        restarted = {str(one.get("name")) for one in states if one.get("restartCount")}
        for container in [*_dicts(spec.get("initContainers")), *_dicts(spec.get("containers"))]:
            name = str(container.get("name"))
            yield Log(meta["namespace"], meta["name"], name, False)
            if name in restarted:
                yield Log(meta["namespace"], meta["name"], name, True)


def _rank(pod: Mapping[str, Any]) -> tuple[int, str, str]:
    meta, status = pod["metadata"], pod.get("status") or {}
    states = _dicts(status.get("containerStatuses"))
    calm = status.get("phase") in _GOOD and not any(one.get("restartCount") for one in states)
    ready = all(one.get("ready") or status.get("phase") == "Succeeded" for one in states)
    owners = [one.get("kind") for one in meta.get("ownerReferences") or []]
    place = 0 if not (calm and ready) else 1 if "ReplicaSet" in owners else 2
    return place, meta["namespace"], meta["name"]


def _dicts(value: Any) -> list[Mapping[str, Any]]:
    return [one for one in value if isinstance(one, Mapping)] if isinstance(value, list) else []
