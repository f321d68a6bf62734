"""The operator's release through cluster_info and fabric_objects, in the order of the role network_operator."""

from __future__ import annotations

import importlib
import json
from pathlib import Path
from typing import Any

import pytest
from tests.unit.support.cluster_fake import FakeCluster
from tests.unit.support.module_run import PACKAGE, run

from ansible_collections.gpufabric.rdma.plugins.module_utils._fabric.operator.profiles import registry

MANAGED = {"app.kubernetes.io/managed-by": "gpufabric"}
SECRETS, MARK = "/api/v1/namespaces/op/secrets", "/api/v1/namespaces/op/configmaps/gpufabric-operator"
TARGET = {"namespace": "op", "operator_name": "net", "release": "26.7.1"}
POLICY = {
    "apiVersion": "mellanox.com/v1alpha1",
    "kind": "NicClusterPolicy",
    "metadata": {"name": "nic-cluster-policy", "labels": {}},
    "spec": {},
}


class World:
    """A cluster, the two modules, and what Helm would do to them."""

    def __init__(self, capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
        self.cluster = FakeCluster()
        self.capsys = capsys
        chart = tmp_path / "chart.tgz"
        chart.touch()
        helm = tmp_path / "helm"
        helm.write_text("#!/bin/sh\n[ $1 = version ] && echo v3.18.4 || echo version: 26.7.1\n")
        helm.chmod(0o755)
        self.chart = {"chart_ref": str(chart), "helm_binary": str(helm)}

    def info(self, require: bool = True, **params: Any) -> dict[str, Any]:
        state = params.pop("operator_state", "present")
        given = {**TARGET, **self.chart, "existing": "refuse"} if state == "present" else TARGET
        return run("cluster_info", self.capsys, operator_state=state, require=require, **{**given, **params})

    def objects(self, check: bool = False, **params: Any) -> dict[str, Any]:
        return run("fabric_objects", self.capsys, check=check, **params)

    def helm(self, status: str = "deployed", number: int = 1, version: str = "26.7.1", deployment: bool = True) -> None:
        """What `helm upgrade -i` leaves: the Secret of a revision, and the Deployment."""
        labels = {"owner": "helm", "name": "net", "status": status, "version": str(number)}
        self.cluster.put(
            {
                "apiVersion": "v1",
                "kind": "Secret",
                "data": {"release": "secret values"},
                "metadata": {"name": f"sh.helm.release.v1.net.v{number}", "namespace": "op", "labels": labels},
            }
        )
        if deployment:
            self.cluster.put(
                {
                    "apiVersion": "apps/v1",
                    "kind": "Deployment",
                    "metadata": {
                        "name": "network-operator",
                        "namespace": "op",
                        "labels": {"app.kubernetes.io/name": "network-operator", "app.kubernetes.io/version": version},
                        "annotations": {"meta.helm.sh/release-name": "net"},
                    },
                    "spec": {"replicas": 1, "template": {"spec": {}}},
                    "status": {"replicas": 1, "updatedReplicas": 1, "availableReplicas": 1},
                }
            )

    def uninstall(self) -> None:
        for path in list(self.cluster.objects):
            if "/secrets/" in path or "/deployments/" in path:
                del self.cluster.objects[path]

    def install(self) -> None:
        """The tasks of install.yml."""
        before = self.info()
        assert before["release"]["action"] == "install", before
        self.objects(objects=before["release"]["objects"])
        self.helm()
        after = self.info(operator_state="installed")
        self.objects(objects=after["release"]["objects"])

    def teardown(self) -> list[str]:
        """The tasks of absent.yml; what was done to which object."""
        found = self.info(operator_state="absent")["release"]
        if found["name"]:
            self.uninstall()
        remains = {"remains": found["remains"]} if found["remains"] else {}
        done = self.objects(state="absent", objects=found["objects"], **remains)
        return [f"{item['action']} {item['kind']} {item['name']}" for item in done["objects"]]


@pytest.fixture
def world(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], tmp_path: Path) -> World:
    found = World(capsys, tmp_path)
    for name in ("cluster_info", "fabric_objects"):
        monkeypatch.setattr(importlib.import_module(f"{PACKAGE}.{name}"), "connect", lambda _m: found.cluster.api())
    return found


