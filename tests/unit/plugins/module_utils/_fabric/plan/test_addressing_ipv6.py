"""IPv6 addresses of rails, alone and beside IPv4: from the intent to hosts and pools (about 2 s)."""

from __future__ import annotations

import ipaddress
import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.unit.support.plan_factory import fleet

from ansible_collections.gpufabric.rdma.plugins.module_utils._common.errors import FabricError, InputError
from ansible_collections.gpufabric.rdma.plugins.module_utils._fabric.plan.plan import plan

RAILS = [{"name": "rail0"}, {"name": "rail1"}]
IPV4, IPV6 = {"supernet": "192.168.0.0/16"}, {"supernet": "fd00:10::/48"}
DUAL: dict[str, Any] = {**IPV4, "ipv6": IPV6}
NODES = [{"name": f"node-{number}", "machine_id": f"{number:032x}"} for number in (1, 2)]
POOL = {"subnet": "fd00:10:0:1:ffff:ffff::/96", "perNodeBlockSize": 65536}


def planned(hosts: dict[str, Any] | None = None, **fabric: Any) -> dict[str, Any]:
    nodes = NODES if "host_prefix" in json.dumps(fabric) else []
    return plan({"rails": RAILS, **fabric}, hosts or fleet(2), nodes=nodes)


def specs(made: dict[str, Any], kind: str) -> dict[str, dict[str, Any]]:
    """Name -> spec of the objects of a kind, without what is the same for all."""
    found = [item for item in made["objects"]["networks"] if item["kind"] == kind]
    return {item["metadata"]["name"]: {k: v for k, v in item["spec"].items() if k != "nodeSelector"} for item in found}


def ipam(made: dict[str, Any]) -> dict[str, Any]:
    return json.loads(specs(made, "MacvlanNetwork")["rail1"]["ipam"])


def addresses(made: dict[str, Any], rail: int = 1) -> list[tuple[str, str | None]]:
    rails = [host["rails"][rail] for host in made["hosts"].values()]
    return [(own["address"], own.get("ipv6", {}).get("address")) for own in rails]


def on_ports(hosts: dict[str, Any], made: dict[str, Any]) -> dict[str, Any]:
    """The hosts after the plan was carried out."""
    for name, host in made["hosts"].items():
        for rail in host["rails"]:
            (port,) = [one for one in hosts[name]["facts"]["ports"] if one["pci"] == rail["pci"]]
            own = [rail["address"], *([rail["ipv6"]["address"]] if "ipv6" in rail else [])]
            port["addresses"] = own
            port["configured"] = {"rail": rail["rail"], "addresses": own}
    return hosts


def test_a_fabric_of_ipv6_alone() -> None:
    made = planned(ipv6=IPV6)
    assert addresses(made) == [("fd00:10:0:1::1/64", None), ("fd00:10:0:1::2/64", None)]
    assert specs(made, "IPPool")["rail1"] == POOL
    assert ipam(made) == {"type": "nv-ipam", "poolName": "rail1", "poolType": "ippool"}
    assert made["warnings"] == []
    assert planned(ipv6=IPV6, tests={"rdma_cm": True})["warnings"] == [
        "the rails have IPv6 addresses only, and tests.rdma_cm needs IPv4 addresses: validate reports them as no_data."
        " Set rdma_cm: false, or set rdma_fabric.supernet in addition"
    ]


def test_two_pools_in_one_network() -> None:
    made = planned(**DUAL)
    assert addresses(made) == [("192.168.1.1/24", "fd00:10:0:1::1/64"), ("192.168.1.2/24", "fd00:10:0:1::2/64")]
    pools = specs(made, "IPPool")
    assert list(pools) == ["rail0", "rail0-ipv6", "rail1", "rail1-ipv6"]
    assert (pools["rail1"]["subnet"], pools["rail1-ipv6"]) == ("192.168.1.128/25", POOL)
    assert ipam(made) == {"type": "nv-ipam", "poolName": "rail1,rail1-ipv6", "poolType": "ippool"}
    assert made["warnings"] == []


def test_ipv6_changes_nothing_of_ipv4() -> None:
    alone, both = planned(**IPV4), planned(**DUAL)
    for part in (both["rails"], *(host["rails"] for host in both["hosts"].values())):
        for rail in part:
            assert rail.pop("ipv6")
    assert (both["rails"], both["hosts"]) == (alone["rails"], alone["hosts"])


