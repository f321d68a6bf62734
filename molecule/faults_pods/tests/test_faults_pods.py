"""Faults under the pods: the report names host and reason, the rest is measured, nothing is left behind."""

from __future__ import annotations

import os
import signal
import subprocess
import threading
import time
from collections.abc import Iterator
from typing import Any

import pytest

from tests import environment
from tests.lab import api
from tests.scenario import TRACEBACK, Run, playbook, report
from tests.scenario.state import cluster, jobs_left

IN_PODS = '{"rdma_validate_where": ["pod"]}'


@pytest.fixture(scope="module", autouse=True)
def prepared() -> Run:
    """Hosts with rails; the operator is not needed by pods on the host's network."""
    return playbook("prepare").must()


def patch_node(name: str, spec: dict[str, Any]) -> None:
    cluster().patch(f"/api/v1/nodes/{name}", {"spec": spec})


def touching(result: dict[str, Any], name: str) -> list[dict[str, Any]]:
    return [r for r in result["results"] if name in (r["client"], r["server"])]


@pytest.fixture
def cordoned() -> Iterator[str]:
    patch_node("lab-2", {"unschedulable": True})
    yield "lab-2"
    patch_node("lab-2", {"unschedulable": None})


def test_pod_that_cannot_be_scheduled(cordoned: str) -> None:
    run = playbook("validate", "-e", IN_PODS, "-e", "rdma_validate_pod_start_timeout=60")
    result = report()
    assert run.rc != 0 and not TRACEBACK.search(run.output)
    assert {r["verdict"] for r in touching(result, cordoned)} == {"no_data"}
    assert all("schedul" in r["reason"] for r in touching(result, cordoned))
    others = [r for r in result["results"] if r not in touching(result, cordoned)]
    assert others and {r["verdict"] for r in others} == {"pass"}
    assert jobs_left() == []


def test_image_that_cannot_be_pulled() -> None:
    image = "registry.invalid/gpufabric/tester:none"
    run = playbook("validate", "-e", IN_PODS, "-e", f"rdma_validate_image={image}",
                   "-e", "rdma_validate_image_pull_policy=IfNotPresent", "-e", "rdma_validate_pod_start_timeout=120")
    result = report()
    assert run.rc != 0 and not TRACEBACK.search(run.output)
    assert len(result["results"]) == 12
    assert {r["verdict"] for r in result["results"]} == {"no_data"}
    assert all(image in r["reason"] for r in result["results"])
    assert jobs_left() == []


def test_tester_that_is_killed() -> None:
    killed: list[str] = []
    thread = threading.Thread(target=kill_a_tester, args=(killed,))
    thread.start()
    run = playbook("validate", "-e", IN_PODS)
    thread.join()
    result = report()
    assert killed, "a tester was running and was killed"
    assert run.rc != 0 and not TRACEBACK.search(run.output)
    hit = touching(result, killed[0])
    assert "no_data" in {r["verdict"] for r in hit}
    assert any(killed[0] in r["reason"] for r in hit if r["verdict"] == "no_data")
    assert {r["verdict"] for r in result["results"] if r not in hit} == {"pass"}
    assert jobs_left() == []


def kill_a_tester(killed: list[str]) -> None:
    """Delete the running tester of lab-1 a while after it was sent its schedule."""
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


def test_leftovers_of_a_crash_are_removed_by_the_next_run() -> None:
    """A run that is killed leaves its testers; the next one removes them first and passes."""
    argv = ["ansible-playbook", "-i", "inventories/lab", "playbooks/validate.yml", "-e", IN_PODS]
    crash = subprocess.Popen(argv, cwd=environment.REPO, env=environment.environ(), start_new_session=True,
                             stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    deadline = time.monotonic() + 300
    while not any(name.startswith("pods") for name in jobs_left()) and time.monotonic() < deadline:
        time.sleep(1)
    os.killpg(crash.pid, signal.SIGKILL)
    crash.wait()
    assert jobs_left()
    playbook("validate", "-e", IN_PODS).must()
    assert report()["verdict"] == "pass"
    assert jobs_left() == []
