"""Ranges: disjoint, inside the supernet, large enough, and clear of what hosts use."""

from __future__ import annotations

import ipaddress
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from netaddr import IPAddress, IPNetwork
from tests.unit.support.plan_factory import host_facts, rail_port

from ansible_collections.gpufabric.rdma.plugins.module_utils._common.errors import ConflictError, InputError
from ansible_collections.gpufabric.rdma.plugins.module_utils._fabric.intent.intent import Intent
from ansible_collections.gpufabric.rdma.plugins.module_utils._fabric.operator.profiles import registry
from ansible_collections.gpufabric.rdma.plugins.module_utils._fabric.plan import ranges as ranges_module
from ansible_collections.gpufabric.rdma.plugins.module_utils._fabric.plan.capacity import block_size, check_capacity
from ansible_collections.gpufabric.rdma.plugins.module_utils._fabric.plan.ranges import (
    check_overlap,
    other_networks,
    rail_ranges,
)


def cut(supernet: str, prefix: int, count: int, **fabric: Any) -> tuple[ranges_module.RailRange, ...]:
    params = {"supernet": supernet, "rail_prefix": prefix, **fabric}
    return rail_ranges(Intent.from_params(params, registry.names()), [f"rail{index}" for index in range(count)])


def test_a_rail() -> None:
    second = cut("192.168.0.0/16", 24, 2)[1]
    assert str(second.subnet) == "192.168.1.0/24"
    assert str(second.pool) == "192.168.1.128/25"
    assert second.host_range == ["192.168.1.1", "192.168.1.127"]
    assert second.pool_range == ["192.168.1.129", "192.168.1.254"]
    assert second.host_interface(3) == "192.168.1.3/24"
    assert (second.router(3), list(second.exclusions(32)), second.taken) == (None, [], set())


@given(st.integers(8, 24), st.integers(0, 8), st.integers(1, 64), st.integers(0, 255))
def test_ranges_are_disjoint_and_inside(length: int, more: int, count: int, first: int) -> None:
    supernet = ipaddress.IPv4Network((first << 24, length))
    prefix = min(length + more, 28)
    if count > 2 ** (prefix - length):
        with pytest.raises(InputError, match="is too small"):
            cut(str(supernet), prefix, count)
        return
    ranges = cut(str(supernet), prefix, count)
    assert [own.subnet in IPNetwork(str(supernet)) for own in ranges] == [True] * count
    assert len({own.subnet for own in ranges}) == count
    for own in ranges:
        low, high = (IPAddress(text) for text in own.host_range)
        assert own.pool in own.subnet
        assert low in own.subnet and high in own.subnet
        assert high < own.pool.network
        assert int(high) - int(low) + 1 == own.host_count


def test_too_small() -> None:
    with pytest.raises(InputError) as caught:
        cut("10.0.0.0/22", 24, 8)
    assert str(caught.value) == (
        "rdma_fabric.supernet is too small: 8 rails need 8 subnets /24, 10.0.0.0/22 has 4. Use a larger supernet or a "
        "longer rail_prefix"
    )
    with pytest.raises(InputError, match="1 rails need 1 subnets /20, 10.0.0.0/22 has 0"):
        cut("10.0.0.0/22", 20, 1)


def test_the_last_address_is_that_of_the_router() -> None:
    own = cut("10.0.0.0/16", 24, 1, gateway="last")[0]
    assert {own.router(number) for number in (1, 9)} == {"10.0.0.254"}
    assert list(own.exclusions(32)) == [("10.0.0.254", "10.0.0.254")]


def test_reserved_addresses_are_of_no_host_and_no_pod() -> None:
    own, other = cut("10.0.0.0/16", 24, 2, reserved=["10.0.0.2", "10.0.0.120-10.0.0.130"])
    assert set(own.taken) == {2, *range(120, 128)}
    assert list(own.exclusions(32)) == [("10.0.0.128", "10.0.0.130")]
    assert (own.number_of("10.0.0.1"), own.number_of("10.0.0.2"), own.number_of("10.0.0.129")) == (1, None, None)
    assert (other.taken, list(other.exclusions(32))) == (set(), [])


@pytest.mark.parametrize(
    ("prefix", "router", "host", "subnet"),
    [(31, "10.0.0.4", "10.0.0.5/31", "10.0.0.4/31"), (26, "10.0.0.129", "10.0.0.130/26", "10.0.0.128/26")],
)
def test_a_subnet_per_host(prefix: int, router: str, host: str, subnet: str) -> None:
    own = cut("10.0.0.0/8", 16, 1, host_prefix=prefix)[0]
    assert (own.router(3), own.host_interface(3), str(own.host_subnet(3))) == (router, host, subnet)
    assert own.number_of(host.partition("/")[0]) == 3
    assert own.number_of(router) is None
    assert own.host_count == 2 ** (prefix - 16)
    hosts = [] if prefix == 31 else [("10.0.0.2",) * 2, ("10.0.0.66",) * 2]
    assert list(own.exclusions(2)) == hosts


