"""A slow NIC, and a host that dies in the middle: last, since a dead host comes back unprepared."""

from __future__ import annotations

import threading
import time
from collections.abc import Iterator
from typing import Any

import pytest
from tests.scenario import HOSTS, Run, bandwidth, host, lab, touching, validate, verdicts
from tests.scenario.state import leftovers


@pytest.fixture(scope="module")
def faulty() -> Iterator[tuple[Run, dict[str, Any]]]:
    """lab-1 has a tenth of its peers' rate on rail1; lab-3 dies meanwhile."""
    lab("fault", "slow", "lab-1", "1", "10mbit")
    thread = threading.Thread(target=kill_when_measuring)
    thread.start()
    try:
        outcome = validate("host", retries=1)
        thread.join()
        yield outcome
    finally:
        lab("heal")


def kill_when_measuring() -> None:
    """Stop lab-3 at its first test."""
    deadline = time.monotonic() + 600
    while time.monotonic() < deadline:
        if host("lab-3").run("pgrep -x 'ib_write_bw'").rc == 0:
            lab("fault", "dead", "lab-3")
            return
        time.sleep(1)


def test_host_that_dies_in_the_middle(faulty: tuple[Run, dict[str, Any]]) -> None:
    run, result = faulty
    assert run.rc != 0
    assert len(bandwidth(result)) == 12
    dead = touching(result, "lab-3")
    assert "no_data" in verdicts(dead)
    assert all("lab-3" in r["reason"] for r in dead if r["verdict"] != "pass" and r["rail"] == "rail0")
    assert verdicts(r for r in bandwidth(result) if r["rail"] == "rail0" and r not in dead) == {"pass"}
    assert [line for name in HOSTS[:2] for line in leftovers(name)] == []


def test_slow_nic_is_named(faulty: tuple[Run, dict[str, Any]]) -> None:
    run, result = faulty
    hit = [r for r in touching(result, "lab-1", "rail1") if r not in touching(result, "lab-3")]
    assert len(hit) == 2
    assert verdicts(hit) <= {"fail", "no_data"}
    found = result["diagnoses"]
    assert any("lab-1" in diagnosis["text"] for diagnosis in found if diagnosis["rail"] == "rail1"), found
    assert "lab-1" in run.output and "rail1" in run.output


def test_unreachable_host_stops_the_run_by_name(faulty: tuple[Run, dict[str, Any]]) -> None:
    """lab-3 is still dead: the default is to stop and name it."""
    run, result = validate("host")
    assert run.rc != 0
    assert result == {}
    assert "lab-3" in run.output


def test_unreachable_host_is_reported_on_demand(faulty: tuple[Run, dict[str, Any]]) -> None:
    lab("heal", "slow")
    run, result = validate("host", retries=1, fabric={"absent_hosts": "report"})
    assert run.rc != 0
    dead = touching(result, "lab-3")
    assert dead and verdicts(dead) == {"no_data"}
    assert verdicts(r for r in bandwidth(result) if r not in dead) == {"pass"}