def test_a_router_of_both_versions() -> None:
    ipv6 = {**IPV6, "gateway": "last"}
    routes = ["10.0.0.0/8", "2001:db8::/32"]
    made = planned(**IPV4, ipv6=ipv6, gateway="last", routing="between_rails", pools={"routes": routes})
    rail = made["hosts"]["gpu-0001"]["rails"][1]
    assert (rail["gateway"], rail["routes"]) == ("192.168.1.254", ["192.168.0.0/16"])
    last = "fd00:10:0:1:ffff:ffff:ffff:fffe"
    assert rail["ipv6"] == {
        "address": "fd00:10:0:1::1/64",
        "gateway": last,
        "routes": ["fd00:10::/48"],
        "beyond": None,
    }
    assert specs(made, "IPPool")["rail1-ipv6"] == {
        **POOL,
        "gateway": last,
        "routes": [{"dst": "fd00:10::/48"}, {"dst": "2001:db8::/32"}],
        "exclusions": [{"startIP": last, "endIP": last}],
    }
    assert specs(made, "IPPool")["rail1"]["routes"] == [{"dst": "192.168.0.0/16"}, {"dst": "10.0.0.0/8"}]


def test_a_subnet_per_host() -> None:
    made = planned(**IPV4, host_prefix=29, ipv6={**IPV6, "host_prefix": 96}, capacity={"hosts": 2})
    rail = made["hosts"]["gpu-0002"]["rails"][1]
    assert rail["ipv6"] == {
        "address": "fd00:10:0:1:0:1:0:2/96",
        "gateway": "fd00:10:0:1:0:1:0:1",
        "routes": ["fd00:10:0:1::/64"],
        "beyond": "fd00:10:0:1::/64",
    }
    assert specs(made, "CIDRPool")["rail1-ipv6"] == {
        "cidr": "fd00:10:0:1::/64",
        "perNodeNetworkPrefix": 96,
        "gatewayIndex": 1,
        "routes": [{"dst": "fd00:10:0:1::/64"}],
        "exclusions": [{"startIP": address, "endIP": address} for address in ("fd00:10:0:1::2", "fd00:10:0:1:0:1:0:2")],
        "staticAllocations": [
            {"nodeName": "node-1", "prefix": "fd00:10:0:1::/96"},
            {"nodeName": "node-2", "prefix": "fd00:10:0:1:0:1::/96"},
        ],
    }
    assert ipam(made)["poolType"] == "cidrpool"


def test_point_to_point() -> None:
    capacity = {"hosts": 2, "pods_per_host": 1}
    made = planned(profile="host_device", ipv6={**IPV6, "host_prefix": 127}, capacity=capacity)
    assert addresses(made) == [("fd00:10:0:1::1/127", None), ("fd00:10:0:1::3/127", None)]
    assert made["hosts"]["gpu-0002"]["rails"][1]["gateway"] == "fd00:10:0:1::2"
    pool = specs(made, "CIDRPool")["rail1"]
    assert (pool["gatewayIndex"], "exclusions" in pool) == (0, False)


def test_subnets_of_single_rails() -> None:
    rails = [
        {"name": "rail0", "subnet_ipv6": "fd00:a::/80", "gateway_ipv6": "fd00:a::ffff:ffff:1"},
        {"name": "rail1", "subnet_ipv6": "fd00:b::/124"},
    ]
    made = planned(rails=rails, capacity={"hosts": 2})
    assert addresses(made, 0)[1][0] == "fd00:a::2/80"
    assert specs(made, "IPPool")["rail1"] == {"subnet": "fd00:b::8/125", "perNodeBlockSize": 2}


def test_reserved_addresses() -> None:
    reserved = ["fd00:10:0:1::1", "fd00:10:0:1:ffff:ffff:0:5-fd00:10:0:1:ffff:ffff:0:6", "192.168.0.2"]
    made = planned(**DUAL, reserved=reserved)
    # A number that is reserved in one version is given in none: the two addresses of a host are alike.
    assert addresses(made) == [("192.168.1.3/24", "fd00:10:0:1::3/64"), ("192.168.1.4/24", "fd00:10:0:1::4/64")]
    assert specs(made, "IPPool")["rail1-ipv6"]["exclusions"] == [
        {"startIP": "fd00:10:0:1:ffff:ffff:0:5", "endIP": "fd00:10:0:1:ffff:ffff:0:6"}
    ]


