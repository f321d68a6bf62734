# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Tests that are too slow from host memory and pass from GPU memory: the same ports, cables and switches carry both."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from ...._common.reader import some
from ..schedule.schedule import Measurement, subject
from .wording import SUSPECTED, Diagnosis

Result = Mapping[str, Any]
_SHOWN = 4


def split(results: Sequence[Result]) -> tuple[Sequence[Result], list[Result]]:
    """Return the results of one place without those that only host memory makes too slow, and these."""
    slow = [result for result in results if result.get("memory") == "host" and result["verdict"] == "fail"]
    if not slow:
        return results, []
    passed = {
        _way(result) for result in results if result["verdict"] == "pass" and result.get("memory") not in (None, "host")
    }
    hit = [result for result in slow if _way(result) in passed]
    known = set(map(subject, hit))
    return ([result for result in results if subject(result) not in known] if hit else results), hit


def _way(result: Result) -> Measurement:
    """Return what a test measured, whatever the memory."""
    return subject(result)._replace(memory="")


def diagnoses(where: str, hit: Sequence[Result]) -> list[Diagnosis]:
    """Return a diagnosis for all of them, [] without any. Which side of a pair is slow is not known."""
    if not hit:
        return []
    rails = dict.fromkeys(result["rail"] for result in hit)
    rail = next(iter(rails)) if len(rails) == 1 else None
    pairs = list(dict.fromkeys(f"{result['client']} to {result['server']}" for result in hit))
    count = "1 test is" if len(hit) == 1 else f"{len(hit)} tests are"
    return [
        Diagnosis(
            where=where,
            kind="unknown",
            rail=rail,
            host=None,
            peer=None,
            direction=None,
            confidence=SUSPECTED,
            failed=len(hit),
            tests=len(hit),
            evidence=tuple(
                f"{result['client']} to {result['server']} {result['rail']}: passes from GPU memory, from host memory"
                f" {result.get('reason') or 'too slow'}"
                for result in hit[:_SHOWN]
            ),
            text=(
                f"{rail or 'all rails'}: {count} too slow from host memory, and the same pass from GPU memory"
                f" ({some(pairs)}), so ports, cables and switches are not the cause. Check the memory of these hosts"
                " (channels, NUMA nodes), their IOMMU and the PCIe links to the processor. If only GPU memory matters,"
                " set tests.compare_host_memory: false"
            ),
        )
    ]
