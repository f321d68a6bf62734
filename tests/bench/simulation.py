"""What the judge makes of simulated fabrics: `python3 -m tests.bench.simulation` in the environment's Python.

Plays the cells of tests/simulation/cells.py, keeps their counts in .cache/simulation.json, and writes their section of
docs/diagnosis-accuracy.md. It goes on where it was ended, as long as the judge and the simulation are the same.

  --cells WORD...   only the cells whose name has one of these words
  --runs N          at most N runs of each cell
  --seconds N       begin no further runs after N seconds
  --jobs N          processes; by default one for each core
  --page            play nothing; write the section from what is kept
"""

from __future__ import annotations

import argparse
import gc
import hashlib
import json
import math
import os
import sys
import time
from collections.abc import Iterator, Mapping, Sequence
from concurrent.futures import ProcessPoolExecutor, as_completed
from pathlib import Path
from typing import Any

REPO = Path(__file__).resolve().parents[2]
sys.path[:0] = [str(REPO)]
from tests.simulation.cells import CELLS, EXACT, FOUND, INNOCENT, Cell  # noqa: E402

PAGE = REPO / "docs" / "diagnosis-accuracy.md"
KEPT = REPO / ".cache" / "simulation.json"
TITLE = "## Switches of several levels, and intermittent faults"
#: All cells on two cores.
MOST_SECONDS = 3300.0
_CONFIDENCE = 0.95
_MEASURE = "plugins/module_utils/_fabric/measure"
_SOURCES = (*(f"{_MEASURE}/{part}" for part in ("diagnosis", "judge", "readings", "schedule")), "tests/simulation")
_EXAMPLES = 3
_PART = 10
Counts = dict[str, Any]

INTRO = """
Written by `python3 -m tests.bench.simulation`, a part of `make bench`. [tests/simulation](../tests/simulation) plays
the network and the testers, and the judge of the collection measures as it does on hosts: schedule, retries, isolation.
The simulation does not use the rules of the diagnosis. Fabrics have 1 to 4 levels of switches with 4 uplinks or spines
to choose from. A hash of addresses and UDP source port chooses the path of a queue pair, and a reading falls by the
share of queue pairs that a bad path slows down. Values scatter by 0.4 %; one test in 1000 reads low without a cause (in
cells with `% low`: more), and one in 3000 reads 0.

A fault by flow hits a queue pair for its whole life. A fault by time hits in bursts of 2 to 5 seconds (lossy cable,
flapping port, hot NIC).

* **passes**: a healthy fabric passes. Target: 99.5 % of runs.
* **exact**: a permanent fault is diagnosed as what it is, and nothing else is reported. Target: 99 % of runs.
* **found**: an intermittent fault is reported as what it is, in a diagnosis or as more unsteady tests than chance
  explains. Target: 95 % of runs, 90 % with 1024 hosts. Unsteady tests of a port count for its direction. A leaf and its
  uplinks count only if they are named; of a spine, the rail whose paths are bad. Where few tests stay inside a leaf, a
  fault that hits few of its tests looks like one of its uplinks.
* **unsteady**: the run itself is reported as unsteady, and no part of the fabric is. Target: 99 % of runs.
* **wrong**: a healthy part is named in a confirmed diagnosis. Target for all cells: fewer than 1 % of runs. Cells
  without another target (-) only count these.

Not promised: a pair that never met, and one path of k with fewer than 3k flows over it. Not simulated: queue pairs on
good paths that make up for those on a bad one, flows that share an uplink by chance and take capacity from each other,
and adaptive routing. The judge reads no one-second values.

The bounds are exact binomial bounds with one-sided confidence of 95 %. A cell is *met* if its bounds prove the targets,
*missed* if they prove the opposite, and *open* if there are too few runs for either. Without a miss, 59 runs prove
95 %, 299 prove 99 %, and 598 prove 99.5 %.
"""


def at_least(right: int, runs: int) -> float:
    """The lower bound of a rate of which ``right`` of ``runs`` were seen."""
    if not right:
        return 0.0
    return _crossing(lambda rate: _more(right, runs, rate) < 1 - _CONFIDENCE)


def at_most(wrong: int, runs: int) -> float:
    """The upper bound of a rate of which ``wrong`` of ``runs`` were seen."""
    return 1 - at_least(runs - wrong, runs)


def _crossing(below: Any) -> float:
    low, high = 0.0, 1.0
    for _step in range(50):
        middle = (low + high) / 2
        low, high = (middle, high) if below(middle) else (low, middle)
    return low


def _more(count: int, runs: int, rate: float) -> float:
    """How likely ``count`` or more of ``runs`` are at a rate between 0 and 1."""
    whole, logs = math.lgamma(runs + 1), (math.log(rate), math.log1p(-rate))
    return math.fsum(
        math.exp(whole - math.lgamma(n + 1) - math.lgamma(runs - n + 1) + n * logs[0] + (runs - n) * logs[1])
        for n in range(count, runs + 1)
    )


