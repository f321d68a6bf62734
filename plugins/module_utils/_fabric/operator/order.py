# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""In which order objects are applied, and removed."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

# The policy brings nv-ipam and with it the kind IPPool; a network's pods need their pool.
_ORDER = ("Namespace", "Node", "NicClusterPolicy", "IPPool", "MacvlanNetwork")


def _rank(item: Mapping[str, Any]) -> int:
    kind = item.get("kind", "")
    return _ORDER.index(kind) if kind in _ORDER else len(_ORDER)


def apply_order(objects: Sequence[Mapping[str, Any]]) -> list[Mapping[str, Any]]:
    """Return the objects in the order to apply them; those of one kind keep theirs, unknown kinds come last."""
    return sorted(objects, key=_rank)


def delete_order(objects: Sequence[Mapping[str, Any]]) -> list[Mapping[str, Any]]:
    """Return the objects in the order to remove them: exactly the reverse."""
    return apply_order(objects)[::-1]
