"""Which change of a pool takes addresses from pods that hold them: each node's block stays, or it does not."""

from __future__ import annotations

import ipaddress
import json
from collections.abc import Sequence
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ansible_collections.gpufabric.rdma.plugins.module_utils._fabric.operator.common import node_selector
from ansible_collections.gpufabric.rdma.plugins.module_utils._fabric.operator.pools import effect, users

LABELS = {"nic": "true"}
NODES = {"a": LABELS, "b": {**LABELS, "new": "1"}}
OLD: dict[str, Any] = {
    "subnet": "10.0.0.128/25",
    "perNodeBlockSize": 4,
    "nodeSelector": node_selector(LABELS),
}


def block(node: str, first: str, last: str) -> dict[str, str]:
    return {"nodeName": node, "startIP": first, "endIP": last}


LIVE = {
    "kind": "IPPool",
    "metadata": {"name": "rail0", "namespace": "op"},
    "spec": OLD,
    "status": {"allocations": [block("a", "10.0.0.129", "10.0.0.132"), block("b", "10.0.0.133", "10.0.0.136")]},
}


def selector(**labels: str) -> dict[str, Any]:
    return node_selector(labels)


def pod(name: str, *addresses: str, node: str = "a", note: str = "", **more: Any) -> dict[str, Any]:
    shown = json.dumps([{"name": "cbr0", "ips": ["172.16.0.9"]}, {"name": "default/rail0", "ips": addresses}])
    notes = {"k8s.v1.cni.cncf.io/networks": "rail0", "k8s.v1.cni.cncf.io/network-status": note or shown}
    return {"metadata": {"name": name, "namespace": "shop", "annotations": notes}, "spec": {"nodeName": node}, **more}


@pytest.mark.parametrize(
    ("change", "lost"),
    [
        ({}, None),
        # Neither the addresses nor the nodes: what pods started later get beside their address.
        ({"routes": [{"dst": "10.0.0.0/8"}], "defaultGateway": True}, None),
        ({"subnet": "10.0.1.128/25"}, ["a", "b"]),
        ({"perNodeBlockSize": 8}, ["a", "b"]),
        ({"perNodeBlockSize": 2}, ["a", "b"]),
        # Larger, and each block is still one of its blocks.
        ({"subnet": "10.0.0.0/24"}, []),
        ({"subnet": "10.0.0.128/24"}, []),
        # Larger, but blocks begin elsewhere.
        ({"subnet": "10.0.0.0/24", "perNodeBlockSize": 3}, ["a", "b"]),
        # Smaller: only the first block is inside.
        ({"subnet": "10.0.0.128/29"}, ["b"]),
        ({"nodeSelector": selector(nic="true", new="1")}, ["a"]),
        ({"nodeSelector": selector(new="1")}, ["a"]),
        (
            {"nodeSelector": {"nodeSelectorTerms": [{"matchExpressions": [{"key": "nic", "operator": "Gt"}]}]}},
            ["a", "b"],
        ),
        ({"exclusions": [{"startIP": "10.0.0.129", "endIP": "10.0.0.129"}]}, []),
        # What nv-ipam does with blocks of another router is not computed.
        ({"gateway": "10.0.0.129"}, ["a", "b"]),
        ({"subnet": "rubbish"}, ["a", "b"]),
        ({"perNodeBlockSize": 0}, ["a", "b"]),
    ],
)
def test_blocks(change: dict[str, Any], lost: list[str] | None) -> None:
    found = effect(LIVE, {**OLD, **change}, NODES)
    assert (found.lost if found else None) == lost


@pytest.mark.parametrize(
    ("change", "lost"),
    [
        ({"cidr": "10.0.0.0/23"}, []),
        ({"cidr": "10.0.1.0/24"}, ["a"]),
        ({"perNodeNetworkPrefix": 30}, ["a"]),
        ({"gatewayIndex": 2}, ["a"]),
    ],
)
def test_cidr_pools(change: dict[str, Any], lost: list[str]) -> None:
    spec = {"cidr": "10.0.0.0/24", "perNodeNetworkPrefix": 31, "gatewayIndex": 0}
    live = {"kind": "CIDRPool", "spec": spec, "status": {"allocations": [{"nodeName": "a", "prefix": "10.0.0.2/31"}]}}
    found = effect(live, {**spec, **change}, NODES)
    assert found is not None and found.lost == lost
    assert list(users(found, [pod("p", "10.0.0.3")])) == (["shop/p (10.0.0.3)"] if lost else [])


