# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""One lock for each host: modules that change it exclude each other and measurements on it.

The lock is on the folder of run-time data, so it leaves no file behind and ends with the process that holds it, however
that ends. A measurement has no process between two passes: it writes a mark under the lock (role rdma_validate).
"""

from __future__ import annotations

import contextlib
import datetime
import fcntl
import os
import re
import time
from collections.abc import Iterator

from ..._common.errors import ConflictError, FabricError
from . import files

# Seconds that a module waits for another run. The longest steps (an initramfs, drivers) take minutes.
PATIENCE = 180.0
PAUSE = 0.2
HOLDER = "holder"
# The mark of a measurement: its run, its start, and when it ends at the latest in seconds since the boot. /run does not
# outlive a boot. With the default time-outs a mark lasts so many seconds longer than what it announces.
MARK = "tester.run"
SPARE = 300.0
_MARK = re.compile(r"(?P<run>[\w.:-]{1,80}) (?P<since>[\w.:+-]{1,40}) (?P<until>[0-9]{1,12})", re.ASCII)
_END = "Wait until it ends, or end it with the playbook gpufabric.rdma.abort"


@contextlib.contextmanager
def held(run: str, module: str, check_mode: bool) -> Iterator[None]:
    """Hold the lock in the directory of run-time data while a module works, unless in check mode.

    ConflictError names who holds it, or which run measures the host, and since when.
    """
    if check_mode:
        yield
        return
    folder = f"{run}/gpufabric"
    handle = _locked(folder)
    try:
        files.write(f"{folder}/{HOLDER}", _holder(module) + "\n")
        try:
            yield
        finally:
            files.remove(f"{folder}/{HOLDER}")
    finally:
        os.close(handle)


def _locked(folder: str) -> int:
    """Return a handle that has the lock on the folder that is there now, on a host that no run measures."""
    begin = time.monotonic()
    end = begin + PATIENCE
    while True:
        handle = _open(folder)
        try:
            _take(handle, folder, end)
            current = _is_current(handle, folder)
            left = _measured_for(folder, begin) if current else 0.0
            if current and not left:
                return handle
        except BaseException:
            os.close(handle)
            raise
        # The measurement needs the lock too, to go on.
        os.close(handle)
        if left:
            time.sleep(min(left, 1.0))


def _open(folder: str) -> int:
    try:
        os.makedirs(folder, exist_ok=True)
        return os.open(folder, os.O_RDONLY)
    except OSError as error:
        raise FabricError(f"cannot lock {folder}: {error.strerror}; this module needs root") from error


def _measured_for(folder: str, begin: float) -> float:
    """Return for how many seconds at most a run measures this host, 0 when none does.

    ConflictError when that cannot end in time. A mark that has expired is removed, so that its run notices the change.
    """
    path = f"{folder}/{MARK}"
    text = files.read(path)
    if text is None:
        return 0.0
    mark = _MARK.fullmatch(text.strip())
    if not mark:
        raise ConflictError(
            f"{path} does not name the run that measures this host: expected a run, its start and its end in seconds "
            f"since the boot, found {text[:60]!r}. If no run measures this host, remove the file with the playbook "
            "gpufabric.rdma.abort"
        )
    left = int(mark["until"]) - time.clock_gettime(time.CLOCK_BOOTTIME)
    if left <= 0:
        files.remove(path)
        return 0.0
    waited = time.monotonic() - begin
    if waited >= PATIENCE or left > PATIENCE - waited + SPARE:
        raise ConflictError(
            f"this host is being measured by run {mark['run']} since {mark['since']}, for at most {left:.0f} s more. "
            f"Waited {waited:.0f} seconds for it. {_END}"
        )
    return left


def _is_current(handle: int, folder: str) -> bool:
    """Return whether the handle is that of the folder: whoever empties it may remove it, and another one is made."""
    try:
        return os.path.samestat(os.fstat(handle), os.stat(folder))
    except FileNotFoundError:
        return False


def _take(handle: int, folder: str, end: float) -> None:
    while True:
        try:
            fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
            return
        except BlockingIOError as error:
            if time.monotonic() > end:
                raise ConflictError(
                    f"another run changes this host: {_read_holder(folder)}. Waited {PATIENCE:g} seconds for it. Wait "
                    "until that run has ended, then rerun the playbook"
                ) from error
        time.sleep(PAUSE)


def _holder(module: str) -> str:
    """Return the line that names this process, for messages of modules and of the role that measures."""
    now = datetime.datetime.now(datetime.timezone.utc)
    client = os.environ.get("SSH_CONNECTION", "").partition(" ")[0]
    user = os.environ.get("SUDO_USER") or os.environ.get("USER", "")
    by = " from ".join(part for part in (user, client) if part)
    started = f", started by {by}" if by else ""
    return f"module {module}, process {os.getpid()}, since {now:%Y-%m-%dT%H:%M:%SZ}{started}"


def _read_holder(folder: str) -> str:
    text = (files.read(f"{folder}/{HOLDER}") or "").partition("\n")[0][:200]
    return text if text.isprintable() and text else "its module is not known"
