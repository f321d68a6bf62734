"""When the line of a pass is shown, with a clock that the test sets."""

from __future__ import annotations

import time
from pathlib import Path

import pytest

from ansible_collections.gpufabric.rdma.plugins.module_utils._controller import progress_lines
from ansible_collections.gpufabric.rdma.plugins.module_utils._fabric.measure.schedule.progress import Progress

PASS = Progress("hosts", 1, 10, 16)


def test_a_line_is_shown_once_a_minute_until_the_pass_ends() -> None:
    now, shown = [1000.0], list[str]()
    lines = progress_lines.Lines(PASS, 1015.0, lambda text: shown.append(text), now=lambda: now[0])
    assert lines.next_in() == 60
    told = []
    for second in range(1000, 1300):
        now[0] = float(second)
        before = len(shown)
        lines.show()
        told += [second] * (len(shown) - before)
    assert told == [1060, 1120]
    assert shown[0].startswith("hosts, pass 1: 2 of 10 rounds done, 1 min 55 s left")


def test_lines_are_shown_while_something_else_runs(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(progress_lines, "INTERVAL", 0.02)
    shown: list[str] = []
    with progress_lines.shown(progress_lines.Lines(PASS, progress_lines.clock(), shown.append)):
        time.sleep(0.5)
    count = len(shown)
    assert count >= 2
    time.sleep(0.1)
    assert len(shown) == count


def test_the_line_of_a_module_is_shown_twice_a_minute_once_there_is_one(tmp_path: Path) -> None:
    now, shown, path = [0.0], list[str](), tmp_path / "line"
    lines = progress_lines.Reported(path, shown.append, now=lambda: now[0])
    for second, text in ((29, "early"), (30, ""), (60, "a" * 9000), (61, "b"), (90, "c")):
        now[0] = float(second)
        if text:
            path.write_text(text)
        elif path.exists():
            path.unlink()
        lines.show()
    assert shown == ["a" * 4096, "c"]


def test_the_clock_is_that_since_the_boot(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "uptime").write_text("12.34 5.0\n")
    monkeypatch.setattr(progress_lines, "UPTIME", tmp_path / "uptime")
    assert progress_lines.clock() == 12.34
    monkeypatch.setattr(progress_lines, "UPTIME", tmp_path / "absent")
    assert abs(progress_lines.clock() - time.time()) < 5
