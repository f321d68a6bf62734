"""OpenShift through main() of the cluster's modules, on an API server in memory. Under a second.

All objects of OpenShift here were written by hand, after its documentation and the sources of OLM.
"""

from __future__ import annotations

import importlib
import json
from typing import Any

import pytest
from tests.unit.support.cluster_fake import FakeCluster
from tests.unit.support.module_run import PACKAGE, run
from tests.unit.support.plan_factory import fleet

from ansible_collections.gpufabric.rdma.plugins.module_utils._common.errors import InputError
from ansible_collections.gpufabric.rdma.plugins.module_utils._fabric.plan.plan import plan

SRIOV = "openshift-sriov-network-operator"
NODE = {
    "apiVersion": "v1",
    "kind": "Node",
    "metadata": {"name": "a", "labels": {"feature.node.kubernetes.io/pci-15b3.present": "true"}},
    "status": {"nodeInfo": {"machineID": "1"}, "conditions": [{"type": "Ready", "status": "True"}]},
}
# A group that only OpenShift serves.
CONFIG = {"apiVersion": "config.openshift.io/v1", "kind": "SriovOperatorConfig", "metadata": {"name": "version"}}
OPERATOR_CONFIG = {
    "apiVersion": "sriovnetwork.openshift.io/v1",
    "kind": "SriovOperatorConfig",
    "metadata": {"name": "default", "namespace": SRIOV},
}
NFD = {
    "apiVersion": "apps/v1",
    "kind": "Deployment",
    "metadata": {"name": "nfd-master", "namespace": "openshift-nfd"},
    "spec": {"template": {"spec": {"containers": [{"image": "r/openshift4/ose-node-feature-discovery-rhel9:v4"}]}}},
}
GIVEN: dict[str, Any] = {"hosts": {"h": {"machine_id": "1"}}, "release": "26.7.1", "platform": "openshift"}
GIVEN.update(nfd=False, multus=False, steps=["operator", "policy", "networks"])


@pytest.fixture
def cluster(monkeypatch: pytest.MonkeyPatch) -> FakeCluster:
    found = FakeCluster(*json.loads(json.dumps([NODE, CONFIG])))
    found.objects["/version"] = {"gitVersion": "v1.34.1", "major": "1", "minor": "34"}
    for name in ("cluster_info", "fabric_changes", "fabric_objects"):
        monkeypatch.setattr(importlib.import_module(f"{PACKAGE}.{name}"), "connect", lambda module: found.api())
    return found


def test_a_cluster_of_the_other_kind_is_refused(cluster: FakeCluster, capsys: pytest.CaptureFixture[str]) -> None:
    assert run("cluster_info", capsys, **GIVEN)["problems"] == []
    # Multus of the cluster is not seen under its own name: it is no problem only where the platform has it.
    told = run("cluster_info", capsys, **{**GIVEN, "platform": "kubernetes", "multus": True})["problems"]
    assert told == [
        "the cluster is OpenShift (API group config.openshift.io: served), and rdma_fabric.operator.platform is"
        " kubernetes. Set it to openshift, or correct the kubeconfig"
    ]
    del cluster.objects["/apis/config.openshift.io/v1/sriovoperatorconfigs/version"]
    told = run("cluster_info", capsys, **GIVEN)["problems"]
    assert told == [
        "the cluster is Kubernetes (API group config.openshift.io: not served), and rdma_fabric.operator.platform is"
        " openshift. Set it to kubernetes, or correct the kubeconfig"
    ]
    failed = run("cluster_info", capsys, require=True, **GIVEN)
    assert failed["failed"] and not [call for call in cluster.calls if call[0] not in ("GET", "POST")]


def test_vfs_need_the_sriov_operator_of_the_platform(cluster: FakeCluster, capsys: pytest.CaptureFixture[str]) -> None:
    given = {**GIVEN, "profile": "sriov"}
    policy = {"kind": "SriovNetworkNodePolicy", "metadata": {"name": "rail0", "namespace": SRIOV}}
    assert run("cluster_info", capsys, **given)["problems"] == []
    (told,) = run("cluster_info", capsys, objects=[policy], **given)["problems"]
    assert told.startswith(
        f"SriovOperatorConfig {SRIOV}/default does not exist, and the plan needs the SR-IOV operator"
    )
    cluster.put(dict(OPERATOR_CONFIG))
    assert run("cluster_info", capsys, objects=[policy], **given)["problems"] == []


