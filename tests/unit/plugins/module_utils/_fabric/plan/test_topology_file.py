"""Topology files: what topograph and Slurm write, and what is wrong with others.

The files are made by hand after outputs that topograph's own tests expect (pkg/translate and tests/ci of
NVIDIA/topograph) and after the man pages topology.conf(5) and topology.yaml(5).
"""

from __future__ import annotations

import contextlib
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ansible_collections.gpufabric.rdma.plugins.module_utils._common.errors import ParseError
from ansible_collections.gpufabric.rdma.plugins.module_utils._fabric.plan.topology_file import (
    expand,
    parse_conf,
    parse_data,
)

TREE = """\
# switch.3.1=core
SwitchName=switch.3.1 Switches=switch.2.[1-2]
# switch.2.1=spine-1
SwitchName=switch.2.1 Switches=switch.1.[1-2]
switchname=switch.2.2 Switches=switch.1.3 LinkSpeed=400
# switch.1.1=leaf-1-1
SwitchName=switch.1.1 Nodes=gpu[08-10]
SwitchName=switch.1.2 Nodes=gpu11,gpu[13-14]   # gpu12 is in repair
SwitchName=switch.1.3 \\
  Nodes=gpu15
"""
BLOCKS = """\
# rack11=nvl-1-1
BlockName=rack11 Nodes=gpu[1-2]
BlockName=rack12 Nodes=gpu3
BlockName=rack13
BlockSizes=8,16,32
"""


def test_leaves_of_a_tree() -> None:
    assert parse_conf(TREE) == {
        "switch.1.1": ["gpu08", "gpu09", "gpu10"],
        "switch.1.2": ["gpu11", "gpu13", "gpu14"],
        "switch.1.3": ["gpu15"],
    }


def test_blocks() -> None:
    assert parse_conf(BLOCKS) == {"rack11": ["gpu1", "gpu2"], "rack12": ["gpu3"]}


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("", "no switch and no block in it has nodes"),
        ("SwitchName=core Switches=leaf[1-2]\n", "no switch and no block in it has nodes"),
        ("BlockSizes=8\n{}\n", 'line 2: expected SwitchName=, BlockName= or BlockSizes=, found "{}"'),
        ("Nodes=gpu1", 'line 1: expected SwitchName=, BlockName= or BlockSizes=, found "Nodes=gpu1"'),
        ("SwitchName=a Nodes=gpu[1-x]", '"gpu[1-x]" is not a list of names such as gpu[1-3,7]'),
        ("SwitchName=a Nodes=gpu[1-2", '"gpu[1-2" is not a list of names such as gpu[1-3,7]'),
        ("SwitchName=a Nodes=gpu[1-999999999]", '"gpu[1-999999999]" is more than 200000 names'),
        ("SwitchName=a Nodes=r[1-999]n[1-999]", '"r[1-999]n[1-999]" is more than 200000 names'),
    ],
)
def test_what_no_topology_conf_is(text: str, message: str) -> None:
    with pytest.raises(ParseError) as error:
        parse_conf(text)
    assert str(error.value) == message


YAML_TREE = {
    "topology": "topo1",
    "clusterDefault": False,
    "tree": {"switches": [{"switch": "S1", "children": "S2"}, {"switch": "S2", "nodes": "gpu[1,5]"}]},
}
YAML_BLOCK = {
    "topology": "topo2",
    "cluster_default": True,
    "block": {"blockSizes": [2], "blocks": [{"block": "block1", "nodes": "gpu[4-5]"}]},
}
FLAT = {"topology": "topo3", "clusterDefault": True, "flat": True}
GRAPH = {
    "instances": [
        {"id": "gpu1", "type": "H100", "network_layers": ["leaf-a", "spine-a"], "attributes": {"nvlink": "nvl-1"}},
        {"id": "gpu2", "network_layers": ["leaf-b"]},
        {"id": "gpu3"},
        {"id": "gpu4", "network_layers": ["leaf-a"]},
    ]
}


@pytest.mark.parametrize(
    ("data", "groups"),
    [
        ([YAML_TREE], {"S2": ["gpu1", "gpu5"]}),
        ([YAML_TREE, YAML_BLOCK], {"block1": ["gpu4", "gpu5"]}),
        ([FLAT, YAML_TREE], {"S2": ["gpu1", "gpu5"]}),
        (GRAPH, {"leaf-a": ["gpu1", "gpu4"], "leaf-b": ["gpu2"]}),
    ],
)
def test_structured_files(data: Any, groups: dict[str, list[str]]) -> None:
    assert parse_data(data) == groups


@pytest.mark.parametrize(
    ("data", "message"),
    [
        (None, "expected a list of topologies or a dict with instances, found nothing (null)"),
        ({"topology": 1}, "expected a list of topologies or a dict with instances, found a dict"),
        ([FLAT], "no topology with a tree or with blocks is in it"),
        ([{"tree": {"switches": []}}], "no switch and no block in it has nodes"),
        ([{"tree": None}], "no switch and no block in it has nodes"),
        ({"instances": [{"id": "a"}]}, "no switch and no block in it has nodes"),
    ],
)
def test_what_no_structured_file_is(data: Any, message: str) -> None:
    with pytest.raises(ParseError) as error:
        parse_data(data)
    assert str(error.value) == message


@pytest.mark.parametrize(
    ("text", "names"),
    [
        ("tux[0-3,12]", ["tux0", "tux1", "tux2", "tux3", "tux12"]),
        ("n[098-101]", ["n098", "n099", "n100", "n101"]),
        ("r[1-2]n[1-2].a", ["r1n1.a", "r1n2.a", "r2n1.a", "r2n2.a"]),
        ("a,b[1-2],,c", ["a", "b1", "b2", "c"]),
    ],
)
def test_hostlists(text: str, names: list[str]) -> None:
    assert expand(text) == names


@given(st.text(alphabet="gpu[]-,019= #\nSwitchNameNodes"))
def test_no_text_raises_anything_else(text: str) -> None:
    with contextlib.suppress(ParseError):
        parse_conf("SwitchName=a Nodes=" + text)
