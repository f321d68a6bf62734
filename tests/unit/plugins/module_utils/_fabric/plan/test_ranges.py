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
from ansible_collections.gpufabric.rdma.plugins.module_utils._fabric.plan.ranges import (
    block_size,
    check_capacity,
    check_overlap,
    other_networks,
    rail_ranges,
)


def test_a_rail() -> None:
    second = rail_ranges("192.168.0.0/16", 24, 2)[1]
    assert str(second.subnet) == "192.168.1.0/24"
    assert str(second.pool) == "192.168.1.128/25"
    assert second.host_range == ["192.168.1.1", "192.168.1.127"]
    assert second.pool_range == ["192.168.1.129", "192.168.1.254"]
    assert second.host_address(3) == "192.168.1.3"


@given(st.integers(8, 24), st.integers(0, 8), st.integers(1, 64), st.integers(0, 255))
def test_ranges_are_disjoint_and_inside(length: int, more: int, count: int, first: int) -> None:
    supernet = ipaddress.IPv4Network((first << 24, length))
    prefix = min(length + more, 28)
    if count > 2 ** (prefix - length):
        with pytest.raises(InputError, match="is too small"):
            rail_ranges(str(supernet), prefix, count)
        return
    ranges = rail_ranges(str(supernet), prefix, count)
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
        rail_ranges("10.0.0.0/22", 24, 8)
    assert str(caught.value) == (
        "rdma_fabric.supernet is too small: 8 rails need 8 subnets /24, 10.0.0.0/22 has 4. Use a larger supernet or a "
        "longer rail_prefix"
    )
    with pytest.raises(InputError, match="1 rails need 1 subnets /20, 10.0.0.0/22 has 0"):
        rail_ranges("10.0.0.0/22", 20, 1)


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
    own = rail_ranges("10.0.0.0/8", 24, 1)[0]
    if message is None:
        check_capacity(intent, own, group)
        return
    with pytest.raises(InputError) as caught:
        check_capacity(intent, own, group)
    assert str(caught.value) == message


def test_overlap() -> None:
    ranges = rail_ranges("10.0.0.0/16", 24, 3)
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
        rail_ranges("10.0.0.0/8", 24, 1)
