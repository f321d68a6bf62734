# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The lab's switch as the program that hosts are connected to: frames go in and out of its sockets. Five seconds."""

from __future__ import annotations

import json
import os
import select
import socket
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import ExitStack
from dataclasses import asdict
from pathlib import Path

import pytest
from tests.lab.fabric import Port, join_frame
from tests.lab.faults import impairments, parse, swapped
from tests.tools import environment

PORTS: list[Port] = [(rail, host) for rail in (0, 1) for host in (1, 2, 3)]
# How long a frame may take that arrives.
SECONDS = 0.5


class Running:
    """A switch with all hosts connected."""

    def __init__(self, folder: Path, stack: ExitStack) -> None:
        self.folder, self.stack = folder, stack
        deadline = time.monotonic() + 20
        while not (folder / "switch.sock").exists():
            assert time.monotonic() < deadline, "the switch did not start"
            time.sleep(0.02)
        self.links = {port: self.connect(f"r{port[0]}h{port[1]}.sock") for port in PORTS}

    def connect(self, name: str) -> socket.socket:
        link = self.stack.enter_context(socket.socket(socket.AF_UNIX))
        link.connect(str(self.folder / name))
        return link

    def plant(self, *lines: str) -> None:
        faults = [parse(line.split()) for line in lines]
        listed = [{"port": list(port), **asdict(one)} for port, one in impairments(faults).items()]
        link = self.connect("switch.sock")
        link.sendall(json.dumps({"impair": listed, "swapped": swapped(faults)}).encode() + b"\n")
        answer = json.loads(link.makefile().readline())
        assert sorted(map(tuple, answer["connected"])) == PORTS

    def reached(self, sender: Port) -> set[Port]:
        """The ports at which a frame to all arrives."""
        self.links[sender].sendall(join_frame(b"\xff" * 6 + bytes([2, 0, 0, 0, *sender]) + bytes(48)))
        found: set[Port] = set()
        deadline = time.monotonic() + SECONDS
        while (left := deadline - time.monotonic()) > 0:
            for link in select.select(list(self.links.values()), [], [], left)[0]:
                assert link.recv(1 << 16)
                found.add(next(port for port, own in self.links.items() if own is link))
        return found


@pytest.fixture
def switch() -> Iterator[Running]:
    # A socket's path has 107 characters at most.
    with ExitStack() as stack:
        folder = Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="switch-", dir="/tmp")))
        env = {**os.environ, "PYTHONPATH": str(environment.REPO)}
        process = subprocess.Popen([sys.executable, "-m", "tests.lab.switch"], cwd=folder, env=env)
        stack.callback(process.wait)
        stack.callback(process.kill)
        yield Running(folder, stack)


def test_faults_are_on_the_wire_and_heal(switch: Running) -> None:
    assert switch.reached((0, 1)) == {(0, 2), (0, 3)}
    switch.plant("oneway lab-1 0")
    assert switch.reached((0, 2)) == {(0, 3)}
    assert switch.reached((0, 1)) == {(0, 2), (0, 3)}
    switch.plant("oneway lab-1 0 out")
    assert switch.reached((0, 1)) == set()
    assert switch.reached((0, 2)) == {(0, 1), (0, 3)}
    switch.plant("swapped lab-3")
    assert switch.reached((0, 1)) == {(0, 2), (1, 3)}
    assert switch.reached((0, 3)) == {(1, 1), (1, 2)}
    switch.plant()
    assert switch.reached((0, 3)) == {(0, 1), (0, 2)}
