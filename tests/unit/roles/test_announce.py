"""What the role rdma_validate announces and says at its end: played by Ansible from the tasks' own files."""

from __future__ import annotations

import ast
import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import jinja2
import pytest
import yaml
from tests.unit.support.real_play import ansible_playbook

TASKS = Path(__file__).resolve().parents[3] / "roles" / "rdma_validate" / "tasks"
ROLE: dict[str, Any] = yaml.safe_load((TASKS.parent / "vars" / "main.yml").read_text())
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
    tasks = [inner for task in yaml.safe_load((TASKS / file).read_text()) for inner in task.get("block", [task])]
    (task,) = [task for task in tasks if task["name"].endswith("Announce the pass")]
    return {
        **task,
        "vars": {
            **task["vars"],
            "__rdma_validate_lead": 15,
            "__rdma_validate_scheduled": {"start_in": 15},
            **variables,
        },
    }


def played(tasks: Sequence[dict[str, Any]], tmp_path: Path) -> str:
    """What Ansible prints of these tasks."""
    (tmp_path / "play.yml").write_text(json.dumps([{"hosts": "all", "gather_facts": False, "tasks": list(tasks)}]))
    args = ("-i", "gpu-1,", "-c", "local", tmp_path / "play.yml")
    done = ansible_playbook(tmp_path, *args, ANSIBLE_STDOUT_CALLBACK="ansible.builtin.default")
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


# Verdict, causes, acceptance rules that failed, what the removal of testers in pods answered, and the message.
ENDS: list[tuple[str, list[str], list[str], dict[str, Any], str]] = [
    ("fail", [], [], {"removed": []}, "The verdict is fail."),
    ("fail", ["a broke", "b broke."], [], {"removed": []}, "The verdict is fail. a broke; b broke."),
    ("fail", list("abcd"), ["slow"], {"removed": []}, "The verdict is fail. a; b; c."),
    ("fail", [], ["slow"], {"removed": []}, "The verdict is fail. acceptance rule slow failed."),
    ("pass", [], [], {"msg": "refused.\n"},
     "The verdict is pass. The testers were not removed from the cluster: refused. {remove}"),
    ("no_data", ["(gone)"], [], {},
     "The verdict is no_data. (gone). The testers were not removed from the cluster: no answer. {remove}"),
]  # fmt: skip
REMOVE = "Remove them with ansible-playbook gpufabric.rdma.abort."


def last_words(verdict: str, causes: list[str], rules: list[str], removed: dict[str, Any]) -> dict[str, Any]:
    """The message with which a run fails, as a task that shows it."""
    task: dict[str, Any] = yaml.safe_load((TASKS / "report.yml").read_text())[-1]
    report = {"verdict": verdict, "summary": {"diagnoses": causes, "gates": rules}}
    more = {
        "__rdma_validate_report": report,
        "__rdma_validate_removed": removed,
        "__rdma_validate_report_path": "/r",
        "__rdma_validate_places": ["pod"],
        "__rdma_validate_unremoved": ROLE["__rdma_validate_unremoved"],
    }
    return {"ansible.builtin.debug": task["ansible.builtin.fail"], "vars": {**task["vars"], **more}}


def test_messages_are_well_formed_whatever_is_missing(tmp_path: Path) -> None:
    """Announcements and the end of a run: one play, 2 s."""
    tasks = [announcement(file, variables) for file, variables, _lines in CASES]
    tasks += [last_words(*case[:4]) for case in ENDS]
    printed = played(tasks, tmp_path)
    said = [json.JSONDecoder().raw_decode(part)[0]["msg"] for part in printed.split(" => ")[1:]]
    # Without the time of the end, which is another one each time.
    told = [[line.partition("; expected end ")[0] for line in lines] for lines in said[: len(CASES)]]
    assert told == [lines for _file, _variables, lines in CASES]
    ends = [f"{case[4].format(remove=REMOVE)} Report: /r/report.html" for case in ENDS]
    assert said[len(CASES) :] == ends


@pytest.mark.parametrize(
    ("judged", "last"),
    [
        # The evaluation with the ports of the hosts; none, skipped since the run failed, or failed itself.
        ({"done": True, "links": []}, "judged"),
        (None, "step"),
        ({"skipped": True}, "step"),
        ({"msg": "an error"}, "step"),
    ],
)
def test_the_last_step_of_pods_is_the_one_with_the_ports(judged: dict[str, Any] | None, last: str) -> None:
    environment = jinja2.Environment()
    environment.filters["ternary"] = lambda value, yes, no: yes if value else no
    known = {"__rdma_validate_places": ["pod"], "__rdma_validate_pod_step": {"name": "step"}}
    if judged is not None:
        known["__rdma_validate_pod_judged"] = {"name": "judged", **judged}
    (found,) = ast.literal_eval(environment.from_string(ROLE["__rdma_validate_steps"]).render(known))
    assert found["name"] == last
