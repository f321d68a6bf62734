"""The options of tests: defaults, what is refused, and each message."""

from __future__ import annotations

from typing import Any

import pytest

from ansible_collections.gpufabric.rdma.plugins.module_utils._common.reader import Reader
from ansible_collections.gpufabric.rdma.plugins.module_utils._fabric.intent.kinds import KINDS
from ansible_collections.gpufabric.rdma.plugins.module_utils._fabric.intent.tests import (
    DEFAULTS,
    complete,
    read_only,
    read_tests,
)


def read(**tests: Any) -> tuple[dict[str, Any], list[str]]:
    problems: list[str] = []
    return read_tests(Reader(tests, "rdma_fabric.tests", problems)), problems


def test_nothing_given_is_the_defaults_without_a_problem() -> None:
    assert read() == (dict(DEFAULTS), [])


def test_what_a_plan_of_an_earlier_release_lacks_is_the_default() -> None:
    assert complete({"duration": 3}) == {**DEFAULTS, "duration": 3}


GROUPS = {"rack1": ["a"], "rack2": ["b"]}
BAD: list[tuple[dict[str, Any], str]] = [
    (
        {"mode": "allpairs"},
        "mode: expected one of auto, all_pairs, ring, sampled, topology, incast, one_to_many, "
        'loopback, found "allpairs" (text)',
    ),
    ({"kinds": []}, "kinds: empty: nothing would be measured"),
    ({"kinds": ["write_bw", "write_bw"]}, "kinds: an item is listed twice. Set repeats to measure it several times"),
    ({"sizes": [4096, 4096]}, "sizes: an item is listed twice. Set repeats to measure it several times"),
    ({"sizes": [4096, "1M"]}, 'sizes: expected whole numbers from 2 to 1073741824, found "1M" (text) in it'),
    ({"sizes": [True]}, "sizes: expected whole numbers from 2 to 1073741824, found true (true or false) in it"),
    (
        {"memory": "cuda"},
        'memory: expected one of host, cuda:dmabuf, cuda:peermem, cuda:data_direct, found "cuda" (text)',
    ),
    (
        {"memory": "cuda:dmabuf", "kinds": ["write_lat"]},
        "kinds: write_lat cannot use memory cuda:dmabuf. Use read_lat or send_lat, or set memory: host",
    ),
    (
        {"memory": "cuda:peermem", "inline": 64},
        "inline: messages in cuda:peermem memory cannot be inline. Omit inline, or set memory: host",
    ),
    (
        {"memory": "cuda:peermem", "hugepages": True},
        "hugepages: the buffers are in cuda:peermem memory. Omit hugepages, or set memory: host",
    ),
    (
        {"kinds": ["read_bw"], "inline": 64},
        "inline: read_bw does not support inline messages. Omit inline, or measure read_bw in a separate run",
    ),
    (
        {"rdma_cm": True, "control": "management"},
        "control: rdma_cm connects over the rail itself. Set control: rail, or rdma_cm: false",
    ),
    (
        {"directions": "together", "kinds": ["send_lat"]},
        "directions: together measures bandwidth, but send_lat measures round trips. Set swap or one",
    ),
    (
        {"directions": "together", "mode": "incast"},
        "directions: mode incast sends in one direction only. Set swap or one",
    ),
    (
        {"kinds": ["read_lat"], "mode": "incast"},
        "kinds: mode incast shares the bandwidth of one port, so read_lat would not be valid. Use *_bw",
    ),
    (
        {"cross_rail": True, "mode": "loopback"},
        "cross_rail: mode loopback selects its rails itself. Set another mode, or cross_rail: false",
    ),
    (
        {"mode": "topology"},
        "groups: missing. Mode topology measures inside and across groups of hosts. Set them, such as {rack1: "
        "[gpu-1, gpu-2]}",
    ),
    (
        {"groups": {"rack1": "gpu-1"}},
        'groups.rack1: expected a list of hosts, or a dict of smaller groups, found "gpu-1" (text)',
    ),
    (
        {"groups": {"spine": {"leaf": 7}}},
        "groups.spine.leaf: expected a list of hosts, or a dict of smaller groups, found 7 (number)",
    ),
    (
        {"only": {"pairs": [["a"]]}},
        "only.pairs: expected lists of two hosts such as [gpu-1, gpu-2], found a list in it",
    ),
    (
        {"only": {"pairs": [["a", "a"]]}},
        "only.pairs: expected lists of two hosts such as [gpu-1, gpu-2], found a list in it",
    ),
    ({"only": {"host": ["a"]}}, 'only.host: unknown key; did you mean "hosts"?'),
    ({"traffic_class": 256}, "traffic_class: expected 0 to 255, found 256"),
    ({"fan": 1}, "fan: expected 2 to 32, found 1"),
]


@pytest.mark.parametrize(("tests", "message"), BAD, ids=[message[:40] for _tests, message in BAD])
def test_what_is_refused(tests: dict[str, Any], message: str) -> None:
    assert read(**tests)[1] == [f"rdma_fabric.tests.{message}"]


@pytest.mark.parametrize(
    "tests",
    [
        {"memory": "cuda:dmabuf", "kinds": ["read_lat", "send_lat", "write_bw"]},
        {"kinds": list(KINDS)},
        {"inline": 0, "kinds": ["read_bw"]},
        {"mode": "topology", "groups": GROUPS, "cross_rail": True},
        {"directions": "together", "kinds": ["read_bw", "send_bw"]},
    ],
)
def test_what_goes_together(tests: dict[str, Any]) -> None:
    found, problems = read(**tests)
    assert problems == [] and {key: found[key] for key in tests} == tests


def test_groups_of_a_tree_are_its_leaves() -> None:
    tree = {"spine1": {"leaf1": ["a", "b"], "leaf2": ["c"]}, "spine2": {"leaf1": ["d"]}}
    assert read(groups=tree)[0]["groups"] == {"leaf1": ["a", "b"], "leaf2": ["c"], "spine2.leaf1": ["d"]}


def test_only_of_one_run_is_read_the_same_way() -> None:
    problems: list[str] = []
    assert read_only(Reader({"hosts": ["a"], "pairs": [["a", "b"]]}, "only", problems)) == {
        "hosts": ["a"],
        "rails": [],
        "pairs": [["a", "b"]],
    }
    assert problems == []
