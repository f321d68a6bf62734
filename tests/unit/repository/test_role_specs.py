"""Every role documents its inputs: meta/argument_specs.yml equals defaults/main.yml in keys and values."""

from __future__ import annotations

import ast
import re
from pathlib import Path
from typing import Any

import pytest
import yaml

ROLES = Path(__file__).resolve().parents[3] / "roles"
MAX_INPUTS = 28


def spec_and_defaults(role: Path) -> tuple[dict[str, Any], dict[str, Any]]:
    spec = yaml.safe_load((role / "meta" / "argument_specs.yml").read_text())
    defaults = yaml.safe_load((role / "defaults" / "main.yml").read_text()) or {}
    return spec["argument_specs"]["main"]["options"], defaults


def differences(options: dict[str, Any], defaults: dict[str, Any]) -> list[str]:
    """Inputs that one side has and the other has not, or whose default differs."""
    found = []
    for name in sorted(set(options) | set(defaults)):
        option = options.get(name)
        if option is None:
            found.append(f"{name}: not in argument_specs")
        elif name not in defaults and not option.get("required") and "default" in option:
            found.append(f"{name}: has a default in argument_specs but not in defaults")
        elif name not in defaults and not option.get("required"):
            found.append(f"{name}: neither required nor in defaults")
        elif name in defaults and option.get("required"):
            found.append(f"{name}: required, yet in defaults")
        elif name in defaults and defaults[name] != option.get("default"):
            found.append(f"{name}: default {option.get('default')!r} in argument_specs, {defaults[name]!r} in defaults")
    return found


ALL = sorted(path for path in ROLES.glob("*") if path.is_dir())


@pytest.mark.parametrize("role", ALL, ids=lambda p: p.name)
def test_spec_equals_defaults(role: Path) -> None:
    assert differences(*spec_and_defaults(role)) == []


@pytest.mark.parametrize("role", ALL, ids=lambda p: p.name)
def test_inputs_are_prefixed_described_and_few(role: Path) -> None:
    options, _defaults = spec_and_defaults(role)
    assert [name for name in options if not name.startswith(f"{role.name}_")] == []
    assert [name for name, option in options.items() if not option.get("description")] == []
    assert len(options) <= MAX_INPUTS
    assert (role / "README.md").is_file()


@pytest.mark.parametrize(
    ("options", "defaults", "expected"),
    [
        ({"a": {"default": 1}}, {"a": 1}, []),
        ({"a": {"required": True}}, {}, []),
        ({"a": {}}, {"a": None}, []),
        ({"a": {"default": 1}}, {"a": 2}, ["a: default 1 in argument_specs, 2 in defaults"]),
        ({}, {"a": 2}, ["a: not in argument_specs"]),
        ({"a": {}}, {}, ["a: neither required nor in defaults"]),
        ({"a": {"default": 5}}, {}, ["a: has a default in argument_specs but not in defaults"]),
        ({"a": {"required": True}}, {"a": 1}, ["a: required, yet in defaults"]),
    ],
)
def test_the_gate_sees_a_difference(options: dict[str, Any], defaults: dict[str, Any], expected: list[str]) -> None:
    assert differences(options, defaults) == expected


def words(role: Path) -> set[str]:
    """Every name in the tasks and variables of a role."""
    files = [path for folder in ("tasks", "vars", "defaults", "handlers") for path in (role / folder).glob("*.yml")]
    return {word for path in files for word in re.findall(r"\w+", path.read_text())}


def of_others(role: str, found: set[str], others: set[str]) -> list[str]:
    """Names that belong to another role; the longest name of a role that fits is whose it is."""
    owners = {
        word: max((name for name in others if word.lstrip("_").startswith(f"{name}_")), key=len, default="")
        for word in found
    }
    return sorted(word for word, owner in owners.items() if owner not in ("", role))


@pytest.mark.parametrize("role", ALL, ids=lambda p: p.name)
def test_a_role_works_alone(role: Path) -> None:
    """It reads nothing of another role: what it needs of one is an input of its own."""
    modules = {path.stem for path in (ROLES.parent / "plugins" / "modules").glob("*.py")}
    assert of_others(role.name, words(role) - modules, {path.name for path in ALL}) == []


def test_the_gate_sees_a_variable_of_another_role() -> None:
    found = {"sriov_vfs", "__rdma_stack_result", "rail_links_rails", "other"}
    assert of_others("rail_links", found, {"sriov", "rdma_stack", "rail_links"}) == ["__rdma_stack_result", "sriov_vfs"]


def module_options(module: str) -> dict[str, Any]:
    """The documented options of a module of ours."""
    text = (ROLES.parent / "plugins" / "modules" / f"{module}.py").read_text()
    documentation = next(
        ast.literal_eval(node.value)
        for node in ast.parse(text).body
        if isinstance(node, ast.Assign) and getattr(node.targets[0], "id", "") == "DOCUMENTATION"
    )
    return yaml.safe_load(documentation).get("options", {})


