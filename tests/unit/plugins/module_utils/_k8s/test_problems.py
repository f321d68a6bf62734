"""All that stops a run is found at once: version, nodes, operator, NFD, Multus, chart, permissions."""

from __future__ import annotations

import dataclasses
import hashlib
from pathlib import Path
from typing import Any

import pytest
from cluster_fake import FakeCluster

from ansible_collections.gpufabric.rdma.plugins.module_utils._k8s import access, chart, survey
from ansible_collections.gpufabric.rdma.plugins.module_utils._k8s.problems import Aim, Found, problems

LABEL = {"feature.node.kubernetes.io/pci-15b3.present": "true"}
AIM = Aim("26.7.1", "op", True, {})
FINE = Found("v1.35.4", (1, 35), [{"name": "a", "ready": True, "labels": LABEL}], {"h": "a"}, [], [], [])


def change(found: Found = FINE, **values: Any) -> Found:
    return dataclasses.replace(found, **values)


def place(namespace: str, **more: str) -> list[dict[str, str]]:
    return [{"namespace": namespace, "name": "x", **more}]


CASES = [
    (AIM, FINE, []),
    (AIM, change(version="v1.31.2", numbers=(1, 31)), [
        "the API server is v1.31.2; release 26.7.1 of the operator needs 1.32 or newer, upgrade the cluster or choose"
        " an older release"]),
    (AIM, change(numbers=None), []),
    (dataclasses.replace(AIM, release="23.1"), FINE, [
        "release 23.1 of the network operator is not supported. Supported release lines: 26.4, 26.7. Set"
        " rdma_fabric.operator.release to one of them"]),
    (AIM, change(nodes=[{"name": "a", "ready": False, "labels": LABEL}]), [
        "Node a (host h) is not Ready; look at its kubelet, or take the host out of the run"]),
    (AIM, change(operators=place("other", version="26.7.1")), [
        "a network operator runs already in namespace other (Deployment x); set rdma_fabric.operator.namespace to it,"
        " or remove it; op was given"]),
    (AIM, change(operators=place("op", version="26.4.2")), []),
    (AIM, change(operators=place("op", version="26.1.0")), [
        "network operator op/x: an upgrade from 26.1.0 to 26.7.1 would skip a release line. Upgrade one line at a"
        " time: 26.1 -> 26.4 -> 26.7"]),
    (AIM, change(operators=place("op", version="24.10.1")), [
        "network operator op/x: no upgrade from the installed release 24.10.1 to 26.7.1 is known. Release lines in the"
        " order of upgrades: 25.10 -> 26.1 -> 26.4 -> 26.7"]),
    (AIM, change(operators=place("op", version="26.10.0")), [
        "network operator op/x: the installed release 26.10.0 is newer than the requested release 26.7.1, and a"
        " downgrade is not supported. Set rdma_fabric.operator.release to 26.10.0 or newer"]),
    (AIM, change(discoveries=place("nfd")), [
        "Node Feature Discovery runs already (nfd/x), and the chart would install a second one;"
        " set rdma_fabric.operator.nfd to false"]),
    (AIM, change(discoveries=place("op")), []),
    (dataclasses.replace(AIM, nfd=False), change(nodes=[{"name": "a", "ready": True, "labels": {}}]), [
        "Node Feature Discovery is missing, and these nodes have no label feature.node.kubernetes.io/pci-15b3.present:"
        " a; set rdma_fabric.operator.nfd to true, or give the label in rdma_fabric.node_labels"]),
    (Aim("26.7.1", "op", False, LABEL), change(nodes=[{"name": "a", "ready": True, "labels": {}}]), []),
    (AIM, change(multuses=place("kube-system")), [
        "Multus runs already as DaemonSet kube-system/x, and the policy would install a second one that fights over"
        " the CNI configuration; remove one of them"]),
    (AIM, change(multuses=place("op")), []),
]


@pytest.mark.parametrize(("aim", "found", "expected"), CASES)
def test_problems(aim: Aim, found: Found, expected: list[str]) -> None:
    assert list(problems(aim, found)) == expected


def test_all_missing_permissions_at_once() -> None:
    cluster = FakeCluster(denied=("patch nodes", "list nodes", "create namespaces", "watch nodes"))
    wanted = access.needed("op", "default", "tests")
    missing = access.denied(cluster.api(), wanted)
    assert missing == ["list nodes", "patch nodes", "create namespaces"]
    assert access.grouped(missing) == "list/patch nodes, create namespaces"
    assert len(cluster.calls) == len(wanted)


def test_a_permission_in_a_namespace_and_of_a_group() -> None:
    found = access.Permission("create", "nv-ipam.nvidia.com", "ippools", "op")
    assert str(found) == "create ippools.nv-ipam.nvidia.com in op"


