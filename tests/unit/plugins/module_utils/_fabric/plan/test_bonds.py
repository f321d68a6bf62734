"""Rails that are bonds in the plan: how they are found, what is made of them, what is refused. Below a second."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

import pytest
from tests.unit.plugins.module_utils._fabric.operator.test_conformance import RELEASES, check
from tests.unit.support.plan_factory import configured, fleet, port, rdma_device

from ansible_collections.gpufabric.rdma.plugins.module_utils._common.errors import InputError
from ansible_collections.gpufabric.rdma.plugins.module_utils._fabric.measure.judge.expectation import (
    Asked,
    expect,
    side_of,
)
from ansible_collections.gpufabric.rdma.plugins.module_utils._fabric.plan.plan import plan

MEMBERS = ("0000:3a:00.0", "0000:3a:00.1")
NETDEVS = ("ens1f0np0", "ens1f1np1")
RAILS = [{"name": "rail0", "bond": "bond0"}, {"name": "rail1"}, {"name": "rail2"}]
Hosts = dict[str, Any]


def hosts_with_bonds(count: int = 2) -> Hosts:
    """Return hosts with two ports that are free, and a bond."""
    hosts = fleet(count)
    for host in hosts.values():
        add_bond(host["facts"])
    return hosts


def add_bond(facts: dict[str, Any]) -> None:
    members = [
        port(pci, name, master="bond0", speed=100.0, max_speed=100.0, device="101d", mac="02:00:3a:00:00:01")
        for pci, name in zip(MEMBERS, NETDEVS)
    ]
    seen = {**members[0], "netdev": "bond0", "master": None, "rdma": ["mlx5_bond_0"]}
    facts["ports"] += members
    facts["rdma_devices"].append(rdma_device("mlx5_bond_0", seen))
    facts["bonds"] = [
        {
            "name": "bond0",
            "mode": "802.3ad 4",
            "lag": "active",
            "members": [
                {"netdev": name, "pci": pci, "speed": 100.0, "carrier": True} for pci, name in zip(MEMBERS, NETDEVS)
            ],
            "problem": "",
            "port": seen,
        }
    ]


def planned(hosts: Hosts | None = None, **fabric: Any) -> dict[str, Any]:
    return plan({"supernet": "192.168.0.0/16", "rails": RAILS, **fabric}, hosts or hosts_with_bonds())


def bond_of(hosts: Hosts, host: str = "gpu-0001") -> dict[str, Any]:
    return hosts[host]["facts"]["bonds"][0]


def test_a_bond_keeps_its_name_and_goes_by_its_members() -> None:
    made = planned()
    rail = made["hosts"]["gpu-0001"]["rails"][0]
    assert {key: rail[key] for key in ("rail", "pci", "netdev", "current", "address", "members")} == {
        "rail": "rail0",
        "pci": MEMBERS[0],
        "netdev": "bond0",
        "current": "bond0",
        "address": "192.168.0.1/24",
        "members": list(MEMBERS),
    }
    assert [one["netdev"] for one in made["rails"]] == ["bond0", "rail1", "rail2"]
    # Ports are as without bonds.
    assert all("members" not in one for one in (*made["rails"][1:], *made["hosts"]["gpu-0001"]["rails"][1:]))
    (line,) = [line for line in made["table"] if "0000:3a:00.1" in line]
    assert line.endswith("is a member of bond0")


def test_pods_use_the_bond_and_the_plugin_the_ports_of_its_members() -> None:
    made = planned()
    masters = {item["metadata"]["name"]: item["spec"]["master"] for item in made["objects"]["networks"][-3:]}
    assert masters == {"rail0": "bond0", "rail1": "rail1", "rail2": "rail2"}
    plugin = json.loads(made["objects"]["policy"][0]["spec"]["rdmaSharedDevicePlugin"]["config"])
    assert [entry["selectors"] for entry in plugin["configList"]] == [
        {"ifNames": list(NETDEVS)},
        {"ifNames": ["rail1"]},
        {"ifNames": ["rail2"]},
    ]


@pytest.mark.parametrize("release", RELEASES)
@pytest.mark.parametrize("profile", ["macvlan", "raw"])
def test_every_line_takes_it(release: str, profile: str) -> None:
    made = planned(profile=profile, operator={"release": release})
    for item in (*made["objects"]["policy"], *made["objects"]["networks"]):
        check(RELEASES[release], item)


def test_the_rate_of_one_member_is_expected_and_that_of_all_is_possible() -> None:
    made = planned()
    sides = made["expectations"]["rail0"]
    assert [(side["rate"], side["max_rate"], side["links"]) for side in sides.values()] == [(100.0, 100.0, 2)] * 2
    assert all("links" not in side for side in made["expectations"]["rail1"].values())
    ends = [side_of(made["rails"][0], name, side, planned_mtu=None, asked=Asked()) for name, side in sides.items()]
    found = expect(made["rails"][0], ends, asked=Asked())
    assert (round(found.least or 0, 1), found.bound_by, round(found.ceiling or 0, 1)) == (93.1, "link", 196.1)
    floor = [{**side, "floor": 90.0} for side in sides.values()]
    ends = [side_of(made["rails"][0], "a", side, planned_mtu=None, asked=Asked()) for side in floor]
    assert round(expect(made["rails"][0], ends, asked=Asked()).ceiling or 0, 1) == 196.1


def test_warnings_tell_what_a_pass_does_not_show() -> None:
    hosts = hosts_with_bonds()
    bond_of(hosts)["members"][1]["carrier"] = False
    told = [text for text in planned(hosts)["warnings"] if "bond0" in text or "member" in text]
    assert told == [
        "rail0 is the bond bond0: a queue pair uses one member, so rail0 is expected to reach the rate of one member, "
        "and a test can pass while another member has no link",
        "rail0 on gpu-0001: the member ens1f1np1 (0000:3a:00.1) has no link. Check the cable and the switch port",
    ]


def test_a_bond_that_is_a_rail_keeps_its_address() -> None:
    hosts = hosts_with_bonds()
    own = bond_of(hosts)["port"]
    own.update(addresses=["192.168.0.9/24"], configured=configured("rail0", "192.168.0.9/24"), mtu=9000)
    member = next(one for one in hosts["gpu-0001"]["facts"]["ports"] if one["pci"] == MEMBERS[0])
    member["configured"] = own["configured"]
    assert planned(hosts)["hosts"]["gpu-0001"]["rails"][0]["address"] == "192.168.0.9/24"


def test_hosts_differ_in_the_slot_of_the_nic() -> None:
    hosts = hosts_with_bonds()
    text = json.dumps(hosts["gpu-0002"]).replace("0000:3a:00.", "0000:5a:00.")
    made = planned({**hosts, "gpu-0002": json.loads(text)})
    assert made["hosts"]["gpu-0002"]["rails"][0]["members"] == ["0000:5a:00.0", "0000:5a:00.1"]


def test_bonds_that_are_not_rails_change_nothing() -> None:
    hosts, without = hosts_with_bonds(), hosts_with_bonds()
    for host in without.values():
        del host["facts"]["bonds"]
    rails = [{"name": "a"}, {"name": "b"}]
    assert planned(hosts, rails=rails) == planned(without, rails=rails)
    assert planned(hosts, rails=[]) == planned(without, rails=[])


def no_bond(hosts: Hosts) -> None:
    hosts["gpu-0002"]["facts"]["bonds"] = []


def with_problem(hosts: Hosts) -> None:
    for name in hosts:
        bond_of(hosts, name)["problem"] = "has mode balance-rr 0; RDMA requires active-backup, balance-xor or 802.3ad"


def other_names(hosts: Hosts) -> None:
    for member, name in zip(bond_of(hosts)["members"], ("eth4", "eth5")):
        member["netdev"] = name


def default_route(hosts: Hosts) -> None:
    bond_of(hosts)["port"]["duty"] = "carries the default route"


def in_a_bridge(hosts: Hosts) -> None:
    bond_of(hosts)["port"]["master"] = "br0"


def given_a_port(hosts: Hosts) -> None:
    hosts["gpu-0001"]["rdma_host"] = {"rails": {"rail0": MEMBERS[0]}}


def bad_facts(hosts: Hosts) -> None:
    bond_of(hosts)["port"]["mtu"] = "large"


BOND = {"name": "rail0", "bond": "bond0"}


@pytest.mark.parametrize(
    ("change", "fabric", "message"),
    [
        (
            no_bond,
            {},
            "not every rail has its bond on every host. gpu-0002: rail0: there is no bond bond0 (bonds: none). Correct "
            "the bonds, or rdma_fabric.rails",
        ),
        (
            with_problem,
            {},
            "not every rail has its bond on every host. gpu-[0001-0002]: rail0: bond0 has mode balance-rr 0; RDMA "
            "requires active-backup, balance-xor or 802.3ad. Correct the bonds, or rdma_fabric.rails",
        ),
        (
            other_names,
            {},
            "the members of bond0 (rail0) must have the same names on all hosts, since the RDMA shared device plugin "
            "selects ports by name: found eth4, eth5 on gpu-0001; ens1f0np0, ens1f1np1 on gpu-0002. Rename them, or "
            "put these hosts into rdma_fabric.classes",
        ),
        (default_route, {}, "gpu-0001: rail0: 0000:3a:00.0 carries the default route"),
        (in_a_bridge, {}, "gpu-0001: rail0: 0000:3a:00.0 is a member of br0"),
        (given_a_port, {}, "gpu-0001: rdma_host.rails has rail0, which is a bond and has no port"),
        (bad_facts, {}, "bonds[0].port.mtu: expected"),
        (
            None,
            {"rails": [{"name": "rail0", "bond": "bond0", "pci": [MEMBERS[0]]}]},
            "rdma_fabric.rails[0].bond: a rail is a bond or a port, but pci is set too. Remove one",
        ),
        (
            None,
            {"rails": [{"name": "rail0", "bond": "bond 0"}]},
            "rdma_fabric.rails[0].bond: expected the name of a bond",
        ),
        (
            None,
            {"rails": [BOND, {"name": "rail1", "bond": "bond0"}]},
            "rdma_fabric.rails: rail0 and rail1 have the same interface, bond0",
        ),
        (
            None,
            {"rails": [BOND, {"name": "bond0", "pci": ["0000:18:00.0"]}]},
            "rdma_fabric.rails: rail0 and bond0 have the same interface, bond0",
        ),
        (None, {"vlan": 100}, "rdma_fabric.rails: rail0 is a bond, and VLANs of bonds are not supported. Set vlan: 0"),
        *(
            (
                None,
                {"profile": profile},
                f"rdma_fabric.rails: profile {profile} does not support bonds. Remove bond, or set profile: macvlan",
            )
            for profile in ("host_device", "sriov", "ipoib", "sriov_ib")
        ),
        (
            None,
            {"operator": {"platform": "openshift"}},
            "rdma_fabric.rails: bonds are not supported on hosts that objects of the cluster configure. Remove bond",
        ),
        (None, {"rails": [{"name": "rail0", "pci": [MEMBERS[0]]}]}, "rail0: 0000:3a:00.0 is a member of bond0"),
    ],
)
def test_refusals(change: Callable[[Hosts], None] | None, fabric: dict[str, Any], message: str) -> None:
    hosts = hosts_with_bonds()
    if change:
        change(hosts)
    with pytest.raises(InputError) as caught:
        planned(hosts, **fabric)
    assert message in str(caught.value)
