# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Which recorded values are restored: only those that this collection set and that have not changed since. Pure.

A record has the values ``before`` the first change, and those that were ``set``. While a run changes a value, ``set``
does not have it: after a run that was cut off, any value found there can be one of this collection.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, TypeVar

Key = TypeVar("Key")


def changed_since(before: Mapping[Key, Any], ours: Mapping[Key, Any], now: Mapping[Key, Any]) -> list[Key]:
    """Return the keys that have another author now: their value is neither the one that was set nor the one before."""
    return [key for key in before if key in ours and now.get(key) not in (ours[key], before[key])]


def values(before: Mapping[Key, Any], ours: Mapping[Key, Any], now: Mapping[Key, Any]) -> dict[Key, Any]:
    """Return the values to restore; one that has another author stays as it is now."""
    others = changed_since(before, ours, now)
    return {key: now[key] if key in others else value for key, value in before.items() if key in now}


def while_changing(ours: Mapping[Key, Any], now: Mapping[Key, Any], after: Mapping[Key, Any]) -> dict[Key, Any]:
    """Return what ``set`` is while a run changes the values that are ``now`` into those of ``after``."""
    return {key: value for key, value in ours.items() if key not in after or now.get(key) == after[key]}


def unsettled(
    record: Mapping[str, Any], now: Mapping[str, Mapping[str, Any]], after: Mapping[str, Mapping[str, Any]]
) -> dict[str, Any]:
    """Return a record of entries while a run changes the states ``now`` into those of ``after``."""
    return {
        key: {**entry, "set": while_changing(entry["set"], now[key], after[key])} if key in after else entry
        for key, entry in record.items()
    }


def kept(what: str, before: Any, ours: Any, *, now: Any) -> str:
    """Return the warning that a value is not restored; ``what`` is its object and its name."""
    return (
        f"{what}: found {now}, expected {ours} as set by this collection. Another tool changed it, so it is not "
        f"restored, and its record is removed. Before the first change it was {before}"
    )
