"""When rails are configured again after a removal of objects: not where the same run restores the hosts anyway."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import jinja2.nativetypes
import pytest
import yaml
from tests.unit.support.playbook_files import ROOT, plays

NAME = "Compare the rails with the plan"
FILTERS: dict[str, Callable[..., Any]] = {
    "intersect": lambda one, other: [item for item in one if item in other],
    "difference": lambda one, other: (lambda found: [item for item in one if item not in found])(list(other)),
    "zip": lambda one, *others: list(zip(one, *others)),
}
RAILS = [{"pci": "0000:18:00.0", "mtu": 9000}, {"pci": "0000:19:00.0", "mtu": 9000}]
# The run before has failed between the removal and the repair.
RESET = {"pci": "0000:19:00.0", "mtu": 1500, "configured": {"rail": "rail1"}}


def holds(book: str, **known: Any) -> bool:
    """Whether the task in the import of a playbook runs, by the conditions of both."""
    environment = jinja2.nativetypes.NativeEnvironment()
    environment.filters.update(FILTERS)
    (play,) = [play for play in plays(book) if play["name"] == NAME]
    (task,) = play["tasks"]
    (inner,) = yaml.safe_load((ROOT / "playbooks" / task["ansible.builtin.import_tasks"]).read_text())
    for name, text in inner["vars"].items():
        known[name] = environment.from_string(str(text)).render(**known)
    return all(
        environment.from_string(f"{{{{ {one} }}}}").render(**known) for one in (task.get("when", "true"), inner["when"])
    )


def facts(*ports: dict[str, Any]) -> dict[str, Any]:
    """A host whose rails are as planned, except for these ports."""
    own = {one["pci"]: {**one, "configured": {"rail": "any"}} for one in RAILS}
    found = list({**own, **{one["pci"]: one for one in ports}}.values())
    plan = {"hosts": {"gpu-0001": {"rails": RAILS}}}
    return {"inventory_hostname": "gpu-0001", "rdma_plan": plan, "ansible_facts": {"rdma": {"ports": found}}}


def noted(*notes: str) -> dict[str, Any]:
    return {"__nic_cluster_policy_applied": {"notes": list(notes)}}


@pytest.mark.parametrize(
    ("book", "tags", "skipped", "known", "expected"),
    [
        ("deploy.yml", ["all"], [], noted("it resets the MTU"), True),
        ("deploy.yml", ["all"], [], noted(), False),
        # The role was left out by a tag.
        ("deploy.yml", ["network_operator"], [], {}, False),
        ("teardown.yml", ["teardown_cluster"], [], noted("it resets the MTU"), True),
        ("teardown.yml", ["teardown_cluster"], [], noted(), False),
        ("teardown.yml", ["all"], [], noted("it resets the MTU"), False),
        ("teardown.yml", ["teardown_cluster", "teardown_hosts"], [], noted("it resets the MTU"), False),
        ("teardown.yml", ["all"], ["teardown_hosts"], noted("it resets the MTU"), True),
        # What an earlier run did not come to.
        ("deploy.yml", ["all"], [], {**noted(), **facts(RESET)}, True),
        ("deploy.yml", ["nic_cluster_policy"], [], {**noted(), **facts(RESET)}, True),
        ("teardown.yml", ["teardown_cluster"], [], {**noted(), **facts(RESET)}, True),
        ("teardown.yml", ["all"], [], {**noted(), **facts(RESET)}, False),
        # Ports that the role has not configured, or that the plan does not contain.
        ("deploy.yml", ["all"], [], {**noted(), **facts({**RESET, "configured": None})}, False),
        ("deploy.yml", ["all"], [], {**noted(), **facts({**RESET, "pci": "0000:20:00.0"})}, False),
        # The playbook site has configured the rails after it had read them.
        ("deploy.yml", ["all"], [], {**noted(), **facts(RESET), "__rail_links_result": {"changed": True}}, False),
    ],
)
def test_rails_are_repaired_when_they_stay(
    book: str, tags: list[str], skipped: list[str], known: dict[str, Any], expected: bool
) -> None:
    assert holds(book, **{**facts(), **known, "ansible_run_tags": tags, "ansible_skip_tags": skipped}) is expected