def test_whereabouts_has_one_range_per_version() -> None:
    made = planned(**DUAL, pools={"ipam": "whereabouts"}, reserved=["192.168.1.200"])
    assert ipam(made) == {
        "type": "whereabouts",
        "ipRanges": [
            {"range": "192.168.1.128/25", "exclude": ["192.168.1.200/32"]},
            {"range": POOL["subnet"]},
        ],
    }
    alone = planned(ipv6=IPV6, pools={"ipam": "whereabouts"}, reserved=["fd00:10:0:1:ffff:ffff:0:4"])
    assert ipam(alone) == {
        "type": "whereabouts",
        "range": POOL["subnet"],
        "exclude": ["fd00:10:0:1:ffff:ffff:0:4/128"],
    }


def test_addresses_of_one_version_stay_when_the_other_one_is_added() -> None:
    hosts = fleet(2)
    for number, host in enumerate(hosts.values(), 7):
        for at, port in enumerate(port for port in host["facts"]["ports"] if port["vendor"] == "15b3"):
            port["addresses"] = [f"fd00:10:0:{at}::{number}/64"]
    made = planned(hosts, ipv6=IPV6)
    expected = ["fd00:10:0:1::7/64", "fd00:10:0:1::8/64"]
    assert [first for first, _none in addresses(made)] == expected
    both = planned(on_ports(hosts, made), **DUAL)
    assert addresses(both) == [("192.168.1.7/24", expected[0]), ("192.168.1.8/24", expected[1])]
    again = planned(on_ports(hosts, both), **DUAL)
    assert (again["hosts"], again["warnings"]) == (both["hosts"], [])


def test_a_kept_number_that_ipv6_does_not_have() -> None:
    hosts = fleet(1)
    port = next(port for port in hosts["gpu-0001"]["facts"]["ports"] if port["vendor"] == "15b3")
    port["addresses"] = ["192.168.0.9/24"]
    ipv6 = {"supernet": "fd00::/64", "rail_prefix": 124}
    with pytest.raises(InputError) as caught:
        planned(hosts, **IPV4, ipv6=ipv6, capacity={"hosts": 2})
    assert str(caught.value) == (
        "IPv4 and IPv6 addresses of a host have the same number, and the subnets of one version do not have all numbers"
        " that are in use for hosts: gpu-0001 has the address number 9 on rail0, gpu-0001 has the address number 9 on"
        " rail1. Use a shorter prefix of the rails, reserve other addresses, or remove these addresses from the ports"
    )


def test_networks_of_hosts_count_in_both_versions() -> None:
    hosts = fleet(2)
    hosts["gpu-0001"]["facts"]["networks"] = ["10.0.0.0/24", "fd00:10:0:1:5::/80"]
    with pytest.raises(FabricError) as caught:
        planned(hosts, **DUAL)
    assert str(caught.value) == (
        "the planned subnets overlap networks that hosts use already: fd00:10:0:1::/64 (rail1) and fd00:10:0:1:5::/80"
        " of gpu-0001. Choose another rdma_fabric.ipv6.supernet"
    )


