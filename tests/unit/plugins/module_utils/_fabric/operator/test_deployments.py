"""Which Deployment is a network operator: by what the chart writes under any release name, or by the image."""

from __future__ import annotations

from typing import Any

import pytest

from ansible_collections.gpufabric.rdma.plugins.module_utils._fabric.operator.deployments import (
    is_available,
    is_operator,
)


def deployment(image: str, labels: dict[str, str] | None) -> dict[str, Any]:
    spec = {"replicas": 1, "template": {"spec": {"containers": [{"image": image}]}}}
    return {"metadata": {"name": "x", "generation": 2, "labels": labels}, "spec": spec, "status": {}}


@pytest.mark.parametrize(
    ("image", "labels", "expected"),
    [
        ("r/x:1", {"app.kubernetes.io/name": "network-operator", "control-plane": "fabric-controller"}, True),
        # With operator.nameOverride.
        ("r/x:1", {"app.kubernetes.io/name": "nics", "helm.sh/chart": "network-operator-26.7.1"}, True),
        ("nvcr.io/nvidia/cloud-native/network-operator:v26.7.1", None, True),
        ("r:5000/network-operator@sha256:00", {}, True),
        (
            "r/sriov-network-operator:1",
            {"app.kubernetes.io/name": "sriov-network-operator", "helm.sh/chart": "sriov-network-operator-0.1.0"},
            False,
        ),
        ("r/network-operator-init-container:1", {}, False),
        ("", {"helm.sh/chart": "network-operator-tools-1.0.0"}, False),
    ],
)
def test_operators(image: str, labels: dict[str, str] | None, expected: bool) -> None:
    assert is_operator(deployment(image, labels)) is expected


@pytest.mark.parametrize(
    ("status", "expected"),
    [
        ({"observedGeneration": 2, "replicas": 1, "updatedReplicas": 1, "availableReplicas": 1}, True),
        ({"observedGeneration": 1, "replicas": 1, "updatedReplicas": 1, "availableReplicas": 1}, False),
        ({"observedGeneration": 2, "replicas": 2, "updatedReplicas": 1, "availableReplicas": 1}, False),
        ({}, False),
    ],
)
def test_availability(status: dict[str, int], expected: bool) -> None:
    assert is_available({**deployment("", {}), "status": status}) is expected