@given(st.integers(20, 31), st.integers(1, 2000))
def test_hosts_and_their_subnets_are_disjoint(prefix: int, number: int) -> None:
    own = cut("10.0.0.0/8", 16, 1, host_prefix=prefix)[0]
    if number < own.host_count:
        first, second = own.host_subnet(number), own.host_subnet(number + 1)
        assert first.last + 1 == second.first
        assert IPAddress(str(own.router(number))) in first
        address, _slash, length = own.host_interface(number).partition("/")
        assert (IPAddress(address) in first, length) == (True, str(prefix))
        assert own.number_of(address) == number


def test_a_range_over_subnets_of_hosts_is_cut_at_their_ends() -> None:
    """nv-ipam ignores one that begins before and ends after the network of a node."""
    own = cut("10.0.0.0/8", 24, 1, host_prefix=29, reserved=["10.0.0.4-10.0.0.20"])[0]
    assert set(own.taken) == {1, 2, 3}
    assert [pair for pair in own.exclusions(3) if pair[0] != pair[1]] == [
        ("10.0.0.4", "10.0.0.7"),
        ("10.0.0.8", "10.0.0.15"),
        ("10.0.0.16", "10.0.0.20"),
    ]


def test_a_subnet_of_its_own_moves_no_other_rail() -> None:
    rails = [
        {"name": "rail0"},
        {"name": "rail1", "subnet": "172.20.0.0/22", "gateway": "172.20.3.254"},
        {"name": "rail2"},
    ]
    own = cut("10.0.0.0/16", 24, 3, rails=rails)
    assert [str(one.subnet) for one in own] == ["10.0.0.0/24", "172.20.0.0/22", "10.0.2.0/24"]
    assert [one.router(1) for one in own] == [None, "172.20.3.254", None]


@pytest.mark.parametrize(
    ("fabric", "message"),
    [
        (
            {"rails": [{"name": "rail0", "subnet": "10.0.1.0/24"}, {"name": "rail1"}]},
            "rdma_fabric.rails: 10.0.1.0/24 of rail0 and 10.0.1.0/24 of rail1 overlap",
        ),
        (
            {"rails": [{"name": "rail0", "gateway": "10.0.1.254"}, {"name": "rail1"}]},
            "rdma_fabric.rails: the gateway 10.0.1.254 of rail0 is not in its subnet 10.0.0.0/24",
        ),
        (
            {"rails": [{"name": "rail0", "gateway": "10.0.0.1"}, {"name": "rail1"}]},
            "rdma_fabric.rails: the gateway 10.0.0.1 of rail0 is not in 10.0.0.128/25, that of its pods: they cannot"
            " reach it. Use an address of both, such as the last one",
        ),
        ({"reserved": ["172.16.0.1"]}, "rdma_fabric.reserved: 172.16.0.1 is in no subnet of a rail"),
        (
            {"host_prefix": 24},
            "2 problems: rdma_fabric.host_prefix: 24 is not longer than that of 10.0.0.0/24, the subnet of rail0. Use a"
            " longer host_prefix, or a shorter rail_prefix; rdma_fabric.host_prefix: 24 is not longer than that of"
            " 10.0.1.0/24, the subnet of rail1. Use a longer host_prefix, or a shorter rail_prefix",
        ),
    ],
)
def test_what_does_not_fit_together(fabric: dict[str, Any], message: str) -> None:
    with pytest.raises(InputError) as caught:
        cut("10.0.0.0/16", 24, 2, **fabric)
    assert str(caught.value) == message


def test_rails_without_any_subnet_are_named() -> None:
    rails = [{"name": "rail0", "subnet": "10.0.0.0/24"}, {"name": "rail1"}]
    with pytest.raises(
        InputError, match="rdma_fabric.rails: rail1 have no subnet. Set rdma_fabric.supernet, or one for"
    ):
        rail_ranges(Intent.from_params({"rails": rails}, registry.names()), ["rail0", "rail1"])


