# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Why pods of a DaemonSet do not come up, from their status."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

# ErrImagePull alone may be a hiccup of the registry; the kubelet gives up on it as ImagePullBackOff.
_TERMINAL = ("ImagePullBackOff", "InvalidImageName", "ErrImageNeverPull", "CreateContainerConfigError")
_PASSING = ("ContainerCreating", "PodInitializing")
_CRASHES = 5


def pod_findings(pods: Sequence[Mapping[str, Any]], owners: Sequence[Mapping[str, Any]]) -> Iterator[tuple[str, bool]]:
    """Yield (reason, terminal) for each different trouble of pods that belong to the owners."""
    names = {(owner["metadata"].get("namespace"), owner["metadata"]["name"]) for owner in owners}
    told: dict[tuple[str, bool], str] = {}
    for pod in pods:
        meta = pod["metadata"]
        kinds = {(meta.get("namespace"), reference["name"]) for reference in meta.get("ownerReferences") or ()}
        if kinds & names:
            for trouble in pod_troubles(pod):
                told.setdefault(trouble, meta["name"])
    for (reason, terminal), name in told.items():
        yield f"pod {name}: {reason}", terminal


def pod_troubles(pod: Mapping[str, Any]) -> Iterator[tuple[str, bool]]:
    """Yield (reason, terminal) for what keeps one pod from running: scheduling, images, crashes."""
    status = pod.get("status") or {}
    for condition in status.get("conditions") or ():
        if condition["type"] == "PodScheduled" and condition["status"] == "False":
            yield f"cannot be scheduled: {condition.get('message') or condition.get('reason', 'no reason')}", False
    for key in ("initContainerStatuses", "containerStatuses"):
        for container in status.get(key) or ():
            yield from _container(container)


def _container(container: Mapping[str, Any]) -> Iterator[tuple[str, bool]]:
    waiting = (container.get("state") or {}).get("waiting") or {}
    reason = waiting.get("reason")
    if not reason or reason in _PASSING:
        return
    crashes = container.get("restartCount", 0)
    terminal = reason in _TERMINAL or (reason == "CrashLoopBackOff" and crashes >= _CRASHES)
    text = f"{reason} of {container.get('image') or container.get('name', 'a container')}"
    message = waiting.get("message")
    yield f"{text}: {message}" if message else text, terminal
