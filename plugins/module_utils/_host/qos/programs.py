# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The programs that show and set settings of a port: one function per program makes a ``Program`` for a setting.

A value that a program does not print is None.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any

from ..._common.errors import ParseError
from ..system import json_text
from .setting import CLASSES, Limits, Program

MLNX_QOS, DCB, ETHTOOL = "mlnx_qos", "dcb", "ethtool"
# ethtool exits with these when the device already has the settings.
_UNCHANGED = (78, 80)
_ROW = r"((?:\s+\d+){8})\s*$"
_MLNX_TC = re.compile(r"^tc:\s*(\d)\s.*\btsa:\s*(\w+)(?:,\s*bw:\s*(\d+)%)?")
_MLNX_PRIORITY = re.compile(r"^\s+priority:\s*(\d)\s*$")
_ETHTOOL_LINE = re.compile(r"^(RX|TX):\s*(\S+)\s*$", re.MULTILINE)


def parse(program: Program, setting: str, text: str) -> Any:
    """Return the value of a setting from the output of its program; ParseError when the output does not have it."""
    try:
        return program.parse(text)
    except (ValueError, KeyError, TypeError, AttributeError, IndexError) as error:
        raise ParseError(f"the output of {program.name} does not contain '{setting}': {error!r}") from error


def mlnx_qos(read: Callable[[str], Any], options: Callable[[Any], list[str]]) -> Program:
    """Return mlnx_qos of NVIDIA's drivers for a setting; one call of it shows all settings."""
    return Program(
        name=MLNX_QOS,
        read_argv=lambda netdev: [MLNX_QOS, "-i", netdev],
        parse=read,
        set_argv=lambda netdev, value: [MLNX_QOS, "-i", netdev, *options(value)],
        title=MLNX_QOS,
        feature="DCB",
        drivers="mlx",
    )


def dcb(kind: str, read: Callable[[Any], Any], words: Callable[[Any], tuple[str, list[str]]]) -> Program:
    """Return dcb of iproute2 for its object ``kind``; ``words`` are the command for a value, and its arguments."""

    def set_argv(netdev: str, value: Any) -> list[str]:
        command, arguments = words(value)
        return [DCB, kind, command, "dev", netdev, *arguments]

    return Program(
        name=DCB,
        read_argv=lambda netdev: [DCB, "-j", kind, "show", "dev", netdev],
        parse=lambda text: read(json_text.loads(text) if text.strip() else {}),
        set_argv=set_argv,
        title="dcb (iproute2)",
        feature="DCB",
    )


def ethtool(letter: str, feature: str, read: Callable[[str], Any], *, limits: Limits | None = None) -> Program:
    """Return ethtool for a dict of parameters: ``letter`` is the option that shows them, its capital sets them."""

    def set_argv(netdev: str, value: Mapping[str, Any]) -> list[str]:
        pairs = ((key.replace("_", "-"), _on_off(one)) for key, one in value.items())
        return [ETHTOOL, f"-{letter.upper()}", netdev, *(word for pair in pairs for word in pair)]

    return Program(
        name=ETHTOOL,
        read_argv=lambda netdev: [ETHTOOL, f"-{letter}", netdev],
        parse=read,
        set_argv=set_argv,
        title=ETHTOOL,
        feature=feature,
        limits=limits,
        unchanged=_UNCHANGED,
    )


def ring_limits(text: str) -> dict[str, int]:
    """Return the largest rings that ``ethtool -g`` shows, without those that it does not know."""
    largest = _ETHTOOL_LINE.findall(text.partition("Current hardware settings")[0])
    return {key.lower(): int(value) for key, value in largest if value.isdecimal() and len(value) < 10}


def rings(text: str) -> dict[str, int]:
    """Return the current rings that ``ethtool -g`` shows."""
    found = _ethtool_lines(text.partition("Current hardware settings")[2])
    return {key: int(found[key]) for key in ("rx", "tx")}


def pause(text: str) -> dict[str, bool]:
    """Return global pause as ``ethtool -a`` shows it."""
    found = _ethtool_lines(text)
    return {key: {"on": True, "off": False}[found[key]] for key in ("rx", "tx")}


