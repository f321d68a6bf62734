# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What the way to GPU memory costs: the same tests from GPU memory and from host memory, by rail."""

from __future__ import annotations

import statistics
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from ..._common.reader import some
from ..measure.judge.verdict import FAIL, PASS, amount
from ..plan.gpu_affinity import BELOW_SWITCHES

_LOOK = (
    "PCIe ACS between NIC and GPU (role pcie_acs), the IOMMU of the host, the size of the BAR of the GPU, and DMA-BUF"
    " or nvidia-peermem (role peer_memory)"
)
Result = Mapping[str, Any]
# The same test from GPU memory and from host memory.
_Both = tuple[Result, Result]


def rows(results: Iterable[Result]) -> list[dict[str, Any]]:
    """Return a row per place, rail and test that was done from both memories, [] without such.

    ``gpu`` and ``host`` are medians of the same pairs, ``low`` counts those that pass from host memory and fail from
    GPU memory; ``finding`` states where to look then, and is empty otherwise. A port is never accused.
    """
    found: dict[tuple[Any, ...], dict[str, Result]] = {}
    for result in results:
        if result.get("memory") and result["value"] is not None:
            get = result.get
            what = (result["where"], result["rail"], result["test"], get("size", 0))
            key = (*what, result["client"], result["server"], get("peer_rail", ""), get("star", ""))
            found.setdefault(key, {})["host" if result["memory"] == "host" else "gpu"] = result
    groups: dict[tuple[Any, ...], list[_Both]] = {}
    for key, both in found.items():
        if len(both) > 1:
            groups.setdefault(key[:4], []).append((both["gpu"], both["host"]))
    return [_row(groups[key]) for key in sorted(groups)]


def _row(own: Sequence[_Both]) -> dict[str, Any]:
    first = own[0][0]
    gpu, host = (statistics.median(both[at]["value"] for both in own) for at in (0, 1))
    low = [both for both in own if both[0]["verdict"] == FAIL and both[1]["verdict"] == PASS]
    rate = first["unit"] == "Gb/s" and host > 0
    what = {key: first[key] for key in ("where", "rail", "test", "size", "unit") if key in first}
    size = f" {first['size']} B" if first.get("size") else ""
    text = f"{first['rail']} ({first['where']}) {first['test']}{size}: GPU memory {amount(gpu, first['unit'])}"
    text += f", host memory {amount(host, first['unit'])}" + (f" ({100 * gpu / host:.0f} %)" if rate else "")
    return {
        **what,
        "gpu": gpu,
        "host": host,
        "share": round(gpu / host, 3) if rate else None,
        "tests": len(own),
        "low": len(low),
        "text": text,
        "finding": f"{text}. {_finding(low)}" if low else "",
    }


def _finding(low: Sequence[_Both]) -> str:
    pairs = [f"{gpu['client']} -> {gpu['server']}" for gpu, _host in low]
    return (
        f"From host memory the same tests pass ({some(pairs)}), so ports and links are not the cause."
        f" Check {_LOOK}{_distance(low)}"
    )


def _distance(low: Sequence[_Both]) -> str:
    """Return which GPUs are not behind the PCIe switches of their NIC, as a sentence of its own."""
    far = {}
    for result, _host in low:
        for side, gpu in (result.get("gpu") or {}).items():
            if gpu.get("path") not in BELOW_SWITCHES:
                far[f"{result[side]} ({gpu.get('path')}, GPU {gpu.get('bdf')})"] = True
    return f". NIC and GPU are not behind the same PCIe switch on {some(sorted(far))}" if far else ""
