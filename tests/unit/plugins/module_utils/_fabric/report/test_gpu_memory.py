"""What the way to GPU memory costs, and where to look when it is low. Cost: less than a second."""

from __future__ import annotations

from typing import Any

import pytest

from ansible_collections.gpufabric.rdma.plugins.module_utils._fabric.report.gpu_memory import rows

GPU = {"bdf": "0000:1b:00.0", "path": "PIX"}


def result(memory: str, value: float | None, verdict: str = "pass", **more: Any) -> dict[str, Any]:
    own = {"where": "host", "rail": "rail0", "client": "a", "server": "b", "test": "write_bw", "unit": "Gb/s"}
    gpu = {} if memory == "host" else {"gpu": {"client": GPU, "server": GPU}}
    return {**own, "memory": memory, "value": value, "verdict": verdict, **gpu, **more}


def test_both_memories_stand_side_by_side_for_the_same_pairs() -> None:
    found = [
        result("cuda:dmabuf", 372.0),
        result("host", 390.0),
        # The median of the same pairs: what was measured from GPU memory alone does not count.
        result("cuda:dmabuf", 100.0, client="c"),
        result("cuda:dmabuf", None, "no_data", client="d"),
        result("host", 390.0, client="d"),
    ]
    (row,) = rows(found)
    assert row == {
        "where": "host",
        "rail": "rail0",
        "test": "write_bw",
        "unit": "Gb/s",
        "gpu": 372.0,
        "host": 390.0,
        "share": 0.954,
        "tests": 1,
        "low": 0,
        "text": "rail0 (host) write_bw: GPU memory 372.0 Gb/s, host memory 390.0 Gb/s (95 %)",
        "finding": "",
    }
    # Without GPU memory, results name no memory.
    assert rows([{key: value for key, value in found[1].items() if key != "memory"}]) == []


LOOK = (
    "rail0 (host) write_bw: GPU memory 181.0 Gb/s, host memory 390.0 Gb/s (46 %). From host memory the same tests pass"
    " (a -> b), so ports and links are not the cause. Check PCIe ACS between NIC and GPU (role pcie_acs), the IOMMU of"
    " the host, the size of the BAR of the GPU, and DMA-BUF or nvidia-peermem (role peer_memory)"
)


@pytest.mark.parametrize(
    ("gpu", "host", "path", "finding"),
    [
        ("fail", "pass", "PIX", LOOK),
        (
            "fail",
            "pass",
            "SYS",
            f"{LOOK}. NIC and GPU are not behind the same PCIe switch on a (SYS, GPU 0000:1b:00.0)",
        ),
        # Both are low: that is a port, a link or a switch, which the diagnosis names.
        ("fail", "fail", "PIX", ""),
        ("pass", "fail", "PIX", ""),
    ],
)
def test_a_finding_needs_host_memory_to_pass(gpu: str, host: str, path: str, finding: str) -> None:
    both = {"client": {**GPU, "path": path}, "server": GPU}
    (row,) = rows([result("cuda:dmabuf", 181.0, gpu, gpu=both), result("host", 390.0, host)])
    assert (row["finding"], row["low"]) == (finding, 1 if finding else 0)


def test_latency_has_no_share() -> None:
    (row,) = rows([result("cuda:dmabuf", 4.25, unit="us", size=64), result("host", 2.5, unit="us", size=64)])
    assert (row["share"], row["text"]) == (
        None,
        "rail0 (host) write_bw 64 B: GPU memory 4.25 us, host memory 2.5 us",
    )
