# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Running other programs to their end, with errors that tell what they said."""

from __future__ import annotations

import shlex
import subprocess
from collections.abc import Mapping, Sequence
from pathlib import Path

from tests.lab.errors import LabError

#: A SIGKILL of ours also ends the program, so nothing is left behind by a crash.
_DIE_WITH_PARENT = ("setpriv", "--pdeathsig", "KILL")
#: Own mounts and processes: both are gone with the program, whatever it did.
_CONTAINED = ("unshare", "--mount", "--pid", "--fork", "--kill-child")
_TAIL_LINES = 15


def run(
    argv: Sequence[str],
    *,
    stdin: bytes = b"",
    timeout: float | None = None,
    cwd: Path | None = None,
    env: Mapping[str, str] | None = None,
    log: Path | None = None,
) -> str:
    """Standard output of a program; its standard error goes to the error message.

    With `log` both go to the end of that file instead and the output is empty.
    Raises LabError with the last lines that it wrote, on a status other than 0 and on a timeout.
    """
    command = [*_DIE_WITH_PARENT, *argv]
    try:
        if log is not None:
            done = _run_logged(command, log, stdin, timeout, cwd, env)
        else:
            done = subprocess.run(command, input=stdin, capture_output=True, timeout=timeout, cwd=cwd, env=env)
    except subprocess.TimeoutExpired:
        raise LabError(f"no end within {timeout} s: {shlex.join(argv)}") from None
    if done.returncode != 0:
        said = log.read_bytes() if log is not None else done.stdout + done.stderr
        raise LabError(_failure(argv, done.returncode, said, log))
    return (done.stdout or b"").decode(errors="replace")


def contained(argv: Sequence[str], *, log: Path | None = None) -> str:
    """As `run`, in mount and process namespaces of its own (needs root)."""
    return run([*_CONTAINED, *argv], log=log)


def in_root(root: Path, argv: Sequence[str], *, log: Path | None = None) -> str:
    """Run a program inside a root file system that has no running system (needs root)."""
    mounts = "mount -t proc proc proc; mount --rbind /dev dev; mount -t sysfs sys sys"
    script = f'cd "$0"; set -e; {mounts}; export LC_ALL=C DEBIAN_FRONTEND=noninteractive;'
    return contained(["sh", "-c", f'{script} exec chroot . "$@"', str(root), *argv], log=log)


def _run_logged(
    command: Sequence[str],
    log: Path,
    stdin: bytes,
    timeout: float | None,
    cwd: Path | None,
    env: Mapping[str, str] | None,
) -> subprocess.CompletedProcess[bytes]:
    with log.open("ab") as out:
        return subprocess.run(command, input=stdin, stdout=out, stderr=out, timeout=timeout, cwd=cwd, env=env)


def _failure(argv: Sequence[str], status: int, said: bytes, log: Path | None) -> str:
    lines = said.decode(errors="replace").strip().splitlines()[-_TAIL_LINES:]
    where = f" (all of it in {log})" if log else ""
    return "\n".join([f"status {status} from: {shlex.join(argv)}{where}", *lines])
