"""The network model sriov_ib: VFs of InfiniBand rails, without and with partitions."""

from __future__ import annotations

import json
from typing import Any

import pytest
from tests.unit.plugins.module_utils._fabric.operator.test_conformance import RELEASES, check
from tests.unit.support.plan_factory import fleet

from ansible_collections.gpufabric.rdma.plugins.module_utils._common.errors import InputError
from ansible_collections.gpufabric.rdma.plugins.module_utils._fabric.intent import releases
from ansible_collections.gpufabric.rdma.plugins.module_utils._fabric.operator.profiles import registry
from ansible_collections.gpufabric.rdma.plugins.module_utils._fabric.operator.readiness import Readiness
from ansible_collections.gpufabric.rdma.plugins.module_utils._fabric.plan.plan import plan

API, SPACE = "sriovnetwork.openshift.io/v1", "nvidia-network-operator"
UFM = {"ufm_secret": "ufm", "first_guid": "02:00:00:00:00:00:00:00", "last_guid": "02:FF:FF:FF:FF:FF:FF:FF"}
PARTITION = {"pkey": "0x8001", "ib_kubernetes": UFM}
IPAM = {"type": "nv-ipam", "poolName": "rail-a", "poolType": "ippool"}


def planned(release: str = "", **sriov: Any) -> dict[str, Any]:
    hosts = fleet(2, rails=1, link_layer="infiniband")
    fabric = {"profile": "sriov_ib", "supernet": "192.168.0.0/16", "network_namespace": "team", "sriov": sriov}
    own = {"operator": {"release": release}} if release else {}
    return plan({**fabric, **own, "rails": [{"name": "rail-a"}]}, hosts)


def objects(made: dict[str, Any], kind: str) -> list[dict[str, Any]]:
    return [item for item in [*made["objects"]["policy"], *made["objects"]["networks"]] if item["kind"] == kind]


def test_the_objects_of_a_rail() -> None:
    made = planned(rdma_mode="exclusive", link_state="enable")
    (policy,) = objects(made, "SriovNetworkNodePolicy")
    assert {"linkType": "ib", "mtu": 2044, "isRdma": True, "numVfs": 8}.items() <= policy["spec"].items()
    (network,) = objects(made, "SriovIBNetwork")
    assert network["metadata"]["namespace"] == SPACE
    assert network["spec"] == {
        "networkNamespace": "team",
        "resourceName": "vf_rail_a",
        "ipam": json.dumps(IPAM, separators=(",", ":")),
        "linkState": "enable",
        "metaPlugins": '{"type":"rdma"}',
    }
    assert made["profile"] == {"name": "sriov_ib", "operator_makes_vfs": True, "host_vfs": None}
    assert made["operator"]["chart_values"] == {"sriovNetworkOperator": {"enabled": True}}
    assert "ibKubernetes" not in made["objects"]["policy"][0]["spec"]


def test_a_partition_needs_a_definition_and_its_manager() -> None:
    made = planned(**PARTITION, link_state="enable", rdma_mode="exclusive")
    assert made["objects"]["policy"][0]["spec"]["ibKubernetes"] == {
        "image": "ib-kubernetes",
        "periodicUpdateSeconds": 5,
        "pKeyGUIDPoolRangeStart": "02:00:00:00:00:00:00:00",
        "pKeyGUIDPoolRangeEnd": "02:FF:FF:FF:FF:FF:FF:FF",
        "ufmSecret": "ufm",
    }
    assert objects(made, "SriovIBNetwork") == []
    (network,) = objects(made, "NetworkAttachmentDefinition")
    assert network["metadata"]["namespace"] == "team"
    assert network["metadata"]["annotations"] == {"k8s.v1.cni.cncf.io/resourceName": "nvidia.com/vf_rail_a"}
    assert json.loads(network["spec"]["config"])["plugins"] == [
        {
            "type": "ib-sriov",
            "pkey": "0x8001",
            "ibKubernetesEnabled": True,
            "link_state": "enable",
            "capabilities": {"infinibandGUID": True},
            "ipam": IPAM,
        },
        {"type": "rdma"},
    ]


