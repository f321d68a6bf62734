# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The switch of all rails: a program that the hosts' QEMUs are connected to.

A switch of our own and not QEMU's hub, so that faults are on the wire: nothing in a host tells it
of them, and they hold whatever the host does. Run as ``python3 -m tests.lab.switch``.
"""

from __future__ import annotations

import heapq
import itertools
import json
import os
import random
import selectors
import socket
import sys
import time
from collections.abc import Callable
from dataclasses import asdict
from typing import Any

from tests.lab import process, qmp
from tests.lab.errors import LabError
from tests.lab.fabric import HEALTHY, Impairment, Pacer, Port, Switch, join_frame, split_frames
from tests.lab.settings import HOSTS, RAILS, REPO, RUN, number

NAME = "switch"
_CONTROL = "switch.sock"
_READ_BYTES = 1 << 18
#: Like a real switch's buffer: what a host does not take in time is lost.
_QUEUE_BYTES = 8 << 20
_PORTS: list[Port] = [(rail, number(host)) for rail in range(RAILS) for host in HOSTS]


def start() -> None:
    """Start the switch and wait until hosts can be connected to it."""
    control = RUN / _CONTROL
    control.unlink(missing_ok=True)
    process.start(NAME, [sys.executable, "-m", "tests.lab.switch"], env={"PYTHONPATH": str(REPO)})
    deadline = time.monotonic() + 20
    while not control.exists():
        if time.monotonic() > deadline or NAME not in process.running():
            raise LabError(f"the switch did not start:\n{process.log_tail(NAME)}")
        time.sleep(0.05)


def impair(faults: dict[Port, Impairment]) -> None:
    """Set what is wrong with the ports; those that are not named are healthy."""
    listed = [{"port": list(port), **asdict(fault)} for port, fault in faults.items()]
    _request({"impair": listed})


def connected() -> list[Port]:
    """The ports with a host behind them."""
    return [(rail, host) for rail, host in _request({})["connected"]]


def _request(message: dict[str, Any]) -> dict[str, Any]:
    try:
        with qmp.connect_unix(RUN / _CONTROL, timeout=10) as link, link.makefile("rwb") as stream:
            stream.write(json.dumps(message).encode() + b"\n")
            stream.flush()
            answer: dict[str, Any] = json.loads(stream.readline())
            return answer
    except (OSError, ValueError) as error:
        raise LabError(f"the switch of the rails does not answer: {error}") from None


class _Link:
    """The connection to one host's rail."""

    def __init__(self, link: socket.socket) -> None:
        self.socket = link
        self.received = bytearray()
        self.to_send = bytearray()


class _Server:
    """Moves frames between the links as the switch decides."""

    def __init__(self) -> None:
        self._selector = selectors.DefaultSelector()
        self._links: dict[Port, _Link] = {}
        self._switch = Switch(_PORTS, random.random)
        self._pacers = {(port, way): Pacer() for port in _PORTS for way in ("in", "out")}
        self._waiting: list[tuple[float, int, Callable[[], None]]] = []
        self._order = itertools.count()

    def serve(self) -> None:
        for port in _PORTS:
            self._listen(f"r{port[0]}h{port[1]}.sock", lambda link, port=port: self._join(port, link))
        self._listen(_CONTROL, self._control)
        while True:
            for entry, events in self._selector.select(self._timeout()):
                entry.data(events)
            self._release()

    def _listen(self, name: str, accept: Callable[[socket.socket], None]) -> None:
        if os.path.exists(name):
            os.unlink(name)
        server = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
        server.bind(name)
        server.listen()
        self._selector.register(
            server, selectors.EVENT_READ, lambda _events: accept(server.accept()[0])
        )

    def _join(self, port: Port, link: socket.socket) -> None:
        if port in self._links:
            self._leave(port, self._links[port])
        link.setblocking(False)
        self._links[port] = joined = _Link(link)
        self._selector.register(
            link, selectors.EVENT_READ, lambda events: self._ready(port, joined, events)
        )

    def _leave(self, port: Port, link: _Link) -> None:
        self._selector.unregister(link.socket)
        link.socket.close()
        if self._links.get(port) is link:
            del self._links[port]

    def _ready(self, port: Port, link: _Link, events: int) -> None:
        try:
            if events & selectors.EVENT_WRITE:
                self._flush(link)
            if events & selectors.EVENT_READ:
                self._read(port, link)
        except OSError:
            self._leave(port, link)

    def _read(self, port: Port, link: _Link) -> None:
        data = link.socket.recv(_READ_BYTES)
        if not data:
            raise ConnectionResetError
        link.received += data
        for frame in split_frames(link.received):
            for target in self._switch.targets(port, frame):
                self._pass("in", port, frame, lambda f=frame, t=target: self._out(t, f))

    def _out(self, port: Port, frame: bytes) -> None:
        self._pass("out", port, frame, lambda: self._send(port, frame))

    def _pass(self, way: str, port: Port, frame: bytes, then: Callable[[], None]) -> None:
        """Go on now, or when a slow port is through with the frame."""
        rate = self._switch.rate(port)
        if not rate:
            then()
            return
        when = self._pacers[port, way].leave_at(time.monotonic(), len(frame), rate)
        heapq.heappush(self._waiting, (when, next(self._order), then))

    def _timeout(self) -> float | None:
        return max(0.0, self._waiting[0][0] - time.monotonic()) if self._waiting else None

    def _release(self) -> None:
        while self._waiting and self._waiting[0][0] <= time.monotonic():
            heapq.heappop(self._waiting)[2]()

    def _send(self, port: Port, frame: bytes) -> None:
        link = self._links.get(port)
        if link is None or len(link.to_send) > _QUEUE_BYTES:
            return
        link.to_send += join_frame(frame)
        try:
            self._flush(link)
        except OSError:
            self._leave(port, link)

    def _flush(self, link: _Link) -> None:
        try:
            del link.to_send[: link.socket.send(link.to_send)]
        except BlockingIOError:
            pass
        events = selectors.EVENT_READ | (selectors.EVENT_WRITE if link.to_send else 0)
        key = self._selector.get_key(link.socket)
        if key.events != events:
            self._selector.modify(link.socket, events, key.data)

    def _control(self, link: socket.socket) -> None:
        """Answer one request of the lab's command line."""
        with link, link.makefile("rwb") as stream:
            link.settimeout(2)
            message = json.loads(stream.readline())
            if "impair" in message:
                faults = {tuple(item.pop("port")): Impairment(**item) for item in message["impair"]}
                self._switch.impairments = {p: f for p, f in faults.items() if f != HEALTHY}
            stream.write(json.dumps({"connected": sorted(self._links)}).encode() + b"\n")


if __name__ == "__main__":
    _Server().serve()