def definition(name: str) -> dict[str, Any]:
    versions = [{"name": "v1", "served": True}]
    return {
        "apiVersion": "apiextensions.k8s.io/v1",
        "kind": "CustomResourceDefinition",
        "metadata": {"name": name},
        "spec": {"versions": versions},
    }


def test_install_again_and_teardown(world: World) -> None:
    world.cluster.put(definition("network-attachment-definitions.k8s.cni.cncf.io"))
    world.install()
    world.cluster.put(definition("nicclusterpolicies.mellanox.com"))
    again = world.info()["release"]
    assert (again["managed"], again["action"], again["state"]) == (True, "install", "deployed")
    assert world.objects(objects=again["objects"])["changed"] is False
    assert "secret values" not in json.dumps(world.info())
    assert world.teardown() == [
        "delete CustomResourceDefinition nicclusterpolicies.mellanox.com",
        "delete ConfigMap gpufabric-operator",
        "delete Namespace op",
    ]
    assert world.teardown() == []


@pytest.mark.parametrize(
    ("version", "kind"),
    [
        ("apps/v1", "StatefulSet"),
        ("apps/v1", "ReplicaSet"),
        ("batch/v1", "CronJob"),
        ("v1", "Pod"),
        ("v1", "PersistentVolumeClaim"),
        ("v1", "ConfigMap"),
        ("v1", "Secret"),
        ("v1", "ServiceAccount"),
        ("nv-ipam.nvidia.com/v1alpha1", "IPPool"),
        ("k8s.cni.cncf.io/v1", "NetworkAttachmentDefinition"),
    ],
)
def test_a_namespace_that_holds_something_of_others_stays(world: World, version: str, kind: str) -> None:
    world.install()
    put(world, version, kind, "shop")
    found = world.info(operator_state="absent")
    assert found["release"]["notes"] == [
        f"Namespace op was not removed: it holds objects that this collection does not manage: {kind} shop."
    ]
    assert "delete Namespace op" not in world.teardown()


def put(world: World, version: str, kind: str, name: str, **meta: Any) -> dict[str, Any]:
    item = {"apiVersion": version, "kind": kind, "metadata": {"name": name, "namespace": "op", **meta}, "spec": {}}
    world.cluster.put(item)
    return item


def owner(version: str, kind: str, name: str, uid: str = "uid-x") -> list[dict[str, Any]]:
    return [{"apiVersion": version, "kind": kind, "name": name, "uid": uid, "controller": True}]


def test_a_namespace_with_what_kubernetes_helm_and_the_operator_left_is_removed(world: World) -> None:
    """As recorded of the operator, and as the chart of the lab leaves it; the policy is gone, its children not yet."""
    world.install()
    release = {"meta.helm.sh/release-name": "net", "meta.helm.sh/release-namespace": "op"}
    child = {"ownerReferences": owner("mellanox.com/v1alpha1", "NicClusterPolicy", "nic-cluster-policy")}
    put(world, "v1", "ConfigMap", "kube-root-ca.crt")
    put(world, "v1", "ServiceAccount", "default")
    put(world, "v1", "ConfigMap", "network-operator-standin", annotations=release)
    put(world, "v1", "ServiceAccount", "network-operator", annotations=release)
    put(world, "v1", "ServiceAccount", "upgrade-crds", annotations={"helm.sh/hook": "pre-upgrade"})
    put(world, "v1", "ConfigMap", "leader", annotations={"control-plane.alpha.kubernetes.io/leader": "{}"})
    put(world, "v1", "ConfigMap", "rdma-devices", **child)
    put(world, "v1", "ServiceAccount", "multus", **child)
    put(world, "apps/v1", "DaemonSet", "kube-multus-ds", uid="uid-ds", **child)
    put(world, "v1", "Pod", "kube-multus-ds-x", ownerReferences=owner("apps/v1", "DaemonSet", "x", "uid-ds"))
    # Its DaemonSet was removed by the garbage collector just now, and it will be.
    put(world, "v1", "Pod", "nv-ipam-node-x", ownerReferences=owner("apps/v1", "DaemonSet", "nv-ipam-node", "uid-gone"))
    put(world, "nv-ipam.nvidia.com/v1alpha1", "IPPool", "rail0", labels=MANAGED)
    put(
        world,
        "nfd.k8s-sigs.io/v1alpha1",
        "NodeFeature",
        "gpu-1",
        annotations={"nfd.node.kubernetes.io/worker.version": "v0.18"},
    )
    put(world, "cert-manager.io/v1", "Certificate", "webhook", annotations=release)
    put(world, "v1", "Secret", "webhook-tls", annotations={"cert-manager.io/certificate-name": "webhook"})
    world.cluster.calls.clear()
    assert world.info(operator_state="absent")["release"]["notes"] == []
    # The search: 11 kinds, the groups (twice, as a Secret names a Certificate), 3 of them with 3 kinds, the owner.
    survey = 10 + len(registry.kinds())
    assert len([path for method, path in world.cluster.calls if method == "GET"]) == survey + 11 + 2 + 3 + 3 + 1
    assert world.teardown()[-1] == "delete Namespace op"


