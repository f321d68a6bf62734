"""All that stops a run is found at once: version, nodes, operator, NFD, Multus, chart, permissions."""

from __future__ import annotations

import dataclasses
import hashlib
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest
from tests.unit.support.cluster_fake import FakeCluster

from ansible_collections.gpufabric.rdma.plugins.module_utils._k8s.checks import access, chart, survey
from ansible_collections.gpufabric.rdma.plugins.module_utils._k8s.checks.problems import Aim, Found, policy, problems

LABEL = {"feature.node.kubernetes.io/pci-15b3.present": "true"}
AIM = Aim("26.7.1", "op", True, {})
FINE = Found("v1.35.4", (1, 35), [{"name": "a", "ready": True, "labels": LABEL}], {"h": "a"}, [], [])


def change(found: Found = FINE, **values: Any) -> Found:
    return dataclasses.replace(found, **values)


def place(namespace: str, **more: str) -> list[dict[str, str]]:
    return [{"namespace": namespace, "name": "x", **more}]


CASES = [
    (AIM, FINE, []),
    (
        AIM,
        change(version="v1.31.2", numbers=(1, 31)),
        [
            "the API server is v1.31.2; release 26.7.1 of the operator needs 1.32 or newer, upgrade "
            "the cluster or choose"
            " an older release"
        ],
    ),
    (AIM, change(numbers=None), []),
    (
        dataclasses.replace(AIM, release="23.1"),
        FINE,
        [
            "release 23.1 of the network operator is not supported. Supported release lines: 25.10, 26.1, 26.4, 26.7."
            " Set rdma_fabric.operator.release to one of them"
        ],
    ),
    (
        AIM,
        change(nodes=[{"name": "a", "ready": False, "labels": LABEL}]),
        ["Node a (host h) is not Ready. Check its kubelet, or take the host out of the run"],
    ),
    (
        AIM,
        change(discoveries=place("nfd")),
        [
            "Node Feature Discovery runs already (nfd/x), and the chart would install a second one;"
            " set rdma_fabric.operator.nfd to false"
        ],
    ),
    (AIM, change(discoveries=place("op")), []),
    (
        dataclasses.replace(AIM, nfd=False),
        change(nodes=[{"name": "a", "ready": True, "labels": {}}]),
        [
            "Node Feature Discovery is missing, and these nodes have no label "
            "feature.node.kubernetes.io/pci-15b3.present:"
            " a; set rdma_fabric.operator.nfd to true, or give the label in rdma_fabric.node_labels"
        ],
    ),
    # Where the chart is not installed, it brings no Node Feature Discovery either.
    (dataclasses.replace(AIM, installs=False), change(discoveries=place("nfd")), []),
    (
        dataclasses.replace(AIM, installs=False),
        change(discoveries=place("op"), nodes=[{"name": "a", "ready": True, "labels": {}}]),
        [],
    ),
    (Aim("26.7.1", "op", False, LABEL), change(nodes=[{"name": "a", "ready": True, "labels": {}}]), []),
    (
        AIM,
        change(multuses=place("kube-system")),
        [
            "Multus runs already as DaemonSet kube-system/x, and the policy would install a second one that changes "
            "the same CNI configuration. Set rdma_fabric.operator.multus to false to use the installed one"
        ],
    ),
    (AIM, change(multuses=place("op")), []),
    (dataclasses.replace(AIM, multus=False), change(multuses=place("kube-system")), []),
    (
        dataclasses.replace(AIM, multus=False),
        change(multuses=place("op")),
        [
            "rdma_fabric.operator.multus is false, but no DaemonSet of the cluster runs Multus. Install it, or set "
            "rdma_fabric.operator.multus to true"
        ],
    ),
]


@pytest.mark.parametrize(("aim", "found", "expected"), CASES)
def test_problems(aim: Aim, found: Found, expected: list[str]) -> None:
    assert list(problems(aim, found)) == expected


POLICIES = [{"name": "nic-cluster-policy", "namespace": None, "ours": False}]


@pytest.mark.parametrize("existing", ["", "use", "adopt"])
def test_a_policy_of_others_with_consent(existing: str) -> None:
    assert list(policy(existing, POLICIES)) == []


def test_a_policy_of_others_without_consent() -> None:
    assert list(policy("refuse", [{**POLICIES[0], "ours": True}])) == []
    assert list(policy("refuse", POLICIES)) == [
        "NicClusterPolicy nic-cluster-policy is not managed by this collection. Set rdma_fabric.operator.existing to"
        " use (it stays as it is, and must offer the resources of all rails) or to adopt (this collection changes it,"
        " and removes it at teardown)"
    ]


def test_an_operator_that_is_used_needs_fewer_permissions() -> None:
    every, fewer = (set(access.needed("op", "n", "t", installs=installs)) for installs in (True, False))
    assert fewer < every
    assert {str(item) for item in every - fewer} >= {
        "create customresourcedefinitions.apiextensions.k8s.io",
        "create secrets in op",
        "create clusterroles.rbac.authorization.k8s.io",
    }


