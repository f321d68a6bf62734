"""Overlaps of the subnets of rails with networks of the cluster. Cost: below 1 s."""

from __future__ import annotations

from typing import Any

import pytest
from tests.unit.support.cluster_fake import FakeCluster

from ansible_collections.gpufabric.rdma.plugins.module_utils._k8s.checks import networks

CURE = "Choose another rdma_fabric.supernet, or other subnets of the rails"
RAILS = [{"name": "rail0", "subnet": "192.168.0.0/24"}, {"name": "rail1", "subnet": "192.168.1.0/24"}]
HOSTS = {"h1": {"rails": [{"address": "192.168.0.1/24"}]}}


def node(name: str, address: str = "10.0.0.1", pods: tuple[str, ...] = ("10.244.0.0/24",)) -> dict[str, Any]:
    return {
        "metadata": {"name": name},
        "spec": {"podCIDRs": list(pods)},
        "status": {"addresses": [{"type": "InternalIP", "address": address}, {"type": "Hostname", "address": name}]},
    }


def service(*addresses: str) -> dict[str, Any]:
    return {
        "apiVersion": "v1", "kind": "Service", "metadata": {"name": "kubernetes", "namespace": "default"},
        "spec": {"clusterIPs": list(addresses)},
    }  # fmt: skip


def cidr(*texts: str) -> dict[str, Any]:
    return {
        "apiVersion": "networking.k8s.io/v1", "kind": "ServiceCIDR", "metadata": {"name": "kubernetes"},
        "spec": {"cidrs": list(texts)},
    }  # fmt: skip


FREE = node("a")


@pytest.mark.parametrize(
    ("objects", "nodes", "expected"),
    [
        ([service("10.96.0.1")], [FREE], []),
        ([cidr("10.96.0.0/12", "fd00::/108")], [FREE, node("b", "fd01::1", ("fd02::/64",))], []),
        (
            [cidr("192.168.0.0/23")],
            [FREE],
            [
                f"the subnet 192.168.0.0/24 of rail0 overlaps 192.168.0.0/23, ServiceCIDR kubernetes. {CURE}",
                f"the subnet 192.168.1.0/24 of rail1 overlaps 192.168.0.0/23, ServiceCIDR kubernetes. {CURE}",
            ],
        ),
        # Older clusters, and accounts that must not list ServiceCIDRs, show one address.
        (
            [service("192.168.1.1")],
            [FREE],
            [f"the subnet 192.168.1.0/24 of rail1 overlaps 192.168.1.1/32, the address of Service kubernetes. {CURE}"],
        ),
        (
            [service("10.96.0.1")],
            [FREE, node("b", pods=("192.168.1.128/25",)), node("c", pods=("192.168.1.0/25",))],
            [
                "the subnet 192.168.1.0/24 of rail1 overlaps networks of pods: 192.168.1.128/25 of Node b,"
                f" 192.168.1.0/25 of Node c. {CURE}"
            ],
        ),
        # A Node may have the address of a rail of its host.
        ([service("10.96.0.1")], [node("a", "192.168.0.1")], []),
        (
            [service("10.96.0.1")],
            [node("a", "192.168.0.9")],
            [
                "the subnet 192.168.0.0/24 of rail0 overlaps addresses of Nodes, which are not those of rails:"
                f" 192.168.0.9 of Node a. {CURE}, or list these addresses in rdma_fabric.reserved"
            ],
        ),
        ([], [{"metadata": {"name": "a"}}], []),
    ],
)
def test_overlaps(objects: list[dict[str, Any]], nodes: list[dict[str, Any]], expected: list[str]) -> None:
    cluster = FakeCluster(*objects)
    assert list(networks.problems(cluster.api(), {"rails": RAILS, "hosts": HOSTS}, nodes)) == expected


def test_nothing_is_read_without_subnets() -> None:
    cluster = FakeCluster()
    params = {"rails": [{"name": "rail0", "subnet": None}], "hosts": {}}
    assert list(networks.problems(cluster.api(), params, [FREE])) == [] and cluster.calls == []


def test_reserved_addresses_may_be_those_of_nodes() -> None:
    cluster = FakeCluster(service("10.96.0.1"))
    rails = [{**rail, "reserved": [["192.168.0.8", "192.168.0.9"]]} for rail in RAILS]
    assert list(networks.problems(cluster.api(), {"rails": rails, "hosts": HOSTS}, [node("a", "192.168.0.9")])) == []