def test_charts(tmp_path: Path) -> None:
    archive, folder = tmp_path / "c.tgz", tmp_path / "chart"
    archive.write_bytes(b"chart")
    folder.mkdir()
    right = hashlib.sha256(b"chart").hexdigest()
    wrong = "0" * 64
    assert list(chart.problems("network-operator", wrong)) == []
    assert list(chart.problems(str(archive), "sha256:" + right)) == []
    assert list(chart.problems(str(archive), wrong)) == [
        f"chart {archive}: its sha256 is {right}, expected {wrong}; get the pinned chart, or pin this one"
    ]
    assert list(chart.problems(f"{archive}x", "")) == [
        f"chart {archive}x: there is no such file or folder; correct the path, or name a chart of a repository"
    ]
    assert list(chart.problems(str(folder), "")) == [
        f"chart {folder}: the folder has no Chart.yaml; name the folder of a chart"
    ]
    (folder / "Chart.yaml").touch()
    assert list(chart.problems(str(folder), wrong)) == [
        f"chart {folder}: a checksum ({wrong}) needs an archive (.tgz), found a folder; use helm package"
    ]


def workload(kind: str, name: str, image: str, **labels: str) -> dict[str, Any]:
    return {
        "apiVersion": "apps/v1", "kind": kind, "metadata": {"name": name, "namespace": "ns", "labels": labels},
        "spec": {"template": {"spec": {"containers": [{"image": image}]}}},
    }


def test_what_runs_in_the_cluster() -> None:
    # What the chart writes when its release is called "fabric".
    operator = workload("Deployment", "o", "r/network-operator:v26.7.1",
                        **{"control-plane": "fabric-controller", "app.kubernetes.io/name": "network-operator"})
    operator["metadata"]["annotations"] = {"meta.helm.sh/release-name": "fabric"}
    nfd = workload("Deployment", "x-node-feature-discovery-master", "r/nfd:v0.17")
    gc = workload("Deployment", "x-node-feature-discovery-gc", "r/nfd:v0.17")
    assert survey.operators([operator, nfd]) == [
        {"namespace": "ns", "name": "o", "version": "26.7.1", "image": "r/network-operator:v26.7.1",
         "release": "fabric", "available": False}
    ]
    assert [item["name"] for item in survey.discoveries([operator, nfd, gc])] == ["x-node-feature-discovery-master"]
    multus = workload("DaemonSet", "m", "ghcr.io/k8snetworkplumbingwg/multus-cni:v4")
    assert [item["name"] for item in survey.multuses([multus, workload("DaemonSet", "d", "r/other:1")])] == ["m"]


def test_nodes_are_summed_up() -> None:
    node = {
        "metadata": {"name": "a", "labels": {"nvidia.com/gpu.present": "true", "team": "x"}},
        "status": {
            "nodeInfo": {"machineID": "1"}, "allocatable": {"cpu": "8", "rdma/rdma_rail0": "63"},
            "conditions": [{"type": "Ready", "status": "True"}],
        },
    }
    assert survey.summaries([node]) == [{
        "name": "a", "machine_id": "1", "ready": True,
        "labels": {"nvidia.com/gpu.present": "true"}, "allocatable": {"rdma/rdma_rail0": "63"},
    }]


def test_labels_that_are_asked_for_are_in_the_summary_of_a_node() -> None:
    node = {"metadata": {"name": "a", "labels": {"rack": "r1", "zone": "z1"}}}
    assert survey.summaries([node], ["rack"])[0]["labels"] == {"rack": "r1"}


def test_workloads_of_others_that_use_rails() -> None:
    def pod(name: str, limits: dict[str, str], **meta: Any) -> dict[str, Any]:
        containers = [{"resources": {"limits": limits}}]
        spec = {"nodeName": "a", "containers": containers}
        return {"metadata": {"name": name, "namespace": "n", **meta}, "spec": spec}

    ours = {"app.kubernetes.io/managed-by": "gpufabric"}
    pods = [
        pod("plain", {"cpu": "1"}), pod("rdma", {"rdma/rdma_rail0": "1"}),
        pod("net", {}, annotations={"k8s.v1.cni.cncf.io/networks": "rail0"}),
        pod("tester", {"rdma/x": "1"}, labels=ours),
    ]
    assert [found["name"] for found in survey.workloads(pods)] == ["rdma", "net"]


@pytest.mark.parametrize(
    ("answer", "numbers"),
    [({"gitVersion": "v1.35.4", "major": "1", "minor": "35"}, (1, 35)), ({"major": "1", "minor": "32+"}, (1, 32)),
     ({"gitVersion": "v0.0.0-master", "major": "", "minor": ""}, None)],
)
def test_version(answer: dict[str, str], numbers: tuple[int, int] | None) -> None:
    cluster = FakeCluster()
    cluster.objects["/version"] = answer
    assert survey.version(cluster.api())[1] == numbers
