# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""QoS of a port by a program: mlnx_qos or dcb (iproute2) for what DCB covers, ethtool for rings and pause.

Each program's output is read as it prints it; a value that a program does not tell is None.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from typing import Any

from ..._common.errors import ParseError
from ..system import json_text
from .settings import CLASSES

MLNX_QOS, DCB, ETHTOOL = "mlnx_qos", "dcb", "ethtool"
DCB_SETTINGS = ("trust", "buffer", "ets", "pfc")
# Setting -> option of ethtool that shows it; the capital letter sets it.
ETHTOOL_SETTINGS = {"rings": "g", "pause": "a"}
_OBJECTS = {"trust": "app", "buffer": "buffer", "ets": "ets", "pfc": "pfc"}
_ROW = r"((?:\s+\d+){8})\s*$"
_MLNX_TC = re.compile(r"^tc:\s*(\d)\s.*\btsa:\s*(\w+)(?:,\s*bw:\s*(\d+)%)?")
_MLNX_PRIORITY = re.compile(r"^\s+priority:\s*(\d)\s*$")
_ETHTOOL_LINE = re.compile(r"^(RX|TX):\s*(\S+)\s*$", re.MULTILINE)


def read_argv(tool: str, netdev: str, setting: str) -> list[str]:
    """Return the command that shows a setting."""
    if tool == ETHTOOL:
        return [ETHTOOL, f"-{ETHTOOL_SETTINGS[setting]}", netdev]
    if tool == MLNX_QOS:
        return [MLNX_QOS, "-i", netdev]
    return [DCB, "-j", _OBJECTS[setting], "show", "dev", netdev]


def parse(tool: str, setting: str, text: str) -> Any:
    """Return the value of a setting; ParseError when the output does not tell it."""
    try:
        if tool == ETHTOOL:
            return _parse_ethtool(setting, text)
        return _parse_mlnx_qos(setting, text) if tool == MLNX_QOS else _parse_dcb(setting, text)
    except (ValueError, KeyError, TypeError, AttributeError, IndexError) as error:
        raise ParseError(f"the output of {tool} does not tell '{setting}': {error!r}") from error


def ring_limits(text: str) -> dict[str, int]:
    """Return the largest rings that ``ethtool -g`` shows, without those that it does not know."""
    largest = _ETHTOOL_LINE.findall(text.partition("Current hardware settings")[0])
    return {key.lower(): int(value) for key, value in largest if value.isdecimal() and len(value) < 10}


def set_argv(tool: str, netdev: str, setting: str, value: Any) -> list[str]:
    """Return the command that sets a setting; None in a list leaves that class as it is."""
    if tool == ETHTOOL:
        words = {True: "on", False: "off"}
        pairs = [[key, str(words.get(one, one) if setting == "pause" else one)] for key, one in value.items()]
        return [ETHTOOL, f"-{ETHTOOL_SETTINGS[setting].upper()}", netdev, *(word for pair in pairs for word in pair)]
    if tool == MLNX_QOS:
        return [MLNX_QOS, "-i", netdev, *_mlnx_qos_options(setting, value)]
    return _dcb_command(netdev, setting, value)


def _parse_ethtool(setting: str, text: str) -> dict[str, Any]:
    current = text.partition("Current hardware settings")[2] if setting == "rings" else text
    found = {key.lower(): value for key, value in _ETHTOOL_LINE.findall(current)}
    if setting == "rings":
        return {key: int(found[key]) for key in ("rx", "tx")}
    return {key: {"on": True, "off": False}[found[key]] for key in ("rx", "tx")}


def _parse_mlnx_qos(setting: str, text: str) -> Any:
    if setting == "trust":
        return _line(text, r"^Priority trust state:\s*(\w+)\s*$")
    if setting == "pfc":
        return [index for index, on in enumerate(_numbers(_line(text, rf"^\s*enabled{_ROW}"))) if on]
    if setting == "buffer":
        sizes = _line(text, r"^Receive buffer size \(bytes\):\s*((?:\d+,){8})")
        return {
            "size": [int(size) for size in sizes.split(",")[:CLASSES]],
            "priorities": _numbers(_line(text, rf"^\s*buffer{_ROW}")),
        }
    return _parse_mlnx_classes(text)


