"""What earlier runs applied and the plan does not have: found, refused while pods use it, removed before the rest."""

from __future__ import annotations

import importlib
import json
from typing import Any

import pytest
from tests.unit.support.cluster_fake import FakeCluster, status
from tests.unit.support.module_run import PACKAGE, run, warned
from tests.unit.support.plan_factory import fleet

from ansible_collections.gpufabric.rdma.plugins.module_utils._fabric.plan.plan import plan
from ansible_collections.gpufabric.rdma.plugins.module_utils._k8s.objects import prune

OPERATOR = "nvidia-network-operator"
NETWORKS = {"step": "networks", "namespace": OPERATOR, "network_namespace": "jobs"}
POLICY = {"step": "policy", "namespace": OPERATOR}
OURS = {"app.kubernetes.io/managed-by": "gpufabric"}


def planned(rails: int, step: str = "networks", **fabric: Any) -> list[dict[str, Any]]:
    given = {"supernet": "192.168.0.0/16", "network_namespace": "jobs", **fabric}
    return list(plan(given, fleet(2, rails=rails))["objects"][step])


@pytest.fixture
def cluster(monkeypatch: pytest.MonkeyPatch) -> FakeCluster:
    found = FakeCluster()
    monkeypatch.setattr(importlib.import_module(f"{PACKAGE}.fabric_objects"), "connect", lambda module: found.api())
    return found


def actions(result: dict[str, Any]) -> list[tuple[str, str, str]]:
    return [(item["kind"], item["name"], item["action"]) for item in result["objects"] if item["action"] != "none"]


def pod(name: str, networks: str = "", resource: str = "", phase: str = "Running") -> dict[str, Any]:
    limits = {"limits": {resource: "1"}} if resource else {}
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {
            "name": name,
            "namespace": "shop",
            "annotations": {"k8s.v1.cni.cncf.io/networks": networks} if networks else {},
        },
        "spec": {"containers": [{"resources": limits}]},
        "status": {"phase": phase},
    }


def test_a_rail_that_is_gone_takes_its_objects_along(cluster: FakeCluster, capsys: pytest.CaptureFixture[str]) -> None:
    run("fabric_objects", capsys, objects=planned(2), prune=NETWORKS)
    wanted = [("MacvlanNetwork", "rail1", "delete"), ("IPPool", "rail1", "delete")]
    preview = run("fabric_objects", capsys, check=True, objects=planned(1), prune=NETWORKS)
    assert actions(preview) == wanted
    assert list(preview["diff"]["after"].values()) == [None, None]
    assert actions(run("fabric_objects", capsys, objects=planned(1), prune=NETWORKS)) == wanted
    assert run("fabric_objects", capsys, objects=planned(1), prune=NETWORKS)["changed"] is False


def test_objects_of_others_stay(cluster: FakeCluster, capsys: pytest.CaptureFixture[str]) -> None:
    network, pool = ({**item, "metadata": {**item["metadata"], "labels": {}}} for item in planned(1)[::-1])
    made = {"apiVersion": "k8s.cni.cncf.io/v1", "kind": "NetworkAttachmentDefinition"}
    owner = [{"apiVersion": "v1", "kind": "Other", "name": "x", "uid": "1"}]
    meta = {"name": "made", "namespace": "jobs", "labels": OURS, "ownerReferences": owner}
    for item in (network, pool, {**made, "metadata": meta}):
        cluster.put({**item, "metadata": {**item["metadata"], "name": "other"}})
    assert all(action == "create" for _kind, _name, action in actions(
        run("fabric_objects", capsys, objects=planned(1), prune=NETWORKS)
    ))  # fmt: skip


def test_without_a_plan_nothing_is_outdated(cluster: FakeCluster, capsys: pytest.CaptureFixture[str]) -> None:
    run("fabric_objects", capsys, objects=planned(2), prune=NETWORKS)
    assert run("fabric_objects", capsys, objects=[], prune=NETWORKS)["changed"] is False


def test_the_end_takes_what_no_plan_names(cluster: FakeCluster, capsys: pytest.CaptureFixture[str]) -> None:
    run("fabric_objects", capsys, objects=planned(2))
    gone = run("fabric_objects", capsys, state="absent", objects=planned(1, profile="raw"), prune=NETWORKS)
    assert sorted(actions(gone)) == [
        (kind, name, "delete") for kind in ("IPPool", "MacvlanNetwork") for name in ("rail0", "rail1")
    ]
    assert run("fabric_objects", capsys, state="absent", objects=[], prune=NETWORKS)["changed"] is False


