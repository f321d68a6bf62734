# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Write and remove files of a host."""

from __future__ import annotations

import contextlib
import dataclasses
import os
from collections.abc import Callable, Mapping
from typing import Any

from ..._common.errors import FabricError, ParseError
from . import json_text


def read(path: str) -> str | None:
    """Return the text of a file, None when it does not exist; FabricError when it cannot be read."""
    try:
        with open(path, encoding="utf-8", errors="replace") as stream:
            return stream.read()
    except FileNotFoundError:
        return None
    except OSError as error:
        hint = ". Run as root (become: true)" if isinstance(error, PermissionError) else ""
        raise FabricError(f"cannot read {path}: {error.strerror}{hint}") from error


def read_record(path: str) -> dict[str, Any]:
    """Return the values of a JSON file of ours, empty when there is none; ParseError when it is damaged."""
    text = read(path)
    if text is None:
        return {}
    try:
        return dict(json_text.loads(text))
    except (ValueError, TypeError) as error:
        raise ParseError(f"the record {path} is damaged ({error}); restore or remove it") from error


def write(path: str, text: str, mode: int = 0o644) -> None:
    """Write a file in one step: readers see the old text or the new one, never a part.

    Missing folders are made. FabricError names the path and what the system said.
    """
    folder, name = os.path.split(path)
    # Always the same name, so that the next run takes away what a power cut left; no program reads such a suffix.
    draft = os.path.join(folder, f".{name}.gpufabric-new")
    try:
        os.makedirs(folder, exist_ok=True)
        handle = os.open(draft, os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_NOFOLLOW, 0o600)
        try:
            with os.fdopen(handle, "w", encoding="utf-8") as stream:
                stream.write(text)
            replace(draft, path, mode)
        except BaseException:
            with contextlib.suppress(FileNotFoundError):
                os.unlink(draft)
            raise
    except OSError as error:
        raise FabricError(f"cannot write {path}: {error.strerror}") from error


def replace(draft: str, path: str, mode: int) -> None:
    """Put a file in the place of another one of its folder; after a power cut one of the two is there, whole."""
    os.chmod(draft, mode)
    _flush(draft)
    os.replace(draft, path)
    _flush(os.path.dirname(path))


def _flush(path: str) -> None:
    handle = os.open(path, os.O_RDONLY)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)


def remove(path: str) -> None:
    """Remove a file; a file that is not there is fine."""
    try:
        os.unlink(path)
    except FileNotFoundError:
        return
    except OSError as error:
        raise FabricError(f"cannot remove {path}: {error.strerror}") from error


def put(path: str, text: str | None, mode: int = 0o644) -> None:
    """Make a file have this text; None removes it."""
    if text is None:
        remove(path)
    else:
        write(path, text, mode)


def tell_kernel(path: str, value: str) -> None:
    """Write a value to a file of sysfs or /proc/sys; FabricError when the kernel refuses it.

    For files that cannot be read back; for all others there is ``set_kernel``.
    """
    try:
        # One write call without truncation: the kernel takes each write as a whole value.
        handle = os.open(path, os.O_WRONLY)
        try:
            os.write(handle, value.encode())
        finally:
            os.close(handle)
    except OSError as error:
        raise FabricError(f"the kernel refused '{value}' for {path}: {error.strerror}") from error


def set_kernel(path: str, value: str) -> None:
    """Write a value to a file of sysfs or /proc/sys and read it back.

    FabricError when the kernel refuses it, or accepts it and keeps another one.
    """
    tell_kernel(path, value)
    # Values of several numbers come back with tabs between them.
    found = " ".join((read(path) or "").split())
    if found != " ".join(value.split()):
        raise FabricError(f"{path} is '{found}' after writing '{value}': the kernel did not accept the value")


@dataclasses.dataclass(frozen=True)
class Roots:
    """Where the directories of a host are; see ``under``.

    ``lib`` is the distribution's, ``state`` has the records of this collection, ``boots`` may have boot files.
    """

    sysfs: str = "/sys"
    proc: str = "/proc"
    etc: str = "/etc"
    run: str = "/run"
    boot: str = "/boot"
    modules: str = "/lib/modules"
    lib: str = "/usr/lib"
    var: str = "/var"
    tmp: str = "/tmp"
    state: str = "/var/lib/gpufabric"
    boots: tuple[str, ...] = ("/boot", "/boot/efi", "/efi")

    @classmethod
    def under(cls, root: str) -> Roots:
        """Return the directories of the host whose file system is below ``root``, such as a chroot."""
        base = root.rstrip("/")
        places = {field.name: f"{base}{field.default}" for field in dataclasses.fields(cls) if field.name != "boots"}
        return cls(**places, boots=tuple(f"{base}{path}" for path in cls.boots))


def read_text(path: str, limit: int = 1 << 20) -> str | None:
    """Return the stripped text of a file; None when it cannot be read.

    Files of sysfs that have no value now (the speed of a link that is down) fail with EINVAL.
    """
    content = read_bytes(path, limit)
    return None if content is None else content.decode("utf-8", "replace").strip()


def read_bytes(path: str, limit: int) -> bytes | None:
    """Return the first ``limit`` bytes of a file; None when it cannot be read."""
    try:
        with open(path, "rb") as stream:
            return stream.read(limit)
    except OSError:
        return None


def names(folder: str) -> list[str]:
    """Return the sorted names in a folder, none when there is no such folder."""
    try:
        return sorted(os.listdir(folder))
    except OSError:
        return []


def read_folder(folder: str, suffix: str, prefix: str = "") -> dict[str, str]:
    """Return path -> text of the files of a folder, ordered by name."""
    paths = [f"{folder}/{name}" for name in names(folder) if name.endswith(suffix) and name.startswith(prefix)]
    texts = {path: read(path) for path in paths if os.path.isfile(path)}
    return {path: text for path, text in texts.items() if text is not None}


def plain(path: str) -> int:
    """Return the permissions of a file that all may read."""
    return 0o644


def write_files(before: Mapping[str, str], after: Mapping[str, str], mode: Callable[[str], int] = plain) -> None:
    """Make the own files those of ``after``: write what differs, remove what is not wanted.

    ``mode`` gives the permissions of a path.
    """
    for path in sorted({*before, *after}):
        if before.get(path) != after.get(path):
            put(path, after.get(path), mode(path))
