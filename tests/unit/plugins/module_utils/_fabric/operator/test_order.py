from __future__ import annotations

from ansible_collections.gpufabric.rdma.plugins.module_utils._fabric.operator.nodes import node_objects
from ansible_collections.gpufabric.rdma.plugins.module_utils._fabric.operator.order import apply_order, delete_order

KINDS = ["MacvlanNetwork", "Other", "IPPool", "Namespace", "NicClusterPolicy", "Node"]


def test_a_pool_comes_after_the_policy_that_brings_its_kind() -> None:
    objects = [{"kind": kind} for kind in KINDS]
    order = [item["kind"] for item in apply_order(objects)]
    assert order == ["Namespace", "Node", "NicClusterPolicy", "IPPool", "MacvlanNetwork", "Other"]
    assert [item["kind"] for item in delete_order(objects)] == order[::-1]


def test_objects_of_one_kind_keep_their_order() -> None:
    objects = [{"kind": "IPPool", "n": n} for n in (3, 1, 2)]
    assert [item["n"] for item in apply_order(objects)] == [3, 1, 2]
    assert [item["n"] for item in delete_order(objects)] == [2, 1, 3]


def test_node_objects_carry_labels_only() -> None:
    assert node_objects(["gpu-1"], {"a": "b"}) == [
        {"apiVersion": "v1", "kind": "Node", "metadata": {"name": "gpu-1", "labels": {"a": "b"}}}
    ]
