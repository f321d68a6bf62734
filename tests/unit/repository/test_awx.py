"""The objects of awx/: keys that their loader knows, references that resolve, answers that the collection accepts.

No AWX: what is asked here is all that can be known without one. About 8 s.
"""

from __future__ import annotations

import itertools
import json
import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import yaml
from tests.unit.support.real_play import ROOT, ansible_playbook

from ansible_collections.gpufabric.rdma.plugins.module_utils._fabric.intent.role_variables import PLAYBOOKS

AWX = ROOT / "awx"
# Those for which a job template makes no sense: they are part of others, or need the folder of an earlier run.
WITHOUT_TEMPLATE = {"site", "discover", "reboot", "abort", "report"}
# Templates that change nothing and so need no approval.
HARMLESS = {"RDMA plan", "RDMA lint", "RDMA support bundle", "RDMA validate"}


class Loader(yaml.CSafeLoader):
    """Reads the tag with which the files keep templates for the job."""


Loader.add_constructor("!unsafe", lambda loader, node: loader.construct_scalar(node))


def load(path: Path) -> Any:
    return yaml.load(path.read_text(), Loader)


OBJECTS: dict[str, list[dict[str, Any]]] = {
    kind: found for path in sorted((AWX / "objects").glob("*.yml")) for kind, found in load(path).items()
}
KEYS = load(ROOT / "tests/fixtures/awx/keys.yml")
TEMPLATES = {one["name"]: one for one in OBJECTS["controller_templates"]}
WORKFLOWS = OBJECTS["controller_workflows"]
NODES = [node for workflow in WORKFLOWS for node in workflow["simplified_workflow_nodes"]]
SURVEYS = [one["survey_spec"] for one in (*TEMPLATES.values(), *WORKFLOWS) if one.get("survey_enabled")]
QUESTIONS = [question for survey in SURVEYS for question in survey["spec"]]


def parts() -> Iterator[tuple[str, dict[str, Any]]]:
    for kind, found in OBJECTS.items():
        yield from ((kind, one) for one in found)
    yield from (("node", one) for one in NODES)
    yield from (("approval", one["approval_node"]) for one in NODES if "approval_node" in one)
    yield from (("survey", one) for one in SURVEYS)
    yield from (("question", one) for one in QUESTIONS)


@pytest.mark.parametrize("kind, found", list(parts()))
def test_keys_are_those_that_the_loader_knows(kind: str, found: dict[str, Any]) -> None:
    known = KEYS[kind]
    assert not set(found) - set(known["keys"])
    assert not set(known.get("required", [])) - set(found)


def test_every_reference_is_an_object_of_the_kit_or_a_credential_of_the_user() -> None:
    names = {kind: {one["name"] for one in found} for kind, found in OBJECTS.items()}
    credentials = {"RDMA hosts", "RDMA cluster"}
    for one in TEMPLATES.values():
        assert one["project"] in names["controller_projects"]
        assert one["inventory"] in names["controller_inventories"]
        assert one["execution_environment"] in names["controller_execution_environments"]
        assert set(one["credentials"]) <= credentials
    for one in OBJECTS["controller_inventory_sources"]:
        assert one["inventory"] in names["controller_inventories"]
        assert one["source_project"] in names["controller_projects"]
        assert one["credential"] in credentials
        assert (AWX / "project" / one["source_path"]).is_file()
    for one in OBJECTS["controller_schedules"]:
        template = TEMPLATES[one["unified_job_template"]]
        asked = {question["variable"] for question in template["survey_spec"]["spec"]}
        assert set(one["extra_data"]) <= asked, "AWX drops a variable that the survey does not ask"


def test_the_project_has_a_playbook_for_each_template_and_each_imports_ours() -> None:
    folder = AWX / "project"
    wrappers = {path.stem: load(path) for path in (folder / "playbooks").glob("*.yml")}
    assert {one["playbook"] for one in TEMPLATES.values()} == {f"playbooks/{name}.yml" for name in wrappers}
    for name, plays in wrappers.items():
        assert [play["ansible.builtin.import_playbook"] for play in plays] == [f"gpufabric.rdma.{name}"]
    assert set(wrappers) == {path.stem for path in (ROOT / "playbooks").glob("*.yml")} - WITHOUT_TEMPLATE


