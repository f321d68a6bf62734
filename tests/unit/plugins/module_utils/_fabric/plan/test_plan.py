"""The plan as a whole: shape, determinism, limits, and what stops it."""

from __future__ import annotations

import copy
import json
import random
import time
import tracemalloc
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.unit.support.plan_factory import configured, fleet, host_facts, rail_port

from ansible_collections.gpufabric.rdma.plugins.module_utils._common.errors import ConflictError, InputError
from ansible_collections.gpufabric.rdma.plugins.module_utils._fabric.intent.tests import complete
from ansible_collections.gpufabric.rdma.plugins.module_utils._fabric.measure.judge.session import State, expectation_of
from ansible_collections.gpufabric.rdma.plugins.module_utils._fabric.measure.schedule.schedule import (
    Measurement,
    planned,
)
from ansible_collections.gpufabric.rdma.plugins.module_utils._fabric.plan.capabilities import port_rate, rdma_mtu
from ansible_collections.gpufabric.rdma.plugins.module_utils._fabric.plan.plan import plan

NET = {"supernet": "192.168.0.0/16"}


def addresses(made: dict[str, Any]) -> dict[str, list[str]]:
    return {name: [rail["address"] for rail in host["rails"]] for name, host in made["hosts"].items()}


def test_a_link_that_came_up_low_is_a_warning_before_anything_is_measured() -> None:
    hosts = fleet(4)
    slow = host_facts(2, ports=[rail_port(0, speed=100.0), rail_port(1)])
    hosts["gpu-0002"] = {"facts": slow, "rdma_host": {}}
    told = plan({"supernet": "192.168.0.0/16", "capacity": {"hosts": 32, "pods_per_host": 2}}, hosts)["warnings"]
    assert any(
        "gpu-0002 rail0: the link came up at 100 Gb/s, most ports of the rail run at" in text for text in told
    ), told


def behind_one_switch(host: int) -> dict[str, Any]:
    """Return a host with two rails of 200 Gb/s behind one PCIe switch, whose link carries 227, as a DGX A100 has."""
    link = {"speed": 16.0, "width": 16, "max_speed": 16.0, "max_width": 16}
    above = [{"pci": pci, **link} for pci in ("0000:00:01.0", "0000:01:00.0")]
    own = {"speed": 200.0, "max_speed": 200.0, "pcie": {**link, "max_payload": 256}, "uplinks": above}
    return {"facts": host_facts(host, ports=[rail_port(0, **own), rail_port(1, **own)]), "rdma_host": {}}


@pytest.mark.parametrize(
    ("at_once", "bound_by", "least", "rounds"), [("auto", "link", 186.3, 2), (True, "pcie", 107.8, 2)]
)
def test_rails_that_share_a_pcie_link_are_each_expected_to_reach_their_own_rate(
    at_once: Any, bound_by: str, least: float, rounds: int
) -> None:
    hosts = {f"gpu-{number:04d}": behind_one_switch(number) for number in (1, 2)}
    made = plan({**NET, "tests": {"rails_at_once": at_once}}, hosts)
    told = [text for text in made["warnings"] if "rail0 and rail1 share a PCIe link" in text]
    assert len(told) == len(made["tests"]["sharing"]) == 1
    played = planned(list(hosts), ["rail0", "rail1"], made["tests"])
    assert len(played) == rounds and sum(map(len, played)) == 4
    state = State(made, "host", complete(made["tests"]), "all_pairs", [rail["name"] for rail in made["rails"]])
    for test in (test for round_ in played for test in round_):
        found = expectation_of(state, test)
        assert (found.bound_by, round(found.least or 0, 1)) == (bound_by, least)


