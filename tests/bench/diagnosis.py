"""Accuracy and cost of diagnosis: `python3 -m tests.bench.diagnosis [--quick]` in the environment's Python.

Simulates tests/tools/fabric_model.py with planted faults and writes docs/diagnosis-accuracy.md, except for the section
of tests/bench/simulation.py.
Exits 1 when a target is missed.
"""

from __future__ import annotations

import argparse
import random
import re
import sys
import time
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

REPO = Path(__file__).resolve().parents[2]
sys.path[:0] = [str(REPO)]
from tests.bench import simulation  # noqa: E402
from tests.tools import importable  # noqa: E402, F401
from tests.tools.fabric_model import (  # noqa: E402
    BANDWIDTH,
    KINDS,
    Fabric,
    Fault,
    Outcome,
    Round,
    diagnose,
    every_pair,
    from_gpus,
    isolate,
    next_tests,
    plant,
    ring,
    sampled,
)

from ansible_collections.gpufabric.rdma.plugins.module_utils._fabric.measure.diagnosis import (
    unsteady as diagnosis_unsteady,
)

PAGE = REPO / "docs" / "diagnosis-accuracy.md"
RAILS, COUNTS = 8, (1, 2, 3, 4, 5)
# Hosts -> simulated fabrics for each kind and number of faults.
RUNS = {8: 30, 32: 10, 128: 8, 512: 3, 1024: 2}
# Name -> meetings of a host; each is played in both directions, so it takes two slots.
SCHEDULES = {"ring": 0, "1 meeting": 1, "3 meetings": 3, "8 meetings": 8}
TARGET_ONE, TARGET_MORE, TARGET_SECONDS = 0.99, 0.95, 2.0

INTRO = """# Diagnosis accuracy

Written by `python3 -m tests.bench.diagnosis` ([tests/tools/fabric_model.py](../tests/tools/fabric_model.py)). The
benchmark simulates fabrics of N hosts x {rails} rails with planted faults, plays the schedule, and then plays the
tests requested for isolation until none is requested. A diagnosis is correct if its kind, rail, host, peer and
direction match those of a planted fault. *Precision* is the share of diagnoses that are correct, *recall* the share
of faults that are diagnosed.

Values scatter by 0.4 %, and one test in 1000 gives no data without a cause and is retried. Faults give a low value or
no data, at random; except in the section on unsteady faults, they are permanent. A fault that another fault hides (a
port of a dead host) is not planted. Pairs are planted among those that the schedule tests, since an untested pair
cannot be diagnosed.

* **host**: all rails of a host. **port**: one rail of one host. **rail**: the switch of a rail. **direction**: one
  port only sends or only receives. **pair**: two hosts on one rail. **mtu**: large frames are lost at a port, or in
  the switch of a rail; a latency test that passes shows it. **gpu**: GPU memory of one port or of a whole host; a
  test from host memory that passes shows it. **mixed**: random kinds.
* Up to 32 hosts are tested in all pairs. In larger fabrics each host meets 3 others, chosen by a seed. A meeting is
  played in both directions, so 3 meetings take 6 slots.
* Extra tests and extra rounds are those requested for isolation: the mean, and the maximum of a single fabric. A
  round consists of tests of disjoint pairs, on all rails at once, in one direction.

## Limits

* Verdicts are derived from planted faults. The scatter of 0.4 % is far from every threshold, and two retries leave
  almost no test without data. The section on healthy fleets therefore shows that a fleet in which every test passes
  eventually gets no diagnosis; it does not show how often a real fleet passes. A test that failed between two ports
  that pass with others costs one extra test; if that one passes, the test is *unsteady*, which is a separate finding.
* The rules for unsteady faults were developed with fabrics of this model, in part with the same seeds, and the model
  has the same kinds of faults as the rules. Real fabrics are less regular.
"""
RIGHT = "1.000 / 1.000"
SHARES = (0.01, 0.02, 0.05, 0.1, 0.25, 0.5)
UNSTEADY = {"severity": "failure", "background": 0.001}


