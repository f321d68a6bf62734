# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Check on the controller that the folder of the report can be written, before anything is changed."""

from __future__ import annotations

import getpass
import os
from pathlib import Path
from typing import Any

from ansible.plugins.action import ActionBase

from ..module_utils._controller import process

COLLECTION = Path(__file__).resolve().parents[2]


class ActionModule(ActionBase):
    """A measurement whose report cannot be written is lost, and in site.yml the hosts are changed by then."""

    TRANSFERS_FILES = False
    _requires_connection = False
    _VALID_ARGS = frozenset({"path"})

    def run(self, tmp: Any = None, task_vars: Any = None) -> dict[str, Any]:
        result: dict[str, Any] = super().run(tmp, task_vars)
        _checked, params = self.validate_argument_spec({"path": {"type": "path", "required": True}})
        found = problem(params["path"], COLLECTION)
        # A task runs in a child of ansible-playbook.
        result.update(changed=False, path=params["path"], process=process.note(os.getppid()))
        if found:
            text = f"The report cannot be written to {params['path'] or 'an empty path'}: {found}"
            result.update(failed=True, msg=f"{text}. Set rdma_report_dir to another folder.")
        return result


def problem(path: str, collection: Path) -> str:
    """Return why a report cannot be written to this folder, empty when it can. The folder need not exist."""
    folder = Path(path)
    if not folder.is_absolute() or folder == Path("/"):
        return "an absolute path is needed, such as /srv/rdma-report"
    if (collection / "MANIFEST.json").exists() and folder.resolve().is_relative_to(collection):
        return "it lies in the installed collection, and its next upgrade would remove it"
    there = next(place for place in (folder, *folder.parents) if os.path.lexists(place))
    if not there.is_dir():
        return f"{there} is not a folder"
    if not os.access(there, os.W_OK | os.X_OK):
        return f"the user {getpass.getuser()} has no permission to write in {there}"
    return ""
