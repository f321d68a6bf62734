# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Records what a playbook run executed: one row a task and host, written as JSON when the run ends."""

from __future__ import annotations

import functools
import json
import os
import resource
import time
from pathlib import Path

from ansible.plugins.action import ActionBase
from ansible.plugins.callback import CallbackBase

DOCUMENTATION = """
name: record
type: notification
short_description: Record each task result of a run for the tests
description: Writes one row a task and host, and each execution of a module, to the file named by RECORD_TASKS.
"""

# Actions that run on the controller alone and cost no module execution on a host.
CONTROLLER_ACTIONS = {
    "add_host",
    "assert",
    "debug",
    "fail",
    "group_by",
    "include_role",
    "include_tasks",
    "import_role",
    "include_vars",
    "meta",
    "pause",
    "report_folder",
    "role_options",
    "run_scope",
    "set_fact",
    "set_stats",
    "validate_argument_spec",
}


def spent_by_children() -> float:
    """Return the processor time, in seconds, of the children of this process that have ended."""
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return used.ru_utime + used.ru_stime


def log_executions(path):  # type: ignore[no-untyped-def]
    """Have `HOST MODULE SECONDS` written for each module that is sent to a host.

    The seconds are the processor time of the processes that the execution started here: on a local connection that is
    the module itself from its start to its end, over ssh the client.

    A task can be several: one an item of its loop, and `copy` looks at the file before it writes it. The processes that
    do it are forked from this one, so they have the changed method too.
    """
    execute = ActionBase._execute_module

    @functools.wraps(execute)
    def logged(self, module_name=None, *args, **kwargs):  # type: ignore[no-untyped-def]
        on = self._task.delegate_to or (kwargs.get("task_vars") or {}).get("inventory_hostname", "?")
        before = spent_by_children()
        try:
            return execute(self, module_name, *args, **kwargs)
        finally:
            with open(path, "a", encoding="utf-8") as file:
                file.write(f"{on} {module_name or self._task.action} {spent_by_children() - before:.6f}\n")

    ActionBase._execute_module = logged


class CallbackModule(CallbackBase):
    """Writes rows {host, on, task, action, module, changed, failed, skipped, unreachable, seconds}."""

    CALLBACK_VERSION = 2.0
    CALLBACK_TYPE = "notification"
    CALLBACK_NAME = "record"

    def __init__(self) -> None:
        super().__init__()
        self._rows: list[dict] = []
        self._begin: dict[str, float] = {}
        self._path = os.environ.get("RECORD_TASKS")
        if self._path:
            log_executions(f"{self._path}.modules")

    def v2_runner_on_start(self, host, task):  # type: ignore[no-untyped-def]
        self._begin[f"{host.name}/{task._uuid}"] = time.monotonic()

    def _add(self, result, **flags):  # type: ignore[no-untyped-def]
        task, host = result._task, result._host.name
        action = task.action.split(".")[-1]
        begin = self._begin.get(f"{host}/{task._uuid}", time.monotonic())
        delegated = (result._result.get("_ansible_delegated_vars") or {}).get("ansible_delegated_host")
        self._rows.append(
            {
                "host": host,
                "on": delegated or task.delegate_to or host,
                "task": task.get_name(),
                "action": action,
                "module": action not in CONTROLLER_ACTIONS and not flags.get("skipped"),
                "changed": bool(result._result.get("changed")),
                "seconds": round(time.monotonic() - begin, 3),
                **flags,
            }
        )

    def v2_runner_on_ok(self, result):  # type: ignore[no-untyped-def]
        self._add(result)

    def v2_runner_on_failed(self, result, ignore_errors=False):  # type: ignore[no-untyped-def]
        self._add(result, failed=not ignore_errors)

    def v2_runner_on_unreachable(self, result):  # type: ignore[no-untyped-def]
        self._add(result, unreachable=True)

    def v2_runner_on_skipped(self, result):  # type: ignore[no-untyped-def]
        self._add(result, skipped=True)

    def v2_playbook_on_stats(self, stats):  # type: ignore[no-untyped-def]
        if self._path:
            log = Path(f"{self._path}.modules")
            executed = [line.split() for line in log.read_text().splitlines()] if log.exists() else []
            recap = {host: stats.summarize(host) for host in stats.processed}
            with open(self._path, "w", encoding="utf-8") as file:
                json.dump({"tasks": self._rows, "hosts": recap, "executed": executed}, file)
