"""What the gates' summary says of tests that were skipped."""

from __future__ import annotations

from pathlib import Path
from typing import IO

import pytest
from tests.check import __main__ as check
from tests.check.gates import Gate, all_gates, skipped


@pytest.mark.parametrize(
    ("log", "said"),
    [
        ("....s.s\n2300 passed, 12 skipped in 431.12s (0:07:11)\n", "12 skipped"),
        ("F\n1 failed, 20 passed, 3 skipped, 1 warning in 2s\n", "3 skipped"),
        ("....\n2312 passed in 431.12s\n", ""),
        ("a test printed 7 skipped\n2312 passed in 431.12s\n", ""),
        ("", ""),
    ],
)
def test_skipped_tests_are_read_from_the_last_line(log: str, said: str) -> None:
    assert skipped(log) == said


def test_the_gate_of_unit_tests_says_what_was_skipped() -> None:
    assert {gate.name: gate.note for gate in all_gates()}["unit"] is skipped


def test_a_gate_that_skipped_tests_does_not_just_say_passed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def play(log: IO[str]) -> None:
        log.write("5 passed, 2 skipped in 1s\n")

    monkeypatch.setattr(check, "LOGS", tmp_path)
    text = check.summary([check.run(Gate("unit", play, note=skipped)), check.run(Gate("ruff", lambda _log: None))])
    assert [line.split("  ")[1] for line in text.splitlines()[2:4]] == ["passed, 2 skipped", "passed"]
    assert text.endswith("2 passed, 0 failed, 0 left out")
    assert capsys.readouterr().out.startswith("passed, 2 skipped")