def test_the_range_of_another_cluster_beside_that_of_this_one() -> None:
    other = ["03:00:00:00:00:00:00:00-03:00:00:00:00:00:00:ff", "01:00:00:00:00:00:00:00"]
    made = planned(pkey="0x8001", ib_kubernetes={**UFM, "reserved": other})
    assert made["objects"]["policy"][0]["spec"]["ibKubernetes"]["pKeyGUIDPoolRangeEnd"] == UFM["last_guid"]


def test_a_partition_without_its_manager() -> None:
    made = planned(pkey="0x8001")
    # The ports of hosts are not members: their VFs are.
    assert made["rails"][0]["pkey"] == {"pod": "0x8001"}
    assert "ibKubernetes" not in made["objects"]["policy"][0]["spec"]
    (network,) = objects(made, "NetworkAttachmentDefinition")
    # A pod cannot choose a GUID, and so no partition.
    (plugin,) = json.loads(network["spec"]["config"])["plugins"]
    assert plugin == {"type": "ib-sriov", "pkey": "0x8001", "ipam": IPAM}
    assert [text for text in made["warnings"] if "infiniband/partitions.conf" in text]


def test_a_guid_of_a_port_is_not_for_vfs() -> None:
    hosts = fleet(2, rails=1, link_layer="infiniband")
    hosts["gpu-0002"]["facts"]["rdma_devices"][0]["node_guid"] = "0200:0000:0000:0007"
    fabric = {"profile": "sriov_ib", "supernet": "192.168.0.0/16", "sriov": PARTITION}
    with pytest.raises(InputError) as caught:
        plan(fabric, hosts)
    assert "02:FF:FF:FF:FF:FF:FF:FF include those of ports: gpu-0002 mlx5_0" in str(caught.value)
    fabric["sriov"] = {**PARTITION, "ib_kubernetes": {**UFM, "first_guid": "02:01:00:00:00:00:00:00"}}
    assert "partitions" not in plan(fabric, hosts)


def test_classes_of_hosts_share_the_range_of_guids() -> None:
    """It is large enough for the VFs of each class, and not for those of both."""
    guids = {**UFM, "last_guid": "02:00:00:00:00:00:00:0e"}
    fabric = {"profile": "sriov_ib", "supernet": "192.168.0.0/16", "sriov": {**PARTITION, "ib_kubernetes": guids}}
    fabric["classes"] = [{"name": "b", "hosts": ["gpu-0002"], "supernet": "10.0.0.0/16"}]
    hosts = fleet(2, rails=1, link_layer="infiniband")
    with pytest.raises(InputError, match="to 02:00:00:00:00:00:00:0e are 15, but the VFs of the hosts need 16"):
        plan(fabric, hosts)
    fabric["sriov"] = PARTITION
    assert plan(fabric, hosts)["operator"]["ufm_secret"] == "ufm"


def test_a_guid_of_a_vf_that_another_class_makes_on_its_hosts_is_not_for_others() -> None:
    hosts = fleet(2, rails=1, link_layer="infiniband")
    made = {"vfs": 2, "externally_managed": True, "pkey": "0x8001"}
    fabric = {"profile": "sriov_ib", "supernet": "192.168.0.0/16", "sriov": {"vfs": 2}}
    # The second VF of the port of gpu-0002: docs/roles/sriov.md.
    own = {"ufm_secret": "ufm", "first_guid": "ba:3f:d2:01:00:00:00:00", "last_guid": "ba:3f:d2:01:ff:ff:ff:ff"}
    fabric["classes"] = [
        {"name": "a", "hosts": ["gpu-0001"], "supernet": "10.0.0.0/16", "sriov": {**PARTITION, "ib_kubernetes": own}},
        {"name": "b", "hosts": ["gpu-0002"], "supernet": "10.1.0.0/16", "sriov": made},
    ]
    with pytest.raises(InputError, match=r"include those of ports: gpu-0002 mlx5_0 VF 1 \(ba:3f:d2:01:"):
        plan(fabric, hosts)


@pytest.mark.parametrize("release", RELEASES)
@pytest.mark.parametrize("options", [{}, PARTITION, {"pkey": "0x1"}], ids=["plain", "partition", "without manager"])
def test_every_line_takes_it(release: str, options: dict[str, Any]) -> None:
    made = planned(release, **options)["objects"]
    for item in (*made["policy"], *made["networks"]):
        check(RELEASES[release], item)
    assert releases.line_of(release)