def test_permissions_are_asked_where_the_objects_are(cluster: FakeCluster, capsys: pytest.CaptureFixture[str]) -> None:
    cluster.put(dict(OPERATOR_CONFIG))
    cluster.denied = ("create sriovnetworks", "create rolebindings")
    told = run("cluster_info", capsys, profile="sriov", **{**GIVEN, "steps": ["networks", "validate"]})
    assert told["denied"] == [
        f"create sriovnetworks.sriovnetwork.openshift.io in {SRIOV}",
        "create rolebindings.rbac.authorization.k8s.io in gpufabric-validate",
    ]


@pytest.mark.parametrize(("deployments", "running"), [([], "does not run"), ([NFD], "runs")])
def test_the_label_of_nodes_is_that_of_red_hats_operator(
    deployments: list[Any], running: str, cluster: FakeCluster, capsys: pytest.CaptureFixture[str]
) -> None:
    cluster.objects["/api/v1/nodes/a"]["metadata"]["labels"] = {}
    for item in deployments:
        cluster.put(json.loads(json.dumps(item)))
    (told,) = run("cluster_info", capsys, **GIVEN)["problems"]
    assert told.startswith("nodes without the label feature.node.kubernetes.io/pci-15b3.present: a. On OpenShift, the")
    assert f"sets it, and its master {running}. Install package nfd of catalog redhat-operators" in told
    label = {"feature.node.kubernetes.io/pci-15b3.present": "true"}
    assert run("cluster_info", capsys, node_labels=label, **GIVEN)["problems"] == []


def test_old_networks_are_found_in_the_namespace_of_the_sriov_operator(
    cluster: FakeCluster, capsys: pytest.CaptureFixture[str]
) -> None:
    old = {
        "apiVersion": "sriovnetwork.openshift.io/v1",
        "kind": "SriovNetwork",
        "metadata": {"name": "old", "namespace": SRIOV, "labels": {"app.kubernetes.io/managed-by": "gpufabric"}},
        "spec": {"networkNamespace": "default", "resourceName": "vf_old"},
    }
    path = cluster.put(old)
    pool = {**old, "kind": "IPPool", "apiVersion": "nv-ipam.nvidia.com/v1alpha1"}
    pool["metadata"] = {**old["metadata"], "name": "rail0", "namespace": "op"}  # type: ignore[dict-item]
    prune = {"step": "networks", "namespace": "op"}
    run("fabric_objects", capsys, objects=[pool], prune=prune)
    assert path in cluster.objects
    result = run("fabric_objects", capsys, objects=[pool], prune={**prune, "platform": "openshift"})
    assert [(item["name"], item["action"]) for item in result["objects"] if item["kind"] == "SriovNetwork"] == [
        ("old", "delete")
    ]
    assert path not in cluster.objects


OPERATOR = {
    "apiVersion": "apps/v1",
    "kind": "Deployment",
    "metadata": {
        "name": "nvidia-network-operator-controller-manager",
        "namespace": "nvidia-network-operator",
        "generation": 1,
        "labels": {"olm.owner": "nvidia-network-operator.v26.7.1"},
    },
    "spec": {"replicas": 1, "template": {"spec": {"containers": [{"image": "nvcr.io/x/network-operator@sha256:1"}]}}},
    "status": {"observedGeneration": 1, "replicas": 1, "updatedReplicas": 1, "availableReplicas": 1},
}


def test_an_operator_of_olm_is_used(cluster: FakeCluster, capsys: pytest.CaptureFixture[str]) -> None:
    cluster.put(json.loads(json.dumps(OPERATOR)))
    given = {**GIVEN, "operator_name": "network-operator", "existing": "use"}
    result = run("cluster_info", capsys, **given)
    assert (result["problems"], result["operator"][0]["version"]) == ([], "26.7.1")
    (told,) = run("cluster_info", capsys, **{**given, "release": "26.4.2"})["problems"]
    assert "it is of release 26.7.1, and the plan is for release 26.4.2" in told


SELECTOR = {"network.nvidia.com/operator.mofed.wait": "false"}
FABRIC: dict[str, Any] = {"supernet": "192.168.0.0/16", "profile": "sriov", "rails": [{"name": "rail0"}]}
FABRIC["operator"] = {"platform": "openshift"}


def planned(**config: Any) -> list[dict[str, Any]]:
    return list(plan({**FABRIC, "sriov": {"operator_config": config}}, fleet(2, rails=1))["objects"]["policy"])


def settings(**config: Any) -> list[dict[str, Any]]:
    return [item for item in planned(**config) if item["kind"] == "SriovOperatorConfig"]


