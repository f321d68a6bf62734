# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What mlxconfig and mstconfig print, and values of firmware settings. Pure.

Source of the forms: mlxconfig/mlxcfg_ui.cpp of mstflint, and outputs in tests/fixtures/firmware.
"""

from __future__ import annotations

import dataclasses
import re
from collections.abc import Mapping
from typing import Any

from ..._common.errors import InputError, ParseError
from ..system import json_text

_COLUMNS = {"Default": "default", "Current": "current", "Next Boot": "next"}
_ROW = re.compile(r"(?P<star>\*)?\s*(?P<ro>RO)?\s+(?P<name>[A-Z][A-Z0-9_]\w*(\[\d+\])?)\s+(?P<values>\S.*)")
_NAME = re.compile(r"(?P<base>[A-Z][A-Z0-9_]\w*)(\[(?P<first>\d{1,4})(\.\.(?P<last>\d{1,4}))?\])?")
_LABELLED = re.compile(r"(?P<label>[^()]*)\((?P<number>\d{1,20})\)")
# A whole value as the tools take it: a word, or a number in two notations.
_VALUE = re.compile(r"[\w.:-]+(\(\d+\))?")
_UNKNOWN = re.compile(r"(?:doesn't support (?P<a>\S+) parameter|Unknown [Pp]arameter:? (?P<b>\S+)|name '(?P<c>\S+)')")
_TRUTH = {"true": 1, "false": 0}


@dataclasses.dataclass(frozen=True)
class Setting:
    """One parameter of a device as text; None where the tool does not tell. ``next`` is what the next boot loads."""

    default: str | None
    current: str | None
    next: str | None
    read_only: bool = False


def parse_query(text: str) -> dict[str, Setting]:
    """Return parameter -> setting from what ``-e -d DEVICE query`` prints or writes as JSON; ParseError otherwise."""
    if text.lstrip().startswith("{"):
        return _parse_json(text)
    lines = iter(text.splitlines())
    columns = next((found for found in map(_header, lines) if found), None)
    if columns is None:
        raise ParseError(f"the tool's output contains no configuration: {_said(text)}")
    found = {}
    for line in lines:
        if line.startswith(("Device #", "-E-")):
            break
        row = _ROW.fullmatch(line.rstrip())
        if row:
            found[row["name"]] = _setting(row, columns)
    return found


def unknown_parameter(text: str) -> str | None:
    """Return the parameter that a device does not know, of what the tool says when it refuses; None for other words."""
    match = _UNKNOWN.search(text)
    return match["a"] or match["b"] or match["c"] if match else None


def number(text: str | None) -> int | None:
    """Return the number of a value: ``True(1)`` is 1, ``16`` is 16, ``0x10`` is 16; None when it has none."""
    text = (text or "").strip()
    match = _LABELLED.fullmatch(text)
    if match:
        return int(match["number"])
    if text.lower() in _TRUTH:
        return _TRUTH[text.lower()]
    try:
        return int(text, 16) if text.lower().startswith("0x") else int(text)
    except ValueError:
        return None


def same(one: str | None, other: str | None) -> bool:
    """Whether two values are the same: by number when both have one, otherwise by name."""
    if one is None or other is None:
        return False
    numbers = number(one), number(other)
    if None not in numbers:
        return numbers[0] == numbers[1]
    return _label(one) == _label(other)


def wanted_values(settings: Mapping[str, Any]) -> dict[str, str]:
    """Return parameter -> text to set, with ranges of arrays laid out; InputError names the setting.

    ``NAME[0..3]`` takes one value for all four elements, or a list of four.
    """
    found: dict[str, str] = {}
    for name, value in settings.items():
        match = _NAME.fullmatch(str(name))
        if not match:
            raise InputError(f"'{name}' is not the name of a firmware parameter; expected one such as NUM_OF_VFS")
        elements = _elements(match)
        values = value if isinstance(value, list) else [value] * len(elements)
        if len(values) != len(elements):
            raise InputError(f"{name} has {len(values)} values; expected {len(elements)}, or one for all")
        found.update({element: plain(element, one) for element, one in zip(elements, values)})
    return found


def plain(name: str, value: Any) -> str:
    """Return a value as the tool takes it: a number where there is one; InputError for what is no value."""
    if isinstance(value, bool):
        return str(int(value))
    text = str(value).strip() if isinstance(value, (int, str)) else ""
    if not _VALUE.fullmatch(text):
        raise InputError(f"{name}: {value!r} is not a value; expected true or false, a number, or a name such as ETH")
    known = number(text)
    return text if known is None else str(known)


def _elements(match: re.Match[str]) -> list[str]:
    base, first, last = match["base"], match["first"], match["last"]
    if first is None:
        return [base]
    elements = [f"{base}[{index}]" for index in range(int(first), int(last or first) + 1)]
    if not elements:
        raise InputError(f"{match[0]} is an empty range: write the smaller index first")
    return elements


def _header(line: str) -> list[str]:
    words = re.split(r"\s{2,}", line.strip())
    if words[0] != "Configurations:" or not all(word in _COLUMNS for word in words[1:]):
        return []
    return [_COLUMNS[word] for word in words[1:]]


def _setting(row: re.Match[str], columns: list[str]) -> Setting:
    values = row["values"].split()
    if len(values) != len(columns):
        # Names of values have no blanks; should one have, columns are two blanks apart.
        values = re.split(r"\s{2,}", row["values"])
    if len(values) != len(columns):
        raise ParseError(f"{row['name']} has {len(values)} values in {len(columns)} columns: {row[0].strip()[:120]}")
    by_column = dict(zip(columns, map(_known, values)))
    return Setting(by_column.get("default"), by_column.get("current"), by_column.get("next"), bool(row["ro"]))


def _parse_json(text: str) -> dict[str, Setting]:
    try:
        devices = json_text.loads(text)
        return {
            name: Setting(
                _text(entry.get("default_value")),
                _text(entry.get("current_value")),
                _text(entry.get("next_value")),
                bool(entry.get("read_only")),
            )
            for device in devices.values()
            for name, entry in device["tlv_configuration"].items()
        }
    except (ValueError, KeyError, TypeError, AttributeError, RecursionError) as error:
        raise ParseError(f"the tool's JSON cannot be read: {error!r}"[:300]) from error


def _text(value: Any) -> str | None:
    return None if value is None else _known(str(value))


def _known(text: str) -> str | None:
    return None if text == "N/A" else text


def _label(text: str) -> str:
    return text.strip().partition("(")[0].lower()


def _said(text: str) -> str:
    lines = [line.strip() for line in text.splitlines() if line.strip()]
    return (next((line for line in lines if line.startswith("-E-")), lines[-1] if lines else "nothing"))[:200]