def mlnx_trust(text: str) -> str:
    """Return what mlnx_qos shows as the trust state."""
    return _line(text, r"^Priority trust state:\s*(\w+)\s*$")


def mlnx_pfc(text: str) -> list[int]:
    """Return the priorities with PFC."""
    return [index for index, on in enumerate(_numbers(_line(text, rf"^\s*enabled{_ROW}"))) if on]


def mlnx_buffer(text: str) -> dict[str, list[int]]:
    """Return the receive buffers."""
    sizes = _line(text, r"^Receive buffer size \(bytes\):\s*((?:\d+,){8})")
    return {
        "size": [int(size) for size in sizes.split(",")[:CLASSES]],
        "priorities": _numbers(_line(text, rf"^\s*buffer{_ROW}")),
    }


def mlnx_ets(text: str) -> dict[str, list[Any]]:
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


def mlnx_lists(**options: str) -> Callable[[Any], list[str]]:
    """Return a function that turns a dict of lists into options of mlnx_qos; ``options`` are key -> option."""
    # A class without a priority is not printed; it gets what a class has at first.
    unknown = {"tsa": "vendor"}

    def words(value: Mapping[str, Sequence[Any]]) -> list[str]:
        return [
            word
            for key, option in options.items()
            if key in value
            for word in (option, ",".join(str(unknown.get(key, 0) if one is None else one) for one in value[key]))
        ]

    return words


def dcb_trust(entry: Any) -> str:
    """Return what a driver trusts: DSCP as long as its table of applications has an entry for one."""
    return "dscp" if entry.get("dscp_prio") else "pcp"


def dcb_trust_words(value: str) -> tuple[str, list[str]]:
    """Return the usual map: the upper three bits of the DSCP are the priority."""
    if value == "dscp":
        return "replace", ["dscp-prio", *(f"{dscp}:{dscp >> 3}" for dscp in range(64))]
    return "flush", ["dscp-prio"]


def dcb_pfc(entry: Any) -> list[int]:
    """Return the priorities with PFC."""
    return [index for index, on in enumerate(_list(entry, "prio_pfc", bool)) if on]


def dcb_buffer(entry: Any) -> dict[str, list[Any]]:
    """Return the receive buffers."""
    return {"size": _list(entry, "buffer_size", int), "priorities": _list(entry, "prio_buffer", int)}


def dcb_ets(entry: Any) -> dict[str, list[Any]]:
    """Return ETS."""
    return {
        "tsa": _list(entry, "tc_tsa", str),
        "bandwidth": _list(entry, "tc_bw", int),
        "priorities": _list(entry, "prio_tc", int),
    }


def dcb_lists(**words: str) -> Callable[[Any], tuple[str, list[str]]]:
    """Return a function that turns a dict of lists into arguments of dcb; None leaves a class as it is."""

    def arguments(value: Mapping[str, Sequence[Any]]) -> tuple[str, list[str]]:
        maps = [[word, *_map(value[key])] for key, word in words.items() if key in value]
        return "set", [word for one in maps for word in one]

    return arguments


def _map(values: Sequence[Any]) -> Iterable[str]:
    return (f"{index}:{one}" for index, one in enumerate(values) if one is not None)


def _list(entry: Any, key: str, kind: type) -> list[Any]:
    found = entry[key]
    if not isinstance(found, list) or len(found) != CLASSES or not all(isinstance(one, kind) for one in found):
        raise ValueError(f"'{key}' is not a list of {CLASSES} values")
    return found


def _on_off(value: Any) -> str:
    return ("on" if value else "off") if isinstance(value, bool) else str(value)


def _ethtool_lines(text: str) -> dict[str, str]:
    return {key.lower(): value for key, value in _ETHTOOL_LINE.findall(text)}


def _line(text: str, pattern: str) -> str:
    match = re.search(pattern, text, re.MULTILINE)
    if not match:
        raise ValueError(f"no line like {pattern}")
    return match.group(1)


def _numbers(text: str) -> list[int]:
    return [int(word) for word in text.split()]
