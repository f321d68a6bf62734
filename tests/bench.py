"""`make bench`: what the collection costs. Prints a table and writes .cache/bench.json.

Without the lab (--no-lab): the plan of 1000 hosts x 8 rails as a function and as a task, rdma_facts on an 8-rail
machine, judging and reporting of big fleets, and the measurement in pods of 1000 hollow nodes (--no-jobs leaves these
six minutes out). On the lab: module executions and wall time of a converged prepare
against as many pings, and what the last measurement cost (requests to the API server, share of time in perftest).
"""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

from tests import environment

REPO = environment.REPO
OUT = environment.CACHE / "bench.json"
HOSTS, RAILS = 1000, 8
FABRIC = {"supernet": "10.64.0.0/10", "rail_prefix": 19, "capacity": {"hosts": 1024, "pods_per_host": 1}}
# name, measured, unit, limit (None: only shown)
Row = tuple[str, float, str, "float | None"]

PLAN_FUNCTION = """
import json, resource, sys, time
sys.path[:0] = ["tests/unit", "."]
import conftest, plan_factory
from ansible_collections.gpufabric.rdma.plugins.module_utils._fabric.plan import plan
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
sys.path[:0] = ["tests/unit", "."]
import conftest, pytest, sysfs_tree
with pytest.MonkeyPatch.context() as patch, tempfile.TemporaryDirectory() as folder:
    host = sysfs_tree.materialise("gpu-server-8-rails", Path(folder), patch)
    begin = time.perf_counter()
    facts = host.inventory().to_dict()
    print(json.dumps([time.perf_counter() - begin, len(json.dumps(facts)) / 1024]))
"""


def main() -> int:
    parser = argparse.ArgumentParser(prog="tests.bench", description=__doc__)
    parser.add_argument("--no-lab", action="store_true")
    parser.add_argument("--no-jobs", action="store_true")
    options = parser.parse_args()
    environment.main()
    rows = [*plan_function(), *facts(), *scale(), *plan_task()]
    jobs, jobs_table = ([], "") if options.no_jobs else in_pods()
    rows += jobs
    if not options.no_lab:
        rows += lab_rows()
    OUT.write_text(json.dumps([dict(zip(("name", "value", "unit", "limit"), row)) for row in rows], indent=2) + "\n")
    print(table(rows))
    print(f"\nIn pods:\n{jobs_table}" if jobs_table else "")
    print(f"\nTime slots of a whole measurement of one kind:\n{slots()}\n")
    print(f"written to {OUT.relative_to(REPO)}")
    return 1 if any(limit is not None and value > limit for _name, value, _unit, limit in rows) else 0


def script(text: str) -> list[float]:
    done = subprocess.run([str(environment.VENV / "bin" / "python"), "-c", text], cwd=REPO,
                          capture_output=True, text=True)
    if done.returncode:
        raise SystemExit(f"bench: {done.stderr[-3000:]}")
    return json.loads(done.stdout)


def plan_function() -> list[Row]:
    made = PLAN_FUNCTION.format(hosts=HOSTS, rails=RAILS, fabric=FABRIC)
    seconds, peak, more, fact_size, plan_size = script(made)
    name = f"plan of {HOSTS} hosts x {RAILS} rails, function"
    return [
        (f"{name}: time", seconds, "s", 3.0),
        (f"{name}: peak memory of the process", peak, "MiB", 300.0),
        (f"{name}: of it for planning", more, "MiB", None),
        ("plan as JSON", plan_size, "MB", None),
        ("facts of a made-up 8-rail host", fact_size, "KiB", 20.0),
    ]


def facts() -> list[Row]:
    seconds, size = script(FACTS)
    return [
        ("rdma_facts on the 8-rail fixture, net", seconds, "s", 0.3),
        ("its facts", size, "KiB", 20.0),
    ]


def scale() -> list[Row]:
    """Plan, schedule, judge and report of whole fleets, each in a process of its own."""
    rows: list[Row] = []
    for hosts, rails, mode, rounds in ((1024, 8, "sampled", 8), (128, 8, "all_pairs", 3)):
        words = [str(hosts), str(rails), mode, str(rounds)]
        argv = [str(environment.VENV / "bin" / "python"), "-m", "tests.bench_scale", *words]
        done = subprocess.run(argv, cwd=REPO, capture_output=True, text=True)
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


