# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Check that a run has hosts of the fabric and something to do, before any of its plays selects hosts or tasks."""

from __future__ import annotations

import copy
from collections.abc import Collection, Iterator
from pathlib import Path
from typing import Any

from ansible import constants as C
from ansible import context
from ansible.playbook import Playbook
from ansible.playbook.block import Block
from ansible.plugins.action import ActionBase
from ansible.utils.collection_loader._collection_finder import _get_collection_playbook_path

from ..module_utils._fabric.intent import request

COLLECTION = Path(__file__).resolve().parents[2]
DEFAULT_GROUP = "rdma_hosts"
# What stands for the hosts of the fabric where the inventory has none.
RECORDED = ("rdma_facts_dir", "rdma_cluster_file", "rdma_preset")


class ActionModule(ActionBase):
    """Ansible skips plays without hosts and tasks without a selected tag, and reports success."""

    TRANSFERS_FILES = False
    _requires_connection = False
    _VALID_ARGS: frozenset[str] = frozenset()

    def run(self, tmp: Any = None, task_vars: Any = None) -> dict[str, Any]:
        result: dict[str, Any] = super().run(tmp, task_vars)
        group = self._group()
        name = request.name_problem(group, DEFAULT_GROUP)
        given = [variable for variable in RECORDED if task_vars.get(variable)]
        hosts = [] if name else task_vars["groups"].get(group) or []
        recorded = bool(given) and not name and not hosts
        alone = self._is_plan()
        wrong = request.recorded_problem(group, hosts, given, only_plan=alone) if given and not name else ""
        problems = [name or wrong or ("" if recorded else self._hosts(group, task_vars)), self._tags(task_vars)]
        result.update(changed=False, group=group, recorded=recorded, only_plan=alone)
        if any(problems):
            result.update(failed=True, msg=" ".join(filter(None, problems)))
        return result

    def _group(self) -> Any:
        """Return the group as the plays' ``hosts`` see it: without the variables of any host."""
        play = self._task.get_play()
        variables = self._task.get_variable_manager().get_vars(play=play, include_hostvars=False)
        templar = self._templar.copy_with_new_env(available_variables=variables)
        return templar.template(variables.get("rdma_group", DEFAULT_GROUP))

    def _is_plan(self) -> bool:
        """Return whether the playbook plan is the only one of the command line."""
        found = [(_get_collection_playbook_path(name) or ("", name))[1] for name in context.CLIARGS["args"]]
        return {Path(path).resolve() for path in found} == {(COLLECTION / "playbooks" / "plan.yml").resolve()}

    def _hosts(self, group: str, task_vars: Any) -> str:
        groups, play = task_vars["groups"], task_vars["ansible_play_hosts_all"]
        planned = "__rdma_planned" in task_vars["hostvars"].get("localhost", {})
        problem = request.reserved_problem(groups, planned=planned)
        problem = problem or request.inventory_problem(group, dict(self._values(groups.get(group) or play)))
        problem = problem or request.group_problem(group, groups, play, limit=task_vars.get("ansible_limit", ""))
        return problem or request.pattern_problem(group, groups[group], self._selected(group))

    def _values(self, hosts: Collection[str]) -> Iterator[tuple[str, Any]]:
        """Yield the hosts for which the inventory itself sets the group, and how."""
        manager = self._task.get_variable_manager()
        # An extra variable hides the value of the inventory.
        inventory = copy.copy(manager)
        inventory._extra_vars = {name: value for name, value in manager.extra_vars.items() if name != "rdma_group"}
        for name in hosts:
            host = manager._inventory.get_host(name)
            variables = inventory.get_vars(host=host, include_hostvars=False) if host else {}
            if "rdma_group" in variables:
                templar = self._templar.copy_with_new_env(available_variables=variables)
                yield name, templar.template(variables["rdma_group"])

    def _selected(self, pattern: str) -> list[str]:
        """Return the hosts that Ansible selects for a play on this pattern, whatever the limit is."""
        inventory = self._task.get_variable_manager()._inventory
        hosts = inventory.get_hosts(pattern, ignore_limits=True, ignore_restrictions=True)
        return [host.name for host in hosts]

    def _tags(self, task_vars: Any) -> str:
        only, skip = task_vars["ansible_run_tags"], task_vars["ansible_skip_tags"]
        if list(only) == ["all"] and not skip:
            return ""
        return request.tag_problem(only, skip, self._tasks())

    def _tasks(self) -> list[request.Work]:
        """Return the tasks of the playbooks of the command line, whoever wrote them."""
        found = []
        for name in context.CLIARGS["args"]:
            resource = _get_collection_playbook_path(name)
            path = resource[1] if resource else name
            book = Playbook.load(path, variable_manager=self._task.get_variable_manager(), loader=self._loader)
            for play in book.get_plays():
                for block in play.compile():
                    found += tasks_of(block)
        return found


def tasks_of(block: Block) -> list[request.Work]:
    """Return the tasks of a block, without those that Ansible adds by itself."""
    found = []
    for part in (*block.block, *block.rescue, *block.always):
        if isinstance(part, Block):
            found += tasks_of(part)
        elif not part.implicit:
            tags = frozenset(map(str, part.tags))
            ours = Path(part.get_path().rsplit(":", 1)[0]).resolve().is_relative_to(COLLECTION)
            hidden = not ours and (part.action in C._ACTION_ALL_INCLUDES or any("{{" in tag for tag in tags))
            found.append(request.Work(tags, ours, hidden))
    return found
