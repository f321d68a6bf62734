"""Part of `make bench`: what judging costs at scale, and what rounds cost against pairs one after another.

`python -m tests.bench.scale` prints the time slots of a measurement as JSON, which docs/validation.md has as a table.
`python -m tests.bench.scale HOSTS RAILS MODE ROUNDS` prints one JSON line: seconds of each step, peak memory in MiB,
size of the page. Every host is healthy but one port; logs are made as testers write them, which is not timed.
"""

from __future__ import annotations

import gc
import json
import resource
import sys
import time
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

sys.path[:0] = [str(Path(__file__).resolve().parents[2])]

from tests.tools import importable  # noqa: F401
from tests.unit.support import plan_factory, tester_logs

from ansible_collections.gpufabric.rdma.plugins.module_utils._fabric.measure.judge.step import Step, step
from ansible_collections.gpufabric.rdma.plugins.module_utils._fabric.measure.readings.tester_log import Evidence, Pass
from ansible_collections.gpufabric.rdma.plugins.module_utils._fabric.measure.schedule.schedule import planned
from ansible_collections.gpufabric.rdma.plugins.module_utils._fabric.plan.plan import plan
from ansible_collections.gpufabric.rdma.plugins.module_utils._fabric.report.formats import render
from ansible_collections.gpufabric.rdma.plugins.module_utils._fabric.report.page import page
from ansible_collections.gpufabric.rdma.plugins.module_utils._fabric.report.summary import build
from ansible_collections.gpufabric.rdma.plugins.plugin_utils.page import render as render_page

SIZES = (3, 16, 64, 256)
BAD = ("gpu-0003", "rail1")
HEADER = "seconds=11 late=0.03 ran=11.20 exchange=plain memory=host"
LINK = 'link rate="400 Gb/sec (4X NDR)" state=up carrier=1 mtu=9000\n RDMA_Write BW Test\n'


def main(hosts: int, rails: int, mode: str, rounds: int) -> None:
    # As fabric_judge and fabric_report do.
    gc.disable()
    seconds: dict[str, float] = {}

    def timed(name: str, work: Callable[[], Any]) -> Any:
        begin = time.perf_counter()
        value = work()
        seconds[name] = seconds.get(name, 0.0) + time.perf_counter() - begin
        return value

    fleet = plan_factory.fleet(hosts, rails)
    fabric = {
        "supernet": "10.64.0.0/10",
        "rail_prefix": 19,
        "capacity": {"hosts": 1024, "pods_per_host": 1},
        "tests": {"mode": mode, "rounds": rounds, "repeats": 1},
    }
    made = timed("plan", lambda: plan(fabric, fleet))
    described = {name: describe(host) for name, host in made["hosts"].items()}
    passes: list[Pass] = []
    while True:
        found = timed("schedule and judge", lambda: step(made, "host", Evidence(described, {}, tuple(passes))))
        if found.done:
            break
        passes.append(played(found, owners(made)))
    parts = {
        "diagnoses": found.summary["diagnoses"],
        "unmeasured": found.unmeasured,
        "unsteady": found.unsteady,
        "outliers": found.outliers,
        "links": found.links,
        "schedule": [found.schedule],
    }
    report = timed("report", lambda: build(made, found.results, found.warnings, context={}, parts=parts))
    timed("report", lambda: render(report, made, 10))
    html = timed("report", lambda: render_page(json.loads(json.dumps(page(report)))))
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
    diagnoses = [(diagnosis["kind"], diagnosis["host"], diagnosis["rail"]) for diagnosis in report["diagnoses"]]
    assert diagnoses == [("port", *BAD)], diagnoses
    print(
        json.dumps(
            {
                "seconds": {name: round(value, 2) for name, value in seconds.items()},
                "peak": round(peak),
                "html": round(len(html.encode()) / 1e6, 2),
                "results": len(report["results"]),
                "passes": len(passes),
            }
        )
    )


def describe(host: Mapping[str, Any]) -> str:
    lines = [
        f'{rail["rail"]} device=mlx5_{at} port=1 netdev={rail["netdev"]} gid=3 gid_type="RoCE v2" '
        f'address={rail["address"].split("/")[0]} mtu=4096 rate="400 Gb/sec (4X NDR)" numa=0 cpus=0-15 local_cpus=0-15'
        for at, rail in enumerate(host["rails"])
    ]
    return tester_logs.described(lines, "memlock=unlimited perftest=25.01 control=- clock=tsc machine_id=1")


def owners(made: Mapping[str, Any]) -> dict[str, str]:
    return {rail["address"].split("/")[0]: name for name, host in made["hosts"].items() for rail in host["rails"]}


def played(found: Step, owner: Mapping[str, str]) -> Pass:
    logs = {}
    for name, lines in found.lines.items():
        out = []
        for line in lines[:-1]:
            _number, rail, _role, peer, *_rest = line.split()
            bad = BAD[1] == rail and BAD[0] in (name, owner[peer])
            out.append(tester_logs.frame(line, 0, LINK + tester_logs.ROW % ("39.20" if bad else "391.52"), HEADER))
        logs[name] = tester_logs.log(found.number, lines, out)
    return Pass(logs, {})


def slots() -> dict[int, dict[str, int]]:
    """Time slots of one kind of test, for so many hosts: one pair after another, and as the product plans them."""
    found = {}
    for hosts in SIZES:
        names = [f"gpu-{number:03d}" for number in range(hosts)]
        rounds, sampled = (planned(names, ["rail0"], {"mode": mode, "rounds": 3}) for mode in ("all_pairs", "sampled"))
        found[hosts] = {
            "one pair after another": sum(map(len, rounds)),
            "all pairs in rounds": len(rounds),
            "3 meetings per host": len(sampled),
        }
    return found


if __name__ == "__main__":
    if len(sys.argv) == 1:
        print(json.dumps(slots()))
    else:
        main(int(sys.argv[1]), int(sys.argv[2]), sys.argv[3], int(sys.argv[4]))
