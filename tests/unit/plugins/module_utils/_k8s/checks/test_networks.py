"""Overlaps of the subnets of rails with networks of the cluster. Cost: below 1 s."""

from __future__ import annotations

from typing import Any

import pytest
from tests.unit.support.cluster_fake import FakeCluster

from ansible_collections.gpufabric.rdma.plugins.module_utils._k8s.checks import networks

CURE = "Choose another rdma_fabric.supernet, or other subnets of the rails"
RAILS = [
    {"name": "rail0", "subnet": "192.168.0.0/24", "ipv6": {"subnet": "fd00::/64"}},
    {"name": "rail1", "subnet": "192.168.1.0/24"},
]
HOSTS = {"h1": {"rails": [{"address": "192.168.0.1/24", "ipv6": {"address": "fd00::1/64"}}]}}
BY_HOST = {"h1": "a"}


def node(name: str, address: str = "10.0.0.1", pods: tuple[str, ...] = ("10.244.0.0/24",)) -> dict[str, Any]:
    return {
        "metadata": {"name": name},
        "spec": {"podCIDRs": list(pods)},
        "status": {"addresses": [{"type": "InternalIP", "address": address}, {"type": "Hostname", "address": name}]},
    }


def dual_node(name: str, *addresses: str) -> dict[str, Any]:
    found = node(name)
    found["status"]["addresses"] = [{"type": "InternalIP", "address": address} for address in addresses]
    return found


def pool(network: str, name: str = "main", disabled: bool = False) -> dict[str, Any]:
    """As Calico has it."""
    spec = {"cidr": network, "disabled": disabled}
    return {"apiVersion": "crd.projectcalico.org/v1", "kind": "IPPool", "metadata": {"name": name}, "spec": spec}


def cilium(name: str, *networks: str) -> dict[str, Any]:
    spec = {"ipam": {"podCIDRs": list(networks)}}
    return {"apiVersion": "cilium.io/v2", "kind": "CiliumNode", "metadata": {"name": name}, "spec": spec}


def pod(on: str, *addresses: str) -> dict[str, Any]:
    return {
        "apiVersion": "v1", "kind": "Pod", "metadata": {"name": f"pod-{on}", "namespace": "default"},
        "spec": {"nodeName": on}, "status": {"podIPs": [{"ip": address} for address in addresses]},
    }  # fmt: skip


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
        ([cidr("10.96.0.0/12", "fd03::/108")], [FREE, node("b", "fd01::1", ("fd02::/64",))], []),
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
            [service("10.96.0.1"), pod("c", "fe80::1", "192.168.1.9")],
            [FREE, node("b", pods=("192.168.1.128/25",)), node("c", pods=("192.168.1.0/25",))],
            [
                "the subnet 192.168.1.0/24 of rail1 overlaps networks of pods: 192.168.1.128/25 of Node b,"
                f" 192.168.1.0/25 of Node c. {CURE}"
            ],
        ),
        # A Node may have the address of a rail of its host.
        ([service("10.96.0.1")], [node("a", "192.168.0.1")], []),
        ([service("10.96.0.1")], [dual_node("a", "10.0.0.1", "fd00::1")], []),
        # That address is planned for another host.
        (
            [service("10.96.0.1")],
            [node("a"), node("b", "fd00::1")],
            [
                "the subnet fd00::/64 of rail0 overlaps addresses of Nodes, which are not those of rails: fd00::1 of"
                f" Node b. {CURE}, or list these addresses in rdma_fabric.reserved"
            ],
        ),
        (
            [cidr("fd00::/108")],
            [FREE],
            [f"the subnet fd00::/64 of rail0 overlaps fd00::/108, ServiceCIDR kubernetes. {CURE}"],
        ),
        (
            [service("10.96.0.1"), pool("192.168.0.0/16"), pool("fd00::/64", "off", disabled=True)],
            [FREE],
            [
                f"the subnet 192.168.0.0/24 of rail0 overlaps networks of pods: 192.168.0.0/16, IPPool main of Calico."
                f" {CURE}",
                f"the subnet 192.168.1.0/24 of rail1 overlaps networks of pods: 192.168.0.0/16, IPPool main of Calico."
                f" {CURE}",
            ],
        ),
        (
            [service("10.96.0.1"), cilium("a", "fd00::/112")],
            [FREE],
            [f"the subnet fd00::/64 of rail0 overlaps networks of pods: fd00::/112, CiliumNode a. {CURE}"],
        ),
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
    found = networks.overlaps(cluster.api(), {"rails": RAILS, "hosts": HOSTS}, nodes, by_host=BY_HOST)
    assert found == (expected, [])


@pytest.mark.parametrize("objects", [[], [pod("b", "10.0.0.9")]], ids=["no pods", "pods with other addresses"])
def test_networks_of_pods_that_only_nodes_have_are_a_warning(objects: list[dict[str, Any]]) -> None:
    """As they are where the cluster's network has networks of its own."""
    cluster = FakeCluster(service("10.96.0.1"), *objects)
    used = [FREE, node("b", pods=("192.168.1.128/25",))]
    found = networks.overlaps(cluster.api(), {"rails": RAILS, "hosts": HOSTS}, used, by_host=BY_HOST)
    assert found.problems == []
    assert found.warnings == [
        "the subnet 192.168.1.0/24 of rail1 overlaps spec.podCIDRs of Nodes: 192.168.1.128/25 of Node b. No pod of"
        " these Nodes was found with an address of them, so the cluster's network may not use them. If it does, choose"
        " another rdma_fabric.supernet"
    ]
    # Networks of Calico decide: it does not use those of Nodes. Its pools may be damaged.
    cluster.put(pool("10.244.0.0/16"), {**pool("10.245.0.0/16", "damaged"), "spec": None})
    assert networks.overlaps(cluster.api(), {"rails": RAILS, "hosts": HOSTS}, used, by_host=BY_HOST) == ([], [])
    # Pods with addresses of Nodes show that those are used, whatever objects an earlier plugin left.
    cluster.put(pod("b", "192.168.1.130"))
    assert len(networks.overlaps(cluster.api(), {"rails": RAILS, "hosts": HOSTS}, used, by_host=BY_HOST).problems) == 1


def test_nothing_is_read_without_subnets() -> None:
    cluster = FakeCluster()
    params = {"rails": [{"name": "rail0", "subnet": None}], "hosts": {}}
    assert networks.overlaps(cluster.api(), params, [FREE], by_host={}) == ([], []) and cluster.calls == []


def test_reserved_addresses_may_be_those_of_nodes() -> None:
    cluster = FakeCluster(service("10.96.0.1"))
    rails = [{**rail, "reserved": [["192.168.0.8", "192.168.0.9"]]} for rail in RAILS]
    params = {"rails": rails, "hosts": HOSTS}
    assert networks.overlaps(cluster.api(), params, [node("a", "192.168.0.9")], by_host=BY_HOST) == ([], [])
