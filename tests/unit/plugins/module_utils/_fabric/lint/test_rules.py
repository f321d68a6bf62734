"""Each rule finds its problem, is silent about the repaired object, and survives objects of any form. About 1 s."""

from __future__ import annotations

import copy
import json
import random
from collections.abc import Iterator
from typing import Any

import pytest
from tests.tools import gallery

from ansible_collections.gpufabric.rdma.plugins.module_utils._fabric.intent import releases
from ansible_collections.gpufabric.rdma.plugins.module_utils._fabric.lint import registry
from ansible_collections.gpufabric.rdma.plugins.module_utils._fabric.lint.objects import Objects
from ansible_collections.gpufabric.rdma.plugins.module_utils._fabric.plan import presets
from ansible_collections.gpufabric.rdma.plugins.module_utils._fabric.plan.plan import plan

NCP = "NicClusterPolicy"


def made(kind: str, name: str, **spec: Any) -> dict[str, Any]:
    return {"apiVersion": "v1", "kind": kind, "metadata": {"name": name}, "spec": spec}


def policy(**spec: Any) -> dict[str, Any]:
    return made(NCP, "nic-cluster-policy", **{"global": {"version": "v26.4.2"}, **spec})


def shared(*entries: dict[str, Any]) -> dict[str, Any]:
    return policy(rdmaSharedDevicePlugin={"image": "i", "config": json.dumps({"configList": entries})})


def entry(name: str, *ports: str) -> dict[str, Any]:
    return {"resourceName": name, "rdmaHcaMax": 63, "selectors": {"ifNames": [*ports]}}


def plugin(**resource: Any) -> dict[str, Any]:
    return policy(sriovDevicePlugin={"image": "i", "config": json.dumps({"resourceList": [resource]})})


def contained(**amounts: Any) -> dict[str, Any]:
    return {"image": "i", "containerResources": [{"name": "a", **amounts}]}


TAG = "doca3.4.1-26.04-1.1.0.0-3"


def driver(**spec: Any) -> dict[str, Any]:
    return policy(ofedDriver={"image": "doca-driver", "version": TAG, **spec})


def network(kind: str = "MacvlanNetwork", **spec: Any) -> dict[str, Any]:
    return made(kind, "rail0", **spec)


def definition(pkey: int) -> dict[str, Any]:
    plugin = {"type": "ib-sriov", "pkey": f"0x{pkey:x}"}
    return made("NetworkAttachmentDefinition", f"net{pkey}", config=json.dumps({"plugins": [plugin]}))


def ipam(**found: Any) -> str:
    return json.dumps({"type": "nv-ipam", **found})


def sriov(name: str = "rail0", **spec: Any) -> dict[str, Any]:
    known = {"resourceName": "vf", "numVfs": 4, "nicSelector": {"pfNames": ["ens1f0"]}, "nodeSelector": {}}
    return made("SriovNetworkNodePolicy", name, **{**known, **spec})


def state(**port: Any) -> dict[str, Any]:
    found = {"name": "ens1f0", "totalvfs": 8, "mtu": 9000, "linkType": "ETH", **port}
    return {**made("SriovNetworkNodeState", "node-1"), "status": {"interfaces": [found]}}


def node(name: str = "node-1", **spec: Any) -> dict[str, Any]:
    return made("Node", name, **spec)


def pool(subnet: str, name: str = "rail0", size: int = 4, nodes: int = 0) -> dict[str, Any]:
    found = made("IPPool", name, subnet=subnet, perNodeBlockSize=size)
    return {**found, "status": {"allocations": [{"nodeName": f"node-{number}"} for number in range(nodes)]}}


def host(cmdline: str, system: str = "ubuntu") -> dict[str, Any]:
    return {"gpu-1": {"os": {"id": system, "id_like": "debian"}, "kernel": {"cmdline": cmdline}}}


def facts(**own: Any) -> dict[str, Any]:
    """Facts of a host with a NIC of the vendor."""
    return {"hosts": {"gpu-1": {"ports": [{"vendor": "15b3", "netdev": "ens1f0", "duty": own.pop("duty", "")}], **own}}}


def labelled(labels: dict[str, str], **status: Any) -> dict[str, Any]:
    return {"kind": "Node", "metadata": {"name": "node-1", "labels": labels}, "status": status}


def synced(actual: int, wanted: int = 4, status: str = "Succeeded") -> dict[str, Any]:
    port = {"name": "ens1f0", "pciAddress": "0000:18:00.0"}
    found = made("SriovNetworkNodeState", "node-1", interfaces=[{**port, "numVfs": wanted}])
    return {**found, "status": {"syncStatus": status, "interfaces": [{**port, "numVfs": actual} if actual else port]}}