@pytest.mark.parametrize(
    ("fabric", "message"),
    [
        (
            {"supernet": "fd00::/48"},
            'rdma_fabric.supernet: expected an IPv4 network such as 192.168.0.0/16, found "fd00::/48" (IPv6 has keys of'
            " its own: the section ipv6, and subnet_ipv6 of a rail)",
        ),
        (
            {"ipv6": {"supernet": "10.0.0.0/8"}},
            "rdma_fabric.ipv6.supernet: expected an IPv6 network such as fd00:10::/48, found",
        ),
        (
            {**IPV4, "ipv6": {"rail_prefix": 64}},
            "rdma_fabric.ipv6.supernet: missing. Set it, or subnet_ipv6 of the rails",
        ),
        ({**DUAL, "ipv6": {**IPV6, "suppernet": "x"}}, "rdma_fabric.ipv6.suppernet: unknown key"),
        ({**IPV4, "reserved": ["fd00::1"]}, "rdma_fabric.reserved: fd00::1 is in no subnet of a rail"),
        ({"ipv6": IPV6, "reserved": ["10.0.0.1"]}, "rdma_fabric.reserved: 10.0.0.1 is in no subnet of a rail"),
        ({**DUAL, "reserved": ["10.0.0.1-fd00::1"]}, "rdma_fabric.reserved: expected an address, or two with"),
        (
            {**IPV4, "gateway": "last", "pools": {"routes": ["fd00::/8"]}},
            "rdma_fabric.pools.routes: the rails have no IPv6 addresses. Remove fd00::/8",
        ),
        (
            {**DUAL, "gateway": "last", "pools": {"routes": ["fd00::/8"]}},
            "rdma_fabric.pools.routes: need a router. Set ipv6.gateway, ipv6.host_prefix, or gateway_ipv6 of the rails",
        ),
        (
            {**DUAL, "pools": {"ipam": "dhcp"}},
            "rdma_fabric.pools.ipam: the CNI plugin dhcp gives IPv4 addresses only. Set another ipam, or remove ipv6",
        ),
        (
            {**DUAL, "gateway": "last", "pools": {"ipam": "whereabouts"}},
            "rdma_fabric.pools.ipam: whereabouts gives the same router to IPv4 and IPv6 addresses. Set",
        ),
        (
            {**DUAL, "host_prefix": 29},
            "rdma_fabric.ipv6.host_prefix: the IPv4 and the IPv6 pool of a network must be of one kind.",
        ),
        (
            {"ipv6": {**IPV6, "host_prefix": 127}},
            "rdma_fabric.ipv6.host_prefix: a network of two addresses has none for pods beside those of host and"
            " router, and pods of profile macvlan share the port with the host. Use 125 or less, or another profile",
        ),
        (
            {"ipv6": {**IPV6, "host_prefix": 60}},
            "rdma_fabric.ipv6.host_prefix: 60 is not longer than that of fd00:10::/64, the subnet of rail0",
        ),
        (
            {"ipv6": {"supernet": "fd00::/64"}},
            "rdma_fabric.ipv6.supernet is too small: 2 rails need 2 subnets /64, fd00::/64 has 1. Use a larger",
        ),
        (
            {**DUAL, "rails": [{"name": "rail0"}, {"name": "rail0-ipv6"}]},
            "rdma_fabric.rails: the pool rail0-ipv6 would be that of two rails, since IPv6 pools have names that end",
        ),
        (
            {"ipv6": {**IPV6, "rail_prefix": 124}},
            "the host block of a rail (first half of a /124) is too small: 32 addresses needed, 7 available",
        ),
        (
            {**IPV4, "pools": {"per_node_exclusions": ["0-x"]}},
            "rdma_fabric.pools.per_node_exclusions: expected a number, or two such as 0-3, found",
        ),
        (
            {**IPV4, "pools": {"per_node_exclusions": ["3-1"]}},
            "rdma_fabric.pools.per_node_exclusions: expected a number, or two such as 0-3, found",
        ),
        (
            {**IPV4, "pools": {"per_node_exclusions": ["2"]}},
            "rdma_fabric.pools.per_node_exclusions: 2-2 is not in the block of a node, which has the numbers 0 to 1",
        ),
        (
            {**IPV4, "capacity": {"hosts": 16}, "pools": {"per_node_exclusions": ["0-2", "1"]}},
            "192.168.0.0/24: of the addresses 192.168.0.129 to 192.168.0.132, which one node gets, 1 are not",
        ),
        (
            {**IPV4, "pools": {"ipam": "whereabouts", "per_node_exclusions": ["0"]}},
            "rdma_fabric.pools.per_node_exclusions: only nv-ipam has blocks of nodes, but ipam is whereabouts. Remove",
        ),
        (
            {**IPV4, "host_prefix": 29, "pools": {"per_node_exclusions": ["2-5"]}},
            "a host's subnet /29 has 1 addresses for pods, 2 needed",
        ),
    ],
)
def test_what_is_refused(fabric: dict[str, Any], message: str) -> None:
    with pytest.raises(InputError) as caught:
        planned(**fabric)
    assert message in str(caught.value)


def test_addresses_of_each_block_that_no_pod_gets() -> None:
    pools = {"per_node_exclusions": ["0-1", "5"]}
    made = planned(**DUAL, capacity={"hosts": 8}, pools=pools)
    numbers = [{"startIndex": 0, "endIndex": 1}, {"startIndex": 5, "endIndex": 5}]
    assert [spec["perNodeExclusions"] for spec in specs(made, "IPPool").values()] == [numbers] * 4


def test_an_older_line_has_no_exclusions_per_node() -> None:
    with pytest.raises(InputError) as caught:
        planned(
            **IPV4,
            capacity={"hosts": 8},
            pools={"per_node_exclusions": ["0"]},
            operator={"release": "26.1.2"},
        )
    assert "release line 26.1 of the network operator does not have the field spec.perNodeExclusions" in str(
        caught.value
    )
    assert "Lines that have it: 26.4, 26.7." in str(caught.value)


def pod_networks(pool: dict[str, Any], kind: str, nodes: int) -> list[tuple[int, int]]:
    """First and last address of what nv-ipam gives to each of some nodes."""
    if kind == "CIDRPool":
        first, bits = ipaddress.ip_network(pool["cidr"]), ipaddress.ip_network(pool["cidr"]).max_prefixlen
        size = 1 << (bits - pool["perNodeNetworkPrefix"])
        start = int(first[0])
    else:
        first, size = ipaddress.ip_network(pool["subnet"]), pool["perNodeBlockSize"]
        start = int(first[0]) + 1
    assert start + nodes * size - 1 <= int(first[-1])
    return [(start + number * size, start + (number + 1) * size - 1) for number in range(nodes)]


