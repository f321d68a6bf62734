"""Passes on bare hosts of which some do not answer, or that are many for the forks there are."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from tests.unit.support.host_passes import ahead, played, step

REFUSES = {
    "ansible.builtin.fail": {"msg": "nothing was measured"},
    "run_once": True,
    "register": "__rdma_validate_step",
}


def ssh(tmp_path: Path, name: str) -> dict[str, Any]:
    return {
        "ansible_connection": "ssh",
        "ansible_ssh_executable": str(tmp_path / "bin" / name),
        "rdma_validate_task_timeout": 1,
    }


def test_passes_on_hosts_of_which_some_do_not_answer(tmp_path: Path) -> None:
    """Two passes on four hosts; 20 s."""
    local = {"ansible_connection": "local", "rdma_validate_task_timeout": 60}
    hosts = {"gpu-1": local, "gpu-2": local, "gone": ssh(tmp_path, "gone"), "silent": ssh(tmp_path, "silent")}
    steps = [step(1, False, "gpu-1", "gpu-2", "gone", "silent"), step(2, False, "gpu-2"), step(2, True)]
    contact = "0 rail0 client 10.0.0.2 18500 mesh -s 9000 -m 4096"
    steps[0]["lines"]["gpu-1"] = [contact, "END 1"]
    done = played(tmp_path, hosts, steps)
    said = done.stdout + done.stderr
    assert done.returncode == 0, said
    evidence = tmp_path / "run/evidence/host"
    found = {str(path.relative_to(evidence)): path.read_text() for path in evidence.rglob("*.*")}
    logs = {name: text for name, text in found.items() if name.endswith(".log")}
    assert logs == {
        "describe/gpu-1.log": "=== described: rail rail0 eth0\n",
        "describe/gpu-2.log": "=== described: rail rail0 eth0\n",
        # Three deliveries, each with both clocks; the second pass has two more.
        "pass-1/gpu-1.log": f"clocks: 3\nBATCH 1 0 1\n{contact}\nEND 1\n",
        "pass-1/gpu-2.log": "clocks: 3\nBATCH 1 0 1\n0 rail0 gpu-2\nEND 1\n",
        "pass-2/gpu-2.log": "clocks: 5\nBATCH 2 0 1\n0 rail0 gpu-2\nEND 1\n",
    }, said
    # A pass of the mesh is marked when it is delivered: a run that ends in it measured nothing.
    assert [path.parent.name for path in evidence.rglob("mesh")] == ["pass-1"]
    errors = {name: text for name, text in found.items() if name.endswith(".error")}
    assert sorted(errors) == [
        f"{folder}/{host}.error" for folder in ("describe", "pass-1") for host in ("gone", "silent")
    ]
    assert errors["pass-1/silent.error"] == errors["describe/silent.error"] == "no answer within 1 s\n"
    assert "Failed to connect to the host via ssh" in errors["pass-1/gone.error"]
    assert "silent: no answer within 1 s" in said and "gone: Failed to connect" in said
    assert "On hosts: pass 2; expected end" in said and said.count("expected end") == 2
    # Nothing is left on the hosts.
    assert [path for path in (tmp_path / "on").rglob("*") if path.name not in ("gpu-1", "gpu-2")] == [], said


def test_a_judge_that_fails_leaves_no_tester_on_hosts(tmp_path: Path) -> None:
    hosts = {"gpu-1": {"ansible_connection": "local", "rdma_validate_task_timeout": 60}}
    done = played(tmp_path, hosts, [], REFUSES)
    assert done.returncode == 2 and "nothing was measured" in done.stdout
    assert (tmp_path / "run/evidence/host/describe/gpu-1.log").exists(), done.stdout
    assert list((tmp_path / "on/gpu-1").iterdir()) == [], done.stdout


def test_all_hosts_start_in_time_whatever_forks_is(tmp_path: Path) -> None:
    """Four hosts, one at a time; 8 s. What the delivery took settles the start, since the time that is set is 0."""
    names = [f"gpu-{number}" for number in range(4)]
    local = {"ansible_connection": "local", "rdma_validate_task_timeout": 60}
    done = played(tmp_path, dict.fromkeys(names, local), [step(1, False, *names), step(1, True)], forks=1)
    assert done.returncode == 0, done.stdout + done.stderr
    found = ahead(tmp_path)
    assert len(found) == 4 and min(found) > 0, found
