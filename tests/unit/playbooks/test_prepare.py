"""What prepare.yml works out for its roles."""

from __future__ import annotations

import re
from typing import Any

import jinja2
import pytest
import yaml
from jinja2.nativetypes import NativeEnvironment
from tests.tools.environment import REPO


def text_of(role: str, name: str) -> str:
    """Return what a play gives a role for an input, not evaluated yet."""
    plays = yaml.safe_load((REPO / "playbooks" / "prepare.yml").read_text())
    tasks = [task for play in plays for task in play.get("tasks", [])]
    imports = {
        task["ansible.builtin.import_role"]["name"]: task for task in tasks if "ansible.builtin.import_role" in task
    }
    own = imports[f"gpufabric.rdma.{role}"]
    return str(own["vars"][name])


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
    for role, name, nothing in (("sriov", "sriov_vfs", None), ("preflight", "preflight_vfs", 0)):
        text = NativeEnvironment().from_string(text_of(role, name))
        for needed, given, expected in ((None, None, nothing), (8, None, 8), (8, 16, 16), (None, 4, 4), (8, 0, 0)):
            plan = {"profile": {"host_vfs": needed}}
            assert text.render(rdma_plan=plan, __options={"sriov_vfs": given}) == expected


@pytest.mark.parametrize(("makes", "managed"), [(True, ["0000:18:00.0"]), (False, [])])
def test_the_network_model_can_leave_vfs_to_the_operator(makes: bool, managed: list[str]) -> None:
    text = NativeEnvironment().from_string(text_of("sriov", "sriov_operator_managed"))
    plan = {"profile": {"operator_makes_vfs": makes}}
    assert list(text.render(rdma_plan=plan, __rails=[{"pci": "0000:18:00.0"}])) == managed


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
    books = [yaml.safe_load((REPO / "playbooks" / name).read_text()) for name in ("prepare.yml", "teardown.yml")]
    plays = [play for book in books for play in book if play.get("become")]
    assert len(plays) == 3
    assert {jinja2.Template(play["hosts"]).render(groups=groups) for play in plays} == {pattern}
