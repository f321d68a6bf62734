"""The network model ipoib: rails of InfiniBand, from the facts to objects and readings."""

from __future__ import annotations

import json
from typing import Any

import pytest
from tests.unit.support.plan_factory import fleet

from ansible_collections.gpufabric.rdma.plugins.module_utils._common.errors import InputError
from ansible_collections.gpufabric.rdma.plugins.module_utils._fabric.operator.profiles import registry
from ansible_collections.gpufabric.rdma.plugins.module_utils._fabric.plan.plan import plan

FABRIC: dict[str, Any] = {"profile": "ipoib", "supernet": "192.168.0.0/16", "network_namespace": "jobs"}


def planned(**fabric: Any) -> dict[str, Any]:
    return plan({**FABRIC, **fabric}, fleet(2, link_layer="infiniband"))


def test_the_objects_of_a_rail() -> None:
    made = planned()
    (policy,) = made["objects"]["policy"]
    assert policy["spec"]["secondaryNetwork"]["ipoib"] == {"image": "ipoib-cni"}
    config = json.loads(policy["spec"]["rdmaSharedDevicePlugin"]["config"])["configList"]
    assert config[0] == {"resourceName": "rdma_rail0", "rdmaHcaMax": 63, "selectors": {"ifNames": ["rail0"]}}
    network = made["objects"]["networks"][2]
    assert network == {
        "apiVersion": "mellanox.com/v1alpha1",
        "kind": "IPoIBNetwork",
        "metadata": {"name": "rail0", "labels": {"app.kubernetes.io/managed-by": "gpufabric"}},
        "spec": {
            "networkNamespace": "jobs",
            "master": "rail0",
            "ipam": '{"type":"nv-ipam","poolName":"rail0","poolType":"ippool"}',
        },
    }
    assert made["rails"][0]["link_layer"] == "infiniband"


def test_its_plugin_comes_with_the_policy_even_where_others_bring_the_rest() -> None:
    (policy,) = planned(operator={"multus": False, "cni_plugins": False})["objects"]["policy"]
    assert policy["spec"]["secondaryNetwork"] == {"ipoib": {"image": "ipoib-cni"}}


def test_further_plugins_need_a_definition() -> None:
    network = planned(networks={"source_routing": True})["objects"]["networks"][2]
    plugins = json.loads(network["spec"]["config"])["plugins"]
    assert [(one["type"], one.get("master")) for one in plugins] == [("ipoib", "rail0"), ("sbr", None)]


@pytest.mark.parametrize(("mtu", "found", "tested"), [(None, 2044, 2048), (2044, 2044, 2048), (4092, 4092, 4096)])
def test_the_mtu_of_frames_of_infiniband(mtu: int | None, found: int, tested: int) -> None:
    made = planned(**({"mtu": mtu} if mtu else {}))
    assert {rail["mtu"] for host in made["hosts"].values() for rail in host["rails"]} == {found}
    assert made["expectations"]["rail0"]["gpu-0001"]["mtu"] == tested
    told = [text for text in made["warnings"] if "the subnet manager gives the partition an MTU of 4096" in text]
    assert len(told) == (2 if mtu == 4092 else 0)


@pytest.mark.parametrize(("actual", "warns"), [("0xffff", True), ("0x8001", False), (None, False)])
def test_a_port_in_another_partition_is_named(actual: str | None, warns: bool) -> None:
    hosts = fleet(2, rails=1, link_layer="infiniband")
    for host in hosts.values():
        for port in host["facts"]["ports"]:
            port["pkey"] = actual
    made = plan({**FABRIC, "pkey": "0x8001"}, hosts)
    text = (
        "gpu-[0001-0002] rail0: the IPoIB interface is in the partition 0xffff, and rdma_fabric.pkey is 0x8001: the"
        " subnet manager must make it the first partition of the port, with full membership"
    )
    assert (text in made["warnings"]) == warns
    assert not warns or not [one for one in plan(FABRIC, hosts)["warnings"] if "partition" in one]


def test_more_than_a_frame_is_refused() -> None:
    text = "at most 4092 is possible with profile ipoib, found 9000. InfiniBand carries more in the connected mode of"
    with pytest.raises(InputError, match=text):
        planned(mtu=9000)


def test_each_model_has_its_link_layer() -> None:
    for name in registry.names():
        for layer in ("ethernet", "infiniband"):
            hosts = fleet(2, link_layer=layer)
            if registry.get(name).link_layer == layer:
                assert plan({**FABRIC, "profile": name}, hosts)["rails"]
            else:
                with pytest.raises(InputError, match="InfiniBand port|no port can be a rail"):
                    plan({**FABRIC, "profile": name}, hosts)


@pytest.mark.parametrize(
    ("current", "profile", "wanted"), [("infiniband", "ipoib", "macvlan"), ("ethernet", "macvlan", "ipoib")]
)
def test_ports_get_another_type_in_two_runs(current: str, profile: str, wanted: str) -> None:
    """docs/roles/nic_firmware.md: the firmware is changed with the plan of the current type, then come the rails."""
    fabric = {"supernet": "192.168.0.0/16"}
    with pytest.raises(
        InputError, match=r"To change the type of NVIDIA ports, see docs/roles/nic_firmware.md \(LINK_TYPE"
    ):
        plan({**fabric, "profile": wanted}, fleet(2, link_layer=current))
    before = plan({**fabric, "profile": profile}, fleet(2, link_layer=current))
    other = "ethernet" if current == "infiniband" else "infiniband"
    after = plan({**fabric, "profile": wanted}, fleet(2, link_layer=other))
    ports = [[rail["pci"] for host in made["hosts"].values() for rail in host["rails"]] for made in (before, after)]
    assert ports[0] == ports[1] and all(ports[0])


def test_the_partition_of_the_plan_is_that_of_tests() -> None:
    assert "pkey" not in planned()["rails"][0]
    assert planned(pkey="0x8001")["rails"][0]["pkey"] == {"host": "0x8001", "pod": "0x8001"}
