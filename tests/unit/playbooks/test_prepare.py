"""What prepare.yml works out for its roles."""

from __future__ import annotations

import re
from typing import Any

import jinja2
import pytest
import yaml
from jinja2.nativetypes import NativeEnvironment
from tests.tools.environment import REPO

from ansible_collections.gpufabric.rdma.plugins.module_utils._host.preflight import roles_io


def text_of(role: str, name: str) -> str:
    """Return what a play gives a role for an input, not evaluated yet."""
    plays = yaml.safe_load((REPO / "playbooks" / "prepare.yml").read_text())
    tasks = [task for play in plays for task in play.get("tasks", [])]
    imports = {
        task["ansible.builtin.import_role"]["name"]: task for task in tasks if "ansible.builtin.import_role" in task
    }
    own = imports[f"gpufabric.rdma.{role}"]
    return str(own["vars"][name])


def variables_of(name: str) -> list[str]:
    """Return a variable of the plays, not evaluated yet, of each play that has it."""
    plays = yaml.safe_load((REPO / "playbooks" / "prepare.yml").read_text())
    return [play["vars"][name] for play in plays if name in play.get("vars", {})]


def of_preflight(name: str, variables: dict[str, Any]) -> str:
    """Return what the play gives preflight for an input, from these variables of a user."""
    defaults = yaml.safe_load((REPO / "roles/host_kernel/defaults/main.yml").read_text())
    return jinja2.Environment().from_string(text_of("preflight", name)).render(__options={**defaults, **variables})


@pytest.mark.parametrize(
    ("variables", "asked"),
    [
        ({}, "False"),
        ({"host_kernel_arguments": ["quiet"]}, "True"),
        ({"host_kernel_arguments_absent": ["quiet"]}, "True"),
        ({"host_kernel_iommu": "passthrough"}, "True"),
        ({"host_kernel_iommu": "none"}, "False"),
        ({"host_kernel_hugepages": [{"size": "2M", "count": 1, "at": "boot"}]}, "True"),
        ({"host_kernel_hugepages": [{"size": "2M", "count": 1}, {"size": "1G", "count": 1, "at": "now"}]}, "False"),
        ({"host_kernel_arguments": ["quiet"], "host_kernel_state": "absent"}, "False"),
        ({"host_kernel_iommu": "passthrough", "host_kernel_state": "absent"}, "False"),
    ],
)
def test_a_boot_loader_is_needed_only_where_arguments_are_set(variables: dict[str, Any], asked: str) -> None:
    assert of_preflight("preflight_kernel_arguments", variables) == asked


def test_the_network_model_can_need_vfs_of_the_host() -> None:
    """The user's own number counts first."""
    assert (text_of("sriov", "sriov_vfs"), text_of("preflight", "preflight_vfs")) == ("{{ __vfs }}", "{{ __vfs or 0 }}")
    (text,) = {*variables_of("__vfs")}
    for needed, given, expected in ((None, None, None), (8, None, 8), (8, 16, 16), (None, 4, 4), (8, 0, 0)):
        plan = {"hosts": {"a": {"profile": {"host_vfs": needed}}}}
        known = {"rdma_plan": plan, "inventory_hostname": "a", "__options": {"sriov_vfs": given}}
        found = NativeEnvironment().from_string(text).render(**known)
        assert found == expected


@pytest.mark.parametrize(("makes", "managed"), [(True, ["0000:18:00.0"]), (False, [])])
def test_the_network_model_can_leave_vfs_to_the_operator(makes: bool, managed: list[str]) -> None:
    assert text_of("sriov", "sriov_operator_managed") == "{{ __operator_managed }}"
    (text,) = {*variables_of("__operator_managed")}
    plan = {"hosts": {"a": {"profile": {"operator_makes_vfs": makes}}}}
    known = {"rdma_plan": plan, "inventory_hostname": "a", "__rails": [{"pci": "0000:18:00.0"}]}
    assert list(NativeEnvironment().from_string(text).render(**known)) == managed


