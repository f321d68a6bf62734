# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Run the module of an action plugin, and show what it waits for while it does."""

from __future__ import annotations

from typing import Any

from ..module_utils._controller import progress_lines


def run_module(action: Any, folder: str, task_vars: Any) -> dict[str, Any]:
    """Return the result of the module of an action plugin, whose option progress_file says where its line goes.

    ``folder``: where private folders of the run are made.
    """
    given = action._task.args
    # On another machine, its file cannot be read from here.
    if action._connection.transport != "local" or given.get("progress_file"):
        return action._execute_module(task_vars=task_vars)
    with progress_lines.reported(folder, action._display.display) as path:
        return action._execute_module(module_args={**given, "progress_file": path}, task_vars=task_vars)
