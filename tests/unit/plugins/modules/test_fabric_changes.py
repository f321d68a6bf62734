"""fabric_changes through its main(): the order of a migration, blockers, and that it changes nothing. About 2 s."""

from __future__ import annotations

import copy
import importlib
import json
from typing import Any

import pytest
from tests.unit.support.cluster_fake import FakeCluster, down, status
from tests.unit.support.module_run import PACKAGE, run
from tests.unit.support.plan_factory import fleet

from ansible_collections.gpufabric.rdma.plugins.module_utils._fabric.plan.plan import plan
from ansible_collections.gpufabric.rdma.plugins.module_utils._k8s.objects.preview import paths

Output = pytest.CaptureFixture[str]
USER = {
    "apiVersion": "v1",
    "kind": "Pod",
    "metadata": {"name": "job", "namespace": "a", "annotations": {"k8s.v1.cni.cncf.io/networks": "default/rail1"}},
}
OTHER_DRIVER = "doca3.4.1-26.04-1.1.0.0-1"
OLDER = {"name": "a", "hosts": ["gpu-0001"], "supernet": "10.1.0.0/16"}


@pytest.fixture
def cluster(monkeypatch: pytest.MonkeyPatch) -> FakeCluster:
    found = FakeCluster()
    for name in ("fabric_objects", "fabric_changes", "cluster_info"):
        monkeypatch.setattr(importlib.import_module(f"{PACKAGE}.{name}"), "connect", lambda module: found.api())
    return found


def planned(rails: int = 1, **fabric: Any) -> dict[str, Any]:
    made = plan({"supernet": "192.168.0.0/16", "rail_count": rails, **fabric}, fleet(2, rails=rails))
    return {step: made["objects"][step] for step in ("policy", "networks")}


def deploy(capsys: Output, objects: dict[str, Any]) -> list[tuple[str, str, str]]:
    """Apply the steps as the roles do; what was done, in order."""
    done = []
    for step, items in objects.items():
        prune = {"step": step, "namespace": "nvidia-network-operator"}
        result = run("fabric_objects", capsys, objects=items, prune=prune)
        assert not result.get("failed"), result["msg"]
        done += [(o["action"], o["kind"], o["name"]) for o in result["objects"] if o["action"] != "none"]
    return done


def test_a_migration_is_shown_in_the_order_in_which_it_is_done(cluster: FakeCluster, capsys: Output) -> None:
    deploy(capsys, planned(rails=2))
    wanted = planned(profile="host_device")
    before = copy.deepcopy(cluster.objects)
    cluster.calls.clear()
    found = run("fabric_changes", capsys, **wanted)
    assert cluster.objects == before and not found["changed"]
    assert all(method == "GET" or "dryRun=All" in path for method, path in cluster.calls)
    shown = [(one["action"], one["kind"], one["name"]) for one in found["changes"]]
    assert (
        found["table"]
        == [
            "objects of the cluster: 1 to add, 2 to change, 3 to remove, 0 unchanged",
            "1. change NicClusterPolicy nic-cluster-policy: spec.rdmaSharedDevicePlugin, spec.sriovDevicePlugin",
            "2. remove MacvlanNetwork rail1",
            "3. remove MacvlanNetwork rail0",
            "4. remove IPPool nvidia-network-operator/rail1",
            "5. change IPPool nvidia-network-operator/rail0: spec.perNodeBlockSize",
            "6. add    HostDeviceNetwork rail0",
        ]
        or found["table"]
    )
    assert deploy(capsys, wanted) == shown
    again = run("fabric_changes", capsys, **wanted)
    assert again["table"] == ["objects of the cluster: 0 to add, 0 to change, 0 to remove, 3 unchanged"]


def taken(cluster: FakeCluster, capsys: Output) -> dict[str, Any]:
    """A plan without a network that a pod uses, and with fields that another tool owns."""
    deploy(capsys, planned(rails=2))
    cluster.put(USER)
    pool = "/apis/nv-ipam.nvidia.com/v1alpha1/namespaces/nvidia-network-operator/ippools/rail0"
    manager = {"manager": "argocd", "operation": "Apply", "fieldsV1": {"f:spec": {"f:gateway": {}, "f:subnet": {}}}}
    cluster.objects[pool]["metadata"]["managedFields"] = [manager]
    wanted = planned()
    wanted["networks"][0]["spec"]["subnet"] = "192.168.9.0/24"
    return wanted