@pytest.mark.parametrize(
    ("profile", "where", "bound_by", "least"),
    [
        ("macvlan", "pod", "link", 372.5),
        ("host_device", "pod", "link", 372.5),
        # The limit of a VF binds what pods send, and never the port of the host.
        ("sriov", "pod", "vf", 93.1),
        ("sriov", "host", "link", 372.5),
    ],
)
def test_the_limit_of_a_vf_binds_in_pods_that_have_vfs_alone(
    profile: str, where: str, bound_by: str, least: float
) -> None:
    limited = {"total": 8, "count": 0, "rate": 100.0}
    hosts = {
        f"gpu-{number:04d}": {"facts": host_facts(number, ports=[rail_port(0, vfs=limited)]), "rdma_host": {}}
        for number in (1, 2)
    }
    made = plan({**NET, "profile": profile}, hosts)
    state = State(made, where, complete(made["tests"]), "all_pairs", ["rail0"])
    test = Measurement("rail0", "gpu-0001", "gpu-0002", "write_bw")
    found = expectation_of(state, test)
    assert (found.bound_by, round(found.least or 0, 1)) == (bound_by, least)
    # More than a VF may send is an error of the limit and no invalid reading: the link stays the ceiling.
    assert round(found.ceiling or 0, 1) == 392.1


def test_the_shape() -> None:
    made = plan({**NET, "node_labels": {"a": "b"}}, fleet(2))
    assert made["rails"][0] == {
        "name": "rail0",
        "index": 0,
        "netdev": "rail0",
        "master": "rail0",
        "link_layer": "ethernet",
        "subnet": "192.168.0.0/24",
        "host_range": ["192.168.0.1", "192.168.0.127"],
        "pool_range": ["192.168.0.129", "192.168.0.254"],
        "pool_subnet": "192.168.0.128/25",
        "gateway": None,
        "host_prefix": None,
        "router_index": 1,
        "routes": [],
        "exclusions": [],
        "block_size": 2,
        "mtu": 9000,
        "speed": None,
        "resource": "rdma_rail0",
        "share": 63,
        "network": "rail0",
        "pool": "rail0",
        "vendors": ["15b3"],
        "drivers": ["mlx5_core"],
    }
    assert made["hosts"]["gpu-0002"]["number"] == 2
    assert made["hosts"]["gpu-0002"]["rails"][1] == {
        "rail": "rail1",
        "pci": "0000:28:00.0",
        "driver": "mlx5_core",
        "mac": "02:00:28:00:00:01",
        "current": "enp40s0np0",
        "netdev": "rail1",
        "address": "192.168.1.2/24",
        "mtu": 9000,
    }
    assert made["nodes"] == {
        "labels": {"a": "b"},
        "selector": {"feature.node.kubernetes.io/pci-15b3.present": "true"},
    }
    assert made["expectations"]["rail1"]["gpu-0001"] == {
        "rate": 400.0,
        "max_rate": 400.0,
        "mtu": 4096,
        "vf_rate": None,
        "pcie": {"speed": 32.0, "width": 16, "max_speed": 32.0, "max_width": 16, "max_payload": 256, "ports": 1},
        "floor": None,
        "tolerance": 0.95,
        "bidirectional": 0.9,
        "latency_us": None,
        "kinds": {},
    }
    assert made["thresholds"]["outliers"]["severity"] == "warning"
    assert made["thresholds"]["gpu_paths"]["SYS"] is None
    assert made["endpoints"] == {"host": ["gpu-0001", "gpu-0002"], "pod": ["gpu-0001", "gpu-0002"]}
    assert (made["schema"], made["absent"], made["warnings"]) == (1, [], [])


def test_the_same_input_gives_the_same_plan_and_is_not_touched() -> None:
    hosts = fleet(5, 3)
    before = copy.deepcopy(hosts)
    first = json.dumps(plan(NET, hosts))
    assert hosts == before
    assert json.dumps(plan(NET, dict(reversed(list(hosts.items()))), group=list(hosts))) == first


@settings(max_examples=25, deadline=None)
@given(st.sets(st.integers(1, 12), min_size=1), st.randoms(use_true_random=False))
def test_a_limit_changes_no_slice(chosen: set[int], rng: random.Random) -> None:
    hosts = fleet(12)
    taken = rng.sample(range(1, 128), 4)
    for number, offset in zip(rng.sample(range(1, 13), 4), taken):
        ports = [rail_port(0, addresses=[f"192.168.0.{offset}/24"]), rail_port(1)]
        hosts[f"gpu-{number:04d}"]["facts"] = host_facts(number, ports=ports)
    whole = plan(NET, hosts)
    limit = [f"gpu-{number:04d}" for number in sorted(chosen)]
    part = plan(NET, hosts, limit=limit)
    assert part["hosts"] == whole["hosts"]
    assert part["objects"] == whole["objects"]
    assert part["endpoints"]["host"] == limit
    assert list(part["expectations"]["rail0"]) == limit


