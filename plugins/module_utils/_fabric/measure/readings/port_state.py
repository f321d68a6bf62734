# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What physical ports show of transceiver, FEC, bit errors and counters: lines of ``ethtool`` and ``mlxlink``.

The tester (tester.sh) keeps only lines that have a meaning here. ``ethtool -m`` prints the thresholds of the module,
warnings and alarms, ``mlxlink --json`` one range of each value.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field

from ...._common.units import natural
from ...intent.typed import plain
from . import frames
from .tester_log import Evidence

TEMPERATURE, SENT, RECEIVED = "temperature", "sent", "received"
_NUMBER = r"(-?[0-9]{1,6}(?:\.[0-9]{1,6})?|-inf)"
# What ethtool calls the measured values and their thresholds: SFF-8472, SFF-8636 and CMIS differ in the values.
_VALUES = {
    "Module temperature": TEMPERATURE,
    "Transmit avg optical power": SENT,
    "Laser output power": SENT,
    "Rcvr signal avg optical power": RECEIVED,
    "Receiver signal average optical power": RECEIVED,
}
_LIMITED = {
    "Module temperature": TEMPERATURE,
    "Laser output power": SENT,
    "Laser tx power": SENT,
    "Laser rx power": RECEIVED,
}
_LIMITS = {
    f"{name} {side} {level} threshold": (what, side, level)
    for name, what in _LIMITED.items()
    for side in ("low", "high")
    for level in ("warning", "alarm")
}
_BIASES = ("Laser bias current", "Laser tx bias current")
_NAMES = {"Vendor name": "name", "Vendor PN": "PN", "Vendor SN": "SN"}
_VALUE = re.compile(rf"(?:[0-9.]{{1,12}} mW / )?{_NUMBER} (?:dBm|degrees C|mA)(?: .*)?")
_FEC = re.compile(r"\w[\w /-]{0,40}")
_COUNTER = re.compile(r"([a-z][a-z0-9_]{2,60}): ([0-9]{1,18})\b.*")
# What mlxlink calls these values, in JSON with a line for each.
_FIELD = re.compile(r'"([^"]{1,40})" ?: ?"?([^"]{0,200}?)"?,?')
_RANGE = re.compile(rf"([-0-9.,]{{1,100}}) \[{_NUMBER}\.\.{_NUMBER}\]")
_RATIO = re.compile(r"[0-9]{1,6}(?:\.[0-9]{1,6})?E-[0-9]{1,3}")
_MLXLINK = {"Temperature [C]": TEMPERATURE, "Tx Power Current [dBm]": SENT, "Rx Power Current [dBm]": RECEIVED}
_MLXLINK_NAMES = {"Vendor Name": "name", "Vendor Part Number": "PN", "Vendor Serial Number": "SN"}
_ERRORS = {"Effective Physical Errors": "mlxlink_effective_errors", "Symbol Errors": "mlxlink_symbol_errors"}
# To which switch port an InfiniBand port is connected, and what perfquery shows of that one.
_SWITCH = re.compile(r"switch ([0-9]{1,5}) (0x[0-9a-f]{1,16}) ?(.*)")
_AT_SWITCH = re.compile(r"\.{1,40}([0-9]{1,20})")
# Extended counters of the port itself and of that switch port.
_EXTENDED = re.compile(r"(own|wide)_([A-Z][A-Za-z]{2,40}):\.{1,40}([0-9]{1,20})")
_PORT = re.compile(rf"{frames.PORT}([\w.-]{{1,64}}) ([\w.:@-]{{1,64}})", re.ASCII)
# Why a tester could not read a port; each is a sentence of the report.
_UNREAD = ("ethtool is not installed", "its tools did not answer in time")
_FIRST = f"\n{frames.MARK}{frames.PORT}"
# Characters of a port, and ports of a rail: the members of a bond.
_LONGEST = 8192
_MOST = 16


@dataclass
class Shown:
    """What a port showed. Values by lane (0: of the module), thresholds by (value, "low" or "high", their level).

    ``level``: "warning", "alarm", or "limit" where the tool does not tell which. ``raw``: the share of wrong bits
    before FEC that the firmware computes since its counters were cleared. ``switch``: name and port of the switch of an
    InfiniBand port, ``at_switch``: counters of that port, ``wide``: those of it that have 64 bits, ``extended``: those
    of 64 bits of the port itself.
    """

    names: dict[str, str] = field(default_factory=dict)
    values: dict[str, dict[int, float]] = field(default_factory=dict)
    limits: dict[tuple[str, str, str], float] = field(default_factory=dict)
    bias: dict[int, float] = field(default_factory=dict)
    fec: str = ""
    raw: float | None = None
    counters: dict[str, int] = field(default_factory=dict)
    switch: dict[str, str] = field(default_factory=dict)
    at_switch: dict[str, int] = field(default_factory=dict)
    wide: dict[str, int] = field(default_factory=dict)
    extended: dict[str, int] = field(default_factory=dict)
    unread: str = ""

    @property
    def module(self) -> str:
        """How messages call the transceiver: vendor, part number and serial number, "" where they are unknown."""
        told = " ".join(self.names[key] for key in ("name", "PN") if self.names.get(key))
        # In these words, so that reports that are shown to others have none (report/redact.py).
        return ", serial number ".join(filter(None, (told, self.names.get("SN", ""))))