@pytest.mark.parametrize("workflow", WORKFLOWS, ids=lambda one: one["name"])
def test_a_person_approves_before_a_workflow_changes_anything(workflow: dict[str, Any]) -> None:
    nodes = {one["identifier"]: one for one in workflow["simplified_workflow_nodes"]}
    followed = {
        name: [n for way in ("success", "failure", "always") for n in one.get(f"{way}_nodes", [])]
        for name, one in nodes.items()
    }
    begins = set(nodes) - set(itertools.chain(*followed.values()))
    assert begins == {"plan"}
    reached: list[tuple[str, tuple[str, ...]]] = [(name, ()) for name in begins]
    seen = set()
    while reached:
        name, before = reached.pop()
        assert name not in before, "a workflow of AWX has no circles"
        seen.add(name)
        template = nodes[name].get("unified_job_template")
        assert template is None or template in TEMPLATES
        if template and template not in HARMLESS:
            assert any("approval_node" in nodes[one] for one in before), f"{name} changes something without approval"
        reached += [(after, (*before, name)) for after in followed[name]]
    assert seen == set(nodes)
    # A variable of the workflow reaches a job only if the survey of its template asks for it.
    asked = {
        q["variable"] for one in nodes.values() for q in questions(TEMPLATES.get(one.get("unified_job_template", "")))
    }
    assert {question["variable"] for question in questions(workflow)} <= asked


def questions(found: dict[str, Any] | None) -> list[dict[str, Any]]:
    return found["survey_spec"]["spec"] if found and found.get("survey_enabled") else []


@pytest.mark.parametrize("question", QUESTIONS, ids=lambda one: one["variable"])
def test_a_question_has_a_type_a_default_and_choices_that_agree(question: dict[str, Any]) -> None:
    assert question["type"] in KEYS["question"]["types"]
    assert question["variable"].startswith("survey_")
    assert "choices" not in question or question["default"] in question["choices"]
    # YAML reads no and yes as booleans, which AWX refuses.
    assert all(isinstance(choice, str) for choice in question.get("choices", []))


def answers(template: dict[str, Any]) -> Iterator[dict[str, str]]:
    """No answer at all, the defaults, and each other choice or example of a text with the defaults."""
    examples = {"survey_reboot_batch": ["10%"], "survey_hosts": ["gpu-01 gpu-02"]}
    defaults = {question["variable"]: question["default"] for question in questions(template)}
    yield {}
    yield defaults
    for question in questions(template):
        name = question["variable"]
        yield from ({**defaults, name: value} for value in question.get("choices") or examples[name])


def options_of_roles() -> set[str]:
    specs = [yaml.safe_load(path.read_text()) for path in (ROOT / "roles").glob("*/meta/argument_specs.yml")]
    return {name for spec in specs for one in spec["argument_specs"].values() for name in one.get("options", {})}


def test_the_collection_accepts_every_answer_of_the_surveys(tmp_path: Path) -> None:
    """One host for each set of answers; the play is that of every playbook of the collection."""
    known = options_of_roles() | set(PLAYBOOKS)
    hosts: dict[str, dict[str, Any]] = {}
    for number, template in enumerate(TEMPLATES.values()):
        given = template.get("extra_vars", {})
        assert set(given) <= known
        used = json.dumps(given)
        assert all(question["variable"] in used for question in questions(template))
        for variant, answer in enumerate(answers(template)):
            hosts[f"host-{number}-{variant}"] = {**answer, **given}
    assert len(hosts) > 20, sorted(hosts)
    done = play(tmp_path, hosts)
    assert done.returncode == 0, done.stdout
    wrong = {"bad": {**TEMPLATES["RDMA validate"]["extra_vars"], "survey_budget": "enormous"}}
    done = play(tmp_path, wrong)
    assert "rdma_fabric_job.tests.budget" in done.stdout, "a wrong answer must be found, or this test cannot fail"


def play(folder: Path, hosts: dict[str, dict[str, Any]]) -> subprocess.CompletedProcess[str]:
    """Check the variables of each host on its own, since the intent is one for all hosts of a run."""
    tasks = [{"gpufabric.rdma.role_options": {"fabric": True}}]
    plays = [{"hosts": name, "gather_facts": False, "tasks": tasks} for name in hosts]
    (folder / "play.yml").write_text(json.dumps(plays))
    common = {"rdma_fabric": {"supernet": "10.0.0.0/8"}}
    (folder / "hosts.json").write_text(json.dumps({"all": {"hosts": hosts, "vars": common}}))
    return ansible_playbook(folder, "-i", folder / "hosts.json", folder / "play.yml", COLUMNS="2000")


def test_the_playbooks_of_the_project_are_found_and_read(tmp_path: Path) -> None:
    wrappers = sorted((AWX / "project/playbooks").glob("*.yml"))
    (tmp_path / "hosts.json").write_text(json.dumps({"rdma_hosts": {"hosts": {"gpu-01": None}}}))
    done = ansible_playbook(tmp_path, "-i", tmp_path / "hosts.json", "--syntax-check", *wrappers)
    assert done.returncode == 0, done.stderr
