# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The process that measures, as it is noted in run.json: whether an unfinished run still goes on."""

from __future__ import annotations

import os
from collections.abc import Mapping
from pathlib import Path
from typing import Any

PROC = Path("/proc")
# Fields of /proc/PID/stat behind the name, which may hold anything: the state, and the start in ticks since the boot.
_STATE, _START = 0, 19


def note(pid: int) -> dict[str, Any]:
    """Return what tells a process from every other one, {} where this cannot be known."""
    try:
        return {"system": _system(), "pid": pid, "start": _fields(pid)[_START]}
    except (OSError, IndexError):
        return {}


def is_running(noted: Any) -> bool | None:
    """Return whether a noted process still runs, None when this cannot be known.

    What another boot, machine or container noted says nothing here.
    """
    try:
        if not isinstance(noted, Mapping) or noted["system"] != _system():
            return None
        fields = _fields(int(noted["pid"]))
        return fields[_START] == noted["start"] and fields[_STATE] not in "ZX"
    except (FileNotFoundError, ProcessLookupError):
        return False
    except (OSError, LookupError, TypeError, ValueError):
        return None


def _system() -> str:
    """Return the boot and the name space in which a number of a process means one process."""
    boot = (PROC / "sys/kernel/random/boot_id").read_text().strip()
    return f"{boot} {os.readlink(PROC / 'self/ns/pid')}"


def _fields(pid: int) -> list[str]:
    return (PROC / str(pid) / "stat").read_text(errors="replace").rpartition(")")[2].split()
