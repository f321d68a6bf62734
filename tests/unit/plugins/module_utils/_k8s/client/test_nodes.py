"""Which Node is which host."""

from __future__ import annotations

from typing import Any

import pytest

from ansible_collections.gpufabric.rdma.plugins.module_utils._common.errors import ClusterError
from ansible_collections.gpufabric.rdma.plugins.module_utils._k8s.client.nodes import Host, node_of_host, nodes_of_hosts

NODES = [
    {"metadata": {"name": name}, "status": {"nodeInfo": {"machineID": machine}}}
    for name, machine in (("a", "1"), ("b", "2"), ("c", "3"), ("d", "3"))
]


@pytest.mark.parametrize(
    ("hosts", "found", "wrong"),
    [
        ({"h1": {"machine_id": "1"}, "h2": {"machine_id": "2", "node": None}}, {"h1": "a", "h2": "b"}, {}),
        ({"h1": {"machine_id": "9", "node": "c"}}, {"h1": "c"}, {}),
        (
            {"h1": {"machine_id": "9"}},
            {},
            {
                "h1": "host h1: no Node has its machine id 9; join the host to the cluster,"
                " or name its Node in rdma_host.node_name"
            },
        ),
        (
            {"h1": {}},
            {},
            {
                "h1": "host h1: no Node has its machine id (unknown); join the host to the cluster,"
                " or name its Node in rdma_host.node_name"
            },
        ),
        (
            {"h1": {"machine_id": "3"}},
            {},
            {
                "h1": "host h1: Nodes c, d have its machine id 3; give every machine its own /etc/machine-id,"
                " or name the Node in rdma_host.node_name"
            },
        ),
        ({"h1": {"node": "z"}}, {}, {"h1": "host h1: there is no Node z; correct rdma_host.node_name"}),
        (
            {"h1": {"machine_id": "1"}, "h2": {"node": "a"}},
            {},
            {
                "h1": "host h1: hosts h1, h2 are all Node a; each needs its own Node",
                "h2": "host h2: hosts h1, h2 are all Node a; each needs its own Node",
            },
        ),
    ],
)
def test_nodes_of_hosts(hosts: dict[str, Any], found: dict[str, str], wrong: dict[str, str]) -> None:
    assert nodes_of_hosts(hosts, NODES) == (found, wrong)


def full(name: str, machine: str, *addresses: str, hostname: str = "") -> dict[str, Any]:
    listed = [{"type": "InternalIP", "address": address} for address in addresses]
    listed += [{"type": "Hostname", "address": hostname}] if hostname else []
    status = {"nodeInfo": {"machineID": machine}, "addresses": listed}
    return {"metadata": {"name": name, "labels": {"kubernetes.io/hostname": hostname}}, "status": status}


CLUSTER = [full("a", "1", "10.0.0.1", "fd00::1"), full("n-b", "2", "10.0.0.2", hostname="gpu-2.lab"), full("c", "3")]
SIGNS = ("kubelet.service is active",)


@pytest.mark.parametrize(
    ("host", "expected"),
    [
        (Host("h", machine_id="1", hostname="A.example"), "a"),
        (Host("h", machine_id="1", addresses=["127.0.0.1", "fd00:0::1"]), "a"),
        (Host("h", machine_id="2", hostname="gpu-2"), "n-b"),
        (Host("h", "a", machine_id="1"), "a"),
        (Host("h", "n-b", machine_id="old", addresses=["10.0.0.2"], kubelet=SIGNS), "n-b"),
        # Positive evidence that it is none: nothing matches, and there is no kubelet.
        (Host("h", machine_id="9", hostname="storage", addresses=["10.0.0.9"], kubelet=()), None),
    ],
)
def test_the_node_of_a_host_is_confirmed_by_a_second_property(host: Host, expected: str | None) -> None:
    found = node_of_host(host, CLUSTER)
    assert (found["metadata"]["name"] if found else None) == expected


@pytest.mark.parametrize(
    ("host", "message"),
    [
        (
            Host("h", machine_id="1", hostname="gpu-9", addresses=["10.0.0.9"]),
            "host h: Node a has its machine id 1, but nothing else matches. The Node has a and "
            "10.0.0.1, fd00::1; the host"
            " has gpu-9 and 10.0.0.9. Give every machine its own /etc/machine-id",
        ),
        (Host("h", machine_id="1"), "the host has (none) and (none)"),
        (Host("h", machine_id="2", hostname="gpu-2.other"), "Node n-b has its machine id 2, but nothing else matches"),
        (
            Host("h", "a", machine_id="9", hostname="h"),
            "host h: Node a is named in the inventory, but nothing else matches.",
        ),
        (Host("h", "z", machine_id="1", hostname="a"), "there is no Node z; correct rdma_host.node_name"),
        (Host("h", machine_id="", hostname="h", kubelet=()), "no Node has its machine id (unknown)"),
        (
            Host("h", machine_id="9", hostname="a", kubelet=()),
            "host h: Node a has its hostname or address, but not its machine id 9. Restart the kubelet",
        ),
        (Host("h", machine_id="9", addresses=["10.0.0.2"], kubelet=()), "Node n-b has its hostname or address"),
        (
            Host("h", machine_id="9", hostname="h", kubelet=SIGNS),
            "no Node has its machine id 9, but it runs or ran a kubelet (kubelet.service is active). Check that the"
            " kubeconfig names its cluster, or name its Node in rdma_host.node_name. If the host is not a node of this"
            " cluster, set host_reboot_drain: false for it",
        ),
        (Host("h", machine_id="9", hostname="h"), "but whether it runs a kubelet is unknown"),
    ],
)
def test_doubt_about_the_node_of_a_host_is_an_error(host: Host, message: str) -> None:
    with pytest.raises(ClusterError) as caught:
        node_of_host(host, CLUSTER)
    assert message in str(caught.value)


def test_a_cluster_without_nodes_is_the_wrong_one() -> None:
    with pytest.raises(ClusterError, match="host h: the cluster has no Nodes at all. Check that the kubeconfig names"):
        node_of_host(Host("h", machine_id="1", kubelet=()), [])
