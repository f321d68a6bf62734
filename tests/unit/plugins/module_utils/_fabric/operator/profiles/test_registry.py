"""A network model that exists only here gets through the product by its line in the registry alone."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

import pytest
from tests.unit.support import cluster_fake
from tests.unit.support.cluster_fake import FakeClock, FakeCluster
from tests.unit.support.plan_factory import fleet, host_facts, rail_port

from ansible_collections.gpufabric.rdma.plugins.module_utils._common.errors import FabricError, InputError
from ansible_collections.gpufabric.rdma.plugins.module_utils._fabric.intent import role_variables
from ansible_collections.gpufabric.rdma.plugins.module_utils._fabric.operator.order import apply_order, delete_order
from ansible_collections.gpufabric.rdma.plugins.module_utils._fabric.operator.pools import pools
from ansible_collections.gpufabric.rdma.plugins.module_utils._fabric.operator.profiles import registry
from ansible_collections.gpufabric.rdma.plugins.module_utils._fabric.operator.profiles.kinds import IP_POOL
from ansible_collections.gpufabric.rdma.plugins.module_utils._fabric.operator.profiles.profile import Kind, Profile
from ansible_collections.gpufabric.rdma.plugins.module_utils._fabric.operator.readiness import (
    Finding,
    Readiness,
    policy_ready,
)
from ansible_collections.gpufabric.rdma.plugins.module_utils._fabric.operator.sections import secondary_network
from ansible_collections.gpufabric.rdma.plugins.module_utils._fabric.plan.plan import plan
from ansible_collections.gpufabric.rdma.plugins.module_utils._k8s.checks import access, survey
from ansible_collections.gpufabric.rdma.plugins.module_utils._k8s.client.kinds import path_of
from ansible_collections.gpufabric.rdma.plugins.module_utils._k8s.ready import wait
from ansible_collections.gpufabric.rdma.plugins.module_utils._k8s.testers import manifests

NET = {"supernet": "192.168.0.0/16", "rails": [{"name": "rail0"}]}
TOYS = {**NET, "profile": "toy", "network_namespace": "team"}
API = "toys.example.com/v1"
WITHOUT_VFS = "has no VFs to give to pods"


def toy_object(kind: str, name: str, **spec: Any) -> dict[str, Any]:
    return {"apiVersion": API, "kind": kind, "metadata": {"name": name}, "spec": spec}


def toy_ready(live: Mapping[str, Any], nad: Mapping[str, Any] | None, nodes: Any) -> Readiness:
    return Readiness.of([] if nad else [Finding(f"the toy {live['metadata']['name']} has no attachment yet")])


def toys_of_node(items: Any, state: Any, node: str) -> Readiness:
    return Readiness.of([] if state else [Finding(f"the toys of {node} are not reported yet")])


def policy_in_force(live: Mapping[str, Any], nad: Any, nodes: Any) -> Readiness:
    return Readiness.of([] if live.get("status") else [Finding("the toys of the nodes are not made yet")])


NETWORK = Kind(API, "ToyNetwork", "toynetworks", toy_ready, attaches=True)
POLICY = Kind(API, "ToyNodePolicy", "toynodepolicies", policy_in_force, step="policy")
TOY = Profile(
    name="toy",
    refuses=lambda port: "" if port["vfs"]["total"] else WITHOUT_VFS,
    shares_port=False,
    resource=lambda rail: f"toys.example.com/{rail}",
    resource_prefix="toys.example.com/",
    devices=lambda intent: 8,
    sections=lambda intent, line, rails: {"sriovDevicePlugin": {"image": "toys"}, **secondary_network(intent, line)},
    policies=lambda intent, rails: [toy_object("ToyNodePolicy", rail["name"]) for rail in rails],
    pools=pools,
    networks=lambda intent, rails: [
        toy_object("ToyNetwork", rail["network"], networkNamespace=intent.network_namespace) for rail in rails
    ],
    pod_network=lambda rail, namespace: f"{namespace}/{rail['network']}@eth{rail['index']}",
    kinds=(POLICY, IP_POOL, NETWORK),
    operator_makes_vfs=lambda intent: True,
    values=lambda intent: {"toys": {"enabled": True}},
)
NAD = {
    "apiVersion": "k8s.cni.cncf.io/v1",
    "kind": "NetworkAttachmentDefinition",
    "metadata": {"name": "rail0", "namespace": "team"},
}


@pytest.fixture
def toy(monkeypatch: pytest.MonkeyPatch) -> Profile:
    monkeypatch.setitem(registry.PROFILES, TOY.name, TOY)
    for kind in TOY.kinds:
        monkeypatch.setitem(cluster_fake.PLURALS, kind.kind, kind.plural)
        monkeypatch.setitem(cluster_fake.KINDS, kind.plural, kind.kind)
    return TOY


def objects() -> list[dict[str, Any]]:
    made = plan(TOYS, fleet(2, rails=1))["objects"]
    return [*made["policy"], *made["networks"]]


def test_each_model_is_registered_by_its_own_name() -> None:
    assert [profile.name for profile in registry.PROFILES.values()] == list(registry.PROFILES)


def test_a_model_that_is_not_registered_is_refused() -> None:
    with pytest.raises(InputError) as caught:
        plan(TOYS, fleet(2, rails=1))
    assert (
        str(caught.value) == f'rdma_fabric.profile: expected one of {", ".join(registry.names())}, found "toy" (text)'
    )
    with pytest.raises(InputError) as caught:
        access.needed("op", "team", "tests", profiles=["toy"])
    assert str(caught.value) == f'profile: expected one of {", ".join(registry.names())}, found "toy" (text)'


def test_the_intent_accepts_it(toy: Profile) -> None:
    assert role_variables.fabric_problem(TOYS, registry.names()) == ""
    assert plan(NET, fleet(2, rails=1))["profile"] == {"name": "macvlan", "operator_makes_vfs": False, "host_vfs": None}
    assert plan(TOYS, fleet(2, rails=1))["profile"] == {"name": "toy", "operator_makes_vfs": True, "host_vfs": None}


def test_its_chart_values_are_planned(toy: Profile) -> None:
    assert plan(TOYS, fleet(2, rails=1))["operator"]["chart_values"] == {"toys": {"enabled": True}}
    assert plan(NET, fleet(2, rails=1))["operator"]["chart_values"] == {}


def test_its_objects_are_planned(toy: Profile) -> None:
    policy, *others = objects()
    assert sorted(policy["spec"]) == ["global", "secondaryNetwork", "sriovDevicePlugin"]
    assert [item["kind"] for item in others] == ["ToyNodePolicy", "IPPool", "ToyNetwork"]
    assert others[-1] == toy_object("ToyNetwork", "rail0", networkNamespace="team")
    (rail,) = plan(TOYS, fleet(2, rails=1))["rails"]
    assert (rail["resource"], rail["share"]) == ("toys.example.com/rail0", 8)


def test_it_chooses_its_ports(toy: Profile) -> None:
    ports = [rail_port(0, vfs={"total": 0, "count": 0, "rate": None}), rail_port(1)]
    facts = {"a": {"facts": host_facts(1, ports=ports)}}
    assert plan({**TOYS, "rails": []}, facts)["hosts"]["a"]["rails"][0]["pci"] == ports[1]["pci"]
    listed = {**TOYS, "rails": [{"name": "rail0", "pci": [ports[0]["pci"]]}]}
    with pytest.raises(FabricError, match=f"{WITHOUT_VFS}, which cannot carry toy"):
        plan(listed, facts)


def test_the_limit_of_a_vf_counts(toy: Profile) -> None:
    port = rail_port(0, vfs={"total": 8, "count": 8, "rate": 100.0})
    facts = {"a": {"facts": host_facts(1, ports=[port])}}
    rates = [plan(fabric, facts)["expectations"]["rail0"]["a"]["vf_rate"] for fabric in (NET, TOYS)]
    assert rates == [None, 100.0]


def test_its_objects_are_applied_in_order(toy: Profile) -> None:
    order = ["Namespace", "Node", "NicClusterPolicy", "ToyNodePolicy", "ToyNetwork", "Secret"]
    mixed = [{"kind": kind} for kind in reversed(order)]
    assert [item["kind"] for item in apply_order(mixed)] == order
    assert [item["kind"] for item in delete_order(mixed)] == order[::-1]
    pools = apply_order([{"kind": "ToyNetwork"}, {"kind": "IPPool"}])
    assert [item["kind"] for item in pools] == ["IPPool", "ToyNetwork"]


def test_its_kinds_have_paths_without_a_discovery(toy: Profile) -> None:
    cluster = FakeCluster()
    assert path_of(cluster.api(), toy_object("ToyNetwork", "rail0")) == f"/apis/{API}/toynetworks/rail0"
    assert cluster.calls == []


def test_its_objects_are_waited_for(toy: Profile) -> None:
    items = [item for item in objects() if item["kind"] in ("ToyNodePolicy", "ToyNetwork")]
    desired = wait.Wanted(items, ["a"], "26.7.1", "op")
    wait.check(desired)
    found = wait.wait(FakeCluster().api(), desired, 2, stable=0, clock=FakeClock().clock())
    assert found.reasons == ("ToyNodePolicy rail0 is absent", "ToyNetwork rail0 is absent")
    found = wait.wait(FakeCluster(*items).api(), desired, 2, stable=0, clock=FakeClock().clock())
    assert found.reasons == ("the toys of the nodes are not made yet", "the toy rail0 has no attachment yet")
    made = [{**item, "status": {"made": True}} for item in items]
    assert wait.wait(FakeCluster(*made, NAD).api(), desired, 2, stable=0, clock=FakeClock().clock()).ready


def test_its_resources_are_waited_for(toy: Profile) -> None:
    (rail,) = plan(TOYS, fleet(2, rails=1))["rails"]
    node = {"metadata": {"name": "a"}, "status": {"allocatable": {rail["resource"]: "7"}}}
    policy = {"apiVersion": "v1", "kind": "NicClusterPolicy", "metadata": {"name": "p"}, "spec": {}}
    reasons = policy_ready(
        policy,
        [],
        [],
        nodes=[node],
        pods=[],
        expected_nodes=["a"],
        release="26.7.1",
        resources={rail["resource"]: rail["share"]},
    ).reasons
    assert "toys.example.com/rail0: expected 8 on each node, found a (7)" in reasons


def test_its_permissions_are_checked(toy: Profile) -> None:
    toys, others = (
        {str(item) for item in access.needed("op", "team", "tests", profiles=[name])} for name in ("toy", "macvlan")
    )
    verbs = ("list", "get", "create", "patch", "delete")
    assert toys - others == {
        f"{verb} {plural}.toys.example.com" for verb in verbs for plural in ("toynetworks", "toynodepolicies")
    }
    assert others - toys == {f"{verb} macvlannetworks.mellanox.com" for verb in verbs}
    policy = {str(item) for item in access.needed("op", "team", "tests", steps=["policy"], profiles=["toy"])}
    assert "create toynodepolicies.toys.example.com" in policy
    assert "create toynetworks.toys.example.com" not in policy


def test_the_cluster_is_searched_for_it(toy: Profile) -> None:
    cluster = FakeCluster(toy_object("ToyNetwork", "rail0"))
    assert survey.objects(cluster.api())["ToyNetwork"] == [{"name": "rail0", "namespace": None, "ours": False}]
    node = {"metadata": {"name": "a"}, "status": {"allocatable": {"toys.example.com/rail0": "8", "other/x": "1"}}}
    assert survey.node_summary(node, set())["allocatable"] == {"toys.example.com/rail0": "8"}
    limits = {"resources": {"limits": {"toys.example.com/rail0": "1"}}}
    pod = {"metadata": {"name": "p", "namespace": "n"}, "spec": {"containers": [limits], "nodeName": "a"}}
    assert survey.workloads([pod]) == [{"namespace": "n", "name": "p", "node": "a"}]


def test_its_pods_get_resource_and_annotation(toy: Profile) -> None:
    rails = manifests.pod_rails(plan(TOYS, fleet(2, rails=1)))[""]
    testers = manifests.Testers("ns", "testers", "img", "", rails, False, 60, 60)
    pod = manifests.job(testers, ["a"])["spec"]["template"]
    assert pod["metadata"]["annotations"] == {"k8s.v1.cni.cncf.io/networks": "team/rail0@eth0"}
    assert pod["spec"]["containers"][0]["resources"]["limits"]["toys.example.com/rail0"] == "1"


def test_the_objects_of_macvlan() -> None:
    """What the first release applies for one rail, to the letter."""
    made = plan({**NET, "network_namespace": "team"}, fleet(2, rails=1))
    (policy,) = made["objects"]["policy"]
    config = {"resourceName": "rdma_rail0", "rdmaHcaMax": 63, "selectors": {"ifNames": ["rail0"]}}
    label = {"app.kubernetes.io/managed-by": "gpufabric"}
    assert policy["spec"] == {
        "global": {"repository": "nvcr.io/nvidia/mellanox", "version": "network-operator-v26.7.1"},
        "rdmaSharedDevicePlugin": {
            "image": "k8s-rdma-shared-dev-plugin",
            "config": json.dumps({"periodicUpdateInterval": 60, "configList": [config]}, separators=(",", ":")),
        },
        "nvIpam": {"image": "nvidia-k8s-ipam", "enableWebhook": False},
        "secondaryNetwork": {"cniPlugins": {"image": "plugins"}, "multus": {"image": "multus-cni"}},
    }
    selector = {"key": "feature.node.kubernetes.io/pci-15b3.present", "operator": "In", "values": ["true"]}
    assert made["objects"]["networks"] == [
        {
            "apiVersion": "nv-ipam.nvidia.com/v1alpha1",
            "kind": "IPPool",
            "metadata": {"name": "rail0", "namespace": "nvidia-network-operator", "labels": label},
            "spec": {
                "subnet": "192.168.0.128/25",
                "perNodeBlockSize": 2,
                "nodeSelector": {"nodeSelectorTerms": [{"matchExpressions": [selector]}]},
            },
        },
        {
            "apiVersion": "mellanox.com/v1alpha1",
            "kind": "MacvlanNetwork",
            "metadata": {"name": "rail0", "labels": label},
            "spec": {
                "networkNamespace": "team",
                "master": "rail0",
                "mode": "bridge",
                "mtu": 9000,
                "ipam": '{"type":"nv-ipam","poolName":"rail0","poolType":"ippool"}',
            },
        },
    ]
    (rail,) = made["rails"]
    assert (rail["resource"], rail["share"], rail["network"], rail["pool"]) == ("rdma_rail0", 63, "rail0", "rail0")
    pod = manifests.pod_rails(made)[""][0]
    assert pod["network"] == "team/rail0"
