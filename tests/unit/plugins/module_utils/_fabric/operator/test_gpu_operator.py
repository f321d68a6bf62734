"""Contradictions between the GPU Operator and the provider of NIC drivers. Costs nothing."""

from __future__ import annotations

from typing import Any

import pytest

from ansible_collections.gpufabric.rdma.plugins.module_utils._fabric.operator.gpu_operator import summary


def policy(rdma: Any, **driver: Any) -> dict[str, Any]:
    return {"metadata": {"name": "cluster-policy"}, "spec": {"driver": {"rdma": rdma, **driver}}}


ON, HOST = {"enabled": True}, {"enabled": True, "useHostMofed": True}


@pytest.mark.parametrize(
    ("found", "provider", "text"),
    [
        (policy(ON), "inbox", "against which nvidia-peermem cannot be built"),
        (policy(HOST), "soft_roce", "(nic_drivers: soft_roce), against which"),
        (policy(HOST), "container", "useHostMofed is true, but the driver container brings the NIC drivers"),
        (policy(ON), "doca_ofed", "its pods wait for a driver container that does not exist. Set it to true"),
        (policy(ON), "container", ""),
        (policy(HOST), "doca_ofed", ""),
        (policy({"enabled": False}), "inbox", ""),
        (policy(ON, enabled=False), "inbox", ""),
        (policy(ON), "", ""),
        (policy(None), "inbox", ""),
        ({"metadata": {"name": "cluster-policy"}}, "inbox", ""),
        ({"metadata": {"name": "cluster-policy"}, "spec": {"driver": "text"}}, "inbox", ""),
    ],
)
def test_only_what_is_stated_counts(found: dict[str, Any], provider: str, text: str) -> None:
    result = summary(found, provider)
    assert result["name"] == "cluster-policy"
    assert bool(result["problem"]) == bool(text)
    assert text in result["problem"]
    assert not text or result["problem"].startswith("ClusterPolicy cluster-policy of the GPU Operator: ")