def _parse_mlnx_classes(text: str) -> dict[str, list[Any]]:
    """Return ETS; a class without a priority is not printed, and so is None."""
    found: dict[str, list[Any]] = {key: [None] * CLASSES for key in ("tsa", "bandwidth", "priorities")}
    current = -1
    for line in text.splitlines():
        start, member = _MLNX_TC.match(line), _MLNX_PRIORITY.match(line)
        if start:
            current = int(start.group(1))
            found["tsa"][current] = start.group(2)
            found["bandwidth"][current] = int(start.group(3) or 0)
        elif member and current >= 0:
            found["priorities"][int(member.group(1))] = current
    if current < 0:
        raise ValueError("no line 'tc: N'")
    return found


def _parse_dcb(setting: str, text: str) -> Any:
    entry = json_text.loads(text) if text.strip() else {}
    if setting == "trust":
        # A driver trusts DSCP as long as its table of applications has an entry for one.
        return "dscp" if entry.get("dscp_prio") else "pcp"
    if setting == "pfc":
        return [index for index, on in enumerate(_list(entry, "prio_pfc", bool)) if on]
    if setting == "buffer":
        return {"size": _list(entry, "buffer_size", int), "priorities": _list(entry, "prio_buffer", int)}
    return {
        "tsa": _list(entry, "tc_tsa", str),
        "bandwidth": _list(entry, "tc_bw", int),
        "priorities": _list(entry, "prio_tc", int),
    }


def _mlnx_qos_options(setting: str, value: Any) -> list[str]:
    if setting == "trust":
        return ["--trust", value]
    if setting == "pfc":
        return ["--pfc", ",".join("1" if index in value else "0" for index in range(CLASSES))]
    names = {"tsa": "--tsa", "bandwidth": "--tcbw", "priorities": "--prio_tc"}
    if setting == "buffer":
        names = {"priorities": "--prio2buffer", "size": "--buffer_size"}
    # A class that nobody mapped a priority to was not told; it gets what a class has at first.
    unknown = {"tsa": "vendor", "bandwidth": 0, "priorities": 0, "size": 0}
    return [
        word
        for key, option in names.items()
        if key in value
        for word in (option, ",".join(str(unknown[key] if one is None else one) for one in value[key]))
    ]


def _dcb_command(netdev: str, setting: str, value: Any) -> list[str]:
    tool = [DCB, _OBJECTS[setting]]
    if setting == "trust":
        # The usual map: the upper three bits of the DSCP are the priority.
        table = [f"{dscp}:{dscp >> 3}" for dscp in range(64)]
        return (
            [*tool, "replace", "dev", netdev, "dscp-prio", *table]
            if value == "dscp"
            else [
                *tool,
                "flush",
                "dev",
                netdev,
                "dscp-prio",
            ]
        )
    if setting == "pfc":
        return [*tool, "set", "dev", netdev, "prio-pfc", "all:off", *(f"{priority}:on" for priority in value)]
    names = {"tsa": "tc-tsa", "bandwidth": "tc-bw", "priorities": "prio-tc"}
    if setting == "buffer":
        names = {"priorities": "prio-buffer", "size": "buffer-size"}
    maps = [[word, *_map(value[key])] for key, word in names.items() if key in value]
    return [*tool, "set", "dev", netdev, *(word for one in maps for word in one)]


def _map(values: Sequence[Any]) -> Iterable[str]:
    return (f"{index}:{one}" for index, one in enumerate(values) if one is not None)


def _list(entry: Any, key: str, kind: type) -> list[Any]:
    found = entry[key]
    if not isinstance(found, list) or len(found) != CLASSES or not all(isinstance(one, kind) for one in found):
        raise ValueError(f"'{key}' is not a list of {CLASSES}")
    return found


def _line(text: str, pattern: str) -> str:
    match = re.search(pattern, text, re.MULTILINE)
    if not match:
        raise ValueError(f"no line like {pattern}")
    return match.group(1)


def _numbers(text: str) -> list[int]:
    return [int(word) for word in text.split()]
