"""The product looks for the marks that the tester writes."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from ansible_collections.gpufabric.rdma.plugins.module_utils._fabric.measure.readings import frames

ROOT = Path(__file__).resolve().parents[7]
TESTER = (ROOT / "roles/rdma_validate/files/tester.sh").read_text()
# As a shell writes the number of a batch.
NUMBER = 12345


@pytest.mark.parametrize(
    "mark",
    [
        frames.DESCRIBE,
        frames.DESCRIBED,
        frames.MARK + frames.TEST,
        frames.MARK + frames.END,
        frames.MARK + frames.PORT,
        frames.begin(NUMBER),
        frames.done(NUMBER),
        frames.kept(NUMBER),
    ],
)
def test_the_tester_writes_it(mark: str) -> None:
    written = mark.replace(str(NUMBER), "$number")
    assert f'"{written}' in TESTER


def test_the_tester_writes_no_other_mark() -> None:
    written = set(re.findall(r'"=== gpufabric (batch \$number \w+|\w+)', TESTER))
    numbered = {f"batch $number {word}" for word in ("begin", "done", "kept")}
    # People read "idle" in the log of a pod; nothing looks for it.
    assert written == {"describe", "described", "test", "end", "port", "idle", *numbered}


def test_nothing_else_spells_a_mark() -> None:
    found = [
        str(path.relative_to(ROOT))
        for path in sorted((ROOT / "plugins").rglob("*.py"))
        if frames.MARK.strip() in path.read_text()
    ]
    assert found == ["plugins/module_utils/_fabric/measure/readings/frames.py"]
