"""Testers live longer than any measurement of their plan."""

from __future__ import annotations

from typing import Any

from hypothesis import given, settings
from hypothesis import strategies as st

from ansible_collections.gpufabric.rdma.plugins.module_utils._fabric.measure.judge.step import step
from ansible_collections.gpufabric.rdma.plugins.module_utils._fabric.measure.readings.tester_log import Evidence
from ansible_collections.gpufabric.rdma.plugins.module_utils._fabric.measure.schedule.hugepages import memory_at_once
from ansible_collections.gpufabric.rdma.plugins.module_utils._fabric.measure.schedule.lifetime import LEAST, lifetime


def plan(hosts: int, **tests: Any) -> dict[str, Any]:
    names = [f"h{number}" for number in range(hosts)]
    return {
        "rails": [{"name": "r0", "index": 0, "link_layer": "ethernet", "mtu": 9000}],
        "tests": tests,
        "endpoints": {"pod": names, "host": names},
        "expectations": {"r0": {}},
        "gpus": {"r0": {name: {"bdf": "0000:1b:00.0", "path": "PIX"} for name in names}},
        "thresholds": {"gpu_paths": {}, "outliers": {}, "unsteady": {"severity": "failure", "background": 0.001}},
    }


def described(number: int) -> str:
    return (
        "=== gpufabric describe v1\nrail r0 device=mlx5_0 port=1 gid=3 address=10.0.0."
        + str(number + 1)
        + "\n=== gpufabric described 1\n"
    )


@settings(max_examples=25)
@given(st.integers(2, 12), st.integers(1, 3600), st.integers(0, 10), st.integers(1, 3), st.integers(1, 600))
def test_it_is_longer_than_what_is_announced(
    hosts: int, duration: int, retries: int, repeats: int, margin: int
) -> None:
    memory = "cuda:dmabuf" if retries % 2 else "host"
    made = plan(hosts, duration=duration, retries=retries, repeats=repeats, memory=memory)
    names = made["endpoints"]["pod"]
    evidence = Evidence({name: described(number) for number, name in enumerate(names)}, {})
    told = step(made, "pod", evidence, slot_margin=margin)
    assert not told.done and lifetime(made, names, margin) >= LEAST + 2 * told.worst


def test_what_cannot_be_planned_yet_has_the_least() -> None:
    assert lifetime(plan(2), ["h0"], 6) == LEAST


def test_memory_follows_what_the_tests_allocate() -> None:
    usual = memory_at_once(plan(2))
    assert 512 << 20 < usual < 1 << 30
    assert memory_at_once(plan(2, sizes=[1 << 30], queue_pairs=1)) > usual + (4 << 30)
    assert memory_at_once(plan(2, memory="cuda:dmabuf")) > usual + (2 << 30)
    assert memory_at_once(plan(64, mode="incast", fan=32)) > usual + 31 * (128 << 20)
