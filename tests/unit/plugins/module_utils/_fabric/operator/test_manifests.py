"""A plan as files: what GitOps applies is what the playbooks would apply."""

from __future__ import annotations

from typing import Any

import yaml

from ansible_collections.gpufabric.rdma.plugins.module_utils._fabric.operator import gpu_operator
from ansible_collections.gpufabric.rdma.plugins.module_utils._fabric.operator.manifests import Chart, manifests
from ansible_collections.gpufabric.rdma.plugins.module_utils._fabric.plan import presets
from ansible_collections.gpufabric.rdma.plugins.module_utils._fabric.plan.plan import plan


def planned(**fabric: Any) -> dict[str, Any]:
    return plan({"supernet": "192.168.0.0/16", **fabric}, presets.hosts("dell_xe9680_h200", 2))


def test_every_object_of_the_plan_is_in_a_file_and_in_a_kustomization() -> None:
    found = planned()
    files = manifests(found, Chart())
    for step in ("policy", "networks"):
        own = {path: content for path, content in files.items() if path.startswith(f"{step}/")}
        (kustomization,) = own.pop(f"{step}/kustomization.yaml")
        assert [f"{step}/{name}" for name in kustomization["resources"]] == list(own)
        applied = sorted((item["kind"], item["metadata"]["name"]) for content in own.values() for item in content)
        assert applied == sorted((item["kind"], item["metadata"]["name"]) for item in found["objects"][step])


def test_pools_come_before_the_networks_that_use_them() -> None:
    (kustomization,) = manifests(planned(), Chart())["networks/kustomization.yaml"]
    assert [name.split("-")[0] for name in kustomization["resources"]] == ["ippool"] * 8 + ["macvlannetwork"] * 8


def test_values_of_the_user_go_over_those_of_the_plan() -> None:
    chart = Chart(values={"nfd": {"deployNodeFeatureRules": False}, "operator": {"priorityClassName": "x"}})
    (values,) = manifests(planned(operator={"nfd": True}), chart)["operator/values.yaml"]
    assert values == {"nfd": {"enabled": True, "deployNodeFeatureRules": False}, "operator": {"priorityClassName": "x"}}


def test_releases_for_gitops_name_the_chart_and_its_version() -> None:
    chart = Chart("rdma", "network-operator", "https://charts.example.com")
    files = manifests(planned(operator={"release": "26.4.1", "namespace": "fabric"}), chart)
    (application,) = files["operator/argocd.yaml"]
    assert application["spec"]["source"]["repoURL"] == "https://charts.example.com"
    assert application["spec"]["source"]["targetRevision"] == "26.4.1"
    assert application["spec"]["destination"]["namespace"] == "fabric"
    repository, release = files["operator/flux.yaml"]
    assert release["spec"]["chart"]["spec"]["version"] == "26.4.1"
    assert release["spec"]["chart"]["spec"]["sourceRef"] == {"kind": repository["kind"], "name": "rdma"}
    assert "operator/flux.yaml" not in manifests(planned(), Chart())


def test_the_example_pod_asks_for_every_rail() -> None:
    (pod,) = manifests(planned(network_namespace="jobs"), Chart(), "registry.example.com/perftest:1")[
        "examples/pod.yaml"
    ]
    networks = pod["metadata"]["annotations"]["k8s.v1.cni.cncf.io/networks"].split(",")
    assert networks == [f"jobs/rail{index}" for index in range(8)]
    (container,) = pod["spec"]["containers"]
    assert container["resources"]["limits"] == {f"rdma/rdma_rail{index}": "1" for index in range(8)}
    assert container["image"] == "registry.example.com/perftest:1"


def test_a_mirror_gets_a_list_and_labels_are_told() -> None:
    files = manifests(planned(operator={"image_repository": "mirror.example.com/m"}, node_labels={"a": "b"}), Chart())
    first = files["mirror.txt"].splitlines()[0].split()
    assert first[0].startswith("nvcr.io/nvidia/mellanox/") and first[1] in files["images.txt"].split()
    assert "kubectl label node NAME a=b" in files["plan.txt"]


def test_a_line_without_a_common_repository_gets_the_list_too() -> None:
    operator = {"release": "25.10.0", "image_repository": "mirror.example.com/m"}
    assert "mirror.txt" in manifests(planned(operator=operator), Chart())


def test_without_addresses_there_are_no_networks() -> None:
    files = manifests(planned(supernet=None, addresses="keep"), Chart())
    assert not [path for path in files if path.startswith(("networks/", "examples/"))]
    assert "warning: rdma_fabric.supernet is not given" in files["plan.txt"]


def test_values_of_the_gpu_operator_fit_who_brings_nic_drivers_and_nfd() -> None:
    def values(**operator: Any) -> Any:
        files = manifests(planned(operator=operator), Chart())
        return yaml.safe_load(files["operator/gpu-operator-values.yaml"])

    inbox, container = {"enabled": False, "useHostMofed": False}, {"enabled": True, "useHostMofed": False}
    assert values(nfd=True) == {"nfd": {"enabled": False}, "driver": {"rdma": inbox}}
    assert values(nfd=False) == {"driver": {"rdma": inbox}}
    found = values(nfd=True, driver={"enabled": True, "version": "doca3.5.0"})
    assert found["driver"]["rdma"] == container
    # The check of a running GPU Operator agrees.
    for rdma, provider in ((inbox, "inbox"), (container, "container")):
        policy = {"metadata": {"name": "x"}, "spec": {"driver": {"rdma": rdma}}}
        assert gpu_operator.summary(policy, provider)["problem"] == ""
    assert "operator/gpu-operator-values.yaml" not in manifests(planned(operator={"platform": "openshift"}), Chart())
