"""The network model raw, and definitions that the other models write where the operator's kinds cannot."""

from __future__ import annotations

import json
from typing import Any

import pytest
from tests.unit.support.plan_factory import fleet

from ansible_collections.gpufabric.rdma.plugins.module_utils._fabric.operator.profiles import registry
from ansible_collections.gpufabric.rdma.plugins.module_utils._fabric.plan.plan import plan
from ansible_collections.gpufabric.rdma.plugins.module_utils._k8s.checks import access

FABRIC = {"supernet": "192.168.0.0/16", "network_namespace": "jobs", "rails": [{"name": "rail-a"}]}
IPAM = {"type": "nv-ipam", "poolName": "rail-a", "poolType": "ippool"}
MACVLAN = {"type": "macvlan", "master": "rail-a", "mode": "bridge", "mtu": 9000, "ipam": IPAM}
CHAIN = {
    "source_routing": True,
    "sysctls": {"net.ipv4.conf.IFNAME.arp_ignore": 1, "net.ipv4.conf.IFNAME.arp_announce": 2},
}
PLUGINS = [
    {
        "type": "tuning",
        "sysctl": {"net.ipv4.conf.IFNAME.arp_announce": "2", "net.ipv4.conf.IFNAME.arp_ignore": "1"},
    },
    {"type": "sbr"},
]


def planned(**fabric: Any) -> list[dict[str, Any]]:
    made = plan({**FABRIC, **fabric}, fleet(2, rails=1))["objects"]["networks"]
    return [item for item in made if item["kind"] != "IPPool"]


def test_the_definition_of_a_rail() -> None:
    (network,) = planned(profile="raw")
    config = json.loads(network["spec"].pop("config"))
    assert network == {
        "apiVersion": "k8s.cni.cncf.io/v1",
        "kind": "NetworkAttachmentDefinition",
        "metadata": {
            "name": "rail-a",
            "namespace": "jobs",
            "labels": {"app.kubernetes.io/managed-by": "gpufabric"},
        },
        "spec": {},
    }
    assert config == {"cniVersion": "0.3.1", "name": "rail-a", "plugins": [MACVLAN]}


@pytest.mark.parametrize(
    ("networks", "plugins"),
    [
        (CHAIN, PLUGINS),
        ({"vrf": "vrf-{rail}"}, [{"type": "vrf", "vrfname": "vrf-rail-a"}]),
        ({"source_routing": True}, [{"type": "sbr"}]),
    ],
)
def test_plugins_are_chained(networks: dict[str, Any], plugins: list[Any]) -> None:
    for profile in ("raw", "macvlan"):
        (network,) = planned(profile=profile, networks=networks)
        assert json.loads(network["spec"]["config"])["plugins"] == [MACVLAN, *plugins]


def test_a_whole_port_keeps_its_resource() -> None:
    (network,) = planned(profile="host_device", networks=CHAIN)
    assert network["metadata"]["annotations"] == {"k8s.v1.cni.cncf.io/resourceName": "nvidia.com/hostdev_rail_a"}
    assert json.loads(network["spec"]["config"])["plugins"] == [{"type": "host-device", "ipam": IPAM}, *PLUGINS]


@pytest.mark.parametrize("profile", registry.names())
def test_names_follow_the_templates(profile: str) -> None:
    names = {"name": "gpu-{rail}", "pool": "{rail}-pods", "resource": "gpu_{rail}"}
    made = plan({**FABRIC, "profile": profile, "networks": names}, fleet(2, 1, registry.get(profile).link_layer))
    (rail,) = made["rails"]
    assert (rail["name"], rail["network"], rail["pool"]) == ("rail-a", "gpu-rail-a", "rail-a-pods")
    assert rail["resource"] == registry.get(profile).resource("gpu_rail-a")
    (pool, network) = made["objects"]["networks"]
    assert (pool["metadata"]["name"], network["metadata"]["name"]) == ("rail-a-pods", "gpu-rail-a")
    assert '\\"poolName\\":\\"rail-a-pods\\"' in json.dumps(network)
    text = json.dumps([made["objects"], rail["resource"].rpartition("/")[2]])
    assert "gpu_rail_a" in text


def test_only_who_writes_definitions_needs_the_permission() -> None:
    def may(profile: str, objects: list[dict[str, Any]]) -> set[str]:
        found = access.needed("op", "jobs", "tests", profiles=[profile], objects=objects)
        return {str(item) for item in found if item.resource == "network-attachment-definitions"}

    assert may("macvlan", planned()) == {"list network-attachment-definitions.k8s.cni.cncf.io in jobs"}
    every = {f"{verb} network-attachment-definitions.k8s.cni.cncf.io in jobs" for verb in ("list", *access._WRITE)}
    assert may("macvlan", planned(networks=CHAIN)) == every
    assert may("raw", planned(profile="raw")) == every