# By rail, then by network device: a bond has several ports.
Ports = Mapping[str, Mapping[str, Shown]]


def parse(text: str) -> dict[str, dict[str, Shown]]:
    """Return what a tester printed about its ports; text of others, and lines without a meaning, are left out."""
    found: dict[str, dict[str, Shown]] = {}
    for part in f"\n{text}".split(f"\n{frames.MARK}")[1:]:
        head, _newline, body = part.partition("\n")
        port = _PORT.fullmatch(head.rstrip())
        if port and len(devices := found.setdefault(port[1], {})) < _MOST:
            devices[port[2]] = shown(body[:_LONGEST])
    return found


def before_and_after(evidence: Evidence) -> tuple[dict[str, Ports], dict[str, Ports]]:
    """Return what the ports of each host showed before the first and after the last of its passes.

    Testers on hosts print it with their description and with their logs; pods do not see the ports of their host, so
    it is read there.
    """
    first, *later = evidence.ports or (evidence.describe, {})
    texts = [played.logs for played in reversed(evidence.passes)] if not evidence.ports else later
    last: dict[str, Ports] = {}
    for logs in texts:
        last.update({host: ports for host, ports in _of_all(logs).items() if host not in last})
    return _of_all(first), last


def _of_all(texts: Mapping[str, str]) -> dict[str, Ports]:
    """Return the ports of hosts whose text has any; they are at its end, after thousands of tests."""
    found = {host: f"\n{text}" for host, text in texts.items()}
    return {host: parse(text[text.index(_FIRST) :]) for host, text in found.items() if _FIRST in text}


def shown(body: str) -> Shown:
    """Return what the lines about a port show. What ethtool shows takes precedence over mlxlink."""
    found = Shown()
    for line in (" ".join(line.split()) for line in body.splitlines()):
        # By the first letter, since a fleet has a million lines.
        if line.startswith('"'):
            _mlxlink_line(found, line)
        elif line[:1].islower():
            _counter_line(found, line)
        elif line:
            _module_line(found, line)
    return found


def _counter_line(found: Shown, line: str) -> None:
    if match := _COUNTER.fullmatch(line):
        found.counters[match[1]] = int(match[2])
    elif match := _SWITCH.fullmatch(line):
        # smpquery fills a name with dots up to 32 characters.
        found.switch = {"switch": plain(match[3].lstrip("."), 64) or match[2], "port": match[1]}
    elif match := _EXTENDED.fullmatch(line):
        (found.extended if match[1] == "own" else found.wide)[match[2]] = int(match[3])
    elif line.startswith("unread=") and line[7:] in _UNREAD:
        found.unread = line[7:]


def _module_line(found: Shown, line: str) -> None:
    name, _colon, text = line.partition(":")
    name, text = name.rstrip(), text.lstrip()
    lane = 0
    if name.endswith(")"):
        name, _open, channel = name.partition("(Channel ")
        name, lane = name.rstrip(), natural(channel[:-1]) or 0
    if name in _NAMES:
        found.names[_NAMES[name]] = plain(text, 40).strip()
    elif name.startswith("Active FEC encoding") and _FEC.fullmatch(text):
        found.fec = text
    elif match := _AT_SWITCH.fullmatch(text):
        found.at_switch[name[:40]] = int(match[1])
    elif match := _VALUE.fullmatch(text):
        if name in _VALUES:
            found.values.setdefault(_VALUES[name], {})[lane] = float(match[1])
        elif name in _LIMITS:
            found.limits[_LIMITS[name]] = float(match[1])
        elif name in _BIASES:
            found.bias[lane] = float(match[1])


def _mlxlink_line(found: Shown, line: str) -> None:
    match = _FIELD.fullmatch(line)
    if not match:
        return
    name, text = match[1], match[2].strip()
    if name in _MLXLINK and (ranged := _RANGE.fullmatch(text)):
        what, (low, high) = _MLXLINK[name], (float(ranged[2]), float(ranged[3]))
        # A cable of copper has none: zeros.
        if what not in found.values and low < high:
            found.values[what] = dict(_lanes(ranged[1], single=what == TEMPERATURE))
            found.limits.update({(what, "low", "limit"): low, (what, "high", "limit"): high})
    elif name == "Bias Current [mA]" and (ranged := _RANGE.fullmatch(text)) and not found.bias:
        found.bias = dict(_lanes(ranged[1]))
    elif name in _MLXLINK_NAMES and text != "N/A":
        found.names.setdefault(_MLXLINK_NAMES[name], plain(text, 40).strip())
    elif name == "Raw Physical BER" and _RATIO.fullmatch(text):
        found.raw = float(text)
    elif name in _ERRORS and (count := natural(text[:18])) is not None:
        found.counters[_ERRORS[name]] = count
    elif name == "FEC" and not found.fec:
        found.fec = plain(text, 40)


def _lanes(text: str, single: bool = False) -> Iterator[tuple[int, float]]:
    for lane, value in enumerate(text.split(","), 0 if single else 1):
        if re.fullmatch(_NUMBER, value):
            yield lane, float(value)
