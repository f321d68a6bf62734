"""Objects that install the operator by OLM and configure hosts with CoreOS. Milliseconds.

The schemas here were written by hand, after the documentation of OLM, the Machine Config Operator and nmstate: they
have the fields that are used, and refuse all others.
"""

from __future__ import annotations

from typing import Any
from urllib.parse import unquote

import jsonschema
import pytest
from tests.unit.support.plan_factory import fleet

from ansible_collections.gpufabric.rdma.plugins.module_utils._common.errors import InputError
from ansible_collections.gpufabric.rdma.plugins.module_utils._fabric.operator import coreos
from ansible_collections.gpufabric.rdma.plugins.module_utils._fabric.operator.manifests import Chart, manifests
from ansible_collections.gpufabric.rdma.plugins.module_utils._fabric.operator.profiles import registry
from ansible_collections.gpufabric.rdma.plugins.module_utils._fabric.plan.plan import plan

TEXT, NUMBER = {"type": "string", "minLength": 1}, {"type": "integer", "minimum": 0}


def closed(required: str = "", **properties: Any) -> dict[str, Any]:
    found = {"type": "object", "properties": properties, "additionalProperties": False}
    return {**found, "required": required.split()} if required else found


def address(longest: int, **more: Any) -> dict[str, Any]:
    one = closed("ip prefix-length", ip=TEXT, **{"prefix-length": {**NUMBER, "maximum": longest}})
    flag = {"type": "boolean"}
    return closed("enabled", enabled=flag, dhcp=flag, address=listed(one), **more)


def listed(item: Any) -> dict[str, Any]:
    return {"type": "array", "items": item}


INTERFACE = closed(
    "name type state",
    name={**TEXT, "maxLength": 15},
    type={"enum": ["ethernet", "infiniband", "vlan"]},
    vlan=closed("base-iface id", id=NUMBER, **{"base-iface": TEXT}),
    state={"enum": ["up"]},
    mtu=NUMBER,
    infiniband=closed("mode pkey", mode={"enum": ["datagram", "connected"]}, pkey=TEXT),
    ipv4=address(32),
    ipv6=address(128, autoconf={"type": "boolean"}),
)
ROUTE = closed(
    "destination",
    destination=TEXT,
    **{"next-hop-address": TEXT, "next-hop-interface": TEXT, "table-id": NUMBER},
)
RULE = closed("route-table", priority=NUMBER, **{"ip-from": TEXT, "route-table": NUMBER})
FILE = closed(
    "path contents", path=TEXT, mode=NUMBER, overwrite={"type": "boolean"}, contents=closed("source", source=TEXT)
)
SPECS = {
    "operators.coreos.com/v1 OperatorGroup": closed(targetNamespaces=listed(TEXT)),
    "operators.coreos.com/v1alpha1 Subscription": closed(
        "name source sourceNamespace",
        name=TEXT,
        source=TEXT,
        sourceNamespace=TEXT,
        channel={"type": "string", "pattern": r"^v\d+\.\d+$"},
        startingCSV=TEXT,
        installPlanApproval={"enum": ["Manual", "Automatic"]},
    ),
    "machineconfiguration.openshift.io/v1 MachineConfig": closed(
        config=closed(
            "ignition", ignition=closed("version", version=TEXT), storage=closed(files=listed(FILE))
        ),
        kernelArguments=listed(TEXT),
    ),
    "nmstate.io/v1 NodeNetworkConfigurationPolicy": closed(
        nodeSelector={"type": "object", "additionalProperties": TEXT},
        desiredState=closed(
            interfaces=listed(INTERFACE),
            routes=closed(config=listed(ROUTE)),
            **{"route-rules": closed(config=listed(RULE))},
        ),
    ),
}  # fmt: skip
FABRIC: dict[str, Any] = {"supernet": "192.168.0.0/16", "operator": {"platform": "openshift"}}
NEW = ("OperatorGroup", "Subscription", "MachineConfig", "NodeNetworkConfigurationPolicy")


