# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The kinds of tests: one entry per kind, asked by everything that depends on what a test does."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TypeVar

# A port or a host.
_Side = TypeVar("_Side")


@dataclass(frozen=True)
class Kind:
    """What a kind of test measures and how the data flows.

    ``tool``: perftest's program without its prefix ``ib_``. ``unit``: "Gb/s" for a rate, "us" for a latency.
    ``sends``: the side whose port sends the data: client, server, or both in turn. ``size`` and ``gpu_size``: bytes of
    a message in host memory and in GPU memory; None: what ``rdma_fabric.tests`` gives. ``inline``: whether messages
    can be inline. ``gpu_memory``: whether the buffers can be in GPU memory.
    """

    name: str
    tool: str
    unit: str = "Gb/s"
    sends: str = "client"
    size: int | None = None
    gpu_size: int | None = None
    inline: bool = True
    gpu_memory: bool = True

    @property
    def latency(self) -> bool:
        """Whether it measures a time, not a rate."""
        return self.unit == "us"

    @property
    def program(self) -> str:
        """The program of perftest."""
        return f"ib_{self.tool}"

    def message(self, memory: str) -> int | None:
        """Return the bytes of a message in ``memory`` unless the user gives others; None: no own default."""
        return self.size if memory == "host" else self.gpu_size or self.size

    def ways(self, client: _Side, server: _Side) -> tuple[tuple[_Side, _Side], ...]:
        """Return (sender, receiver) for each way that the data takes."""
        ways = {"client": ((client, server),), "server": ((server, client),)}
        return ways.get(self.sends, ((client, server), (server, client)))


# Small messages: perftest's own default, and 64 for GPU memory as validators of GPU clusters take it.
_SMALL, _SMALL_ON_GPU = 2, 64

_ALL = (
    Kind("write_bw", "write_bw"),
    # The client of a read pulls the data to itself.
    Kind("read_bw", "read_bw", sends="server", inline=False),
    Kind("send_bw", "send_bw"),
    # perftest polls the last byte of a written message, which the CPU cannot do in GPU memory.
    Kind("write_lat", "write_lat", "us", "both", _SMALL, _SMALL_ON_GPU, gpu_memory=False),
    Kind("read_lat", "read_lat", "us", "both", _SMALL, _SMALL_ON_GPU, inline=False),
    Kind("send_lat", "send_lat", "us", "both", _SMALL, _SMALL_ON_GPU),
)
KINDS: dict[str, Kind] = {kind.name: kind for kind in _ALL}
# What is measured unless the user asks for something else.
USUAL = "write_bw"
# What shows whether small messages get through where large ones do not.
PROBE = "write_lat"
