"""`make bench`: what the collection costs. Prints a table and writes .cache/bench.json.

Parts, all of them or those of --only:
  plan       of 1000 hosts x 8 rails, as a function and as a task
  facts      rdma_facts on an 8-rail machine
  fleets     time slots of a measurement; judging and reporting of big fleets
  diagnosis  accuracy of diagnosis on simulated fabrics: up to 70 minutes; writes docs/diagnosis-accuracy.md
  cluster    planning without hosts; applying objects, and waiting on 1000 hollow nodes: minutes
  pods       the measurement in pods of 1000 hollow nodes: six minutes
  mesh       of 64 hosts x 8 rails: on the controller, and one slot of a host with the tester
  starts     starting the testers of 1000 hosts with 5 forks: a quarter of an hour
  loopback   preparing 200 hosts that are fixture trees on this machine, then 10 against a plain role: half an hour
  prepare    preparing the hosts of the lab, against a plain role and against pings; the lab is reset before and after
  measured   what the last measurement on the lab cost: requests to the API server, share of time in perftest
`python -m tests.bench.loopback 10` and `python -m tests.bench.handmade 10` run the halves of `loopback` with 10 hosts.
It runs in the environment's Python, which `make bench` makes first.
"""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

from tests.bench import Row, table
from tests.tools import environment

REPO = environment.REPO
OUT = environment.CACHE / "bench.json"
HOSTS, RAILS = 1000, 8
FABRIC = {"supernet": "10.64.0.0/10", "rail_prefix": 19, "capacity": {"hosts": 1024, "pods_per_host": 1}}

PLAN_FUNCTION = """
import json, resource, sys, time
sys.path[:0] = ["."]
from tests.tools import importable
from tests.unit.support import plan_factory
from ansible_collections.gpufabric.rdma.plugins.module_utils._fabric.plan.plan import plan
hosts = plan_factory.fleet({hosts}, {rails})
facts = max(len(json.dumps(h["facts"])) for h in hosts.values())
base = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
begin = time.perf_counter()
made = plan({fabric!r}, hosts)
seconds = time.perf_counter() - begin
peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
print(json.dumps([seconds, peak / 1024, (peak - base) / 1024, facts / 1024, len(json.dumps(made)) / 1e6]))
"""

FACTS = """
import json, sys, tempfile, time
from pathlib import Path
sys.path[:0] = ["."]
import pytest
from tests.tools import importable
from tests.unit.support import sysfs_tree
with pytest.MonkeyPatch.context() as patch, tempfile.TemporaryDirectory() as folder:
    host = sysfs_tree.materialise("gpu-server-8-rails", Path(folder), patch)
    begin = time.perf_counter()
    facts = host.inventory().to_dict()
    print(json.dumps([time.perf_counter() - begin, len(json.dumps(facts)) / 1024]))
"""


