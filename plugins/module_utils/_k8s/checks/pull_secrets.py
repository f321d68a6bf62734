# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Pull secrets that a run names and that do not exist: nodes would pull the images without a login."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any
from urllib.parse import quote

from ..client.api import Api, ApiError
from ..client.kinds import collection


def problems(api: Api, namespace: str, names: Iterable[Any], *, option: str) -> list[str]:
    """Return the pull secrets that are surely absent; ``names``: text, or a dict with ``name`` as in a pod.

    A namespace that does not exist yet may get its Secrets later. What cannot be read is no reason.
    """
    wanted = [str(item.get("name") or "") if isinstance(item, Mapping) else str(item) for item in names]
    if not any(wanted):
        return []
    try:
        space = api.get(f"{collection('v1', 'namespaces')}/{quote(namespace)}")
        if space is None or space["metadata"].get("deletionTimestamp"):
            return []
        actual = {meta["name"] for meta in api.metadata(collection("v1", "secrets", namespace))}
    except ApiError as error:
        if error.status == 403:
            return []
        raise
    return [
        f"pull secret {name}, named by {option}, does not exist in namespace {namespace}. Create it there, or correct"
        f" {option}"
        for name in dict.fromkeys(wanted)
        if name and name not in actual
    ]