def master(namespace: str, name: str = "nfd-node-feature-discovery-master") -> dict[str, Any]:
    labels = {"app.kubernetes.io/name": "node-feature-discovery"}
    return {"kind": "Deployment", "metadata": {"name": name, "namespace": namespace, "labels": labels}}


def gpus(**rdma: Any) -> dict[str, Any]:
    return {**made("ClusterPolicy", "cluster-policy", driver={"rdma": rdma}), "apiVersion": "nvidia.com/v1"}


def budget(healthy: int, allowed: int) -> dict[str, Any]:
    status = {"expectedPods": 3, "currentHealthy": healthy, "disruptionsAllowed": allowed}
    return {**made("PodDisruptionBudget", "db"), "status": status}


def pulled(*secrets: str, repository: str = "r.example.com") -> dict[str, Any]:
    return {"image": "i", "repository": repository, "imagePullSecrets": [*secrets]}


NIC = {"feature.node.kubernetes.io/pci-15b3.present": "true"}
SYSTEM = "feature.node.kubernetes.io/system-os_release.ID"
UNLOADS = [{"name": "UNLOAD_STORAGE_MODULES", "value": "true"}]
SECRET = {"apiVersion": "v1", "kind": "Secret", "metadata": {"name": "ufm"}}
KEYS = {"UFM_USERNAME": "", "UFM_PASSWORD": "", "UFM_ADDRESS": ""}
GUIDS = {"pKeyGUIDPoolRangeStart": "02:00:00:00:00:00:00:00", "pKeyGUIDPoolRangeEnd": "02:FF:FF:FF:FF:FF:FF:FF"}
UFM = policy(ibKubernetes={"ufmSecret": "ufm", **GUIDS})
CONFIG = made("SriovOperatorConfig", "default")
POOL = made("SriovNetworkPoolConfig", "gpu", rdmaMode="exclusive")
UPGRADE = {"autoUpgrade": True, "drain": {"enable": True}}
PROBE = {"failureThreshold": 120, "periodSeconds": 10}
AFFINITY = {"requiredDuringSchedulingIgnoredDuringExecution": {"nodeSelectorTerms": [{"matchExpressions": []}]}}
SHARED_SOME = shared(entry("a", "rail0"))
CLAIMS = made("SriovOperatorConfig", "default", featureGates={"dynamicResourceAllocation": True})
NOT_OFFERED = [synced(4), {"kind": "Node", "metadata": {"name": "node-1"}, "status": {"allocatable": {"cpu": "8"}}}]
# Rule -> objects with the problem, a part of the message, the same objects without it, further arguments of Objects.
CASES: dict[str, tuple[list[Any], str, list[Any], dict[str, Any]]] = {
    "policy-name": ([made(NCP, "mlnx")], f"{NCP} mlnx", [policy()], {}),
    "image-version": (
        [made(NCP, "nic-cluster-policy", nvIpam={"image": "i"})],
        "spec.nvIpam.version is not set",
        [made(NCP, "nic-cluster-policy", nvIpam={"image": "i", "version": "v1"}), policy(nvIpam={"image": "i"})],
        {},
    ),
    "image-latest": (
        [policy(nvIpam={"version": "latest"})],
        "spec.nvIpam.version",
        [policy(nvIpam={"version": "v1"})],
        {},
    ),
    "plugin-json": (
        [policy(sriovDevicePlugin={"config": "{resourceList: []}"})],
        "spec.sriovDevicePlugin.config is not valid JSON",
        [policy(sriovDevicePlugin={"config": '{"resourceList": []}'}), policy(sriovDevicePlugin={})],
        {},
    ),
    "plugin-quote": ([shared(entry("a'b"))], "single quotation mark", [shared(entry("ab"))], {}),
    "resource-name": ([shared(entry("rail-0", "rail0"))], '"rail-0"', [shared(entry("rail_0", "rail0"))], {}),
    "resource-ports": (
        [shared(entry("rails", "rail0", "rail1"))],
        "rails has the ports rail0, rail1",
        [shared(entry("a", "rail0"), entry("b", "rail1"))],
        {},
    ),
    "port-twice": (
        [shared(entry("a", "rail0"), entry("b", "rail0"))],
        "rail0 is in the resources a, b",
        [shared(entry("a", "rail0"))],
        {},
    ),
    "policy-owners": (
        [driver(version="v"), made("NicNodePolicy", "gpu", ofedDriver={"version": "v"})],
        f"spec.ofedDriver is in {NCP}",
        [policy(), made("NicNodePolicy", "gpu", ofedDriver={"version": "v"})],
        {},
    ),
    "node-policy-name": ([made("NicNodePolicy", "a" * 31)], "31 characters", [made("NicNodePolicy", "a" * 30)], {}),
    "driver-safe-load": (
        [driver(upgradePolicy={"safeLoad": True})],
        "safeLoad",
        [driver(upgradePolicy={"safeLoad": True, **UPGRADE})],
        {},
    ),
    "driver-drain": (
        [driver(upgradePolicy={"autoUpgrade": True})],
        "without drain",
        [driver(upgradePolicy=UPGRADE), driver(upgradePolicy={"autoUpgrade": False})],
        {},
    ),
    "driver-tag": (
        [driver(version="")],
        "so it takes v26.4.2 of spec.global, the tag of the other components. Set ofedDriver.version",
        [driver(), policy(), made("NicNodePolicy", "a", ofedDriver={"image": "doca-driver"})],
        {},
    ),
    "driver-probe": (
        [driver(startupProbe={**PROBE, "failureThreshold": 20})],
        "ends after 200 s",
        [driver(startupProbe=PROBE), driver(forcePrecompiled=True, startupProbe={**PROBE, "failureThreshold": 1})],
        {},
    ),
    "policy-fields": ([policy(psp={"enabled": True})], "spec.psp", [policy()], {}),
    "ufm-secret": (
        [
            UFM,
            {**SECRET, "stringData": {**KEYS, "UFM_ADDRESS ": ""} | {"X": ""}, "data": None},
            {**SECRET, "data": {"UFM_USER": ""}},
        ],
        "lacks UFM_USERNAME, UFM_PASSWORD, UFM_ADDRESS and has UFM_USER",
        [UFM, {**SECRET, "data": KEYS}, {"kind": "Secret", "metadata": {"name": "other"}}],
        {},
    ),
    "guid-range": (
        [
            policy(ibKubernetes={**GUIDS, "pKeyGUIDPoolRangeEnd": "00:00:00:00:00:00:00:01"}),
            policy(ibKubernetes={**GUIDS, "pKeyGUIDPoolRangeEnd": "02:FF"}),
        ],
        "after its end",
        [UFM],
        {},
    ),
    "ipam-json": ([network(ipam="{type: x}")], "spec.ipam is not valid JSON", [network(ipam=ipam()), network()], {}),
    "host-local": ([network(ipam='{"type": "host-local"}')], "host-local", [network(ipam=ipam())], {}),
    "pool-absent": (
        [network(ipam=ipam(poolName="rail0", poolType="cidrpool")), pool("10.0.0.0/24")],
        "the CIDRPool rail0 does not",
        [network(ipam=ipam(poolName="rail0")), pool("10.0.0.0/24")],
        {"complete": True},
    ),
    "network-resource": (
        [network("SriovNetwork", resourceName="nvidia.com/rail-0")],
        '"rail-0"',
        [network("SriovNetwork", resourceName="nvidia.com/rail_0")],
        {},
    ),
    "macvlan-infiniband": (
        [network(master="ens1f0"), state(linkType="IB")],
        "InfiniBand port on node-1",
        [network(master="ens1f0"), state()],
        {},
    ),
    "network-mtu": (
        [network(master="ens1f0", mtu=9000), state(mtu=1500)],
        "ens1f0 of node-1 has 1500",
        [network(master="ens1f0", mtu=9000), state(), state(name="other", mtu=1500)],
        {},
    ),
    "pools-overlap": (
        [pool("10.0.0.0/23"), pool("10.0.1.0/24", "rail1")],
        "10.0.1.0/24 overlap",
        [pool("10.0.0.0/24"), pool("10.0.1.0/24", "rail1"), made("CIDRPool", "v6", cidr="fd00::/64")],
        {},
    ),
    "pods-overlap": (
        [pool("10.244.1.0/24"), node(podCIDRs=["10.244.0.0/16"])],
        "those of pods on node-1",
        [pool("10.1.1.0/24"), node(podCIDRs=["10.244.0.0/16", "fd00::/64"])],
        {},
    ),
    "pool-size": (
        [pool("10.0.0.0/30", nodes=1)],
        "blocks of 4 addresses: 1, nodes with a block: 1",
        [pool("10.0.0.0/24", nodes=3)],
        {},
    ),
    "partition-keys": (
        [definition(number) for number in range(1, 130)],
        "They have 129 partition keys, and a node can be in 128 partitions",
        # The other bit of a key is that of full members.
        [*(definition(number) for number in range(1, 129)), definition(0x8001)],
        {},
    ),
    "network-isolation": (
        [
            policy(secondaryNetwork={"multus": {"config": '{"namespaceIsolation": true}'}}),
            network(networkNamespace="team-a"),
        ],
        "only pods in team-a",
        [
            policy(
                secondaryNetwork={
                    "multus": {"config": json.dumps({"namespaceIsolation": True, "globalNamespaces": "default,team-a"})}
                }
            ),
            network(networkNamespace="team-a"),
        ],
        {},
    ),
    "sriov-default": ([sriov("default")], "called default", [sriov(), sriov("default", numVfs=0)], {}),
    "sriov-no-vfs": ([sriov(numVfs=0)], "numVfs is 0", [sriov()], {}),
    "sriov-resource": ([sriov(resourceName="rail-0")], '"rail-0"', [sriov(resourceName="rail.0_a")], {}),
    "sriov-port": (
        [sriov(nicSelector={"pfNames": ["ens9#0-3"]}), state()],
        "a port ens9",
        [sriov(nicSelector={"pfNames": ["ens1f0#0-3", "rail0"]}), state(altName="rail0")],
        {"complete": True},
    ),
    "sriov-vfs": (
        [sriov(numVfs=16), state()],
        "ens1f0 of node-1 has at most 8",
        [sriov(numVfs=8), state(), sriov(numVfs=16, nodeSelector={"gpu": "true"})],
        {},
    ),
    "sriov-mtu": (
        [sriov(externallyManaged=True, mtu=9000), state(mtu=1500)],
        "ens1f0 of node-1 has 1500",
        [sriov(externallyManaged=True, mtu=9000), sriov(mtu=9000), state()],
        {},
    ),
    "sriov-external": (
        [sriov(externallyManaged=True), CONFIG],
        "disableDrain",
        [sriov(externallyManaged=True), made("SriovOperatorConfig", "default", disableDrain=True)],
        {},
    ),
    "sriov-one-node": (
        [sriov(), node(), CONFIG],
        "one node",
        [sriov(), node(), node("node-2"), CONFIG],
        {"complete": True},
    ),
    "sriov-exclusive": (
        [POOL, shared(entry("a", "rail0"))],
        f"{NCP} nic-cluster-policy has spec.rdmaSharedDevicePlugin",
        [POOL, policy()],
        {},
    ),
    "shared-exclusive": (
        [shared(entry("a", "rail0"))],
        f"ib_core.netns_mode=0 is set, and {NCP} nic-cluster-policy has spec.rdmaSharedDevicePlugin",
        [policy(), {**SHARED_SOME, "spec": {**SHARED_SOME["spec"], "nodeAffinity": AFFINITY}}],
        {"hosts": host("quiet ib_core.netns_mode=0")},
    ),
    "port-owners": (
        [sriov(), shared(entry("a", "ens1f0"))],
        f"ens1f0 belongs to {NCP}",
        [sriov(), shared(entry("a", "ens1f1"))],
        {},
    ),
    "sriov-reboot": ([sriov(), POOL], "needs ib_core.netns_mode=0 on the nodes", [sriov()], {"hosts": host("quiet")}),
    "image-repository": (
        [policy(nvIpam={"image": "i", "repository": "https://r.example.com/m"})],
        'spec.nvIpam.repository "https://r.example.com/m": expected a repository',
        [policy(nvIpam={"image": "i", "repository": "r.example.com:5000/m"})],
        {},
    ),
    "container-limit": (
        [policy(nvIpam=contained(requests={"cpu": "1"}, limits={"cpu": "500m"}))],
        "spec.nvIpam.containerResources, container a: the request for cpu, 1, is above the limit 500m",
        [policy(nvIpam=contained(requests={"cpu": "1"}, limits={"cpu": "1000m", "memory": "1Gi"}))],
        {},
    ),
    "container-resources": (
        [policy(nvIpam=contained(limits={"cpu": "0", "nvidia.com/gpu": 1}))],
        "limits.nvidia.com/gpu: expected cpu or memory",
        [policy(nvIpam=contained(limits={"cpu": 1, "memory": "64Mi"}))],
        {},
    ),
    "plugin-entries": (
        [shared(entry("a", "rail0"), {**entry("a", "rail1"), "devices": ["rail1"]})],
        "a is the name of several entries",
        [
            shared(entry("a", "rail0"), {"resourceName": "b", "rdmaHcaMax": 1, "devices": ["rail1"]}),
            plugin(resourceName="x"),
        ],
        {},
    ),
    "plugin-fields": (
        [shared({**entry("a"), "selectors": {"ifNames": ["rail0"], "isRdma": True}})],
        "a has isRdma. Remove or correct it",
        [shared(entry("a", "rail0")), plugin(resourceName="b", selectors=[{"isRdma": True, "pfNames": ["rail0"]}])],
        {},
    ),
    "plugin-link-types": (
        [plugin(resourceName="b", selectors={"linkTypes": ["IB"]})],
        "b has linkTypes IB. Expected ether or infiniband",
        [plugin(resourceName="b", selectors={"linkTypes": ["infiniband"]})],
        {},
    ),
    "resource-prefix": (
        [plugin(resourceName="b", resourcePrefix="nvidia.com/")],
        'resourcePrefix "nvidia.com/": expected a domain',
        [plugin(resourceName="b", resourcePrefix="nvidia.com"), shared({**entry("a", "r"), "resourcePrefix": "rdma"})],
        {},
    ),
    "telemetry-config": (
        [policy(docaTelemetryService={"image": "i", "config": {"fromConfigMap": "My_Config"}})],
        '"My_Config" cannot be the name',
        [policy(docaTelemetryService={"image": "i", "config": {"fromConfigMap": "my-config"}})],
        {},
    ),
    "node-policy-overlap": (
        [made("NicNodePolicy", "a", nodeSelector={"pool": "a"}), made("NicNodePolicy", "b")],
        "NicNodePolicy b: Its nodeSelector selects nodes of NicNodePolicy a, too",
        [
            made("NicNodePolicy", "a", nodeSelector={"p": "a"}),
            made("NicNodePolicy", "b", nodeSelector={"p": "b"}),
            node(),
        ],
        {},
    ),
    "sriov-combination": (
        [sriov(deviceType="vfio-pci", isRdma=True)],
        "isRdma is true with deviceType vfio-pci",
        [sriov(deviceType="vfio-pci"), sriov(eSwitchMode="switchdev", linkType="eth"), sriov(numVfs=200)],
        {},
    ),
    "sriov-one-port": (
        [sriov("a"), sriov("b")],
        "SriovNetworkNodePolicy b: SriovNetworkNodePolicy a selects the port ens1f0 on the same nodes",
        [sriov("a"), sriov("b", priority=10), sriov("c", nodeSelector={"x": "y"})],
        {},
    ),
    "driver-kernel": (
        [driver(), labelled(NIC, nodeInfo={"kernelVersion": "6.8.0-1028-nvidia-64k"})],
        "host node-1: Its kernel is 6.8.0-1028-nvidia-64k, and NicClusterPolicy nic-cluster-policy compiles",
        [
            driver(forcePrecompiled=True),
            labelled(NIC, nodeInfo={"kernelVersion": "6.8.0-1028-nvidia-64k"}),
        ],
        {},
    ),
    "driver-system": (
        [driver(), labelled({**NIC, SYSTEM: "debian"})],
        "Node node-1: Its system is debian",
        [driver(), labelled({**NIC, SYSTEM: "ubuntu"}), labelled({SYSTEM: "debian"})],
        {},
    ),
    "driver-secure-boot": ([driver()], "host gpu-1: Secure Boot is enabled", [policy()], facts(secure_boot=True)),
    "driver-modules": (
        [driver()],
        "host gpu-1: These modules are loaded: ib_iser, nvme_rdma",
        [driver(env=UNLOADS)],
        facts(modules={"nvme_rdma": 0, "ib_iser": 1, "mlx5_core": 2}),
    ),
    "driver-primary": (
        [driver()],
        "host gpu-1: ens1f0 carries the default route (of bond0), and the driver container",
        [policy(), made("NicNodePolicy", "a", ofedDriver={"version": TAG})],
        facts(duty="carries the default route (of bond0)"),
    ),
    "network-link-state": (
        [network("SriovIBNetwork", linkState="disable")],
        "spec.linkState is disable",
        [network("SriovIBNetwork", linkState="auto"), network("SriovNetwork")],
        {},
    ),
    "sriov-missing-vfs": (
        [synced(0)],
        "SriovNetworkNodeState node-1: syncStatus is Succeeded, but ens1f0 has 0 VFs, expected 4",
        [synced(4), synced(8), synced(0, status="InProgress")],
        {},
    ),
    "sriov-not-offered": (
        [sriov(), synced(4), labelled({}, allocatable={"cpu": "8", "nvidia.com/vf": "0"})],
        "ens1f0 of node-1 has VFs, but the node offers no vf",
        [sriov(), synced(4), labelled({}, allocatable={"cpu": "8", "openshift.io/vf": "4"})],
        {},
    ),
    "node-label": (
        [shared(entry("a", "rail0")), labelled({"gpu": "true"})],
        f"{NCP} nic-cluster-policy: No Node has the label feature.node.kubernetes.io/pci-15b3.present=true",
        [shared(entry("a", "rail0")), labelled({}), labelled(NIC)],
        {"complete": True},
    ),
    "nfd-twice": (
        [master("gpu-operator"), master("nvidia-network-operator")],
        "Deployment gpu-operator/nfd-node-feature-discovery-master is a master",
        [master("gpu-operator"), master("gpu-operator", "nfd-node-feature-discovery-gc"), master("x", "nfd-gc")],
        {},
    ),
    "gpu-driver": (
        [driver(), gpus(enabled=True, useHostMofed=True)],
        "ClusterPolicy cluster-policy: spec.driver.rdma.useHostMofed is true, but NicClusterPolicy",
        [driver(), gpus(enabled=True), {**gpus(enabled=True, useHostMofed=True), "apiVersion": "kyverno.io/v1"}],
        {},
    ),
    "nic-maintenance": (
        [policy(nicConfigurationOperator={"operator": {}})],
        "the cluster does not serve maintenance.nvidia.com",
        [policy()],
        {"groups": ["apps"]},
    ),
    "drain-budget": (
        [sriov(), budget(3, 0)],
        "PodDisruptionBudget db: All 3 pods are healthy, and it permits no eviction",
        [sriov(), budget(2, 0), budget(3, 1)],
        {},
    ),
    "pull-secrets": (
        [policy(nvIpam=pulled("login"), ofedDriver={**pulled(), "version": TAG})],
        "spec.ofedDriver: no imagePullSecrets, but another section with the repository r.example.com has them",
        [policy(nvIpam=pulled("login"), ofedDriver={**pulled(repository="other.example.com"), "version": TAG})],
        {},
    ),
}


