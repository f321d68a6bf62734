"""When rails are configured again after a removal of objects: not where the same run restores the hosts anyway."""

from __future__ import annotations

from typing import Any

import jinja2
import pytest
import yaml
from tests.unit.support.playbook_files import ROOT, plays

NAME = "Compare the rails with the plan"


def condition(book: str) -> str:
    """The condition of the import in a playbook, and of the task in it."""
    (play,) = [play for play in plays(book) if play["name"] == NAME]
    (task,) = play["tasks"]
    (inner,) = yaml.safe_load((ROOT / "playbooks" / task["ansible.builtin.import_tasks"]).read_text())
    return f"({task.get('when', 'true')}) and ({inner['when']})"


def holds(book: str, tags: list[str], skipped: list[str], notes: list[str] | None) -> bool:
    environment = jinja2.Environment()
    environment.filters["intersect"] = lambda one, other: [item for item in one if item in other]
    known: dict[str, Any] = {} if notes is None else {"__nic_cluster_policy_applied": {"notes": notes}}
    text = environment.from_string(f"{{{{ {condition(book)} }}}}")
    return text.render(ansible_run_tags=tags, ansible_skip_tags=skipped, **known) == "True"


@pytest.mark.parametrize(
    ("book", "tags", "skipped", "notes", "expected"),
    [
        ("deploy.yml", ["all"], [], ["it resets the MTU"], True),
        ("deploy.yml", ["all"], [], [], False),
        # The role was left out by a tag.
        ("deploy.yml", ["network_operator"], [], None, False),
        ("teardown.yml", ["teardown_cluster"], [], ["it resets the MTU"], True),
        ("teardown.yml", ["teardown_cluster"], [], [], False),
        ("teardown.yml", ["all"], [], ["it resets the MTU"], False),
        ("teardown.yml", ["teardown_cluster", "teardown_hosts"], [], ["it resets the MTU"], False),
        ("teardown.yml", ["all"], ["teardown_hosts"], ["it resets the MTU"], True),
    ],
)
def test_rails_are_repaired_when_they_stay(
    book: str, tags: list[str], skipped: list[str], notes: list[str] | None, expected: bool
) -> None:
    assert holds(book, tags, skipped, notes) is expected
