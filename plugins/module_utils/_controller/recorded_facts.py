# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Facts of hosts in a folder, one file per host: ``discover`` writes it, ``plan`` reads it where there are no hosts."""

from __future__ import annotations

import json
import os
from collections.abc import Mapping, Sequence
from typing import Any

from .._common.errors import InputError
from .._common.reader import describe, some
from . import text_files

SCHEMA = "gpufabric.rdma/facts/1"
_SUFFIX = ".json"
_LARGEST = 1 << 23
# Facts hold addresses, so they are for the owner and the group.
_MODE = 0o640
_MOST = 100_000


def text(position: int, groups: Sequence[str], settings: Any, *, facts: Any) -> str:
    """Return the file of a host. ``position``: its place in the group, by which new addresses are assigned."""
    content = {"schema": SCHEMA, "position": position, "groups": list(groups), "rdma_host": settings, "facts": facts}
    return json.dumps(content, sort_keys=True, separators=(",", ":")) + "\n"


def write(folder: str, contents: Mapping[str, str], check: bool) -> list[str]:
    """Write host -> content as one file per host where it differs; return the names of those files."""
    try:
        changed = [name for name, content in contents.items() if text_files.text_of(_path(folder, name)) != content]
        if changed and not check:
            os.makedirs(folder, exist_ok=True)
        for name in () if check else changed:
            text_files.write(_path(folder, name), contents[name], _MODE)
    except OSError as error:
        raise InputError(
            f"{error.filename or folder}: {error.strerror}. Choose a folder that can be written"
        ) from error
    return [name + _SUFFIX for name in changed]


def _path(folder: str, name: str) -> str:
    if "/" in name or name.startswith("."):
        raise InputError(f'the host "{name}" has a name that cannot be a file. Rename it in the inventory')
    return os.path.join(folder, name + _SUFFIX)


def read(folder: str) -> tuple[dict[str, dict[str, Any]], dict[str, list[str]]]:
    """Return host -> {facts, rdma_host} in the order of the group, and the inventory's groups, name -> hosts.

    Raise one InputError that names the files that are not facts of a host.
    """
    try:
        names = sorted(name for name in os.listdir(folder) if name.endswith(_SUFFIX) and not name.startswith("."))
    except OSError as error:
        raise InputError(f"{folder}: {error.strerror}. Expected the folder that playbook discover wrote") from error
    if not names or len(names) > _MOST:
        raise InputError(f"{folder} has {len(names)} files NAME{_SUFFIX}, expected one per host. Run playbook discover")
    found = {name[: -len(_SUFFIX)]: _host(os.path.join(folder, name)) for name in names}
    wrong = [f"{name}{_SUFFIX}: {host}" for name, host in found.items() if isinstance(host, str)]
    if wrong:
        raise InputError(f"{folder}: {len(wrong)} of {len(found)} files are not facts of a host: {some(wrong)}")
    return _sorted({name: host for name, host in found.items() if not isinstance(host, str)})


def _sorted(
    found: Mapping[str, Mapping[str, Any]],
) -> tuple[dict[str, dict[str, Any]], dict[str, list[str]]]:
    hosts: dict[str, dict[str, Any]] = {}
    groups: dict[str, list[str]] = {}
    for name in sorted(found, key=lambda name: (found[name]["position"], name)):
        hosts[name] = {"facts": found[name].get("facts"), "rdma_host": found[name].get("rdma_host")}
        for group in found[name]["groups"]:
            groups.setdefault(group, []).append(name)
    return hosts, groups


def _host(path: str) -> Mapping[str, Any] | str:
    """Return what the file of a host holds, or what is wrong with it."""
    try:
        with open(path, "rb") as file:
            content = file.read(_LARGEST + 1)
        if len(content) > _LARGEST:
            return f"larger than {_LARGEST >> 20} MiB"
        found = json.loads(content)
    except OSError as error:
        return str(error.strerror)
    except (ValueError, RecursionError):
        return "not valid JSON"
    schema = found.get("schema") if isinstance(found, dict) else found
    if not isinstance(found, dict) or schema != SCHEMA:
        return f'expected the schema "{SCHEMA}", found {describe(schema)}'
    position, groups = found.get("position"), found.get("groups")
    if not isinstance(position, int) or not isinstance(groups, list) or not all(isinstance(g, str) for g in groups):
        return "expected position (a whole number) and groups (a list of texts)"
    return found