def verdict(good: int, runs: int, target: float) -> str:
    """Whether so many good runs prove that a rate is reached (met) or not (missed), or neither (open)."""
    if at_least(good, runs) >= target:
        return "met"
    return "missed" if 1 - at_least(runs - good, runs) < target else "open"


def play(name: str, first: int, last: int) -> Counts:
    """Play runs ``first`` to ``last`` of a cell; the counts of what they gave."""
    cell, counts = CELLS[name], empty()
    gc.disable()
    for seed in range(first, last):
        begin = time.process_time()
        one = cell.run(seed)
        counts["runs"] += 1
        counts["reached"] += cell.reached(one)
        counts["accused"] += bool(one.accused)
        counts["named"] += bool(one.named)
        for key in ("planted", "found", "told", "right"):
            counts[key] += getattr(one, key)
        if one.accused or not cell.reached(one):
            counts["examples"].append([seed, *one.accused[:2], *one.named[:1]])
        counts["seconds"] += time.process_time() - begin
        gc.collect()
    return counts


def empty() -> Counts:
    """Counts of no run."""
    numbers = ("runs", "reached", "accused", "named", "planted", "found", "told", "right")
    return {**dict.fromkeys(numbers, 0), "seconds": 0.0, "examples": []}


def add(one: Counts, other: Counts) -> Counts:
    """The counts of both."""
    both = {key: one[key] + other[key] for key in empty()}
    return {**both, "examples": both["examples"][:_EXAMPLES]}


def version() -> str:
    """A hash of all that decides what a run gives."""
    files = (path for folder in _SOURCES for path in sorted((REPO / folder).rglob("*.py")))
    return hashlib.sha256(b"".join(path.read_bytes() for path in files)).hexdigest()[:16]


def kept() -> dict[str, Counts]:
    """The counts of earlier runs by cell."""
    found = json.loads(KEPT.read_text()) if KEPT.is_file() else {}
    return {name: counts for name, counts in found.items() if name in CELLS}


def fill(words: Sequence[str] = (), runs: int = 600, seconds: float = MOST_SECONDS, jobs: int = 0) -> dict[str, Counts]:
    """Play what is missing, a part of each cell in turn, and keep it."""
    now, end = version(), time.monotonic() + seconds
    table = kept()
    with ProcessPoolExecutor(jobs or os.cpu_count()) as pool:
        for turn in _turns(words, runs, {name: one["runs"] for name, one in table.items() if one["version"] == now}):
            if time.monotonic() >= end:
                break
            coming = {pool.submit(play, *part): part[0] for part in turn}
            for done in as_completed(coming):
                name = coming[done]
                before = table[name] if table.get(name, {}).get("version") == now else empty()
                table[name] = {**add(before, done.result()), "version": now}
                KEPT.parent.mkdir(exist_ok=True)
                KEPT.write_text(json.dumps(table, indent=1) + "\n")
                print(row(CELLS[name], table[name]), flush=True)
    return table


def _turns(words: Sequence[str], runs: int, done: Mapping[str, int]) -> Iterator[list[tuple[str, int, int]]]:
    """Yield (cell, first run, last run) of what can be played at the same time: short cells first."""
    cells = [cell for cell in CELLS.values() if not words or any(word in cell.name for word in words)]
    cells.sort(key=lambda cell: cell.tree.hosts * cell.tree.rails * (1 if cell.tests["budget"] == "quick" else 10))
    at = {cell.name: done.get(cell.name, 0) for cell in cells}
    while parts := [(c.name, at[c.name], min(at[c.name] + _PART, c.runs, runs)) for c in cells]:
        parts = [part for part in parts if part[1] < part[2]]
        if not parts:
            return
        # One cell after the other in each turn, so that a turn is over soon.
        for start in range(0, len(parts), 4):
            yield parts[start : start + 4]
        at.update({name: last for name, _first, last in parts})


def row(cell: Cell, counts: Counts) -> str:
    """The line of a cell in the table."""
    runs, reached, accused = counts["runs"], counts["reached"], counts["accused"]
    target = "" if cell.target is None else f"{cell.target:.1%}"
    right = "" if cell.target is None else f"{reached}, at least {at_least(reached, runs):.1%}"
    most = f"{accused}, at most {at_most(accused, runs):.1%}"
    claim = "-" if cell.target is None else cell.claim
    cells = (cell.name, cell.title, claim, runs, right, target, most, result(cell, counts))
    return "| " + " | ".join(map(str, cells)) + " |"


def result(cell: Cell, counts: Counts) -> str:
    """met, missed or open: of what is claimed, and of wrong diagnoses."""
    runs = counts["runs"]
    claims = [] if cell.target is None else [verdict(counts["reached"], runs, cell.target)]
    claims.append(verdict(runs - counts["accused"], runs, INNOCENT))
    return next(word for word in ("missed", "open", "met") if word in claims)


