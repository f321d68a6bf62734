"""Part of `make bench`: what preparing many hosts costs the machine that runs Ansible.

`python -m tests.bench.loopback [HOSTS ...]` prints a table. The hosts are fixture trees (tests/tools/loopback.py).
The plays of playbooks/prepare.yml run as they are; the first run writes the files, the second is measured.
"""

from __future__ import annotations

import os
import resource
import tempfile
import threading
from collections.abc import Mapping
from pathlib import Path
from typing import NamedTuple

from tests.bench import Row, sizes, table
from tests.scenario import playbook
from tests.tools.loopback import environment, make_hosts, make_playbooks, path_defaults

ENTRIES = 200
# AWX reckons with four forks per core; a fork more costs memory, and the processors of this machine are busy with four.
FORKS = 10
EXECUTIONS = 9
RUN_SECONDS = 7200


class Memory(NamedTuple):
    """MiB: of ansible-playbook alone, of it and all its children as the sum of RSS, and as the sum of PSS."""

    parent: float = 0
    rss: float = 0
    pss: float = 0


class Measured(NamedTuple):
    """A run: wall time, processor time of Ansible itself and of the modules, in seconds; memory; module executions."""

    wall: float
    controller: float
    modules: float
    memory: Memory
    executions: int


def main(entries: int = ENTRIES) -> list[Row]:
    with tempfile.TemporaryDirectory(prefix="gpufabric-loopback-") as folder:
        work = Path(folder).resolve()
        names = [f"gpu-{number:04d}" for number in range(1, entries + 1)]
        inventory = make_hosts(work, names)
        make_playbooks(work / "playbooks", path_defaults())
        measure(work, inventory, names)
        made = measure(work, inventory, names, converged=True)
    name = f"{entries} entries on loopback, converged prepare"
    return [
        (f"{name}: module executions a host", made.executions, "", EXECUTIONS),
        (f"{name}: wall time, modules included", made.wall, "s", None),
        (f"{name}: the same a host", made.wall / entries, "s", None),
        (f"{name}: processor time of Ansible a host", made.controller / entries, "s", 1.0),
        (f"{name}: processor time of the modules a host", made.modules / entries, "s", None),
        (f"{name}: peak memory of ansible-playbook alone, RSS", made.memory.parent, "MiB", None),
        (f"{name}: peak of the process tree, forks and modules, sum of RSS", made.memory.rss, "MiB", 2500.0),
        (f"{name}: the same with shared pages counted once (PSS)", made.memory.pss, "MiB", None),
    ]


def measure(
    work: Path, inventory: Path, names: list[str], *, book: Path | None = None, converged: bool = False
) -> Measured:
    """Run a playbook, prepare.yml when none is given; a converged run must change nothing."""
    path = book or work / "playbooks" / "prepare.yml"
    places = {**environment(work), "ANSIBLE_FORKS": str(FORKS)}
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    with Watch() as watch:
        run = playbook(str(path), inventory=str(inventory), timeout=RUN_SECONDS, **places).must()
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    if converged and run.changed:
        raise SystemExit(f"bench: a converged run changed {run.changed[:10]}")
    modules = [seconds for host, _module, seconds in run.executed if host in names]
    guarded = sum(marks(work / "hosts" / name / "guarded") for name in names)
    if len(modules) != guarded:
        raise SystemExit(f"bench: {len(modules)} modules were executed on hosts, {guarded} of them under the guard")
    total = after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime
    return Measured(run.seconds, total - sum(modules), sum(modules), watch.peak, run.executions(names))


def marks(path: Path) -> int:
    """Return how many modules ran under the guard since the last call."""
    count = len(path.read_text().splitlines())
    path.unlink()
    return count


class Watch:
    """Looks at the memory of this process' children twice a second, and keeps the most that it sees."""

    def __init__(self) -> None:
        self.peak = Memory()
        self._end = threading.Event()
        self._thread = threading.Thread(target=self._look)

    def __enter__(self) -> Watch:
        self._thread.start()
        return self

    def __exit__(self, *_error: object) -> None:
        self._end.set()
        self._thread.join()

    def _look(self) -> None:
        while not self._end.wait(0.5):
            self.peak = Memory(*map(max, self.peak, memory_now()))


def memory_now() -> Memory:
    """Read the memory of all descendants; the one whose parent we are is ansible-playbook."""
    own = os.getpid()
    generations = descendants(parents(), own)
    if not generations:
        return Memory()
    tables = [rollup(pid) for generation in generations for pid in generation]
    rss, pss = (sum(found[key] for found in tables) for key in ("Rss", "Pss"))
    return Memory(rollup(generations[0][0])["Rss"], rss, pss)


def parents() -> dict[int, int]:
    """Return the parent of each process."""
    found = {}
    for path in Path("/proc").glob("[0-9]*/stat"):
        try:
            # The name is in brackets and can hold anything; after it come the state and the parent.
            found[int(path.parent.name)] = int(path.read_text().rpartition(")")[2].split()[1])
        except OSError:
            continue
    return found


def descendants(parent: Mapping[int, int], root: int) -> list[list[int]]:
    """Return the children of a process, their children, and so on."""
    generations, last = [], [root]
    while last:
        last = [pid for pid, above in parent.items() if above in last]
        generations.append(last)
    return generations[:-1]


def rollup(pid: int) -> dict[str, float]:
    """Return Rss and Pss of a process in MiB; 0 for one that has ended."""
    try:
        lines = Path(f"/proc/{pid}/smaps_rollup").read_text().splitlines()[1:]
    except OSError:
        lines = []
    found = {line.split(":")[0]: int(line.split()[1]) / 1024 for line in lines}
    return {key: found.get(key, 0.0) for key in ("Rss", "Pss")}


if __name__ == "__main__":
    for entries in sizes(__doc__, ENTRIES):
        print(table(main(entries)), flush=True)
