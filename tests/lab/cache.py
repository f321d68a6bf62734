# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Things that are slow to make, kept under a hash of what they are made from."""

from __future__ import annotations

import fcntl
import hashlib
import os
import shutil
import threading
from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path

from tests.lab import progress
from tests.lab.settings import CACHE

_FOLDER = "artefacts"
_BUILDING = ".building-"
_LOCK = ".lock-"
_KEY_LENGTH = 16
#: Said once is enough, however often a command asks for it.
_told: set[str] = set()
#: Hosts that start side by side ask for the same artefacts; the first builds.
_one_builds: defaultdict[str, threading.Lock] = defaultdict(threading.Lock)


def key(parts: Iterable[bytes | str]) -> str:
    """A short hash over the parts, in their order."""
    digest = hashlib.sha256()
    for part in parts:
        data = part.encode() if isinstance(part, str) else part
        digest.update(len(data).to_bytes(8, "big") + data)
    return digest.hexdigest()[:_KEY_LENGTH]


def path_of(name: str, inputs: bytes | str) -> Path:
    """Where the artefact of this name and these inputs is, or will be."""
    return CACHE / _FOLDER / f"{name}-{key([inputs])}"


def artefact(name: str, inputs: bytes | str, build: Callable[[Path], None]) -> Path:
    """The artefact, built when there is none for these inputs yet.

    `build` gets a path that does not exist and makes a file or a folder there. It is moved to its
    final name at the end only, so that a crash half way leaves nothing that counts as built.
    """
    final = path_of(name, inputs)
    with _one_builds[name], _only_process(name):
        if final.exists():
            os.utime(final)
            if name not in _told:
                progress.note(name, "cached")
        else:
            _build(name, build, final)
    _told.add(name)
    return final


@contextmanager
def _only_process(name: str) -> Iterator[None]:
    """Wait until no other process builds an artefact of this name: the lab and a gate beside it share programs."""
    folder = CACHE / _FOLDER
    folder.mkdir(parents=True, exist_ok=True)
    with (folder / f"{_LOCK}{name}").open("a") as file:
        # The kernel releases it when a process dies.
        fcntl.flock(file, fcntl.LOCK_EX)
        yield


def _build(name: str, build: Callable[[Path], None], final: Path) -> None:
    partial = final.parent / f"{_BUILDING}{name}"
    remove(partial)
    with progress.step(name):
        build(partial)
        partial.rename(final)


def prune(names: Iterable[str], keep: int) -> None:
    """Remove all but the artefacts of each name that were used last, and unfinished ones."""
    for name in names:
        for path in (CACHE / _FOLDER).glob(f"{_BUILDING}{name}*"):
            remove(path)
        pattern = f"{name}-{'[0-9a-f]' * _KEY_LENGTH}"
        found = sorted((CACHE / _FOLDER).glob(pattern), key=lambda path: path.stat().st_mtime)
        for path in found[:-keep]:
            remove(path)


def file_hash(path: Path) -> str:
    """SHA-256 of a file, as hex: an input of what is made from it."""
    with path.open("rb") as source:
        return hashlib.file_digest(source, "sha256").hexdigest()


def remove(path: Path) -> None:
    """Remove a file or a folder, if it is there."""
    if path.is_dir() and not path.is_symlink():
        shutil.rmtree(path)
    else:
        path.unlink(missing_ok=True)