def test_a_limited_run_that_knows_no_other_host() -> None:
    hosts = fleet(4)
    group = list(hosts)
    part = plan({**NET, "rail_count": 2}, {"gpu-0003": hosts["gpu-0003"]}, group=group, limit=["gpu-0003"])
    assert addresses(part) == addresses(plan(NET, hosts))
    assert part["hosts"]["gpu-0001"]["rails"][0]["pci"] is None
    assert part["absent"] == []


def test_a_limited_run_says_where_a_new_address_may_be_in_use() -> None:
    """Hosts keep the addresses that they have. gpu-0003 has that of number 9; the order of the group tells nothing."""
    hosts = fleet(10, rails=1)
    hosts["gpu-0003"]["facts"]["ports"][1]["addresses"] = ["192.168.0.9/24"]
    whole = plan(NET, hosts)
    assert whole["hosts"]["gpu-0003"]["rails"][0]["address"] == "192.168.0.9/24"
    assert whole["hosts"]["gpu-0009"]["rails"][0]["address"] == "192.168.0.8/24"

    def limited(**own: Any) -> dict[str, Any]:
        fabric = {**NET, "rail_count": 1}
        only = {"gpu-0009": {**hosts["gpu-0009"], **own}}
        made = plan(fabric, only, group=list(hosts), limit=["gpu-0009"])
        return dict(made["hosts"]["gpu-0009"]["rails"][0])

    rail = limited()
    assert (rail["address"], rail["doubt"]) == ("192.168.0.9/24", "gpu-[0001-0008,0010]")
    assert "doubt" not in limited(rdma_host={"number": 12})
    assert all("doubt" not in rail for own in whole["hosts"].values() for rail in own["rails"])
    # One that it has, or had: the link may wait for it after a boot.
    port = hosts["gpu-0009"]["facts"]["ports"][1]
    port.update(configured=configured(0, "192.168.0.8/24"), addresses=["192.168.0.8/24"])
    for addresses in (["192.168.0.8/24"], []):
        port["addresses"] = addresses
        assert limited()["address"] == "192.168.0.8/24" and "doubt" not in limited()
    # Where it is gone the inventory decides.
    assert limited(rdma_host={"number": 12})["address"] == "192.168.0.12/24"


def test_a_planned_fleet_is_planned_again_the_same() -> None:
    hosts = fleet(6)
    first = plan(NET, hosts)
    again = fleet(6)
    for name, own in first["hosts"].items():
        rails = {rail["pci"]: rail for rail in own["rails"]}
        for port in again[name]["facts"]["ports"]:
            if port["pci"] in rails:
                port.update(netdev=rails[port["pci"]]["netdev"], addresses=[rails[port["pci"]]["address"]])
        again[name]["facts"]["networks"] += ["192.168.0.0/24", "192.168.1.0/24"]
    # A new host in front of the others must not move them.
    moved = plan(NET, again, group=["gpu-0006", *list(again)[:5]])
    assert addresses(moved) == addresses(first)


def test_settings_of_one_host() -> None:
    hosts = fleet(3)
    hosts["gpu-0001"]["rdma_host"] = {"number": 3, "node_name": "node-x"}
    made = plan(NET, hosts)
    assert addresses(made)["gpu-0001"] == ["192.168.0.3/24", "192.168.1.3/24"]
    assert addresses(made)["gpu-0003"] == ["192.168.0.2/24", "192.168.1.2/24"]
    assert made["hosts"]["gpu-0001"]["node"] == "node-x"


def test_an_address_that_is_kept_against_the_number_is_a_warning() -> None:
    hosts = fleet(1)
    hosts["gpu-0001"] = {
        "facts": host_facts(1, ports=[rail_port(0, addresses=["192.168.0.9/24"])]),
        "rdma_host": {"number": 3},
    }
    made = plan(NET, hosts)
    assert addresses(made) == {"gpu-0001": ["192.168.0.9/24"]}
    assert made["warnings"] == ["gpu-0001 keeps an address that it has, although rdma_host.number is 3"]


