"""Passes on bare hosts, played by Ansible from the role's own files on this machine: all but the judge is real."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import yaml
from tests.unit.support.real_play import ROOT, ansible_playbook

ROLE = ROOT / "roles/rdma_validate"
# Runs the unit at once; only then is the log there.
SYSTEMD_RUN = """#!/bin/sh
for arg; do case $arg in --property=StandardInput=file:*) batch=${arg#*file:} ;; esac; done
while [ "$1" != sh ]; do shift; done
exec "$@" <"$batch"
"""
TESTER = """case $1 in
  describe) echo "=== described: $(cat "$2")" ;;
  run) { echo "clocks: $(wc -l <"$4")"; cat; } >"$3" ;;
esac
"""
# In place of the judge.
STEPS = {
    "ansible.builtin.set_fact": {"__rdma_validate_step": "{{ steps[__rdma_validate_step.pass | default(0)] }}"},
    "run_once": True,
}
REFUSES = {
    "ansible.builtin.fail": {"msg": "nothing was measured"},
    "run_once": True,
    "register": "__rdma_validate_step",
}


def program(path: Path, text: str) -> None:
    path.write_text(text)
    path.chmod(0o755)


def step(number: int, done: bool, *hosts: str) -> dict[str, Any]:
    lines = {host: [f"0 rail0 {host}", "END 1"] for host in hosts}
    told = {"announce": f"pass {number}", "links": [], "lead": 0, "verdicts": {}}
    return {"pass": number, "rounds": 1, "slot": 1, "seconds": 1, "done": done, "lines": lines, **told}


def played(
    tmp_path: Path, hosts: dict[str, Any], steps: list[dict[str, Any]], judge: dict[str, Any] = STEPS
) -> subprocess.CompletedProcess[str]:
    for folder in ("bin", "tasks", "files", "run/evidence/host/describe"):
        (tmp_path / folder).mkdir(parents=True)
    shutil.copy(ROLE / "tasks/hosts.yml", tmp_path / "tasks")
    tasks = yaml.safe_load((ROLE / "tasks/hosts_pass.yml").read_text())
    tasks = [judge if "gpufabric.rdma.fabric_judge" in task else task for task in tasks]
    (tmp_path / "tasks/hosts_pass.yml").write_text(yaml.safe_dump(tasks, sort_keys=False))
    (tmp_path / "files/tester.sh").write_text(TESTER)
    program(tmp_path / "bin/systemctl", '#!/bin/sh\n[ "$1" != is-active ]\n')
    program(tmp_path / "bin/systemd-run", SYSTEMD_RUN)
    program(tmp_path / "bin/gone", "#!/bin/sh\nexit 255\n")
    # In place of ssh; exec, so that nothing is left when it is given up.
    program(tmp_path / "bin/silent", "#!/bin/sh\nexec sleep 20\n")
    begun = {"run": "r1", "folder": str(tmp_path / "run"), "leftover": {}, "earlier": {"resume": ""}}
    variables = {
        "__rdma_validate_begun": begun, "__rdma_validate_answered": True, "rdma_validate_start_in": 0,
        "__rdma_validate_folder": f"{tmp_path}/on/{{{{ inventory_hostname }}}}/gpufabric/tester",
        "rdma_validate_plan": {
            "rails": [{"name": "rail0", "netdev": "eth0"}],
            "hosts": {name: {"rails": [{"rail": "rail0"}]} for name in hosts},
        },
        "steps": steps, "ansible_python_interpreter": sys.executable,
    }  # fmt: skip
    # A role's own folder in a play; not an extra variable, which would hide it from Ansible too.
    text = (tmp_path / "tasks/hosts.yml").read_text().replace("{{ role_path }}", str(tmp_path))
    (tmp_path / "tasks/hosts.yml").write_text(text)
    book = {
        "hosts": "all", "gather_facts": False, "vars_files": [str(ROLE / "vars/main.yml")],
        "tasks": [{"ansible.builtin.include_tasks": str(tmp_path / "tasks/hosts.yml")}],
    }  # fmt: skip
    (tmp_path / "play.yml").write_text(json.dumps([book]))
    (tmp_path / "hosts.json").write_text(json.dumps({"all": {"hosts": hosts}}))
    args = ("-i", tmp_path / "hosts.json", "-e", json.dumps(variables), tmp_path / "play.yml")
    return ansible_playbook(tmp_path, *args, COLUMNS="2000", PATH=f"{tmp_path}/bin:{os.environ['PATH']}")


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
        "pass-1/gpu-1.log": "clocks: 3\nBATCH 1 0 1\n0 rail0 gpu-1\nEND 1\n",
        "pass-1/gpu-2.log": "clocks: 3\nBATCH 1 0 1\n0 rail0 gpu-2\nEND 1\n",
        "pass-2/gpu-2.log": "clocks: 5\nBATCH 2 0 1\n0 rail0 gpu-2\nEND 1\n",
    }, said
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
