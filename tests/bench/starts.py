"""Part of `make bench`: whether the testers of many hosts start in time with the forks of a default AWX.

`python -m tests.bench.starts [HOSTS ...]` plays a pass of the role's own tasks on as many hosts, which are folders on
this machine, 5 at a time. Delivery and start are real; in place of systemd-run the tester runs at once and notes when.
"""

from __future__ import annotations

import tempfile
import time
from collections.abc import Sequence
from pathlib import Path

from tests.bench import Row, sizes, table

HOSTS, FORKS = 1000, 5


def main(fleets: Sequence[int] = (HOSTS,)) -> list[Row]:
    """Measure and return the rows."""
    return [row for hosts in fleets for row in measured(hosts)]


def measured(hosts: int) -> list[Row]:
    """Play one pass on ``hosts``."""
    from tests.unit.support.host_passes import ahead, played, step

    names = [f"gpu-{number:04}" for number in range(hosts)]
    local = {"ansible_connection": "local", "rdma_validate_task_timeout": 120}
    with tempfile.TemporaryDirectory(prefix="gpufabric-starts-") as folder:
        begin = time.monotonic()
        done = played(Path(folder), dict.fromkeys(names, local), [step(1, False, *names), step(1, True)], forks=FORKS)
        seconds = time.monotonic() - begin
        if done.returncode:
            raise SystemExit(f"bench: the pass failed\n{done.stdout[-3000:]}{done.stderr[-1000:]}")
        found = ahead(Path(folder))
    name = f"start of {hosts} hosts, {FORKS} forks"
    return [
        (f"{name}: hosts that started late", float(sum(each < 0 for each in found)), "", 0.0),
        (f"{name}: hosts that did not start", float(hosts - len(found)), "", 0.0),
        (f"{name}: from the first to the last", max(found) - min(found), "s", None),
        (f"{name}: the last one was ahead by", min(found), "s", None),
        (f"{name}: whole play", seconds, "s", None),
    ]


if __name__ == "__main__":
    print(table(main(sizes(__doc__, HOSTS))))
