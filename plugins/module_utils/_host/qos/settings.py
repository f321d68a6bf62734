# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The wanted QoS of rails: one dict from the user, checked as a whole, as settings by name."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from ..._common.errors import InputError

# In the order in which they are set: pause before PFC (one excludes the other), buffers before what fills them.
SETTINGS = ("pause", "rings", "trust", "buffer", "ets", "pfc", "ecn", "cnp_dscp", "traffic_class", "rdma_cm")
KEYS = (
    "trust",
    "pfc",
    "ets",
    "buffer",
    "ecn",
    "cnp_dscp",
    "dscp",
    "traffic_class",
    "roce",
    "rings",
    "pause",
)
INPUT = "rail_links_qos"
# Priorities, traffic classes and buffers of 802.1Q.
CLASSES = 8
# The ECN bits of a traffic class: packets say that they can be marked, ECT(0).
ECT0 = 2


def parse(given: Mapping[str, Any]) -> dict[str, Any]:
    """Return setting -> value of what the user wrote; InputError names everything that is wrong in it.

    ``dscp`` becomes a traffic class, and that goes to RDMA-CM too (setting ``rdma_cm``).
    """
    problems = [f"{INPUT}.{key}: no such key; known are {', '.join(KEYS)}" for key in given if key not in KEYS]
    for key in KEYS:
        if key in given:
            problems += [f"{INPUT}.{key}{problem}" for problem in _CHECKS[key](given[key])]
    problems += _contradictions(given)
    if problems:
        raise InputError("; ".join(problems))
    return _settings(given)


def _settings(given: Mapping[str, Any]) -> dict[str, Any]:
    found: dict[str, Any] = {key: given[key] for key in ("trust", "ets", "buffer", "rings") if key in given}
    found.update({key: sorted(given[key]) for key in ("pfc", "ecn") if key in given})
    if "cnp_dscp" in given:
        found["cnp_dscp"] = given["cnp_dscp"]
    if "pause" in given:
        found["pause"] = {"rx": given["pause"], "tx": given["pause"]}
    traffic_class = given["dscp"] * 4 + ECT0 if "dscp" in given else given.get("traffic_class")
    if traffic_class is not None:
        found["traffic_class"] = traffic_class
    manager = {"roce": given.get("roce"), "tos": traffic_class}
    manager = {key: value for key, value in manager.items() if value is not None}
    if manager:
        found["rdma_cm"] = manager
    return {key: found[key] for key in SETTINGS if key in found}


def _contradictions(given: Mapping[str, Any]) -> list[str]:
    found = []
    if "dscp" in given and "traffic_class" in given:
        found.append(f"{INPUT}: dscp and traffic_class say the same in two ways; leave one out")
    if given.get("pfc") and given.get("pause") is True:
        found.append(f"{INPUT}: pfc and pause exclude each other on a port; set pause: false")
    return found


def _choice(*choices: str) -> Any:
    def check(value: Any) -> list[str]:
        return [] if value in choices else [f": {value!r} is not one of {', '.join(choices)}"]

    return check


def _number(low: int, high: int) -> Any:
    def check(value: Any) -> list[str]:
        return [] if _is_number(value, low, high) else [f": {value!r} is not a number from {low} to {high}"]

    return check


def _flag(value: Any) -> list[str]:
    return [] if isinstance(value, bool) else [f": {value!r} is neither true nor false"]


def _priorities(value: Any) -> list[str]:
    if not isinstance(value, list):
        return [f": {value!r} is not a list of priorities"]
    found = [f": {one!r} is not a priority, 0 to {CLASSES - 1}" for one in value if not _is_number(one, 0, CLASSES - 1)]
    return found or ([": a priority is there twice"] if len({*value}) < len(value) else [])


def _fields(required: Iterable[str], checks: Mapping[str, Any]) -> Any:
    def check(value: Any) -> list[str]:
        if not isinstance(value, dict) or not value:
            return [f": {value!r} is not a dict with {', '.join(checks)}"]
        found = [f".{key}: no such key; known are {', '.join(checks)}" for key in value if key not in checks]
        found += [f".{key}: is missing" for key in required if key not in value]
        return found + [f".{key}{text}" for key in checks if key in value for text in checks[key](value[key])]

    return check


def _eight(check_one: Any) -> Any:
    def check(value: Any) -> list[str]:
        if not isinstance(value, list) or len(value) != CLASSES:
            return [f": {value!r} is not a list of {CLASSES}"]
        return [f"[{index}]{text}" for index, one in enumerate(value) for text in check_one(one)]

    return check


def _ets(value: Any) -> list[str]:
    found: list[str] = _fields(
        ("tsa", "bandwidth"),
        {
            "tsa": _eight(_choice("ets", "strict")),
            "bandwidth": _eight(_number(0, 100)),
            "priorities": _eight(_number(0, CLASSES - 1)),
        },
    )(value)
    if found:
        return found
    shares = list(zip(value["tsa"], value["bandwidth"]))
    strict = [
        f".bandwidth[{index}]: a strict class has no share, so 0"
        for index, (t, b) in enumerate(shares)
        if t == "strict" and b
    ]
    total = sum(share for kind, share in shares if kind == "ets")
    if any(kind == "ets" for kind, _share in shares) and total != 100:
        strict.append(f".bandwidth: the classes with ets have {total} % together, expected 100")
    return strict


def _is_number(value: Any, low: int, high: int) -> bool:
    return isinstance(value, int) and not isinstance(value, bool) and low <= value <= high


_CHECKS: Mapping[str, Any] = {
    "trust": _choice("dscp", "pcp"),
    "pfc": _priorities,
    "ets": _ets,
    "buffer": _fields((), {"size": _eight(_number(0, 1 << 31)), "priorities": _eight(_number(0, CLASSES - 1))}),
    "ecn": _priorities,
    "cnp_dscp": _number(0, 63),
    "dscp": _number(0, 63),
    "traffic_class": _number(0, 255),
    "roce": _choice("v1", "v2"),
    "rings": _fields((), {"rx": _number(1, 1 << 20), "tx": _number(1, 1 << 20)}),
    "pause": _flag,
}
