# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The conversation with a command in a container: what it is given, what it printed, how it ended."""

from __future__ import annotations

import io
import re
import time
from typing import Any, Callable

from . import answers
from .api import ConnectionFailed

PART = 32768
# More than any command of ours prints; what prints more is broken or hostile.
LARGEST_OUTPUT = 4 << 20
# Where the Status object comes that ends a stream.
_ERROR_CHANNEL = 3


class Output(io.StringIO):
    """What a command printed, LARGEST_OUTPUT at most."""

    def write(self, text: str) -> int:
        """Add text; ConnectionFailed when it is too much."""
        if self.tell() + len(text) > LARGEST_OUTPUT:
            raise ConnectionFailed(f"the command printed more than {LARGEST_OUTPUT} bytes")
        return super().write(text)


def converse(stream: Any, stdin: Callable[[], str], timeout: float) -> tuple[int, str]:
    """Return the exit code of a command and what it printed; ``stream``: the client's WebSocket to it."""
    deadline = time.monotonic() + timeout
    while stream.is_open() and not stream.peek_stdout():
        stream.update(timeout=_left(deadline, timeout))
    if stream.is_open():
        text = stdin()
        for start in range(0, len(text), PART):
            stream.write_stdin(text[start : start + PART])
    while stream.is_open():
        stream.update(timeout=_left(deadline, timeout))
    # First the status: reading all that was printed drops it.
    status = stream.read_channel(_ERROR_CHANNEL)
    return exit_code(status), stream.read_all()


def _left(deadline: float, timeout: float) -> float:
    left = deadline - time.monotonic()
    if left <= 0:
        raise ConnectionFailed(f"the command did not end in {timeout:.0f} seconds")
    return left


def exit_code(status: str) -> int:
    """Return the exit code out of the Status object that ends a stream."""
    answer = answers.load(status)
    if answer is None:
        raise ConnectionFailed("the stream ended without an exit code")
    if answer.get("status") == "Success":
        return 0
    for cause in answers.causes(answer):
        if cause.get("reason") == "ExitCode" and re.fullmatch("[0-9]{1,9}", str(cause.get("message", ""))):
            return int(cause["message"])
    raise ConnectionFailed(str(answer.get("message") or "the command could not be run")[:300])
