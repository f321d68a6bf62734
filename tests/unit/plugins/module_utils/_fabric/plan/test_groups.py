"""Where groups of hosts come from, and who is named when a host is in none."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest
from tests.unit.support.plan_factory import fleet, host_facts, rail_port

from ansible_collections.gpufabric.rdma.plugins.module_utils._common.errors import InputError
from ansible_collections.gpufabric.rdma.plugins.module_utils._common.reader import Reader
from ansible_collections.gpufabric.rdma.plugins.module_utils._fabric.intent.host_groups import (
    read_groups,
    topology_file,
)
from ansible_collections.gpufabric.rdma.plugins.module_utils._fabric.plan.groups import Known, of_run, resolve
from ansible_collections.gpufabric.rdma.plugins.module_utils._fabric.plan.plan import plan

HOSTS = ["a", "b", "c"]
KNOWN = Known(names={host: [host] for host in HOSTS}, labels={}, facts=HOSTS, inventory={}, switches={})


def grouped(source: dict[str, Any], **known: Any) -> Any:
    return resolve({"mode": "topology", "groups": source}, replace(KNOWN, **known))


def refused(source: dict[str, Any], **known: Any) -> str:
    with pytest.raises(InputError) as error:
        grouped(source, **known)
    return str(error.value).replace("rdma_fabric.tests.groups", "", 1)


def read(groups: Any) -> tuple[dict[str, Any], list[str]]:
    problems: list[str] = []
    return read_groups(Reader({"groups": groups}, "tests", problems))[0], problems


def test_a_group_knows_the_groups_that_it_is_in() -> None:
    tree = {"pod1": {"rack1": ["a"], "rack2": ["b"]}, "pod2": {"rack1": ["c"]}, "rack9": ["d"]}
    groups, parents = read_groups(Reader({"groups": tree}, "tests", []))
    assert groups == {"rack1": ["a"], "rack2": ["b"], "pod2.rack1": ["c"], "rack9": ["d"]}
    assert parents == {"rack1": ["pod1"], "rack2": ["pod1"], "pod2.rack1": ["pod2"]}


@pytest.mark.parametrize(
    "source",
    [
        {"from": "inventory_groups", "names": ["rack1", "rack2"]},
        {"from": "node_label", "label": "topology.kubernetes.io/rack"},
        {"from": "lldp"},
        {"from": "file", "path": "/etc/slurm/topology.conf"},
        # A group that is called so, not a source.
        {"from": ["a"], "to": ["b"]},
    ],
)
def test_sources_are_read_as_they_are(source: dict[str, Any]) -> None:
    assert read(source) == (source, [])


@pytest.mark.parametrize(
    ("groups", "problem"),
    [
        (
            {"from": "racks"},
            "tests.groups.from: expected one of inventory_groups, node_label, lldp, file, ibnetdiscover, found"
            ' "racks" (text)',
        ),
        ({"from": "node_label"}, "tests.groups.label: missing; from: node_label needs it"),
        ({"from": "inventory_groups", "names": []}, "tests.groups.names: missing; from: inventory_groups needs it"),
        ({"from": "lldp", "rail": 0}, "tests.groups.rail: unknown key; known here: from"),
        (
            {"from": "file", "path": "topology.conf"},
            'tests.groups.path: expected a whole path such as {{ inventory_dir }}/topology.conf, found "topology.conf"',
        ),
    ],
)
def test_what_no_source_is(groups: dict[str, Any], problem: str) -> None:
    assert read(groups)[1] == [problem]


def test_another_mode_needs_no_groups() -> None:
    for source, left in (({"from": "lldp"}, {}), ({"x": ["a"]}, {"x": ["a"]})):
        assert resolve({"mode": "ring", "groups": source}, KNOWN) == (left, [])


def test_groups_of_the_inventory() -> None:
    source = {"from": "inventory_groups", "names": ["rack1", "rack2"]}
    racks = {"all": HOSTS, "rack1": ["a", "b"], "rack2": ["c", "elsewhere"]}
    assert grouped(source, inventory=racks) == ({"rack1": ["a", "b"], "rack2": ["c"]}, [])
    assert refused(source, inventory={"rack1": ["a"], "rack2": ["b"]}) == (
        ": c in no group; put every host into exactly one of the inventory groups rack1, rack2"
    )
    assert refused(source, inventory={"rack1": ["a", "b"], "rack2": ["b", "c"]}) == (
        ": b in several groups; name every host once"
    )
    assert refused(source, inventory={"rack1": HOSTS, "rack_2": []}) == (
        '.names: the inventory has no group rack2; did you mean "rack_2"?'
    )


def test_labels_of_nodes() -> None:
    source = {"from": "node_label", "label": "rack"}
    labels = {"a": {"rack": "r1"}, "b": {"rack": "r1", "x": "y"}, "c": {"rack": "r2"}}
    assert grouped(source, labels=labels) == ({"r1": ["a", "b"], "r2": ["c"]}, [])
    assert refused(source, labels={"a": {"rack": "r1"}, "b": {}}) == (
        ": b, c in no group; give each host's Node the label rack"
    )
    assert refused(source) == ": no host is known as a Node; join the hosts first, and let the account list nodes"


def test_a_host_without_facts_joins_those_of_whom_nothing_is_known() -> None:
    source = {"from": "node_label", "label": "rack"}
    assert grouped(source, labels={"a": {"rack": "r1"}, "b": {"rack": "r1"}}, facts=["a", "b"]) == (
        {"r1": ["a", "b"], "unknown": ["c"]},
        [],
    )
    assert grouped({"r1": ["a", "b"]}, facts=["a", "b"])[0] == {"r1": ["a", "b"], "unknown": ["c"]}


def test_a_mapping_must_hold_every_host() -> None:
    assert refused({"r1": ["a", "b"]}) == ": c in no group; name every host once"


FILE = {"from": "file", "path": "/topology.conf"}


def test_a_file_names_hosts_by_inventory_host_name_or_node() -> None:
    names = {"a.example.com": ["a.example.com"], "b": ["b", "gpu2.example.com"], "c": ["c", "c", "node-c"]}
    text = "SwitchName=leaf1 Nodes=a,gpu2\nSwitchName=leaf2 Nodes=node-c,other\n"
    assert grouped(FILE, names=names, file=text) == ({"leaf1": ["a.example.com", "b"], "leaf2": ["c"]}, [])


def test_what_is_wrong_with_a_file_is_said_with_its_path() -> None:
    assert refused(FILE, file="Switch=1") == (
        '.path: /topology.conf: line 1: expected SwitchName=, BlockName= or BlockSizes=, found "Switch=1"'
    )
    assert refused(FILE, file=None) == (
        ".path: /topology.conf: expected a list of topologies or a dict with instances, found nothing (null)"
    )
    assert refused(FILE, file="SwitchName=leaf1 Nodes=a,b") == (
        ": c in no group; /topology.conf has no switch or block with them"
    )
    assert refused(FILE, file="SwitchName=l1 Nodes=a,b\nSwitchName=l2 Nodes=b,c") == (
        ".path: /topology.conf: b is in several groups; a host has one leaf switch here"
    )
    # 10.0.0.1 is no 10.0.0.2 in the domain 0.0.
    assert "10.0.0.1 in no group" in refused(
        FILE, names={"10.0.0.1": ["10.0.0.1"]}, facts=["10.0.0.1"], file="SwitchName=leaf1 Nodes=10.0.0.2"
    )


def on(**switches: str) -> dict[str, dict[str, str]]:
    return {host: {"switch": switch, "port": "1"} for host, switch in switches.items()}


@pytest.mark.parametrize(
    ("switches", "groups", "lost"),
    [
        # A switch a rail: those together on the first rail are together.
        (
            [on(a="leaf0", b="leaf0", c="leaf2"), on(a="leaf1", b="leaf1", c="leaf3")],
            {"leaf0": ["a", "b"], "leaf2": ["c"]},
            "",
        ),
        # The link of b's first rail is down: its second shows where it belongs.
        ([on(a="leaf0", c="leaf2"), on(a="leaf1", b="leaf1", c="leaf3")], {"leaf0": ["a", "b"], "leaf2": ["c"]}, ""),
        # Nothing of b is known, or nothing that it shares.
        ([on(a="leaf0", c="leaf2")], {"leaf0": ["a"], "unknown": ["b"], "leaf2": ["c"]}, "b"),
        ([on(a="leaf0", c="leaf2"), on(b="leaf9")], {"leaf0": ["a"], "unknown": ["b"], "leaf2": ["c"]}, "b"),
    ],
)
def test_switches_that_lldp_tells(switches: list[Any], groups: dict[str, list[str]], lost: str) -> None:
    told = dict(zip(("rail0", "rail1"), switches))
    warning = "without an LLDP neighbour, or on switches of their own: the group unknown"
    warnings = [f"rdma_fabric.tests.groups: {lost} {warning}"] if lost else []
    assert grouped({"from": "lldp"}, switches=told) == (groups, warnings)


def test_no_neighbour_at_all_stops_only_who_measures() -> None:
    groups, warnings = grouped({"from": "lldp"})
    assert (groups, warnings) == (
        {},
        [
            "rdma_fabric.tests.groups: no host shows an LLDP neighbour on a rail; let lldpd run on "
            "the hosts, and LLDP on "
            "the switch ports"
        ],
    )
    with pytest.raises(InputError) as error:
        of_run(HOSTS, groups)
    assert str(error.value) == "rdma_fabric.tests.groups: no host groups were found; see the plan's warnings"


def test_the_file_that_is_to_be_read() -> None:
    assert topology_file({"mode": "topology", "groups": FILE}) == "/topology.conf"
    for tests in (
        None,
        {},
        {"groups": FILE},
        {"mode": "topology", "groups": ["x"]},
        {"mode": "topology", "groups": {"from": "file", "path": 7}},
    ):
        assert topology_file(tests) == ""


def topology(source: dict[str, Any]) -> dict[str, Any]:
    return {"supernet": "192.168.0.0/16", "tests": {"mode": "topology", "groups": source}}


def test_a_plan_has_groups_and_switches() -> None:
    hosts = {}
    for number, leaf in ((1, "leaf1"), (2, "leaf1"), (3, "leaf2")):
        told = {"system": leaf, "chassis": f"48:b0:2d:00:00:0{leaf[-1]}", "port": f"Ethernet{number}"}
        hosts[f"gpu-{number}"] = {"facts": host_facts(number, ports=[rail_port(0, switch=told), rail_port(1)])}
    made = plan(topology({"from": "lldp"}), hosts)
    assert made["tests"]["groups"] == {"leaf1": ["gpu-1", "gpu-2"], "leaf2": ["gpu-3"]}
    assert made["switches"]["rail0"]["gpu-3"] == {"switch": "leaf2", "port": "Ethernet3"}
    assert made["switches"]["rail1"] == {}


def test_a_plan_takes_labels_of_the_nodes_of_hosts() -> None:
    nodes = [{"name": f"node{n}", "machine_id": f"{n:032x}", "labels": {"rack": f"r{n % 2}"}} for n in (1, 2, 3)]
    made = plan(topology({"from": "node_label", "label": "rack"}), fleet(3), nodes=nodes)
    assert made["tests"]["groups"] == {"r1": ["gpu-0001", "gpu-0003"], "r0": ["gpu-0002"]}
    assert "switches" not in made


def test_a_plan_takes_inventory_groups_and_files_of_this_run() -> None:
    named = topology({"from": "inventory_groups", "names": ["r1"]})
    made = plan(named, fleet(3), limit=["gpu-0001", "gpu-0002"], groups={"r1": ["gpu-0001", "gpu-0002"]})
    assert made["tests"]["groups"] == {"r1": ["gpu-0001", "gpu-0002"]}
    made = plan(topology(FILE), fleet(3), topology="SwitchName=leaf1 Nodes=gpu-000[1-3]")
    assert made["tests"]["groups"] == {"leaf1": ["gpu-0001", "gpu-0002", "gpu-0003"]}