def test_addresses_are_left_alone() -> None:
    hosts = fleet(2)
    hosts["gpu-0001"]["facts"] = host_facts(
        1, ports=[rail_port(0, addresses=["fe80::1/64", "10.9.0.1/16"]), rail_port(1)]
    )
    rails = [{"name": "rail0", "pci": ["0000:18:00.0"]}, {"name": "rail1", "pci": ["0000:28:00.0"]}]
    made = plan({"addresses": "keep", "rails": rails}, hosts)
    assert addresses(made)["gpu-0001"] == ["10.9.0.1/16", None]
    assert made["rails"][0]["subnet"] is None
    assert made["objects"]["networks"] == []
    assert made["warnings"] == ["rdma_fabric.supernet is not given, so no networks for pods are planned"]
    assert len(plan({"addresses": "keep", "rails": rails, **NET}, hosts)["objects"]["networks"]) == 4


def test_hosts_that_do_not_answer() -> None:
    hosts = fleet(4)
    hosts["gpu-0002"]["facts"] = {}
    with pytest.raises(InputError) as caught:
        plan(NET, hosts, absent=["gpu-0004"])
    assert str(caught.value) == (
        "2 of the hosts returned no facts (unreachable, or rdma_facts did not run): gpu-0002, gpu-0004. Repair them, "
        "take them "
        "out of the group, or set rdma_fabric.absent_hosts: report to measure the others and report these as no_data"
    )
    made = plan({**NET, "absent_hosts": "report"}, hosts, absent=["gpu-0004"])
    assert made["absent"] == ["gpu-0002", "gpu-0004"]
    assert made["endpoints"]["host"] == list(hosts)
    assert made["expectations"]["rail0"]["gpu-0002"]["rate"] is None
    assert addresses(made)["gpu-0002"] == ["192.168.0.2/24", "192.168.1.2/24"]
    assert made["warnings"] == [
        *(f"{name} returned no facts; it is reported as no_data" for name in made["absent"]),
        "gpu-[0001,0003-0004] get new addresses, and those of gpu-0002 are unknown: check for duplicate addresses",
    ]


def test_nobody_answers() -> None:
    with pytest.raises(InputError) as caught:
        plan({**NET, "absent_hosts": "report"}, {"a": {"facts": {}}})
    assert str(caught.value) == (
        "no host in this run returned valid facts, so nothing can be planned: 1 of the hosts returned no facts "
        "(unreachable, or rdma_facts did not run): a. Check that the hosts are reachable and that rdma_facts runs on "
        "them"
    )


def test_wrong_settings_of_a_host() -> None:
    hosts = fleet(1)
    hosts["gpu-0001"]["rdma_host"] = {"nmber": 1}
    with pytest.raises(InputError, match='^rdma_host of gpu-0001.nmber: unknown key; did you mean "number"\\?$'):
        plan(NET, hosts)


def test_two_hosts_with_one_machine_id() -> None:
    hosts = fleet(3)
    hosts["gpu-0003"]["facts"]["machine_id"] = hosts["gpu-0001"]["facts"]["machine_id"]
    with pytest.raises(ConflictError) as caught:
        plan(NET, hosts)
    assert str(caught.value) == (
        "hosts with the same machine id (cloned images, or one machine listed twice): gpu-0001 and gpu-0003 "
        "(00000000000000000000000000000001). Give each its own /etc/machine-id with systemd-machine-id-setup"
    )


def node(name: str, number: int) -> dict[str, Any]:
    return {"name": name, "machine_id": f"{number:032x}"}


def test_nodes_by_machine_id() -> None:
    made = plan(NET, fleet(2), nodes=[node("other", 9), node("n2", 2), node("n1", 1)])
    assert [host["node"] for host in made["hosts"].values()] == ["n1", "n2"]


def test_two_nodes_for_one_host() -> None:
    hosts = fleet(2)
    nodes = [node("n1", 1), node("n2", 2), node("stale", 1)]
    with pytest.raises(ConflictError) as caught:
        plan(NET, hosts, nodes=nodes)
    assert str(caught.value) == (
        "hosts and Nodes do not match one to one: gpu-0001 is the Nodes n1 and stale. Delete the stale Node, or set "
        "rdma_host.node_name"
    )
    hosts["gpu-0001"]["rdma_host"] = {"node_name": "n1"}
    assert plan(NET, hosts, nodes=nodes)["hosts"]["gpu-0001"]["node"] == "n1"


