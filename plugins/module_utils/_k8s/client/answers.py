# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Whether an answer is one of the Kubernetes API, and if not, what is wrong with it.

Proxies, login pages and wrong paths answer too, and what they say must never look like an empty cluster.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

from ..._fabric.intent.typed import plain

# Messages about objects that are not valid name every field.
_LONGEST = 4000
METADATA_LIST = "PartialObjectMetadataList"
# Where objects have dicts and lists, if anything: whoever reads an object relies on it.
_DICTS = (("metadata", "labels"), ("metadata", "annotations"), ("spec",), ("status",), ("status", "nodeInfo"))
_LISTS = {
    ("metadata", "finalizers"): str,
    ("metadata", "ownerReferences"): dict,
    ("spec", "volumes"): dict,
    ("status", "addresses"): dict,
    ("status", "conditions"): dict,
}
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


def fault(item: Any) -> str:
    """Return what is wrong with an object in an answer, "" when it has a name and the form of an object."""
    if not named(item):
        return "an item that is not an object with a name"
    for path in _DICTS:
        if not isinstance(_at(item, path), (dict, type(None))):
            return f"the object {quoted(item['metadata']['name'])}, whose {'.'.join(path)} is not a dict"
    for path, kind in _LISTS.items():
        found = _at(item, path)
        if found is not None and not (isinstance(found, list) and all(isinstance(one, kind) for one in found)):
            what = "texts" if kind is str else "dicts"
            return f"the object {quoted(item['metadata']['name'])}, whose {'.'.join(path)} is not a list of {what}"
    return ""


def _at(item: dict[str, Any], path: tuple[str, ...]) -> Any:
    found: Any = item
    for key in path:
        found = found.get(key) if isinstance(found, dict) else None
    return found


def causes(answer: Mapping[str, Any]) -> list[dict[str, Any]]:
    """Return the causes that a Status object names."""
    found = _at(dict(answer), ("details", "causes"))
    return [cause for cause in found if isinstance(cause, dict)] if isinstance(found, list) else []


def quoted(text: str) -> str:
    """Return the beginning of an answer for a message, on one line."""
    words = plain(text, 100)
    return f'"{words}"' if words else "nothing"


def is_list(path: str, page: Mapping[str, Any]) -> bool:
    """Whether an answer is the list of the collection at ``path``: an empty one must be one."""
    kind, items = str(page.get("kind") or ""), page.get("items")
    singular = path.rsplit("/", 1)[-1][:-1]
    known = custom(path) or kind == METADATA_LIST or kind.lower() == f"{singular}list"
    sound = isinstance(items, (list, type(None))) and isinstance(page.get("metadata"), (dict, type(None)))
    return known and kind.endswith("List") and sound


def event(line: str) -> tuple[str, dict[str, Any]]:
    """Return type and object of a line of a watch; the type is empty when it is no event, such as half a line."""
    found = load(line) or {}
    kind, item = found.get("type"), found.get("object")
    known = kind == "ERROR" and isinstance(item, dict) or kind in _EVENTS and not fault(item)
    return (str(kind), item) if known and isinstance(item, dict) else ("", {})


def foreign(method: str, path: str, server: str, *, found: str) -> str:
    """Return the message about an answer that is not one of the Kubernetes API."""
    return (
        f"{server} answered {method} {path} with {found}; expected the Kubernetes API. Check the server, path and proxy"
        " of the kubeconfig, and whether a login page or another service answers there"
    )


def silent(method: str, path: str, server: str, *, failed: str) -> str:
    """Return the message about a request that was not answered."""
    return (
        f"the API server {server} does not answer ({method} {path}): {failed}."
        " Check that it is running and reachable from this machine, and check the server in the kubeconfig"
    )


def refused(method: str, path: str, server: str, *, status: int, text: str) -> str:
    """Return the message about a request that was answered with ``text`` and another status than success."""
    answer = load(text) or {}
    said = plain(str(answer.get("message") or ""), _LONGEST) or plain(text) or "no message"
    advice = {
        404: ". Check the server and path in the kubeconfig" if not answer else "",
        401: ". The credentials are not valid for this cluster. Check the user, token or certificate in the kubeconfig",
        403: ". Grant this permission, or use an account that has it",
    }.get(status, "")
    return f"the API server {server} refused {method} {path} with {status}: {said}{advice}"
