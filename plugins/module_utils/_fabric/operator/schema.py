# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Objects against the definitions of their kinds on a release line: what an API server would refuse or silently drop.

The API server checks the same, but late, and drops unknown fields without a word.
"""

from __future__ import annotations

import functools
import json
import re
from collections.abc import Iterable, Iterator, Mapping
from typing import Any

from ..._common.errors import InputError
from ..._common.reader import describe, nearest
from ..intent.releases import Line
from . import schema_table
from .line_fields import is_set

Part = Mapping[str, Any]

_TYPES: dict[str, tuple[tuple[type, ...], str]] = {
    "string": ((str,), "text"),
    "integer": ((int,), "a whole number"),
    "number": ((int, float), "a number"),
    "boolean": ((bool,), "true or false"),
    "object": ((Mapping,), "a dict"),
    "array": ((list, tuple), "a list"),
    "int-or-string": ((int, str), "a whole number or text"),
}
# Rule of a definition -> what it limits, and how a message begins to say so.
_LOWEST = {"minimum": "", "minLength": "characters", "minItems": "items"}
_HIGHEST = {"maximum": "", "maxLength": "characters", "maxItems": "items"}
_OVERRIDES = "rdma_fabric.operator.policy_overrides"


def check(line: Line, objects: Iterable[Mapping[str, Any]], overrides: Mapping[str, Any]) -> None:
    """Raise an InputError that names every field of ``objects`` that the definitions of the line do not allow.

    Kinds that are not in the table on any line are not checked. ``overrides``: those of the user for the policy.
    """
    found = list(dict.fromkeys(problem for item in objects for problem in _problems(line, item, overrides)))
    if found:
        raise InputError("\n".join(found))


def _problems(line: Line, item: Mapping[str, Any], overrides: Mapping[str, Any]) -> Iterator[str]:
    kind, name = item["kind"], item["metadata"]["name"]
    places = schema_table.KINDS.get(kind)
    if places is None or line.name not in schema_table.SOURCES:
        return
    if line.name not in places:
        yield (
            f"{kind} {name}: the definition of this kind on release line {line.name} of the network operator is not"
            f" known here. Lines on which it is known: {', '.join(places)}. Set rdma_fabric.operator.release to a"
            " release of one of them, or remove the option of rdma_fabric that requires the kind"
        )
        return
    for path, problem in differences(item.get("spec") or {}, _parts()[places[line.name]], "spec"):
        remedy = _remedy(kind, path, overrides)
        yield f"{kind} {name}: {path}: {problem} (definition of {schema_table.SOURCES[line.name]}). {remedy}"


def _remedy(kind: str, path: str, overrides: Mapping[str, Any]) -> str:
    """Return what to do: an override is the user's where the section that the field is in has one."""
    _spec, *names = path.replace("[", ".[").split(".")
    sections = [name for name in names[:-1] if not name.startswith("[")]
    if kind == "NicClusterPolicy" and is_set(overrides, sections or names):
        return f"Correct {_OVERRIDES}{path[len('spec') :]}"
    return "Correct the option of rdma_fabric that sets it"


@functools.lru_cache(maxsize=1)
def _parts() -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = json.loads(schema_table.PARTS)
    return found


def differences(value: Any, part: Part, path: str) -> Iterator[tuple[str, str]]:
    """Yield path and problem of everything in a value at ``path`` that a part of a definition does not allow."""
    problem = _type(value, part) or _limits(value, part)
    if problem:
        yield path, problem
    elif isinstance(value, Mapping):
        yield from _fields(value, part, path)
    elif isinstance(value, (list, tuple)) and "items" in part:
        for index, one in enumerate(value):
            yield from differences(one, _parts()[part["items"]], f"{path}[{index}]")


def _fields(value: Mapping[Any, Any], part: Part, path: str) -> Iterator[tuple[str, str]]:
    fields, further = part.get("properties", {}), part.get("additionalProperties")
    for name in part.get("required", ()):
        if name not in value:
            yield f"{path}.{name}", "missing"
    for name, one in value.items() if fields or further is not None else ():
        place = fields.get(name, further)
        if place is not None:
            yield from differences(one, _parts()[place], f"{path}.{name}")
        elif not part.get("x-kubernetes-preserve-unknown-fields"):
            yield f"{path}.{name}", f"unknown field; {nearest(str(name), fields)}"


def _type(value: Any, part: Part) -> str:
    kind = "int-or-string" if part.get("x-kubernetes-int-or-string") else part.get("type")
    if kind not in _TYPES:
        return ""
    kinds, words = _TYPES[kind]
    number_as_bool = isinstance(value, bool) and bool not in kinds
    return f"expected {words}, found {describe(value)}" if number_as_bool or not isinstance(value, kinds) else ""


def _limits(value: Any, part: Part) -> str:
    if "enum" in part and value not in part["enum"]:
        return f"expected one of {', '.join(map(str, part['enum']))}, found {describe(value)}"
    if "pattern" in part and isinstance(value, str) and not re.search(part["pattern"], value):
        return f'expected text that matches {part["pattern"]}, found "{value}"'
    size = len(value) if isinstance(value, (str, list, tuple)) else value
    for rule, what in _LOWEST.items():
        if rule in part and size < part[rule]:
            return f"expected {' '.join(filter(None, (str(part[rule]), what)))} or more, found {size}"
    for rule, what in _HIGHEST.items():
        if rule in part and size > part[rule]:
            return f"expected at most {' '.join(filter(None, (str(part[rule]), what)))}, found {size}"
    return ""