def written(fabric: dict[str, Any], kernel: coreos.Kernel | None = None, **hosts: Any) -> dict[str, Any]:
    profile = fabric.get("profile", "macvlan")
    made = plan({**FABRIC, **fabric}, fleet(2, link_layer=registry.get(profile).link_layer, **hosts))
    return manifests(made, Chart(repo="https://charts.example.com"), kernel=kernel)


@pytest.mark.parametrize("profile", registry.names())
@pytest.mark.parametrize("routed", [{}, {"gateway": "last", "routing": "between_rails"}])
def test_every_object_has_the_fields_of_its_kind(profile: str, routed: dict[str, str]) -> None:
    found = written({"profile": profile, **routed}, coreos.Kernel(["pci=realloc"]))
    items = [item for part in found.values() if isinstance(part, list) for item in part if item["kind"] in NEW]
    assert {item["kind"] for item in items} == set(NEW)
    for item in items:
        jsonschema.validate(item["spec"], SPECS[f"{item['apiVersion']} {item['kind']}"])
    assert "operator/values.yaml" not in found and "operator/argocd.yaml" not in found


def test_the_release_is_pinned_and_waits_for_approval() -> None:
    found = written({"operator": {"platform": "openshift", "release": "26.4.2", "namespace": "op"}})
    (subscription,) = found["operator/subscription-nvidia-network-operator.yaml"]
    assert subscription["spec"] == {
        "name": "nvidia-network-operator",
        "source": "certified-operators",
        "sourceNamespace": "openshift-marketplace",
        "channel": "v26.4",
        "startingCSV": "nvidia-network-operator.v26.4.2",
        "installPlanApproval": "Manual",
    }
    (group,) = found["operator/operatorgroup-nvidia-network-operator.yaml"]
    assert group["spec"] == {"targetNamespaces": ["op"]} and group["metadata"]["namespace"] == "op"
    (kustomization,) = found["operator/kustomization.yaml"]
    assert len(kustomization["resources"]) == 3


def files_of(found: dict[str, Any], pool: str = "worker") -> dict[str, str]:
    (config,) = found[f"machines/machineconfig-99-gpufabric-{pool}.yaml"]
    files = config["spec"]["config"]["storage"]["files"]
    return {one["path"]: unquote(one["contents"]["source"].removeprefix("data:,")) for one in files}


def test_machines_get_names_modules_sysctl_and_arguments() -> None:
    kernel = coreos.Kernel(["iommu=pt"], ["nvme_rdma"], {"kernel.numa_balancing": 0})
    operator = {"platform": "openshift", "machine_pool": "gpu"}
    found = written({"operator": operator}, kernel)
    texts = files_of(found, "gpu")
    assert [text for path, text in texts.items() if path.endswith(".link")][0].endswith("\n\n[Link]\nName=rail0\n")
    assert texts["/etc/modules-load.d/gpufabric.conf"] == "ib_umad\nib_uverbs\nrdma_ucm\nnvme_rdma\n"
    assert texts["/etc/sysctl.d/90-gpufabric.conf"].startswith("net.ipv4.conf.rail0.arp_announce = 2\n")
    assert texts["/etc/sysctl.d/90-gpufabric.conf"].endswith("\nkernel.numa_balancing = 0\n")
    (config,) = found["machines/machineconfig-99-gpufabric-gpu.yaml"]
    assert config["spec"]["kernelArguments"] == ["iommu=pt"]
    assert config["metadata"]["labels"]["machineconfiguration.openshift.io/role"] == "gpu"


def test_each_host_gets_its_addresses_and_routes() -> None:
    found = written({"gateway": "last", "routing": "between_rails", "networks": {"source_routing": True}})
    paths = [path for path in found if path.startswith("machines/nodenetwork")]
    assert len(paths) == 2
    (policy,) = found[paths[0]]
    node = policy["spec"]["nodeSelector"]["kubernetes.io/hostname"]
    assert policy["metadata"]["name"] == f"gpufabric-{node}"
    desired = policy["spec"]["desiredState"]
    first = desired["interfaces"][0]
    (address,) = first["ipv4"]["address"]
    assert (first["name"], first["mtu"], address["prefix-length"]) == ("rail0", 9000, 24)
    assert desired["route-rules"]["config"][0]["ip-from"] == f"{address['ip']}/32"
    assert {route["table-id"] for route in desired["routes"]["config"]} == {
        rule["route-table"] for rule in desired["route-rules"]["config"]
    }


