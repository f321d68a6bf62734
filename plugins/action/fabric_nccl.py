# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Run the module fabric_nccl, and render the page of the report to which it added the collectives."""

from __future__ import annotations

from typing import Any

from ansible.plugins.action import ActionBase

from ..plugin_utils import page


class ActionModule(ActionBase):
    """The data of the page are megabytes for a big fleet, so no callback and no registered variable gets them."""

    TRANSFERS_FILES = False

    def run(self, tmp: Any = None, task_vars: Any = None) -> dict[str, Any]:
        result: dict[str, Any] = super().run(tmp, task_vars)
        result.update(self._execute_module(task_vars=task_vars))
        return page.finish(result)
