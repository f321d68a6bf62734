"""What measuring in pods needs, checked by the playbooks' tasks for real; a play with many cases in two runs, 4 s."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from tests.unit.support.real_play import ansible_playbook

TASKS = Path(__file__).resolve().parents[3] / "playbooks" / "tasks" / "pods.yml"
NCCL = {"tests": {"nccl": {"enabled": True}}}
CASES = {
    "no-image": ({}, "rdma_validate_image is not set, and rdma_validate_where includes pod."),
    "hosts-only": ({"rdma_validate_where": ["host"]}, ""),
    "never": ({"rdma_validate_when": "never"}, ""),
    "fine": ({"rdma_validate_image": "i:1"}, ""),
    "collectives": ({"rdma_validate_image": "i:1", "rdma_plan": NCCL}, "nccl_validate_image is not set, and"),
    "both": ({"rdma_validate_image": "i:1", "nccl_validate_image": "i:1", "rdma_plan": NCCL}, ""),
}


@pytest.mark.parametrize(("tags", "unasked"), [((), ()), (("--tags", "rdma_validate"), ("collectives",))])
def test_cases(tmp_path: Path, tags: tuple[str, ...], unasked: tuple[str, ...]) -> None:
    hosts = {name: {**given, "case": name} for name, (given, _message) in CASES.items()}
    plays = [
        {
            "hosts": name,
            "gather_facts": False,
            "tasks": [
                {
                    "tags": ["rdma_validate"],
                    "block": [{"ansible.builtin.import_tasks": str(TASKS)}],
                    "rescue": [
                        {"ansible.builtin.debug": {"msg": "refused {{ case }}: {{ ansible_failed_result.msg }}"}}
                    ],
                },
            ],
        }
        for name in CASES
    ]
    (tmp_path / "play.yml").write_text(json.dumps(plays))
    (tmp_path / "hosts.json").write_text(json.dumps({"all": {"hosts": hosts}}))
    inventory = ("-i", tmp_path / "hosts.json", "-c", "local")
    done = ansible_playbook(tmp_path, *inventory, tmp_path / "play.yml", *tags, COLUMNS="2000")
    assert done.returncode == 0, done.stdout + done.stderr
    for name, (_given, message) in CASES.items():
        refused = bool(message) and name not in unasked
        assert (f"refused {name}: {message}" in done.stdout) is refused, done.stdout