def test_a_vlan_is_an_interface_of_its_own_with_the_address() -> None:
    found = written({"vlan": 100})
    (policy,) = [part for path, part in found.items() if "nodenetwork" in path][0]
    port, tagged = policy["spec"]["desiredState"]["interfaces"][:2]
    jsonschema.validate([port, tagged], listed(INTERFACE))
    assert (port["name"], tagged["name"], tagged["vlan"]) == ("rail0", "rail0.100", {"base-iface": "rail0", "id": 100})
    assert "ipv4" not in port and tagged["ipv4"]["address"]
    assert "net.ipv4.conf.rail0/100.arp_ignore = 1\n" in files_of(found)["/etc/sysctl.d/90-gpufabric.conf"]


def test_both_versions_of_ip_are_on_one_interface() -> None:
    own = {"rail": "rail0", "pci": None, "netdev": "rail0", "mtu": 9000, "address": "192.168.0.1/24"}
    ipv6 = {"address": "fd00::1/64", "gateway": "fd00::ff", "routes": ["fd00:1::/64"]}
    made = {
        "hosts": {"a": {"node": None, "rails": [{**own, "ipv6": ipv6}]}},
        "absent": [],
        "rails": [{"name": "rail0", "netdev": "rail0", "master": "rail0", "index": 0, "link_layer": "ethernet"}],
        "operator": {"machine_pool": "worker"},
    }
    _config, policy = coreos.objects(made, coreos.Kernel())
    jsonschema.validate(policy["spec"], SPECS["nmstate.io/v1 NodeNetworkConfigurationPolicy"])
    desired = policy["spec"]["desiredState"]
    (interface,) = desired["interfaces"]
    assert interface["ipv4"]["address"] == [{"ip": "192.168.0.1", "prefix-length": 24}]
    assert interface["ipv6"]["address"] == [{"ip": "fd00::1", "prefix-length": 64}]
    assert desired["route-rules"]["config"] == [{"ip-from": "fd00::1/128", "route-table": 27600, "priority": 27600}]


def test_infiniband_rails_are_interfaces_of_their_own_type() -> None:
    (policy,) = [part for path, part in written({"profile": "ipoib"}).items() if "nodenetwork" in path][0]
    first = policy["spec"]["desiredState"]["interfaces"][0]
    assert (first["type"], first["infiniband"]) == ("infiniband", {"mode": "datagram", "pkey": "0xffff"})


def test_hosts_of_one_pool_that_contradict_each_other_are_refused() -> None:
    hosts = {
        name: {"node": None, "rails": [
            {"rail": "rail0", "pci": pci, "netdev": "rail0", "mtu": 9000, "address": None},
            {"rail": "rail1", "pci": other, "netdev": "rail1", "mtu": 9000, "address": None},
        ]}
        for name, pci, other in (("a", "0000:18:00.0", "0000:3b:00.0"), ("b", "0000:3b:00.0", "0000:18:00.0"))
    }  # fmt: skip
    names = ("rail0", "rail1")
    rails = [{"name": name, "netdev": name, "master": name, "index": 0, "link_layer": "ethernet"} for name in names]
    made = {"hosts": hosts, "absent": [], "rails": rails, "operator": {"machine_pool": "worker"}}
    with pytest.raises(InputError, match="port 0000:3b:00.0 is rail1 on a and rail0 on b, and one MachineConfig names"):
        coreos.objects(made, coreos.Kernel())
    assert len(coreos.objects({**made, "absent": ["b"]}, coreos.Kernel())) == 2