def test_what_stops_the_run_is_listed(cluster: FakeCluster, capsys: Output) -> None:
    found = run("fabric_changes", capsys, **taken(cluster, capsys))
    (used, conflict) = found["blocked"]
    assert used.startswith("MacvlanNetwork rail1: an earlier run applied it") and "a/job" in used
    assert "another field manager owns fields" in conflict and 'conflict with "argocd"' in conflict
    assert f"blocked: {used}" in found["table"]


@pytest.mark.parametrize(
    ("given", "refused"),
    [
        ({"prune": ["policy", "networks"]}, ["MacvlanNetwork rail1", "IPPool nvidia-network-operator/rail0"]),
        ({"prune": []}, ["IPPool nvidia-network-operator/rail0"]),
        ({"prune": ["networks"], "disrupt_users": True}, ["IPPool nvidia-network-operator/rail0"]),
        ({"prune": ["networks"], "steps": ["policy"]}, []),
        ({}, []),
    ],
)
def test_the_check_before_the_first_change_finds_what_a_role_would_refuse(
    cluster: FakeCluster, capsys: Output, given: dict[str, Any], refused: list[str]
) -> None:
    """With the words of the role, in one message with all else that the cluster lacks."""
    wanted = taken(cluster, capsys)
    before = copy.deepcopy(cluster.objects)
    steps = {"steps": ["policy", "networks"], **given}
    found = run("cluster_info", capsys, objects=[*wanted["policy"], *wanted["networks"]], **steps)
    texts = [
        text for text in found["problems"] if "an earlier run applied it" in text or "another field manager" in text
    ]
    assert [text.partition(":")[0] for text in texts] == refused
    assert cluster.objects == before
    if len(refused) == 2:
        prune = {"step": "networks", "namespace": "nvidia-network-operator"}
        assert texts[0] in run("fabric_objects", capsys, objects=wanted["networks"], prune=prune)["msg"]


def test_the_check_says_what_it_can_without_permission_to_compare(
    cluster: FakeCluster, capsys: Output, monkeypatch: pytest.MonkeyPatch
) -> None:
    wanted = taken(cluster, capsys)
    send = cluster.send

    def refuse(method: str, path: str, *args: Any, **named: Any) -> Any:
        denied = "/nicclusterpolicies" in path or "/pods" in path
        return status(403, "Forbidden", "no") if denied else send(method, path, *args, **named)

    monkeypatch.setattr(cluster, "send", refuse)
    for existing in ("use", "refuse"):
        asked = {"objects": wanted["policy"], "prune": ["policy"], "steps": ["policy"], "existing": existing}
        assert not run("cluster_info", capsys, **asked).get("failed")


def test_a_policy_of_another_tool_is_one_problem(cluster: FakeCluster, capsys: Output) -> None:
    wanted = planned()
    deploy(capsys, wanted)
    policy = "/apis/mellanox.com/v1alpha1/nicclusterpolicies/nic-cluster-policy"
    del cluster.objects[policy]["metadata"]["labels"]
    wanted["policy"][0]["spec"]["nvIpam"]["image"] = "other"
    manager = {"manager": "helm", "operation": "Apply", "fieldsV1": {"f:spec": {"f:nvIpam": {"f:image": {}}}}}
    cluster.objects[policy]["metadata"]["managedFields"] = [manager]
    asked = {"objects": wanted["policy"], "prune": ["policy"], "steps": ["policy"]}
    for existing, own in (("refuse", ["is not managed by this collection"]), ("adopt", []), ("use", [])):
        said = run("cluster_info", capsys, existing=existing, **asked)["problems"]
        about = [text for text in said if "nic-cluster-policy" in text]
        assert len(about) == len(own) and all(part in text for part, text in zip(own, about)), (existing, about)


def test_fields_of_the_policy_that_another_tool_owns_are_found_first(cluster: FakeCluster, capsys: Output) -> None:
    deploy(capsys, planned())
    policy = "/apis/mellanox.com/v1alpha1/nicclusterpolicies/nic-cluster-policy"
    manager = {"manager": "argocd", "operation": "Apply", "fieldsV1": {"f:spec": {"f:nvIpam": {"f:image": {}}}}}
    cluster.objects[policy]["metadata"]["managedFields"].append(manager)
    wanted = planned()["policy"]
    wanted[0]["spec"]["nvIpam"]["image"] = "other"
    asked: dict[str, Any] = {"objects": wanted, "prune": ["policy"], "steps": ["policy"]}
    (told,) = run("cluster_info", capsys, **asked)["problems"]
    assert told.startswith("NicClusterPolicy nic-cluster-policy: another field manager owns fields")
    assert told in run("fabric_objects", capsys, objects=wanted)["msg"]


