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
from collections.abc import Callable, Sequence
from dataclasses import asdict
from functools import partial
from typing import Any

from tests.lab import process, qmp
from tests.lab.errors import LabError
from tests.lab.fabric import Impairment, Pacer, Port, Switch, join_frame, split_frames
from tests.lab.settings import HOSTS, RAILS, REPO, RUN, number

NAME = "switch"
_CONTROL = "switch.sock"
_READ_BYTES = 1 << 18
#: Like a real switch's buffer: what a host does not take in time is lost.
_QUEUE_BYTES = 8 << 20
#: What a slow port takes from its host before it makes the host wait, as a slow NIC does.
_HOLD_BYTES = 32 << 10
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


def impair(faults: dict[Port, Impairment], swapped: Sequence[int] = ()) -> None:
    """Set what is wrong with the ports; those that are not named are healthy. `swapped`: hosts with crossed cables."""
    listed = [{"port": list(port), **asdict(fault)} for port, fault in faults.items()]
    _request({"impair": listed, "swapped": list(swapped)})


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

    def __init__(self, link: socket.socket, ready: Callable[[int], None]) -> None:
        self.socket = link
        self.ready = ready
        self.received = bytearray()
        self.to_send = bytearray()
        self.events = 0


class _Lane:
    """One direction of a port, where frames wait when the port is slow."""

    def __init__(self) -> None:
        self.pacer = Pacer()
        self.waiting = 0


class _Server:
    """Moves frames between the links as the switch decides."""

    def __init__(self) -> None:
        self._selector = selectors.DefaultSelector()
        self._links: dict[Port, _Link] = {}
        self._switch = Switch(_PORTS, random.random)
        self._in = {port: _Lane() for port in _PORTS}
        self._out = {port: _Lane() for port in _PORTS}
        self._later: list[tuple[float, int, Callable[[], None]]] = []
        self._order = itertools.count()

    def serve(self) -> None:
        for port in _PORTS:
            self._listen(f"r{port[0]}h{port[1]}.sock", partial(self._join, port))
        self._listen(_CONTROL, self._control)
        while True:
            for entry, events in self._selector.select(self._timeout()):
                entry.data(events)
            while self._later and self._later[0][0] <= time.monotonic():
                heapq.heappop(self._later)[2]()

    def _listen(self, name: str, accept: Callable[[socket.socket], None]) -> None:
        if os.path.exists(name):
            os.unlink(name)
        server = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
        server.bind(name)
        server.listen()
        self._selector.register(server, selectors.EVENT_READ, lambda _events: accept(server.accept()[0]))

    def _join(self, port: Port, link: socket.socket) -> None:
        if port in self._links:
            self._leave(port, self._links[port])
        link.setblocking(False)
        self._links[port] = _Link(link, partial(self._ready, port))
        self._watch(port)

    def _leave(self, port: Port, link: _Link) -> None:
        if link.events:
            self._selector.unregister(link.socket)
        link.socket.close()
        del self._links[port]

    def _ready(self, port: Port, events: int) -> None:
        link = self._links.get(port)
        if link is None:
            return
        try:
            if events & selectors.EVENT_READ:
                self._read(port, link)
            self._flush(port, link)
        except OSError:
            self._leave(port, link)

    def _read(self, port: Port, link: _Link) -> None:
        data = link.socket.recv(_READ_BYTES)
        if not data:
            raise ConnectionResetError
        link.received += data
        for frame in split_frames(link.received):
            self._pass(port, self._in[port], frame, partial(self._switched, port, frame))

    def _switched(self, source: Port, frame: bytes) -> None:
        for port in map(self._switch.wired, self._switch.targets(self._switch.wired(source), frame)):
            lane = self._out[port]
            if lane.waiting < _QUEUE_BYTES:
                self._pass(port, lane, frame, partial(self._send, port, frame))

    def _pass(self, port: Port, lane: _Lane, frame: bytes, then: Callable[[], None]) -> None:
        """Go on now, or when a slow port is through with the frame."""
        rate = self._switch.rate(port)
        if not rate and not lane.waiting:
            then()
            return
        lane.waiting += len(frame)
        when = lane.pacer.leave_at(time.monotonic(), len(frame), rate)
        passed: Callable[[], None] = partial(self._passed, port, lane, len(frame), then)
        heapq.heappush(self._later, (when, next(self._order), passed))

    def _passed(self, port: Port, lane: _Lane, length: int, then: Callable[[], None]) -> None:
        lane.waiting -= length
        then()
        if port in self._links:
            self._watch(port)

    def _timeout(self) -> float | None:
        return max(0.0, self._later[0][0] - time.monotonic()) if self._later else None

    def _send(self, port: Port, frame: bytes) -> None:
        link = self._links.get(port)
        if link is None or len(link.to_send) > _QUEUE_BYTES:
            return
        link.to_send += join_frame(frame)
        try:
            self._flush(port, link)
        except OSError:
            self._leave(port, link)

    def _flush(self, port: Port, link: _Link) -> None:
        try:
            if link.to_send:
                del link.to_send[: link.socket.send(link.to_send)]
        except BlockingIOError:
            pass
        self._watch(port)

    def _watch(self, port: Port) -> None:
        """Wait for what a link is good for now: a host on a slow port has to wait with the rest."""
        link = self._links[port]
        read = selectors.EVENT_READ if self._in[port].waiting < _HOLD_BYTES else 0
        events = read | (selectors.EVENT_WRITE if link.to_send else 0)
        if events == link.events:
            return
        if link.events:
            self._selector.unregister(link.socket)
        if events:
            self._selector.register(link.socket, events, link.ready)
        link.events = events

    def _control(self, link: socket.socket) -> None:
        """Answer one request of the lab's command line."""
        link.settimeout(2)
        try:
            with link, link.makefile("rwb") as stream:
                message = json.loads(stream.readline())
                if "impair" in message:
                    self._switch.impairments = _faults(message["impair"])
                    self._switch.cross(message["swapped"])
                stream.write(json.dumps({"connected": sorted(self._links)}).encode() + b"\n")
        except (OSError, ValueError):
            pass  # It went away; that must not end the network of all hosts.


def _faults(listed: list[dict[str, Any]]) -> dict[Port, Impairment]:
    faults = {(item["port"][0], item["port"][1]): item for item in listed}
    return {port: Impairment(**{key: item[key] for key in item if key != "port"}) for port, item in faults.items()}


if __name__ == "__main__":
    _Server().serve()
