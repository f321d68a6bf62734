# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Kinds and fields that the release line of the operator lacks: an API server would refuse or silently drop them."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any

from ..._common.errors import InputError
from ..intent.releases import Line, lines_with, varying


def check(line: Line, objects: Iterable[Mapping[str, Any]]) -> None:
    """Raise an InputError that names everything in ``objects`` that the line lacks, and the lines that have it."""
    found = list(dict.fromkeys(problem for item in objects for problem in _problems(line, item)))
    if found:
        raise InputError("\n".join(found))


def _problems(line: Line, item: Mapping[str, Any]) -> Iterator[str]:
    kind = item["kind"]
    for path in varying(kind):
        if line.has(kind, path) or not is_set(item, path.split(".") if path else ()):
            continue
        what = f"the field {path} of {kind}" if path else f"the kind {kind}"
        lines = lines_with(kind, path)
        # It is an option of the intent, or the network model, that asks for it.
        known = (
            f"Lines that have it: {', '.join(lines)}. Set rdma_fabric.operator.release to a release of one of them, or"
            if lines
            else "No supported line has it, so"
        )
        yield (
            f"{kind} {item['metadata']['name']}: release line {line.name} of the network operator does not have {what}."
            f" {known} change the option of rdma_fabric that requires it"
        )
        if not path:
            return


def is_set(value: Any, path: Sequence[str]) -> bool:
    """Return whether an object has the field; ``name[]`` stands for any item of the list ``name``."""
    if not path:
        return True
    name, rest = path[0], path[1:]
    if not isinstance(value, Mapping) or name.rstrip("[]") not in value:
        return False
    inner = value[name.rstrip("[]")]
    return any(is_set(one, rest) for one in inner) if name.endswith("[]") else is_set(inner, rest)