def found(objects: list[Any], **more: Any) -> list[registry.Finding]:
    return registry.lint(Objects(objects, **more))


def test_every_rule_has_a_case() -> None:
    assert set(CASES) == set(registry.names()) and len(registry.names()) == len(set(registry.names()))


@pytest.mark.parametrize("rule", CASES)
def test_a_rule_finds_its_problem_and_nothing_else(rule: str) -> None:
    bad, text, good, more = CASES[rule]
    hits = [finding for finding in found(bad, **more) if finding.rule == rule]
    assert any(text in f"{finding.object}: {finding.text}" for finding in hits), hits
    assert not any(finding.text.endswith(".") for finding in hits)
    assert [finding for finding in found(good, **more) if finding.rule == rule] == []
    assert registry.lint(Objects(bad, **more), [rule]) == [one for one in found(bad, **more) if one.rule != rule]


@pytest.mark.parametrize(
    ("objects", "cmdline", "system", "text"),
    [
        ([sriov(), POOL], "ib_core.netns_mode=0", "ubuntu", ""),
        ([sriov(), POOL], "quiet", "rhel", ""),
        ([sriov(), POOL], "", "ubuntu", ""),
        ([POOL], "quiet", "ubuntu", ""),
        ([sriov()], "ib_core.netns_mode=0", "ubuntu", "ib_core.netns_mode=0 is set, but no SriovNetworkPoolConfig"),
        ([sriov(deviceType="vfio-pci")], "intel_iommu=on", "debian", "SriovNetworkNodePolicy rail0 needs iommu=pt"),
        ([sriov(deviceType="vfio-pci")], "intel_iommu=on iommu=pt", "debian", ""),
    ],
)
def test_kernel_arguments_that_the_operator_reboots_for(
    objects: list[Any], cmdline: str, system: str, text: str
) -> None:
    facts = {"gpu-1": {"os": {"id": system}, "kernel": {"cmdline": cmdline}}}
    texts = [finding.text for finding in found(objects, hosts=facts) if finding.rule == "sriov-reboot"]
    assert (not texts) if not text else (len(texts) == 1 and texts[0].startswith(text))


