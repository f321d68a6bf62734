# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Established TCP connections in /proc/net/tcp and tcp6. Pure."""

from __future__ import annotations

import dataclasses
import ipaddress
from collections.abc import Collection, Iterable, Iterator
from typing import Any

_ESTABLISHED = "01"
# Connections that a use names beside their number.
EXAMPLES = 2


@dataclasses.dataclass(frozen=True)
class Connections:
    """The established TCP connections of a local address."""

    count: int
    examples: tuple[str, ...]


def fold_connections(lines: Iterable[str], found: dict[str, Connections]) -> None:
    """Add the established connections of /proc/net/tcp or tcp6, by local address; loopback is left out."""
    for line in lines:
        fields = line.split(None, 4)
        if len(fields) < 4 or fields[3] != _ESTABLISHED:
            continue
        local, port = _endpoint(fields[1])
        if ipaddress.ip_address(local).is_loopback:
            continue
        known = found.get(local, Connections(0, ()))
        examples = known.examples
        if len(examples) < EXAMPLES:
            peer, peer_port = _endpoint(fields[2])
            examples = (*examples, f"{local} port {port} with {peer} port {peer_port}")
        found[local] = Connections(known.count + 1, examples)


def sockets(lines: Iterable[str], addresses: Collection[str]) -> Iterator[tuple[str, str]]:
    """Yield local address and inode of the established connections of ``addresses`` in /proc/net/tcp or tcp6."""
    for fields in (line.split(None, 10) for line in lines):
        if len(fields) >= 10 and fields[3] == _ESTABLISHED:
            local, _port = _endpoint(fields[1])
            if local in addresses:
                yield local, fields[9]


def _endpoint(text: str) -> tuple[str, int]:
    """Return address and port of a word like 0B01010A:0016; all supported machines are little endian."""
    words, _colon, port = text.partition(":")
    raw = bytes.fromhex(words)
    packed = b"".join(raw[start : start + 4][::-1] for start in range(0, len(raw), 4))
    address: Any = ipaddress.ip_address(packed)
    mapped = getattr(address, "ipv4_mapped", None)
    return str(mapped or address), int(port, 16)