@pytest.mark.parametrize(
    ("steps", "needed", "spared"),
    [
        (
            ["networks"],
            ["create ippools.nv-ipam.nvidia.com in op", "list nodes"],
            [
                "create customresourcedefinitions.apiextensions.k8s.io",
                "get clusterroles.rbac.authorization.k8s.io",
                "create namespaces",
                "patch nodes",
                "create pods/exec in t",
            ],
        ),
        (["policy"], ["patch nodes", "list pods in op"], ["list secrets in op", "create namespaces"]),
        (["validate"], ["create pods/exec in t", "create namespaces"], ["patch nodes", "list secrets in op"]),
        (["operator"], ["create secrets in op", "list secrets in op"], ["create pods/exec in t"]),
    ],
)
def test_only_the_permissions_of_the_selected_steps(steps: list[str], needed: list[str], spared: list[str]) -> None:
    found = [str(item) for item in access.needed("op", "n", "t", steps=steps)]
    assert set(needed) <= set(found) and not set(spared) & set(found)
    assert len(set(found)) == len(found)
    assert set(found) | set(needed) | set(spared) <= {str(item) for item in access.needed("op", "n", "t")}


def test_collectives_need_services() -> None:
    without, wanted = (
        {str(item) for item in access.needed("op", "n", "t", steps=["validate"], collectives=collectives)}
        for collectives in (False, True)
    )
    assert wanted - without == {f"{verb} services in t" for verb in ("get", "create", "patch")}


def test_all_missing_permissions_at_once() -> None:
    cluster = FakeCluster(denied=("patch nodes", "list nodes", "create namespaces", "watch nodes"))
    wanted = access.needed("op", "default", "tests")
    missing = access.denied(cluster.api(), wanted)
    assert sorted(missing) == ["create namespaces", "list nodes", "patch nodes"]
    assert sorted(access.grouped(missing).split(", ")) == ["create namespaces", "list/patch nodes"]
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
    # The role and Helm would each take it for something else.
    for ref in ("charts/network-operator-26.7.1.tgz", "network-operator-26.7.1.tgz", ".network-operator"):
        assert list(chart.problems(ref, "")) == [
            f"chart {ref}: a path must begin with / or ./, and a chart of a repository has a name without a slash"
        ]
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


class Helm:
    """Stands in for the helm command: what it prints for its version and for a chart, and what it was asked."""

    def __init__(self, version: str = "v3.18.4+gd80839c", chart: tuple[int, str, str] = (0, "", "")) -> None:
        self.answers = {"version": (0, version, ""), "show": chart}
        self.asked: list[list[str]] = []

    def __call__(self, command: Sequence[str]) -> tuple[int, str, str]:
        self.asked.append(list(command[1:]))
        return self.answers[command[1]]


@pytest.fixture
def binary(tmp_path: Path) -> str:
    path = tmp_path / "helm"
    path.touch(mode=0o755)
    return str(path)


REPO = "https://user:secret@charts.example.com"
CHART = (0, "apiVersion: v2\nname: network-operator\nversion: 26.7.1\n", "")
GONE = (1, "", "Error: failed to fetch https://user:secret@charts.example.com/index.yaml : 404\n")


@pytest.mark.parametrize(
    ("helm", "ref", "expected"),
    [
        (Helm(chart=CHART), "network-operator", []),
        (Helm(chart=CHART), "oci://charts.example.com/network-operator", []),
        (Helm("v4.0.1", CHART), "network-operator", []),
        (
            Helm("v3.7.2"),
            "network-operator",
            [
                "BINARY reports version v3.7.2, expected Helm 3.8 or newer. Upgrade it, or set "
                "helm_binary to"
                " another one"
            ],
        ),
        (
            Helm(""),
            "network-operator",
            ["BINARY reports version none, expected Helm 3.8 or newer. Upgrade it, or set helm_binary to another one"],
        ),
        (
            Helm(chart=GONE),
            "network-operator",
            [
                "chart network-operator of https://charts.example.com: Helm cannot read version "
                "26.7.1: Error: failed to fetch"
                " https://charts.example.com/index.yaml : 404. Check the names and the connection, or set"
                " chart_ref to an archive on the controller"
            ],
        ),
        (
            Helm(chart=(0, 'version: "26.4.2"\n', "")),
            "network-operator",
            [
                "chart network-operator: its version is 26.4.2, expected 26.7.1. Set "
                "rdma_fabric.operator.release to the"
                " version of the chart, or chart_ref to another chart"
            ],
        ),
        (Helm(), "/none/chart.tgz", []),
    ],
)
def test_helm_and_the_chart_that_it_is_to_install(helm: Helm, ref: str, expected: list[str], binary: str) -> None:
    found = chart.helm_problems(helm, binary, ref, repo=REPO, release="26.7.1")
    assert [text.replace(binary, "BINARY") for text in found] == expected


