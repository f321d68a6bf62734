# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""One lock for each host: modules that change it never interleave what they record with what they apply.

The lock is on the folder of run-time data, so it leaves no file behind and ends with the process that holds it, however
that ends.
"""

from __future__ import annotations

import contextlib
import datetime
import fcntl
import json
import os
import time
from collections.abc import Iterator, Mapping
from typing import Any

from .._core import jsontext
from .._core.errors import ConflictError, FabricError
from . import files

# Seconds that a module waits for another run. The longest steps (an initramfs, drivers) take minutes.
PATIENCE = 180.0
PAUSE = 0.2
HOLDER = "holder"


@contextlib.contextmanager
def held(params: Mapping[str, Any], module: str, check_mode: bool) -> Iterator[None]:
    """Hold the lock while a module works, unless in check mode; ConflictError says who holds it since when."""
    if check_mode:
        yield
        return
    folder = f"{params['run_root']}/gpufabric"
    handle = _locked(folder)
    try:
        files.write(f"{folder}/{HOLDER}", json.dumps(_holder(module)))
        try:
            yield
        finally:
            files.remove(f"{folder}/{HOLDER}")
    finally:
        os.close(handle)


def _locked(folder: str) -> int:
    """Return a handle that has the lock on the folder that is there now."""
    end = time.monotonic() + PATIENCE
    while True:
        try:
            os.makedirs(folder, exist_ok=True)
            handle = os.open(folder, os.O_RDONLY)
        except OSError as error:
            raise FabricError(f"cannot lock {folder}: {error.strerror}; this module needs root") from error
        try:
            _take(handle, folder, end)
            if _is_current(handle, folder):
                return handle
        except BaseException:
            os.close(handle)
            raise
        os.close(handle)


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
                holder = _describe(files.read(f"{folder}/{HOLDER}"))
                raise ConflictError(
                    f"another run changes this host: {holder}. Waited {PATIENCE:g} seconds for it. Wait until that "
                    "run has ended, then run this again"
                ) from error
        time.sleep(PAUSE)


def _holder(module: str) -> dict[str, Any]:
    now = datetime.datetime.now(datetime.timezone.utc)
    client = os.environ.get("SSH_CONNECTION", "").partition(" ")[0]
    user = os.environ.get("SUDO_USER") or os.environ.get("USER", "")
    started = " from ".join(part for part in (user, client) if part)
    return {"module": module, "pid": os.getpid(), "since": f"{now:%Y-%m-%dT%H:%M:%SZ}", "by": started}


def _describe(text: str | None) -> str:
    try:
        found = jsontext.loads(text or "")
        started = f", started by {found['by']}" if found["by"] else ""
        return f"module {found['module']}, process {found['pid']}, since {found['since']}{started}"
    except (ValueError, KeyError, TypeError):
        return "its module is not known"
