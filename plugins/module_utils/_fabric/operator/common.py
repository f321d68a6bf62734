# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What every object that we create has in common."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

from ..intent.intent import Intent

MANAGED_BY = {"app.kubernetes.io/managed-by": "gpufabric"}
POLICY_NAME = "nic-cluster-policy"


def metadata(name: str, namespace: str | None = None) -> dict[str, Any]:
    """Return metadata with our label; never annotations, the operator overwrites them on networks."""
    own: dict[str, Any] = {"name": name}
    if namespace:
        own["namespace"] = namespace
    own["labels"] = dict(MANAGED_BY)
    return own


def made_by_us(item: Mapping[str, Any]) -> bool:
    """Return whether this collection created an object: what was there before us never gets this label."""
    return MANAGED_BY.items() <= ((item.get("metadata") or {}).get("labels") or {}).items()


def to_json(value: Mapping[str, Any]) -> str:
    """Return compact JSON that the operator can put between single quotes (names cannot hold one)."""
    return json.dumps(value, separators=(",", ":"))


def image_reference(image: str, version: str) -> str:
    """Return an image with its tag or digest, as the operator puts them together."""
    return f"{image}{'@' if version.startswith('sha256:') else ':'}{version}" if version else image


def node_selector(selector: Mapping[str, str]) -> dict[str, Any]:
    """Return a core/v1 NodeSelector that asks for all the labels."""
    terms = [{"key": key, "operator": "In", "values": [value]} for key, value in sorted(selector.items())]
    return {"nodeSelectorTerms": [{"matchExpressions": terms}]}


def mtu_field(intent: Intent, rail: Mapping[str, Any]) -> dict[str, Any]:
    """Return the MTU of a rail as networks and policies name it, nothing where they leave that of the port."""
    return {"mtu": rail["mtu"]} if intent.networks.pinned_mtu else {}


def merged(below: Mapping[str, Any], above: Mapping[str, Any]) -> dict[str, Any]:
    """Return two trees as one: dicts of both are merged, of all else ``above`` wins."""
    both = {
        key: merged(below[key], value)
        for key, value in above.items()
        if isinstance(value, Mapping) and isinstance(below.get(key), Mapping)
    }
    return {**below, **above, **both}


def without_none(tree: Mapping[str, Any]) -> dict[str, Any]:
    """Return a tree of dicts without the keys whose value is None."""
    return {
        key: without_none(value) if isinstance(value, Mapping) else value
        for key, value in tree.items()
        if value is not None
    }