def choices_of(module: str) -> set[str]:
    """The options of a module of ours that know choices."""
    return {name for name, option in module_options(module).items() if "choices" in option}


def nulls_for_choices(tasks: list[dict[str, Any]], defaults: dict[str, Any]) -> list[str]:
    """Inputs without a value that a module gets where it knows choices: it refuses a null."""
    found = []
    for name, options in (item for task in tasks for item in task.items()):
        if name.startswith("gpufabric.rdma.") and isinstance(options, dict):
            known = choices_of(name.rpartition(".")[2])
            plain = {key: str(value).strip("{} ") for key, value in options.items() if key in known}
            found += [value for value in plain.values() if value in defaults and defaults[value] is None]
    return found


@pytest.mark.parametrize("role", ALL, ids=lambda p: p.name)
def test_no_module_gets_a_null_where_it_knows_choices(role: Path) -> None:
    _options, defaults = spec_and_defaults(role)
    for path in (role / "tasks").glob("*.yml"):
        assert nulls_for_choices(yaml.safe_load(path.read_text()) or [], defaults) == []


def test_the_gate_sees_a_null() -> None:
    task = {"gpufabric.rdma.sriov_vfs": {"link_state": "{{ sriov_link_state }}", "mtu": "{{ sriov_mtu }}"}}
    assert nulls_for_choices([task], {"sriov_link_state": None, "sriov_mtu": None}) == ["sriov_link_state"]


def shape(option: dict[str, Any], parts: str) -> Any:
    """What an option allows: its choices without null, and those of its suboptions, which ``parts`` has."""
    choices = [choice for choice in option.get("choices", ()) if choice is not None]
    return choices, {name: shape(one, parts) for name, one in option.get(parts, {}).items()}


def looser(tasks: list[dict[str, Any]], inputs: dict[str, Any]) -> list[str]:
    """Inputs that a task hands on as they are, and that do not have the choices and suboptions of the module."""
    found = []
    for name, given in (item for task in tasks for item in task.items()):
        known = module_options(name.rpartition(".")[2]) if name.startswith("gpufabric.rdma.") else {}
        for key, value in given.items() if known and isinstance(given, dict) else ():
            match = re.fullmatch(r"\{\{ (\w+)( \| default\(omit, true\))? \}\}", str(value))
            if match and match[1] in inputs and key in known:
                expected, actual = shape(known[key], "suboptions"), shape(inputs[match[1]], "options")
                found += (
                    [f"{match[1]}: {actual}, expected {expected} as {key}"]
                    if expected not in (actual, ([], {}))
                    else []
                )
    return found


def flat(tasks: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """All tasks, those of blocks too."""
    inner = [flat(task.get(part) or []) for task in tasks for part in ("block", "rescue", "always")]
    return [*tasks, *(task for part in inner for task in part)]


@pytest.mark.parametrize("role", ALL, ids=lambda p: p.name)
def test_an_input_allows_what_the_option_that_gets_it_allows(role: Path) -> None:
    """Inputs of roles are validated before a host is contacted, options of modules only when the role runs."""
    inputs, _defaults = spec_and_defaults(role)
    for path in (role / "tasks").glob("*.yml"):
        assert looser(flat(yaml.safe_load(path.read_text()) or []), inputs) == []


def test_the_gate_sees_an_input_that_allows_more() -> None:
    task = {"gpufabric.rdma.sriov_vfs": {"link_state": "{{ sriov_link_state | default(omit, true) }}"}}
    expected = (["auto", "enable", "disable"], {})
    for choices in (["auto"], []):
        inputs = {"sriov_link_state": {"choices": choices}}
        assert looser([task], inputs) == [f"sriov_link_state: {(choices, {})}, expected {expected} as link_state"]
    assert looser([task], {"sriov_link_state": {"choices": [None, "auto", "enable", "disable"]}}) == []
    only = {"gpufabric.rdma.fabric_judge": {"only": "{{ rdma_validate_only }}"}}
    assert len(looser([only], {"rdma_validate_only": {"options": {"hosts": {}}}})) == 1


@pytest.mark.parametrize(
    "path", sorted(ROLES.glob("*/tasks/*.yml")), ids=lambda path: f"{path.parents[1].name}-{path.stem}"
)
def test_names_of_included_files_are_no_options(path: Path) -> None:
    """Ansible takes a text with an equals sign for options, also inside of a template, and fails when it runs."""
    for task in flat(yaml.safe_load(path.read_text()) or []):
        for key in ("include_tasks", "import_tasks"):
            assert (
                "=" not in str(task.get(f"ansible.builtin.{key}", {}) or "") or "file" in task[f"ansible.builtin.{key}"]
            )