def test_one_node_for_two_hosts() -> None:
    hosts = fleet(2)
    hosts["gpu-0001"]["rdma_host"] = {"node_name": "n2"}
    with pytest.raises(ConflictError, match="the Node n2 is the hosts gpu-0001 and gpu-0002"):
        plan(NET, hosts, nodes=[node("n2", 2)])


def test_overlap_with_a_host_network() -> None:
    hosts = fleet(2)
    hosts["gpu-0002"]["facts"]["networks"].append("192.168.1.0/28")
    with pytest.raises(ConflictError, match=r"192.168.1.0/24 \(rail1\) and 192.168.1.0/28 of gpu-0002"):
        plan(NET, hosts)


def test_no_nfd_and_no_label_is_a_warning() -> None:
    label = "feature.node.kubernetes.io/pci-15b3.present"
    fabric = {**NET, "operator": {"nfd": False}}
    [warning] = plan(fabric, fleet(1))["warnings"]
    assert warning.startswith(f"no NFD, and rdma_fabric.node_labels does not set {label}")
    assert plan({**fabric, "node_labels": {label: "true"}}, fleet(1))["warnings"] == []


@pytest.mark.parametrize(
    ("mtu", "expected"),
    [(1280, 1024), (1500, 1024), (2143, 1024), (2144, 2048), (4191, 2048), (4192, 4096), (9000, 4096)],
)
def test_rdma_mtu(mtu: int, expected: int) -> None:
    assert rdma_mtu(mtu) == expected


def test_the_mtu_of_tests_must_fit() -> None:
    assert plan({**NET, "tests": {"mtu": 512}}, fleet(1))["expectations"]["rail0"]["gpu-0001"]["mtu"] == 512
    with pytest.raises(InputError) as caught:
        plan({**NET, "mtu": 1500, "tests": {"mtu": 4096}}, fleet(1))
    assert str(caught.value) == (
        "rdma_fabric.tests.mtu: 4096 does not fit rdma_fabric.mtu 1500, which carries at most 1024; raise mtu or lower "
        "tests.mtu"
    )


def test_the_rate_of_a_port() -> None:
    hardware = {"mlx5_0": {"pci": "0000:18:00.0", "rate": 200.0}}
    soft = {"rxe0": {"pci": None, "rate": 10.0}}
    assert port_rate(rail_port(0, speed=100.0), hardware) == 100.0
    assert port_rate(rail_port(0, speed=None), hardware) == 200.0
    # soft-RoCE says 10 whatever is underneath.
    assert port_rate({**rail_port(0, speed=None), "rdma": ["rxe0"]}, soft) is None
    assert port_rate(None, {}) is None


def test_a_large_fleet_is_planned_fast() -> None:
    hosts = fleet(1000, 8)
    fabric = {"supernet": "10.128.0.0/12", "rail_prefix": 19, "capacity": {"hosts": 2000}}
    start = time.process_time()
    made = plan(fabric, hosts)
    spent = time.process_time() - start
    assert len({rail["address"] for host in made["hosts"].values() for rail in host["rails"]}) == 8000
    assert spent < 3
    quarter = dict(list(hosts.items())[:250])
    tracemalloc.start()
    plan(fabric, quarter)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert peak < 75e6


def test_the_gpu_of_each_rail_is_planned_when_tests_use_it() -> None:
    hosts = fleet(2)
    pci = ["0000:1b:00.0", "0000:2b:00.0"]
    gpus = [{"pci": one, "path": ["pci0000:00", one], "numa_node": 0} for one in pci]
    hosts["gpu-0001"]["facts"]["gpus"] = gpus
    made = plan({**NET, "tests": {"memory": "cuda:dmabuf"}}, hosts)
    assert made["gpus"] == {
        "rail0": {"gpu-0001": {"bdf": "0000:1b:00.0", "path": "PHB"}},
        "rail1": {"gpu-0001": {"bdf": "0000:2b:00.0", "path": "PHB"}},
    }
    assert "gpus" not in plan(NET, hosts)