def kinds_of(kind: str, count: int, seed: int) -> list[str]:
    return [random.Random(seed).choice(KINDS) for _ in range(count)] if kind == "mixed" else [kind] * count


def schedule_of(fabric: Fabric, kind: str, seed: int, schedule: str) -> list[Round]:
    """The rounds that are played first; "": all pairs of up to 32 hosts, 3 meetings of more."""
    if schedule == "ring":
        rounds = ring(fabric.names, fabric.rail_names, BANDWIDTH)
    elif len(fabric.names) <= 32 and not schedule:
        rounds = every_pair(fabric.names, fabric.rail_names, BANDWIDTH)
    else:
        rounds = sampled(fabric.names, fabric.rail_names, BANDWIDTH, SCHEDULES.get(schedule, 3), seed)
    return from_gpus(rounds) if kind in ("gpu", "mixed") else rounds


def one(hosts: int, kind: str, count: int, seed: int, schedule: str = "", share: float = 1.0) -> Outcome:
    fabric = Fabric(hosts, RAILS, seed=seed)
    rounds = schedule_of(fabric, kind, seed, schedule)
    planted = plant(fabric, kinds_of(kind, count, seed), rounds)
    fabric.faults = tuple(replace(fault, share=share) for fault in planted)
    return isolate(fabric, rounds)


def rates(outcomes: Sequence[Outcome]) -> tuple[float, float]:
    """Precision and recall; no diagnosis is a precision of 0 where a fault was planted."""
    right, diagnosed, planted = (sum(getattr(o, key) for o in outcomes) for key in ("right", "diagnosed", "planted"))
    return (right / diagnosed if diagnosed else float(not planted)), (right / planted if planted else 1.0)


def row(head: Sequence[object], cells: Sequence[Sequence[Outcome]]) -> str:
    outcomes = [outcome for cell in cells for outcome in cell]
    shown = ["{:.3f} / {:.3f}".format(*rates(cell)) for cell in cells]
    tests = [o.tests for o in outcomes]
    rounds = [o.rounds for o in outcomes]
    cost = [f"{sum(values) / len(values):.1f} ({max(values)})" for values in (tests, rounds)]
    return "| " + " | ".join([*map(str, head), *shown, *cost]) + " |"


def header(heads: Sequence[str]) -> list[str]:
    names = [*heads, *(f"{count} fault{'s' if count > 1 else ''}" for count in COUNTS), "extra tests", "extra rounds"]
    return ["| " + " | ".join(names) + " |", "| " + " | ".join("---" for _ in names) + " |"]


def missed(what: str, cells: Sequence[Sequence[Outcome]]) -> list[str]:
    targets = [TARGET_ONE, *[TARGET_MORE] * (len(cells) - 1)]
    return [
        f"{what}, {count} faults: precision {rates(cell)[0]:.3f}, recall {rates(cell)[1]:.3f}, target {target}"
        for count, cell, target in zip(COUNTS, cells, targets)
        if min(rates(cell)) < target
    ]


def accuracy(runs: dict[int, int]) -> tuple[list[str], list[str]]:
    lines, faults = header(("hosts", "fault")), []
    for hosts, number in runs.items():
        for kind in (*KINDS, "mixed"):
            cells = [[one(hosts, kind, count, 1000 * count + run) for run in range(number)] for count in COUNTS]
            lines.append(row((hosts, kind), cells))
            faults += missed(f"{hosts} hosts, {kind}", cells)
            print(lines[-1], flush=True)
    return lines, faults


def schedules(number: int) -> tuple[list[str], list[str]]:
    lines, faults = header(("128 hosts, mixed",)), []
    for schedule in SCHEDULES:
        cells = [[one(128, "mixed", count, run, schedule) for run in range(number)] for count in COUNTS]
        lines.append(row((schedule,), cells))
        faults += missed(f"128 hosts, {schedule}", cells)
        print(lines[-1], flush=True)
    return lines, faults


