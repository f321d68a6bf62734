"""Part of `make bench`: what the measurement in pods costs a big cluster, and the machine that runs Ansible.

`python -m tests.bench.jobs [NODES ...]` prints a line of JSON and a table. It plays one pass of a sampled round of 8
rails on as many nodes, in one cluster of hollow nodes (tests/tools/hollow.py).
The modules of the role rdma_validate run as
they are, each in a process of its own. Requests are those that the API server wrote down for their user.
"""

from __future__ import annotations

import json
import subprocess
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from datetime import datetime
from pathlib import Path
from typing import Any, NamedTuple

REPO = Path(__file__).resolve().parents[2]
sys.path[:0] = [str(REPO)]

SIZES, RAILS = (100, 300, 1000), 8
STEP_SECONDS = 300
FABRIC = {
    "supernet": "10.64.0.0/10",
    "rail_prefix": 19,
    "capacity": {"hosts": 1024, "pods_per_host": 1},
    "tests": {"mode": "sampled", "rounds": 1, "repeats": 1, "duration": 2, "mesh": False},
}
SCRIPT = REPO / "roles" / "rdma_validate" / "files" / "tester.sh"


class Step(NamedTuple):
    """What a module execution took: seconds, the most memory its process had in MiB, and what it returned."""

    seconds: float
    peak: float
    result: dict[str, Any]


class Asked(NamedTuple):
    """Requests of one user: by what was asked, the most in a second, and how many were sent back with 429."""

    kinds: Mapping[str, int]
    rate: int
    refused: int


def main(sizes: Sequence[int] = SIZES) -> list[dict[str, Any]]:
    """Measure and return one row a size."""
    from tests.tools.hollow import USER, cluster

    plans = {size: make_plan(size) for size in sizes}
    rails = plans[sizes[0]]["rails"]
    with tempfile.TemporaryDirectory(prefix="gpufabric-hollow-") as folder:
        begin = time.monotonic()
        names, resources = [rail["name"] for rail in rails], [f"rdma/{rail['resource']}" for rail in rails]
        with cluster(Path(folder), max(sizes), names, resources) as found:
            print(f"bench: {max(sizes)} hollow nodes in {time.monotonic() - begin:.0f} s", file=sys.stderr)
            auth = {"kubeconfig": str(found.kubeconfig(USER))}
            return [measure(plans[size], auth, found.audit, Path(folder) / f"evidence-{size}") for size in sizes]


def make_plan(hosts: int) -> dict[str, Any]:
    from tests.tools import importable  # noqa: F401
    from tests.unit.support import plan_factory

    from ansible_collections.gpufabric.rdma.plugins.module_utils._fabric.plan.plan import plan

    return plan(FABRIC, plan_factory.fleet(hosts, RAILS))


