# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The folder of the current report, and of the runs before it."""

from __future__ import annotations

import json
import os
from typing import Any

from .._fabric.report import runs


def read(path: str) -> dict[str, Any]:
    """Return what a JSON file holds, {} when there is none or it holds something else."""
    try:
        with open(path, encoding="utf-8") as file:
            found = json.load(file)
    except (OSError, ValueError):
        return {}
    return found if isinstance(found, dict) else {}


def real(path: str | None) -> str:
    """Return a path by which two names of one file are the same."""
    return os.path.realpath(os.path.expanduser(path)) if path else ""


def standing(resumed: str | None) -> str:
    """Return the path of the report of a run that was resumed, "" when it has none."""
    path = os.path.join(resumed, "report.json") if resumed and os.path.isdir(resumed) else resumed or ""
    return path if os.path.isfile(path) else ""


def set_aside(path: str, run: str) -> dict[str, str]:
    """Move the files of a report, unless it is that of ``run``, into the folder of its run; return old path -> new."""
    report, place = read(os.path.join(path, "report.json")), os.path.join(path, "runs")
    if runs.name_of(report) == run:
        return {}
    moved: dict[str, str] = {}
    taken = os.listdir(place) if os.path.isdir(place) else []
    for name, target in runs.moves(report, os.listdir(path), taken):
        old, new = os.path.join(path, name), os.path.join(path, target)
        os.makedirs(os.path.dirname(new), mode=0o750, exist_ok=True)
        moved.update({real(path): os.path.dirname(new), real(old): new})
        os.replace(old, new)
    return moved
