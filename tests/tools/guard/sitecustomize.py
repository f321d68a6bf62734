"""Python imports this before a module of Ansible runs: the module can change its host's fixture tree and nothing else.

tests/tools/loopback.py gives HOST_TREE, the tree, and HOST_BIN, stand-ins of the host's programs. Whatever else would
be written, removed, started or connected ends in a PermissionError before it happens. An audit hook cannot be taken
away again. Events: "Audit events table" of Python's documentation.
"""

from __future__ import annotations

import atexit
import os
import shutil
import subprocess
import sys
from typing import Any

TREE, BIN = os.path.realpath(os.environ["HOST_TREE"]), os.path.realpath(os.environ["HOST_BIN"])
WRITES = os.O_WRONLY | os.O_RDWR | os.O_CREAT | os.O_TRUNC | os.O_APPEND
# Event -> (where its path is among the arguments, where the folder is that the path is relative to) of each path.
CHANGES: dict[str, tuple[tuple[int, int | None], ...]] = {
    "os.chmod": ((0, 2),),
    "os.chown": ((0, 3),),
    "os.link": ((0, 2), (1, 3)),
    "os.mkdir": ((0, 2),),
    "os.remove": ((0, 1),),
    "os.removexattr": ((0, None),),
    "os.rename": ((0, 2), (1, 3)),
    "os.rmdir": ((0, 1),),
    "os.setxattr": ((0, None),),
    "os.symlink": ((1, 2),),
    "os.truncate": ((0, None),),
    "os.utime": ((0, 3),),
}
NEVER = (
    "os.exec", "os.fork", "os.forkpty", "os.kill", "os.killpg", "os.posix_spawn", "os.spawn", "os.system", "pty.spawn",
    "socket.bind", "socket.connect", "socket.sendto", "syslog.syslog",
)  # fmt: skip


def place(path: Any, folder: Any = -1) -> str:
    """Return where a path is. Links on the way are followed, its last part is not: that is what would be changed."""
    if isinstance(path, int):
        return os.readlink(f"/proc/self/fd/{path}")
    text = os.fsdecode(path)
    if isinstance(folder, int) and folder >= 0:
        text = os.path.join(os.readlink(f"/proc/self/fd/{folder}"), text)
    head, tail = os.path.split(os.path.abspath(text))
    return os.path.join(os.path.realpath(head), tail)


def changed(event: str, args: tuple[Any, ...]) -> list[str]:
    """Return the files that an event would change."""
    if event == "open":
        path, _mode, flags = args
        # What is opened by a number was opened by its name before. Opening follows a link.
        return [] if isinstance(path, int) or not flags & WRITES else [os.path.realpath(place(path))]
    return [place(args[at], -1 if folder is None else args[folder]) for at, folder in CHANGES.get(event, ())]


def hook(event: str, args: tuple[Any, ...]) -> None:
    """Refuse what would reach out of the tree."""
    if event in NEVER:
        raise PermissionError(f"guard: {event} {args}")
    if event == "subprocess.Popen":
        program = shutil.which(os.fsdecode(args[0]))
        if program is None or os.path.dirname(program) != BIN:
            raise PermissionError(f"guard: {os.fsdecode(args[0])} is none of the programs in {BIN}")
    for path in changed(event, args):
        if not path.startswith(f"{TREE}/") and path != os.devnull:
            raise PermissionError(f"guard: {event} of {path}, which is outside of {TREE}")


def only_stand_ins() -> None:
    """Find programs among the stand-ins alone, whatever search path a module asks for."""
    which, start = shutil.which, subprocess.Popen.__init__

    def find(program: str, mode: int = os.F_OK | os.X_OK, path: Any = None) -> str | None:
        return which(program, mode, BIN)

    def begin(self: Any, args: Any, *rest: Any, **options: Any) -> None:
        options["env"] = {**(options.get("env") or os.environ), "PATH": BIN}
        start(self, args, *rest, **options)

    shutil.which, subprocess.Popen.__init__ = find, begin  # type: ignore[method-assign, assignment]


def account() -> None:
    """Add a line to the tree's file of the modules that ran under this guard."""
    with open(f"{TREE}/guarded", "a") as stream:
        stream.write("a module\n")


if "/" in (TREE, BIN):
    sys.exit("guard: HOST_TREE and HOST_BIN must be folders of fixtures, not /")
atexit.register(account)
only_stand_ins()
sys.addaudithook(hook)
