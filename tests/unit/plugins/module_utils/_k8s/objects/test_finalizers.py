"""A removal where the SR-IOV operator is gone: its finalizers end, and its definitions go. Cost: 1 s."""

from __future__ import annotations

import importlib
from typing import Any

import pytest
from tests.unit.support.cluster_fake import FakeCluster, status
from tests.unit.support.module_run import PACKAGE, run
from tests.unit.support.plan_factory import fleet

from ansible_collections.gpufabric.rdma.plugins.module_utils._fabric.plan.plan import plan
from ansible_collections.gpufabric.rdma.plugins.module_utils._k8s.objects.finalizers import FINALIZER

OPERATOR = "nvidia-network-operator"
NETWORK = f"/apis/sriovnetwork.openshift.io/v1/namespaces/{OPERATOR}/sriovnetworks/rail0"
DEFINITION = "/apis/k8s.cni.cncf.io/v1/namespaces/jobs/network-attachment-definitions/rail0"
Output = pytest.CaptureFixture[str]


def networks() -> list[dict[str, Any]]:
    given = {"supernet": "192.168.0.0/16", "network_namespace": "jobs", "profile": "sriov"}
    return list(plan(given, fleet(2, rails=1))["objects"]["networks"])


def definition(resource: str) -> dict[str, Any]:
    notes = {"k8s.v1.cni.cncf.io/resourceName": f"nvidia.com/{resource}"}
    meta = {"name": "rail0", "namespace": "jobs", "annotations": notes}
    return {"apiVersion": "k8s.cni.cncf.io/v1", "kind": "NetworkAttachmentDefinition", "metadata": meta, "spec": {}}


def deployment(name: str, image: str) -> dict[str, Any]:
    spec = {"template": {"spec": {"containers": [{"image": image}]}}}
    return {
        "apiVersion": "apps/v1",
        "kind": "Deployment",
        "metadata": {"name": name, "namespace": OPERATOR},
        "spec": spec,
    }


@pytest.fixture
def cluster(monkeypatch: pytest.MonkeyPatch, capsys: Output) -> FakeCluster:
    """What a run applied, with the finalizer of the operator and the definition that it made."""
    found = FakeCluster()
    module = importlib.import_module(f"{PACKAGE}.fabric_objects")
    monkeypatch.setattr(module, "connect", lambda module: found.api())
    monkeypatch.setattr(module, "Clock", found.clock.clock)
    assert not run("fabric_objects", capsys, objects=networks()).get("failed")
    found.objects[NETWORK]["metadata"]["finalizers"] = [FINALIZER]
    found.put(definition(found.objects[NETWORK]["spec"]["resourceName"]))
    return found


def teardown(capsys: Output, **more: Any) -> dict[str, Any]:
    return run("fabric_objects", capsys, objects=networks(), state="absent", timeout=60, **more)


def test_networks_go_where_no_operator_runs(cluster: FakeCluster, capsys: Output) -> None:
    before = dict(cluster.objects)
    assert teardown(capsys, check=True)["changed"] and cluster.objects == before
    assert teardown(capsys)["changed"]
    assert NETWORK not in cluster.objects and DEFINITION not in cluster.objects
    assert not teardown(capsys)["changed"]


def test_a_removal_that_had_begun_goes_on(cluster: FakeCluster, capsys: Output) -> None:
    cluster.objects[NETWORK]["metadata"]["deletionTimestamp"] = "2026-01-01T00:00:00Z"
    assert not teardown(capsys).get("failed")
    assert NETWORK not in cluster.objects


def test_an_outdated_network_goes_too(cluster: FakeCluster, capsys: Output) -> None:
    wanted = [item for item in networks() if item["kind"] == "IPPool"]
    prune = {"step": "networks", "namespace": OPERATOR, "network_namespace": "jobs"}
    assert not run("fabric_objects", capsys, objects=wanted, prune=prune, timeout=60).get("failed")
    assert NETWORK not in cluster.objects and DEFINITION not in cluster.objects


@pytest.mark.parametrize(
    "there",
    [
        deployment("sriov-network-operator", "mirror.example.com/x@sha256:00"),
        deployment("other", "nvcr.io/nvidia/mellanox/sriov-network-operator:v26.7.1"),
        None,
    ],
    ids=["by name", "by image", "not to be seen"],
)
def test_an_operator_that_may_run_ends_its_finalizers_itself(
    cluster: FakeCluster, capsys: Output, monkeypatch: pytest.MonkeyPatch, there: dict[str, Any] | None
) -> None:
    if there:
        cluster.put(there)
    send = cluster.send

    def refuse(method: str, path: str, *args: Any, **named: Any) -> Any:
        hidden = not there and "/deployments" in path
        return status(403, "Forbidden", "no") if hidden else send(method, path, *args, **named)

    monkeypatch.setattr(cluster, "send", refuse)
    assert f"SriovNetwork {OPERATOR}/rail0 (finalizers {FINALIZER})" in teardown(capsys)["msg"]
    assert DEFINITION in cluster.objects


def test_finalizers_and_definitions_of_others_stay(cluster: FakeCluster, capsys: Output) -> None:
    cluster.objects[NETWORK]["metadata"]["finalizers"] = [FINALIZER, "example.com/hold"]
    cluster.objects[DEFINITION]["metadata"]["annotations"] = {"k8s.v1.cni.cncf.io/resourceName": "nvidia.com/other"}
    assert "(finalizers example.com/hold)" in teardown(capsys)["msg"]
    assert DEFINITION in cluster.objects


@pytest.mark.parametrize("code", [404, 409])
def test_a_network_that_goes_meanwhile_is_no_error(
    cluster: FakeCluster, capsys: Output, monkeypatch: pytest.MonkeyPatch, code: int
) -> None:
    """Another client was faster."""
    send = cluster.send

    def late(method: str, path: str, *args: Any, **named: Any) -> Any:
        if method == "PATCH" and "/sriovnetworks/" in path:
            cluster.objects.pop(NETWORK, None)
            return status(code, "NotFound" if code == 404 else "Conflict", "it has changed")
        return send(method, path, *args, **named)

    monkeypatch.setattr(cluster, "send", late)
    result = teardown(capsys)
    assert not result.get("failed") and result["changed"]
