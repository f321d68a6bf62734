# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Talking to a running QEMU through its control socket."""

from __future__ import annotations

import json
import os
import socket
from io import BufferedRWPair
from pathlib import Path
from typing import Any

from tests.lab.errors import LabError

_TIMEOUT = 60.0


def connect_unix(path: Path, timeout: float = _TIMEOUT) -> socket.socket:
    """A connected stream socket; the folder's path may be longer than a socket's may."""
    folder = os.open(path.parent, os.O_PATH | os.O_DIRECTORY)
    try:
        link = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
        link.settimeout(timeout)
        link.connect(f"/proc/self/fd/{folder}/{path.name}")
        return link
    finally:
        os.close(folder)


def execute(path: Path, command: str, **arguments: Any) -> Any:
    """Run one QMP command and return what it returned.

    Raises LabError when QEMU reports an error or cannot be reached.
    """
    try:
        with connect_unix(path) as link, link.makefile("rwb") as stream:
            json.loads(stream.readline())  # The greeting.
            _ask(stream, "qmp_capabilities", {})
            answer = _ask(stream, command, arguments)
    except (OSError, ValueError) as error:
        raise LabError(f"no answer from {path} to {command}: {error}") from None
    if "error" in answer:
        raise LabError(f"{path.name}: {command} failed: {answer['error']['desc']}")
    return answer["return"]


def monitor(path: Path, line: str) -> str:
    """Run one command of QEMU's human monitor; it has no other way to tell an error than text."""
    said = execute(path, "human-monitor-command", **{"command-line": line})
    if "rror" in said or "nknown" in said:
        raise LabError(f"{path.name}: {line}: {said.strip()}")
    return str(said)


def _ask(stream: BufferedRWPair, command: str, arguments: dict[str, Any]) -> dict[str, Any]:
    request = {"execute": command, **({"arguments": arguments} if arguments else {})}
    stream.write(json.dumps(request).encode() + b"\n")
    stream.flush()
    while True:  # Events come in between.
        answer: dict[str, Any] = json.loads(stream.readline())
        if "return" in answer or "error" in answer:
            return answer