@pytest.mark.parametrize(
    ("pods", "expected"),
    [
        ([pod("p", "10.0.0.130"), pod("q", "10.0.0.131/25")], ["shop/p (10.0.0.130)", "shop/q (10.0.0.131)"]),
        # The block of node b stays.
        ([pod("p", "10.0.0.134", node="b")], []),
        # An address that is in no block of its node is in doubt: another node may get it.
        ([pod("p", "10.0.0.130", node="b")], ["shop/p (10.0.0.130)"]),
        ([pod("p", "10.0.9.1", "fd00::1")], []),
        ([pod("p", note="[]")], []),
        ([pod("p", note="{")], ["shop/p (addresses not known)"]),
        ([pod("p", note='[{"ips": ["x"]}]')], ["shop/p (addresses not known)"]),
        ([pod("p", note="{", node="b")], []),
        ([pod("p", "10.0.0.130", status={"phase": "Succeeded"})], []),
        ([{"metadata": {"name": "p", "namespace": "shop"}, "spec": {"nodeName": "a"}}], []),
    ],
)
def test_pods_that_hold_addresses(pods: Sequence[Any], expected: list[str]) -> None:
    found = effect(LIVE, {**OLD, "nodeSelector": selector(new="1")}, NODES)
    assert found is not None and list(users(found, pods)) == expected


def test_a_pod_that_just_starts_may_get_an_address_any_moment() -> None:
    starting = pod("p")
    del starting["metadata"]["annotations"]["k8s.v1.cni.cncf.io/network-status"]
    found = effect(LIVE, {**OLD, "subnet": "10.0.1.128/25"}, NODES)
    assert found is not None and list(users(found, [starting])) == ["shop/p (addresses not known)"]
    for quiet in ({"spec": {}}, {"spec": {"nodeName": "c"}}, {"spec": {"nodeName": "a", "hostNetwork": True}}):
        assert list(users(found, [{**starting, **quiet}])) == []


def test_a_pool_without_blocks_in_its_status_tells_nothing() -> None:
    found = effect({**LIVE, "status": {"allocations": []}}, {**OLD, "perNodeBlockSize": 8}, NODES)
    assert found is not None
    assert list(users(found, [pod("p", "10.0.0.130"), pod("q", note="{")])) == [
        "shop/p (10.0.0.130)",
        "shop/q (addresses not known)",
    ]


def test_what_changes_is_named() -> None:
    found = effect(LIVE, {**OLD, "subnet": "10.0.1.128/25", "perNodeBlockSize": 8, "gateway": "10.0.1.129"}, NODES)
    assert found is not None and found.text == (
        "spec.gateway from nothing to 10.0.1.129, spec.perNodeBlockSize from 4 to 8, spec.subnet from 10.0.0.128/25 to"
        " 10.0.1.128/25"
    )


@given(st.integers(20, 29), st.integers(7, 9), st.integers(1, 16), st.integers(0, 20))
def test_a_block_stays_only_where_nv_ipam_would_have_made_it(prefix: int, third: int, size: int, index: int) -> None:
    """Blocks begin at the second address and follow each other: that is how nv-ipam makes them and takes them over."""
    network = ipaddress.ip_network(f"10.0.{third}.0/{prefix}", strict=False)
    first = ipaddress.ip_address("10.0.8.1") + index
    made = range(int(network[1]), int(network[-1]) - size + 1, size)
    old = {"subnet": "10.0.8.0/24", "perNodeBlockSize": size}
    live = {"kind": "IPPool", "spec": old, "status": {"allocations": [block("a", str(first), str(first + size - 1))]}}
    found = effect(live, {"subnet": str(network), "perNodeBlockSize": size}, NODES)
    if found is not None and first + size - 1 < network[-1]:
        assert (found.lost == []) is (int(first) in made)


CIDR: dict[str, Any] = {"cidr": "10.0.0.0/24", "perNodeNetworkPrefix": 29, "gatewayIndex": 1}
NODE_A = {"nodeName": "a", "prefix": "10.0.0.0/29"}


@pytest.mark.parametrize(
    ("fixed", "lost"),
    [
        ([NODE_A], []),
        ([NODE_A, {"nodeName": "c", "prefix": "10.0.0.16/29"}], []),
        ([{"nodeName": "a", "prefix": "10.0.0.16/29"}], ["a"]),
        ([{"nodeName": "c", "prefix": "10.0.0.8/29"}], ["b"]),
        ([{"nodeName": "a", "prefix": "rubbish"}], ["a"]),
    ],
)
def test_fixed_networks_of_nodes(fixed: list[dict[str, str]], lost: list[str]) -> None:
    live = {
        "kind": "CIDRPool",
        "metadata": {"name": "rail0", "namespace": "op"},
        "spec": CIDR,
        "status": {"allocations": [NODE_A, {"nodeName": "b", "prefix": "10.0.0.8/29"}]},
    }
    found = effect(live, {**CIDR, "staticAllocations": fixed}, NODES)
    assert found
    assert found.lost == lost


def test_a_pod_that_holds_an_excluded_address_is_a_user() -> None:
    found = effect(LIVE, {**OLD, "exclusions": [{"startIP": "10.0.0.130", "endIP": "10.0.0.200"}]}, NODES)
    assert found
    pods = [pod("held", "10.0.0.131"), pod("free", "10.0.0.129"), pod("unknown", note="rubbish")]
    assert list(users(found, pods)) == ["shop/held (10.0.0.131)", "shop/unknown (addresses not known)"]