def with_driver(**own: Any) -> dict[str, Any]:
    operator = {"release": "26.4.2", "driver": {"enabled": True}}
    return planned(operator=operator, **({"classes": [{**OLDER, **own}]} if own else {}))


@pytest.mark.parametrize(
    ("before", "after", "moved"),
    [
        ({}, {"driver_version": OTHER_DRIVER}, "NicClusterPolicy nic-cluster-policy"),
        ({"driver_version": OTHER_DRIVER}, {}, "NicNodePolicy gpufabric-a"),
        ({}, {}, ""),
        ({"driver_version": OTHER_DRIVER}, {"driver_version": OTHER_DRIVER.replace("1-1", "1-2")}, ""),
        (None, {"driver_version": OTHER_DRIVER}, ""),
    ],
)
def test_a_driver_moves_to_other_policies_with_consent_only(
    cluster: FakeCluster, capsys: Output, before: dict[str, Any] | None, after: dict[str, Any], moved: str
) -> None:
    """The operator removes it below running pods, and nodes outside of the fabric do not get it again."""
    if before is not None:
        deploy(capsys, with_driver(**before))
    asked = {"objects": with_driver(**after)["policy"], "prune": ["policy"], "steps": ["policy"]}
    told = [text for text in run("cluster_info", capsys, **asked)["problems"] if "spec.ofedDriver" in text]
    assert bool(told) == bool(moved) and all(text.startswith("Nic") for text in told)
    assert not moved or any(text.startswith(f"{moved}: it has the driver container") for text in told)
    for more in ({"disrupt_users": True}, {"existing": "use"}, {"steps": ["networks"]}):
        said = run("cluster_info", capsys, **{**asked, **more})["problems"]
        assert not [text for text in said if "spec.ofedDriver" in text], more


def test_what_cannot_be_compared_is_said(cluster: FakeCluster, capsys: Output, monkeypatch: pytest.MonkeyPatch) -> None:
    send = cluster.send

    def refuse(method: str, path: str, *args: Any, **named: Any) -> Any:
        if method == "PATCH" and "/macvlannetworks" in path:
            return status(403, "Forbidden", "patch is forbidden")
        return send(method, path, *args, **named)

    monkeypatch.setattr(cluster, "send", refuse)
    found = run("fabric_changes", capsys, **planned())
    assert [one["kind"] for one in found["changes"]] == ["NicClusterPolicy", "IPPool"] and not found["blocked"]
    (line,) = [line for line in found["table"] if line.startswith("not compared: ")]
    assert "MacvlanNetwork rail0" in line and "patch is forbidden" in line
    monkeypatch.setattr(cluster, "send", send)
    cluster.answers = [down()] * 9
    assert run("fabric_changes", capsys, **planned())["msg"].startswith("fabric_changes: the API server")
    cluster.answers = [down()] * 9
    (line,) = run("fabric_changes", capsys, require=False, **planned())["table"]
    assert line.startswith(
        "objects of the cluster: not known: the API server https://cluster.test:6443 does not answer"
    )


def test_a_shared_operator_keeps_its_policy(cluster: FakeCluster, capsys: Output) -> None:
    deploy(capsys, planned(rails=2))
    policy = "/apis/mellanox.com/v1alpha1/nicclusterpolicies/nic-cluster-policy"
    del cluster.objects[policy]["metadata"]["labels"]
    found = run("fabric_changes", capsys, existing="use", **planned())
    assert "NicClusterPolicy" not in json.dumps(found["changes"])
    assert not any(one["action"] == "delete" for one in found["changes"])


def test_consent_shows_the_effect(cluster: FakeCluster, capsys: Output) -> None:
    deploy(capsys, planned(rails=2))
    cluster.put(USER)
    given = {"objects": planned()["networks"], "prune": {"step": "networks", "namespace": "nvidia-network-operator"}}
    assert "a/job" in run("fabric_objects", capsys, **given)["msg"]
    result = run("fabric_objects", capsys, disrupt_users=True, **given)
    (effect,) = result["effects"]
    assert "these pods use it: a/job" in effect and result["changed"]
    assert any("consented by disrupt_users: MacvlanNetwork rail1" in json.dumps(one) for one in result["warnings"])


def test_paths() -> None:
    before = {"a": {"b": {"c": {"d": 1}}, "x": 1}, "l": [1]}
    after = {"a": {"b": {"c": {"d": 2}}, "y": 1}, "l": [2]}
    assert list(paths(before, after)) == ["a.b.c", "a.x", "a.y", "l"]
