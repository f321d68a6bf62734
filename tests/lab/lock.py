# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""One command at a time: who changes the lab holds its lock until the command ends."""

from __future__ import annotations

import fcntl
import json
import os
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from tests.lab.settings import CACHE

_PATH = CACHE / "lock"


@contextmanager
def held(title: str) -> Iterator[None]:
    """Wait for the lock, saying who has it, and keep it meanwhile.

    The kernel takes it away from a command that dies, so none is ever left behind.
    """
    _PATH.parent.mkdir(parents=True, exist_ok=True)
    with _PATH.open("a+") as file:
        _lock(file.fileno())
        _tell(file.fileno(), {"pid": os.getpid(), "command": title, "since": time.strftime("%H:%M:%S")})
        yield
        _tell(file.fileno(), {})


def holder(path: Path = _PATH) -> str:
    """Who holds the lock, for a human; empty when it does not say."""
    try:
        who = json.loads(path.read_text())
    except (OSError, ValueError):
        return ""
    return f"process {who['pid']} ({who['command']}, since {who['since']})" if who else ""


def _lock(file: int) -> None:
    try:
        fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        who = holder() or "another command"
        print(f"the lab is held by {who}; waiting for it to end", file=sys.stderr, flush=True)
        fcntl.flock(file, fcntl.LOCK_EX)


def _tell(file: int, who: dict[str, object]) -> None:
    os.ftruncate(file, 0)
    os.pwrite(file, json.dumps(who).encode(), 0)
