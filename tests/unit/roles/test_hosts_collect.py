"""What testers wrote after their controller died reaches the folder of its run: played by Ansible."""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any

import yaml
from tests.unit.support.real_play import ROOT, ansible_playbook

ROLE = ROOT / "roles/rdma_validate"


def recovers(task: dict[str, Any]) -> bool:
    return dict(task.get("gpufabric.rdma.host_testers", {})).get("state") == "recovered"


LOG = "=== gpufabric batch 2 begin 1\n=== gpufabric batch 2 done 1 0\n"


def play(folder: Path, resumed: str, ended: bool) -> dict[str, Any]:
    """A run that continues the run r1, or begins anew, looks for logs of r1."""
    left = {
        "run": "r1",
        "pass": 2,
        "folder": str(folder),
        "ended": ended,
        "largest": 1000,
        "hosts": ["gpu-1", "gpu-2", "gpu-3"],
    }
    begun = {"run": "r9", "folder": str(folder), "leftover": left, "earlier": {"resume": resumed}}
    block = yaml.safe_load((ROLE / "tasks/hosts.yml").read_text())[0]
    (task,) = [task for task in block["block"] if recovers(task)]
    tasks = [{"module_defaults": block["module_defaults"], "block": [task]}]
    return {
        "hosts": "all",
        "gather_facts": False,
        "vars_files": [str(ROLE / "vars/main.yml")],
        "vars": {"__rdma_validate_begun": begun},
        "tasks": tasks,
    }


def test_logs_of_a_run_that_did_not_end_are_fetched(tmp_path: Path) -> None:
    """Three runs in one play, 4 s: only Ansible shows how the tasks of many hosts depend on each other."""
    host = tmp_path / "hosts"
    # Whole; not whole; none at all; that of a host that was fetched.
    for name, text in (("gpu-1", LOG), ("gpu-2", LOG[:40]), ("gpu-4", LOG)):
        (host / name / "tester").mkdir(parents=True)
        (host / name / "tester/r1-2.log").write_text(text)
    (host / "gpu-1/tester.run").write_text("r1 then 99999999999\n")
    folders = [tmp_path / str(number) for number in range(3)]
    # Another run leaves a host alone that r1 may still have; so does one that continues it, and fails.
    plays = [play(folders[0], "/r/r1", True), play(folders[1], "", False), play(folders[2], "/r/r1", False)]
    (tmp_path / "play.yml").write_text(json.dumps(plays))
    where = {
        "__rdma_validate_folder": f"{host}/{{{{ inventory_hostname }}}}/tester",
        "rdma_validate_task_timeout": 20,
        "__rdma_validate_answered": True,
        "__rdma_validate_unit": "gpufabric-no-unit",
        "ansible_python_interpreter": sys.executable,
    }
    args = ("-i", "gpu-1,gpu-2,gpu-3,gpu-4", "-c", "local", "-e", json.dumps(where), tmp_path / "play.yml")
    done = ansible_playbook(tmp_path, *args)
    said = done.stdout + done.stderr
    assert [[path.name for path in place.glob("*")] for place in folders] == [["gpu-1.log"], [], []], said
    assert (folders[0] / "gpu-1.log").read_text() == LOG
    assert done.returncode and said.count("FAILED!") == 1, said
    assert "gpu-1: this host is being measured by run r1 since then, for at most 9999" in " ".join(said.split())


def test_logs_are_looked_for_only_when_a_run_left_some(tmp_path: Path) -> None:
    """A condition must be a boolean: a dict, also an empty one, ends the play. One play, 2 s."""
    block = yaml.safe_load((ROLE / "tasks/hosts.yml").read_text())[0]["block"]
    (when,) = (task["when"] for task in block if recovers(task))
    tasks = [
        {"debug": {"msg": f"looks: {name}"}, "when": when, "vars": {"__rdma_validate_leftover": leftover}}
        for name, leftover in (("nothing", {}), ("a run", {"run": "R", "pass": 1}))
    ]
    (tmp_path / "play.yml").write_text(json.dumps([{"hosts": "all", "gather_facts": False, "tasks": tasks}]))
    answered = json.dumps({"__rdma_validate_answered": True})
    done = ansible_playbook(tmp_path, "-i", "gpu-1,", "-c", "local", "-e", answered, tmp_path / "play.yml")
    assert not done.returncode, done.stdout
    assert "looks: a run" in done.stdout and "looks: nothing" not in done.stdout
