"""The line that shows how far a pass is."""

from __future__ import annotations

import pytest

from ansible_collections.gpufabric.rdma.plugins.module_utils._fabric.measure.schedule.progress import Progress, line

EARLIER = {"pass": 120, "fail": 3, "no_data": 1}


@pytest.mark.parametrize(("verdicts", "elapsed", "text"), [
    ({}, -15, "hosts, pass 2: 0 of 126 rounds done, 33 min 51 s left; no finished pass"),
    ({}, 15.9, "hosts, pass 2: 0 of 126 rounds done, 33 min 20 s left; no finished pass"),
    (EARLIER, 160, "hosts, pass 2: 10 of 126 rounds done, 30 min 56 s left;"
     " finished passes: 120 passed, 3 failed, 1 without data"),
    ({"pass": 4}, 2016, "hosts, pass 2: 126 of 126 rounds done, 0 s left; finished passes: 4 passed"),
    ({"pass": 4, "fail": 0}, 9999, "hosts, pass 2: 126 of 126 rounds done, 0 s left; finished passes: 4 passed"),
])  # fmt: skip
def test_line(verdicts: dict[str, int], elapsed: float, text: str) -> None:
    assert line(Progress("hosts", 2, 126, 16, verdicts), elapsed) == text


def test_one_round() -> None:
    assert line(Progress("pods", 1, 1, 90), 60) == "pods, pass 1: 0 of 1 round done, 30 s left; no finished pass"