@pytest.mark.parametrize("release", [list(line.releases)[-1] for line in releases.LINES.values()])
@pytest.mark.parametrize("name", gallery.ENTRIES)
def test_our_own_objects_have_no_problem(name: str, release: str) -> None:
    if gallery.refusal(gallery.ENTRIES[name], release):
        return  # the page says so
    objects = gallery.planned(gallery.ENTRIES[name], release)["objects"]
    rules = {finding.rule for finding in found([*objects["policy"], *objects["networks"]])}
    external = "externally_managed: true" in gallery.ENTRIES[name].intent
    assert rules == ({"sriov-external"} if external else set())


def test_the_plan_warns_of_what_the_facts_of_hosts_show() -> None:
    hosts = presets.hosts(gallery.PRESET, 3)
    for own in hosts.values():
        own["facts"]["os"], own["facts"]["kernel"] = (
            {"id": "ubuntu", "version": "24.04"},
            {"cmdline": "quiet", "release": "6.8"},
        )
    made = plan({"supernet": "192.168.0.0/16", "profile": "sriov", "sriov": {"rdma_mode": "exclusive"}}, hosts)
    assert [text for text in made["warnings"] if "(sriov-" in text] == [
        "host gpu-[1-3]: The operator reboots the node again and again. SriovNetworkPoolConfig"
        " nvidia-network-operator/gpufabric needs ib_core.netns_mode=0 on the nodes that it selects. The operator"
        " cannot set kernel arguments on this system; add it to the boot loader first (sriov-reboot)"
    ]