def measure(plan: Mapping[str, Any], auth: Mapping[str, Any], audit: Path, evidence: Path) -> dict[str, Any]:
    """Start, judge, play one pass, judge, remove: the steps of the role's tasks/pods.yml."""
    evidence.mkdir()
    pods = {**auth, "evidence": str(evidence), "timeout": STEP_SECONDS, "run": "bench"}
    judge = {"plan": plan, "where": "pod", "evidence": str(evidence)}
    seen = audit.stat().st_size
    steps = {
        "start": run(
            "fabric_testers",
            {**pods, "state": "started", "plan": plan, "image": "registry/tester:1", "script": str(SCRIPT)},
        )
    }
    lines = run("fabric_judge", judge).result
    played = {key: lines[key] for key in ("pass", "lines", "slot", "seconds")}
    steps["play"] = run(
        "fabric_testers", {**pods, **played, "state": "played", "start_in": 15 + len(plan["hosts"]) // 20}
    )
    verdict = run("fabric_judge", judge).result
    steps["remove"] = run("fabric_testers", {**pods, "state": "absent"})
    asked = written(audit, seen, sum(step.result["requests"] for step in steps.values()))
    check(plan, steps, verdict)
    print(f"bench: {len(plan['hosts'])} nodes done", file=sys.stderr, flush=True)
    return {
        "nodes": len(plan["hosts"]),
        **asked._asdict(),
        "lead": steps["play"].result["start_in"],
        "pass": lines["seconds"],
        "seconds": {name: round(step.seconds, 1) for name, step in steps.items()},
        "peak": {name: round(step.peak) for name, step in steps.items()},
    }


def check(plan: Mapping[str, Any], steps: Mapping[str, Step], verdict: Mapping[str, Any]) -> None:
    """Stop when anything went wrong: a figure of a run that failed is worth nothing."""
    problems = [list(step.result.get("problems", {}).items())[:3] for step in steps.values()]
    results = Counter(result["verdict"] for result in verdict["results"])
    if any(problems) or not verdict["done"] or set(results) != {"pass"}:
        raise SystemExit(f"bench: {len(plan['hosts'])} nodes: {problems}, done {verdict['done']}, results {results}")


def written(audit: Path, seen: int, said: int) -> Asked:
    """Return what the API server wrote down after the first ``seen`` bytes; it must be as many as the modules counted.

    A request is written when it has ended on the server's side, which for a watch may be a moment later.
    """
    for _attempt in range(20):
        asked = counted(audit.read_bytes()[seen:].decode().splitlines())
        if sum(asked.kinds.values()) == said:
            return asked
        time.sleep(0.5)
    raise SystemExit(f"bench: the modules counted {said} requests, the API server others: {asked.kinds}")


def run(module: str, params: Mapping[str, Any], fails: bool = False) -> Step:
    """Run a module's main() in a process of its own. ``fails``: whether it may end with a failure."""
    argv = [sys.executable, "-m", "tests.bench.jobs", "--module", module]
    begin = time.monotonic()
    done = subprocess.run(argv, cwd=REPO, input=json.dumps(params), capture_output=True, text=True)
    seconds = time.monotonic() - begin
    lines = done.stdout.split("\n")
    lines = [line for line in lines if line]
    result = json.loads(lines[0]) if lines else {"failed": True, "msg": done.stderr[-2000:]}
    if result.get("failed") and not (fails and "requests" in result):
        raise SystemExit(f"bench: {module}: {result['msg']}")
    return Step(seconds, float(lines[1]), result)


def module_main(name: str) -> None:
    """The child of run(): print the module's result and then the most memory that this process had, in MiB."""
    import importlib

    from ansible.module_utils.testing import patch_module_args
    from tests.tools import importable  # noqa: F401

    module = importlib.import_module(f"ansible_collections.gpufabric.rdma.plugins.modules.{name}")
    try:
        with patch_module_args(json.load(sys.stdin)):
            module.main()
    finally:
        # Not getrusage: that counts what the parent had when it started this process.
        status = dict(line.split(":", 1) for line in Path("/proc/self/status").read_text().splitlines())
        print(int(status["VmHWM"].split()[0]) / 1024, flush=True)


def counted(events: Iterable[str]) -> Asked:
    """Count requests in lines of an audit log."""
    kinds: Counter[str] = Counter()
    times: list[float] = []
    refused = 0
    for line in events:
        event = json.loads(line)
        about = event.get("objectRef") or {}
        kinds[" ".join([event["verb"], "/".join(filter(None, (about.get("resource"), about.get("subresource"))))])] += 1
        times.append(datetime.fromisoformat(event["requestReceivedTimestamp"]).timestamp())
        refused += (event.get("responseStatus") or {}).get("code") == 429
    return Asked(dict(sorted(kinds.items())), busiest(sorted(times)), refused)


def busiest(times: Sequence[float]) -> int:
    """Return the most of the ascending times that lie within one second."""
    most = first = 0
    for last, now in enumerate(times, 1):
        while times[first] <= now - 1.0:
            first += 1
        most = max(most, last - first)
    return most


def table(rows: Sequence[Mapping[str, Any]]) -> str:
    """Return the rows as a Markdown table."""
    head = [
        "nodes",
        "requests",
        "a node",
        "exec",
        "logs",
        "lists",
        "watches",
        "others",
        "most in a second",
        "sent back (429)",
        "start, play, remove: s",
        "of it lead, pass: s",
        "peak of each: MiB",
    ]
    lines = [head, ["---"] * len(head), *map(cells, rows)]
    return "\n".join(f"| {' | '.join(line)} |" for line in lines)


def cells(row: Mapping[str, Any]) -> list[str]:
    """Return a row of the table."""
    kinds = Counter(row["kinds"])
    total, lists, watches = kinds.total(), of_verb(kinds, "list"), of_verb(kinds, "watch")
    execs, logs = kinds["get pods/exec"], kinds["get pods/log"]
    numbers = [execs, logs, lists, watches, total - execs - logs - lists - watches, row["rate"], row["refused"]]
    return [
        str(row["nodes"]),
        str(total),
        f"{total / row['nodes']:.2f}",
        *map(str, numbers),
        ", ".join(f"{value:.0f}" for value in row["seconds"].values()),
        f"{row['lead']}, {row['pass']}",
        ", ".join(f"{value:.0f}" for value in row["peak"].values()),
    ]


def of_verb(kinds: Mapping[str, int], verb: str) -> int:
    return sum(count for kind, count in kinds.items() if kind.startswith(f"{verb} "))


if __name__ == "__main__":
    if sys.argv[1:2] == ["--module"]:
        module_main(sys.argv[2])
    else:
        made = main([int(word) for word in sys.argv[1:]] or SIZES)
        print(json.dumps(made))
        print(table(made))
