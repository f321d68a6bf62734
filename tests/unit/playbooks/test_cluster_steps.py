"""Which parts of a run the check of the cluster asks permissions for, by the tags of the run."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import jinja2
import pytest
import yaml
from tests.unit.support.playbook_files import plays
from tests.unit.support.real_play import ROOT


@pytest.mark.parametrize(
    ("tags", "skipped", "where", "steps"),
    [
        (["all"], [], None, ["operator", "policy", "networks", "validate"]),
        (["all"], ["validate"], None, ["operator", "policy", "networks"]),
        (["all"], [], ["host"], ["operator", "policy", "networks"]),
        (["networks"], [], None, ["networks"]),
        (["deploy", "validate"], ["deploy"], ["pod"], ["validate"]),
        (["nic_cluster_policy", "rdma_validate"], [], None, ["policy", "validate"]),
        # The tag of a role, inside of a playbook that is not skipped.
        (["all"], ["nic_cluster_policy"], None, ["operator", "networks", "validate"]),
        (["deploy"], ["network_operator"], None, ["policy"]),
        (["all"], ["secondary_networks", "rdma_validate"], None, ["operator", "policy"]),
        (["prepare"], [], None, []),
    ],
)
def test_steps_follow_the_tags(tags: list[str], skipped: list[str], where: Any, steps: list[str]) -> None:
    assert steps_of({"ansible_run_tags": tags, "ansible_skip_tags": skipped, "rdma_validate_where": where}) == steps


@pytest.mark.parametrize(
    ("tags", "skipped", "steps"),
    [
        (["all"], [], ["operator", "policy"]),
        (["all"], ["nic_cluster_policy"], ["operator"]),
        (["deploy"], ["nic_cluster_policy", "validate"], ["operator"]),
        (["network_operator"], [], ["operator"]),
        (["nic_cluster_policy", "network_operator"], ["validate"], ["operator", "policy"]),
        (["nic_cluster_policy"], [], ["policy"]),
    ],
)
def test_deploy_checks_for_both_of_its_roles(tags: list[str], skipped: list[str], steps: list[str]) -> None:
    name = "Check the cluster for the operator and its policy"
    (task,) = [task for play in plays("deploy.yml") for task in play.get("tasks", []) if task["name"] == name]
    assert steps_of({"ansible_run_tags": tags, "ansible_skip_tags": skipped, **task["vars"]}) == steps


def test_nothing_is_measured_so_nothing_is_asked_for() -> None:
    known = {"ansible_run_tags": ["validate"], "ansible_skip_tags": []}
    assert steps_of(known) == ["validate"]
    assert steps_of({**known, "rdma_validate_when": "never"}) == []
    # Collectives run in pods in any case.
    known.update(rdma_plan={"tests": {"nccl": {"enabled": True}}}, rdma_validate_when="never")
    assert steps_of(known) == ["validate"]
    assert steps_of({**known, "ansible_skip_tags": ["nccl_validate"]}) == []


@pytest.mark.parametrize("name", ["site.yml", "deploy.yml"])
def test_the_check_is_run_whatever_the_tags_are(name: str) -> None:
    """A tag of its own would leave it out where one of several tags is skipped."""
    found = [
        [*play.get("tags", []), *task.get("tags", [])]
        for play in plays(name)
        for task in play.get("tasks", [])
        if task.get("ansible.builtin.import_tasks") == "tasks/cluster.yml"
    ]
    assert found and all(tags == ["always"] for tags in found)


@pytest.mark.parametrize("path", [*ROOT.glob("playbooks/**/*.yml"), *ROOT.glob("roles/*/tasks/*.yml")], ids=str)
def test_no_include_has_tags_that_its_tasks_do_not_get(path: Path) -> None:
    document = yaml.safe_load(path.read_text())
    tasks = list(document) if isinstance(document, list) else []
    while tasks:
        task = tasks.pop()
        for part in ("tasks", "pre_tasks", "block", "rescue", "always"):
            tasks += task.get(part) or []
        included = [task[key] or {} for key in task if key.rpartition(".")[2] in ("include_tasks", "include_role")]
        assert not (included and "tags" in task and "apply" not in included[0]), task["name"]


def steps_of(known: dict[str, Any]) -> Any:
    """Return the steps that the check of the cluster has with these variables."""
    (task,) = yaml.safe_load((ROOT / "playbooks/tasks/cluster.yml").read_text())[1:]
    known = {"rdma_plan": {"tests": {}}, **{name: found for name, found in known.items() if found is not None}}
    defaults = yaml.safe_load((ROOT / "roles/rdma_validate/defaults/main.yml").read_text())
    known["__options"] = {name: known.get(name, default) for name, default in defaults.items()}
    for name in ("__selected", "__collectives", "__wanted", "__steps"):
        known[name] = value(task["vars"][name], known)
    return known["__steps"]


def value(text: str, known: dict[str, Any]) -> Any:
    """Return what a template of one expression is."""
    jinja = jinja2.Environment(autoescape=False)
    jinja.filters["intersect"] = lambda left, right: [item for item in left if item in right]
    jinja.filters["difference"] = lambda left, right: [item for item in left if item not in right]
    return jinja.compile_expression(text.strip("{} \n"))(**known)
