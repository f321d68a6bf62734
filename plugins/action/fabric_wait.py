# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Run the module of the same name, and show what it waits for while it does."""

from __future__ import annotations

from typing import Any

from ansible import constants
from ansible.plugins.action import ActionBase

from ..plugin_utils import waiting


class ActionModule(ActionBase):
    """A module shows nothing before it ends, and a rollout can take an hour."""

    TRANSFERS_FILES = False

    def run(self, tmp: Any = None, task_vars: Any = None) -> dict[str, Any]:
        result: dict[str, Any] = super().run(tmp, task_vars)
        result.update(waiting.run_module(self, constants.DEFAULT_LOCAL_TMP, task_vars))
        return result
