# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What a tester's pod is doing, from the pod object alone: running, or stuck and why."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any, NamedTuple

# Reasons of a waiting container that pass by themselves.
_NORMAL = ("ContainerCreating", "PodInitializing")


class State(NamedTuple):
    """A pod: its name, node (None before it is scheduled), whether it runs, and what keeps it from that."""

    name: str
    node: str | None
    running: bool
    problem: str
    over: bool


def state_of(pod: Mapping[str, Any]) -> State:
    """Return what a pod is doing; ``over`` when it will never run again."""
    name, node = pod["metadata"]["name"], (pod.get("spec") or {}).get("nodeName")
    status = pod.get("status") or {}
    phase = status.get("phase")
    if pod["metadata"].get("deletionTimestamp"):
        return State(name, node, False, f"pod {name} is being deleted", True)
    if phase in ("Failed", "Succeeded"):
        return State(name, node, False, _ended(name, phase, status), True)
    container = ((status.get("containerStatuses") or [{}])[0].get("state")) or {}
    if phase == "Running" and "running" in container:
        return State(name, node, True, "", False)
    return State(name, node, False, _waiting(pod, container.get("waiting") or {}), False)


def _ended(name: str, phase: str, status: Mapping[str, Any]) -> str:
    ended = ((status.get("containerStatuses") or [{}])[0].get("state") or {}).get("terminated") or {}
    said = [status.get("reason"), status.get("message"), ended.get("reason"), ended.get("message")]
    code = f"exit code {ended['exitCode']}" if "exitCode" in ended else ""
    return f"pod {name} has ended ({phase}): " + (", ".join(p for p in (*said, code) if p) or "no reason given")


def _waiting(pod: Mapping[str, Any], waiting: Mapping[str, Any]) -> str:
    name = pod["metadata"]["name"]
    if waiting.get("reason") and waiting["reason"] not in _NORMAL:
        image = pod["spec"]["containers"][0].get("image")
        return f"pod {name}: {waiting['reason']}, image {image}: {waiting.get('message') or 'no message'}"
    for condition in (pod.get("status") or {}).get("conditions") or []:
        if condition.get("type") == "PodScheduled" and condition.get("status") == "False":
            return f"pod {name} cannot be scheduled: {condition.get('message') or condition.get('reason')}"
    return ""


def ready_nodes(nodes: Iterable[Mapping[str, Any]]) -> set[str]:
    """Return the names of the nodes whose kubelet reports Ready."""
    return {
        node["metadata"]["name"]
        for node in nodes
        for condition in (node.get("status") or {}).get("conditions") or []
        if condition.get("type") == "Ready" and condition.get("status") == "True"
    }
