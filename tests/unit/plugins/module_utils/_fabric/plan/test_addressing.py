"""Routers, reserved addresses, and who gives pods their addresses: from the intent to hosts and objects."""

from __future__ import annotations

import json
from typing import Any

import pytest
from tests.unit.support.plan_factory import fleet

from ansible_collections.gpufabric.rdma.plugins.module_utils._common.errors import InputError
from ansible_collections.gpufabric.rdma.plugins.module_utils._fabric.operator.profiles import registry
from ansible_collections.gpufabric.rdma.plugins.module_utils._fabric.plan.plan import plan

FABRIC: dict[str, Any] = {"supernet": "192.168.0.0/16", "rails": [{"name": "rail0"}, {"name": "rail1"}]}
FLAT = {"subnet": "192.168.1.128/25", "perNodeBlockSize": 2}
NODES = [{"name": f"node-{number}", "machine_id": f"{number:032x}"} for number in (1, 2)]


def planned(**fabric: Any) -> dict[str, Any]:
    layer = registry.get(fabric.get("profile", "")).link_layer
    return plan({**FABRIC, **fabric}, fleet(2, link_layer=layer))


def objects(made: dict[str, Any], kind: str) -> list[dict[str, Any]]:
    found = [dict(item["spec"]) for item in made["objects"]["networks"] if item["kind"] == kind]
    for spec in found:
        spec.pop("nodeSelector", None)
    return found


def test_without_a_router_there_is_no_route() -> None:
    made = planned(routing="between_rails")
    assert "gateway" not in made["hosts"]["gpu-0001"]["rails"][1]
    assert objects(made, "IPPool")[1] == FLAT


def test_a_router_between_rails() -> None:
    made = planned(gateway="last", routing="between_rails", networks={"source_routing": True})
    assert made["hosts"]["gpu-0001"]["rails"][1]["address"] == "192.168.1.1/24"
    router = {"gateway": "192.168.1.254", "routes": ["192.168.0.0/16"], "beyond": None}
    assert router.items() <= made["hosts"]["gpu-0001"]["rails"][1].items()
    assert objects(made, "IPPool")[1] == {
        **FLAT,
        "gateway": "192.168.1.254",
        "routes": [{"dst": "192.168.0.0/16"}],
        "exclusions": [{"startIP": "192.168.1.254", "endIP": "192.168.1.254"}],
    }
    assert made["warnings"] == []


def test_pods_need_a_table_for_each_rail() -> None:
    (warning,) = planned(gateway="last", routing="between_rails")["warnings"]
    assert warning.endswith("the same. Set rdma_fabric.networks.source_routing or vrf")
    assert planned(gateway="last", routing="between_rails", networks={"vrf": "{rail}"})["warnings"] == []


def test_a_router_of_pods_alone() -> None:
    made = planned(gateway="last", pools={"routes": ["10.0.0.0/8"]})
    assert "routes" not in made["hosts"]["gpu-0001"]["rails"][1]
    assert objects(made, "IPPool")[1]["routes"] == [{"dst": "10.0.0.0/8"}]


def test_reserved_addresses_are_given_to_no_host_and_no_pod() -> None:
    made = planned(reserved=["192.168.0.1", "192.168.1.200-192.168.1.210"])
    assert [host["rails"][0]["address"] for host in made["hosts"].values()] == ["192.168.0.2/24", "192.168.0.3/24"]
    assert [host["rails"][1]["address"] for host in made["hosts"].values()] == ["192.168.1.2/24", "192.168.1.3/24"]
    assert objects(made, "IPPool")[1]["exclusions"] == [{"startIP": "192.168.1.200", "endIP": "192.168.1.210"}]


def test_the_number_of_a_reserved_address_is_refused() -> None:
    hosts = fleet(2)
    hosts["gpu-0002"]["rdma_host"] = {"number": 7}
    with pytest.raises(
        InputError, match="rdma_host.number: gpu-0002: the address of 7 is reserved, or that of a router"
    ):
        plan({**FABRIC, "reserved": ["192.168.1.7"]}, hosts)


def test_a_subnet_per_host() -> None:
    hosts = fleet(2)
    for number, host in enumerate(hosts.values(), 1):
        host["facts"]["machine_id"] = f"{number:032x}"
    fabric = {**FABRIC, "profile": "host_device", "host_prefix": 31, "routing": "between_rails"}
    made = plan(fabric, hosts, nodes=NODES)
    rail = made["hosts"]["gpu-0002"]["rails"][1]
    assert (rail["address"], rail["gateway"], rail["beyond"]) == ("192.168.1.3/31", "192.168.1.2", "192.168.1.0/24")
    assert rail["routes"] == ["192.168.1.0/24", "192.168.0.0/16"]
    assert objects(made, "CIDRPool")[1] == {
        "cidr": "192.168.1.0/24",
        "perNodeNetworkPrefix": 31,
        "gatewayIndex": 0,
        "staticAllocations": [
            {"nodeName": "node-1", "prefix": "192.168.1.0/31"},
            {"nodeName": "node-2", "prefix": "192.168.1.2/31"},
        ],
        "routes": [{"dst": "192.168.1.0/24"}, {"dst": "192.168.0.0/16"}],
    }
    assert json.loads(objects(made, "HostDeviceNetwork")[0]["ipam"])["poolType"] == "cidrpool"


