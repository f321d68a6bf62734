"""Platforms: what OpenShift changes in intent, plan and names. Milliseconds."""

from __future__ import annotations

from typing import Any

import pytest
from tests.unit.support.plan_factory import fleet

from ansible_collections.gpufabric.rdma.plugins.module_utils._common.errors import InputError
from ansible_collections.gpufabric.rdma.plugins.module_utils._fabric.intent import platforms
from ansible_collections.gpufabric.rdma.plugins.module_utils._fabric.intent.namespaces import refusal
from ansible_collections.gpufabric.rdma.plugins.module_utils._fabric.operator.profiles import registry
from ansible_collections.gpufabric.rdma.plugins.module_utils._fabric.plan.plan import plan

SRIOV = "openshift-sriov-network-operator"

FABRIC: dict[str, Any] = {"supernet": "192.168.0.0/16", "operator": {"platform": "openshift"}}


def planned(profile: str = "sriov", **operator: Any) -> dict[str, Any]:
    fabric = {**FABRIC, "profile": profile, "operator": {**FABRIC["operator"], **operator}}
    return plan(fabric, fleet(2, link_layer=registry.get(profile).link_layer))


@pytest.mark.parametrize("profile", ["sriov", "sriov_ib"])
def test_the_objects_of_vfs_are_in_the_namespace_of_red_hats_operator(profile: str) -> None:
    made = planned(profile)
    places = {item["kind"]: item["metadata"].get("namespace") for part in made["objects"].values() for item in part}
    network = "SriovNetwork" if profile == "sriov" else "SriovIBNetwork"
    assert places == {
        "NicClusterPolicy": None,
        "SriovNetworkNodePolicy": SRIOV,
        "IPPool": "nvidia-network-operator",
        network: SRIOV,
    }
    assert [rail["resource"] for rail in made["rails"]] == ["openshift.io/vf_rail0", "openshift.io/vf_rail1"]
    assert {item["spec"]["resourceName"] for item in made["objects"]["networks"] if item["kind"] == network} == {
        "vf_rail0",
        "vf_rail1",
    }


@pytest.mark.parametrize("profile", registry.names())
def test_multus_and_plugins_are_those_of_the_cluster(profile: str) -> None:
    made = planned(profile)
    (policy,) = [item for item in made["objects"]["policy"] if item["kind"] == "NicClusterPolicy"]
    assert not {"multus", "cniPlugins"} & set(policy["spec"].get("secondaryNetwork", {}))
    assert made["operator"]["chart_values"] == {} and made["operator"]["nfd"] is False
    assert not [text for text in made["warnings"] if "NFD" in text]


def test_only_resources_of_the_sriov_operator_have_its_prefix() -> None:
    assert planned("host_device")["rails"][0]["resource"] == "nvidia.com/hostdev_rail0"
    vfs = plan({**FABRIC, "profile": "sriov", "sriov": {"assigned_by": "device_plugin"}}, fleet(2))
    assert vfs["rails"][0]["resource"] == "nvidia.com/vf_rail0"
    assert planned("macvlan")["rails"][0]["resource"] == "rdma_rail0"
    assert {"nvidia.com/vf_", "openshift.io/vf_"} <= set(registry.resource_prefixes())


@pytest.mark.parametrize(
    ("operator", "message"),
    [
        ({"multus": True}, "rdma_fabric.operator.multus: OpenShift has Multus, and a second one would conflict."),
        ({"cni_plugins": True}, "rdma_fabric.operator.cni_plugins: OpenShift has the CNI plugins, and a second one"),
        ({"nfd": True}, "rdma_fabric.operator.nfd: OpenShift has the Node Feature Discovery Operator of Red Hat,"),
        ({"platform": "okd"}, "rdma_fabric.operator.platform: expected one of kubernetes, openshift"),
        ({"platform": "kubernetes", "machine_pool": "gpu"}, "machine_pool: is not used with platform kubernetes."),
    ],
)
def test_what_the_platform_has_of_its_own_is_refused(operator: dict[str, Any], message: str) -> None:
    with pytest.raises(InputError) as error:
        planned(**operator)
    assert message in str(error.value)


@pytest.mark.parametrize(
    ("platform", "networks", "pods", "found"),
    [
        ("kubernetes", "team-a", "gpufabric-validate", ""),
        ("openshift", "default", "gpufabric-validate", ""),
        ("openshift", "team-a", "team-a", ""),
        ("openshift", SRIOV, "gpufabric-validate", ""),
        (
            "openshift",
            "team-a",
            "gpufabric-validate",
            "namespace is gpufabric-validate. OpenShift lets pods use networks of their own namespace and of default"
            " only, and rdma_fabric.network_namespace is team-a. Set namespace to team-a, or"
            " rdma_fabric.network_namespace to default",
        ),
    ],
)
def test_where_testers_reach_the_networks(platform: str, networks: str, pods: str, found: str) -> None:
    assert refusal("namespace", pods, operator="op", networks=networks, platform=platform) == found


def test_testers_have_no_namespace_that_they_would_delete() -> None:
    for name in ("default", "op"):
        assert refusal("namespace", name, operator="op", networks="default", platform="openshift")
    assert refusal("namespace", "team-a", operator="op", networks="team-a")


def test_an_unknown_platform_is_an_error_of_input() -> None:
    with pytest.raises(InputError, match="platform: expected one of kubernetes, openshift"):
        platforms.get("okd")
    assert platforms.of_sriov("op").name == "kubernetes" and platforms.of_sriov(SRIOV).name == "openshift"