def unsteady(number: int) -> tuple[list[str], list[str]]:
    """Without a target: a fault that shows seldom looks like a few bad pairs, and more rounds show more."""
    lines = header(("128 hosts, fault", "tests that show it"))
    for kind in ("host", "port", "rail", "direction"):
        for share in (0.95, 0.8):
            cells = [[one(128, kind, count, run, "8 meetings", share) for run in range(number)] for count in COUNTS]
            lines.append(row((kind, f"{share:.0%}"), cells))
            print(lines[-1], flush=True)
    return lines, []


def intermittent(seeds: int) -> tuple[list[str], list[str]]:
    """Intermittent paths between leaves are found as unsteady tests of the rail, and no host is diagnosed for them."""
    lines = [
        "| slow tests | unsteady tests | severity | still failed | diagnoses | diagnoses of a host |",
        "| --- | --- | --- | --- | --- | --- |",
    ]
    faults = []
    for share in SHARES:
        columns: list[tuple[object, ...]] = []
        for seed in range(1, seeds + 1):
            fabric = Fabric(128, 2, (Fault("across", "rail0", share=share),), seed=seed)
            outcome = isolate(fabric, sampled(fabric.names, fabric.rail_names, BANDWIDTH, 3, seed), goes=3)
            found = diagnosis_unsteady.find(outcome.results, UNSTEADY)
            failed = sum(result["verdict"] != "pass" for result in outcome.results)
            named = sum(found.host is not None for found in outcome.diagnoses)
            count, severity = sum(one["count"] for one in found), ", ".join(one["severity"] for one in found) or "-"
            columns.append((count, severity, failed, len(outcome.diagnoses), named))
            faults += [f"intermittent {share:.0%}, seed {seed}: {named} hosts named"] if named else []
            faults += [] if found or failed else [f"intermittent {share:.0%}, seed {seed}: not found"]
        cells = [f"{share:.0%}", *(", ".join(map(str, column)) for column in zip(*columns))]
        lines.append("| " + " | ".join(cells) + " |")
        print(lines[-1], flush=True)
    return lines, faults


def healthy(sizes: dict[int, int]) -> tuple[list[str], list[str]]:
    lines = [
        "| hosts | meetings per host | slots | fabrics | diagnoses | extra tests |",
        "| --- | --- | --- | --- | --- | --- |",
    ]
    faults = []
    for hosts, number in sizes.items():
        outcomes = [one(hosts, "host", 0, run, "3 meetings") for run in range(number)]
        slots = len(schedule_of(Fabric(hosts, RAILS), "host", 0, "3 meetings"))
        diagnosed, tests = sum(o.diagnosed for o in outcomes), sum(o.tests for o in outcomes)
        lines.append(f"| {hosts} | 3 | {slots} | {number} | {diagnosed} | {tests} |")
        faults += [f"{hosts} healthy hosts: {diagnosed} diagnoses, {tests} extra tests"] if diagnosed or tests else []
        print(lines[-1], flush=True)
    return lines, faults