def test_options_are_read_once_for_all_that_plays_take_of_them() -> None:
    """Each reading costs the controller; a host keeps what was registered for the plays that follow."""
    text = (REPO / "playbooks" / "prepare.yml").read_text()
    tasks = [task for play in yaml.safe_load(text) for task in play.get("tasks", [])]
    (read,) = [task["gpufabric.rdma.role_options"] for task in tasks if "gpufabric.rdma.role_options" in task]
    defaults = [yaml.safe_load((REPO / "roles" / role / "defaults/main.yml").read_text()) for role in read["effective"]]
    used = set(re.findall(r"__options\.(\w+)", text))
    assert used and used <= {name for options in defaults for name in options}


@pytest.mark.parametrize(
    ("groups", "pattern"), [((), "rdma_hosts"), (("rdma_absent",), "rdma_hosts:!rdma_absent")], ids=["none", "some"]
)
def test_plays_that_change_hosts_leave_out_those_that_are_not_reachable(groups: tuple[str, ...], pattern: str) -> None:
    books = [
        yaml.safe_load((REPO / "playbooks" / name).read_text())
        for name in ("prepare.yml", "deploy.yml", "teardown.yml")
    ]
    plays = [play for book in books for play in book if play.get("become")]
    assert len(plays) == 5
    assert {jinja2.Template(play["hosts"]).render(groups=groups) for play in plays} == {pattern}


def test_preflight_gets_what_the_roles_get() -> None:
    """The inputs that a play gives a role, and not a user, are the same for preflight."""
    text = text_of("preflight", "preflight_roles")
    given = {
        "__options": {"nic_firmware_settings": {"NUM_OF_VFS": 16}, "rdma_stack_provider": "inbox", "sriov_vfs": None},
        "__vfs": 8, "__operator_managed": ["0000:18:00.0"],
    }  # fmt: skip
    environment = NativeEnvironment()
    environment.filters["combine"] = lambda first, second: {**first, **second}
    found = environment.from_string(text).render(**given)
    assert {name: found[name] for name in ("sriov_vfs", "sriov_operator_managed", "rdma_stack_doca_key")} == {
        "sriov_vfs": 8, "sriov_operator_managed": ["0000:18:00.0"], "rdma_stack_doca_key": "",
    }  # fmt: skip
    own = environment.from_string(text_of("sriov", "sriov_firmware_vfs")).render(**given)
    assert found["sriov_firmware_vfs"] == own == 16


def test_the_key_of_doca_is_read_as_the_role_reads_it() -> None:
    (text,) = variables_of("__doca_key")
    role = yaml.safe_load((REPO / "roles/rdma_stack/vars/main.yml").read_text())["__rdma_stack_doca"]["key"]
    assert "".join(text.replace("__options.", "").split()) == "".join(role.split())


def test_the_inputs_of_a_role_are_the_options_of_its_modules() -> None:
    """preflight makes the options of a module of the inputs of its role, as the task of the role does."""
    for topic in roles_io.TOPICS:
        tasks = [
            task for path in (REPO / "roles" / topic.role / "tasks").glob("*.yml")
            for task in yaml.safe_load(path.read_text())
        ]  # fmt: skip
        options = next(task[name] for task in tasks for name in [f"gpufabric.rdma.{topic.name}"] if name in task)
        named = {key: re.findall(rf"{topic.role}_\w+", str(value)) for key, value in options.items()}
        expected = {key: [topic.inputs.get(key, f"{topic.role}_{key}")] for key in options}
        expected.pop("doca", None)
        assert {key: named[key][:1] for key in expected} == expected, topic.name
        assert {*options} <= {*topic.arguments}, topic.name


def test_preflight_plans_every_module_that_changes_a_host() -> None:
    """pcie_acs has checks of its own, and reboot_reasons changes nothing by itself."""
    plays = "".join((REPO / "playbooks" / name).read_text() for name in ("prepare.yml", "tasks/configure.yml"))
    texts = [
        path.read_text()
        for role in re.findall(r"name: gpufabric\.rdma\.(\w+)", plays)
        for path in (REPO / "roles" / role / "tasks").glob("*.yml")
    ]
    used = {name for text in texts for name in re.findall(r"^ *gpufabric\.rdma\.(\w+):$", text, re.MULTILINE)}
    assert used - {"pcie_acs", "preflight"} == {topic.name for topic in roles_io.TOPICS}