def missed(table: Mapping[str, Counts]) -> list[str]:
    """A sentence for each cell that misses a target."""
    return [
        f"{name}: {counts['reached']} of {counts['runs']} runs right,"
        f" {counts['accused']} with a wrong confirmed diagnosis"
        for name, counts in table.items()
        if result(CELLS[name], counts) == "missed"
    ]


def section(table: Mapping[str, Counts]) -> str:
    """The section of the page."""
    now = version()
    done = {name: table[name] for name in CELLS if table.get(name, {}).get("runs")}
    lines = [TITLE, INTRO]
    lines += [_pooled(done), "", *_weakest(done), ""]
    lines += [
        "| cell | fabric and schedule | claim | runs | right | target | wrong | result |",
        "| --- | --- | --- | --- | --- | --- | --- | --- |",
        *(row(CELLS[name], counts) + ("" if counts["version"] == now else " *") for name, counts in done.items()),
        "",
    ]
    return "\n".join(lines)


def _pooled(table: Mapping[str, Counts]) -> str:
    """Sentences about all cells."""
    runs, accused = (sum(counts[key] for counts in table.values()) for key in ("runs", "accused"))
    results = [result(CELLS[name], counts) for name, counts in table.items()]
    told = ", ".join(f"{results.count(word)} {word}" for word in ("met", "open", "missed"))
    words = {
        "met": "Proven",
        "missed": "Missed",
        "open": "Neither (too few runs; most cells need 59, 299 or 598 without a miss)",
    }
    lists = [
        f"* {words[word]}: {'; '.join(names)}."
        for word in words
        if (names := [name for name, counts in table.items() if result(CELLS[name], counts) == word])
    ]
    left = [name for name in CELLS if name not in table]
    lists += [f"* Not simulated with this judge: {'; '.join(left)}."] if left else []
    text = (
        f"{len(table)} of {len(CELLS)} cells were simulated: {told}. A confirmed diagnosis is wrong in {accused}"
        f" of {runs} runs (at most {at_most(accused, runs):.2%})."
        + (" Cells with * were simulated before the last change of the judge." if _stale(table) else "")
    )
    return "\n".join([text, "", *lists])


def _stale(table: Mapping[str, Counts]) -> bool:
    now = version()
    return any(counts["version"] != now for counts in table.values())


def _weakest(table: Mapping[str, Counts]) -> list[str]:
    """The cells that miss a target or have misses, the weakest first, with what went wrong."""
    weak = {name: counts for name, counts in table.items() if _misses(CELLS[name], counts)}
    if not weak:
        return ["Every run is right."]
    ordered = sorted(weak, key=lambda name: 1 - _misses(CELLS[name], weak[name]) / weak[name]["runs"])
    return ["The weakest cells:", "", *(f"* {_words(CELLS[name], weak[name])}" for name in ordered)]


def _misses(cell: Cell, counts: Counts) -> int:
    missing = 0 if cell.target is None else counts["runs"] - counts["reached"]
    return int(max(missing, counts["accused"]))


def _words(cell: Cell, counts: Counts) -> str:
    runs = counts["runs"]
    parts = [] if cell.target is None else [f"right in {counts['reached']} of {runs} runs"]
    if cell.claim in (EXACT, FOUND):
        parts.append(f"{counts['found']} of {counts['planted']} faults found")
    if counts["accused"]:
        parts.append(f"a confirmed diagnosis is wrong in {counts['accused']}")
    if counts["named"]:
        parts.append(f"a healthy part is suspected or unsteady in {counts['named']}")
    examples = [f"run {one[0]}: {', '.join(one[1:])}" for one in counts["examples"] if len(one) > 1]
    return f"**{cell.name}**: {'; '.join(parts)}" + (f" ({examples[0]})" if examples else "")


def write(table: Mapping[str, Counts]) -> list[str]:
    """Write the section into the page, after what is there; return the cells that miss a target."""
    before, _title, _own = PAGE.read_text().partition(TITLE)
    PAGE.write_text(f"{before.rstrip()}\n\n{section(table)}")
    print(f"written to {PAGE.relative_to(REPO)}")
    return missed(table)


def main() -> int:
    parser = argparse.ArgumentParser(
        prog="tests.bench.simulation", description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--cells", nargs="+", default=[], metavar="WORD")
    parser.add_argument("--runs", type=int, default=600)
    parser.add_argument("--seconds", type=float, default=MOST_SECONDS)
    parser.add_argument("--jobs", type=int, default=0)
    parser.add_argument("--page", action="store_true")
    given = parser.parse_args()
    table = kept() if given.page else fill(given.cells, given.runs, given.seconds, given.jobs)
    print("\n".join(f"MISSED: {one}" for one in write(table)) or "no cell misses its target")
    return 0


if __name__ == "__main__":
    sys.exit(main())
