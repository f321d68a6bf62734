"""The network model sriov: its objects to the letter, its ports, its permissions."""

from __future__ import annotations

import json
from typing import Any

import pytest
from tests.unit.support import cluster_fake
from tests.unit.support.cluster_fake import FakeClock, FakeCluster
from tests.unit.support.plan_factory import fleet, host_facts, rail_port

from ansible_collections.gpufabric.rdma.plugins.module_utils._common.errors import FabricError, InputError
from ansible_collections.gpufabric.rdma.plugins.module_utils._fabric.intent import role_variables
from ansible_collections.gpufabric.rdma.plugins.module_utils._fabric.operator.manifests import Chart, manifests
from ansible_collections.gpufabric.rdma.plugins.module_utils._fabric.operator.order import apply_order, delete_order
from ansible_collections.gpufabric.rdma.plugins.module_utils._fabric.operator.profiles import registry
from ansible_collections.gpufabric.rdma.plugins.module_utils._fabric.plan.plan import plan
from ansible_collections.gpufabric.rdma.plugins.module_utils._k8s.checks import access, survey
from ansible_collections.gpufabric.rdma.plugins.module_utils._k8s.ready import wait

NET = {"supernet": "192.168.0.0/16", "profile": "sriov", "network_namespace": "team", "node_selector": {"pool": "gpu"}}
RAIL = {**NET, "rails": [{"name": "rail-a"}]}
SPACE = "nvidia-network-operator"
LABELS = {"app.kubernetes.io/managed-by": "gpufabric"}
NODES = {"feature.node.kubernetes.io/pci-15b3.present": "true", "pool": "gpu"}
API = "sriovnetwork.openshift.io/v1"
IPAM = '{"type":"nv-ipam","poolName":"rail-a","poolType":"ippool"}'
POLICY = {
    "apiVersion": API,
    "kind": "SriovNetworkNodePolicy",
    "metadata": {"name": "rail-a", "namespace": SPACE, "labels": LABELS},
    "spec": {
        "resourceName": "vf_rail_a",
        "nodeSelector": NODES,
        "nicSelector": {"pfNames": ["rail-a"], "vendor": "15b3"},
        "numVfs": 8,
        "mtu": 9000,
        "priority": 99,
        "linkType": "eth",
        "deviceType": "netdevice",
        "isRdma": True,
        "eSwitchMode": "legacy",
        "externallyManaged": False,
    },
}
NETWORK = {
    "apiVersion": API,
    "kind": "SriovNetwork",
    "metadata": {"name": "rail-a", "namespace": SPACE, "labels": LABELS},
    "spec": {"networkNamespace": "team", "resourceName": "vf_rail_a", "vlan": 0, "ipam": IPAM},
}


def planned(**sriov: Any) -> dict[str, Any]:
    return plan({**RAIL, "sriov": sriov}, fleet(2, rails=1))


def objects(made: dict[str, Any], kind: str) -> list[dict[str, Any]]:
    return [item for item in [*made["objects"]["policy"], *made["objects"]["networks"]] if item["kind"] == kind]


def of_port(port: dict[str, Any], **sriov: Any) -> dict[str, Any]:
    return plan({**RAIL, "rail_count": 1, "sriov": sriov}, {"a": {"facts": host_facts(1, ports=[port])}})


def test_the_objects_of_one_rail() -> None:
    made = planned()
    kinds = [item["kind"] for item in [*made["objects"]["policy"], *made["objects"]["networks"]]]
    assert kinds == ["NicClusterPolicy", "SriovNetworkNodePolicy", "IPPool", "SriovNetwork"]
    assert sorted(made["objects"]["policy"][0]["spec"]) == ["global", "nodeAffinity", "nvIpam", "secondaryNetwork"]
    assert objects(made, "SriovNetworkNodePolicy") == [POLICY]
    assert objects(made, "SriovNetwork") == [NETWORK]
    (rail,) = made["rails"]
    assert (rail["resource"], rail["share"]) == ("nvidia.com/vf_rail_a", 8)
    assert made["profile"] == {"name": "sriov", "operator_makes_vfs": True, "host_vfs": None}
    assert made["warnings"] == []


@pytest.mark.parametrize(
    ("sriov", "changed"),
    [
        ({"vfs": 4}, {"numVfs": 4}),
        ({"eswitch_mode": "switchdev"}, {"eSwitchMode": "switchdev"}),
        ({"externally_managed": True}, {"externallyManaged": True}),
        ({"rdma": False}, {"isRdma": False}),
    ],
)
def test_the_settings_of_vfs(sriov: dict[str, Any], changed: dict[str, Any]) -> None:
    (policy,) = objects(planned(**sriov), "SriovNetworkNodePolicy")
    assert policy["spec"] == {**POLICY["spec"], **changed}


