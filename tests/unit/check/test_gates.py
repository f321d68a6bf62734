"""Gates that need no lab run beside the scenarios, at a low priority, and end with them."""

from __future__ import annotations

import os
import sys
import threading
from collections.abc import Callable
from pathlib import Path
from typing import IO

import pytest
from tests.check import __main__ as check
from tests.check import gates, processes, sanity
from tests.check.gates import Gate, all_gates, scenarios
from tests.tools import environment

CONFIG = environment.REPO / ".oxlintrc.json"
NICE = "import os; print(os.nice(0), os.getsid(0) == os.getpid())"


@pytest.fixture(autouse=True)
def _logs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(check, "LOGS", tmp_path)
    monkeypatch.setattr(check.environment, "REPO", tmp_path)


def asks(log: IO[str]) -> str | None:
    processes.run([sys.executable, "-c", NICE], stdout=log)
    return None


def test_what_runs_beside_the_lab_has_a_low_priority_and_its_own_session(tmp_path: Path) -> None:
    own = os.nice(0)
    outcomes = check.InBackground([Gate("beside", asks)], low=True).wait()
    check.run(Gate("alone", asks))
    assert [outcome.reason for outcome in outcomes] == [None]
    assert (tmp_path / "beside.log").read_text().split() == [str(min(own + processes.LOW, 19)), "True"]
    assert (tmp_path / "alone.log").read_text().split() == [str(own), "False"]


@pytest.mark.filterwarnings("ignore::pytest.PytestUnhandledThreadExceptionWarning")
def test_each_gate_in_the_background_has_its_verdict(capsys: pytest.CaptureFixture[str]) -> None:
    def fails(log: IO[str]) -> str:
        log.write("what was wrong\n")
        return f"exit code {processes.run(['false'])}"

    def breaks(_log: IO[str]) -> None:
        raise SystemExit  # not an Exception: the thread ends

    outcomes = check.InBackground([Gate("a", fails), Gate("b", asks), Gate("c", breaks), Gate("d", asks)]).wait()
    assert [(one.name, one.reason) for one in outcomes] == [
        ("a", "exit code 1"),
        ("b", None),
        ("c", "did not end"),
        ("d", "did not end"),
    ]
    assert all(check.failed(one) for one in outcomes if one.reason)
    assert "what was wrong" in capsys.readouterr().out


@pytest.mark.parametrize(
    ("script", "rule"),
    [
        ("const one = 1;\n", "no-unused-vars"),
        ("window.a = undefinedName;\n", "no-undef"),
        ("if (window.a == 1) window.b = 2;\n", "eqeqeq"),
        ("const = 1;\n", "Unexpected token"),
        ("document.title = window.name;\n", ""),
    ],
)
def test_the_script_of_the_page_is_linted(
    script: str, rule: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """With the rules of this repository, on another script."""
    (tmp_path / CONFIG.name).write_text(CONFIG.read_text())
    (tmp_path / "roles").mkdir()
    (tmp_path / "roles" / "a.js").write_text(script)
    monkeypatch.setattr(gates, "REPO", tmp_path)
    (gate,) = [gate for gate in all_gates() if gate.name == "oxlint"]
    log = tmp_path / "log"
    with log.open("w") as file:
        reason = gate.run(file)
    assert (reason, rule in log.read_text()) == ("exit code 1" if rule else None, True)


def test_the_gate_of_the_cluster_needs_no_lab_but_its_programs(monkeypatch: pytest.MonkeyPatch) -> None:
    """It is left out of `make check`, and runs beside the scenarios after all others."""
    monkeypatch.setattr(sys, "argv", ["tests.check", "--no-lab"])
    left = [gate.name for gate in all_gates() if not check.wanted(gate, check.arguments())]
    assert left == ["cluster", *(gate.name for gate in scenarios())]
    assert [gate.name for gate in all_gates() if gate.beside][-1] == "cluster"
    assert [gate.name for gate in all_gates() if gate.beside and gate.uses_lab] == []


@pytest.mark.parametrize("low", [False, True])
def test_commands_at_once_keep_the_priority_and_fail_together(low: bool, tmp_path: Path) -> None:
    """The log of the first one is at the end, where the summary looks for tests that were skipped."""
    found: list[str | None] = []

    def gate() -> None:
        if low:
            processes.lower()
        parts = (gates.command(sys.executable, "-c", f"{NICE}; raise SystemExit({code})") for code in (0, 3))
        with (tmp_path / "log").open("w") as log:
            found.append(gates.at_once(*parts)(log))

    thread = threading.Thread(target=gate)
    thread.start()
    thread.join()
    assert found == ["exit code 3"]
    lines = (tmp_path / "log").read_text().splitlines()
    own = f"{min(os.nice(0) + (processes.LOW if low else 0), 19)} {low}"
    assert [line for line in lines if not line.startswith("$")] == [own, own]
    assert "SystemExit(3)" in lines[0] and "SystemExit(0)" in lines[2]
    assert sorted(path.name for path in tmp_path.iterdir()) == ["log"]


@pytest.mark.parametrize(("said", "untouched"), [("", "yes"), ("lab    is up already\n", "")])
def test_the_first_scenario_needs_no_reset_of_a_lab_that_has_just_come_up(
    said: str, untouched: str, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    asked: list[str] = []

    def command(*argv: str, env: dict[str, str] | None = None) -> Callable[[IO[str]], str | None]:
        def run(log: IO[str]) -> str | None:
            log.write(said)
            log.flush()
            if "molecule" in argv:
                asked.append((env or {})["LAB_IS_UNTOUCHED"])
            return None

        return run

    monkeypatch.setattr(gates, "command", command)
    monkeypatch.setattr(gates, "REPO", tmp_path)
    with (tmp_path / "log").open("w") as log:
        for run in (gates.lab_up, *(gate.run for gate in scenarios())):
            assert run(log) is None
    assert asked == [untouched, *[""] * (len(scenarios()) - 1)]
    assert "LAB_IS_UNTOUCHED" in (CONFIG.parent / "molecule" / "reset.yml").read_text()


def test_the_older_ansible_core_leaves_out_what_the_newest_shows(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    """Alone it runs all of it."""
    monkeypatch.setattr(sanity.environment, "core", lambda name: tmp_path / name)
    (tmp_path / "2.19/lib/python3.11").mkdir(parents=True)
    assert [core.options for core in sanity.cores()] == [[], []]
    (tmp_path / "2.21/bin").mkdir(parents=True)
    (tmp_path / "2.21/bin/ansible-test").touch()
    older, newest = sanity.cores()
    assert newest.options == [] and older.options[:4] == ["--python", "3.11", "--skip-test", "pep8"]
