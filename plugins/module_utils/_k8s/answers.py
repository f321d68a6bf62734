# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Whether an answer is one of the Kubernetes API, and if not, what is wrong with it.

Proxies, login pages and wrong paths answer too, and what they say must never look like an empty cluster.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

METADATA_LIST = "PartialObjectMetadataList"
_EVENTS = ("ADDED", "MODIFIED", "DELETED")
# Every API server serves these groups; a group of a custom resource has a dot, but not every dotted one is such.
_BUILT_IN = ("apiextensions.k8s.io", "authorization.k8s.io", "rbac.authorization.k8s.io", "coordination.k8s.io")


def custom(path: str) -> bool:
    """Whether a path is of a custom resource, which a cluster need not serve."""
    group = path.split("/")[2] if path.startswith("/apis/") else ""
    return "." in group and group not in _BUILT_IN


def load(text: str) -> dict[str, Any] | None:
    """Return the JSON object that a text is, None when it is none."""
    try:
        answer = json.loads(text)
    except (ValueError, RecursionError):
        return None
    return answer if isinstance(answer, dict) else None


def named(item: Any) -> bool:
    """Whether this is an object with a name."""
    meta = item.get("metadata") if isinstance(item, dict) else None
    return isinstance(meta, dict) and isinstance(meta.get("name"), str)


def quoted(text: str) -> str:
    """Return the beginning of an answer for a message, on one line."""
    words = " ".join(text[:300].split())
    return f'"{words[:100]}"' if words else "nothing"


def is_list(path: str, page: Mapping[str, Any]) -> bool:
    """Whether an answer is the list of the collection at ``path``: an empty one must be one."""
    kind, items = str(page.get("kind") or ""), page.get("items")
    singular = path.rsplit("/", 1)[-1][:-1]
    known = custom(path) or kind == METADATA_LIST or kind.lower() == f"{singular}list"
    return known and kind.endswith("List") and (items is None or isinstance(items, list))


def event(line: str) -> tuple[str, dict[str, Any]]:
    """Return type and object of a line of a watch; the type is empty when it is no event, such as half a line."""
    found = load(line) or {}
    kind, item = found.get("type"), found.get("object")
    known = kind == "ERROR" and isinstance(item, dict) or kind in _EVENTS and named(item)
    return (str(kind), item) if known and isinstance(item, dict) else ("", {})
