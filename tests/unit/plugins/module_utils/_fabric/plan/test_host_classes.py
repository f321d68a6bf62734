"""Classes of hosts: who is in which, what they have in common, and what is refused. About 4 s."""

from __future__ import annotations

import ipaddress
import re
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.unit.plugins.module_utils._fabric.operator.test_conformance import RELEASES, check
from tests.unit.support.module_run import run
from tests.unit.support.plan_factory import configured, fleet, host_facts

from ansible_collections.gpufabric.rdma.plugins.module_utils._common.errors import FabricError
from ansible_collections.gpufabric.rdma.plugins.module_utils._fabric.measure.schedule.schedule import fields
from ansible_collections.gpufabric.rdma.plugins.module_utils._fabric.measure.schedule.schedule import (
    planned as rounds_of,
)
from ansible_collections.gpufabric.rdma.plugins.module_utils._fabric.operator.manifests import Chart, manifests
from ansible_collections.gpufabric.rdma.plugins.module_utils._fabric.operator.profiles import registry
from ansible_collections.gpufabric.rdma.plugins.module_utils._fabric.plan.plan import plan

LABEL = "gpufabric.rdma/class"
NIC = {"feature.node.kubernetes.io/pci-15b3.present": "true"}
STORAGE = {"name": "storage", "hosts": ["st-1", "st-2"], "profile": "sriov", "supernet": "10.20.0.0/16"}
FABRIC: dict[str, Any] = {"supernet": "192.168.0.0/16"}


def hosts() -> dict[str, dict[str, Any]]:
    """Two servers with four ports, two with two."""
    others = {f"st-{number}": {"facts": host_facts(100 + number, rails=2), "rdma_host": {}} for number in (1, 2)}
    return {**fleet(2, rails=4), **others}


def planned(*classes: dict[str, Any], release: str = "26.7.1", **fabric: Any) -> dict[str, Any]:
    groups = {"racks": ["st-1", "st-2"], "all": list(hosts())}
    whole = {**FABRIC, "operator": {"release": release}, **fabric, "classes": list(classes)}
    made: dict[str, Any] = plan(whole, hosts(), groups=groups)
    return made


def refused(*classes: dict[str, Any], **fabric: Any) -> str:
    with pytest.raises(FabricError) as caught:
        planned(*classes, **fabric)
    return str(caught.value)


def of(made: dict[str, Any], kind: str) -> list[dict[str, Any]]:
    return [item for step in ("policy", "networks") for item in made["objects"][step] if item["kind"] == kind]


@pytest.mark.parametrize(
    ("which", "text"),
    [
        ({"hosts": ["st-1", "st-2"]}, ""),
        ({"hosts": ["racks"]}, ""),
        ({"match": {"device": "1021", "ports": 2}}, "2 NIC ports 1021"),
        ({"hosts": ["racks"], "match": {"device": "1021", "gpus": 0}}, "at least 1 NIC ports 1021, 0 GPUs"),
    ],
    ids=["hosts", "group", "fingerprint", "both"],
)
def test_a_class_has_its_own_hosts_rails_and_network_model(which: dict[str, Any], text: str) -> None:
    made = planned({"name": "storage", "profile": "sriov", "supernet": "10.20.0.0/16", "sriov": {"vfs": 4}, **which})
    names = {own["name"]: (own["hosts"], own["rails"]) for own in made["classes"]}
    own_rails = [f"rail{index}" for index in range(4)]
    assert names == {
        "default": (["gpu-0001", "gpu-0002"], own_rails),
        "storage": (["st-1", "st-2"], ["storage-rail0", "storage-rail1"]),
    }
    storage = made["classes"][1]
    assert storage["match"] == text
    assert storage["labels"] == {LABEL: "storage"} and storage["selector"] == {**NIC, LABEL: "storage"}
    assert storage["resources"] == {"nvidia.com/vf_storage_rail0": 4, "nvidia.com/vf_storage_rail1": 4}
    assert [rail["index"] for rail in made["rails"]] == list(range(6))
    assert [rail["rail"] for rail in made["hosts"]["st-2"]["rails"]] == ["storage-rail0", "storage-rail1"]
    assert made["hosts"]["st-2"]["rails"][1]["address"] == "10.20.1.2/24"
    assert made["hosts"]["st-1"]["profile"] == {"name": "sriov", "operator_makes_vfs": True, "host_vfs": None}
    assert made["hosts"]["gpu-0001"]["profile"]["name"] == "macvlan"
    assert made["expectations"]["storage-rail0"].keys() == {"st-1", "st-2"}
    assert made["operator"]["chart_values"] == {"sriovNetworkOperator": {"enabled": True}}
    assert made["endpoints"]["pod"] == list(hosts()) == list(made["hosts"])
    (line,) = [line for line in made["table"] if line.startswith("class storage")]
    assert "st-[1-2]; profile sriov; nodes with gpufabric.rdma/class=storage" in line
    assert {tuple(item["spec"]["nodeSelector"].items()) for item in of(made, "SriovNetworkNodePolicy")} == {
        (*NIC.items(), (LABEL, "storage"))
    }


