# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Kubernetes objects in files: YAML or JSON, one or many in a file."""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping
from typing import Any, Callable

from .._common.errors import InputError

_SUFFIXES = (".yaml", ".yml", ".json")
_LARGEST = 1 << 24
_MOST = 10_000


def read(path: str, load: Callable[[str], Any]) -> list[Mapping[str, Any]]:
    """Return the objects of a file, or of all YAML and JSON files below a folder, in the order of their names.

    ``load`` returns the documents of a text. Documents without a kind, such as values of a chart, are left out. Raise
    one InputError for files that cannot be read, and when there is no object at all.
    """
    if not os.path.isabs(path):
        raise InputError(f"path: expected an absolute path, found {path}")
    files = sorted(_files(path))
    if len(files) > _MOST:
        raise InputError(f"path: {path} has {len(files)} files; at most {_MOST} are read. Name a folder below it")
    problems: list[str] = []
    found: list[Mapping[str, Any]] = []
    for name in files:
        try:
            found += [item for document in _documents(name, load) for item in _objects(document)]
        except InputError as error:
            problems.append(str(error))
    if problems:
        raise InputError("; ".join(problems))
    if not found:
        raise InputError(f"path: {path} has no Kubernetes object in {len(files)} YAML and JSON files. Correct the path")
    return found


def _files(path: str) -> Iterator[str]:
    if not os.path.isdir(path):
        if os.path.exists(path) and not os.path.isfile(path):
            raise InputError(f"path: expected a file or a folder, found another kind of file at {path}")
        yield path
        return
    for folder, folders, names in os.walk(path):
        # Neither the history of a repository nor other hidden files are applied.
        folders[:] = [name for name in folders if not name.startswith(".")]
        found = (os.path.join(folder, name) for name in names if name.endswith(_SUFFIXES) and name[0] != ".")
        # To open a pipe or a device may take forever.
        yield from (name for name in found if os.path.isfile(name))


def _documents(name: str, load: Callable[[str], Any]) -> list[Any]:
    try:
        with open(name, encoding="utf-8") as file:
            text = file.read(_LARGEST + 1)
    except OSError as error:
        raise InputError(f"path: cannot read {name}: {error.strerror}") from error
    except ValueError as error:
        raise InputError(f"path: {name} is not UTF-8 text") from error
    if len(text) > _LARGEST:
        raise InputError(f"path: {name} has more than {_LARGEST >> 20} MiB")
    try:
        return list(load(text))
    except Exception as error:  # The YAML parser has exceptions of its own.
        raise InputError(f"path: {name} is not valid YAML: {' '.join(str(error).split())}") from error


def _objects(document: Any) -> Iterator[Mapping[str, Any]]:
    if not isinstance(document, Mapping) or not document.get("kind") or not document.get("apiVersion"):
        return
    items = document.get("items")
    if str(document["kind"]).endswith("List") and isinstance(items, list):
        for item in items:
            yield from _objects(item)
    else:
        yield document
