# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What one side of a contact of the mesh printed: ping of iputils, ibv_rc_pingpong, and the neighbor's MAC address.

Whoever printed it may be broken or hostile: nothing but numbers, MAC addresses and known sentences is taken over.
"""

from __future__ import annotations

import re
from typing import NamedTuple

from ...intent.typed import plain
from .perftest import KILLED, MISSED, Run

# How far an RDMA connection came. SILENT: no side met the other one, or the time was over.
CONNECTED, BROKEN, SILENT, UNCHECKED = "connected", "broken", "silent", "unchecked"
# No answer to the question which MAC address has the peer's address.
NO_NEIGHBOUR = "none"
_MAC = r"[0-9a-f]{2}(?::[0-9a-f]{2}){5}"
_HEAD = re.compile(rf"mesh mac=(?P<mac>{_MAC}|-) neighbour=(?P<neighbour>{_MAC}|none|-)")
_PING = re.compile(r"ping size=(\d{1,5}) rc=(\d{1,3})")
_CONNECT = re.compile(r"connect rc=(\d{1,3})")
_COUNT = re.compile(r"^(\d{1,4}) packets transmitted, (\d{1,4}) (?:packets )?received", re.MULTILINE)
_NO_ROUTE = re.compile(r"Network is unreachable|No route to host|Network unreachable")
# What the tester says instead of a program that is missing, or that it cannot use.
_OWN = re.compile(r"gpufabric: (.*)")
_UNUSABLE = re.compile(
    r"Operation not permitted|Permission denied|Cannot assign requested address|No such device|Unknown interface"
)
# What ibv_rc_pingpong fails on by itself.
_OF_DEVICE = re.compile(
    r"No IB devices found|Failed to get IB devices list|"
    r"IB device \S{1,64} not found|Couldn't (?:get|open|allocate|create|register|listen|change)"
    r" [^\n]{1,80}|Failed to modify QP to INIT"
)
_OF_PATH = re.compile(r"Failed status [a-zA-Z -]{1,60}\(\d{1,2}\)|Failed to modify QP to RT[RS]")


class Ping(NamedTuple):
    """Packets of ``size`` bytes. ``why``: why none could be sent; ``routed``: False when the kernel has no route."""

    size: int
    sent: int = 0
    received: int = 0
    why: str = ""
    routed: bool = True

    @property
    def lost(self) -> bool:
        """Whether packets were sent and none was answered."""
        return self.sent > 0 and not self.received


class Side(NamedTuple):
    """One side: its own MAC address and the one it has for the peer's address ("" unknown), pings, RDMA connection.

    ``small``: tried where large packets were lost. ``why``: of a connection that is BROKEN or UNCHECKED.
    """

    mac: str = ""
    neighbour: str = ""
    large: Ping | None = None
    small: Ping | None = None
    connection: str = UNCHECKED
    why: str = ""

    @property
    def dead(self) -> bool:
        """Whether no packet of any size was answered, or there is no route for any."""
        tried = [ping for ping in (self.large, self.small) if ping]
        return bool(tried) and all(ping.lost or not ping.routed for ping in tried)

    @property
    def answered(self) -> bool:
        """Whether a packet of any size was answered."""
        return any(ping.received for ping in (self.large, self.small) if ping)

    @property
    def too_large(self) -> bool:
        """Whether large packets were lost and small ones answered."""
        return bool(self.large and self.small and self.large.lost and self.small.received)


def parse(run: Run | None) -> Side | None:
    """Return what a side printed; None when it says nothing about the contact: no log, too late, killed."""
    if run is None or run.rc == KILLED or (run.late or 0.0) >= MISSED:
        return None
    head = _HEAD.search(run.text)
    if not head:
        told = _OWN.search(run.text)
        return Side(why=plain(told[1], 200)) if told else None
    pings: list[Ping | None] = [*map(_ping, _parts(run.text, _PING)), None, None]
    connection, why = UNCHECKED, ""
    for match, text in _parts(run.text, _CONNECT):
        connection, why = _connection(int(match[1]), text)
    mac, neighbour = (head[name].replace("-", "") for name in ("mac", "neighbour"))
    return Side(mac, neighbour, pings[0], pings[1], connection, why)


def _parts(text: str, title: re.Pattern[str]) -> list[tuple[re.Match[str], str]]:
    """Return the titles of a kind with the text below each, up to the next title of any kind."""
    found: list[tuple[re.Match[str], list[str]]] = []
    inside = False
    for line in text.split("\n"):
        if match := title.fullmatch(line):
            found.append((match, []))
            inside = True
        elif _PING.fullmatch(line) or _CONNECT.fullmatch(line) or _HEAD.fullmatch(line):
            inside = False
        elif inside:
            found[-1][1].append(line)
    return [(match, "\n".join(lines)) for match, lines in found]


def _ping(part: tuple[re.Match[str], str]) -> Ping:
    match, text = part
    size, rc = int(match[1]), int(match[2])
    own, count = _OWN.search(text), _COUNT.search(text)
    if own:
        return Ping(size, why=plain(own[1], 200))
    # The tester looks up the route of packets that were not answered: ping itself only counts them.
    if _NO_ROUTE.search(text) and not (count and int(count[2])):
        return Ping(size, routed=False)
    if count:
        sent, received = int(count[1]), int(count[2])
        return Ping(size, sent, min(sent, received))
    unusable = _UNUSABLE.search(text)
    return Ping(size, why=f"ping: {unusable[0] if unusable else f'exit code {rc}'}")


def _connection(rc: int, text: str) -> tuple[str, str]:
    if rc == 0 and " bytes in " in text:
        return CONNECTED, ""
    own = _OWN.search(text) or _OF_DEVICE.search(text)
    if own:
        return UNCHECKED, plain(own[own.re.groups], 200)
    broken = _OF_PATH.search(text)
    return (BROKEN, broken[0]) if broken else (SILENT, "")