@pytest.mark.parametrize(
    ("fabric", "message"),
    [
        (
            {"reserved": ["10.0.0.130"], "capacity": {"hosts": 32, "pods_per_host": 2}},
            "10.0.0.0/24: of the addresses 10.0.0.129 to 10.0.0.130, which one node gets, 1 are not reserved, 2 needed."
            " Use a shorter rail_prefix or change rdma_fabric.capacity",
        ),
        (
            {"host_prefix": 29, "capacity": {"hosts": 40, "pods_per_host": 5}},
            "a rail's subnet /24 is too small: 40 subnets /29 needed, 32 available; a host's subnet /29 has 4 addresses"
            " for pods, 5 needed. Use a shorter rail_prefix or change rdma_fabric.capacity",
        ),
    ],
)
def test_reserved_addresses_count(fabric: dict[str, Any], message: str) -> None:
    intent = Intent.from_params({"supernet": "10.0.0.0/8", **fabric}, registry.names())
    with pytest.raises(InputError) as caught:
        check_capacity(intent, rail_ranges(intent, ["rail0"]), 3, most_pods=63)
    assert str(caught.value) == message


def test_pods_with_addresses_of_others_need_none() -> None:
    fabric = {"supernet": "10.0.0.0/8", "rail_prefix": 20, "host_prefix": 30, "pools": {"ipam": "dhcp"}}
    intent = Intent.from_params(fabric, registry.names())
    check_capacity(intent, rail_ranges(intent, ["rail0"]), 3, most_pods=63)


@pytest.mark.parametrize(("hosts", "size"), [(1, 64), (3, 32), (32, 2), (63, 2), (64, 1), (200, 0)])
def test_block_size(hosts: int, size: int) -> None:
    assert block_size(IPNetwork("192.168.0.128/25"), hosts) == size


@given(st.integers(9, 29), st.integers(1, 5000))
def test_blocks_of_all_hosts_fit(prefix: int, hosts: int) -> None:
    pool = IPNetwork(f"10.0.0.0/{prefix}")
    size = block_size(pool, hosts)
    assert size * hosts <= pool.size - 2
    assert size == 0 or size & (size - 1) == 0


@pytest.mark.parametrize(
    ("capacity", "group", "message"),
    [
        ({"hosts": 32}, 32, None),
        (
            {"hosts": 32},
            40,
            "the group has 40 hosts, rdma_fabric.capacity.hosts is 32. Use a shorter rail_prefix or change "
            "rdma_fabric.capacity",
        ),
        (
            {"hosts": 64},
            3,
            "the pod block of a rail (second half of a /24) is too small: 64 hosts x 2 addresses = 128 needed, 126 "
            "available. Use a shorter rail_prefix or change rdma_fabric.capacity",
        ),
        (
            {"hosts": 128, "pods_per_host": 3},
            3,
            "the host block of a rail (first half of a /24) is too small: 128 addresses needed, 127 available; the pod "
            "block of a rail (second half of a /24) is too small: 128 hosts x 4 addresses = 512 needed, 126 available. "
            "Use a shorter rail_prefix or change rdma_fabric.capacity",
        ),
    ],
)
def test_capacity(capacity: dict[str, int], group: int, message: str | None) -> None:
    intent = Intent.from_params({"supernet": "10.0.0.0/8", "capacity": capacity}, registry.names())
    own = cut("10.0.0.0/8", 24, 1)[0]
    if message is None:
        check_capacity(intent, [own], group, most_pods=63)
        return
    with pytest.raises(InputError) as caught:
        check_capacity(intent, [own], group, most_pods=63)
    assert str(caught.value) == message


def test_overlap() -> None:
    ranges = cut("10.0.0.0/16", 24, 3)
    check_overlap(("a", "b", "c"), ranges, {"gpu-1": ["10.0.3.0/24", "fd00::/64", "127.0.0.0/8"]})
    with pytest.raises(ConflictError) as caught:
        check_overlap(("a", "b", "c"), ranges, {"gpu-1": ["10.0.2.128/25"], "gpu-2": ["10.0.2.128/25", "10.0.0.0/23"]})
    assert str(caught.value) == (
        "the planned subnets overlap networks that hosts use already: 10.0.2.0/24 (c) and 10.0.2.128/25 of "
        "gpu-1, gpu-2; "
        "10.0.0.0/24 (a) and 10.0.0.0/23 of gpu-2; 10.0.1.0/24 (b) and 10.0.0.0/23 of gpu-2. Choose another "
        "rdma_fabric.supernet"
    )


def test_networks_of_rails_themselves_do_not_count() -> None:
    rail: dict[str, Any] = rail_port(0, addresses=["192.168.0.1/24"])
    storage = rail_port(1, addresses=["172.20.0.5/24"])
    facts = host_facts(1, ports=[rail, storage], networks=["10.0.2.0/24", "192.168.0.0/24"])
    assert other_networks(facts, [rail]) == ["10.0.2.0/24", "172.20.0.0/24"]


def test_the_missing_package_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(ranges_module, "IPNetwork", None)
    with pytest.raises(
        InputError, match="requires the Python package netaddr, which is not installed on the controller"
    ):
        cut("10.0.0.0/8", 24, 1)
