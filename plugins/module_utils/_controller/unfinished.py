# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Runs that ended before they wrote a report: which one is meant, and what its folder tells."""

from __future__ import annotations

import os
from collections.abc import Mapping
from typing import Any

from .._common.errors import InputError
from .._common.reader import some
from .._fabric.report import kept, runs
from .report_folder import read, read_runs

# In the folder of its run, so that the run can still be continued.
SO_FAR = "so_far"
_INTERRUPTED = "the run was interrupted"


def reopen(place: str, wanted: str, own: Mapping[str, Any]) -> dict[str, Any]:
    """Return what a run without a report was to measure.

    That is {run, folder, report, started, ended, earlier, scope, hosts, plan}. ``place``: the folder of runs;
    ``wanted``: the id of a run, "" for the newest that measured something; ``own``: this process. ``report`` is the
    folder for the report of what it measured, ``ended`` when its last evidence came. Raises InputError.
    """
    known = read_runs(place, "", own)[0] if os.path.isdir(place) else {}
    name = wanted or _newest(place, known)
    if name not in known:
        raise InputError(f"run: {name} is not a run in {place}. The runs there: {some(sorted(known)) or 'none'}")
    folder = os.path.join(place, name)
    if known[name].done:
        raise InputError(f"run: {name} has a report: {os.path.join(folder, 'report.html')}. Read it there")
    if known[name].running:
        raise InputError(f"run: {name} is still in progress. Wait until it ends and writes its report")
    about, plan = (read(os.path.join(folder, file)) for file in ("run.json", "plan.json"))
    try:
        found = {"run": name, "started": int(about["run"]["started"]), "earlier": dict(about["earlier"]), "plan": plan}
        scope = {**about["scope"], "subset": [*about["scope"]["subset"], _INTERRUPTED]}
        found.update({"scope": scope, "hosts": dict(about["hosts"])})
        if not plan["endpoints"] or not scope["where"]:
            raise ValueError
    except (KeyError, TypeError, ValueError) as error:
        raise InputError(
            f"run: {folder} cannot be judged: run.json or plan.json is missing or damaged. Measure again"
        ) from error
    return {**found, "folder": folder, "report": os.path.join(folder, SO_FAR), "ended": _ended(folder)}


def _ended(folder: str) -> int:
    """Return when the last evidence of a run was written, in seconds since 1970."""
    paths = (os.path.join(top, name) for top, _folders, files in os.walk(folder) for name in files)
    return int(max(os.lstat(path).st_mtime for path in paths if f"{os.sep}{SO_FAR}{os.sep}" not in path))


def _newest(place: str, known: Mapping[str, kept.Known]) -> str:
    """Return the newest run that measured something and has no report."""
    found = [name for name in sorted(known) if runs.RUN.fullmatch(name) and known[name].passes and not known[name].done]
    if not found:
        raise InputError(
            f"run: no run in {place} measured something and has no report. Runs that ended have one in their folder"
        )
    return found[-1]
