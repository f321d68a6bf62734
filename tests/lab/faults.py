# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Faults of the lab: what they are called and what they mean for the switch. Pure."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace

from tests.lab.errors import LabError
from tests.lab.fabric import HEALTHY, Impairment, Port
from tests.lab.settings import HOSTS, RAILS, number

#: The longest frame of a network without jumbo frames: 1500 bytes and the Ethernet header.
_STANDARD_FRAME = 1514
_UNITS = {"kbit": 1e3, "mbit": 1e6, "gbit": 1e9}
#: What a fault of each kind needs to be told, and its value when it is not.
_DEFAULTS = {
    "cable": "",
    "slow": "5mbit",
    "lossy": "2",
    "oneway": "in",
    "blackhole": "",
    "swapped": "",
    "dead": "",
    "cut": "",
}
KINDS = tuple(_DEFAULTS)
_WHOLE_HOST = ("swapped", "dead", "cut")
_WHOLE_RAIL = ("slow", "blackhole")
_WAYS = ("in", "out")


@dataclass(frozen=True)
class Fault:
    """One fault. No rail is the whole host; no host (of a blackhole or of `slow`) is the whole rail.

    value: bits per second of `slow` as in 3mbit, percent of frames lost of `lossy`, `in` or `out` of `oneway`: what the
    host gets vanishes, or what it sends.
    """

    kind: str
    host: str = ""
    rail: int | None = None
    value: str = ""

    def __str__(self) -> str:
        rail = "" if self.rail is None else f"rail {self.rail}"
        return " ".join(word for word in (self.kind, self.host, rail, self.value) if word)


def parse(words: Sequence[str]) -> Fault:
    """The fault that a command line names: KIND, then HOST, RAIL and VALUE as the kind needs.

    Raises LabError for what makes no sense.
    """
    kind, rest = (words[0] if words else ""), list(words[1:])
    if kind not in KINDS:
        raise LabError(f"no fault '{kind}'; there are {', '.join(KINDS)}")
    host = "" if kind in _WHOLE_RAIL and rest[:1] and rest[0].isdigit() else _host(rest)
    rail = None if kind in _WHOLE_HOST else _rail(rest)
    value = rest.pop(0) if rest and _DEFAULTS[kind] else _DEFAULTS[kind]
    if rest:
        raise LabError(f"what is '{' '.join(rest)}' in this {kind} fault?")
    fault = Fault(kind, host, rail, value)
    impairments([fault])
    return fault


def selected(faults: Iterable[Fault], words: Sequence[str]) -> list[Fault]:
    """The faults that all the words are about, each a kind, a host or a rail; no word is all."""
    for word in words:
        if word not in (*KINDS, *HOSTS, *map(str, range(RAILS))):
            raise LabError(f"'{word}' is no kind of fault, host or rail")
    return [one for one in faults if set(words) <= {one.kind, one.host, str(one.rail)}]


def impairments(faults: Iterable[Fault]) -> dict[Port, Impairment]:
    """What these faults are at the ports of the switch; several at one port add up."""
    found: dict[Port, Impairment] = {}
    for fault in faults:
        if fault.rail is not None:
            for host in [fault.host] if fault.host else HOSTS:
                port = (fault.rail, number(host))
                found[port] = _impaired(found.get(port, HEALTHY), fault)
    return {port: what for port, what in found.items() if what != HEALTHY}


def swapped(faults: Iterable[Fault]) -> list[int]:
    """The numbers of the hosts whose cables of both rails are exchanged."""
    return sorted({number(fault.host) for fault in faults if fault.kind == "swapped"})


def _impaired(before: Impairment, fault: Fault) -> Impairment:
    if fault.kind == "slow":
        return replace(before, rate=min(rate(fault.value), before.rate or float("inf")))
    if fault.kind == "oneway":
        inward = _way(fault.value) == "in"
        return replace(before, loss_in=1.0) if inward else replace(before, loss_out=1.0)
    if fault.kind == "lossy":
        return replace(before, loss=percent(fault.value) / 100)
    if fault.kind == "blackhole":
        return replace(before, max_frame=_STANDARD_FRAME)
    return before


def rate(text: str) -> float:
    """Bits per second of a text such as 3mbit."""
    match = re.fullmatch(r"(\d+(?:\.\d+)?)(kbit|mbit|gbit)", text)
    if not match or not float(match[1]):
        raise LabError(f"'{text}' is no rate; say it like 3mbit (kbit, mbit, gbit)")
    return float(match[1]) * _UNITS[match[2]]


def percent(text: str) -> float:
    """A part of a hundred, with or without its sign."""
    match = re.fullmatch(r"(\d+(?:\.\d+)?)%?", text)
    if not match or not 0 < float(match[1]) <= 100:
        raise LabError(f"'{text}' is no percentage of frames; say it like 2 or 0.5")
    return float(match[1])


def _way(text: str) -> str:
    if text not in _WAYS:
        raise LabError(f"'{text}' is no way; say it like {' or '.join(_WAYS)}")
    return text


def _host(words: list[str]) -> str:
    if not words or words[0] not in HOSTS:
        raise LabError(f"which host? {', '.join(HOSTS)}, not '{words[0] if words else ''}'")
    return words.pop(0)


def _rail(words: list[str]) -> int:
    if not words or words[0] not in map(str, range(RAILS)):
        raise LabError(f"which rail? 0 to {RAILS - 1}, not '{words[0] if words else ''}'")
    return int(words.pop(0))
