"""The transport in pods as a whole: start, describe, play, collect, remove; a fault of one stops nobody else."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

import pytest
from tests.unit.support.cluster_fake import FakeCluster

from ansible_collections.gpufabric.rdma.plugins.module_utils._common.errors import ClusterError, InputError
from ansible_collections.gpufabric.rdma.plugins.module_utils._k8s.client.api import ConnectionFailed
from ansible_collections.gpufabric.rdma.plugins.module_utils._k8s.testers import logs
from ansible_collections.gpufabric.rdma.plugins.module_utils._k8s.testers import passes as testers_passes
from ansible_collections.gpufabric.rdma.plugins.module_utils._k8s.testers import steps as testers_steps
from ansible_collections.gpufabric.rdma.plugins.module_utils._k8s.testers.lease import Lease

JOBS = "/apis/batch/v1/namespaces/gpufabric-validate/jobs/gpufabric-testers"
PODS = "/api/v1/namespaces/gpufabric-validate/pods"
DESCRIBED = "=== gpufabric describe v1\nrail rail0 device=mlx5_0\n=== gpufabric described 1\n"
PLAN = {
    "rails": [{"name": "rail0", "netdev": "rail0", "network": "rail0", "resource": "rdma_rail0"}],
    "operator": {"network_namespace": "default"},
    "hosts": {name: {"machine_id": name} for name in ("h1", "h2", "h3")},
    "endpoints": {"host": ["h1", "h2", "h3"], "pod": ["h1", "h2", "h3"]},
}


class World:
    """A cluster of three nodes whose Job makes a pod a node; ``states`` overrides what the pod of a node does."""

    def __init__(self, tmp_path: Path, **states: Any) -> None:
        self.cluster = FakeCluster(*[node(name) for name in ("h1", "h2", "h3")])
        self.clock = self.cluster.clock
        self.clock.at(0.5, lambda: self.make_pods(states))
        self.folder = tmp_path
        self.run = ""
        script = tmp_path / "tester.sh"
        script.write_text("#!/bin/sh\n")
        self.params: dict[str, Any] = {
            "plan": PLAN,
            "limit": [],
            "evidence": str(tmp_path / "ev"),
            "namespace": "gpufabric-validate",
            "name": "gpufabric-testers",
            "image": "img:1",
            "image_pull_policy": "IfNotPresent",
            "image_pull_secret": None,
            "script": str(script),
            "host_network": True,
            "tolerations": [],
            "runtime_class": None,
            "gpu_resource": "nvidia.com/gpu",
            "lifetime": None,
            "cpu": "100m",
            "cpus": 0,
            "idle": 10,
            "run": "",
            "wait": 120,
            "slot_margin": 6,
            "timeout": 60,
            "start_in": 0,
        }

    def give(self, **allocatable: dict[str, str]) -> None:
        """Say what nodes can give; those that are left out give nothing."""
        for name, given in allocatable.items():
            self.cluster.objects[f"/api/v1/nodes/node-{name}"]["status"]["allocatable"] = given

    def test(self, **tests: Any) -> None:
        """Plan these tests."""
        self.params["plan"] = {**PLAN, "tests": tests}

    def make_pods(self, states: dict[str, Any]) -> None:
        for name in ("h1", "h2", "h3"):
            state = states.get(name, RUNNING)
            if state is not None:
                made = pod(f"pod-{name}", None if state is UNSCHEDULABLE else f"node-{name}", state)
                made["metadata"]["labels"].update({"gpufabric.rdma/run": self.run} if self.run else {})
                self.cluster.put(made)
                self.cluster.logs[f"pod-{name}"] = [DESCRIBED]

    def lease(self) -> Lease:
        return Lease(
            self.cluster.api(),
            "gpufabric-validate",
            "gpufabric-testers",
            run=self.run,
            endpoints=3,
            clock=self.clock.clock(),
        )

    def start(self) -> dict[str, Any]:
        return testers_steps.started(self.cluster.api(), self.params, False, clock=self.clock.clock())

    def play(self, lines: dict[str, list[str]]) -> dict[str, Any]:
        given = {**self.params, "pass": 1, "lines": lines, "slot": 10, "seconds": 20}
        return testers_steps.played(self.cluster.api(), given, False, clock=self.clock.clock())

    def remove(self, check: bool = False) -> dict[str, Any]:
        return testers_steps.absent(self.cluster.api(), self.params, check, clock=self.clock.clock())

    def files(self, part: str) -> dict[str, str]:
        return {path.name: path.read_text() for path in sorted((self.folder / "ev" / part).iterdir())}


def node(name: str, ready: str = "True") -> dict[str, Any]:
    return {
        "apiVersion": "v1",
        "kind": "Node",
        "metadata": {"name": f"node-{name}", "labels": {"kubernetes.io/hostname": f"host-{name}"}},
        "status": {"nodeInfo": {"machineID": name}, "conditions": [{"type": "Ready", "status": ready}]},
    }


RUNNING = {"phase": "Running", "containerStatuses": [{"state": {"running": {}}}]}
UNSCHEDULABLE = {
    "phase": "Pending",
    "conditions": [{"type": "PodScheduled", "status": "False", "message": "1 node(s) were unschedulable"}],
}
NO_IMAGE = {
    "phase": "Pending",
    "containerStatuses": [{"state": {"waiting": {"reason": "ImagePullBackOff", "message": "not found"}}}],
}


def pod(name: str, node_name: str | None, status: dict[str, Any]) -> dict[str, Any]:
    labels = {"app.kubernetes.io/managed-by": "gpufabric", "app.kubernetes.io/component": "tester"}
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {"name": name, "namespace": "gpufabric-validate", "labels": labels},
        "spec": {"nodeName": node_name, "containers": [{"image": "img:1"}]},
        "status": status,
    }


def test_start_makes_everything_and_keeps_descriptions(tmp_path: Path) -> None:
    world = World(tmp_path)
    assert world.start() == {
        "endpoints": {"h1": "node-h1", "h2": "node-h2", "h3": "node-h3"},
        "problems": {},
    }
    job = world.cluster.objects[JOBS]
    affinity = job["spec"]["template"]["spec"]["affinity"]["nodeAffinity"]
    term = affinity["requiredDuringSchedulingIgnoredDuringExecution"]["nodeSelectorTerms"][0]
    assert term["matchExpressions"][0]["values"] == ["host-h1", "host-h2", "host-h3"]
    assert world.files("describe") == {"h1.log": DESCRIBED, "h2.log": DESCRIBED, "h3.log": DESCRIBED}


def test_each_class_of_hosts_has_testers_with_its_own_rails(tmp_path: Path) -> None:
    world = World(tmp_path)
    rails = [*PLAN["rails"], {"name": "s0", "netdev": "s0", "network": "s0", "resource": "nvidia.com/vf_s0"}]
    classes = [
        {"name": "default", "hosts": ["h1", "h3"], "rails": ["rail0"], "profile": {"name": "macvlan"}},
        {"name": "storage", "hosts": ["h2"], "rails": ["s0"], "profile": {"name": "sriov"}},
    ]
    world.params.update(plan={**PLAN, "rails": rails, "classes": classes}, host_network=False)
    assert world.start()["problems"] == {}
    for name, hosts, resource in (
        ("default", ["h1", "h3"], "rdma/rdma_rail0"),
        ("storage", ["h2"], "nvidia.com/vf_s0"),
    ):
        job = world.cluster.objects[f"{JOBS}-{name}"]
        template = job["spec"]["template"]
        affinity = template["spec"]["affinity"]["nodeAffinity"]["requiredDuringSchedulingIgnoredDuringExecution"]
        wanted = affinity["nodeSelectorTerms"][0]["matchExpressions"][0]["values"]
        assert wanted == [f"host-{host}" for host in hosts] and job["spec"]["completions"] == len(hosts)
        (container,) = template["spec"]["containers"]
        assert [key for key in container["resources"]["limits"] if "/" in key] == [resource]
        assert f"/gpufabric/rails-{name}" in container["command"]
    config = world.cluster.objects["/api/v1/namespaces/gpufabric-validate/configmaps/gpufabric-testers"]["data"]
    assert (config["rails-default"], config["rails-storage"]) == ("rail rail0 net1 -\n", "rail s0 net1 -\n")
    assert JOBS not in world.cluster.objects
    assert {f"jobs/gpufabric-testers-{name}" for name in ("default", "storage")} <= set(world.remove(True)["removed"])


def test_hosts_with_fewer_rails_have_testers_of_their_own(tmp_path: Path) -> None:
    """A pod that requests the resource of a missing NIC would never start."""
    world = World(tmp_path)
    names = ("rail0", "rail1", "rail2")
    rails = [{"name": name, "netdev": name, "network": name, "resource": f"rdma_{name}"} for name in names]
    lost = {"rail1": {"reason": "it has no port 0000:28:00.0", "resource": "rdma_rail1"}}
    hosts = {**PLAN["hosts"], "h2": {"machine_id": "h2", "missing": lost}}
    world.params.update(plan={**PLAN, "rails": rails, "hosts": hosts}, host_network=False)
    assert world.start()["problems"] == {}
    for job, wanted, resources in (
        (JOBS, ["host-h1", "host-h3"], ["rdma/rdma_rail0", "rdma/rdma_rail1", "rdma/rdma_rail2"]),
        (f"{JOBS}-fewer-1", ["host-h2"], ["rdma/rdma_rail0", "rdma/rdma_rail2"]),
    ):
        template = world.cluster.objects[job]["spec"]["template"]
        affinity = template["spec"]["affinity"]["nodeAffinity"]["requiredDuringSchedulingIgnoredDuringExecution"]
        assert affinity["nodeSelectorTerms"][0]["matchExpressions"][0]["values"] == wanted
        (container,) = template["spec"]["containers"]
        assert [key for key in container["resources"]["limits"] if "/" in key] == resources
    config = world.cluster.objects["/api/v1/namespaces/gpufabric-validate/configmaps/gpufabric-testers"]["data"]
    assert config["rails-fewer-1"] == "rail rail0 net1 -\nrail rail2 net2 -\n"
    assert "rail rail1 net2 -" in config["rails"]
    assert {"jobs/gpufabric-testers", "jobs/gpufabric-testers-fewer-1"} <= set(world.remove(True)["removed"])


def test_a_host_that_is_left_out_gets_no_tester(tmp_path: Path) -> None:
    world = World(tmp_path)
    world.params["plan"] = {**PLAN, "excluded": {"h2": "the host is in use"}}
    assert list(world.start()["endpoints"]) == ["h1", "h3"]


def test_no_tester_starts_on_a_host_that_did_not_answer(tmp_path: Path) -> None:
    world = World(tmp_path, h2=None)
    world.params["plan"] = {**PLAN, "unanswered": {"h2": "the host did not answer"}}
    result = world.start()
    assert list(result["endpoints"]) == ["h1", "h3"]
    assert result["problems"] == {"h2": "the host did not answer"}
    assert world.files("describe")["h2.error"] == "the host did not answer\n"


@pytest.mark.parametrize(
    ("state", "reason"),
    [
        (UNSCHEDULABLE, "pod pod-h2 cannot be scheduled: 1 node(s) were unschedulable"),
        (NO_IMAGE, "pod pod-h2: ImagePullBackOff, image img:1: not found"),
        (None, "no pod was scheduled in 60 s"),
    ],
)
def test_one_that_cannot_start_leaves_the_others(tmp_path: Path, state: Any, reason: str) -> None:
    world = World(tmp_path, h2=state)
    result = world.start()
    assert result["problems"] == {"h2": f"no tester on node node-h2: {reason}"}
    assert sorted(world.files("describe")) == ["h1.log", "h2.error", "h3.log"]
    assert world.files("describe")["h2.error"] == f"no tester on node node-h2: {reason}\n"
    assert world.clock.time <= 61


def test_a_host_without_node_is_a_problem_of_its_own(tmp_path: Path) -> None:
    world = World(tmp_path)
    del world.cluster.objects["/api/v1/nodes/node-h3"]
    result = world.start()
    assert result["endpoints"] == {"h1": "node-h1", "h2": "node-h2"}
    assert "no Node has its machine id h3" in result["problems"]["h3"]


def test_a_tester_that_says_nothing_useful(tmp_path: Path) -> None:
    world = World(tmp_path)
    world.clock.at(1, lambda: world.cluster.logs.update({"pod-h1": ["sh: not found\n"]}))
    problems = world.start()["problems"]
    assert problems == {
        "h1": "tester on node node-h1: the tester did not describe its rails; its last line: sh: not found"
    }


def test_a_node_without_huge_pages_gets_no_tester_and_is_named(tmp_path: Path) -> None:
    world = World(tmp_path, h2=None)
    world.test(hugepages=True)
    world.give(h1={"hugepages-2Mi": "64Mi"}, h3={"hugepages-2Mi": "2Mi"})
    result = world.start()
    assert result["endpoints"] == {"h1": "node-h1", "h3": "node-h3"}
    assert list(result["problems"]) == ["h2"]
    assert result["problems"]["h2"].startswith(
        "no tester on node node-h2: it offers 0 Mi of hugepages-2Mi, a tester needs 2 Mi "
        "(rdma_fabric.tests.hugepages). "
    )
    assert world.files("describe")["h2.error"] == result["problems"]["h2"] + "\n"
    spec = world.cluster.objects[JOBS]["spec"]
    assert spec["completions"] == 2
    (container,) = spec["template"]["spec"]["containers"]
    assert container["resources"]["limits"]["hugepages-2Mi"] == "2097152"
    # The budget of all pairs, three times, what suspects may get, and three passes that locate a fault: each test of
    # three hosts and its probe, as often as half of what fills the budget.
    slot = 10 + 6 * (1 + 2)
    more = 90 + 3 * 12 * 5
    assert spec["template"]["spec"]["activeDeadlineSeconds"] == 4 * 3600 + 2 * (3 * (60 * slot + 60) + more * slot)


def test_where_no_node_can_give_it_nothing_is_started(tmp_path: Path) -> None:
    world = World(tmp_path)
    world.test(memory="cuda:dmabuf")
    assert sorted(world.start()["problems"]) == ["h1", "h2", "h3"]
    assert [path for path in world.cluster.objects if "gpufabric" in path] == []


def test_gpus_that_others_use_are_explained(tmp_path: Path) -> None:
    busy = {
        "phase": "Pending",
        "conditions": [
            {
                "type": "PodScheduled",
                "status": "False",
                "message": "0/3 nodes are available: 1 Insufficient nvidia.com/gpu.",
            }
        ],
    }
    world = World(tmp_path)
    world.clock.at(0.6, lambda: world.cluster.put(pod("pod-h2", None, busy)))
    world.test(memory="cuda:dmabuf")
    world.give(h1={"nvidia.com/gpu": "8"}, h2={"nvidia.com/gpu": "8"}, h3={"nvidia.com/gpu": "8"})
    assert world.start()["problems"] == {
        "h2": "no tester on node node-h2: pod pod-h2 cannot be scheduled: 0/3 nodes are available: 1 Insufficient "
        "nvidia.com/gpu. A tester requests all 8 of its node, so that those next to its rails are among them. "
        'Wait for the pods that use them, or set gpu_resource: "" if a runtime class exposes all '
        "GPUs",
    }


def test_limit_and_nothing_left(tmp_path: Path) -> None:
    world = World(tmp_path)
    world.params["limit"] = ["other"]
    with pytest.raises(InputError, match="no endpoint to measure in pods"):
        world.start()


LINES = {name: ["0 rail0 client 10.0.0.1 18500 write_bw -D 2", "END 1"] for name in ("h1", "h2", "h3")}
DONE = DESCRIBED + "=== gpufabric batch 1 begin 1\nraw\n=== gpufabric batch 1 done 1 0\n"


def started(tmp_path: Path) -> World:
    world = World(tmp_path)
    world.start()
    for name in ("h1", "h2", "h3"):
        world.cluster.logs[f"pod-{name}"] = [DONE]
    world.cluster.calls.clear()
    return world


def test_play_sends_waits_for_the_announced_end_and_collects(tmp_path: Path) -> None:
    world = started(tmp_path)
    begin = world.clock.time
    assert world.play(LINES)["problems"] == {}
    # The first exec was ready at once, so what handing out needs at least counts.
    assert world.clock.time == begin + 13 + 20
    log = "=== gpufabric batch 1 begin 1\nraw\n=== gpufabric batch 1 done 1 0\n"
    assert world.files("pass-1") == {"h1.log": log, "h2.log": log, "h3.log": log}
    path, command, sent = world.cluster.commands[0]
    assert path.endswith("/exec?container=tester")
    assert sent == "BATCH 1 13.00      10\n0 rail0 client 10.0.0.1 18500 write_bw -D 2\nEND 1\n"
    deliver = f'head -c {len(sent)} | sh /gpufabric/tester.sh deliver /mailbox 1 "$up"'
    assert command == ["sh", "-c", f"read -r up _ </proc/uptime; echo ready; {deliver}"]
    # One list of pods, one exec and one log a node: nothing grows with the number of pairs.
    assert len(world.cluster.calls) == 2 + 3


def test_a_pass_of_the_mesh_is_marked(tmp_path: Path) -> None:
    world = started(tmp_path)
    world.play({name: [f"0 rail0 client 10.0.0.{name[-1]} 18500 mesh -s 9000 -m 4096", "END 1"] for name in LINES})
    assert "mesh" in world.files("pass-1")


def test_the_logs_are_followed_and_only_their_end_is_read(tmp_path: Path) -> None:
    world = started(tmp_path)
    world.play(LINES)
    asked = [path for _method, path in world.cluster.calls if "/log?" in path]
    # The pass took 33 seconds; clocks of hosts differ.
    query = "container=tester&follow=true&sinceSeconds=63&limitBytes=4194305"
    assert asked == [f"{PODS}/pod-{name}/log?{query}" for name in ("h1", "h2", "h3")]


@pytest.mark.parametrize(
    ("wanted", "endpoints", "took", "expected"),
    [
        (0, 3, 0.0, 13),
        (60, 3, 0.0, 60),
        # An exec of a quarter of a second, as in most clusters; of two seconds; of a host that hardly answers.
        (0, 1000, 0.25, 44),
        (0, 1000, 2.0, 108),
        (0, 1000, 20.0, 268),
        (0, 3, 2.0, 15),
    ],
)
def test_the_first_exec_tells_how_long_all_take(wanted: int, endpoints: int, took: float, expected: int) -> None:
    assert testers_passes.lead(wanted, endpoints, took) == expected


def test_a_slow_first_exec_moves_the_start_of_all(tmp_path: Path) -> None:
    world = started(tmp_path)
    start = testers_passes.Start(0, 3, world.clock.clock())
    world.clock.sleep(2.5)
    assert start.left() == 16.5
    world.clock.sleep(4)
    assert (start.left(), start.start_in) == (12.5, 19)


def test_an_exec_that_fails_is_tried_again(tmp_path: Path) -> None:
    world = started(tmp_path)
    world.cluster.exec_results = [ConnectionFailed("reset"), (2, "the batch did not arrive complete")]
    assert world.play(LINES)["problems"] == {}
    assert len(world.cluster.commands) == 5


def test_an_exec_that_never_works_is_named(tmp_path: Path) -> None:
    world = started(tmp_path)
    world.cluster.exec_results = [(2, "disk full")] * 9
    problems = world.play(LINES)["problems"]
    assert problems["h1"] == (
        "node node-h1: the schedule was not delivered to the tester: exec in pod pod-h1 ended with 2: disk full"
    )
    assert sorted(world.files("pass-1")) == ["h1.error", "h2.error", "h3.error"]


def test_a_log_without_an_end_is_not_kept_and_costs_nobody_else(tmp_path: Path) -> None:
    world = started(tmp_path)
    world.cluster.logs["pod-h2"] = ["=== gpufabric batch 1 begin 1\n" + ("x" * 99 + "\n") * 50_000]
    assert world.play(LINES)["problems"] == {
        "h2": "no log of pod pod-h2 (node node-h2): the log has more than 4194304 bytes; expected the output of "
        "one tester"
    }
    assert sorted(world.files("pass-1")) == ["h1.log", "h2.error", "h3.log"]


def kept(world: World, size: int) -> None:
    """Let the tester of h1 keep its output in a file."""
    head, tail = DESCRIBED + "=== gpufabric batch 1 begin 1\n", "=== gpufabric batch 1 done 1 0\n"
    world.cluster.logs["pod-h1"] = [f"{head}=== gpufabric batch 1 kept {size}\n{tail}"]


def test_a_long_pass_is_fetched_in_parts(tmp_path: Path) -> None:
    world = started(tmp_path)
    kept(world, (2 << 20) + 5)
    lines = {"h1": ["0 rail0 client 10.0.0.1 18500 write_bw -D 2"] * 600 + ["END 600"]}
    end = "=== gpufabric batch 1 done 1 0\n"
    world.cluster.exec_results = [(0, ""), (0, "=== gpufabric batch 1 begin 1\n"), (0, "x\n"), (0, end)]
    assert world.play(lines)["problems"] == {}
    assert world.files("pass-1") == {"h1.log": f"=== gpufabric batch 1 begin 1\nx\n{end}"}
    assert [command[2] for _path, command, _stdin in world.cluster.commands[1:]] == [
        "tail -c +1 /mailbox/kept-1 | head -c 1048576",
        "tail -c +1048577 /mailbox/kept-1 | head -c 1048576",
        "tail -c +2097153 /mailbox/kept-1 | head -c 5",
    ]


def test_a_file_that_is_larger_than_its_tests_is_not_fetched(tmp_path: Path) -> None:
    world = started(tmp_path)
    kept(world, 10**11)
    assert world.play(LINES)["problems"] == {
        "h1": "no log of pod pod-h1 (node node-h1): the tester kept 100000000000 bytes; expected 73728 at most"
    }


def test_a_tester_that_is_killed_under_way(tmp_path: Path) -> None:
    world = started(tmp_path)
    begin = world.clock.time

    def kill() -> None:
        del world.cluster.objects[f"{PODS}/pod-h2"]
        del world.cluster.logs["pod-h2"]

    world.clock.at(begin + 25, kill)
    assert world.play(LINES)["problems"] == {
        "h2": "node node-h2: the tester's pod pod-h2 was deleted while it measured"
    }
    assert sorted(world.files("pass-1")) == ["h1.log", "h2.error", "h3.log"]


def test_a_tester_that_ended_early_keeps_what_it_printed(tmp_path: Path) -> None:
    world = started(tmp_path)
    world.cluster.logs["pod-h2"] = [DESCRIBED + "=== gpufabric batch 1 begin 1\nhalf\n"]
    failed = {"phase": "Failed", "containerStatuses": [{"state": {"terminated": {"reason": "OOMKilled"}}}]}
    world.clock.at(world.clock.time + 25, lambda: world.cluster.objects[f"{PODS}/pod-h2"].update(status=failed))
    assert world.play(LINES)["problems"] == {
        "h2": "node node-h2: the tester was killed while it measured: pod pod-h2 has ended (Failed): OOMKilled"
    }
    assert sorted(world.files("pass-1")) == ["h1.log", "h2.error", "h2.log", "h3.log"]


def test_a_host_that_dies_under_way(tmp_path: Path) -> None:
    world = started(tmp_path)

    def die() -> None:
        world.cluster.put(node("h3", "Unknown"))
        del world.cluster.logs["pod-h3"]

    world.clock.at(world.clock.time + 25, die)
    problems = world.play(LINES)["problems"]
    assert list(problems) == ["h3"]
    assert problems["h3"].startswith("no log of pod pod-h3 (node node-h3 is not ready): the API server ")


def test_a_host_that_dies_and_whose_log_says_nothing_more(tmp_path: Path) -> None:
    world = started(tmp_path)
    world.cluster.logs["pod-h3"] = ["=== gpufabric batch 1 begin 1\n"]
    world.clock.at(world.clock.time + 25, lambda: world.cluster.put(node("h3", "Unknown")) and None)
    assert world.play(LINES)["problems"] == {"h3": "node node-h3 is not ready: the tester did not finish in time"}


def test_an_endpoint_that_never_started_is_not_waited_for(tmp_path: Path) -> None:
    world = World(tmp_path, h2=UNSCHEDULABLE)
    world.start()
    for name in ("h1", "h3"):
        world.cluster.logs[f"pod-{name}"] = [DONE]
    assert world.play(LINES)["problems"] == {"h2": "no tester on node node-h2: its pod is gone"}


def test_remove_takes_everything_also_what_a_crash_left(tmp_path: Path) -> None:
    world = World(tmp_path)
    world.start()
    world.clock.at(world.clock.time + 1, lambda: world.cluster.objects.pop(f"{PODS}/pod-h1"))
    for name in ("h2", "h3"):
        del world.cluster.objects[f"{PODS}/pod-{name}"]
    found = ["jobs/gpufabric-testers", "configmaps/gpufabric-testers", "pods/pod-h1", "namespaces/gpufabric-validate"]
    assert world.remove(check=True)["removed"] == found
    assert JOBS in world.cluster.objects
    assert world.remove()["removed"] == found
    assert [path for path in world.cluster.objects if "gpufabric" in path] == []
    assert world.remove()["removed"] == []


LEASE = "/apis/coordination.k8s.io/v1/namespaces/gpufabric-validate/leases/gpufabric-testers"


def test_everything_of_a_run_has_its_id_and_it_holds_the_lease(tmp_path: Path) -> None:
    world = World(tmp_path)
    world.params["run"] = "r1"
    world.run = "r1"
    assert world.start()["problems"] == {}
    job = world.cluster.objects[JOBS]
    assert job["metadata"]["labels"]["gpufabric.rdma/run"] == "r1"
    assert job["spec"]["template"]["metadata"]["labels"]["gpufabric.rdma/run"] == "r1"
    assert world.cluster.objects[LEASE]["spec"]["holderIdentity"] == "r1"
    for name in ("h1", "h2", "h3"):
        del world.cluster.objects[f"{PODS}/pod-{name}"]
    assert world.remove()["removed"][-1] == "namespaces/gpufabric-validate"
    assert [path for path in world.cluster.objects if "gpufabric" in path] == []


def test_a_second_run_neither_uses_nor_removes_the_testers_of_the_first(tmp_path: Path) -> None:
    first = World(tmp_path)
    first.params["run"] = first.run = "r1"
    first.start()
    before = dict(first.cluster.objects)
    for second in range(10, 400, 10):
        first.clock.at(second, lambda: first.lease().renew())
    second = World(tmp_path)
    second.cluster, second.clock, second.params["run"] = first.cluster, first.clock, "r2"
    with pytest.raises(ClusterError, match="the testers in namespace gpufabric-validate are in use by run r1 since"):
        second.start()
    with pytest.raises(ClusterError, match="run r1 took over the testers"):
        second.play(LINES)
    assert second.remove() == {"removed": []}
    assert first.cluster.objects.keys() == before.keys()
    for name in ("h1", "h2", "h3"):
        first.cluster.logs[f"pod-{name}"] = [DONE]
    assert first.play(LINES)["problems"] == {}


def test_what_a_crash_left_is_removed_by_the_next_run_when_its_lease_has_expired(tmp_path: Path) -> None:
    first = World(tmp_path)
    first.params["run"] = first.run = "r1"
    first.start()
    second = World(tmp_path)
    second.cluster, second.clock, second.params["run"] = first.cluster, first.clock, "r2"
    for name in ("h1", "h2", "h3"):
        first.clock.at(47, lambda name=name: first.cluster.objects.pop(f"{PODS}/pod-{name}"))  # type: ignore[misc]
    first.run = "r2"
    first.clock.at(55, lambda: first.make_pods({}))
    assert second.start()["problems"] == {}
    assert first.cluster.objects[JOBS]["metadata"]["labels"]["gpufabric.rdma/run"] == "r2"
    assert first.clock.time < 70


def test_a_run_with_an_id_that_is_no_label_is_refused(tmp_path: Path) -> None:
    world = World(tmp_path)
    world.params["run"] = "a b,c=d"
    with pytest.raises(InputError, match="run: 'a b,c=d' is not a label value"):
        world.start()


def test_a_namespace_that_is_being_removed_is_waited_for(tmp_path: Path) -> None:
    world = World(tmp_path, h1=None, h2=None, h3=None)
    space = "/api/v1/namespaces/gpufabric-validate"
    gone = {
        "name": "gpufabric-validate",
        "labels": {"app.kubernetes.io/managed-by": "gpufabric"},
        "deletionTimestamp": "2026-01-02T00:00:10Z",
    }
    world.cluster.put({"apiVersion": "v1", "kind": "Namespace", "metadata": gone})
    world.clock.at(3, lambda: world.cluster.objects.pop(space))
    world.clock.at(4, lambda: world.make_pods({}))
    assert world.start()["problems"] == {}
    assert "deletionTimestamp" not in world.cluster.objects[space]["metadata"]


def test_a_pod_on_a_dead_node_is_forced_and_one_on_a_living_node_is_not(tmp_path: Path) -> None:
    world = World(tmp_path)
    world.start()
    world.cluster.put(node("h1", "Unknown"))
    del world.cluster.objects[f"{PODS}/pod-h3"]
    world.cluster.kept.add(f"{PODS}/pod-h2")
    with pytest.raises(ClusterError) as caught:
        world.remove()
    assert str(caught.value) == (
        "tester pods still exist 60 s after their deletion: pod-h2. Check them in namespace gpufabric-validate"
    )
    assert f"{PODS}/pod-h1" not in world.cluster.objects
    assert ("DELETE", f"{PODS}/pod-h2") not in world.cluster.calls


def test_evidence_that_cannot_be_written_leaves_no_part(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(*_args: object) -> None:
        raise OSError(28, "No space left on device")

    evidence = logs.Evidence(str(tmp_path), "describe")
    evidence.prepare()
    monkeypatch.setattr(os, "replace", refuse)
    with pytest.raises(ClusterError, match="h1.log cannot be written: No space left on device. Choose"):
        evidence.log("h1", DESCRIBED)
    assert list((tmp_path / "describe").iterdir()) == []


def test_on_openshift_the_testers_have_an_account_that_goes_with_them(tmp_path: Path) -> None:
    world = World(tmp_path)
    operator = {**PLAN.get("operator", {}), "platform": "openshift", "network_namespace": "default"}
    world.params["plan"] = {**PLAN, "operator": operator}
    assert world.start()["problems"] == {}
    space = "namespaces/gpufabric-validate"
    objects = world.cluster.objects
    binding = objects[f"/apis/rbac.authorization.k8s.io/v1/{space}/rolebindings/gpufabric-testers"]
    config_map = objects[f"/api/v1/{space}/configmaps/gpufabric-testers"]
    assert binding["metadata"]["ownerReferences"][0]["uid"] == config_map["metadata"]["uid"]
    assert objects[f"/api/v1/{space}/serviceaccounts/gpufabric-testers"]
    job = objects[f"/apis/batch/v1/{space}/jobs/gpufabric-testers"]
    assert job["spec"]["template"]["spec"]["serviceAccountName"] == "gpufabric-testers"


def test_on_openshift_networks_of_another_namespace_are_refused(tmp_path: Path) -> None:
    world = World(tmp_path)
    world.params["plan"] = {**PLAN, "operator": {"platform": "openshift", "network_namespace": "team-a"}}
    with pytest.raises(InputError, match="OpenShift lets pods use networks of their own namespace and of default only"):
        world.start()


def test_a_number_of_cpus_below_zero_is_refused(tmp_path: Path) -> None:
    world = World(tmp_path)
    world.params["cpus"] = -1
    with pytest.raises(InputError, match="^cpus: expected 0 or a number of whole CPUs, found -1$"):
        world.start()
    assert {method for method, _path in world.cluster.calls} <= {"GET"}
