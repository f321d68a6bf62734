"""The playbooks keep the order that one reboot for all reasons needs, and the batches that the role documents."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import jinja2
import pytest
import yaml
from tests.unit.support.playbook_files import ROOT, plays

# Reboots come after whatever can ask for one, and before whatever needs what the boot brings.
ORDER = (
    "preflight",
    "host_kernel",
    "nic_firmware",
    "rail_names",
    "rdma_stack",
    "host_reboot",
    "sriov",
    "rail_links",
    "pcie_acs",
    "peer_memory",
)


def roles(play: dict[str, Any]) -> list[str]:
    """The roles of a play in their order, those of imported task files too."""
    found = [entry["role"] for entry in play.get("roles", [])]
    tasks = list(play.get("tasks", []))
    while tasks:
        task = tasks.pop(0)
        tasks = [*task.get("block", []), *tasks]
        if "ansible.builtin.import_role" in task:
            found.append(task["ansible.builtin.import_role"]["name"])
        path = task.get("ansible.builtin.import_tasks")
        tasks = [*(yaml.safe_load((ROOT / "playbooks" / path).read_text()) if path else []), *tasks]
    return [name.rsplit(".", 1)[-1] for name in found]


def test_prepare_runs_its_roles_in_the_agreed_order() -> None:
    found = list(dict.fromkeys(name for play in plays("prepare.yml") for name in roles(play)))
    assert found == [name for name in ORDER if name in found]


def test_teardown_takes_them_back_in_reverse() -> None:
    (play,) = [play for play in plays("teardown.yml") if play["name"] == "Restore the hosts"]
    found = roles(play)
    assert found == [name for name in reversed(ORDER) if name in found]


@pytest.mark.parametrize(
    ("name", "path"),
    [
        ("prepare.yml", "tasks/configure.yml"),
        ("teardown.yml", "tasks/restore.yml"),
    ],
)
def test_what_can_ask_for_a_reboot_judges_again_after_it(name: str, path: str) -> None:
    tasks = [{"ansible.builtin.import_tasks": path}]
    assert set(roles({"tasks": tasks})) == {"host_kernel", "nic_firmware", "rail_names", "rdma_stack"}
    playbook = yaml.safe_load((ROOT / "playbooks" / name).read_text())
    assert path in [task.get("ansible.builtin.import_tasks") for play in playbook for task in play.get("tasks", [])]
    (reboot,) = [play for play in playbook if play.get("ansible.builtin.import_playbook") == "reboot.yml"]
    assert reboot["vars"]["__reboot_then"] == path


@pytest.mark.parametrize(
    ("keyword", "name"), [("serial", "host_reboot_batch"), ("max_fail_percentage", "host_reboot_max_fail_percentage")]
)
def test_batches_are_those_that_the_role_documents(keyword: str, name: str) -> None:
    defaults = yaml.safe_load((ROOT / "roles/host_reboot/defaults/main.yml").read_text())
    (play,) = [play for play in plays("reboot.yml") if "serial" in play]
    assert f"__batches.{name} " in play[keyword] and name in defaults
    reads = [
        task for other in plays("reboot.yml") for task in other["tasks"] if task.get("register") == "__reboot_options"
    ]
    (read,) = [task["gpufabric.rdma.role_options"] for task in reads]
    assert read["effective"] == ["host_reboot"] and read["hosts"].endswith("[:1] }}")


def test_only_one_task_reboots() -> None:
    texts = [path for folder in ("roles", "playbooks") for path in (ROOT / folder).rglob("*.yml")]
    assert [path.parts[-3] for path in texts if "ansible.builtin.reboot:" in path.read_text()] == ["host_reboot"]


def tagged(name: str) -> set[str]:
    """The tags of roles in a playbook, also of those that its task files bring in."""
    found: set[str] = set()
    for play in plays(name):
        tasks = [*play.get("roles", []), *play.get("tasks", [])]
        while tasks:
            task = tasks.pop()
            path = task.get("ansible.builtin.import_tasks")
            tasks += task.get("block", [])
            tasks += yaml.safe_load((ROOT / "playbooks" / path).read_text()) if path else []
            if "role" in task or "ansible.builtin.import_role" in task:
                found |= {*task.get("tags", []), *play.get("tags", [])}
    return found


def test_each_role_can_be_asked_for_by_its_tag() -> None:
    assert set(ORDER) - tagged("prepare.yml") == set()


def always_printing(tasks: list[dict[str, Any]]) -> list[str]:
    """Tasks that print on every host, whatever there is to say."""
    return [task["name"] for task in tasks if "ansible.builtin.debug" in task and "when" not in task]


@pytest.mark.parametrize("role", ORDER)
def test_a_host_without_news_is_quiet(role: str) -> None:
    files = sorted((ROOT / "roles" / role / "tasks").glob("*.yml"))
    assert [name for path in files for name in always_printing(yaml.safe_load(path.read_text()))] == []


def test_the_gate_sees_a_task_that_always_prints() -> None:
    task = {"name": "Say it", "ansible.builtin.debug": {"msg": "x"}}
    assert always_printing([task, {**task, "when": "news"}]) == ["Say it"]


# --- defaults are those of the roles ----------------------------------------------------------------------------


def role_defaults() -> dict[str, Any]:
    found: dict[str, Any] = {}
    for path in (ROOT / "roles").glob("*/defaults/main.yml"):
        found.update(yaml.safe_load(path.read_text()) or {})
    return found


def texts(node: Any) -> Iterator[str]:
    """Every text in a YAML document; conditions are expressions without braces."""
    if isinstance(node, dict):
        for key, value in node.items():
            bare = key in ("when", "that", "until", "failed_when", "changed_when")
            yield from (f"{{{{ {text} }}}}" if bare and "{{" not in text else text for text in texts(value))
    elif isinstance(node, list):
        for item in node:
            yield from texts(item)
    elif isinstance(node, str):
        yield node


def repeated_defaults(text: str, options: Mapping[str, Any]) -> list[str]:
    """Options of roles that a template gives a literal default."""
    found = []
    for node in jinja2.Environment().parse(text).find_all(jinja2.nodes.Filter):
        of = node.node
        name = getattr(of, "name", None) or getattr(of, "attr", None)
        literal = node.args and isinstance(node.args[0], jinja2.nodes.Literal)
        if node.name in ("default", "d") and name in options and (literal or not node.args):
            found.append(name)
    return found


@pytest.mark.parametrize("path", sorted((ROOT / "playbooks").rglob("*.yml")), ids=lambda path: path.name)
def test_no_playbook_repeats_the_default_of_a_role(path: Path) -> None:
    options = role_defaults()
    document = yaml.safe_load(path.read_text())
    assert [name for text in texts(document) for name in repeated_defaults(text, options)] == []


def test_the_gate_sees_a_default_that_is_repeated() -> None:
    options = role_defaults()
    task = {
        "when": ["rdma_validate_when | default('always') != 'never'"],
        "vars": {
            "vfs": "{{ (sriov_vfs | default(0, true)) + 1 }}",
            "batch": "{{ hostvars['x'].host_reboot_batch | default(1) }}",
            "state": "{{ host_kernel_state | default }}",
            # The default of a module, another variable, and a value that is no literal.
            "fine": "{{ rdma_validate_namespace | default(omit, true) }} {{ rdma_disrupt_users | default(false) }}",
        },
    }
    found = [name for text in texts(task) for name in repeated_defaults(text, options)]
    assert found == ["rdma_validate_when", "sriov_vfs", "host_reboot_batch", "host_kernel_state"]


def test_values_that_several_roles_need_are_read_whatever_the_tags_are() -> None:
    """A role that is selected by its tag runs without the steps before it that have other tags."""
    faults = []
    for path in sorted((ROOT / "playbooks").glob("*.yml")):
        for play in yaml.safe_load(path.read_text()):
            tasks = play.get("pre_tasks", []) if play.get("roles") else []
            faults += [task["name"] for task in tasks if "register" in task and "always" not in task.get("tags", [])]
    assert faults == []