def test_settings_of_the_sriov_operator_are_patched_and_restored(
    cluster: FakeCluster, capsys: pytest.CaptureFixture[str]
) -> None:
    spec = {"enableInjector": True, "logLevel": 2, "configDaemonNodeSelector": {"pool": "all"}}
    path = cluster.put(json.loads(json.dumps({**OPERATOR_CONFIG, "spec": spec})))
    original = json.loads(json.dumps(cluster.objects[path]))
    (desired,) = settings(configDaemonNodeSelector=SELECTOR)
    assert desired["metadata"] == {"name": "default", "namespace": SRIOV}
    prune = {"step": "policy", "namespace": "op", "platform": "openshift"}
    preview = run("fabric_objects", capsys, check=True, objects=[desired], prune=prune)
    assert cluster.objects[path] == original
    result = run("fabric_objects", capsys, objects=[desired], prune=prune)
    assert result["objects"] == preview["objects"] and result["objects"][0]["action"] == "update"
    live = cluster.objects[path]
    assert live["spec"] == {**spec, "configDaemonNodeSelector": {"pool": "all", **SELECTOR}}
    assert "labels" not in live["metadata"]
    assert not run("fabric_objects", capsys, objects=[desired], prune=prune)["changed"]
    # What another tool owns is a conflict, also where its value would be lost.
    failed = run("fabric_objects", capsys, objects=settings(logLevel=1), prune=prune)
    assert "another field manager owns fields that have to change" in failed["msg"]
    # No longer planned: the fields are given up, by a run with other objects and by a teardown.
    other = {**desired, "kind": "SriovNetworkPoolConfig"}
    result = run("fabric_objects", capsys, objects=[other], prune=prune)
    actions = {item["kind"]: item["action"] for item in result["objects"]}
    assert actions["SriovOperatorConfig"] == "release" and cluster.objects[path]["spec"] == spec
    run("fabric_objects", capsys, objects=[desired], prune=prune)
    result = run("fabric_objects", capsys, state="absent", objects=[other], prune=prune)
    assert {item["action"] for item in result["objects"]} == {"release"} and cluster.objects[path]["spec"] == spec
    assert not run("fabric_objects", capsys, state="absent", objects=[desired], prune=prune)["changed"]


def test_settings_of_the_sriov_operator_are_never_created(
    cluster: FakeCluster, capsys: pytest.CaptureFixture[str]
) -> None:
    (desired,) = settings(logLevel=1)
    for more in ({}, {"prune": ["policy"]}):
        (told,) = run("cluster_info", capsys, objects=[desired], profile="sriov", **more, **GIVEN)["problems"]
        assert told.startswith(f"SriovOperatorConfig {SRIOV}/default does not exist, and the plan needs")
    failed = run("fabric_objects", capsys, objects=[desired])
    assert f"SriovOperatorConfig {SRIOV}/default does not exist. Install the operator" in failed["msg"]
    seen = run("fabric_changes", capsys, policy=[desired], networks=[], platform="openshift")
    assert [text for text in seen["blocked"] if "SriovOperatorConfig" in text] == [failed["msg"].partition(": ")[2]]
    assert not [path for path in cluster.objects if path.endswith("sriovoperatorconfigs/default")]


def test_settings_of_the_sriov_operator_are_checked() -> None:
    with pytest.raises(InputError, match=r"SriovOperatorConfig default: spec.logLvl: unknown field"):
        planned(logLvl=1)
    with pytest.raises(InputError, match="with platform kubernetes, the chart installs the SR-IOV operator"):
        plan({**FABRIC, "operator": {}, "sriov": {"operator_config": {"logLevel": 1}}}, fleet(2, rails=1))
    assert planned() == planned(**{}) and not settings()


def test_classes_of_hosts_agree_on_the_settings_of_the_sriov_operator() -> None:
    def of(*levels: int) -> list[dict[str, Any]]:
        classes = [
            {
                "name": f"c{n}",
                "hosts": [f"gpu-{n + 1:04d}"],
                "supernet": f"192.168.{16 * n}.0/20",
                "rails": [{"name": f"rail{n}"}],
                "sriov": {"operator_config": {"logLevel": level}},
            }
            for n, level in enumerate(levels)
        ]
        fabric = {**FABRIC, "classes": classes}
        del fabric["rails"]
        found = plan(fabric, fleet(2, rails=1))["objects"]["policy"]
        return [item for item in found if item["kind"] == "SriovOperatorConfig"]

    assert len(of(1, 1)) == 1
    with pytest.raises(InputError, match="the fields of SriovOperatorConfig default differ between classes"):
        of(1, 2)
