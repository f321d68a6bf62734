"""Faults of pods: the report names host and reason, the rest is measured, nothing is left behind."""

from __future__ import annotations

import os
import signal
import threading

from tests.scenario import bandwidth, touching, verdicts
from tests.tools.fleet import Fleet, eventually

IMAGE = "registry.invalid/gpufabric/tester:none"


def test_tester_that_is_killed(cluster: Fleet) -> None:
    victim = cluster.hosts[0]
    killed: list[str] = []
    thread = threading.Thread(target=kill_a_tester, args=(cluster, victim, killed))
    thread.start()
    run, result = cluster.validate()
    thread.join()
    assert killed == [victim], "a tester was running and was killed"
    assert run.rc != 0
    hit = touching(result, victim)
    assert "no_data" in verdicts(hit)
    assert any(victim in r["reason"] for r in hit if r["verdict"] == "no_data")
    assert verdicts(r for r in bandwidth(result) if r not in hit) == {"pass"}
    assert cluster.jobs_left() == []


def kill_a_tester(cluster: Fleet, victim: str, killed: list[str]) -> None:
    """Delete the running tester of a host once it has played a test."""

    def has_played() -> bool:
        for pod in cluster.testers():
            if pod["spec"].get("nodeName") == victim and "=== gpufabric test" in cluster.log(pod):
                cluster.kill(pod)
                return True
        return False

    eventually(has_played, 600)
    killed.append(victim)


def test_leftovers_of_a_crash_are_removed_by_the_next_run_and_a_cordoned_node_is_named(cluster: Fleet) -> None:
    """A run that is killed leaves its testers; the next one removes them first, and measures what can be scheduled."""
    cordoned = cluster.hosts[1]
    with cluster.cordoned(cordoned):
        crash = cluster.start("validate", rdma_validate_where=["pod"])
        eventually(lambda: any(name.startswith("pods") for name in cluster.jobs_left()), 300)
        os.killpg(crash.pid, signal.SIGKILL)
        crash.wait()
        assert cluster.jobs_left()
        run, result = cluster.validate(rdma_validate_pod_start_timeout=30)
    assert run.rc != 0
    assert len(bandwidth(result)) == 12
    hit = touching(result, cordoned)
    assert verdicts(hit) == {"no_data"}
    assert all(cordoned in r["reason"] and "schedul" in r["reason"] for r in hit)
    assert verdicts(r for r in bandwidth(result) if r not in hit) == {"pass"}
    assert cluster.jobs_left() == []


def test_image_that_cannot_be_pulled(cluster: Fleet) -> None:
    """Every test has no data with that reason. That results of hosts are not lost with the pods: scenario faults."""
    run, result = cluster.validate(rdma_validate_image=IMAGE, rdma_validate_pod_start_timeout=60)
    assert run.rc != 0
    assert len(bandwidth(result)) == 12
    assert verdicts(bandwidth(result)) == {"no_data"}
    assert all(IMAGE in r["reason"] for r in bandwidth(result))
    assert cluster.jobs_left() == []
