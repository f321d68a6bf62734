"""Part of `make bench`: what the mesh costs with 64 hosts of 8 rails, by schedule, on the controller and on a host.

`python -m tests.bench.mesh [HOSTS ...]` plans the mesh of as many hosts with one broken port, and judges logs in the
form of testers, which are not timed. Then it plays one slot of one host with the tester itself on the clock of this
machine: all lines of 8 partners and 8 rails at once. Programs that answer immediately stand in for ping and
ibv_rc_pingpong.
"""

from __future__ import annotations

import sys
import tempfile
import time
from collections.abc import Sequence
from pathlib import Path

sys.path[:0] = [str(Path(__file__).resolve().parents[2])]

from tests.bench import Row, sizes, table
from tests.tools import importable  # noqa: F401
from tests.unit.support import tester_logs
from tests.unit.support.mesh_world import World

from ansible_collections.gpufabric.rdma.plugins.module_utils._fabric.measure.judge.step import step
from ansible_collections.gpufabric.rdma.plugins.module_utils._fabric.measure.readings.tester_log import Evidence, Pass
from ansible_collections.gpufabric.rdma.plugins.module_utils._fabric.measure.schedule.mesh import SLOT

HOSTS, RAILS = 64, 8
# A minute for all contacts, and another slot for those that failed.
MOST = 60.0


def main(fleets: Sequence[int] = (HOSTS,)) -> list[Row]:
    """Measure and return the rows."""
    return [*(row for hosts in fleets for row in controller(hosts)), *slot_of_a_host()]


def controller(hosts: int) -> list[Row]:
    """Plan, play and judge the mesh of ``hosts``."""
    names, rails = [f"gpu-{number:03}" for number in range(1, hosts + 1)], [f"rail{at}" for at in range(RAILS)]
    world = World(names, rails, network={(names[1], "rail0"): ""})
    plan = tester_logs.plan(names, rails, mesh=True)
    described = {name: world.described(name) for name in names}
    passes: list[Pass] = []
    seconds: list[float] = []
    slots: list[int] = []
    contacts = size = 0
    while True:
        begin = time.perf_counter()
        found = step(plan, "host", Evidence(described, {}, tuple(passes)))
        seconds.append(time.perf_counter() - begin)
        if found.slot != SLOT or not any(" mesh " in line for own in found.lines.values() for line in own[:1]):
            break
        slots.append(found.rounds)
        contacts = contacts or sum(len(own) - 1 for own in found.lines.values())
        passes.append(Pass(world.logs(found.number, found.lines), {}))
        size = size or max(map(len, passes[0].logs.values()))
    name = f"mesh of {hosts} hosts x {RAILS} rails"
    return [
        (f"{name}: first pass", float(slots[0] * SLOT), "s", MOST),
        (f"{name}: passes, with one broken port", float(len(slots)), "", 2.0),
        (f"{name}: lines of all hosts", float(contacts), "", None),
        (f"{name}: largest log of a host", size / 1024, "KiB", None),
        (f"{name}: planned in", seconds[0], "s", 30.0),
        (f"{name}: first pass judged in", seconds[1], "s", 30.0),
        (f"{name}: second pass judged, and the measurement planned, in", seconds[-1], "s", 30.0),
    ]


def slot_of_a_host() -> list[Row]:
    """Play a slot of one host whose lines begin at the same time."""
    from tests.unit.roles import test_tester

    names, rails = [f"gpu-{number:03}" for number in range(1, HOSTS + 1)], [f"rail{at}" for at in range(RAILS)]
    world = World(names, rails)
    found = step(
        tester_logs.plan(names, rails, mesh=True),
        "host",
        Evidence({name: world.described(name) for name in names}, {}),
    )
    own = [line for line in found.lines[names[0]][:-1] if line.split()[0] == "0"]
    with tempfile.TemporaryDirectory(prefix="gpufabric-mesh-") as folder:
        bench = test_tester.Bench(Path(folder), ["dash"])
        test_tester.meshes(bench)
        for at, rail in enumerate(rails):
            about = {"mtu": "9000", "carrier": "1", "operstate": "up", "address": "02:00:00:00:00:03"}
            for name, text in about.items():
                test_tester.write(bench.sys / "class/net" / rail / name, f"{text}\n")
            test_tester.add_device(bench.sys, f"mlx5_{at}", rail, world.address((names[0], rail)))
        known = (f"rail {rail} {rail} {world.address((names[0], rail))}\n" for rail in rails)
        test_tester.write(bench.folder / "rails", "".join(known))
        # Time is that of this machine.
        (bench.proc / "uptime").unlink()
        (bench.proc / "uptime").symlink_to("/proc/uptime")
        test_tester.write(bench.folder / "bin/slumber", '#!/bin/sh\nexec sleep "$1"\n', 0o755)
        begin = time.monotonic()
        text = bench.play(*own, start_in="1", slot=SLOT)
        seconds = time.monotonic() - begin - 1
    ends = [float(part.split("seconds=")[1].split()[0]) for part in text.split("=== gpufabric test ")[1:]]
    return [
        ("mesh: lines of one slot of a host", float(len(own)), "", None),
        ("mesh: all of them begun and ended by the tester in", seconds, "s", float(SLOT)),
        ("mesh: the longest of them", max(ends), "s", float(SLOT)),
        ("mesh: lines without an answer", float(text.count(" rc=124") + text.count(" rc=137")), "", 0.0),
    ]


if __name__ == "__main__":
    print(table(main(sizes(__doc__, HOSTS))))