def test_lines_with_node_policies_have_one_for_each_class_with_device_plugins() -> None:
    made = planned({**STORAGE, "profile": "host_device"})
    (policy,) = of(made, "NicClusterPolicy")
    assert policy["spec"].keys() == {"global", "nvIpam", "secondaryNetwork"}
    default, storage = of(made, "NicNodePolicy")
    assert default["metadata"]["name"] == "gpufabric-default" and "rdmaSharedDevicePlugin" in default["spec"]
    assert storage["spec"]["nodeSelector"] == {**NIC, LABEL: "storage"}
    assert storage["spec"]["sriovDevicePlugin"]["version"] == "network-operator-v26.7.1"
    assert "rdmaSharedDevicePlugin" not in storage["spec"]


def test_other_lines_have_one_device_plugin_with_all_resources() -> None:
    made = planned({**STORAGE, "profile": "macvlan"}, release="26.1.2")
    assert of(made, "NicNodePolicy") == []
    (policy,) = of(made, "NicClusterPolicy")
    config = policy["spec"]["rdmaSharedDevicePlugin"]["config"]
    assert re.findall(r'"ifNames":\["([^"]+)"\]', config) == [rail["name"] for rail in made["rails"]]


def test_nodes_that_selectors_tell_apart_need_no_label_of_ours() -> None:
    made = planned({**STORAGE, "node_selector": {"pool": "b"}}, node_selector={"pool": "a", "site": "x"})
    assert [own["labels"] for own in made["classes"]] == [{}, {}]
    assert made["classes"][1]["selector"] == {**NIC, "pool": "b", "site": "x"}
    (policy,) = of(made, "NicClusterPolicy")
    terms = policy["spec"]["nodeAffinity"]["requiredDuringSchedulingIgnoredDuringExecution"]["nodeSelectorTerms"]
    assert terms == [{"matchExpressions": [{"key": "site", "operator": "In", "values": ["x"]}]}]
    assert made["nodes"]["selector"] == {**NIC, "site": "x"}


def test_a_fabric_of_classes_alone_needs_no_supernet_of_its_own() -> None:
    gpus = {"name": "gpus", "hosts": ["gpu-0001", "gpu-0002"], "supernet": "10.30.0.0/16"}
    assert [own["name"] for own in planned(STORAGE, gpus, supernet=None)["classes"]] == ["storage", "gpus"]
    assert "rdma_fabric.supernet: missing" in refused(STORAGE, supernet=None)


def test_manifests_have_an_example_and_labels_of_each_class() -> None:
    files = manifests(planned(STORAGE), Chart())
    assert [path for path in files if path.startswith("examples/")] == [
        "examples/pod-default.yaml", "examples/pod-storage.yaml"
    ]  # fmt: skip
    (pod,) = files["examples/pod-storage.yaml"]
    (container,) = pod["spec"]["containers"]
    assert container["resources"]["limits"] == {"nvidia.com/vf_storage_rail0": "1", "nvidia.com/vf_storage_rail1": "1"}
    assert f"Label each node of class storage: kubectl label node NAME {LABEL}=storage" in files["plan.txt"]


