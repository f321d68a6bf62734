"""Which Node is which host."""

from __future__ import annotations

from typing import Any

import pytest

from ansible_collections.gpufabric.rdma.plugins.module_utils._k8s.nodes import nodes_of_hosts

NODES = [
    {"metadata": {"name": name}, "status": {"nodeInfo": {"machineID": machine}}}
    for name, machine in (("a", "1"), ("b", "2"), ("c", "3"), ("d", "3"))
]


@pytest.mark.parametrize(
    ("hosts", "found", "wrong"),
    [
        ({"h1": {"machine_id": "1"}, "h2": {"machine_id": "2", "node": None}}, {"h1": "a", "h2": "b"}, {}),
        ({"h1": {"machine_id": "9", "node": "c"}}, {"h1": "c"}, {}),
        ({"h1": {"machine_id": "9"}}, {}, {
            "h1": "host h1: no Node has its machine id 9; join the host to the cluster,"
                  " or name its Node in rdma_host.node_name"}),
        ({"h1": {}}, {}, {
            "h1": "host h1: no Node has its machine id (unknown); join the host to the cluster,"
                  " or name its Node in rdma_host.node_name"}),
        ({"h1": {"machine_id": "3"}}, {}, {
            "h1": "host h1: Nodes c, d have its machine id 3; give every machine its own /etc/machine-id,"
                  " or name the Node in rdma_host.node_name"}),
        ({"h1": {"node": "z"}}, {}, {"h1": "host h1: there is no Node z; correct rdma_host.node_name"}),
        ({"h1": {"machine_id": "1"}, "h2": {"node": "a"}}, {}, {
            "h1": "host h1: hosts h1, h2 are all Node a; each needs its own Node",
            "h2": "host h2: hosts h1, h2 are all Node a; each needs its own Node"}),
    ],
)
def test_nodes_of_hosts(hosts: dict[str, Any], found: dict[str, str], wrong: dict[str, str]) -> None:
    assert nodes_of_hosts(hosts, NODES) == (found, wrong)