@pytest.mark.parametrize(
    ("sriov", "added"),
    [
        ({"vlan": 100}, {"vlan": 100}),
        ({"link_state": "enable", "trust": True}, {"linkState": "enable", "trust": "on"}),
        ({"trust": False, "spoof_check": False}, {"trust": "off", "spoofChk": "off"}),
        ({"rdma_mode": "shared"}, {}),
        ({"rdma_mode": "exclusive"}, {"metaPlugins": '{"type":"rdma"}'}),
    ],
)
def test_the_settings_of_networks(sriov: dict[str, Any], added: dict[str, Any]) -> None:
    (network,) = objects(planned(**sriov), "SriovNetwork")
    assert network["spec"] == {**NETWORK["spec"], **added}


def test_plugins_of_a_network_follow_the_one_of_rdma() -> None:
    section = {"source_routing": True, "sysctls": {"net.ipv4.conf.IFNAME.arp_ignore": 1}}
    made = plan({**RAIL, "sriov": {"rdma_mode": "exclusive"}, "networks": section}, fleet(2, rails=1))
    (network,) = objects(made, "SriovNetwork")
    assert network["spec"]["metaPlugins"] == (
        '{"type":"rdma"},{"type":"tuning","sysctl":{"net.ipv4.conf.IFNAME.arp_ignore":"1"}},{"type":"sbr"}'
    )


def test_nodes_get_a_pool_where_it_says_something() -> None:
    assert objects(planned(vfs=8), "SriovNetworkPoolConfig") == []
    assert objects(planned(rdma_mode="exclusive", max_unavailable=2), "SriovNetworkPoolConfig") == [
        {
            "apiVersion": API,
            "kind": "SriovNetworkPoolConfig",
            "metadata": {"name": "gpufabric", "namespace": SPACE, "labels": LABELS},
            "spec": {"nodeSelector": {"matchLabels": NODES}, "maxUnavailable": 2, "rdmaMode": "exclusive"},
        }
    ]


def test_a_rail_of_ports_of_several_vendors_is_selected_by_its_name_alone() -> None:
    hosts = fleet(1, rails=1)
    hosts["b"] = {"facts": host_facts(2, ports=[rail_port(0, vendor="8086", driver="ice")])}
    made = plan({**RAIL, "select": {"vendors": ["15b3", "8086"]}}, hosts)
    (policy,) = objects(made, "SriovNetworkNodePolicy")
    assert policy["spec"]["nicSelector"] == {"pfNames": ["rail-a"]}


def test_ports_without_a_driver_of_the_kernel() -> None:
    port = rail_port(0, vendor="8086", driver="ice")
    made = plan({**RAIL, "select": {"vendors": ["8086"]}, "sriov": {"device_type": "vfio-pci"}}, on(port))
    (policy,) = objects(made, "SriovNetworkNodePolicy")
    assert (policy["spec"]["deviceType"], policy["spec"]["isRdma"]) == ("vfio-pci", False)
    with pytest.raises(InputError) as caught:
        planned(device_type="vfio-pci")
    assert str(caught.value) == (
        "rdma_fabric.sriov.device_type is vfio-pci, but rail-a have ports of NVIDIA, whose VFs need their own driver,"
        " also for DPDK. Set rdma_fabric.sriov.device_type to netdevice"
    )


def on(port: dict[str, Any]) -> dict[str, Any]:
    return {"a": {"facts": host_facts(1, ports=[port])}}


def test_a_policy_is_never_called_default() -> None:
    with pytest.raises(InputError) as caught:
        plan({**NET, "rails": [{"name": "default"}]}, fleet(1, rails=1))
    assert str(caught.value) == (
        "rdma_fabric.rails: the SR-IOV operator ignores a policy with the name default. Rename the rail"
    )


def test_the_role_makes_vfs_that_are_managed_externally() -> None:
    profile = planned(externally_managed=True, vfs=4)["profile"]
    assert profile == {"name": "sriov", "operator_makes_vfs": False, "host_vfs": 4}


def test_infiniband_is_refused() -> None:
    port = rail_port(0, link_layer="infiniband")
    listed = {**NET, "rails": [{"name": "rail0", "pci": [port["pci"]]}]}
    with pytest.raises(FabricError, match="is an InfiniBand port, which cannot carry sriov"):
        plan(listed, on(port))


NUMBER = "rail-a: the port supports {} VFs, and rdma_fabric.sriov.vfs is {}."
REBOOT = " The SR-IOV operator would change the firmware, and drain and reboot the node."
FIRMWARE = " Set NUM_OF_VFS to {} and SRIOV_EN to true with role nic_firmware, before playbook deploy"
SET = ", or set rdma_fabric.sriov.vfs to {}"