OTHER = {"name": "other", "hosts": ["gpu-0001", "gpu-0002"], "supernet": "10.30.0.0/16"}
X = [{"name": f"x-{letter}"} for letter in "abcd"]
REFUSED: list[tuple[list[dict[str, Any]], dict[str, Any], str]] = [
    ([{"hosts": ["st-1"]}], {}, "classes[0].name: missing; every class needs a name"),
    ([{**STORAGE, "name": "default"}], {}, "classes[0].name: default is the name of the class of all other hosts"),
    ([{**STORAGE, "name": "much-too-long"}], {}, "expected a name such as storage"),
    ([STORAGE, {**OTHER, "name": "storage"}], {}, 'the name "storage" is given to more than one class'),
    ([{"name": "storage"}], {}, "classes[0].hosts: missing. Set hosts"),
    ([{**STORAGE, "match": {"ports": 2}}], {}, "classes[0].match.device: missing"),
    ([{**STORAGE, "railcount": 2}], {}, 'classes[0].railcount: unknown key; did you mean "rail_count"?'),
    ([{**STORAGE, "profile": "vlan"}], {}, "rdma_fabric.classes[storage].profile: expected one of"),
    ([{**STORAGE, "sriov": {"vfs": 0}}], {}, "rdma_fabric.classes[storage].sriov.vfs: expected"),
    ([{**STORAGE, "supernet": None}], {}, "rdma_fabric.classes[storage].supernet: missing"),
    ([{**STORAGE, "node_labels": {LABEL: "x"}}], {}, f"node_labels: {LABEL} is set by this collection. Remove it"),
    ([{**STORAGE, "hosts": ["rack"]}], {}, 'or in a group of this name; did you mean "racks"?'),
    ([STORAGE, {**OTHER, "hosts": ["st-2"]}], {}, "classes: st-2 is in storage, other. A host has one class"),
    (
        [STORAGE, {**OTHER, "hosts": [], "match": {"device": "1021", "ports": 2}}],
        {},
        "st-1 is in storage, other. A host has one class",
    ),
    (
        [{**STORAGE, "match": {"device": "1021", "ports": 4}}],
        {},
        "classes[storage]: st-1 is in hosts, but it has 2 NIC ports 1021, expected 4. Repair the host",
    ),
    (
        [{**STORAGE, "hosts": [], "match": {"device": "ffff"}}],
        {},
        "classes[storage]: no host of the fabric is in this class",
    ),
    (
        [{**STORAGE, "node_labels": {"pool": "a"}, "node_selector": {"pool": "b"}}],
        {},
        "class storage: node_labels sets pool to a, but node_selector requires b",
    ),
    (
        [{**STORAGE, "rails": [{"name": "rail0"}, {"name": "s"}]}],
        {},
        "more than one class has a rail of the name rail0",
    ),
    ([{**STORAGE, "supernet": "192.168.0.0/20"}], {}, "192.168.0.0/24 of rail0 (class default) and 192.168.0.0/24 of"),
    (
        [{**STORAGE, "profile": "macvlan", "rails": [{"name": "a"}, {"name": "b"}], "networks": {"name": "x-{rail}"}}],
        {"rails": X},
        "more than one class has MacvlanNetwork /x-a, MacvlanNetwork /x-b. Set networks.name or networks.pool",
    ),
    (
        [
            {**STORAGE, "profile": "macvlan", "rails": [{"name": "a"}, {"name": "b"}]}
            | {"networks": {"resource": "x_{rail}"}}
        ],
        {"rails": X},
        "the classes default, storage have the same resource rdma_x_a, by which pods could not choose their hosts",
    ),
    ([{**STORAGE, "rail_count": 5}], {}, "class storage: not every rail has a port on every host"),
    ([{**STORAGE, "mtu": 9000, "profile": "ipoib"}], {}, "class storage: "),
    (
        [{**STORAGE, "sriov": {"rdma_mode": "exclusive"}}],
        {"release": "26.1.2"},
        "exclusive is not possible on a node with the RDMA shared device plugin, which class default requires. Release"
        " line 26.1 of the network operator has one device plugin for all nodes. Set rdma_fabric.operator.release to a"
        " release of a line with NicNodePolicy: 26.4, 26.7",
    ),
    (
        [{**STORAGE, "profile": "macvlan"}],
        {"release": "25.10.0", "rename": False},
        "rdmaSharedDevicePlugin of class default would offer enp24s0np0, enp40s0np0 on the nodes of class storage",
    ),
    (
        [STORAGE],
        {"operator": {"policy_overrides": {"rdmaSharedDevicePlugin": {"useCdi": True}}}},
        "rdmaSharedDevicePlugin cannot be in the NicClusterPolicy where each class of hosts has it in a NicNodePolicy",
    ),
]


