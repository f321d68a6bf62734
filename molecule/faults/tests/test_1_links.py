"""Faults of links and busy rails under the bare hosts: each is named, and everything else was measured."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest
from tests.scenario import FABRIC, HOSTS, Run, bandwidth, diagnosed, host, lab, touching, validate, verdicts
from tests.scenario.state import jobs_left, leftovers

HOLDS_QUEUE_PAIRS = "rdma resource show qp | grep -q ib_write_bw"
IMAGE = "registry.invalid/gpufabric/tester:none"
BUSY_SAID = "journalctl -u busy | tail -40"


@pytest.fixture(scope="module")
def faulty() -> tuple[Run, dict[str, Any]]:
    """One run with three independent faults: a pulled cable, frames over 1500 bytes that vanish, pods without an image.

    The mesh comes before the measurement here, as it does by default.

    At the black hole ping works and the MTU is 9000. The pods' image does not exist; how long kubelets on emulated
    processors take to notice is not waited for (tests/cluster has that reason).
    """
    lab("fault", "cable", "lab-1", "0")
    lab("fault", "blackhole", "lab-2", "1")
    address = host("lab-2").check_output("ip -4 -o addr show rail1").split()[3].split("/")[0]
    assert host("lab-3").run(f"ping -c 2 -W 5 {address}").rc == 0
    try:
        tests = {"tests": {**FABRIC["tests"], "retries": 1, "mesh": True}}
        return validate("host", "pod", fabric=tests, rdma_validate_image=IMAGE, rdma_validate_pod_start_timeout=15)
    finally:
        lab("heal")


@pytest.fixture(scope="module")
def on_hosts(faulty: tuple[Run, dict[str, Any]]) -> dict[str, Any]:
    """The report of that run, with the results and diagnoses of the hosts alone."""
    result = faulty[1]
    own = {key: [one for one in result[key] if one["where"] == "host"] for key in ("results", "diagnoses")}
    return {**result, **own}


def test_run_fails_and_everything_has_a_result(faulty: tuple[Run, dict[str, Any]], on_hosts: dict[str, Any]) -> None:
    run, result = faulty[0], on_hosts
    assert run.rc != 0
    assert result["verdict"] == "no_data"
    assert diagnosed(result) == {("port", "lab-1", "rail0"), ("mtu", "lab-2", "rail1")}
    assert {diagnosis["confidence"] for diagnosis in result["diagnoses"]} == {"confirmed"}
    assert len(bandwidth(result)) == 12
    assert [line for name in HOSTS for line in leftovers(name)] == []


def test_pulled_cable_is_named(faulty: tuple[Run, dict[str, Any]], on_hosts: dict[str, Any]) -> None:
    run, result = faulty[0], on_hosts
    hit = touching(result, "lab-1", "rail0")
    assert len(hit) == 4
    assert verdicts(hit) == {"no_data"}
    assert all("lab-1 rail0: rail0 has no link" in r["reason"] for r in hit)
    assert "lab-1 rail0: none of its 4 tests passed" in run.output
    assert verdicts(touching(result, "lab-3", "rail0") + touching(result, "lab-2", "rail0")) >= {"pass"}
    assert verdicts(r for r in bandwidth(result) if r["rail"] == "rail0" and r not in hit) == {"pass"}


def test_black_hole_for_large_frames_is_told_by_small_ones(
    faulty: tuple[Run, dict[str, Any]], on_hosts: dict[str, Any]
) -> None:
    run, result = faulty[0], on_hosts
    hit = touching(result, "lab-2", "rail1")
    assert len(hit) == 4
    assert verdicts(hit) == {"no_data"}
    assert any("MTU" in r["reason"] for r in hit)
    assert verdicts(r for r in bandwidth(result) if r["rail"] == "rail1" and r not in hit) == {"pass"}
    # Packets of ping tell it before the measurement, or small messages after it, if an RDMA connection took too long.
    small = {r["verdict"] for r in result["results"] if r["test"] == "write_lat"}
    told = [r for r in hit if "packets of 9000 bytes are lost, small ones are not" in r["reason"]]
    assert (small, len(told)) in ((set(), 4), ({"pass"}, 0))
    assert "lab-2 rail1: small messages pass, large ones do not" in " ".join(run.output.split())


def test_pods_that_do_not_start(faulty: tuple[Run, dict[str, Any]]) -> None:
    """Their tests have no data with that reason; what was measured on the hosts is not lost."""
    hit = [r for r in bandwidth(faulty[1]) if r["where"] == "pod"]
    assert len(hit) == 12
    assert verdicts(hit) == {"no_data"}
    assert all("no tester on node" in r["reason"] for r in hit)
    assert jobs_left() == []


def eventually(command: str) -> str:
    """A command for a host that waits until another one holds, half a minute at most."""
    return f"for i in $(seq 60); do {{ {command}; }} && exit 0; sleep 0.5; done; exit 1"


@pytest.fixture
def traffic() -> Iterator[str]:
    """A program on lab-1 and lab-2 that uses a rail, as a job of a user would."""
    server, client = host("lab-1"), host("lab-2")
    assert server.run(eventually("rdma link show | grep 'netdev rail0' | grep -q ACTIVE")).rc == 0
    address = server.check_output("ip -4 -o addr show rail0").split()[3].split("/")[0]
    device = "rdma link show | sed -n 's,^link \\([^/]*\\)/.* netdev rail0.*,\\1,p'"
    # It starts again when it fails, as it may while the rail is not yet up again.
    start = "systemd-run --quiet --collect --unit=busy --property=Restart=always --property=RestartSec=1"
    program = f"--property=RuntimeMaxSec=900 -- ib_write_bw -D 600 -p 19999 -F -d $({device})"
    sent = f"cat /sys/class/infiniband/$({device})/ports/1/hw_counters/sent_pkts"
    try:
        server.check_output(f"{start} {program}")
        assert server.run(eventually("ss -ltn | grep -q :19999")).rc == 0
        client.check_output(f"{start} {program} {address}")
        flows = client.run(eventually(f"a=$({sent}); sleep 1; [ $({sent}) -gt $((a + 20)) ]"))
        assert flows.rc == 0, client.check_output(BUSY_SAID)
        assert server.run(HOLDS_QUEUE_PAIRS).rc == 0
        yield "ib_write_bw"
    finally:
        for machine in (client, server):
            machine.run("systemctl stop busy")


def test_busy_hosts_are_not_measured_without_consent(traffic: str, faulty: tuple[Run, dict[str, Any]]) -> None:
    run, result = validate("host")
    # Without these queue pairs the hosts were not busy, and the run had nothing to refuse.
    assert host("lab-1").run(HOLDS_QUEUE_PAIRS).rc == 0, host("lab-1").check_output(BUSY_SAID)
    assert run.rc != 0
    assert result == {}
    assert "lab-1" in run.output and "lab-3: " not in run.output
    assert "rdma_validate_busy_hosts" in run.output and traffic in run.output
