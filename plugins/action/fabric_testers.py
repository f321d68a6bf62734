# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Run the module of the same name, and show the progress of a pass while it plays one."""

from __future__ import annotations

import contextlib
from typing import Any

from ansible.plugins.action import ActionBase

from ..module_utils._controller import progress_lines
from ..module_utils._fabric.measure.schedule.progress import Progress


class ActionModule(ActionBase):
    """A module shows nothing before it ends, and a pass can take hours."""

    TRANSFERS_FILES = False

    def run(self, tmp: Any = None, task_vars: Any = None) -> dict[str, Any]:
        result: dict[str, Any] = super().run(tmp, task_vars)
        with self._shown():
            result.update(self._execute_module(task_vars=task_vars))
        return result

    def _shown(self) -> Any:
        given = self._task.args
        if given.get("state") != "played" or not given.get("rounds") or self._task.check_mode:
            return contextlib.nullcontext()
        number, rounds, slot = (int(given[name]) for name in ("pass", "rounds", "slot"))
        progress = Progress("pods", number, rounds, slot, given.get("verdicts") or {})
        begin = progress_lines.clock() + int(given.get("start_in") or 0)
        return progress_lines.shown(progress_lines.Lines(progress, begin, self._display.display))