@pytest.mark.parametrize(
    ("kind", "meta", "names"),
    [
        # An ExternalSecret, a policy of others and a NIC node policy keep what they own.
        ("Secret", {"ownerReferences": owner("external-secrets.io/v1", "ExternalSecret", "x")}, "Secret a"),
        (
            "DaemonSet",
            {"ownerReferences": owner("mellanox.com/v1alpha1", "NicClusterPolicy", "nic-cluster-policy", "uid-policy")},
            "DaemonSet a",
        ),
        ("Secret", {"labels": {"owner": "helm", "name": "shop", "version": "1"}}, "Secret a"),
        (
            "ConfigMap",
            {"annotations": {"meta.helm.sh/release-name": "net", "meta.helm.sh/release-namespace": "x"}},
            "ConfigMap a",
        ),
        ("Secret", {"annotations": {"cert-manager.io/certificate-name": "gone"}}, "Secret a"),
    ],
)
def test_a_namespace_with_what_only_looks_like_the_operators_stays(
    world: World, kind: str, meta: dict[str, Any], names: str
) -> None:
    world.install()
    world.cluster.put({**POLICY, "metadata": {"name": "nic-cluster-policy", "uid": "uid-policy"}})
    put(world, "apps/v1" if kind == "DaemonSet" else "v1", kind, "a", **meta)
    assert world.info(operator_state="absent")["release"]["notes"] == [
        f"Namespace op was not removed: it holds objects that this collection does not manage: {names}."
    ]


def test_a_namespace_whose_content_cannot_be_read_is_not_removed(world: World) -> None:
    world.install()
    world.cluster.objects["/apis"] = {"kind": "Login"}
    found = world.info(operator_state="absent")
    assert "GET /apis with another document instead of APIGroupList" in found["msg"]


def test_a_policy_of_ours_stays_while_pools_of_others_would_go_with_it(world: World) -> None:
    """As recorded: with nvIpam of the policy, the operator removes the definitions of pools, and so every pool."""
    policy = {**POLICY, "metadata": {"name": "nic-cluster-policy", "labels": MANAGED}, "spec": {"nvIpam": {}}}
    given: dict[str, Any] = {"state": "absent", "objects": [policy]}
    world.objects(objects=[policy])
    put(world, "nv-ipam.nvidia.com/v1alpha1", "IPPool", "rail0", labels=MANAGED)
    pool = world.cluster.put(put(world, "nv-ipam.nvidia.com/v1alpha1", "CIDRPool", "storage-pool"))
    assert world.objects(**given)["msg"] == (
        "fabric_objects: NicClusterPolicy nic-cluster-policy: the operator removes all address pools with this policy,"
        " and this collection does not manage these: CIDRPool op/storage-pool. Save and remove them, then rerun the"
        " playbook"
    )
    del world.cluster.objects[pool]
    assert world.objects(**given)["changed"] is True


