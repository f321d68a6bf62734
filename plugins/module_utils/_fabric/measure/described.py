# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What a tester reports about itself, checked by type before anything uses it.

A tester runs on a machine that may be broken or hostile. Its addresses, device names and numbers become arguments of
commands that run as root on other hosts, and words of commands that people copy.
"""

from __future__ import annotations

import ipaddress
import re
from collections.abc import Mapping
from typing import Callable

#: perftest refuses larger GID indexes.
LARGEST_GID = 64
_LARGEST_PORT = 255
_LONGEST = 300
_NAME = re.compile(r"[A-Za-z0-9_][A-Za-z0-9_.-]{0,63}")
_DIGITS = re.compile(r"[0-9]{1,9}")
_CPUS = re.compile(r"[0-9]{1,5}(?:-[0-9]{1,5})?(?:,[0-9]{1,5}(?:-[0-9]{1,5})?){0,511}")
_VERSION = re.compile(r"[A-Za-z0-9_.+~?-]{1,64}")
_RATE = re.compile(r"[A-Za-z0-9 ./()+-]{0,64}")

Check = Callable[[str], str]


def _matches(pattern: re.Pattern[str], expected: str) -> Check:
    return lambda text: "" if pattern.fullmatch(text) else expected


def _number(least: int, most: int, note: str = "") -> Check:
    def check(text: str) -> str:
        fits = _DIGITS.fullmatch(text) and least <= int(text) <= most
        return "" if fits else f"a number from {least} to {most}{note}"

    return check


def _address(text: str) -> str:
    try:
        ipaddress.IPv4Address(text)
    except ValueError:
        return "an IPv4 address"
    return ""


def _addresses(text: str) -> str:
    return "IPv4 addresses" if any(_address(one) for one in text.split()) else ""


def _or_none(check: Check) -> Check:
    return lambda text: "" if text == "-" else check(text)


_RAIL: Mapping[str, Check] = {
    "device": _matches(_NAME, "the name of an RDMA device"),
    "port": _number(1, _LARGEST_PORT),
    "netdev": _matches(_NAME, "the name of a network device"),
    "gid": _number(0, LARGEST_GID, ", since perftest refuses larger GID indexes"),
    "gid_type": _matches(re.compile("RoCE v2|IB"), "RoCE v2 or IB"),
    "address": _address,
    "addresses": _addresses,
    "mtu": _or_none(_number(1, 65536)),
    "rate": _matches(_RATE, "a rate"),
    "numa": _matches(re.compile(r"-|-?[0-9]{1,4}"), "a NUMA node"),
    "cpus": _or_none(_matches(_CPUS, "a list of CPUs")),
    "local_cpus": _or_none(_matches(_CPUS, "a list of CPUs")),
}
_NEEDED = ("device", "port", "gid", "address")
_HOST: Mapping[str, Check] = {
    "memlock": _or_none(_matches(re.compile(r"unlimited|[0-9]{1,20}"), "a limit")),
    "perftest": _matches(_VERSION, "a version"),
    "control": _or_none(_address),
    "clock": _matches(_NAME, "a clock source"),
    "machine_id": _or_none(_matches(re.compile(r"[0-9A-Za-z-]{1,64}"), "a machine ID")),
}


def checked_rail(pairs: Mapping[str, str]) -> dict[str, str]:
    """Return the known pairs of a rail; {"error": reason} when the tester reports an error, or no valid rail."""
    if "error" in pairs:
        return {"error": plain(pairs["error"]) or "its tester reports an error without a reason"}
    missing = [key for key in _NEEDED if key not in pairs]
    if missing:
        return {"error": f"not described: its tester did not report {', '.join(missing)}"}
    for key, check in _RAIL.items():
        expected = check(pairs[key]) if key in pairs else ""
        if expected:
            return {"error": f"not described: {key}={plain(pairs[key], 60)!r} is invalid; expected {expected}"}
    return {key: pairs[key] for key in _RAIL if key in pairs}


def checked_host(pairs: Mapping[str, str]) -> dict[str, str]:
    """Return the known pairs of a host whose values are valid; the others count as not reported."""
    return {key: pairs[key] for key, check in _HOST.items() if key in pairs and not check(pairs[key])}


def plain(text: str, most: int = _LONGEST) -> str:
    """Return text of a tester as one line without control characters, ``most`` characters at most."""
    one = " ".join(text[: 4 * most].split())
    return "".join(letter if letter.isprintable() else "?" for letter in one)[:most]