@pytest.mark.parametrize(("classes", "fabric", "message"), REFUSED, ids=[case[2][:40] for case in REFUSED])
def test_what_cannot_work_is_refused(classes: list[dict[str, Any]], fabric: dict[str, Any], message: str) -> None:
    assert message in refused(*classes, **fabric)


def test_exclusive_devices_of_one_class_stand_beside_shared_ones_of_another() -> None:
    made = planned({**STORAGE, "sriov": {"rdma_mode": "exclusive"}})
    (pool,) = of(made, "SriovNetworkPoolConfig")
    assert pool["metadata"]["name"] == "gpufabric-storage"
    assert pool["spec"]["nodeSelector"]["matchLabels"] == {**NIC, LABEL: "storage"}
    assert [item["metadata"]["name"] for item in of(made, "NicNodePolicy")] == ["gpufabric-default"]


def test_a_run_needs_facts_of_each_class_and_of_hosts_to_match() -> None:
    known = {name: {} if name.startswith("st-") else own for name, own in hosts().items()}
    by_name = {**FABRIC, "classes": [{**STORAGE, "rail_count": 2}]}
    with pytest.raises(FabricError, match=r"classes\[storage\]: no facts of its hosts \(st-1, st-2\) are known"):
        plan(by_name, known, limit=["gpu-0001", "gpu-0002"])
    half = {**hosts(), "st-2": {}}
    made = plan(by_name, half, limit=["gpu-0001", "st-1"])
    assert made["hosts"]["st-2"]["rails"][0]["pci"] is None and made["endpoints"]["host"] == ["gpu-0001", "st-1"]
    by_match = {**FABRIC, "classes": [{**STORAGE, "hosts": [], "match": {"device": "1021", "ports": 2}}]}
    with pytest.raises(FabricError, match="no facts of st-2 are known, so no class can be found by fingerprint"):
        plan(by_match, half, limit=["gpu-0001", "st-1"])


def test_a_new_host_that_fits_no_fingerprint_is_a_warning() -> None:
    storage = {**STORAGE, "hosts": [], "match": {"device": "1021", "ports": 2}}
    gpu = {"name": "gpu", "match": {"device": "1021", "ports": 4}, "supernet": "10.30.0.0/16"}
    # A server that lost a card.
    found = {**hosts(), "st-3": {"facts": host_facts(103, rails=1), "rdma_host": {}}}
    made = plan({**FABRIC, "classes": [storage, gpu]}, found)
    assert made["hosts"]["st-3"]["class"] == "default"
    expected = (
        "no fingerprint of rdma_fabric.classes fits st-3 (storage: it has 1 NIC ports 1021, expected 2, gpu: it has 1"
        " NIC ports 1021, expected 4), planned as class default. Check for missing cards before the first change. To"
        " reject such hosts, set hosts and match of a class together"
    )
    assert [text for text in made["warnings"] if "fingerprint" in text] == [expected]
    # It has its rails, so it is known to be of no class; classes that name their hosts select none by fingerprint.
    own = next(port for port in found["st-3"]["facts"]["ports"] if port["rdma"])
    own["configured"] = configured("rail0", "192.168.0.1/24")
    assert not [text for text in plan({**FABRIC, "classes": [storage, gpu]}, found)["warnings"] if "fits" in text]
    own["configured"] = None
    named = [{**storage, "hosts": ["st-1", "st-2"]}, {**gpu, "hosts": ["gpu-0001", "gpu-0002"]}]
    assert not [text for text in plan({**FABRIC, "classes": named}, found)["warnings"] if "fits" in text]