def test_a_namespace_of_others_is_not_searched(world: World) -> None:
    """It is never removed, so nothing that it holds matters."""
    world.cluster.put({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "op"}})
    put(world, "v1", "Secret", "ngc-pull")
    found = world.info(operator_state="absent")
    assert found["release"]["notes"] == []
    assert not [path for _method, path in world.cluster.calls if "persistentvolumeclaims" in path]


def test_a_first_installation_that_failed_is_repaired(world: World) -> None:
    world.objects(objects=world.info()["release"]["objects"])
    world.helm("failed", deployment=False)
    assert world.info()["release"]["action"] == "repair"
    incomplete = world.info(operator_state="installed")
    assert incomplete["msg"] == (
        "cluster_info: this stops the run:\n- Helm release net in namespace op is in state failed after the"
        " installation, expected deployed. Inspect it with: helm history net --namespace op"
    )


def test_a_downgrade_is_refused_after_the_deployment_was_deleted(world: World) -> None:
    world.install()
    for path in [path for path in world.cluster.objects if "/deployments/" in path]:
        del world.cluster.objects[path]
    assert world.info()["release"]["action"] == "repair"
    assert "a downgrade is not supported" in world.info(release="26.7.0")["msg"]


def test_an_operator_of_others_is_refused_and_survives_a_teardown(world: World) -> None:
    world.helm()
    world.cluster.put({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "op"}})
    world.cluster.put(POLICY)
    refused = world.info()
    assert [problem.split(":")[0] for problem in refused["problems"]] == [
        "NicClusterPolicy nic-cluster-policy is not managed by this collection. Set rdma_fabric.operator.existing to"
        " use (it stays as it is, and must offer the resources of all rails) or to adopt (this collection changes it,"
        " and removes it at teardown)",
        "network operator op/network-operator",
    ]
    before = json.dumps(world.cluster.objects)
    assert world.teardown() == []
    assert world.info(operator_state="absent")["release"]["notes"] == [
        "Network operator op/network-operator is not managed by this collection. It was not removed."
    ]
    assert json.dumps(world.cluster.objects) == before


def test_an_operator_of_others_is_used(world: World) -> None:
    world.helm()
    used = world.info(existing="use", chart_ref="/none/chart.tgz", helm_binary="/none/helm")["release"]
    assert (used["action"], used["objects"], used["managed"]) == ("none", [], False)
    assert world.teardown() == []


def test_an_operator_of_others_is_adopted_and_then_ours(world: World) -> None:
    world.cluster.put(definition("nicclusterpolicies.mellanox.com"))
    world.helm("superseded", version="26.4.2")
    world.helm(number=2, version="26.4.2")
    world.objects(objects=world.info(existing="adopt")["release"]["objects"])
    world.helm(number=3)
    assert world.info()["release"]["managed"] is True
    assert world.teardown() == ["delete ConfigMap gpufabric-operator", "delete Namespace op"]


def test_a_release_of_others_under_our_name_is_not_ours(world: World) -> None:
    """Ours was removed by hand, and theirs was installed in its place: the mark names a Secret that is gone."""
    world.install()
    world.uninstall()
    world.cluster.uid += 100
    world.helm()
    assert "it is not managed by this collection" in world.info()["msg"]
    assert world.teardown() == ["delete ConfigMap gpufabric-operator"]
    assert f"{SECRETS}/sh.helm.release.v1.net.v1" in world.cluster.objects


def test_without_the_permission_to_see_releases_nothing_is_decided(world: World) -> None:
    world.cluster.denied = ("list secrets",)
    world.helm()
    told = world.info(require=False)
    assert told["release"] is None
    assert told["problems"] == [
        "permissions are missing: list secrets in op; use an account that has them",
    ]


def test_what_is_missing_on_the_controller_is_found_before_the_first_change(world: World) -> None:
    assert "helm was not found at /none/helm on the controller" in world.info(helm_binary="/none/helm")["msg"]
    assert "there is no such file or folder" in world.info(chart_ref="/none/chart.tgz")["msg"]
    told = world.info(test_namespace="op")["msg"]
    assert "test_namespace is op, which is the namespace of the network operator." in told
    assert world.cluster.objects == {}
