"""Part of `make bench`: what applying to a cluster and waiting for it costs, and planning without hosts.

`python -m tests.bench.cluster [NODES]` prints the rows. The API server is a real one with the definitions of the newest
release line and hollow nodes (tests/tools/hollow.py). Both ways to apply objects run in one playbook, on objects that
are there already, so that nothing but their own cost is measured.
"""

from __future__ import annotations

import json
import resource
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

from tests.bench import Row, jobs, sizes, table
from tests.tools import environment

REPO = environment.REPO
NODES, HOSTS = 1000, 1000
FABRIC = {"supernet": "10.64.0.0/10", "rail_prefix": 19, "capacity": {"hosts": 1024, "pods_per_host": 1}}
CRDS = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions"
# Seconds that the wait may take. It ends without success: no operator runs here.
WAIT = 60

MODELS = """
import json, sys, time
sys.path[:0] = ["."]
from tests.tools import importable
from tests.unit.support.plan_factory import fleet
from ansible_collections.gpufabric.rdma.plugins.module_utils._fabric.operator.profiles import registry
from ansible_collections.gpufabric.rdma.plugins.module_utils._fabric.plan.plan import plan
seconds = 0.0
for turn in range(2):
    for name in registry.names():
        hosts = fleet(2, rails=8, link_layer=registry.get(name).link_layer)
        begin = time.process_time()
        plan({"supernet": "192.168.0.0/16", "rail_count": 8, "profile": name}, hosts)
        seconds += (time.process_time() - begin) * turn
print(json.dumps(seconds * 1000))
"""
FACTS = """
import sys
sys.path[:0] = ["."]
from tests.tools import importable
from tests.unit.support.plan_factory import fleet
from ansible_collections.gpufabric.rdma.plugins.module_utils._controller import recorded_facts
hosts = fleet({hosts}, 8)
text = recorded_facts.text
texts = {{n: text(at, ["rdma_hosts"], {{}}, facts=h["facts"]) for at, (n, h) in enumerate(hosts.items())}}
recorded_facts.write({folder!r}, texts, False)
"""


def main(nodes: int = NODES) -> list[Row]:
    """Measure and return the rows."""
    return [*models(), *recorded(), *on_a_cluster(nodes)]


def models() -> list[Row]:
    """Planning 8 rails once with each network model, the objects among it; processor time."""
    return [("plan and objects of 8 rails, all network models: processor time", float(script(MODELS)), "ms", 50.0)]


def recorded() -> list[Row]:
    """The playbook plan from recorded facts, from its start to its end."""
    with tempfile.TemporaryDirectory() as folder:
        script(FACTS.format(hosts=HOSTS, folder=f"{folder}/facts"))
        given = ["-e", f"rdma_facts_dir={folder}/facts", "-e", f"rdma_manifests_dir={folder}/manifests"]
        argv = ["ansible-playbook", "playbooks/plan.yml", *given, "-e", json.dumps({"rdma_fabric": FABRIC})]
        before, begin = resource.getrusage(resource.RUSAGE_CHILDREN), time.monotonic()
        done = subprocess.run(argv, cwd=REPO, env=environment.environ(), capture_output=True, text=True)
        after, seconds = resource.getrusage(resource.RUSAGE_CHILDREN), time.monotonic() - begin
    if done.returncode:
        raise SystemExit(f"bench: the plan failed\n{done.stdout[-3000:]}")
    name = f"plan from recorded facts of {HOSTS} hosts, command"
    spent = after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime
    # Its steps follow each other: this is what it takes on a machine that does nothing else.
    return [(name, seconds, "s", 5.0), (f"{name}: processor time", spent, "s", 4.5)]


def script(text: str) -> str:
    done = subprocess.run([sys.executable, "-c", text], cwd=REPO, capture_output=True, text=True)
    if done.returncode:
        raise SystemExit(f"bench: {done.stderr[-3000:]}")
    return done.stdout


def on_a_cluster(nodes: int) -> list[Row]:
    from tests.tools import hollow

    rails, resources = ["rail0"], ["rdma/rdma_rail0"]
    with (
        tempfile.TemporaryDirectory(prefix="gpufabric-hollow-") as folder,
        hollow.cluster(Path(folder), nodes, rails, resources) as found,
    ):
        define(found.call)
        kubeconfig = str(found.kubeconfig(hollow.ADMIN))
        return [*applied(kubeconfig, Path(folder)), *waited(kubeconfig, found.call, nodes)]


