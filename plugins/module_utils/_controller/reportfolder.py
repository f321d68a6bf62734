# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The folder of the current report, and of the runs before it."""

from __future__ import annotations

import json
import os
import tempfile
from typing import Any

from .._fabric.report import runs
from .._fabric.report.summary import is_report


def read(path: str) -> dict[str, Any]:
    """Return what a JSON file holds, {} when there is none or it holds something else."""
    try:
        with open(path, encoding="utf-8") as file:
            found = json.load(file)
    except (OSError, ValueError):
        return {}
    return found if isinstance(found, dict) else {}


def write(path: str, text: str, mode: int) -> None:
    """Write a file whole, or leave nothing of it; OSError as the system says. Runs with one folder do not mix."""
    folder, name = os.path.split(path)
    handle, draft = tempfile.mkstemp(dir=folder, prefix=f".{name}.")
    try:
        with os.fdopen(handle, "w", encoding="utf-8") as file:
            file.write(text)
        os.chmod(draft, mode)
        os.replace(draft, path)
    except BaseException:
        os.unlink(draft)
        raise


def real(path: str | None) -> str:
    """Return a path by which two names of one file are the same."""
    return os.path.realpath(os.path.expanduser(path)) if path else ""


def standing(resumed: str | None) -> str:
    """Return the path of the report of a run that was resumed, "" when it has none."""
    path = os.path.join(resumed, "report.json") if resumed and os.path.isdir(resumed) else resumed or ""
    return path if os.path.isfile(path) else ""


def is_unknown(path: str) -> bool:
    """Whether a folder holds a report that records no run, and nothing that this collection did not write."""
    if not runs.UNKNOWN.fullmatch(os.path.basename(path)) or set(os.listdir(path)) - set(runs.FILES):
        return False
    return is_report(read(os.path.join(path, "report.json")))


def set_aside(path: str, run: str) -> dict[str, str]:
    """Move the files of a report, unless it is that of ``run``, into the folder of its run; return old path -> new."""
    report, place = read(os.path.join(path, "report.json")), os.path.join(path, "runs")
    if runs.name_of(report) == run:
        return {}
    moved: dict[str, str] = {}
    taken = os.listdir(place) if os.path.isdir(place) else []
    for name, target in runs.moves(report, run, os.listdir(path), taken):
        old, new = os.path.join(path, name), os.path.join(path, target)
        os.makedirs(os.path.dirname(new), mode=0o750, exist_ok=True)
        moved.update({real(path): os.path.dirname(new), real(old): new})
        os.replace(old, new)
    return moved
