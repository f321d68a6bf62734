# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Programs that outlive the command that started them, and the lock."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest
from tests.lab import lock, process
from tests.lab.errors import LabError

ENDLESS = [sys.executable, "-c", "print('hello', flush=True); import signal; signal.pause()"]


@pytest.fixture(autouse=True)
def run_folder(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Path:
    monkeypatch.setattr(process, "RUN", tmp_path)
    return tmp_path


def test_a_program_is_found_by_its_name_and_stopped(run_folder: Path) -> None:
    pid = process.start("one", ENDLESS, cwd=run_folder)
    assert process.running() == {"one": pid}
    process.stop(["one", "never-started"])
    assert process.running() == {}


def test_a_second_one_of_the_name_is_refused(run_folder: Path) -> None:
    pid = process.start("one", ENDLESS, cwd=run_folder)
    with pytest.raises(LabError) as error:
        process.start("one", ENDLESS, cwd=run_folder)
    process.kill("one")
    assert str(error.value) == f"one runs already (process {pid})"
    assert process.running() == {}


def test_other_folders_programs_are_not_ours(run_folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    process.start("one", ENDLESS, cwd=run_folder)
    with monkeypatch.context() as patch:
        patch.setattr(process, "RUN", run_folder / "elsewhere")
        assert process.running() == {}
    process.kill("one")


def test_what_it_said_is_at_hand(run_folder: Path) -> None:
    process.start("one", [sys.executable, "-c", "print('a\\nb')"], cwd=run_folder)
    process.stop(["one"])
    process.log_path("two").write_text("1\n2\n")
    assert process.log_tail("two") == "1\n2"
    assert process.log_tail("never-started") == ""


def test_the_lock_tells_who_has_it(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    path = tmp_path / "lock"
    monkeypatch.setattr(lock, "_PATH", path)
    with lock.held("up"):
        assert lock.holder(path).endswith(")")
        assert "(up, since " in lock.holder(path)
    assert lock.holder(path) == ""