def changed(value: Any, chance: random.Random) -> Any:
    """A value of which some part has another form."""
    if chance.random() < 0.1:
        return chance.choice([None, "", "x", 0, -1, True, [], {}, [None], {"a": 1}, "[[", 1e400])
    if isinstance(value, dict):
        return {key: changed(item, chance) for key, item in value.items()}
    return [changed(item, chance) for item in value] if isinstance(value, list) else value


def damaged() -> Iterator[list[Any]]:
    chance = random.Random(16)
    for bad, _text, good, _more in CASES.values():
        for _turn in range(20):
            yield changed(copy.deepcopy([*bad, *good]), chance)


def test_a_port_of_a_node_without_a_report_is_not_called_unknown() -> None:
    other = {**made("SriovNetworkNodeState", "node-2"), "status": {}}
    objects = [sriov(nicSelector={"pfNames": ["ens9"]}), state(), other]
    assert "sriov-port" not in {finding.rule for finding in found(objects, complete=True)}


def test_names_cannot_write_to_a_terminal() -> None:
    objects = [made(NCP, "\x1b[2J"), shared(entry("\x1b[2J", "a", "b\x07"))]
    assert not any(mark in finding.line for finding in found(objects) for mark in "\x1b\x07")


def test_objects_of_any_form_are_examined() -> None:
    facts = changed({**host("a b"), "other": None}, random.Random(1))
    for objects in damaged():
        registry.lint(Objects(objects if isinstance(objects, list) else [objects], facts or {}, complete=True))


