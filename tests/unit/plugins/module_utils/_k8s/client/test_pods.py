"""What a pod is doing, and why not."""

from __future__ import annotations

from typing import Any

import pytest

from ansible_collections.gpufabric.rdma.plugins.module_utils._k8s.client.pods import State, ready_nodes, state_of


def pod(phase: str, node: str | None = "a", container: Any = None, **more: Any) -> dict[str, Any]:
    statuses = [{"state": container}] if container else []
    return {
        "metadata": {"name": "p"},
        "spec": {"nodeName": node, "containers": [{"image": "img:1"}]},
        "status": {"phase": phase, "containerStatuses": statuses, **more},
    }


UNSCHEDULED = [{"type": "PodScheduled", "status": "False", "message": "0/3 nodes are available"}]


@pytest.mark.parametrize(
    ("found", "expected"),
    [
        (pod("Running", container={"running": {}}), State("p", "a", True, "", False)),
        (pod("Pending"), State("p", "a", False, "", False)),
        (pod("Pending", container={"waiting": {"reason": "ContainerCreating"}}), State("p", "a", False, "", False)),
        (
            pod("Pending", None, conditions=UNSCHEDULED),
            State("p", None, False, "pod p cannot be scheduled: 0/3 nodes are available", False),
        ),
        (
            pod("Pending", container={"waiting": {"reason": "ImagePullBackOff", "message": "Back-off"}}),
            State("p", "a", False, "pod p: ImagePullBackOff, image img:1: Back-off", False),
        ),
        (
            pod("Failed", container={"terminated": {"reason": "Error", "exitCode": 137}}),
            State("p", "a", False, "pod p has ended (Failed): Error, exit code 137", True),
        ),
        (
            pod("Failed", reason="Evicted", message="memory"),
            State("p", "a", False, "pod p has ended (Failed): Evicted, memory", True),
        ),
        (pod("Succeeded"), State("p", "a", False, "pod p has ended (Succeeded): no reason given", True)),
    ],
)
def test_state(found: dict[str, Any], expected: State) -> None:
    assert state_of(found) == expected


def test_a_pod_that_is_being_deleted() -> None:
    found = pod("Running", container={"running": {}})
    found["metadata"]["deletionTimestamp"] = "now"
    assert state_of(found) == State("p", "a", False, "pod p is being deleted", True)


def test_ready_nodes() -> None:
    nodes = [
        {"metadata": {"name": name}, "status": {"conditions": [{"type": "Ready", "status": status}]}}
        for name, status in (("a", "True"), ("b", "Unknown"))
    ]
    assert ready_nodes(nodes) == {"a"}
