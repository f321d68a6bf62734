"""How many huge pages perftest needs at once."""

from __future__ import annotations

from typing import Any

import pytest

from ansible_collections.gpufabric.rdma.plugins.module_utils._fabric.measure.schedule.hugepages import pages_at_once

MIB = 1 << 20


@pytest.mark.parametrize(
    ("rails", "hosts", "tests", "pages"),
    [
        (8, 3, {"hugepages": False}, 0),
        # 2 x 4 queue pairs x 64 KiB are less than a page; one program a rail.
        (1, 2, {}, 1),
        (8, 2, {}, 8),
        # 2 x 4 x 8 MiB.
        (1, 2, {"size": 8 * MIB}, 32),
        (2, 2, {"size": 8 * MIB, "queue_pairs": 1}, 16),
        # The largest of the sizes counts, and `size` not at all beside them; latency has one queue pair.
        (1, 2, {"size": 1 << 30, "sizes": [64, MIB]}, 4),
        (1, 2, {"kinds": ["write_lat"], "latency_size": 4 * MIB, "queue_pairs": 64}, 4),
        (1, 2, {"kinds": ["write_bw", "write_lat"], "latency_size": 4 * MIB}, 4),
        # Small messages take a page of 4 KiB each: 2 x 1024 x 4 KiB.
        (1, 2, {"size": 2, "queue_pairs": 1024}, 4),
        # A size that is no multiple of a cache line is rounded up.
        (1, 2, {"size": MIB + 1, "queue_pairs": 1}, 2),
        (1, 2, {"size": MIB, "queue_pairs": 1}, 1),
        (8, 2, {"rails_at_once": False}, 1),
        (8, 1, {"mode": "loopback", "rails_at_once": False}, 8),
        # Whose port is shared has a program for each of the others.
        (2, 9, {"mode": "incast", "fan": 4}, 8),
        (2, 3, {"mode": "one_to_many", "fan": 8}, 4),
    ],
)
def test_pages_of_all_that_runs_at_once(rails: int, hosts: int, tests: dict[str, Any], pages: int) -> None:
    plan = {
        "rails": [{"name": f"rail{index}"} for index in range(rails)],
        "endpoints": {"pod": [f"h{index}" for index in range(hosts)]},
        "tests": {"hugepages": True, **tests},
    }
    assert pages_at_once(plan) == pages


def test_a_plan_without_tests_needs_none() -> None:
    assert pages_at_once({"rails": [], "endpoints": {"pod": []}}) == 0
