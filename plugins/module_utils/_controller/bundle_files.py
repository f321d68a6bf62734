# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The controller's part of a support bundle: the latest report, the output of must-gather, and the archive itself."""

from __future__ import annotations

import contextlib
import io
import os
import tarfile
import tempfile
from collections.abc import Iterator, Mapping

from .._common.errors import InputError
from .._fabric.report import formats
from .._fabric.report.bundle import FILE_BYTES, WHOLE_BYTES, Bundle
from .._fabric.report.runs import RUN

# For the owner alone: a bundle describes machines.
_MODE = 0o600
_MOST_FILES = 5000
# Of a run without a report, the log of each host is the most.
_SUFFIXES = (".json", ".log", ".txt", ".error", ".yaml", ".yml", ".html", ".prom", ".xml")


def add_report(bundle: Bundle, folder: str) -> None:
    """Add the report of the last measurement, and the folder of the newest run if it has none."""
    names = formats.files()
    present = [name for name in names if os.path.isfile(os.path.join(folder, name))]
    if not present:
        bundle.miss("report", f"{folder} has no report of a measurement")
    for name in present:
        # The end of JSON or of a page is of no use.
        _add(bundle, f"report/{name}", os.path.join(folder, name), whole=WHOLE_BYTES)
    place = os.path.join(folder, "runs")
    runs = sorted(name for name in (os.listdir(place) if os.path.isdir(place) else []) if RUN.fullmatch(name))
    if runs and not os.path.isfile(os.path.join(place, runs[-1], "report.json")):
        add_tree(bundle, f"report/runs/{runs[-1]}", os.path.join(place, runs[-1]))


def add_tree(bundle: Bundle, name: str, folder: str) -> None:
    """Add the text files below a folder; links are not followed."""
    count = 0
    for path in _below(folder):
        if not path.endswith(_SUFFIXES):
            continue
        count += 1
        if count > _MOST_FILES:
            bundle.miss(name, f"only the first {_MOST_FILES} files are collected")
            return
        _add(bundle, f"{name}/{os.path.relpath(path, folder)}", path)


def _below(folder: str) -> Iterator[str]:
    for parent, folders, names in os.walk(folder):
        folders.sort()
        for name in sorted(names):
            path = os.path.join(parent, name)
            if os.path.isfile(path) and not os.path.islink(path):
                yield path


def _add(bundle: Bundle, name: str, path: str, *, whole: int = 0) -> None:
    """Add a file: its end, or all of it up to ``whole`` bytes."""
    try:
        with open(path, "rb") as file:
            size = file.seek(0, os.SEEK_END)
            if size > whole > 0:
                bundle.miss(name, f"it has {size >> 20} MiB; at most {whole >> 20} are collected")
                return
            file.seek(0 if whole else max(0, size - FILE_BYTES))
            text = file.read(whole or FILE_BYTES).decode("utf-8", "replace")
    except OSError as error:
        bundle.miss(name, f"{path}: {error.strerror}")
        return
    bundle.add(name, text, whole or FILE_BYTES, cut=size > len(text) and not whole)


def check_folder(folder: str) -> None:
    """Raise InputError when an archive cannot be written to a folder, before anything is read."""
    try:
        os.makedirs(folder, mode=0o750, exist_ok=True)
        with tempfile.TemporaryFile(dir=folder):
            pass
    except OSError as error:
        raise _unwritable(folder, error) from error


def write(folder: str, name: str, files: Mapping[str, str], *, time: float) -> str:
    """Write the archive NAME.tar.gz whole, or leave nothing of it; return its path. It replaces no other file."""
    path = os.path.join(folder, f"{name}.tar.gz")
    draft = ""
    try:
        handle, draft = tempfile.mkstemp(dir=folder, prefix=f".{name}.")
        with os.fdopen(handle, "wb") as stream, tarfile.open(fileobj=stream, mode="w:gz") as archive:
            for member, text in files.items():
                content = text.encode("utf-8", "replace")
                entry = tarfile.TarInfo(f"{name}/{member}")
                entry.size, entry.mtime, entry.mode = len(content), int(time), _MODE
                archive.addfile(entry, io.BytesIO(content))
        os.chmod(draft, _MODE)
        os.link(draft, path)
    except OSError as error:
        raise _unwritable(path, error) from error
    finally:
        with contextlib.suppress(OSError):
            os.unlink(draft)
    return path


def _unwritable(path: str, error: OSError) -> InputError:
    return InputError(f"{path} cannot be written: {error.strerror}. Set rdma_bundle_dir to another folder")