def test_ports_of_tests_are_counted_over_all_classes() -> None:
    tests = {"mode": "incast", "fan": 32, "port_base": 28464}
    storage = {**STORAGE, "rail_count": 2}
    planned(storage, tests=tests, rail_count=4)
    assert refused(storage, tests={**tests, "port_base": 28465}, rail_count=4) == (
        "rdma_fabric.tests.port_base: ports up to 30001 needed for 6 rails, but they must stay below 30000"
    )


PROFILES = [name for name in registry.names() if registry.get(name).link_layer == "ethernet"]


@given(
    homes=st.lists(st.sampled_from(["", "a", "b", "c"]), min_size=4, max_size=7),
    profiles=st.fixed_dictionaries(dict.fromkeys(["a", "b", "c", ""], st.sampled_from(PROFILES))),
    release=st.sampled_from(list(RELEASES)),
)
def test_any_partition_gives_a_plan_that_is_sound(homes: list[str], profiles: dict[str, str], release: str) -> None:
    found = fleet(len(homes), rails=2)
    classes = [
        {
            "name": name,
            "hosts": [host for host, home in zip(found, homes) if home == name],
            "profile": profiles[name],
            "supernet": f"10.{number}.0.0/16",
        }
        for number, name in enumerate("abc", 1)
        if name in homes
    ]
    fabric = {**FABRIC, "profile": profiles[""], "operator": {"release": release}, "classes": classes}
    made = plan(fabric, found)
    addresses = [rail["address"] for host in made["hosts"].values() for rail in host["rails"]]
    assert len(set(addresses)) == len(addresses) == 2 * len(homes)
    subnets = [ipaddress.ip_network(rail["subnet"]) for rail in made["rails"]]
    assert not any(one.overlaps(other) for at, one in enumerate(subnets) for other in subnets[at + 1 :])
    items = [item for step in ("policy", "networks") for item in made["objects"][step]]
    assert len({(item["kind"], item["metadata"]["name"]) for item in items}) == len(items)
    for item in items:
        check(RELEASES[release], item)
    home = dict(zip(found, homes))
    for own in made["classes"]:
        assert {home[host] for host in own["hosts"]} == {"" if own["name"] == "default" else own["name"]}
    several = fields(made, list(found))
    if all(len(own.names) > 1 for own in several):
        for round_ in rounds_of(list(found), [rail["name"] for rail in made["rails"]], made["tests"], fields=several):
            ends = [(test.client, test.server) for test in round_]
            assert all(home[client] == home[server] for client, server in ends)
            assert all(test.rail in {r["rail"] for r in made["hosts"][test.client]["rails"]} for test in round_)
            busy = [name for pair in set(ends) for name in pair]
            assert len(set(busy)) == len(busy)


def test_every_pair_of_a_class_meets_and_none_of_two() -> None:
    made = planned(STORAGE)
    names, rails = list(hosts()), [rail["name"] for rail in made["rails"]]
    rounds = rounds_of(names, rails, {"directions": "one"}, fields=fields(made, names))
    # Both classes at the same time.
    assert [len(round_) for round_ in rounds] == [6]
    assert {(test.client, test.server) for test in rounds[0]} == {("gpu-0001", "gpu-0002"), ("st-1", "st-2")}
    # A class with one host is left out, and two of them are no measurement.
    some = rounds_of(names[:3], rails, {"directions": "one"}, fields=fields(made, names[:3]))
    assert {(test.client, test.server) for test in some[0]} == {("gpu-0001", "gpu-0002")}
    with pytest.raises(FabricError, match="needs 2 hosts of class default, 1 given"):
        rounds_of(names[1:3], rails, {}, fields=fields(made, names[1:3]))
    pairs = {"only": {"pairs": [["gpu-0001", "st-1"]]}}
    with pytest.raises(FabricError, match="gpu-0001 and st-1 are hosts of different classes"):
        rounds_of(names, rails, pairs, fields=fields(made, names))
    pairs = {"only": {"pairs": [["st-2", "st-1"]]}, "directions": "one"}
    assert [len(round_) for round_ in rounds_of(names, rails, pairs, fields=fields(made, names))] == [2]


