"""What the role rdma_validate announces before a pass: played by Ansible from the tasks' own files."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import yaml
from real_play import ansible_playbook

TASKS = Path(__file__).resolve().parents[3] / "roles" / "rdma_validate" / "tasks"
SLOW = {"text": "gpu-3 rail0: the link came up at 100 Gb/s"}
SMALL = {"text": "gpu-3 rail1: RDMA MTU 1024"}


def step(number: int, *links: dict[str, str]) -> dict[str, Any]:
    """What fabric_judge returns, as far as an announcement needs it."""
    return {"announce": f"pass {number}", "seconds": 60, "pass": number, "links": list(links)}


# The file, its variables, the lines that it announces.
CASES: list[tuple[str, dict[str, Any], list[str]]] = [
    ("hosts_pass.yml", {"__rdma_validate_step": step(1, SLOW, SMALL)},
     ["On hosts: pass 1", SLOW["text"], SMALL["text"]]),
    ("hosts_pass.yml", {"__rdma_validate_step": step(2, SLOW)}, ["On hosts: pass 2"]),
    ("hosts_pass.yml", {"__rdma_validate_step": step(1)}, ["On hosts: pass 1"]),
    # Measured in pods only.
    ("pods_pass.yml", {"__rdma_validate_pod_step": step(1, SLOW, SMALL)},
     ["In pods: pass 1", SLOW["text"], SMALL["text"]]),
    # What was announced on the hosts is not told again.
    ("pods_pass.yml", {"__rdma_validate_step": step(3, SLOW), "__rdma_validate_pod_step": step(1, SLOW, SMALL)},
     ["In pods: pass 1", SMALL["text"]]),
    ("pods_pass.yml", {"__rdma_validate_pod_step": step(2, SLOW)}, ["In pods: pass 2"]),
]  # fmt: skip


def announcement(file: str, variables: dict[str, Any]) -> dict[str, Any]:
    """The first task of a file with variables."""
    task: dict[str, Any] = yaml.safe_load((TASKS / file).read_text())[0]
    assert task["name"].endswith("Announce the pass")
    return {**task, "vars": {**task["vars"], "__rdma_validate_lead": 15, **variables}}


def played(tasks: Sequence[dict[str, Any]], tmp_path: Path) -> str:
    """What Ansible prints of these tasks."""
    (tmp_path / "play.yml").write_text(json.dumps([{"hosts": "all", "gather_facts": False, "tasks": list(tasks)}]))
    args = ("-i", "gpu-1,", "-c", "local", tmp_path / "play.yml")
    done = ansible_playbook(tmp_path, *args, ANSIBLE_STDOUT_CALLBACK="ansible.builtin.default")
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


def test_links_that_came_up_low_are_announced_before_the_first_packet(tmp_path: Path) -> None:
    printed = played([announcement(file, variables) for file, variables, _lines in CASES], tmp_path)
    said = [json.JSONDecoder().raw_decode(part)[0]["msg"] for part in printed.split(" => ")[1:]]
    # Without the time of the end, which is another one each time.
    told = [[line.partition("; expected end ")[0] for line in lines] for lines in said]
    assert told == [lines for _file, _variables, lines in CASES]
