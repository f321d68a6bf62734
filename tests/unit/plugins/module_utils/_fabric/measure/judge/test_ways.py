"""From which address a client connects. Milliseconds."""

from __future__ import annotations

from typing import Any

import pytest
from tests.unit.support import tester_logs

from ansible_collections.gpufabric.rdma.plugins.module_utils._fabric.measure.judge.step import step
from ansible_collections.gpufabric.rdma.plugins.module_utils._fabric.measure.readings.tester_log import Evidence

HOSTS = ["gpu-1", "gpu-2"]
FLAT = {"subnet": "10.0.0.0/24", "host_prefix": None}
ROUTED = {"subnet": "10.0.0.0/24", "host_prefix": 31}
# The addresses of hosts are theirs (`addresses: keep`).
KEPT = {"subnet": None, "host_prefix": None}


@pytest.mark.parametrize(
    ("rail", "binds", "tests", "expected"),
    [
        (FLAT, "yes", {}, ""),
        (ROUTED, "yes", {}, "--bind_source_ip=10.0.0.1"),
        (KEPT, "yes", {}, "--bind_source_ip=10.0.0.1"),
        # perftest before 23.07 has no such option.
        (ROUTED, "no", {}, ""),
        (ROUTED, "yes", {"control": "management"}, ""),
        # RDMA-CM takes the device from the address.
        (FLAT, "yes", {"rdma_cm": True}, "--bind_source_ip=10.0.0.1"),
        (FLAT, "no", {"rdma_cm": True}, ""),
    ],
)
def test_source_of_the_client(rail: dict[str, Any], binds: str, tests: dict[str, Any], expected: str) -> None:
    made = tester_logs.plan(HOSTS, ["rail0"], **tests)
    made["rails"][0].update(rail)
    texts = {
        name: tester_logs.described(
            [f'rail0 device=mlx5_0 port=1 netdev=rail0 gid=3 gid_type="RoCE v2" address=10.0.0.{name[-1]}'],
            f"perftest=6.24 control=192.0.2.{name[-1]} binds={binds}",
        )
        for name in HOSTS
    }
    lines = step(made, "host", Evidence(texts, {})).lines
    words = [[word for word in lines[name][0].split() if "bind" in word] for name in HOSTS]
    assert words == [[expected] if expected else [], []]
