"""Policies of classes of hosts against a recording of the real operator, and the nodes of a class. Under 1 s."""

from __future__ import annotations

from typing import Any

import pytest
from tests.unit.support.operator_recording import moments

from ansible_collections.gpufabric.rdma.plugins.module_utils._fabric.operator.class_ready import (
    class_ready,
    hint_of,
    node_policy_ready,
)
from ansible_collections.gpufabric.rdma.plugins.module_utils._fabric.operator.nodes import selected_labels
from ansible_collections.gpufabric.rdma.plugins.module_utils._fabric.operator.readiness import Readiness

RELEASE = "26.7.1"


def timeline(name: str, nodes: int) -> list[tuple[float, Readiness, str]]:
    """(t, what we say of a node policy, the state that it shows) after each line of the recording."""
    specs: dict[str, Any] = {}
    found = []
    for t, world, line in moments("h-nicnodepolicy"):
        made = line.get("object") or {}
        if made.get("kind") == "NicNodePolicy":
            specs[made["metadata"]["name"]] = made["spec"]
        live = world.one("NicNodePolicy", name)
        policy = {**live, "spec": specs.get(name, {})} if live else None
        said = node_policy_ready(policy, name, world.kind("DaemonSet"), pods=[], nodes=nodes, release=RELEASE)
        found.append((t, said, (live or {"status": {}})["status"].get("state", "")))
    return found


def test_a_node_policy_is_ready_when_its_own_device_plugin_runs_on_its_nodes() -> None:
    said = timeline("pool-a", 2)
    ready = [t for t, found, _state in said if found.ready]
    # From the moment at which its status says so, 10.31 s, until it is deleted.
    assert ready[0] == 10.31 and all(10.31 <= t <= 147.24 for t in ready)
    assert {found.reasons for t, found, _state in said if t < 0.36} == {("NicNodePolicy pool-a is absent",)}


def test_a_node_policy_on_fewer_nodes_than_its_class_has_is_not_ready() -> None:
    said = {found.reasons for t, found, state in timeline("pool-a", 3) if state == "ready" and t < 100}
    assert said == {
        ("DaemonSet rdma-shared-dp-ds-pool-a: scheduled on 2 nodes, expected 3: check the labels of the nodes",)
    }


def test_overlapping_selectors_are_an_error_although_the_condition_is_true() -> None:
    (found,) = {found for _t, found, state in timeline("overlap", 3) if state == "error"}
    assert found.failed and found.reasons[0].startswith(
        'NicNodePolicy overlap: node selector overlap detected: node "gpu-1" is selected by policies: [overlap, pool-a]'
    )


def node(name: str, offered: str | None, **labels: str) -> dict[str, Any]:
    allocatable = {} if offered is None else {"rdma/rdma_rail0": offered}
    return {"metadata": {"name": name, "labels": labels}, "status": {"allocatable": allocatable}}


@pytest.mark.parametrize(
    ("nodes", "reasons"),
    [
        ([node("a", "63", pool="x")], ()),
        ([node("a", "63")], ("Nodes without the labels of their class (pool=x): a",)),
        ([node("a", None, pool="x")], ("rdma/rdma_rail0: expected 63 on each node, found a (0) (restart it)",)),
        # Nodes of other classes offer what theirs do.
        ([node("a", "63", pool="x"), node("b", None, pool="y")], ()),
    ],
    ids=["ready", "no label", "no resource", "another class"],
)
def test_the_nodes_of_a_class_have_its_labels_and_resources(
    nodes: list[dict[str, Any]], reasons: tuple[str, ...]
) -> None:
    found = class_ready({"pool": "x"}, nodes, ["a"], resources={"rdma_rail0": 63}, hint=" (restart it)")
    assert (found.ready, found.reasons) == (not reasons, reasons)


def test_lines_that_do_not_restart_device_plugins_tell_how() -> None:
    policy = {"kind": "NicClusterPolicy", "metadata": {"name": "nic-cluster-policy"}}
    owner = {"kind": "NicClusterPolicy", "name": "nic-cluster-policy"}
    labels = {"nvidia.network-operator.state": "state-RDMA-device-plugin"}
    plugin = {"metadata": {"name": "dp", "namespace": "op", "labels": labels, "ownerReferences": [owner]}}
    assert "kubectl --namespace op rollout restart daemonset/dp" in hint_of("25.10.0", policy, [plugin])
    assert hint_of(RELEASE, policy, [plugin]) == hint_of(RELEASE, None, []) == ""


@pytest.mark.parametrize(
    "selector",
    [
        {"a": "1", "b": "2"},
        {"matchLabels": {"a": "1", "b": "2"}},
        {
            "nodeSelectorTerms": [
                {
                    "matchExpressions": [
                        {"key": "a", "operator": "In", "values": ["1"]},
                        {"key": "b", "operator": "In", "values": ["2"]},
                    ]
                }
            ]
        },
    ],
    ids=["labels", "match labels", "terms"],
)
def test_objects_select_nodes_in_different_forms(selector: dict[str, Any]) -> None:
    assert selected_labels({"spec": {"nodeSelector": selector}}) == {"a": "1", "b": "2"}
    assert selected_labels({"spec": {}}) == selected_labels({}) == {}


def test_a_node_without_a_port_need_not_offer_its_resource() -> None:
    nodes = [node("a", "63", pool="x"), node("b", "0", pool="x"), node("c", None, pool="x")]
    found = class_ready(
        {"pool": "x"}, nodes, ["a", "b", "c"], resources={"rdma_rail0": 63}, hint="", without={"rdma_rail0": ["c"]}
    )
    assert found.reasons == ("rdma/rdma_rail0: expected 63 on each node, found b (0)",)
