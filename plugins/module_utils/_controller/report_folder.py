# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The folder of the current report, and of the runs before it."""

from __future__ import annotations

import contextlib
import itertools
import json
import os
import re
from collections.abc import Mapping, Sequence
from typing import Any

from .._common.errors import InputError
from .._fabric.measure.readings import frames
from .._fabric.measure.schedule import mesh
from .._fabric.report import formats, kept, runs
from .._fabric.report.summary import SCHEMA
from . import process

# The report holds addresses, so it is for the owner and the group.
MODE = 0o640
PAGE = "report.html"
# Bytes at the end of a log, with its last lines.
_END = 1024
# Bytes at the start of a report, whose first key is its schema: the whole of it may be large.
_HEAD = 4096
_SCHEMA = re.compile(rb'"schema"\s*:\s*"(gpufabric\.rdma/report/[^"]*)"')


def read(path: str) -> dict[str, Any]:
    """Return what a JSON file holds, {} when there is none or it holds something else."""
    try:
        with open(path, encoding="utf-8") as file:
            found = json.load(file)
    except (OSError, ValueError, RecursionError):
        return {}
    return found if isinstance(found, dict) else {}


def real(path: str | None) -> str:
    """Return a path by which two names of one file are the same."""
    return os.path.realpath(os.path.expanduser(path)) if path else ""


def standing(resumed: str | None) -> str:
    """Return the path of the report of a run that was resumed, "" when it has none."""
    path = os.path.join(resumed, "report.json") if resumed and os.path.isdir(resumed) else resumed or ""
    return path if os.path.isfile(path) else ""


def is_unknown(path: str) -> bool:
    """Whether a folder holds a report that records no run, and nothing that this collection did not write."""
    if not runs.UNKNOWN.fullmatch(os.path.basename(path)) or set(os.listdir(path)) - set(formats.files()):
        return False
    return read(os.path.join(path, "report.json")).get("schema") == SCHEMA


def is_other_version(path: str) -> bool:
    """Whether a folder holds a report that another version of this collection wrote."""
    try:
        with open(os.path.join(path, "report.json"), "rb") as file:
            found = _SCHEMA.search(file.read(_HEAD))
    except OSError:
        return False
    return found is not None and found[1] != SCHEMA.encode()


def read_run(path: str, own: Mapping[str, Any]) -> kept.Known:
    """Return what the folder of a run tells. ``own``: this process, which measures one thing after the other."""
    about = read(os.path.join(path, "run.json"))
    earlier, scope = (about.get(key) for key in ("earlier", "scope"))
    resumed = earlier.get("resume") if isinstance(earlier, Mapping) else None
    return kept.Known(
        done=os.path.isfile(os.path.join(path, "report.json")),
        resumed=real(resumed) if isinstance(resumed, str) else "",
        passes=any(_has_measured(os.path.join(path, "evidence", place)) for place in runs.PLACES),
        running=False if own and about.get("process") == own else process.is_running(about.get("process")),
        scope=scope if isinstance(scope, Mapping) else {},
    )


def _has_measured(evidence: str) -> bool:
    """Return whether a pass began in a place that was not one of the mesh, which has up to two before all others."""
    passes = (os.path.join(evidence, f"pass-{number}") for number in (1, 2, 3))
    return any(os.path.isdir(path) and not os.path.isfile(os.path.join(path, mesh.MARK)) for path in passes)


def read_runs(place: str, now: str, own: Mapping[str, Any]) -> tuple[dict[str, kept.Known], list[str]]:
    """Return the folders of runs in ``place`` but ``now`` by name, also those of reports that record no run.

    And the names of those whose report another version of this collection wrote: what they hold is not known.
    """
    known, others = {}, []
    for entry in os.scandir(place):
        if not entry.is_dir(follow_symlinks=False) or entry.name == now:
            continue
        if (runs.RUN.fullmatch(entry.name) or runs.UNKNOWN.fullmatch(entry.name)) and is_other_version(entry.path):
            others.append(entry.name)
            continue
        if is_unknown(entry.path):
            known[entry.name] = kept.Known(done=True)
        elif runs.RUN.fullmatch(entry.name):
            known[entry.name] = read_run(entry.path, own)
    return known, sorted(others)


def size_of(place: str, names: Sequence[str]) -> int:
    """Return the bytes of all files in these folders of ``place``."""
    total = 0
    for name in names:
        for folder, _folders, files in os.walk(os.path.join(place, name)):
            for file in files:
                # Of a run that still goes on files may go.
                with contextlib.suppress(FileNotFoundError):
                    total += os.lstat(os.path.join(folder, file)).st_size
    return total


def check_ended(resumed: str | None, own: Mapping[str, Any]) -> None:
    """Raise InputError when the run that is to be continued is still going on."""
    folder = real(resumed)
    found = read_run(folder, own) if folder else kept.Known(True)
    if found.running and not found.done:
        raise InputError(kept.going_on(folder))


def leftover(folder: str, plan: Mapping[str, Any], own: Mapping[str, Any]) -> dict[str, Any]:
    """Return which logs of an unfinished run may still be on the hosts; {} when the folder is not one of such a run.

    Only its last pass: what was to be played after a pass follows from what came back from it.
    """
    name = os.path.basename(folder)
    known = read_run(folder, own)
    if not runs.RUN.fullmatch(name) or known.done or known.running:
        return {}
    place = os.path.join(folder, "evidence", "host")
    last = next(number for number in itertools.count() if not os.path.isdir(os.path.join(place, f"pass-{number + 1}")))
    played = os.path.join(place, f"pass-{last}")
    hosts = [host for host in plan["endpoints"]["host"] if not _is_whole(os.path.join(played, f"{host}.log"), last)]
    found = {"run": name, "pass": last, "folder": played, "hosts": hosts if last else []}
    return {**found, "ended": known.running is False, "largest": kept.largest_log(plan)}


def _is_whole(path: str, number: int) -> bool:
    """Return whether a log has the mark of the end of its pass."""
    try:
        with open(path, "rb") as file:
            file.seek(max(0, file.seek(0, os.SEEK_END) - _END))
            return f"\n{frames.done(number)}".encode() in file.read()
    except OSError:
        return False


def set_aside(path: str, run: str) -> dict[str, str]:
    """Move the files of a report, unless it is that of ``run``, into the folder of its run; return old path -> new."""
    report, place = read(os.path.join(path, "report.json")), os.path.join(path, "runs")
    if runs.name_of(report) == run:
        return {}
    moved: dict[str, str] = {}
    present = sorted(set(formats.files()).intersection(os.listdir(path)))
    taken = os.listdir(place) if os.path.isdir(place) else []
    for name, target in runs.moves(report, run, present, taken=taken):
        old, new = os.path.join(path, name), os.path.join(path, target)
        os.makedirs(os.path.dirname(new), mode=0o750, exist_ok=True)
        moved.update({real(path): os.path.dirname(new), real(old): new})
        os.replace(old, new)
    return moved
