# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Checks of settings that an argument spec cannot express: ranges, lists of eight, shares that add up.

The argument spec has refused wrong types, choices and unknown keys before. Each problem continues the name of the key.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from .setting import CLASSES

Check = Callable[[Any], list[str]]


def number(low: int, high: int) -> Check:
    """Return a check for whole numbers of a range."""

    def check(value: Any) -> list[str]:
        return [] if _is_number(value, low, high) else [f": {value!r} is not a number from {low} to {high}"]

    return check


def priorities(value: Any) -> list[str]:
    """Return what is wrong with a list of priorities."""
    found = [
        f": {one!r} is not a priority from 0 to {CLASSES - 1}" for one in value if not _is_number(one, 0, CLASSES - 1)
    ]
    return found or ([": a priority is listed twice"] if len({*value}) < len(value) else [])


def fields(checks: Mapping[str, Check]) -> Check:
    """Return a check for a dict that has at least one of the keys."""

    def check(value: Any) -> list[str]:
        if not value:
            return [f": set at least one of {', '.join(checks)}"]
        return [f".{key}{text}" for key in checks if key in value for text in checks[key](value[key])]

    return check


def eight(check_one: Check | None = None) -> Check:
    """Return a check for a list with one entry per class."""

    def check(value: Any) -> list[str]:
        if len(value) != CLASSES:
            return [f": {value!r} is not a list of {CLASSES} values"]
        return [f"[{index}]{text}" for index, one in enumerate(value) for text in (check_one(one) if check_one else ())]

    return check


def ets(value: Any) -> list[str]:
    """Return what is wrong with traffic classes: lengths, ranges, and shares that do not add up."""
    one_per_class = {
        "tsa": eight(),
        "bandwidth": eight(number(0, 100)),
        "priorities": eight(number(0, CLASSES - 1)),
    }
    found = fields(one_per_class)(value)
    if found:
        return found
    shares = list(zip(value["tsa"], value["bandwidth"]))
    strict = [
        f".bandwidth[{index}]: a strict class has no share. Set it to 0"
        for index, (kind, share) in enumerate(shares)
        if kind == "strict" and share
    ]
    total = sum(share for kind, share in shares if kind == "ets")
    if any(kind == "ets" for kind, _share in shares) and total != 100:
        strict.append(f".bandwidth: the shares of the ets classes add up to {total} %, expected 100 %")
    return strict


def _is_number(value: Any, low: int, high: int) -> bool:
    return isinstance(value, int) and not isinstance(value, bool) and low <= value <= high
