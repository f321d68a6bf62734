# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Run programs: an argument list, the C locale, a time limit, one kind of error."""

from __future__ import annotations

import os
import shutil
import subprocess
from collections.abc import Sequence
from typing import NamedTuple

from ..._common.errors import CommandError

# sbin is not in the PATH of every user and of every connection.
SEARCH_PATH = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"


class Result(NamedTuple):
    """What a program left: exit status and text."""

    rc: int
    stdout: str
    stderr: str

    @property
    def said(self) -> str:
        """What it printed, on one line for a message: its errors, otherwise its output."""
        return (self.stderr.strip() or self.stdout.strip() or "nothing").replace("\n", " ")


def find(program: str) -> str | None:
    """Return the path of a program, None when it is not installed."""
    return shutil.which(program, path=SEARCH_PATH)


def run(argv: Sequence[str], timeout: float = 60, check: bool = True) -> Result:
    """Run ``argv`` and return its result.

    CommandError when the program is missing, takes longer than ``timeout`` seconds or, with
    ``check``, exits with another status than 0; the message holds what it printed.
    """
    shown = " ".join(argv)
    environment = {**os.environ, "LC_ALL": "C", "PATH": SEARCH_PATH}
    try:
        # There is no AnsibleModule here whose run_command could be called.
        done = subprocess.run(  # pylint: disable=ansible-bad-function
            list(argv),
            stdin=subprocess.DEVNULL,
            capture_output=True,
            timeout=timeout,
            env=environment,
            check=False,
        )
    except FileNotFoundError as error:
        raise CommandError(f"'{argv[0]}' is not installed; it is needed for '{shown}'") from error
    except subprocess.TimeoutExpired as error:
        raise CommandError(f"'{shown}' did not end within {timeout:g} seconds") from error
    result = Result(
        done.returncode,
        done.stdout.decode("utf-8", "replace"),
        done.stderr.decode("utf-8", "replace"),
    )
    if check and result.rc != 0:
        raise CommandError(f"'{shown}' failed with status {result.rc}: {result.said}")
    return result