def main() -> int:
    parser = argparse.ArgumentParser(
        prog="tests.bench", description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--only", nargs="+", default=list(PARTS), choices=PARTS, metavar="PART", help=" ".join(PARTS))
    rows = [row for name in parser.parse_args().only for row in PARTS[name]()]
    OUT.write_text(json.dumps([dict(zip(("name", "value", "unit", "limit"), row)) for row in rows], indent=2) + "\n")
    print(f"\n{table(rows)}\n\nwritten to {OUT.relative_to(REPO)}")
    return 1 if any(limit is not None and value > limit for _name, value, _unit, limit in rows) else 0


def script(text: str) -> list[float]:
    done = subprocess.run([sys.executable, "-c", text], cwd=REPO, capture_output=True, text=True)
    if done.returncode:
        raise SystemExit(f"bench: {done.stderr[-3000:]}")
    return json.loads(done.stdout)


def plan() -> list[Row]:
    """The plan as a function, and as a task."""
    made = PLAN_FUNCTION.format(hosts=HOSTS, rails=RAILS, fabric=FABRIC)
    seconds, peak, more, fact_size, plan_size = script(made)
    name = f"plan of {HOSTS} hosts x {RAILS} rails, function"
    return [
        (f"{name}: time", seconds, "s", 3.0),
        (f"{name}: peak memory of the process", peak, "MiB", 300.0),
        (f"{name}: of it for planning", more, "MiB", None),
        ("plan as JSON", plan_size, "MB", None),
        ("facts of a made-up 8-rail host", fact_size, "KiB", 20.0),
        *plan_task(),
    ]


def plan_task() -> list[Row]:
    """The plan's tasks with the facts of the fleet in Ansible's fact cache, as a run has them after discover."""
    with tempfile.TemporaryDirectory() as folder:
        inventory = fact_cache(Path(folder))
        env = {
            **environment.environ(),
            "ANSIBLE_CACHE_PLUGIN": "jsonfile",
            "ANSIBLE_CACHE_PLUGIN_CONNECTION": str(Path(folder) / "facts"),
        }
        begin = time.perf_counter()
        argv = ["/usr/bin/env", "ansible-playbook", "-i", str(inventory), str(plan_playbook(Path(folder)))]
        done = subprocess.run(argv, cwd=REPO, env=env, capture_output=True, text=True)
        seconds = time.perf_counter() - begin
    if done.returncode:
        raise SystemExit(f"bench: the plan failed\n{done.stdout[-3000:]}")
    return [(f"plan of {HOSTS} hosts x {RAILS} rails, task fed from facts: wall time", seconds, "s", None)]


def plan_playbook(folder: Path) -> Path:
    include = {"ansible.builtin.include_tasks": str(REPO / "playbooks/tasks/plan.yml"), "run_once": True}
    path = folder / "plan.yml"
    play = {"name": "Plan", "hosts": "rdma_hosts", "gather_facts": False, "tasks": [include]}
    path.write_text(json.dumps([{**play, "vars_files": [str(REPO / "playbooks/vars/plan.yml")]}]))
    return path


def fact_cache(folder: Path) -> Path:
    sys.path[:0] = [str(REPO)]
    from tests.unit.support import plan_factory

    fleet = plan_factory.fleet(HOSTS, RAILS)
    (folder / "facts").mkdir()
    for name, host in fleet.items():
        # The form in which ansible-core 2.19 and later keep facts in a file cache.
        (folder / "facts" / f"s1_{name}").write_text(json.dumps({"__payload__": json.dumps({"rdma": host["facts"]})}))
    inventory = folder / "hosts.json"
    # What discover registers of a host that answered.
    variables = {"rdma_fabric": FABRIC, "__rdma_read": {"ansible_facts": {}}}
    inventory.write_text(
        json.dumps({"all": {"children": {"rdma_hosts": {"hosts": dict.fromkeys(fleet), "vars": variables}}}})
    )
    return inventory.rename(inventory.with_suffix(".yml"))


def facts() -> list[Row]:
    seconds, size = script(FACTS)
    return [
        ("rdma_facts on the 8-rail fixture, net", seconds, "s", 0.3),
        ("its facts", size, "KiB", 20.0),
    ]


def fleets() -> list[Row]:
    """Plan, schedule, judge and report of whole fleets, each in a process of its own."""
    argv = [sys.executable, "-m", "tests.bench.scale"]
    slots = json.loads(subprocess.run(argv, cwd=REPO, capture_output=True, text=True, check=True).stdout)
    rows = slot_rows(slots)
    for hosts, rails, mode, rounds in ((1024, 8, "sampled", 8), (128, 8, "all_pairs", 3)):
        words = [str(hosts), str(rails), mode, str(rounds)]
        done = subprocess.run([*argv, *words], cwd=REPO, capture_output=True, text=True)
        if done.returncode:
            raise SystemExit(f"bench: {done.stderr[-3000:]}")
        made = json.loads(done.stdout)
        name = f"{hosts} hosts x {rails} rails, {mode}: {made['results']} results"
        rows += [
            (f"{name}: plan, schedule, judge, report", sum(made["seconds"].values()), "s", 10.0),
            *((f"{name}: {step}", value, "s", None) for step, value in made["seconds"].items()),
            (f"{name}: peak memory of the process", made["peak"], "MiB", 600.0),
            (f"{name}: HTML", made["html"], "MB", 5.0),
        ]
    return rows


def slot_rows(slots: dict[str, dict[str, int]]) -> list[Row]:
    return [
        (f"{hosts} hosts, slots of one kind: {way}", count, "", None)
        for hosts, ways in slots.items()
        for way, count in ways.items()
    ]


def diagnosis() -> list[Row]:
    """Accuracy of diagnosis; writes docs/diagnosis-accuracy.md."""
    from tests.bench import diagnosis, simulation

    begin = time.perf_counter()
    faults = diagnosis.write_page()
    print("\n".join(f"MISSED: {fault}" for fault in faults))
    table = simulation.fill()
    missed = simulation.write(table)
    print("\n".join(f"MISSED: {cell}" for cell in missed))
    return [
        ("diagnosis of simulated fabrics: targets missed", len(faults), "", 0),
        ("diagnosis of simulated fabrics: cells of switches and intermittent faults that miss", len(missed), "", 0),
        ("diagnosis of simulated fabrics: time", time.perf_counter() - begin, "s", None),
    ]


def pods() -> list[Row]:
    """The measurement in pods of hollow nodes."""
    argv = [sys.executable, "-m", "tests.bench.jobs"]
    done = subprocess.run(argv, cwd=REPO, stdout=subprocess.PIPE, text=True)
    if done.returncode:
        raise SystemExit("bench: the measurement in pods failed")
    sizes, _newline, own_table = done.stdout.partition("\n")
    print(f"In pods:\n{own_table}")
    rows: list[Row] = []
    for size in json.loads(sizes):
        name = f"{size['nodes']} nodes in pods"
        rows += [
            (f"{name}: requests a node", sum(size["kinds"].values()) / size["nodes"], "", 3.5),
            (f"{name}: most requests in a second", size["rate"], "", 150),
            (f"{name}: requests sent back with 429", size["refused"], "", 0),
            (f"{name}: peak memory of a module", max(size["peak"].values()), "MiB", 400.0),
        ]
    return rows


def cluster() -> list[Row]:
    from tests.bench import cluster

    return cluster.main()


def mesh() -> list[Row]:
    from tests.bench import mesh

    return mesh.main()


def starts() -> list[Row]:
    """Whether 1000 testers start in time with 5 forks."""
    from tests.bench import starts

    return starts.main()


def loopback() -> list[Row]:
    from tests.bench import handmade, loopback

    return [*loopback.main(), *handmade.main()]


def prepare() -> list[Row]:
    from tests.bench import prepare

    return prepare.main()


def measured() -> list[Row]:
    """What is in the report of the last measurement on the lab."""
    from tests.scenario import REPORT, report

    if not (REPORT / "report.json").is_file():
        print("measured: left out, there is no report of a measurement; `make demo` makes one")
        return []
    last = report()
    rows: list[Row] = [
        (f"share of perftest in its slots, {slot['where']}", slot["share"] or 0.0, "", None)
        for slot in last["schedule"]
    ]
    numbers = [(key, value) for key, value in flat(last["context"]) if isinstance(value, (int, float))]
    return [*rows, *((f"last measurement: {key}", value, "", None) for key, value in numbers)]


def flat(value: dict[str, Any], prefix: str = "") -> list[tuple[str, Any]]:
    rows: list[tuple[str, Any]] = []
    for key, inner in value.items():
        rows += flat(inner, f"{prefix}{key} ") if isinstance(inner, dict) else [(f"{prefix}{key}", inner)]
    return rows


PARTS: dict[str, Callable[[], list[Row]]] = {
    "plan": plan, "facts": facts, "fleets": fleets, "diagnosis": diagnosis, "cluster": cluster, "pods": pods,
    "mesh": mesh, "starts": starts, "loopback": loopback, "prepare": prepare, "measured": measured,
}  # fmt: skip

if __name__ == "__main__":
    sys.exit(main())