def speed(hosts: int) -> tuple[list[str], list[str]]:
    lines = [
        "| bad hosts | results | not passed | diagnosis, s | follow-up tests, s |",
        "| --- | --- | --- | --- | --- |",
    ]
    faults = []
    for bad in (0, 5, hosts // 16, hosts // 2, hosts):
        fabric = Fabric(hosts, RAILS)
        fabric.faults = tuple(Fault("host", None, name) for name in fabric.names[:: hosts // max(bad, 1)][:bad])
        results = fabric.play(sampled(fabric.names, fabric.rail_names, BANDWIDTH, 8, 1))
        begin = time.perf_counter()
        diagnose(results)
        middle = time.perf_counter()
        next_tests(results, fabric.names, fabric.rail_names)
        times = middle - begin, time.perf_counter() - middle
        failed = sum(result["verdict"] != "pass" for result in results)
        lines.append(f"| {bad} | {len(results)} | {failed} | {times[0]:.2f} | {times[1]:.2f} |")
        faults += [f"diagnosis with {bad} bad hosts: {times[0]:.1f} s"] if times[0] > TARGET_SECONDS else []
        print(lines[-1], flush=True)
    return lines, faults


def exceptions(lines: Sequence[str]) -> list[str]:
    """A sentence about the rows of an accuracy table that are right throughout, and a table of the others."""
    head, rows = list(lines[:2]), lines[2:]
    rest = [line for line in rows if set(re.findall(r"\d\.\d{3} / \d\.\d{3}", line)) != {RIGHT}]
    most = [max(int(most) for most in column) for column in zip(*(re.findall(r" \((\d+)\)", line) for line in rows))]
    right = (
        f"{len(rows) - len(rest)} of {len(rows)} combinations with {COUNTS[0]} to {COUNTS[-1]} faults have precision"
    )
    cost = f"Isolation took at most {most[0]} extra tests in {most[1]} extra rounds."
    others = ["", "The others (each cell: precision / recall):", "", *head, *rest] if rest else []
    return [f"{right} and recall 1.000. {cost}", *others]


def measured(quick: bool) -> tuple[str, list[str]]:
    """Return the page and the targets that were missed."""
    sizes = {8: 5, 32: 2} if quick else RUNS
    speed_hosts = 128 if quick else 1024
    parts = [
        (
            "Permanent faults",
            f"Fabrics of {', '.join(map(str, sizes))} hosts; faults {', '.join(KINDS)} and mixed.",
            accuracy(sizes),
        ),
        (
            "Other schedules",
            f"128 hosts, mixed faults; schedules {', '.join(SCHEDULES)}.",
            schedules(2 if quick else 10),
        ),
        (
            "Unsteady faults",
            "128 hosts, 8 meetings per host; a fault shows in 95 % or 80 % of its tests. No target applies.",
            unsteady(1 if quick else 4),
        ),
        (
            "Intermittent paths between leaf switches",
            "128 hosts on leaves of 32, 2 rails, 3 meetings per host (768 tests); each share of slow tests with three "
            "seeds. Tests of one rail across leaves are slow at random, drawn again at each attempt; three passes of "
            "isolation.",
            intermittent(3),
        ),
        ("Healthy fleets", "No diagnosis and no extra test is expected.", healthy({232: 2 if quick else 20})),
        ("Speed", f"{speed_hosts} hosts x {RAILS} rails x 8 meetings per host on one slow core.", speed(speed_hosts)),
    ]
    text = INTRO.format(rails=RAILS)
    for title, note, (lines, _faults) in parts:
        shown = exceptions(lines) if "extra rounds" in lines[0] else lines
        text += "\n".join(["", f"## {title}", "", note, "", *shown, ""])
    return text, [fault for _title, _note, (_lines, found) in parts for fault in found]


def write_page() -> list[str]:
    """Write docs/diagnosis-accuracy.md and return the targets that were missed."""
    text, faults = measured(quick=False)
    _before, title, section = PAGE.read_text().partition(simulation.TITLE)
    PAGE.write_text(f"{text.rstrip()}\n\n{title}{section}" if title else text)
    print(f"written to {PAGE.relative_to(REPO)}")
    return faults


def main() -> int:
    parser = argparse.ArgumentParser(prog="tests.bench.diagnosis", description=__doc__)
    parser.add_argument("--quick", action="store_true", help="small fabrics only; writes no page")
    faults = measured(quick=True)[1] if parser.parse_args().quick else write_page()
    print("\n".join(f"MISSED: {fault}" for fault in faults) or "every target is met")
    return 1 if faults else 0


if __name__ == "__main__":
    sys.exit(main())
