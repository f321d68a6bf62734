"""Faults that `make soak` plants in the lab, how each run was told, and docs/diagnosis-lab.md, the table of them.

Runs share their time: each has the faults of one group, on different hosts and rails. What a run showed is kept, so
that the table grows when it goes on (`--resume`).
"""

from __future__ import annotations

import json
import os
import platform
import random
import shutil
import time
from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path

from tests.lab import machine
from tests.scenario import HOSTS, REPO, REPORT, lab, playbook
from tests.scenario.planted import FAULTS, GROUPS
from tests.scenario.told import measured

PAGE = REPO / "docs" / "diagnosis-lab.md"
# Reports of runs that were told wrong, and a line for each fault of each run.
KEPT = REPO / ".cache" / "soak"
LINES = KEPT / "faults.jsonl"
_HEAD = """\
# Planted faults on the virtual lab

Written by `make soak` ([tests/tools/planted_faults.py](../tests/tools/planted_faults.py)). The lab has three emulated
hosts with two rails each (soft-RoCE). Each run has the faults of one line of groups below at random hosts and rails,
measures the bare hosts and heals them.

* **found**: the run did not pass, and its report names the host or the rail of the fault in a diagnosis, or as not
  measured.
* **named**: kind, host and rail of the diagnosis are those of the fault, and there is no other diagnosis in the report
  but those of the faults of the same run.
* **wrong confirmed**: confirmed diagnoses in these runs that belong to none of their faults. The target is 0.
"""

_OF_EACH = "Of each fault that of the last run in which it was named."


@dataclass(frozen=True)
class Line:
    """How one fault was told in one run. `wrong`: confirmed diagnoses that belong to no fault of the run."""

    fault: str
    group: tuple[str, ...]
    found: bool
    named: bool
    wrong: int
    text: str
    seconds: int
    day: str


def play(group: Sequence[str], chance: random.Random) -> list[str]:
    """Plant the faults of a group, measure, heal; return what was told wrong and keep a line for each fault."""
    places = list(zip(chance.sample(HOSTS, len(HOSTS)), (*chance.sample((0, 1), 2), chance.choice((0, 1)))))
    planted = {name: place for name, place in zip(group, places)}
    run, result, seen = measured(planted)
    problems = []
    for name, one in seen.items():
        line = Line(name, tuple(group), one.found, one.named, len(one.wrong), one.text, round(run.seconds), _today())
        _keep(line)
        right = one.named and not one.wrong
        told = "right" if right else f"expected {sorted(one.expected, key=str)}, report: {one.all}"
        print(f"{name} at {planted[name][0]} rail{planted[name][1]}: {told}", flush=True)
        if not right:
            problems.append(f"{name}: {told}")
    if problems and result:
        kept = KEPT / f"{time.time():.0f}"
        shutil.copytree(REPORT, kept, dirs_exist_ok=True)
        print(f"its report is kept: {kept}", flush=True)
    return problems


def _today() -> str:
    return time.strftime("%Y-%m-%d")


def _keep(line: Line) -> None:
    LINES.parent.mkdir(parents=True, exist_ok=True)
    with LINES.open("a") as file:
        file.write(json.dumps(asdict(line)) + "\n")


def kept() -> list[Line]:
    """The lines of all runs that are kept."""
    if not LINES.is_file():
        return []
    found = (json.loads(text) for text in LINES.read_text().splitlines())
    return [Line(**{**one, "group": tuple(one["group"])}) for one in found]


def run(times: int, seed: int, resume: bool) -> list[str]:
    """Play each group as often as `times`; what was told wrong. The page is written after each run."""
    if not resume:
        LINES.unlink(missing_ok=True)
    lab("reset")
    playbook("prepare").must()
    chance = random.Random(seed)
    problems = []
    for _time in range(times):
        for group in GROUPS:
            problems += play(group, chance)
            PAGE.write_text(page(kept()))
    return problems


def page(lines: Sequence[Line]) -> str:
    """The text of docs/diagnosis-lab.md."""
    days = sorted({line.day for line in lines})
    when = " to ".join(dict.fromkeys((days[0], days[-1]))) if days else "not run"
    runs: dict[tuple[str, ...], list[int]] = {}
    for line in lines:
        if line.fault == line.group[0]:
            runs.setdefault(line.group, []).append(line.seconds)
    seconds = sorted(second for own in runs.values() for second in own)
    figures = f"{when}; {_machine()}; {len(seconds)} runs"
    figures += f", {seconds[len(seconds) // 2]} s each (median)." if seconds else "."
    table = ["| fault | runs | found | named | wrong confirmed |", "| --- | --- | --- | --- | --- |", *_rows(lines)]
    groups = [f"* {', '.join(group)}: {len(runs.get(group, ()))} runs" for group in dict.fromkeys((*GROUPS, *runs))]
    said = [f"* **{name}**: {text}" for name, text in _texts(lines)]
    parts = [_HEAD, figures, "", *table, "", "## Groups of faults in one run", "", *groups, ""]
    parts += ["## Sentences of the reports", "", _OF_EACH, "", *said]
    return "\n".join(parts).rstrip() + "\n"


def _machine() -> str:
    how = "emulated processors" if machine.accelerator().startswith("tcg") else "hardware virtualization"
    return f"{os.cpu_count()} cores ({platform.machine()}), {how}"


def _rows(lines: Sequence[Line]) -> Iterator[str]:
    for name in FAULTS:
        own = [line for line in lines if line.fault == name]
        counts = (len(own), sum(line.found for line in own), sum(line.named for line in own))
        yield f"| {name} | {' | '.join(map(str, counts))} | {sum(line.wrong for line in own)} |"


def _texts(lines: Sequence[Line]) -> Iterator[tuple[str, str]]:
    for name in FAULTS:
        last = [line.text for line in lines if line.fault == name and line.named]
        if last:
            yield name, last[-1]


def write() -> Path:
    """Write the page from what is kept."""
    PAGE.write_text(page(kept()))
    return PAGE
