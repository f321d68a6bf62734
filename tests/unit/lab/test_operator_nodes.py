# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Labels, announced resources and pool blocks of the stand-in operator."""

from __future__ import annotations

from typing import Any

import pytest
from tests.lab.chart.files.standin import components, nodes

WAIT, CONFIGURATION = components.WAIT_LABEL, nodes.CONFIGURATION_LABEL


def node(name: str = "n1", nic: bool = True, **labels: Any) -> dict[str, Any]:
    found = {components.NIC_LABEL: "true"} if nic else {}
    return {"metadata": {"name": name, "labels": {**found, **labels}}, "status": {"capacity": {}}}


def test_nic_nodes_get_the_wait_labels_even_without_a_policy() -> None:
    assert nodes.label_changes(node(), False, False) == {WAIT: "false", CONFIGURATION: "false"}


def test_labels_go_with_the_nic_label() -> None:
    one = node(nic=False)
    one["metadata"]["labels"] = {WAIT: "false", CONFIGURATION: "false"}
    assert nodes.label_changes(one, False, False) == {WAIT: None, CONFIGURATION: None}


def test_a_node_that_waits_and_has_a_driver() -> None:
    one = node()
    one["metadata"]["labels"].update({WAIT: "false", CONFIGURATION: "false"})
    wanted = {WAIT: "true", nodes.UPGRADE_LABEL: "upgrade-done"}
    assert nodes.label_changes(one, True, True) == wanted


def test_resources_are_announced_and_go_to_zero() -> None:
    one = node()
    one["status"]["capacity"] = {"cpu": "8", "rdma/old": "63", "rdma/kept": "63"}
    before = {"rdma/old", "rdma/kept", "rdma/unknown"}
    assert nodes.capacity_patch(one, {"rdma/kept": 63, "rdma/new": 1}, before) == [
        {"op": "add", "path": "/status/capacity/rdma~1new", "value": "1"},
        {"op": "add", "path": "/status/allocatable/rdma~1new", "value": "1"},
        {"op": "add", "path": "/status/capacity/rdma~1old", "value": "0"},
        {"op": "add", "path": "/status/allocatable/rdma~1old", "value": "0"},
    ]


@pytest.mark.parametrize("config", [None, "{this is not json}", "5", '{"configList": [{}]}'])
def test_a_configuration_that_is_none_announces_nothing(config: str | None) -> None:
    policy = {"spec": {"rdmaSharedDevicePlugin": {"config": config}}}
    assert components.resources(policy) == {}


def pool(subnet: str, size: int, allocations: Any = None, selector: Any = None) -> dict[str, Any]:
    spec = {"subnet": subnet, "perNodeBlockSize": size}
    if selector is not None:
        spec["nodeSelector"] = selector
    return {"spec": spec, "status": {"allocations": allocations or []}}


def blocks(found: list[dict[str, str]]) -> list[tuple[str, str, str]]:
    return [(one["nodeName"], one["startIP"], one["endIP"]) for one in found]


def test_blocks_begin_behind_the_network_address() -> None:
    found = nodes.allocations(pool("192.168.0.128/25", 2), [node("n2"), node("n1")])
    assert blocks(found) == [
        ("n1", "192.168.0.129", "192.168.0.130"),
        ("n2", "192.168.0.131", "192.168.0.132"),
    ]


def test_no_block_holds_the_broadcast_address() -> None:
    """Of 16 addresses 14 can be given: three blocks of 4, and the fourth node gets none."""
    found = nodes.allocations(pool("10.0.0.0/28", 4), [node(f"n{number}") for number in range(1, 5)])
    assert [name for name, _, _ in blocks(found)] == ["n1", "n2", "n3"]


def test_a_node_keeps_its_block_and_a_new_one_fills_the_hole() -> None:
    one = pool("10.0.0.0/24", 4)
    one["status"]["allocations"] = nodes.allocations(one, [node("a"), node("b"), node("c")])
    found = nodes.allocations(one, [node("b"), node("c"), node("d")])
    assert blocks(found) == [
        ("d", "10.0.0.1", "10.0.0.4"),
        ("b", "10.0.0.5", "10.0.0.8"),
        ("c", "10.0.0.9", "10.0.0.12"),
    ]


def test_another_block_size_gives_all_blocks_anew() -> None:
    old = nodes.allocations(pool("10.0.0.0/24", 4), [node("a"), node("b")])
    found = nodes.allocations(pool("10.0.0.0/24", 8, old), [node("a"), node("b")])
    assert blocks(found) == [("a", "10.0.0.1", "10.0.0.8"), ("b", "10.0.0.9", "10.0.0.16")]


@pytest.mark.parametrize(
    ("expression", "names"),
    [
        ({"key": "rack", "operator": "In", "values": ["1"]}, ["a"]),
        ({"key": "rack", "operator": "NotIn", "values": ["1"]}, ["b", "c"]),
        ({"key": "rack", "operator": "Exists"}, ["a", "b"]),
        ({"key": "rack", "operator": "DoesNotExist"}, ["c"]),
    ],
)
def test_only_matching_nodes_get_blocks(expression: dict[str, Any], names: list[str]) -> None:
    selector = {"nodeSelectorTerms": [{"matchExpressions": [expression]}]}
    fleet = [node("a", rack="1"), node("b", rack="2"), node("c")]
    found = nodes.allocations(pool("10.0.0.0/24", 4, selector=selector), fleet)
    assert [name for name, _, _ in blocks(found)] == names
