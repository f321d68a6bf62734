# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The decisions of the rails' switch: where a frame goes, and when it leaves.

Pure: no sockets and no clock. A port is (rail, host number); each rail is a network of its own.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass

Port = tuple[int, int]

#: What QEMU puts before each frame on a stream: its length.
HEADER_BYTES = 4
#: The largest frame of a rail, with jumbo frames on.
MAX_FRAME = 9018
_ADDRESS_BYTES = 6


@dataclass(frozen=True)
class Impairment:
    """What is wrong with a port. Everything but the last two applies to both directions.

    max_frame: longest frame that passes, in bytes; longer ones vanish.
    loss: part of the frames that vanish, 0 to 1; loss_in and loss_out: of those to the host, and of those from it.
    rate: bits per second that pass; 0 is no limit.
    """

    max_frame: int = MAX_FRAME
    loss: float = 0.0
    rate: float = 0.0
    loss_in: float = 0.0
    loss_out: float = 0.0


HEALTHY = Impairment()


class Switch:
    """A learning switch with ports that may be impaired."""

    def __init__(self, ports: Iterable[Port], random: Callable[[], float]) -> None:
        self.ports = frozenset(ports)
        self.impairments: dict[Port, Impairment] = {}
        self.swapped: frozenset[int] = frozenset()
        self._random = random
        self._places: dict[tuple[int, bytes], Port] = {}

    def targets(self, source: Port, frame: bytes | memoryview) -> list[Port]:
        """The ports that a frame from `source` leaves by; empty when it is lost."""
        rail = source[0]
        self._places[rail, bytes(frame[_ADDRESS_BYTES : 2 * _ADDRESS_BYTES])] = source
        place = self._places.get((rail, bytes(frame[:_ADDRESS_BYTES])))
        chosen = [place] if place else [port for port in self.ports if port[0] == rail]
        if not self._passes(source, len(frame), inbound=False):
            return []
        return [port for port in chosen if port != source and self._passes(port, len(frame), inbound=True)]

    def cross(self, hosts: Iterable[int]) -> None:
        """Exchange the cables of these hosts' first and last rail; like a pulled cable, that makes places unknown."""
        if self.swapped != frozenset(hosts):
            self.swapped = frozenset(hosts)
            self._places.clear()

    def wired(self, port: Port) -> Port:
        """The port of the switch behind a port of a host, or the other way round."""
        rails = sorted({rail for rail, _host in self.ports})
        return (rails[-1 - rails.index(port[0])], port[1]) if port[1] in self.swapped else port

    def rate(self, port: Port) -> float:
        """Bits per second that a port lets through; 0 is no limit."""
        return self.impairments.get(port, HEALTHY).rate

    def _passes(self, port: Port, length: int, *, inbound: bool) -> bool:
        """Whether a frame passes a port; `inbound`: towards its host."""
        fault = self.impairments.get(port)
        if fault is None:
            return True
        lost = max(fault.loss, fault.loss_in if inbound else fault.loss_out)
        return length <= fault.max_frame and not (lost and self._random() < lost)


class Pacer:
    """Frames that wait for their turn on a slow direction of a port."""

    def __init__(self) -> None:
        self._free_at = 0.0

    def leave_at(self, now: float, length: int, rate: float) -> float:
        """When a frame that came now is through; each waits for the one before."""
        if not rate:
            return max(now, self._free_at)
        self._free_at = max(now, self._free_at) + length * 8 / rate
        return self._free_at


def split_frames(buffer: bytearray) -> list[bytes]:
    """Take the complete frames off the front of what came from a QEMU stream."""
    frames = []
    start = 0
    while len(buffer) - start >= HEADER_BYTES:
        end = start + HEADER_BYTES + int.from_bytes(buffer[start : start + HEADER_BYTES], "big")
        if end > len(buffer):
            break
        frames.append(bytes(buffer[start + HEADER_BYTES : end]))
        start = end
    del buffer[:start]
    return frames


def join_frame(frame: bytes) -> bytes:
    """A frame as QEMU wants it on a stream."""
    return len(frame).to_bytes(HEADER_BYTES, "big") + frame