def in_pods() -> tuple[list[Row], str]:
    """The measurement in pods of hollow nodes: rows for its limits, and its own table."""
    argv = [str(environment.VENV / "bin" / "python"), "-m", "tests.bench_jobs"]
    done = subprocess.run(argv, cwd=REPO, stdout=subprocess.PIPE, text=True)
    if done.returncode:
        raise SystemExit("bench: the measurement in pods failed")
    sizes, _newline, table = done.stdout.partition("\n")
    rows: list[Row] = []
    for size in json.loads(sizes):
        name = f"{size['nodes']} nodes in pods"
        rows += [
            (f"{name}: requests a node", sum(size["kinds"].values()) / size["nodes"], "", 3.5),
            (f"{name}: most requests in a second", size['rate'], "", 150),
            (f"{name}: requests sent back with 429", size["refused"], "", 0),
            (f"{name}: peak memory of a module", max(size["peak"].values()), "MiB", 400.0),
        ]
    return rows, table


def slots() -> str:
    argv = [str(environment.VENV / "bin" / "python"), "-m", "tests.bench_scale"]
    return subprocess.run(argv, cwd=REPO, capture_output=True, text=True, check=True).stdout.rstrip()


def plan_task() -> list[Row]:
    """The plan's tasks with the facts of the fleet in Ansible's fact cache, as a run has them after discover."""
    with tempfile.TemporaryDirectory() as folder:
        inventory = fact_cache(Path(folder))
        env = {**environment.environ(), "ANSIBLE_CACHE_PLUGIN": "jsonfile",
               "ANSIBLE_CACHE_PLUGIN_CONNECTION": str(Path(folder) / "facts")}
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
    path.write_text(json.dumps([{"name": "Plan", "hosts": "rdma_hosts", "gather_facts": False, "tasks": [include]}]))
    return path


def fact_cache(folder: Path) -> Path:
    sys.path[:0] = [str(REPO / "tests" / "unit")]
    import plan_factory

    fleet = plan_factory.fleet(HOSTS, RAILS)
    (folder / "facts").mkdir()
    for name, host in fleet.items():
        # The form in which ansible-core 2.19 and later keep facts in a file cache.
        (folder / "facts" / f"s1_{name}").write_text(json.dumps({"__payload__": json.dumps({"rdma": host["facts"]})}))
    inventory = folder / "hosts.json"
    variables = {"rdma_fabric": FABRIC}
    inventory.write_text(json.dumps(
        {"all": {"children": {"rdma_hosts": {"hosts": dict.fromkeys(fleet), "vars": variables}}}}))
    return inventory.rename(inventory.with_suffix(".yml"))


def lab_rows() -> list[Row]:
    from tests.scenario import lab, playbook, report

    lab("up")
    playbook("prepare").must()
    converged = playbook("prepare").must()
    modules = len(converged.modules("lab-1"))
    pings = ping_playbook(modules)
    last = report()
    result: dict[str, Any] = last["context"]
    rows: list[Row] = [
        ("converged prepare: module executions a host", modules, "", 14),
        ("converged prepare: wall time", converged.seconds, "s", None),
        (f"{modules} ping tasks: wall time", pings, "s", None),
        ("prepare / pings", converged.seconds / pings, "", None),
    ]
    rows += [(f"share of perftest in its slots, {s['where']}", s["share"] or 0.0, "", None) for s in last["schedule"]]
    numbers = [(key, value) for key, value in flat(result) if isinstance(value, (int, float))]
    return [*rows, *((f"last measurement: {key}", value, "", None) for key, value in numbers)]


def ping_playbook(count: int) -> float:
    from tests.scenario import playbook

    tasks = [{"name": f"Ping {n}", "ansible.builtin.ping": {}} for n in range(count)]
    play = [{"name": "Ping", "hosts": "rdma_hosts", "gather_facts": False, "become": True, "tasks": tasks}]
    with tempfile.NamedTemporaryFile("w", suffix=".yml") as file:
        json.dump(play, file)
        file.flush()
        return playbook(file.name).must().seconds


def flat(value: dict[str, Any], prefix: str = "") -> list[tuple[str, Any]]:
    rows: list[tuple[str, Any]] = []
    for key, inner in value.items():
        rows += flat(inner, f"{prefix}{key} ") if isinstance(inner, dict) else [(f"{prefix}{key}", inner)]
    return rows


def table(rows: list[Row]) -> str:
    width = max(len(row[0]) for row in rows)
    lines = []
    for name, value, unit, limit in rows:
        verdict = "" if limit is None else f"   limit {limit:g} {unit}{'' if value <= limit else '   EXCEEDED'}"
        lines.append(f"{name:{width}}  {value:10.3f} {unit}{verdict}")
    return "\n".join(lines)


if __name__ == "__main__":
    sys.exit(main())
