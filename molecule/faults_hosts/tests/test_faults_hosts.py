"""Faults under the bare hosts: what the report says of each, and that everything else was measured."""

from __future__ import annotations

import json
import threading
import time
from collections.abc import Iterator
from typing import Any

import pytest
import yaml

from tests.scenario import HOSTS, REPO, TRACEBACK, Run, host, lab, playbook, report
from tests.scenario.state import leftovers

FABRIC = yaml.safe_load((REPO / "inventories/lab/group_vars/rdma_hosts.yml").read_text())["rdma_fabric"]
ON_HOSTS = ("-e", '{"rdma_validate_where": ["host"]}')


@pytest.fixture(scope="module", autouse=True)
def prepared() -> Run:
    return playbook("prepare").must()


@pytest.fixture(scope="module")
def faulty(prepared: Run) -> Iterator[tuple[Run, dict[str, Any]]]:
    """One run with two faults that do not touch each other: a pulled cable and a slow NIC."""
    lab("fault", "cable", "lab-1", "0")
    lab("fault", "slow", "lab-2", "1", "3mbit")
    try:
        run = playbook("validate", *ON_HOSTS)
        yield run, report()
    finally:
        lab("heal")


def of(result: dict[str, Any], rail: str, name: str | None) -> list[dict[str, Any]]:
    return [r for r in result["results"] if r["rail"] == rail and name in (None, r["client"], r["server"])]


def test_run_fails_and_everything_has_a_result(faulty: tuple[Run, dict[str, Any]]) -> None:
    run, result = faulty
    assert run.rc != 0
    assert not TRACEBACK.search(run.output)
    assert result["verdict"] == "fail"
    assert len(result["results"]) == 12


def test_pulled_cable_is_named(faulty: tuple[Run, dict[str, Any]]) -> None:
    run, result = faulty
    hit = of(result, "rail0", "lab-1")
    assert len(hit) == 4
    assert {r["verdict"] for r in hit} == {"no_data"}
    assert all("lab-1" in r["reason"] for r in hit)
    assert "lab-1" in run.output and "rail0" in run.output
    others = [r for r in of(result, "rail0", None) if r not in hit]
    assert {r["verdict"] for r in others} == {"pass"}


def test_slow_nic_is_named(faulty: tuple[Run, dict[str, Any]]) -> None:
    _run, result = faulty
    sent = [r for r in of(result, "rail1", "lab-2") if r["client"] == "lab-2"]
    assert {r["verdict"] for r in sent} <= {"fail", "no_data"}
    assert [r for r in of(result, "rail1", None) if "lab-2" not in (r["client"], r["server"])
            and r["verdict"] != "pass"] == []


def test_black_hole_for_large_frames(faulty: tuple[Run, dict[str, Any]]) -> None:
    """Ping works, the MTU is 9000, and frames over 1500 bytes vanish."""
    lab("heal")
    lab("fault", "blackhole", "lab-3", "1")
    try:
        peer = host("lab-1")
        address = host("lab-3").check_output("ip -4 -o addr show rail1").split()[3].split("/")[0]
        assert peer.run(f"ping -c 2 -W 5 {address}").rc == 0
        run, result = playbook("validate", *ON_HOSTS), report()
    finally:
        lab("heal")
    assert run.rc != 0
    hit = of(result, "rail1", "lab-3")
    assert len(hit) == 4 and "pass" not in {r["verdict"] for r in hit}
    assert {r["verdict"] for r in result["results"] if r not in hit} == {"pass"}
    assert [line for name in HOSTS for line in leftovers(name)] == []


def test_host_that_dies_in_the_middle(faulty: tuple[Run, dict[str, Any]]) -> None:
    lab("heal")
    def kill_when_measuring() -> None:
        deadline = time.monotonic() + 600
        while time.monotonic() < deadline:
            if host("lab-3").run("pgrep -f ib_write_bw").rc == 0:
                lab("fault", "dead", "lab-3")
                return
            time.sleep(1)

    thread = threading.Thread(target=kill_when_measuring)
    thread.start()
    run = playbook("validate", *ON_HOSTS)
    thread.join()
    result = report()
    assert run.rc != 0 and not TRACEBACK.search(run.output)
    assert len(result["results"]) == 12
    dead = [r for r in result["results"] if "lab-3" in (r["client"], r["server"])]
    alive = [r for r in result["results"] if r not in dead]
    assert {r["verdict"] for r in alive} == {"pass"}
    assert any("lab-3" in r["reason"] for r in dead if r["verdict"] != "pass")
    assert [line for name in HOSTS[:2] for line in leftovers(name)] == []


def test_unreachable_host_stops_the_run_by_name(faulty: tuple[Run, dict[str, Any]]) -> None:
    """lab-3 is still dead: the default is to stop with its name; on demand the rest is measured."""
    run = playbook("validate", *ON_HOSTS)
    assert run.rc != 0 and "lab-3" in run.output and not TRACEBACK.search(run.output)
    run = playbook("validate", *ON_HOSTS, "-e", json.dumps({"rdma_fabric": {**FABRIC, "absent_hosts": "report"}}))
    result = report()
    assert run.rc != 0
    assert {r["verdict"] for r in result["results"] if "lab-3" in (r["client"], r["server"])} == {"no_data"}
    assert {r["verdict"] for r in result["results"] if "lab-3" not in (r["client"], r["server"])} == {"pass"}
