"""Claims of Dynamic Resource Allocation in place of a device plugin. Plans of two hosts; costs less than a second."""

from __future__ import annotations

from typing import Any

import pytest
from tests.unit.support.plan_factory import fleet

from ansible_collections.gpufabric.rdma.plugins.module_utils._common.errors import InputError
from ansible_collections.gpufabric.rdma.plugins.module_utils._fabric.operator.manifests import Chart, manifests
from ansible_collections.gpufabric.rdma.plugins.module_utils._fabric.plan.plan import plan

GATE = {"sriovOperatorConfig": {"featureGates": {"dynamicResourceAllocation": True}}}
FABRIC: dict[str, Any] = {"profile": "sriov", "supernet": "192.168.0.0/16", "sriov": {"assigned_by": "dra"}}


def planned(**other: Any) -> dict[str, Any]:
    return plan({**FABRIC, **other}, fleet(2, rails=2))


def test_the_chart_gets_the_driver_and_objects_stay_the_same() -> None:
    made, usual = planned(), planned(sriov={})
    assert made["operator"]["chart_values"] == {
        "sriovNetworkOperator": {"enabled": True},
        "sriov-network-operator": GATE,
    }
    assert made["objects"] == usual["objects"]
    assert usual["operator"]["chart_values"] == {"sriovNetworkOperator": {"enabled": True}}
    # Nodes offer no resources, so nothing waits for them.
    assert [rail["share"] for rail in made["rails"]] == [0, 0] and [rail["share"] for rail in usual["rails"]] == [8, 8]
    assert [text for text in made["warnings"] if "measure on the hosts only" in text]
    assert not [text for text in usual["warnings"] if "claim" in text]


def test_each_rail_has_a_template_and_the_pod_uses_all() -> None:
    files = manifests(planned(network_namespace="jobs", networks={"name": "gpu-{rail}"}), Chart())
    first, second = files["examples/resource-claims.yaml"]
    assert (first["apiVersion"], first["kind"]) == ("resource.k8s.io/v1", "ResourceClaimTemplate")
    assert first["metadata"] == {"name": "gpu-rail0", "namespace": "jobs"}
    (request,) = first["spec"]["spec"]["devices"]["requests"]
    assert request == {
        "name": "vf",
        "exactly": {
            "deviceClassName": "sriovnetwork.k8snetworkplumbingwg.io",
            "count": 1,
            "selectors": [
                {"cel": {"expression": 'device.attributes["k8s.cni.cncf.io"].resourceName == "nvidia.com/vf_rail0"'}}
            ],
        },
    }
    assert second["metadata"]["name"] == "gpu-rail1"
    (pod,) = files["examples/pod.yaml"]
    assert pod["spec"]["containers"][0]["resources"] == {"claims": [{"name": "rail0"}, {"name": "rail1"}]}
    assert pod["spec"]["resourceClaims"] == [
        {"name": "rail0", "resourceClaimTemplateName": "gpu-rail0"},
        {"name": "rail1", "resourceClaimTemplateName": "gpu-rail1"},
    ]
    assert pod["metadata"]["annotations"]["k8s.v1.cni.cncf.io/networks"] == "jobs/gpu-rail0,jobs/gpu-rail1"
    assert any("/dra-driver-sriov:network-operator-v" in line for line in files["images.txt"].splitlines())


def test_without_claims_there_are_none() -> None:
    files = manifests(planned(sriov={}), Chart())
    (pod,) = files["examples/pod.yaml"]
    assert "examples/resource-claims.yaml" not in files and "resourceClaims" not in pod["spec"]
    assert "dra-driver" not in files["images.txt"]


@pytest.mark.parametrize(
    ("other", "link_layer", "message"),
    [
        (
            {"operator": {"release": "26.1.2"}},
            "ethernet",
            "line 26.1 has no DRA driver. Lines that have it: 26.4, 26.7",
        ),
        ({"operator": {"platform": "openshift"}}, "ethernet", "dra is not supported with platform openshift"),
        ({"profile": "sriov_ib"}, "infiniband", "assigned_by: dra is for profile sriov"),
        (
            {
                "classes": [
                    {
                        "name": "b",
                        "hosts": ["gpu-0002"],
                        "supernet": "10.0.0.0/16",
                        "sriov": {"assigned_by": "operator"},
                    }
                ]
            },
            "ethernet",
            "sriov-network-operator of the operator's chart would differ between classes",
        ),
    ],
)
def test_what_is_refused(other: dict[str, Any], link_layer: str, message: str) -> None:
    with pytest.raises(InputError) as caught:
        plan({**FABRIC, **other}, fleet(2, link_layer=link_layer))
    assert message in str(caught.value)


def test_classes_wait_for_the_resources_that_nodes_offer() -> None:
    other = {"name": "b", "hosts": ["gpu-0002"], "supernet": "10.0.0.0/16", "profile": "macvlan"}
    made = planned(classes=[other])
    assert [own["resources"] for own in made["classes"]] == [{}, {"rdma_b_rail0": 63, "rdma_b_rail1": 63}]