def define(call: Callable[..., str]) -> None:
    """Make the API server serve the kinds of the newest line."""
    import yaml

    newest = sorted((REPO / "tests" / "fixtures" / "crds").glob("v*"))[-1]
    for path in sorted(newest.glob("*.yaml")):
        definition = yaml.load(path.read_text(), yaml.CSafeLoader)
        call("POST", CRDS, definition)
        name = definition["metadata"]["name"]
        end = time.monotonic() + 60
        while '"NamesAccepted"' not in (text := call("GET", f"{CRDS}/{name}")) or '"Established"' not in text:
            if time.monotonic() > end:
                raise SystemExit(f"bench: {name} is not served")
            time.sleep(0.2)


def planned(rails: int) -> dict[str, Any]:
    from tests.tools import importable  # noqa: F401
    from tests.unit.support.plan_factory import fleet

    from ansible_collections.gpufabric.rdma.plugins.module_utils._fabric.plan.plan import plan

    fabric = {"supernet": "10.64.0.0/10", "rail_count": rails, "operator": {"namespace": "default"}}
    return plan(fabric, fleet(2, rails=rails))


def applied(kubeconfig: str, folder: Path) -> list[Row]:
    """40 objects that do not differ: with one task, and with one task of kubernetes.core per object."""
    made = planned(8)["objects"]["networks"]
    objects = [renamed(item, suffix) for suffix in ("", "-b", "-c") for item in made][:40]
    given = {"kubeconfig": kubeconfig, "objects": objects}
    jobs.run("fabric_objects", given)
    again = jobs.run("fabric_objects", given)
    if again.result["changed"]:
        raise SystemExit("bench: the second run changed objects")
    one = timed(folder, [{"gpufabric.rdma.fabric_objects": given}])
    each = [{"kubernetes.core.k8s": {"kubeconfig": kubeconfig, "definition": item}} for item in objects]
    many = timed(folder, each)
    name = f"{len(objects)} objects that do not differ"
    return [
        (f"{name}: requests per object", again.result["requests"] / len(objects), "", 2.0),
        (f"{name}: one task", one, "s", None),
        (f"{name}: a task of kubernetes.core.k8s each", many, "s", None),
        (f"{name}: share of the time of kubernetes.core.k8s", one / many, "", 1 / 8),
    ]


def renamed(item: Mapping[str, Any], suffix: str) -> dict[str, Any]:
    return {**item, "metadata": {**item["metadata"], "name": item["metadata"]["name"] + suffix}}


def timed(folder: Path, tasks: Sequence[Mapping[str, Any]]) -> float:
    """Return the seconds of a playbook beyond those of one without these tasks."""
    return max(played(folder, tasks) - played(folder, []), 0.01)


def played(folder: Path, tasks: Sequence[Mapping[str, Any]]) -> float:
    named = [{"name": f"Task {number}", **task} for number, task in enumerate(tasks)]
    variables = {"ansible_python_interpreter": sys.executable}
    play = {"hosts": "localhost", "connection": "local", "gather_facts": False, "vars": variables, "tasks": named}
    path = folder / "play.json"
    path.write_text(json.dumps([play]))
    begin = time.monotonic()
    argv = ["ansible-playbook", "-i", "localhost,", str(path)]
    done = subprocess.run(argv, cwd=REPO, env=environment.environ(), capture_output=True, text=True)
    if done.returncode:
        raise SystemExit(f"bench: {done.stdout[-3000:]}")
    return time.monotonic() - begin


def waited(kubeconfig: str, call: Callable[..., str], nodes: int) -> list[Row]:
    """Waiting for a policy with three pods on each node, until the end of the time."""
    policy = planned(1)["objects"]["policy"]
    names = [item["metadata"]["name"] for item in json.loads(call("GET", "/api/v1/nodes"))["items"]]
    jobs.run("fabric_objects", {"kubeconfig": kubeconfig, "objects": policy})
    with ThreadPoolExecutor(16) as pool:
        list(pool.map(lambda name: call("POST", "/api/v1/namespaces/default/pods", pod(*name)), pods(names)))
    wanted = {"objects": policy, "nodes": names, "release": "26.7.1", "namespace": "default", "timeout": WAIT}
    step = jobs.run("fabric_wait", {"kubeconfig": kubeconfig, **wanted}, fails=True)
    name = f"fabric_wait of {WAIT} s, {nodes} nodes with {3 * nodes} pods"
    return [
        (f"{name}: requests", step.result["requests"], "", 30),
        (f"{name}: peak memory", step.peak, "MiB", 300.0),
    ]


def pods(nodes: Sequence[str]) -> list[tuple[str, str]]:
    return [(node, f"{name}-{node}") for node in nodes for name in ("plugin", "multus", "cni")]


def pod(node: str, name: str) -> dict[str, Any]:
    container = {"name": "main", "image": "registry.example.com/plugin:1"}
    return {"metadata": {"name": name}, "spec": {"nodeName": node, "containers": [container]}}


if __name__ == "__main__":
    print(table(main(sizes(__doc__, NODES)[0])))
