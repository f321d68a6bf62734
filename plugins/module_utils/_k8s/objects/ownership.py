# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Which fields of an object are ours: managedFields, read as the API server writes them."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

from ..client.api import MANAGER

MARK = "app.kubernetes.io/managed-by"


def without_mark(item: Mapping[str, Any]) -> dict[str, Any]:
    """Return the object without the label that says that we made it."""
    meta = dict(item.get("metadata") or {})
    labels = {key: value for key, value in (meta.pop("labels", None) or {}).items() if key != MARK}
    return {**item, "metadata": {**meta, **({"labels": labels} if labels else {})}}


def is_ours(entry: Mapping[str, Any]) -> bool:
    """Return whether an entry of managedFields has the fields that our manager applied."""
    ours = entry.get("manager") == MANAGER and entry.get("operation") == "Apply"
    return ours and not entry.get("subresource")


def owned_fields(item: Mapping[str, Any] | None) -> dict[str, Any]:
    """Return the fields that our manager applied, in the form ``{"f:spec": {"f:mtu": {}}}``."""
    for entry in ((item or {}).get("metadata") or {}).get("managedFields") or []:
        if is_ours(entry):
            return dict(entry.get("fieldsV1") or {})
    return {}


def union(left: Mapping[str, Any], right: Mapping[str, Any]) -> dict[str, Any]:
    """Return the fields that stand in either; a leaf (empty) means the whole value and wins."""
    merged = {**left, **right}
    for key in set(left) & set(right):
        merged[key] = union(left[key], right[key]) if left[key] and right[key] else {}
    return merged


def project(value: Any, fields: Mapping[str, Any]) -> Any:
    """Reduce a value to ``fields``; a leaf keeps the whole value. Items of keyed lists keep their keys."""
    if not fields:
        return value
    if isinstance(value, Mapping):
        named = {key[2:]: sub for key, sub in fields.items() if key.startswith("f:")}
        return {key: project(value[key], sub) for key, sub in named.items() if key in value}
    if isinstance(value, list):
        return [kept for item in value for kept in _kept(item, fields)]
    return value


def _kept(item: Any, fields: Mapping[str, Any]) -> list[Any]:
    for key, sub in fields.items():
        if key.startswith("v:") and json.loads(key[2:]) == item:
            return [item]
        if key.startswith("k:") and isinstance(item, Mapping):
            names = json.loads(key[2:])
            if all(item.get(name) == value for name, value in names.items()):
                return [{**names, **project(item, sub)}]
    return []


def shown(item: Mapping[str, Any] | None, fields: Mapping[str, Any]) -> dict[str, Any] | None:
    """Return what a diff shows of an object: the given fields; values of a Secret stay hidden."""
    if item is None:
        return None
    kept: dict[str, Any] = project(item, fields) if fields else {}
    if item.get("kind") == "Secret":
        kept = {**kept, **{part: "(hidden)" for part in ("data", "stringData") if part in kept}}
    return kept
