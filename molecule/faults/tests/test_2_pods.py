"""Faults of pods: the report names host and reason, the rest is measured, nothing is left behind."""

from __future__ import annotations

import os
import signal
import subprocess
import threading
import time
from collections.abc import Callable, Iterator
from typing import Any

import pytest
from tests.lab import api
from tests.scenario import bandwidth, extra, touching, validate, verdicts
from tests.scenario.state import cluster, jobs_left
from tests.tools import environment


def patch_node(name: str, spec: dict[str, Any]) -> None:
    cluster().patch(f"/api/v1/nodes/{name}", {"spec": spec})


@pytest.fixture
def cordoned() -> Iterator[str]:
    patch_node("lab-2", {"unschedulable": True})
    yield "lab-2"
    patch_node("lab-2", {"unschedulable": None})


def test_tester_that_is_killed() -> None:
    killed: list[str] = []
    thread = threading.Thread(target=kill_a_tester, args=(killed,))
    thread.start()
    run, result = validate("pod", retries=1)
    thread.join()
    assert killed, "a tester was running and was killed"
    assert run.rc != 0
    hit = touching(result, killed[0])
    assert "no_data" in verdicts(hit)
    assert any(killed[0] in r["reason"] for r in hit if r["verdict"] == "no_data")
    assert verdicts(r for r in bandwidth(result) if r not in hit) == {"pass"}
    assert jobs_left() == []


def kill_a_tester(killed: list[str]) -> None:
    """Delete the running tester of lab-1 once it has played a test."""
    deadline = time.monotonic() + 600
    while time.monotonic() < deadline:
        for pod in cluster().get("/api/v1/pods", labelSelector="app.kubernetes.io/managed-by=gpufabric")["items"]:
            if pod["spec"].get("nodeName") == "lab-1" and "=== gpufabric test" in log_of(pod):
                path = f"/api/v1/namespaces/{pod['metadata']['namespace']}/pods/{pod['metadata']['name']}"
                cluster().delete(path, gracePeriodSeconds="0")
                killed.append("lab-1")
                return
        time.sleep(1)


def log_of(pod: dict[str, Any]) -> str:
    path = f"/api/v1/namespaces/{pod['metadata']['namespace']}/pods/{pod['metadata']['name']}/log"
    try:
        return cluster().text(path)
    except api.ApiError:
        return ""


def test_leftovers_of_a_crash_are_removed_by_the_next_run_and_a_cordoned_node_is_named(cordoned: str) -> None:
    """A run that is killed leaves its testers; the next one removes them first, and measures what can be scheduled."""
    argv = ["ansible-playbook", "-i", "inventories/lab", "playbooks/validate.yml", *extra(rdma_validate_where=["pod"])]
    crash = subprocess.Popen(
        argv,
        cwd=environment.REPO,
        env=environment.environ(),
        start_new_session=True,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
    )
    wait_for(lambda: any(name.startswith("pods") for name in jobs_left()), 300)
    os.killpg(crash.pid, signal.SIGKILL)
    crash.wait()
    assert jobs_left()
    run, result = validate("pod", retries=1, rdma_validate_pod_start_timeout=60)
    assert run.rc != 0
    assert len(bandwidth(result)) == 12
    hit = touching(result, cordoned)
    assert verdicts(hit) == {"no_data"}
    assert all(cordoned in r["reason"] and "schedul" in r["reason"] for r in hit)
    assert verdicts(r for r in bandwidth(result) if r not in hit) == {"pass"}
    assert jobs_left() == []


def wait_for(holds: Callable[[], bool], seconds: float) -> None:
    deadline = time.monotonic() + seconds
    while not holds():
        assert time.monotonic() < deadline, f"not within {seconds:.0f} s"
        time.sleep(1)
