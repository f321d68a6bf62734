# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""A folder whose files a module writes again and again: it changes what it wrote, and nothing of anybody else."""

from __future__ import annotations

import contextlib
import json
import os
from collections.abc import Mapping
from typing import Any

from .._common.change import Change
from .._common.errors import ConflictError, InputError
from .text_files import text_of, write

# Lists the files that were written, so that those which are no longer planned can be removed.
INDEX = ".gpufabric.json"
_MODE = 0o640
_LARGEST = 1 << 24


def converge(folder: str, files: Mapping[str, str], check: bool) -> Change:
    """Bring the files below ``folder`` to their content (relative path -> text), and remove those of an earlier call.

    With ``check`` nothing is written. Raise a ConflictError for a file at a planned path that this collection did not
    write, an InputError for a folder that cannot be written.
    """
    try:
        earlier = _index(folder)
        before = {path: text_of(os.path.join(folder, path), _LARGEST) for path in sorted({*files, *earlier})}
        others = [path for path in files if before[path] is not None and path not in earlier]
        if others:
            raise ConflictError(
                f"{folder} has {others[0]}, which this collection did not write. Choose an empty folder, or remove the"
                " file"
            )
        change = Change({path: text for path, text in before.items() if text is not None}, dict(files))
        if change.changed and not check:
            _write(folder, files, change.before)
    except OSError as error:
        raise InputError(
            f"{error.filename or folder}: {error.strerror}. Choose a folder that can be written"
        ) from error
    return change


def _write(folder: str, files: Mapping[str, str], before: Mapping[str, str]) -> None:
    os.makedirs(folder, exist_ok=True)
    # First, so that an interrupted call leaves no file that the next one takes for somebody else's.
    _put(folder, INDEX, json.dumps(sorted({*files, *before}), indent=1))
    for path in before.keys() - files.keys():
        os.unlink(os.path.join(folder, path))
        with contextlib.suppress(OSError):
            os.rmdir(os.path.dirname(os.path.join(folder, path)))
    for path, text in files.items():
        if before.get(path) != text:
            _put(folder, path, text)
    _put(folder, INDEX, json.dumps(sorted(files), indent=1))


def _put(folder: str, path: str, text: str) -> None:
    place = os.path.join(folder, path)
    os.makedirs(os.path.dirname(place), exist_ok=True)
    write(place, text, _MODE)


def _index(folder: str) -> set[str]:
    text = text_of(os.path.join(folder, INDEX), _LARGEST)
    if text is None:
        return set()
    try:
        found: Any = json.loads(text)
    except ValueError:
        found = None
    if not isinstance(found, list) or not all(_inside(path) for path in found):
        raise ConflictError(
            f"{folder}/{INDEX} is damaged, so it is unknown which files are whose. Choose an empty folder"
        )
    return set(found)


def _inside(path: Any) -> bool:
    return isinstance(path, str) and path == os.path.normpath(path) and not path.startswith(("/", ".."))