@pytest.mark.parametrize(
    ("port", "sriov", "warning"),
    [
        ({"total": 8}, {}, ""),
        ({"total": 4}, {}, NUMBER.format(4, 8) + REBOOT + FIRMWARE.format(8) + SET.format(4)),
        ({"total": 16}, {"vfs": 8}, NUMBER.format(16, 8) + REBOOT + FIRMWARE.format(8) + SET.format(16)),
        ({"total": 16}, {"externally_managed": True}, ""),
        ({"total": 4}, {"externally_managed": True}, NUMBER.format(4, 8) + FIRMWARE.format(8) + SET.format(4)),
        ({"total": 64, "vendor": "8086"}, {}, ""),
        ({"total": 7, "vendor": "8086"}, {}, NUMBER.format(7, 8) + " Set rdma_fabric.sriov.vfs to 7 or less"),
        ({"total": 0}, {}, NUMBER.format(0, 8) + REBOOT + FIRMWARE.format(8)),
        ({"total": 0, "vendor": "8086"}, {}, NUMBER.format(0, 8) + " Enable SR-IOV in the settings of the BIOS"),
        ({"total": 0, "mac": ""}, {}, ""),
    ],
)
def test_the_number_of_vfs_is_compared_with_the_port(port: dict[str, Any], sriov: dict[str, Any], warning: str) -> None:
    own = rail_port(0, vfs={"total": port.pop("total"), "count": 0, "rate": None}, **port)
    hosts = {name: {"facts": host_facts(number, ports=[own])} for number, name in enumerate(("gpu-1", "gpu-2"), 1)}
    made = plan({**RAIL, "select": {"vendors": []}, "rail_count": 1, "sriov": sriov}, hosts)
    assert [text for text in made["warnings"] if text.startswith("gpu-")] == (
        [f"gpu-[1-2] {warning}"] if warning else []
    )


def test_the_chart_gets_the_operator() -> None:
    made = planned()
    assert made["operator"]["chart_values"] == {"sriovNetworkOperator": {"enabled": True}}
    (values,) = manifests(made, Chart(values={"nfd": {"enabled": False}}))["operator/values.yaml"]
    assert values == {
        "nfd": {"enabled": False, "deployNodeFeatureRules": True},
        "sriovNetworkOperator": {"enabled": True},
    }
    assert plan({"supernet": "192.168.0.0/16"}, fleet(1))["operator"]["chart_values"] == {}


def test_its_section_is_refused_with_another_profile() -> None:
    fabric = {"supernet": "192.168.0.0/16", "sriov": {"vfs": 4}}
    message = "rdma_fabric.sriov: is used by profile sriov or sriov_ib, but rdma_fabric.profile is macvlan. Remove one"
    assert role_variables.fabric_problem(fabric, registry.names(), registry.sections()) == message
    with pytest.raises(InputError, match="is used by profile sriov"):
        plan(fabric, fleet(1))


def test_the_order() -> None:
    order = ["NicClusterPolicy", "SriovNetworkPoolConfig", "SriovNetworkNodePolicy", "SriovNetwork"]
    mixed = [{"kind": kind} for kind in reversed(order)]
    assert [item["kind"] for item in apply_order(mixed)] == order
    assert [item["kind"] for item in delete_order(mixed)] == order[::-1]
    assert [item["kind"] for item in apply_order([NETWORK, {"kind": "IPPool"}])] == ["IPPool", "SriovNetwork"]


def test_the_permissions() -> None:
    def needed(**other: Any) -> set[str]:
        return {str(item) for item in access.needed("op", "team", "tests", profiles=["sriov"], **other)}

    group = "sriovnetwork.openshift.io in op"
    policy, networks = needed(steps=["policy"]), needed(steps=["networks"])
    for verb in ("list", "get", "create", "patch", "delete"):
        assert f"{verb} sriovnetworknodepolicies.{group}" in policy - networks
        assert f"{verb} sriovnetworkpoolconfigs.{group}" in policy - networks
        assert f"{verb} sriovnetworks.{group}" in networks - policy
    assert {text for text in policy if "sriovnetworknodestates" in text} == {f"list sriovnetworknodestates.{group}"}


def test_pods_with_gpus_are_not_users_of_rails() -> None:
    def pod(resource: str) -> dict[str, Any]:
        limits = {"resources": {"limits": {resource: "1"}}}
        return {"metadata": {"name": "p", "namespace": "n"}, "spec": {"containers": [limits], "nodeName": "a"}}

    assert survey.workloads([pod("nvidia.com/gpu")]) == []
    assert len(survey.workloads([pod("nvidia.com/vf_rail0")])) == 1


