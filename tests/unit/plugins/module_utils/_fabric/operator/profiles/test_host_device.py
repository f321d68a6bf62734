"""The network model host_device: whole ports for pods."""

from __future__ import annotations

import json
from typing import Any

import pytest
from tests.unit.support.plan_factory import fleet, host_facts, rail_port

from ansible_collections.gpufabric.rdma.plugins.module_utils._common.errors import InputError
from ansible_collections.gpufabric.rdma.plugins.module_utils._fabric.operator.profiles import host_device
from ansible_collections.gpufabric.rdma.plugins.module_utils._fabric.plan.plan import plan

FABRIC = {"profile": "host_device", "supernet": "192.168.0.0/16", "rails": [{"name": "rail-a"}, {"name": "rail-b"}]}


def test_the_device_plugin_selects_the_port_of_each_rail() -> None:
    (policy,) = plan(FABRIC, fleet(2))["objects"]["policy"]
    assert "rdmaSharedDevicePlugin" not in policy["spec"]
    config = json.loads(policy["spec"]["sriovDevicePlugin"]["config"])
    assert config == {
        "resourceList": [
            {
                "resourcePrefix": "nvidia.com",
                "resourceName": f"hostdev_rail_{name}",
                "selectors": {"vendors": ["15b3"], "pfNames": [f"rail-{name}"], "isRdma": True},
            }
            for name in "ab"
        ]
    }


def test_a_network_refers_to_the_resource_of_its_rail() -> None:
    found = plan({**FABRIC, "network_namespace": "jobs"}, fleet(2))
    pools, networks = found["objects"]["networks"][:2], found["objects"]["networks"][2:]
    assert [pool["kind"] for pool in pools] == ["IPPool", "IPPool"]
    assert networks[0] == {
        "apiVersion": "mellanox.com/v1alpha1",
        "kind": "HostDeviceNetwork",
        "metadata": {"name": "rail-a", "labels": {"app.kubernetes.io/managed-by": "gpufabric"}},
        "spec": {
            "networkNamespace": "jobs",
            "resourceName": "hostdev_rail_a",
            "ipam": '{"type":"nv-ipam","poolName":"rail-a","poolType":"ippool"}',
        },
    }
    rail = found["rails"][0]
    assert (rail["resource"], rail["share"]) == ("nvidia.com/hostdev_rail_a", 1)


def test_a_port_with_vfs_is_refused() -> None:
    ports = [rail_port(0, vfs={"total": 8, "count": 2, "rate": None}), rail_port(1)]
    hosts = {"gpu-1": {"facts": host_facts(1, ports=ports)}}
    rails = [{"name": "rail0", "pci": ["0000:18:00.0"]}, {"name": "rail1", "pci": ["0000:28:00.0"]}]
    with pytest.raises(InputError, match="0000:18:00.0 has 2 VFs, which cannot carry host_device"):
        plan({**FABRIC, "rails": rails}, hosts)


def network() -> dict[str, Any]:
    spec = {"networkNamespace": "default", "resourceName": "hostdev_rail0", "ipam": "{}"}
    return {"metadata": {"name": "rail0"}, "spec": spec, "status": {"state": "ready"}}


def attachment(resource: str) -> dict[str, Any]:
    annotations = {"k8s.v1.cni.cncf.io/resourceName": resource}
    metadata = {"name": "rail0", "namespace": "default", "annotations": annotations}
    return {"metadata": metadata, "spec": {"config": json.dumps({"type": "host-device", "ipam": {}})}}


@pytest.mark.parametrize(
    ("nad", "reasons"),
    [
        (attachment("nvidia.com/hostdev_rail0"), ()),
        (None, ("HostDeviceNetwork rail0: no NetworkAttachmentDefinition in namespace default yet",)),
        (
            attachment("nvidia.com/hostdev_rail1"),
            (
                "HostDeviceNetwork rail0: its NetworkAttachmentDefinition is for the resource nvidia.com/hostdev_rail1,"
                " expected nvidia.com/hostdev_rail0. If this persists, delete it; the operator recreates it",
            ),
        ),
    ],
)
def test_a_network_is_ready_with_its_attachment(nad: dict[str, Any] | None, reasons: tuple[str, ...]) -> None:
    (kind,) = [kind for kind in host_device.PROFILE.kinds if kind.attaches]
    assert kind.ready(network(), nad, []).reasons == reasons
