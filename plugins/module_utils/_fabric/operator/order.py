# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""In which order objects are applied, and removed."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from .profiles import registry

# The policy brings nv-ipam and with it the kinds of pools; a network's pods need their pool.
_FIRST = ("Namespace", "Node", "NicClusterPolicy")


def apply_order(objects: Sequence[Mapping[str, Any]]) -> list[Mapping[str, Any]]:
    """Return the objects in the order to apply them; those of one kind keep theirs, unknown kinds come last."""
    known = (*_FIRST, *(kind.kind for kind in registry.kinds()))
    order = {kind: rank for rank, kind in enumerate(dict.fromkeys(known))}
    return sorted(objects, key=lambda item: order.get(item.get("kind", ""), len(order)))


def delete_order(objects: Sequence[Mapping[str, Any]]) -> list[Mapping[str, Any]]:
    """Return the objects in the order to remove them: exactly the reverse."""
    return apply_order(objects)[::-1]
