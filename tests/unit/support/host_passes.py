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
# Notes when it was started and when it is to begin, by the clock that this machine shares with the controller.
TESTER = """case $1 in
  describe) echo "=== described: $(cat "$2")" ;;
  run) read -r up _ </proc/uptime; echo "$up $5" >>@starts@; { echo "clocks: $(wc -l <"$4")"; cat; } >"$3" ;;
esac
"""
# In place of the judge.
STEPS = {
    "ansible.builtin.set_fact": {"__rdma_validate_step": "{{ steps[__rdma_validate_step.pass | default(0)] }}"},
    "run_once": True,
}


def program(path: Path, text: str) -> None:
    path.write_text(text)
    path.chmod(0o755)


def step(number: int, done: bool, *hosts: str) -> dict[str, Any]:
    """Return what the judge returns: a pass of one round on these hosts, or the end."""
    lines = {host: [f"0 rail0 {host}", "END 1"] for host in hosts}
    told = {"announce": f"pass {number}", "links": [], "lead": 0, "verdicts": {}}
    return {"pass": number, "rounds": 1, "slot": 1, "seconds": 1, "done": done, "lines": lines, **told}


def played(
    tmp_path: Path, hosts: dict[str, Any], steps: list[dict[str, Any]], judge: dict[str, Any] = STEPS, forks: int = 5
) -> subprocess.CompletedProcess[str]:
    """Play the role's passes on ``hosts``, names with their variables; the judge returns ``steps`` in turn."""
    for folder in ("bin", "tasks", "files", "run/evidence/host/describe"):
        (tmp_path / folder).mkdir(parents=True)
    shutil.copy(ROLE / "tasks/hosts.yml", tmp_path / "tasks")
    tasks = yaml.safe_load((ROLE / "tasks/hosts_pass.yml").read_text())
    tasks = [judge if "gpufabric.rdma.fabric_judge" in task else task for task in tasks]
    (tmp_path / "tasks/hosts_pass.yml").write_text(yaml.safe_dump(tasks, sort_keys=False))
    (tmp_path / "files/tester.sh").write_text(TESTER.replace("@starts@", str(tmp_path / "starts")))
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
    more = {"COLUMNS": "2000", "ANSIBLE_FORKS": str(forks), "PATH": f"{tmp_path}/bin:{os.environ['PATH']}"}
    return ansible_playbook(tmp_path, *args, timeout=300 + 3 * len(hosts), **more)


def ahead(tmp_path: Path) -> list[float]:
    """Return by how many seconds each tester was started before it was to begin; a negative number is a late one."""
    lines = [line.split() for line in (tmp_path / "starts").read_text().splitlines()]
    return [float(begin) - float(started) for started, begin in lines]
