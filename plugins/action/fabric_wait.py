# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Run the module of the same name, and show what it waits for while it does."""

from __future__ import annotations

from typing import Any

from ansible import constants
from ansible.plugins.action import ActionBase

from ..module_utils._controller import progress_lines


class ActionModule(ActionBase):
    """A module shows nothing before it ends, and a rollout can take an hour."""

    TRANSFERS_FILES = False

    def run(self, tmp: Any = None, task_vars: Any = None) -> dict[str, Any]:
        result: dict[str, Any] = super().run(tmp, task_vars)
        given = self._task.args
        # On another machine, its file cannot be read from here.
        if self._connection.transport != "local" or given.get("progress_file"):
            result.update(self._execute_module(task_vars=task_vars))
            return result
        with progress_lines.reported(constants.DEFAULT_LOCAL_TMP, self._display.display) as path:
            arguments = {**given, "progress_file": path}
            result.update(self._execute_module(module_args=arguments, task_vars=task_vars))
        return result
