# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Addresses, serial numbers and host names out of a report, so that it can be shown to others.

Every value gets a pseudonym by the order in which it first appears, so the same value has the same pseudonym in all
files of one report. A number and not a hash, since a hash of an address is found by trying all addresses.
Where a text may or may not be an address (a version of four numbers), it is taken for one.
"""

from __future__ import annotations

import ipaddress
import re
from collections.abc import Iterable, Iterator, Sequence
from typing import Any

from ..._common.errors import InputError

KINDS = ("addresses", "serials", "hosts")
DEFAULT = ("addresses", "serials")
# Words of ours, as keys or below these keys: a host that is called "fail" or "hosts" must not change them.
_OURS = frozenset(
    (
        "schema",
        "verdict",
        "findings",
        "rails",
        "hosts",
        "results",
        "warnings",
        "context",
        "diagnoses",
        "outliers",
        "links",
        "gates",
        "baseline",
        "schedule",
        "comparison",
        "where",
        "rail",
        "client",
        "server",
        "test",
        "value",
        "unit",
        "expected",
        "bound_by",
        "reason",
        "passes",
        "pass",
        "fail",
        "no_data",
        "basis",
        "cause",
        "counters",
        "link",
        "spread",
        "memory",
        "gpu",
        "gpu_memory",
        "node",
        "kind",
        "severity",
        "confidence",
        "trend",
        "host",
        "peer",
        "evidence",
        "text",
        "repeated",
        "reproduce",
        "name",
        "query",
        "found",
        "switch",
        "tests",
        "drivers",
        "driver",
        "firmware",
        "cluster",
        "version",
        "run",
        "scope",
        "versions",
        "endpoints",
        "subset",
        "only",
        "limit",
        "image",
        "resumed",
        "kernel",
        "perftest",
        "absence",
        "duplicate",
        "unsteady",
        "unmeasured",
        "readings",
        "first",
        "count",
        "fault",
    )
)
_SERIAL_KEY = re.compile(r"serial|machine_?id|uuid", re.IGNORECASE)

_PAIR, _QUAD = "[0-9A-Fa-f]{2}", "[0-9A-Fa-f]{4}"
_FREE, _ENDS = "(?<![0-9A-Fa-f])", "(?![0-9A-Fa-f])"
# A MAC has 6 pairs, an EUI-64 8, the hardware address of IPoIB 20; switches print quads with dots; enx holds one.
_MAC = (
    f"(?P<mac>{_FREE}{_PAIR}(?:(?::{_PAIR}){{5,}}|(?:-{_PAIR}){{5,}}){_ENDS}"
    rf"|{_FREE}{_QUAD}\.{_QUAD}\.{_QUAD}{_ENDS}|(?<=enx)[0-9a-f]{{12}}{_ENDS})"
)
_GUID = f"(?P<guid>{_FREE}{_QUAD}(?::{_QUAD}){{3}}{_ENDS}|0x[0-9A-Fa-f]{{16}}{_ENDS})"
# Names of hosts in clouds and of pods have the address with dashes.
_IP = r"(?P<ip>(?<!\d)\d{1,3}(?:(?:\.\d{1,3}){3}|(?:-\d{1,3}){3})(?!\d))"
_PLAIN = re.compile("|".join((_MAC, _GUID, _IP)))
# Whatever has two colons may hold an IPv6 address or a GID; the standard library decides.
_COLONS = re.compile(r"(?<!\w)[0-9A-Fa-f.]*(?::[0-9A-Fa-f.]*){2,}")
_SERIAL = re.compile(
    r"(?i:\b(?:serial(?:[ _-]?(?:number|no))?|s/?n|machine[ _-]?id)\b['\"]?\s*[:=#.]?\s*['\"]?)"
    r"(?P<value>(?=\S*\d)\w[\w-]*)"
    r"|\bMT\d{4}[A-Z]{1,2}\d{4,6}\b"
    r"|(?<![0-9A-Za-z])(?:[0-9A-Fa-f]{32}|[0-9A-Fa-f]{8}(?:-[0-9A-Fa-f]{4}){3}-[0-9A-Fa-f]{12})(?![0-9A-Za-z])"
)
_WORD = re.compile(r"\w+")
_NAME = re.compile(r"(?<![\w-])\w[\w.-]*")
_PSEUDONYM = re.compile(r"(?:host|address|mac|guid|serial)-\d+")


def kinds(asked: Any) -> tuple[str, ...]:
    """Return what is to be redacted: True for DEFAULT, or a list of KINDS. Raise InputError for anything else."""
    if isinstance(asked, bool) or asked is None:
        return DEFAULT if asked else ()
    names = asked if isinstance(asked, (list, tuple)) else [asked]
    unknown = [str(name) for name in names if name not in KINDS]
    if unknown:
        raise InputError(
            "redact: %s is not known; expected true, false or some of %s" % (", ".join(unknown), ", ".join(KINDS))
        )
    return tuple(names)


class Redactor:
    """Replaces in any nesting of dicts, lists and strings; keeps the pseudonyms that it gave."""

    def __init__(self, wanted: Sequence[str], values: Sequence[Any], hosts: Iterable[str]) -> None:
        """``wanted``: some of KINDS; ``values``: all that will be redacted; ``hosts``: the names of hosts."""
        self._addresses = "addresses" in wanted
        self._serials = "serials" in wanted
        self._given: dict[str, dict[str, str]] = {}
        names = sorted({name.casefold() for name in hosts}) if "hosts" in wanted else []
        width = len(str(len(names)))
        self._hosts = {name: "host-%0*d" % (width, number) for number, name in enumerate(names, 1)}
        known = set(_serials(values)) if self._serials else set()
        # Looked up word by word: one pattern of a thousand alternatives would take a minute.
        self._words = {value for value in known if _WORD.fullmatch(value)}
        self._odd = _any_of(sorted(known - self._words))
        self._seen: dict[tuple[str, bool], str] = {}

    def redact(self, value: Any) -> Any:
        """Return ``value`` with everything wanted replaced, keys of dicts too."""
        if isinstance(value, str):
            return self.text(value)
        if isinstance(value, dict):
            return {self.text(str(key), str(key) in _OURS): self._item(str(key), item) for key, item in value.items()}
        if isinstance(value, (list, tuple)):
            return [self.redact(item) for item in value]
        return value

    def text(self, text: str, ours: bool = False) -> str:
        """Return one string with everything wanted replaced; no host's name in a word of ``ours``."""
        key = (text, ours)
        if key not in self._seen:
            self._seen[key] = self._replaced(text, ours)
        return self._seen[key]

    def _replaced(self, text: str, ours: bool) -> str:
        if self._hosts and not ours:
            text = _NAME.sub(self._host, text)
        if self._serials:
            if self._odd:
                text = self._odd.sub(lambda match: self._name("serial", match[0]), text)
            if self._words:
                text = _WORD.sub(self._word, text)
            text = _SERIAL.sub(self._serial, text)
        if self._addresses:
            text = _PLAIN.sub(self._address, _COLONS.sub(self._colons, text))
        return text

    def _item(self, key: str, value: Any) -> Any:
        if isinstance(value, str):
            return value if value in _OURS else self.text(value)
        # Serial numbers may be numbers; all else that is a number stays.
        if isinstance(value, int) and not isinstance(value, bool) and self._serials and _SERIAL_KEY.search(key):
            return self._name("serial", str(value))
        return self.redact(value)

    def _name(self, kind: str, value: str) -> str:
        names = self._given.setdefault(kind, {})
        return names.setdefault(value, "%s-%d" % (kind, len(names) + 1))

    def _host(self, match: re.Match[str]) -> str:
        """Replace a host's name, also where a domain or the dot of a sentence follows."""
        parts = match[0].split(".")
        for end in range(len(parts), 0, -1):
            name = ".".join(parts[:end]).rstrip("-")
            if name.casefold() in self._hosts:
                return self._hosts[name.casefold()] + match[0][len(name) :]
        return match[0]

    def _word(self, match: re.Match[str]) -> str:
        return self._name("serial", match[0]) if match[0] in self._words else match[0]

    def _serial(self, match: re.Match[str]) -> str:
        found = match["value"] or match[0]
        if _PSEUDONYM.fullmatch(found):
            return match[0]
        return match[0][: -len(found)] + self._name("serial", found)

    def _address(self, match: re.Match[str]) -> str:
        if match["mac"]:
            return self._name("mac", re.sub(r"[^0-9a-f]", "", match["mac"].lower()))
        if match["guid"]:
            return self._name("guid", match["guid"].lower().replace("0x", "").replace(":", ""))
        return self._name("address", match["ip"].replace("-", "."))

    def _colons(self, match: re.Match[str]) -> str:
        """Replace the longest IPv6 addresses in a run of groups; a PCI address or a time of day has none."""
        groups = match[0].split(":")
        done: list[str] = []
        at = 0
        while at < len(groups):
            end = next((end for end in range(len(groups), at + 2, -1) if _ipv6(groups[at:end])), 0)
            done.append(self._name("address", _ipv6(groups[at:end])) if end else groups[at])
            at = end or at + 1
        return ":".join(done)


def _ipv6(groups: Sequence[str]) -> str:
    """Return the canonical text of the address in ``groups`` (of its IPv4 form if it maps one), "" for none."""
    text = ":".join(groups).rstrip(".")
    # Eight pairs are a hardware address, though IPv6 could be written so.
    if not text.strip(":") or all(len(group) == 2 for group in groups):
        return ""
    try:
        address = ipaddress.IPv6Address(text)
    except ValueError:
        return ""
    return str(address.ipv4_mapped or address)


def _any_of(values: Sequence[str]) -> re.Pattern[str] | None:
    """Return a pattern for any of the values, the longest first; None without values."""
    words = "|".join(re.escape(value) for value in sorted(values, key=len, reverse=True))
    return re.compile(words) if words else None


def _serials(value: Any, below: bool = False) -> Iterator[str]:
    """Yield the values of keys that are called after a serial number, however deep."""
    if isinstance(value, dict):
        for key, item in value.items():
            yield from _serials(item, below or bool(_SERIAL_KEY.search(str(key))))
    elif isinstance(value, (list, tuple)):
        for item in value:
            yield from _serials(item, below)
    elif below and isinstance(value, (str, int)) and not isinstance(value, bool) and len(str(value)) > 3:
        yield str(value)