@st.composite
def fabrics(draw: st.DrawFn) -> dict[str, Any]:
    hosts = draw(st.sampled_from([2, 3, 32, 100]))
    fabric: dict[str, Any] = {"capacity": {"hosts": hosts, "pods_per_host": draw(st.sampled_from([1, 2, 6]))}}
    routed, gateway = draw(st.sampled_from([(False, "none"), (False, "last"), (True, "none")]))
    versions = draw(st.sampled_from(["4", "6", "46"]))
    if "4" in versions:
        prefix = draw(st.integers(18, 24))
        fabric |= {"supernet": "10.128.0.0/9", "rail_prefix": prefix, "gateway": gateway}
        fabric |= {"host_prefix": draw(st.integers(prefix + 1, 29))} if routed else {}
    if "6" in versions:
        prefix = draw(st.integers(56, 112))
        fabric["ipv6"] = {"supernet": "fd00:77::/48", "rail_prefix": prefix, "gateway": gateway}
        fabric["ipv6"] |= {"host_prefix": draw(st.integers(prefix + 1, 125))} if routed else {}
    return fabric


@given(fabric=fabrics())
def test_no_address_is_given_twice(fabric: dict[str, Any]) -> None:
    """Hosts, routers and pods of one rail have addresses of its subnet, and no two the same."""
    try:
        made = planned(**fabric)
    except InputError as error:
        assert "too small" in str(error) or "for pods" in str(error) or "is not longer" in str(error)
        return
    kind = "CIDRPool" if "host_prefix" in json.dumps(fabric) else "IPPool"
    pools = specs(made, kind)
    for rail in made["rails"]:
        for own, at in ((rail, None), (rail.get("ipv6"), "ipv6")):
            if own is None:
                continue
            ways = [host["rails"][rail["index"]] for host in made["hosts"].values()]
            ways = [way[at] if at else way for way in ways]
            subnet = ipaddress.ip_network(own["subnet"])
            given_out = [ipaddress.ip_interface(way["address"]).ip for way in ways]
            gateways = {ipaddress.ip_address(way["gateway"]) for way in ways if way.get("gateway")}
            assert len(set(given_out)) == len(given_out) and not gateways & set(given_out)
            assert all(address in subnet for address in (*given_out, *gateways))
            spec = pools[own["pool"]]
            taken = [
                tuple(int(ipaddress.ip_address(one[key])) for key in ("startIP", "endIP"))
                for one in spec.get("exclusions", ())
            ]
            for low, high in pod_networks(spec, kind, fabric["capacity"]["hosts"]):
                for address in map(int, given_out):
                    assert not low <= address <= high or any(first <= address <= last for first, last in taken)


@pytest.mark.parametrize("address", ["fd00:10::83/64", "fd00:10::5/64", "fd00:10::1234/64"])
def test_an_ipv6_address_that_gives_no_ipv4_address_of_hosts(address: str) -> None:
    """Of the block for pods, reserved, and above the subnet."""
    hosts = fleet(2)
    port = next(port for port in hosts["gpu-0001"]["facts"]["ports"] if port["vendor"] == "15b3")
    port["addresses"] = [address]
    with pytest.raises(
        InputError, match="the subnets of one version do not have all numbers that are in use for hosts"
    ):
        planned(hosts, **DUAL, reserved=["192.168.0.5"])


def test_reserved_addresses_that_leave_none_together() -> None:
    ipv6 = {**IPV6, "rail_prefix": 124}
    reserved = ["192.168.0.1-192.168.0.3", "fd00:10::4-fd00:10::6"]
    capacity = {"hosts": 4, "pods_per_host": 1}
    with pytest.raises(InputError, match="what is reserved on one rail, or in one version of IP, is reserved on all"):
        planned(
            fleet(4), **IPV4, ipv6=ipv6, rail_prefix=28, reserved=reserved, capacity=capacity, pools={"ipam": "none"}
        )


@pytest.mark.parametrize("fabric", [{"gateway": "last"}, {"host_prefix": 29}])
def test_routers_of_a_version_that_rails_do_not_have(fabric: dict[str, Any]) -> None:
    with pytest.raises(InputError, match="gateway and host_prefix of IPv4 have no effect"):
        planned(ipv6=IPV6, **fabric)
