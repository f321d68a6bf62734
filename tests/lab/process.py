# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Programs of the lab that go on running after the command that started them.

Each carries a mark in its environment, with the lab's folder and its own name in it. They are found
by that mark alone: no record of a process id can be missing, stale, or hit a stranger's process.
"""

from __future__ import annotations

import contextlib
import os
import signal
import subprocess
import time
from collections.abc import Mapping, Sequence
from pathlib import Path

from tests.lab.errors import LabError
from tests.lab.settings import RUN

_MARK = "GPUFABRIC_LAB_PROCESS"
_STOP_SECONDS = 10.0
_LOG_TAIL = 10


def start(name: str, argv: Sequence[str], *, cwd: Path = RUN, env: Mapping[str, str] | None = None) -> int:
    """Start a program in a session of its own and return its process id.

    What it writes goes to NAME.log in the run folder; `env` is added to the environment.
    Raises LabError when a program of this name runs already.
    """
    if name in running():
        raise LabError(f"{name} runs already (process {running()[name]})")
    marked = {**os.environ, **(env or {}), _MARK: f"{RUN}:{name}"}
    with log_path(name).open("wb") as log:
        child = subprocess.Popen(
            argv,
            cwd=cwd,
            env=marked,
            stdin=subprocess.DEVNULL,
            stdout=log,
            stderr=subprocess.STDOUT,
            start_new_session=True,
        )
    child.returncode = 0  # It is to outlive us: no warning about that when we end.
    _wait_for_mark(name, child.pid)
    return child.pid


def running() -> dict[str, int]:
    """The process id of each program of the lab that runs, by its name; that of the parent where it started others."""
    return {name: pids[0] for name, pids in _families().items()}


def stop(names: Sequence[str]) -> None:
    """End these programs and wait for it; those that do not run are skipped."""
    alive = [pid for name, pids in _families().items() if name in names for pid in pids]
    for number in (signal.SIGTERM, signal.SIGKILL):
        for pid in alive:
            _signal(pid, number)
        alive = _still_alive(alive, _STOP_SECONDS)
        if not alive:
            return
    raise LabError(f"processes {alive} do not end, even when killed")


def kill(name: str) -> None:
    """End a program at once, with no chance to say goodbye."""
    pids = _families().get(name, [])
    for pid in pids:
        _signal(pid, signal.SIGKILL)
    _still_alive(pids, _STOP_SECONDS)


def log_path(name: str) -> Path:
    """The file with what a program wrote since it was last started."""
    return RUN / f"{name}.log"


def log_tail(name: str) -> str:
    """The last lines that a program wrote, for an error message."""
    path = log_path(name)
    lines = path.read_text(errors="replace").splitlines() if path.exists() else []
    return "\n".join(lines[-_LOG_TAIL:])


def _wait_for_mark(name: str, pid: int) -> None:
    """The mark can be read a moment after the start; until then the program looks ended."""
    deadline = time.monotonic() + _STOP_SECONDS
    while _is_alive(pid) and name not in running() and time.monotonic() < deadline:
        time.sleep(0.005)


def _families() -> dict[str, list[int]]:
    """The process ids of each program that runs and of what it started, in the order of their numbers."""
    prefix = f"{_MARK}={RUN}:".encode()
    found: dict[str, list[int]] = {}
    for pid in sorted(int(folder.name) for folder in Path("/proc").iterdir() if folder.name.isdigit()):
        name = _marked_name(Path("/proc", str(pid)), prefix)
        if name:
            found.setdefault(name, []).append(pid)
    return found


def _marked_name(folder: Path, prefix: bytes) -> str:
    try:
        variables = (folder / "environ").read_bytes().split(b"\0")
    except OSError:
        return ""
    for variable in variables:
        if variable.startswith(prefix):
            return variable[len(prefix) :].decode()
    return ""


def _signal(pid: int, number: int) -> None:
    with contextlib.suppress(ProcessLookupError):
        os.kill(pid, number)


def _still_alive(pids: Sequence[int], seconds: float) -> list[int]:
    deadline = time.monotonic() + seconds
    alive = [pid for pid in pids if _is_alive(pid)]
    while alive and time.monotonic() < deadline:
        time.sleep(0.05)
        alive = [pid for pid in alive if _is_alive(pid)]
    return alive


def _is_alive(pid: int) -> bool:
    """Whether it runs; one that ended and waits for its parent does not."""
    try:
        state = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0]
    except OSError:
        return False
    return state not in ("Z", "X")