def test_how_helm_is_asked_for_a_chart(binary: str, tmp_path: Path) -> None:
    archive = tmp_path / "chart.tgz"
    archive.touch()
    helm = Helm(chart=CHART)
    for ref in ("network-operator", "oci://r/network-operator", str(archive)):
        assert list(chart.helm_problems(helm, binary, ref, repo=REPO, release="26.7.1")) == []
    assert [command for command in helm.asked if command[0] == "show"] == [
        ["show", "chart", "network-operator", "--version", "26.7.1", "--repo", REPO],
        ["show", "chart", "oci://r/network-operator", "--version", "26.7.1"],
        ["show", "chart", str(archive)],
    ]


def test_no_helm(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    told = [list(chart.helm_problems(Helm(), path, "x", repo=REPO, release="26.7.1")) for path in ("", "/none/helm")]
    assert told == [
        [
            f"helm was not found {place} on the controller. Install Helm 3.8 or newer there, or set"
            " helm_binary to its path"
        ]
        for place in ("in PATH", "at /none/helm")
    ]


@pytest.mark.parametrize(
    ("params", "expected"),
    [
        ({}, True),
        ({"chart_checksum": "0"}, False),
        ({"chart_ref": "/c.tgz"}, False),
        ({"operator_state": "absent"}, False),
    ],
)
def test_charts_that_nothing_is_compared_with(params: dict[str, str], expected: bool) -> None:
    given = {"chart_ref": "network-operator", "chart_checksum": None, "operator_state": "present", **params}
    assert chart.unpinned(given) is expected


def workload(kind: str, name: str, image: str, **labels: str) -> dict[str, Any]:
    return {
        "apiVersion": "apps/v1",
        "kind": kind,
        "metadata": {"name": name, "namespace": "ns", "labels": labels},
        "spec": {"template": {"spec": {"containers": [{"image": image}]}}},
    }


def test_what_runs_in_the_cluster() -> None:
    # What the chart writes when its release is called "fabric".
    operator = workload(
        "Deployment",
        "o",
        "r/network-operator:v26.7.1",
        **{"control-plane": "fabric-controller", "app.kubernetes.io/name": "network-operator"},
    )
    operator["metadata"]["annotations"] = {"meta.helm.sh/release-name": "fabric"}
    nfd = workload("Deployment", "x-node-feature-discovery-master", "r/nfd:v0.17")
    gc = workload("Deployment", "x-node-feature-discovery-gc", "r/nfd:v0.17")
    assert survey.operators([operator, nfd]) == [
        {
            "namespace": "ns",
            "name": "o",
            "version": "26.7.1",
            "image": "r/network-operator:v26.7.1",
            "release": "fabric",
            "available": False,
        }
    ]
    assert [item["name"] for item in survey.discoveries([operator, nfd, gc])] == ["x-node-feature-discovery-master"]
    multus = workload("DaemonSet", "m", "ghcr.io/k8snetworkplumbingwg/multus-cni:v4")
    assert [item["name"] for item in survey.multuses([multus, workload("DaemonSet", "d", "r/other:1")])] == ["m"]


def test_nodes_are_summed_up() -> None:
    node = {
        "metadata": {"name": "a", "labels": {"nvidia.com/gpu.present": "true", "team": "x"}},
        "status": {
            "nodeInfo": {"machineID": "1"},
            "allocatable": {"cpu": "8", "rdma/rdma_rail0": "63"},
            "conditions": [{"type": "Ready", "status": "True"}],
        },
    }
    assert survey.summaries([node]) == [
        {
            "name": "a",
            "machine_id": "1",
            "ready": True,
            "labels": {"nvidia.com/gpu.present": "true"},
            "allocatable": {"rdma/rdma_rail0": "63"},
        }
    ]


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
        pod("plain", {"cpu": "1"}),
        pod("rdma", {"rdma/rdma_rail0": "1"}),
        pod("net", {}, annotations={"k8s.v1.cni.cncf.io/networks": "rail0"}),
        pod("tester", {"rdma/x": "1"}, labels=ours),
    ]
    assert [found["name"] for found in survey.workloads(pods)] == ["rdma", "net"]


@pytest.mark.parametrize(
    ("answer", "numbers"),
    [
        ({"gitVersion": "v1.35.4", "major": "1", "minor": "35"}, (1, 35)),
        ({"major": "1", "minor": "32+"}, (1, 32)),
        ({"gitVersion": "v0.0.0-master", "major": "", "minor": ""}, None),
    ],
)
def test_version(answer: dict[str, str], numbers: tuple[int, int] | None) -> None:
    cluster = FakeCluster()
    cluster.objects["/version"] = answer
    assert survey.version(cluster.api())[1] == numbers


@pytest.mark.parametrize(("ref", "expected"), [
    ("network-operator", "name"), (".network-operator", "name"), ("/c.tgz", "path"), ("./c", "path"), ("../c", "path"),
    ("~/c.tgz", "path"), ("oci://r/c", "url"), ("https://r/c.tgz", "url"), ("http://r/c.tgz", "url"),
])  # fmt: skip
def test_what_a_chart_reference_is(ref: str, expected: str) -> None:
    assert chart.kind_of(ref) == expected
