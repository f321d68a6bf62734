"""Commands of gates. Those that run beside the lab get what it leaves idle, since the lab measures."""

from __future__ import annotations

import atexit
import contextlib
import os
import signal
import subprocess
import threading
from collections.abc import Sequence
from typing import Any

# The priority of what runs beside the lab. Where the kernel groups processes by session, that of the group counts.
LOW = 10
_LOWER = f'echo {LOW} 2>/dev/null > /proc/self/autogroup; exec nice -n {LOW} "$@"'
_thread = threading.local()
_running: set[subprocess.Popen[Any]] = set()


def lower() -> None:
    """From now on this thread's commands run at a low priority."""
    _thread.low = True


def is_low() -> bool:
    """Whether this thread's commands run at a low priority."""
    return getattr(_thread, "low", False)


def run(argv: Sequence[str], **options: Any) -> int:
    """Run a command to its end and return its exit code."""
    if not is_low():
        return subprocess.run(argv, **options).returncode
    with subprocess.Popen(["sh", "-c", _LOWER, "low", *argv], start_new_session=True, **options) as process:
        _running.add(process)
        try:
            return process.wait()
        finally:
            _running.discard(process)


@atexit.register
def _stop() -> None:
    """A session of its own does not see the interrupt of a terminal."""
    for process in list(_running):
        with contextlib.suppress(ProcessLookupError):
            os.killpg(process.pid, signal.SIGTERM)
