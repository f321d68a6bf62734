"""python3 -m tests.check [--list] [--only NAME ...] [--no-lab]: run the gates, print one summary."""

from __future__ import annotations

import argparse
import sys
import threading
import time
from dataclasses import dataclass
from pathlib import Path

from tests.check import processes
from tests.check.gates import Gate, all_gates, lab_up
from tests.tools import environment

LOGS = environment.CACHE / "check"
TAIL = 60


@dataclass
class Outcome:
    """How one gate ended; `reason` is None when it passed, `note` what is to be said beside that."""

    name: str
    reason: str | None
    seconds: float
    note: str = ""

    @property
    def verdict(self) -> str:
        return ", ".join(word for word in (self.reason or "passed", self.note) if word)


def main() -> int:
    options = arguments()
    gates = [gate for gate in all_gates() if wanted(gate, options)]
    if options.list:
        print("\n".join(gate.name for gate in gates))
        return 0
    environment.main()
    LOGS.mkdir(parents=True, exist_ok=True)
    with_lab = [gate for gate in gates if gate.uses_lab]
    lab = InBackground([Gate("lab up", lab_up)]) if with_lab else None
    beside = InBackground([gate for gate in gates if gate.beside], low=True)
    outcomes = [run(gate) for gate in gates if not gate.uses_lab and not gate.beside]
    if lab:
        outcomes += lab.wait()
        up = not failed(outcomes[-1])
        outcomes += [run(gate) if up else Outcome(gate.name, "the lab did not come up", 0.0) for gate in with_lab]
    outcomes += beside.wait()
    print(summary(outcomes))
    return 1 if not outcomes or any(failed(outcome) for outcome in outcomes) else 0


def arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="tests.check", description=__doc__)
    parser.add_argument("--list", action="store_true", help="name the gates and stop")
    parser.add_argument("--only", action="append", default=[], metavar="NAME", help="gates whose name contains NAME")
    parser.add_argument("--no-lab", action="store_true", help="leave out what needs the lab or its programs")
    return parser.parse_args()


def wanted(gate: Gate, options: argparse.Namespace) -> bool:
    if options.no_lab and (gate.uses_lab or gate.builds):
        return False
    return not options.only or any(name in gate.name for name in options.only)


class InBackground:
    """Gates that run one after another beside others; `low`: on what those leave of the processors."""

    def __init__(self, gates: list[Gate], low: bool = False) -> None:
        self._gates, self._low = gates, low
        self._outcomes: list[Outcome] = []
        self._thread = threading.Thread(target=self._run, daemon=True)
        self._thread.start()

    def _run(self) -> None:
        if self._low:
            processes.lower()
        self._outcomes += (run(gate) for gate in self._gates)

    def wait(self) -> list[Outcome]:
        """Wait for their end."""
        self._thread.join()
        ended = {outcome.name for outcome in self._outcomes}
        return self._outcomes + [Outcome(g.name, "did not end", 0.0) for g in self._gates if g.name not in ended]


def run(gate: Gate) -> Outcome:
    begin = time.monotonic()
    with log_of(gate.name).open("w") as log:
        try:
            reason = gate.run(log)
        except Exception as error:  # a gate that cannot start has failed, and the others still run
            reason = f"{type(error).__name__}: {error}"
    note = gate.note(log_of(gate.name).read_text(errors="replace")) if gate.note else ""
    outcome = Outcome(gate.name, reason, time.monotonic() - begin, note)
    show(outcome)
    return outcome


def log_of(name: str) -> Path:
    return LOGS / f"{name.replace(' ', '-')}.log"


def failed(outcome: Outcome) -> bool:
    return outcome.reason not in (None, "left out")


def show(outcome: Outcome) -> None:
    word = "FAILED" if failed(outcome) else outcome.verdict
    print(f"{word:9}{outcome.seconds:7.0f} s  {outcome.name}", flush=True)
    if failed(outcome):
        lines = log_of(outcome.name).read_text(errors="replace").splitlines()
        print("\n".join(f"    {line}" for line in lines[-TAIL:]))
        print(f"    {outcome.reason}; whole log: {log_of(outcome.name).relative_to(environment.REPO)}", flush=True)


def summary(outcomes: list[Outcome]) -> str:
    bad = [outcome.name for outcome in outcomes if failed(outcome)]
    out = [outcome.name for outcome in outcomes if outcome.reason == "left out"]
    lines = ["", "summary"]
    lines += [f"  {o.verdict:32.32} {o.seconds:6.0f} s  {o.name}" for o in outcomes]
    lines.append(f"{len(outcomes) - len(bad) - len(out)} passed, {len(bad)} failed, {len(out)} left out")
    if bad:
        lines.append(f"failed: {', '.join(bad)}")
    return "\n".join(lines)


if __name__ == "__main__":
    sys.exit(main())
