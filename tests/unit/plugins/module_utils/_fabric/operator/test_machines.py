"""Hosts and Nodes with one machine id."""

from __future__ import annotations

from ansible_collections.gpufabric.rdma.plugins.module_utils._fabric.operator.machines import same_machine, shared


def test_nodes_with_the_id_of_a_host() -> None:
    nodes = [("n2", "x"), ("n1", "x"), ("n3", "y"), ("n4", "")]
    assert same_machine({"a": "x", "b": "y", "c": "z", "d": ""}, nodes) == {
        "a": ["n1", "n2"],
        "b": ["n3"],
        "c": [],
        "d": [],
    }


def test_nodes_of_several_hosts() -> None:
    assert shared({"a": "n1", "b": "n1", "c": "n2", "d": None, "e": None, "f": ""}) == {"n1": ["a", "b"]}