def test_the_wait_looks_at_the_states_of_nodes(monkeypatch: pytest.MonkeyPatch) -> None:
    for kind, plural in (
        ("SriovNetworkNodePolicy", "sriovnetworknodepolicies"),
        ("SriovNetworkNodeState", "sriovnetworknodestates"),
    ):
        monkeypatch.setitem(cluster_fake.PLURALS, kind, plural)
        monkeypatch.setitem(cluster_fake.KINDS, plural, kind)
    ports = [{"name": "rail-a", "pciAddress": "0000:18:00.0", "numVfs": 8, "totalvfs": 8, "vendor": "15b3"}]
    state = {
        "apiVersion": API,
        "kind": "SriovNetworkNodeState",
        "metadata": {"name": "a", "namespace": SPACE},
        "spec": {"interfaces": ports},
        "status": {"syncStatus": "Succeeded", "interfaces": ports},
    }
    desired = wait.Wanted([POLICY], ["a", "b"], "26.7.1", SPACE)
    found = wait.wait(FakeCluster(POLICY, state).api(), desired, 2, stable=0, clock=FakeClock().clock())
    assert found.reasons == (
        "Node b: the SR-IOV operator has no state of it; check that its config daemon runs on the node",
        f"DaemonSet sriov-network-config-daemon is absent from namespace {SPACE}: read the log of the SR-IOV operator",
    )
    both = [state, {**state, "metadata": {"name": "b", "namespace": SPACE}}]
    assert wait.wait(FakeCluster(POLICY, *both).api(), desired, 2, stable=0, clock=FakeClock().clock()).ready


def test_vfs_without_the_sriov_operator() -> None:
    made = planned(vfs=4, assigned_by="device_plugin")
    kinds = [item["kind"] for item in [*made["objects"]["policy"], *made["objects"]["networks"]]]
    assert kinds == ["NicClusterPolicy", "IPPool", "HostDeviceNetwork"]
    (policy,) = made["objects"]["policy"]
    assert json.loads(policy["spec"]["sriovDevicePlugin"]["config"])["resourceList"] == [
        {
            "resourcePrefix": "nvidia.com",
            "resourceName": "vf_rail_a",
            "selectors": {"vendors": ["15b3"], "pfNames": ["rail-a#0-3"], "isRdma": True},
        }
    ]
    assert objects(made, "HostDeviceNetwork")[0]["spec"] == {
        "networkNamespace": "team",
        "resourceName": "vf_rail_a",
        "ipam": IPAM,
    }
    assert made["profile"] == {"name": "sriov", "operator_makes_vfs": False, "host_vfs": 4}
    assert made["operator"]["chart_values"] == {"sriovNetworkOperator": {"enabled": False}}
    (rail,) = made["rails"]
    assert (rail["resource"], rail["share"]) == ("nvidia.com/vf_rail_a", 4)


def test_chained_plugins_follow_the_one_of_the_device() -> None:
    section = {"networks": {"source_routing": True}, "sriov": {"assigned_by": "device_plugin"}}
    made = plan({**RAIL, **section}, fleet(2, rails=1))
    (network,) = objects(made, "NetworkAttachmentDefinition")
    config = json.loads(network["spec"]["config"])
    assert [plugin["type"] for plugin in config["plugins"]] == ["host-device", "sbr"]
    assert network["metadata"]["annotations"] == {"k8s.v1.cni.cncf.io/resourceName": "nvidia.com/vf_rail_a"}


@pytest.mark.parametrize(
    ("key", "value"),
    [
        ("externally_managed", True),
        ("eswitch_mode", "switchdev"),
        ("device_type", "vfio-pci"),
        ("rdma_mode", "exclusive"),
        ("max_unavailable", 2),
        ("vlan", 7),
        ("link_state", "enable"),
        ("trust", False),
        ("spoof_check", True),
    ],
)
def test_what_only_the_sriov_operator_sets(key: str, value: Any) -> None:
    with pytest.raises(InputError) as caught:
        planned(assigned_by="device_plugin", **{key: value})
    assert str(caught.value) == (
        f"rdma_fabric.sriov.{key}: only the SR-IOV operator sets it. Remove it, or set assigned_by: operator"
    )


def test_the_permissions_without_the_sriov_operator() -> None:
    def needed(**sriov: Any) -> set[str]:
        made = planned(**sriov)["objects"]["networks"]
        return {str(item) for item in access.needed("op", "team", "tests", profiles=["sriov"], objects=made)}

    created = "create hostdevicenetworks.mellanox.com"
    assert created in needed(assigned_by="device_plugin")
    assert created not in needed()


@pytest.mark.parametrize("profile", ["macvlan", "raw", "sriov"])
def test_pods_inherit_the_mtu_of_the_port(profile: str) -> None:
    def texts(mtu: str) -> str:
        fabric = {**RAIL, "profile": profile, "networks": {"mtu": mtu}}
        return json.dumps(plan(fabric, fleet(2, rails=1))["objects"])

    assert "mtu" in texts("plan")
    assert "mtu" not in texts("inherit")