def test_another_model_takes_the_place(cluster: FakeCluster, capsys: pytest.CaptureFixture[str]) -> None:
    run("fabric_objects", capsys, objects=planned(1))
    result = run("fabric_objects", capsys, objects=planned(1, profile="raw"), prune=NETWORKS)
    assert actions(result) == [
        ("MacvlanNetwork", "rail0", "delete"),
        ("NetworkAttachmentDefinition", "rail0", "create"),
    ]


def test_check_mode_foresees_that_a_definition_is_free_by_then(
    cluster: FakeCluster, capsys: pytest.CaptureFixture[str]
) -> None:
    run("fabric_objects", capsys, objects=planned(1))
    (definition,) = (item for item in planned(1, profile="raw") if item["kind"] == "NetworkAttachmentDefinition")
    made = {
        **definition,
        "metadata": {"name": "rail0", "namespace": "jobs"},
        "spec": {"config": "that of the operator"},
    }
    cluster.put(made, manager="operator")
    result = run("fabric_objects", capsys, check=True, objects=planned(1, profile="raw"), prune=NETWORKS)
    assert actions(result) == [
        ("MacvlanNetwork", "rail0", "delete"),
        ("NetworkAttachmentDefinition", "rail0", "create"),
    ]


@pytest.mark.parametrize(
    ("networks", "held"),
    [
        ("jobs/rail1", True),
        ("other, jobs/rail1@eth1", True),
        ('[{"name": "rail1", "namespace": "jobs"}]', True),
        ("rail1", False),
        ("jobs/rail0", False),
        ('[{"name": "rail1"}]', False),
        ("[rubbish", False),
    ],
)
def test_pods_that_use_a_network_keep_it(
    cluster: FakeCluster, capsys: pytest.CaptureFixture[str], networks: str, held: bool
) -> None:
    run("fabric_objects", capsys, objects=planned(2))
    before = json.dumps(cluster.objects, sort_keys=True)
    for name, phase in (("worker", "Running"), ("done", "Succeeded")):
        cluster.put(pod(name, networks, phase=phase))
    result = run("fabric_objects", capsys, objects=planned(1), prune=NETWORKS)
    if not held:
        assert ("MacvlanNetwork", "rail1", "delete") in actions(result)
        return
    assert result["msg"] == (
        "fabric_objects: MacvlanNetwork rail1: an earlier run applied it, the plan does not have it, and these pods use"
        " it: shop/worker. Remove these workloads and rerun the playbook, or restore the former values of rdma_fabric"
    )
    for name in ("worker", "done"):
        del cluster.objects[f"/api/v1/namespaces/shop/pods/{name}"]
    assert json.dumps(cluster.objects, sort_keys=True) == before


def test_pods_that_hold_a_resource_keep_its_policy(cluster: FakeCluster, capsys: pytest.CaptureFixture[str]) -> None:
    run("fabric_objects", capsys, objects=planned(2, "policy", profile="sriov"))
    cluster.put(pod("worker", resource="nvidia.com/vf_rail1"))
    fewer = planned(1, "policy", profile="sriov")
    message = run("fabric_objects", capsys, objects=fewer, prune=POLICY)["msg"]
    assert message.startswith(
        "fabric_objects: SriovNetworkNodePolicy " + OPERATOR + "/rail1: an earlier run applied it"
    )
    del cluster.objects["/api/v1/namespaces/shop/pods/worker"]
    found = actions(run("fabric_objects", capsys, objects=fewer, prune=POLICY))
    assert ("SriovNetworkNodePolicy", "rail1", "delete") in found


@pytest.mark.parametrize(("networks", "held"), [("other", True), ("", False)])
def test_a_pod_with_claims_in_a_network_may_hold_a_vf_of_a_policy(
    cluster: FakeCluster, capsys: pytest.CaptureFixture[str], networks: str, held: bool
) -> None:
    """A claim of Dynamic Resource Allocation leaves no resource in the pod; one for a GPU alone is no VF."""
    two, one = (planned(count, "policy", profile="sriov") for count in (2, 1))
    run("fabric_objects", capsys, objects=two, prune=POLICY)
    claims = pod("trainer", networks)
    claims["spec"]["resourceClaims"] = [{"name": "vf", "resourceClaimTemplateName": "rail1"}]
    cluster.put(claims)
    result = run("fabric_objects", capsys, objects=one, prune=POLICY)
    assert bool(result.get("failed")) is held
    assert not held or "these pods use it: shop/trainer" in result["msg"]