@pytest.mark.parametrize(
    ("rule", "objects", "text"),
    [
        ("sriov-combination", [sriov(eSwitchMode="switchdev", linkType="IB")], "switchdev with linkType ib"),
        ("sriov-combination", [sriov(numVfs=200, nicSelector={"vendor": "15b3"})], "numVfs is 200; at most 128"),
        ("container-resources", [policy(nvIpam=contained(requests={"cpu": "a lot"}))], "requests.cpu is a lot. Set"),
        ("plugin-entries", [shared({"resourceName": "a", "selectors": {}})], "a has no valid rdmaHcaMax"),
        ("plugin-entries", [shared({"resourceName": "a", "rdmaHcaMax": 1})], "a: set either selectors or devices"),
        ("plugin-entries", [plugin(selectors={})], "an entry has no resourceName"),
        ("plugin-fields", [plugin(resourceName="a", selectors=[{"pfName": ["x"]}])], "a has pfName"),
        (
            "node-policy-overlap",
            [
                made("NicNodePolicy", "a", nodeSelector={"p": "a"}),
                made("NicNodePolicy", "b", nodeSelector={"q": "b"}),
                {"kind": "Node", "metadata": {"name": "n", "labels": {"p": "a", "q": "b"}}},
            ],
            "selects nodes of NicNodePolicy a",
        ),
    ],
)
def test_further_rules_of_the_webhooks(rule: str, objects: list[Any], text: str) -> None:
    hits = [finding for finding in found(objects) if finding.rule == rule]
    assert [text in finding.text for finding in hits] == [True]


