# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""``rdma_fabric`` in layers: what an inventory and a job change of it, for surveys that set single values."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from typing import Any

from ..._common.reader import describe

BASE = "rdma_fabric"
# In the order in which they are merged: the last one takes precedence.
OVER = ("rdma_fabric_overrides", "rdma_fabric_job")


def merged(layers: Mapping[str, Any]) -> Any:
    """Return the value of all layers, variable -> value: dicts key by key, all else as a whole.

    It is that of the filter ``combine(recursive=true)``, with which the playbooks merge.
    """
    found = layers[BASE]
    for name in OVER:
        above = layers.get(name)
        if above and isinstance(found, Mapping) and isinstance(above, Mapping):
            found = _over(found, above)
    return found


def _over(below: Any, above: Any) -> Any:
    if not isinstance(below, Mapping) or not isinstance(above, Mapping):
        return above
    return {**below, **{key: _over(below.get(key), value) for key, value in above.items()}}


def layer_problem(name: str, value: Any) -> str:
    """Return why a layer cannot be merged, "" if it can."""
    if value is None or isinstance(value, Mapping):
        return ""
    return (
        f"{name}: expected a dict with keys of {BASE}, found {describe(value)}. Pass it as JSON,"
        f""" such as -e '{{"{name}": {{"tests": {{"budget": "quick"}}}}}}'"""
    )


def attributed(text: str, layers: Mapping[str, Any]) -> str:
    """Return a text about the merged value, in which each path has the name of the layer that it comes from."""
    for name in reversed(OVER):
        for path in _leaves(layers.get(name) or {}):
            text = re.sub(rf"\b{BASE}\.({re.escape(path)})(?![\w.]*\w)", rf"{name}.\1", text)
    return text


def _leaves(value: Any, path: str = "") -> Iterator[str]:
    if isinstance(value, Mapping) and value:
        for key, inner in value.items():
            yield from _leaves(inner, f"{path}.{key}" if path else str(key))
    elif path:
        yield path