def test_what_may_not_be_listed_is_named(
    cluster: FakeCluster, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    real = prune._of_kind

    def refused(api: Any, kind: Any, places: Any) -> Any:
        if kind.kind == "HostDeviceNetwork":
            raise prune.ApiError("forbidden", 403)
        return real(api, kind, places)

    monkeypatch.setattr(prune, "_of_kind", refused)
    result = run("fabric_objects", capsys, objects=planned(1), prune=NETWORKS)
    assert warned(result) == ["no permission to list HostDeviceNetwork: objects of earlier runs may be left"]


def moved(cluster: FakeCluster, capsys: pytest.CaptureFixture[str], state: str = "present") -> dict[str, Any]:
    """Definitions that an earlier run applied in namespace jobs, and a run whose plan has them in namespace new."""
    run("fabric_objects", capsys, objects=planned(1, profile="raw"), prune=NETWORKS)
    later = planned(1, profile="raw", network_namespace="new")
    return run("fabric_objects", capsys, objects=later, state=state, prune={**NETWORKS, "network_namespace": "new"})


def refuse(cluster: FakeCluster, monkeypatch: pytest.MonkeyPatch, method: str, path: str) -> None:
    """Refuse these requests as for an account without that permission."""
    real = cluster.send

    def send(used: str, to: str, *rest: Any, **named: Any) -> Any:
        if used == method and to.partition("?")[0].endswith(path):
            return status(403, "Forbidden", f"{path} is forbidden")
        return real(used, to, *rest, **named)

    monkeypatch.setattr(cluster, "send", send)


DEFINITIONS = "/apis/k8s.cni.cncf.io/v1/network-attachment-definitions"
OLD = "/apis/k8s.cni.cncf.io/v1/namespaces/jobs/network-attachment-definitions/rail0"


@pytest.mark.parametrize("state", ["present", "absent"])
def test_definitions_in_a_former_namespace_of_networks_are_removed(
    cluster: FakeCluster, capsys: pytest.CaptureFixture[str], state: str
) -> None:
    assert ("NetworkAttachmentDefinition", "rail0", "delete") in actions(moved(cluster, capsys, state))
    assert OLD not in cluster.objects


def test_definitions_of_others_in_other_namespaces_stay(
    cluster: FakeCluster, capsys: pytest.CaptureFixture[str]
) -> None:
    """A copy of ours in another namespace has our label. Another manager made it."""
    (ours,) = (item for item in planned(1, profile="raw") if item["kind"] == "NetworkAttachmentDefinition")
    copied = cluster.put({**ours, "metadata": {"name": "rail0", "namespace": "shop", "labels": OURS}})
    moved(cluster, capsys)
    assert copied in cluster.objects and OLD not in cluster.objects


def test_definitions_in_other_namespaces_that_may_not_be_listed_are_named(
    cluster: FakeCluster, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    refuse(cluster, monkeypatch, "GET", DEFINITIONS)
    assert warned(moved(cluster, capsys)) == [
        "no permission to list NetworkAttachmentDefinition outside of namespace new: objects of earlier runs may be"
        " left"
    ]
    assert OLD in cluster.objects
    # Those in the namespace of the networks are still found.
    fewer = run("fabric_objects", capsys, objects=planned(1), prune={**NETWORKS, "network_namespace": "new"})
    assert ("NetworkAttachmentDefinition", "rail0", "delete") in actions(fewer)


def test_definitions_in_other_namespaces_that_may_not_be_deleted_are_named(
    cluster: FakeCluster, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    refuse(cluster, monkeypatch, "DELETE", OLD)
    result = moved(cluster, capsys)
    assert warned(result) == [
        "no permission to delete NetworkAttachmentDefinition jobs/rail0: objects of earlier runs may be left"
    ]
    assert actions(result) == [("NetworkAttachmentDefinition", "rail0", "create")]
    assert OLD in cluster.objects


def test_pods_that_cannot_be_listed_stop_a_removal(cluster: FakeCluster, capsys: pytest.CaptureFixture[str]) -> None:
    run("fabric_objects", capsys, objects=planned(2))
    real = cluster.send

    def refused(method: str, path: str, *rest: Any, **named: Any) -> Any:
        if path.startswith("/api/v1/pods"):
            return status(403, "Forbidden", "pods is forbidden")
        return real(method, path, *rest, **named)

    cluster.send = refused  # type: ignore[method-assign]
    message = run("fabric_objects", capsys, objects=planned(1), prune=NETWORKS)["msg"]
    assert (
        "MacvlanNetwork rail1: an earlier run applied it, the plan does not have it, and whether pods use it" in message
    )
    assert message.endswith("Use an account with permission to list pods")
    assert run("fabric_objects", capsys, objects=planned(2), prune=NETWORKS)["changed"] is False