def test_the_module_plans_classes(capsys: pytest.CaptureFixture[str]) -> None:
    facts = {name: own["facts"] for name, own in hosts().items()}
    fabric = {**FABRIC, "classes": [{**STORAGE, "sriov": {"vfs": 4}}]}
    made = run("fabric_plan", capsys, fabric=fabric, facts=facts, group=list(facts))["plan"]
    assert [own["name"] for own in made["classes"]] == ["default", "storage"]
    failed = run("fabric_plan", capsys, fabric={**FABRIC, "classes": [{"name": "a"}]}, facts=facts, group=list(facts))
    assert "rdma_fabric.classes[0].hosts: missing" in failed["msg"]


def test_classes_need_the_same_values_of_the_chart() -> None:
    other = {**STORAGE, "sriov": {"assigned_by": "device_plugin"}}
    text = refused(other, profile="sriov")
    assert text.startswith("rdma_fabric.classes: the value sriovNetworkOperator of the operator's chart would differ")


def test_an_empty_list_of_classes_is_no_supernet() -> None:
    with pytest.raises(FabricError, match="rdma_fabric.supernet: missing"):
        plan({"classes": []}, hosts())


def test_a_fingerprint_can_tell_how_far_gpus_are() -> None:
    """Hosts with the same NICs: GPUs below their switches, GPUs of the other socket, and none."""
    hosts = fleet(3)
    rails = [[port for port in host["facts"]["ports"] if port["rdma"]] for host in hosts.values()]
    near = []
    for at, port in enumerate(rails[0]):
        above = ["pci0000:00", f"0000:00:0{at}.0"]
        port["path"] = [*above, port["pci"]]
        near.append({"pci": f"0000:9{at}:00.0", "path": [*above, f"0000:9{at}:00.0"], "numa_node": 0})
    hosts["gpu-0001"]["facts"]["gpus"] = near
    far = {"pci": "0000:b0:00.0", "path": ["pci0000:b0", "0000:b0:00.0"], "numa_node": 9}
    hosts["gpu-0002"]["facts"]["gpus"] = [far]
    device = rails[0][0]["device"]
    classes = [
        {"name": "near", "match": {"device": device, "gpu_path": "PIX"}, "supernet": "10.1.0.0/16"},
        {"name": "far", "match": {"device": device, "gpu_path": "SYS"}, "supernet": "10.2.0.0/16"},
    ]
    made = plan({"supernet": "192.168.0.0/16", "classes": classes}, hosts)
    assert {own["name"]: own["hosts"] for own in made["classes"]} == {
        "default": ["gpu-0003"],
        "near": ["gpu-0001"],
        "far": ["gpu-0002"],
    }
    assert [line for line in made["table"] if "at least 1 NIC ports" in line and "GPUs by PIX" in line]
    classes[0].update(hosts=["gpu-0002", "gpu-0003"])
    with pytest.raises(FabricError) as caught:
        plan({"supernet": "192.168.0.0/16", "classes": classes[:1]}, hosts)
    assert (
        "gpu-0002 is in hosts, but the longest way from these NIC ports to their nearest GPUs is SYS, expected PIX"
        in str(caught.value)
    )
    assert "gpu-0003 is in hosts, but it has no GPUs, expected PIX" in str(caught.value)
    with pytest.raises(FabricError, match=r"classes\[0\].match.device: missing"):
        plan({"supernet": "192.168.0.0/16", "classes": [{"name": "a", "match": {"gpu_path": "PIX"}}]}, hosts)
