"""make demo shows the table of its own run, never that of an earlier one."""

from __future__ import annotations

import json
import subprocess
from pathlib import Path
from typing import Any

import pytest
from tests.tools import demo

OLD, NEW = "20261122T000000Z-00000a", "20261123T000000Z-00000b"


def report(folder: Path, run: str, verdict: str) -> None:
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "report.json").write_text(json.dumps({"run": {"id": run}, "verdict": verdict}))
    (folder / "report.txt").write_text(f"TABLE OF {run}\n")


@pytest.mark.parametrize(("rc", "made", "shown", "code"), [
    (2, None, None, 2),
    (2, "fail", NEW, 2),
    (0, "pass", NEW, 0),
    (0, "no_data", NEW, 1),
    # A playbook that ends well without a report of its own has measured nothing.
    (0, None, None, 1),
])  # fmt: skip
@pytest.mark.parametrize("before", [True, False])
def test_only_a_report_of_this_demo_is_shown(
    rc: int, made: str | None, shown: str | None, code: int, before: bool, tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str],
) -> None:  # fmt: skip
    folder = tmp_path / "report"
    monkeypatch.setattr(demo, "REPORT", folder)
    if before:
        report(folder, OLD, "pass")

    def run(argv: list[str], **_options: Any) -> subprocess.CompletedProcess[str]:
        playbook = argv[0] == "ansible-playbook"
        if playbook and made:
            report(folder, NEW, made)
        return subprocess.CompletedProcess(argv, rc if playbook else 0)

    monkeypatch.setattr(demo.subprocess, "run", run)
    assert demo.main() == code
    printed = capsys.readouterr().out
    assert [name for name in (OLD, NEW) if f"TABLE OF {name}" in printed] == ([shown] if shown else [])