def test_pods_share_the_subnet_of_their_host() -> None:
    made = planned(host_prefix=28, rail_prefix=20, capacity={"hosts": 2, "pods_per_host": 12})
    assert made["hosts"]["gpu-0002"]["rails"][0]["address"] == "192.168.0.18/28"
    (pool, _other) = objects(made, "CIDRPool")
    assert (pool["gatewayIndex"], pool["cidr"]) == (1, "192.168.0.0/20")
    assert pool["exclusions"] == [{"startIP": ip, "endIP": ip} for ip in ("192.168.0.2", "192.168.0.18")]


def test_unknown_nodes_are_named() -> None:
    (warning,) = planned(host_prefix=28, rail_prefix=20)["warnings"]
    assert warning.startswith("the Nodes of gpu-[0001-0002] are unknown, so their pods would get addresses of other")
    assert planned(host_prefix=28, rail_prefix=20, pools={"ipam": "dhcp"})["warnings"] == []


@pytest.mark.parametrize("profile", [name for name in registry.names() if not registry.get(name).takes_port])
def test_two_addresses_are_not_enough_for_host_and_pods(profile: str) -> None:
    with pytest.raises(InputError, match=f"and pods of profile {profile} share the port with the host. Use 29 or less"):
        planned(profile=profile, host_prefix=31)


@pytest.mark.parametrize("profile", registry.names())
@pytest.mark.parametrize(
    ("fabric", "expected"),
    [
        (
            {"gateway": "last", "pools": {"ipam": "whereabouts", "routes": ["10.0.0.0/8"]}},
            {
                "type": "whereabouts",
                "range": "192.168.0.128/25",
                "exclude": ["192.168.0.254/32"],
                "gateway": "192.168.0.254",
                "routes": [{"dst": "10.0.0.0/8"}],
            },
        ),
        ({"pools": {"ipam": "dhcp"}}, {"type": "dhcp"}),
        ({"pools": {"ipam": "static"}}, {"type": "static"}),
        ({"pools": {"ipam": "none"}}, {}),
    ],
)
def test_others_give_pods_their_addresses(profile: str, fabric: dict[str, Any], expected: dict[str, Any]) -> None:
    made = planned(profile=profile, **fabric)
    (policy, *_rest) = made["objects"]["policy"]
    assert "nvIpam" not in policy["spec"]
    network = made["objects"]["networks"][0]["spec"]
    if "config" in network:
        plugin = json.loads(network["config"])["plugins"][0]
        found, capable = plugin["ipam"], plugin.get("capabilities")
    else:
        found, capable = json.loads(network["ipam"]), json.loads(network.get("capabilities") or "null")
    assert found == expected
    assert capable == ({"ips": True} if expected == {"type": "static"} else None)


@pytest.mark.parametrize(
    ("fabric", "message"),
    [
        (
            {"reserved": ["10.0.0.9-10.0.0.1"]},
            "rdma_fabric.reserved: expected an address, or two with - between them",
        ),
        ({"reserved": ["router"]}, "rdma_fabric.reserved: expected an address, or two with - between them"),
        ({"gateway": "first"}, 'rdma_fabric.gateway: expected one of none, last, found "first" (text)'),
        ({"host_prefix": 32}, "rdma_fabric.host_prefix: expected 16 to 31, found 32"),
        (
            {"host_prefix": 29, "gateway": "last"},
            "rdma_fabric.gateway: with host_prefix each host's subnet has its own",
        ),
        (
            {"pools": {"routes": ["10.0.0.0/8"]}},
            "rdma_fabric.pools.routes: need a router. Set gateway, host_prefix, or",
        ),
        (
            {"pools": {"ipam": "dhcp", "routes": ["10.0.0.0/8"]}, "gateway": "last"},
            "rdma_fabric.pools.routes: ipam dhcp brings its own routes. Remove routes",
        ),
        (
            {"pools": {"ipam": "whereabouts"}, "host_prefix": 29},
            "rdma_fabric.pools.ipam: whereabouts has one network for all nodes, with host_prefix each node has its own",
        ),
        (
            {"rails": [{"name": "rail0", "subnet": "10.0.0.0/30"}]},
            "rdma_fabric.rails[0].subnet: expected a prefix length from 8 to 28, found 30",
        ),
        (
            {"rails": [{"name": "rail0", "gateway": "10.0.0.1"}], "host_prefix": 29},
            "rdma_fabric.rails: with host_prefix each host's subnet has its own router. Remove gateway of the rails",
        ),
    ],
)
def test_what_is_refused(fabric: dict[str, Any], message: str) -> None:
    with pytest.raises(InputError) as caught:
        planned(**fabric)
    assert str(caught.value).startswith(message)


def test_networks_of_others_need_no_subnets() -> None:
    made = plan({"addresses": "keep", "rail_count": 2, "pools": {"ipam": "dhcp"}}, fleet(2))
    assert [item["kind"] for item in made["objects"]["networks"]] == ["MacvlanNetwork"] * 2
    assert made["warnings"] == []
    assert plan({"addresses": "keep", "rail_count": 2}, fleet(2))["objects"]["networks"] == []


def test_a_large_subnet_takes_no_longer_than_a_small_one() -> None:
    """8 million numbers on each rail: they are not written down. 0.1 s."""
    made = plan(
        {"supernet": "100.0.0.0/8", "rail_prefix": 9, "rail_count": 1, "reserved": ["100.0.0.1"]}, fleet(2, rails=1)
    )
    assert [host["rails"][0]["address"] for host in made["hosts"].values()] == ["100.0.0.2/9", "100.0.0.3/9"]