@pytest.mark.parametrize(
    ("sriov", "message"),
    [
        (
            {"vlan": 5, "trust": True},
            "rdma_fabric.sriov: VFs of InfiniBand do not have vlan, trust. Remove these options",
        ),
        ({"eswitch_mode": "switchdev"}, "rdma_fabric.sriov: VFs of InfiniBand do not have eswitch_mode. Remove these"),
        ({"pkey": "0x8000"}, "rdma_fabric.sriov.pkey: 0x8000 is not the key of a partition"),
        ({"ib_kubernetes": UFM}, "rdma_fabric.sriov.ib_kubernetes: it brings VFs into a partition. Set pkey, or"),
        (
            {**PARTITION, "ib_kubernetes": {**UFM, "last_guid": "02:00:00:00:00:00:00:0e"}},
            "to 02:00:00:00:00:00:00:0e are 15, but the VFs of the hosts need 16. Extend the range",
        ),
        ({"pkey": "8001", "ib_kubernetes": UFM}, 'expected a partition key such as "0x8001" (quoted), found "8001"'),
        (
            {**PARTITION, "ib_kubernetes": {**UFM, "last_guid": "01:00:00:00:00:00:00:00"}},
            "last_guid: 01:00:00:00:00:00:00:00",
        ),
        (
            {**PARTITION, "ib_kubernetes": {**UFM, "reserved": ["01:00:00:00:00:00:00:00-02:00:00:00:00:00:00:01"]}},
            "reserved: 01:00:00:00:00:00:00:00-02:00:00:00:00:00:00:01 and the range of this cluster,",
        ),
        (
            {**PARTITION, "ib_kubernetes": {**UFM, "reserved": ["02:FF:FF:FF:FF:FF:FF:FF"]}},
            "reserved: 02:FF:FF:FF:FF:FF:FF:FF and the range of this cluster,",
        ),
        (
            {**PARTITION, "ib_kubernetes": {**UFM, "reserved": ["04:00:00:00:00:00:00:01-03:00:00:00:00:00:00:00"]}},
            "reserved: 04:00:00:00:00:00:00:01-03:00:00:00:00:00:00:00: the second GUID is below the first",
        ),
        ({**PARTITION, "ib_kubernetes": {**UFM, "reserved": ["02:00"]}}, 'or two with - between them, found "02:00"'),
        ({**PARTITION, "ib_kubernetes": {"ufm_secret": "ufm"}}, "rdma_fabric.sriov.ib_kubernetes.first_guid: missing"),
        (
            {**PARTITION, "ib_kubernetes": {**UFM, "first_guid": "02:00"}},
            'expected a GUID such as "02:00:00:00:00:00:00:01"',
        ),
    ],
)
def test_what_is_refused(sriov: dict[str, Any], message: str) -> None:
    with pytest.raises(InputError) as caught:
        planned(**sriov)
    assert message in str(caught.value)


def test_only_infiniband_has_partitions() -> None:
    with pytest.raises(InputError, match="rdma_fabric.sriov.pkey: only InfiniBand has partitions"):
        plan({"profile": "sriov", "supernet": "192.168.0.0/16", "sriov": PARTITION}, fleet(2))


def test_its_definition_is_compared() -> None:
    (network,) = objects(planned(), "SriovIBNetwork")
    (kind,) = (kind for kind in registry.get("sriov_ib").kinds if kind.kind == "SriovIBNetwork")

    def judged(config: dict[str, Any], resource: str = "nvidia.com/vf_rail_a") -> Readiness:
        notes = {"k8s.v1.cni.cncf.io/resourceName": resource}
        meta = {"name": "rail-a", "namespace": "team", "annotations": notes}
        return kind.ready(network, {"metadata": meta, "spec": {"config": json.dumps(config)}}, [])

    assert judged({"type": "ib-sriov", "ipam": IPAM}).ready
    assert "type" in judged({"type": "sriov", "ipam": IPAM}).reasons[0]
    assert (
        "has the resource nvidia.com/other" in judged({"type": "ib-sriov", "ipam": IPAM}, "nvidia.com/other").reasons[0]
    )
    assert kind.ready(network, None, []).reasons == (
        "SriovIBNetwork rail-a: no NetworkAttachmentDefinition in namespace team yet",
    )
