# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What a module keeps on a host: values before us, reasons to reboot, and its own files."""

from __future__ import annotations

import contextlib
import json
import os
from collections.abc import Callable, Iterable, Mapping
from typing import Any

from ..facts.io import Roots, names
from . import command, files

# Folders of systemd files by rank: of two files with one name the first counts.
SYSTEMD_FOLDERS = ("{etc}/systemd/network", "{run}/systemd/network", "{lib}/systemd/network")


def load(state_root: str, module: str) -> dict[str, Any]:
    """Return the values before us that a module recorded, empty when there are none."""
    return files.read_record(f"{state_root}/{module}.json")


def save(state_root: str, module: str, values: Mapping[str, Any]) -> None:
    """Record values; none of them removes the record."""
    path = f"{state_root}/{module}.json"
    text = json.dumps(values, indent=1, sort_keys=True) + "\n" if values else None
    if files.read(path) != text:
        files.put(path, text, mode=0o600)
    if not values:
        # Not empty: other modules have records too. Not there: nothing was ever recorded.
        with contextlib.suppress(OSError):
            os.rmdir(state_root)


def set_reasons(roots: Roots, module: str, reasons: Iterable[str]) -> None:
    """Leave the reasons to reboot where a boot takes them away; none removes the file."""
    path = f"{roots.run}/gpufabric/reboot.d/{module}"
    text = "".join(f"{reason}\n" for reason in reasons) or None
    if files.read(path) != text:
        files.put(path, text)


def read_folder(folder: str, suffix: str, prefix: str = "") -> dict[str, str]:
    """Return path -> text of the files of a folder, ordered by name."""
    paths = [f"{folder}/{name}" for name in names(folder) if name.endswith(suffix) and name.startswith(prefix)]
    texts = {path: files.read(path) for path in paths if os.path.isfile(path)}
    return {path: text for path, text in texts.items() if text is not None}


def read_systemd(roots: Roots, lib: str, suffix: str) -> dict[str, str]:
    """Return path -> text of systemd's network files in the order of rank."""
    found: dict[str, str] = {}
    for folder in SYSTEMD_FOLDERS:
        found.update(read_folder(folder.format(etc=roots.etc, run=roots.run, lib=lib), suffix))
    return found


def plain(path: str) -> int:
    """Return the permissions of a file that all may read."""
    return 0o644


def write_files(before: Mapping[str, str], after: Mapping[str, str], mode: Callable[[str], int] = plain) -> None:
    """Make the own files those of ``after``: write what differs, remove what is not wanted.

    ``mode`` gives the permissions of a path.
    """
    for path in sorted({*before, *after}):
        if before.get(path) != after.get(path):
            files.put(path, after.get(path), mode(path))


def write_units(before: Mapping[str, str], after: Mapping[str, str]) -> None:
    """Make the own files those of ``after``, units among them, and let systemd read them when they are others."""
    write_files(before, after)
    if before != after:
        command.run(["systemctl", "daemon-reload"])