def test_ranges_of_one_port_and_accelerators_are_left_alone() -> None:
    ranges = [sriov(name, nicSelector={"pfNames": [f"ens1f0#{part}"]}) for name, part in (("a", "0-1"), ("b", "2-3"))]
    other = plugin(resourceName="a", deviceType="accelerator", selectors={"functions": ["x"]})
    assert {finding.rule for finding in found([*ranges, other])} == set()


@pytest.mark.parametrize(
    ("rule", "objects", "more", "text"),
    [
        (
            "driver-kernel",
            [driver()],
            facts(kernel={"release": "5.14.0-503.el9.aarch64+64k"}),
            "host gpu-1: Its kernel",
        ),
        ("driver-kernel", [driver(), labelled({}, nodeInfo={"kernelVersion": "6.8.0-64k"})], {}, ""),
        (
            "driver-modules",
            [driver(env=UNLOADS)],
            facts(modules={"irdma": 0}),
            "loaded: irdma. Unload them, or set UNLOAD_T",
        ),
        ("driver-secure-boot", [driver()], facts(secure_boot=None), ""),
        ("driver-secure-boot", [policy(ofedDriver={}, nodeAffinity={"a": 1})], facts(secure_boot=True), ""),
        (
            "driver-secure-boot",
            [policy(ofedDriver={}, nodeAffinity={"a": 1})],
            {**facts(secure_boot=True), "selected": True},
            "Secure Boot",
        ),
        ("driver-primary", [driver()], facts(duty="is not one of the rails"), ""),
        (
            "gpu-driver",
            [policy(), gpus(enabled=True)],
            {"complete": True},
            "no policy has ofedDriver. Set useHostMofed",
        ),
        ("gpu-driver", [policy(), gpus(enabled=True)], {}, ""),
        ("gpu-driver", [policy(), gpus(enabled=True, useHostMofed=True)], {"complete": True}, ""),
        ("nic-maintenance", [policy(nicConfigurationOperator={})], {"groups": ["maintenance.nvidia.com"]}, ""),
        ("nic-maintenance", [policy(nicConfigurationOperator={})], {}, ""),
        ("drain-budget", [budget(3, 0)], {"complete": True}, ""),
        ("drain-budget", [sriov(), budget(3, 0), made("SriovOperatorConfig", "default", disableDrain=True)], {}, ""),
        ("drain-budget", [driver(upgradePolicy=UPGRADE), budget(3, 0)], {}, "permits no eviction"),
        ("node-label", [policy(nvIpam={}), labelled({})], {"complete": True}, ""),
        ("node-label", [shared(entry("a", "rail0")), labelled({})], {}, ""),
        ("shared-exclusive", [SHARED_SOME], {"hosts": host("ib_core.netns_mode=0 ib_core.netns_mode=1")}, ""),
        ("shared-exclusive", [SHARED_SOME], {"hosts": host("ib_core.netns_mode=1 ib_core.netns_mode=0")}, "is set"),
        ("sriov-not-offered", [sriov(), *NOT_OFFERED], {}, "offers no vf"),
        ("sriov-not-offered", [sriov(), *NOT_OFFERED, CLAIMS], {}, ""),
        *(
            ("sriov-not-offered", [sriov(nicSelector={"pfNames": ["ens1f0"], **selector}), *NOT_OFFERED], {}, "")
            for selector in (
                {"vendor": "8086"},
                {"deviceID": "1021"},
                {"rootDevices": ["0000:3b:00.0"]},
                {"netFilter": "n"},
            )
        ),
        (
            "sriov-not-offered",
            [sriov(nicSelector={"pfNames": ["ens1f0#0-3"], "rootDevices": ["0000:18:00.0"]}), *NOT_OFFERED],
            {},
            "offers no vf",
        ),
        (
            "driver-system",
            [driver(repository="nvcr.io/nvidia/mellanox"), labelled({**NIC, SYSTEM: "debian"})],
            {},
            "debian",
        ),
        (
            "driver-system",
            [driver(repository="registry.example.com/own"), labelled({**NIC, SYSTEM: "debian"})],
            {},
            "",
        ),
    ],
)
def test_evidence_of_hosts_and_of_what_is_beside_the_policies(
    rule: str, objects: list[Any], more: dict[str, Any], text: str
) -> None:
    hits = [f"{one.object}: {one.text}" for one in found(objects, **more) if one.rule == rule]
    assert [text in hit for hit in hits] == ([True] if text else []), hits
