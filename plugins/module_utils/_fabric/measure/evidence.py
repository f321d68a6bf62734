# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What testers printed, taken out of its frames (roles/rdma_validate/files/tester.sh)."""

from __future__ import annotations

import re
import shlex
from collections.abc import Mapping
from dataclasses import dataclass, field

from ..._core.errors import ParseError
from .perftest import Run

_TEST = re.compile(
    r"=== gpufabric test (?P<round>\d+) (?P<rail>\S+) (?P<role>\S+) (?P<peer>\S+) rc=(?P<rc>\d+) "
    r"start=(?P<start>\d+) seconds=(?P<seconds>\d+)"
)
_BEGIN = re.compile(r"=== gpufabric batch (\d+) begin ")
_DONE = re.compile(r"=== gpufabric batch (\d+) done (\d+) (\d+)")
_MISSED = re.compile(r"gpufabric: missed the round, (\d+) s late")
_DESCRIBE = "=== gpufabric describe v1"
_DESCRIBED = re.compile(r"=== gpufabric described \d+")
_END = "=== gpufabric end"


@dataclass(frozen=True)
class Endpoint:
    """A tester that described itself: per rail its key=value pairs, or the error that keeps a rail from use."""

    rails: Mapping[str, Mapping[str, str]]
    host: Mapping[str, str]

    def error(self, rail: str) -> str | None:
        """Return why ``rail`` cannot be used here, None when it can."""
        found = self.rails.get(rail)
        return "not described" if found is None else found.get("error")


# Round, rail of this endpoint, the peer's address: one host may serve several on a rail at once.
Key = tuple[int, str, str]


@dataclass(frozen=True)
class Log:
    """Tests of one batch; ``done`` when the tester came to the end of the batch.

    ``times``: when each test began by the host's own clock, and how long it took, in seconds. ``late``: seconds that
    the tester was behind when it missed a round.
    """

    runs: Mapping[Key, Run] = field(default_factory=dict)
    done: bool = False
    times: Mapping[Key, tuple[int, int]] = field(default_factory=dict)
    late: int = 0


@dataclass(frozen=True)
class Pass:
    """What came back from one pass: raw logs and, for endpoints without a log, why."""

    logs: Mapping[str, str]
    errors: Mapping[str, str]


@dataclass(frozen=True)
class Evidence:
    """Everything collected so far: descriptions, reasons for missing ones, and the passes played.

    ``failure``: why the transport failed as a whole; nothing more will be played then.
    """

    describe: Mapping[str, str]
    errors: Mapping[str, str]
    passes: tuple[Pass, ...] = ()
    failure: str = ""


def parse_describe(text: str) -> Endpoint:
    """Return what a tester said of itself; ParseError when it did not come to the end."""
    lines = text.splitlines()
    if _DESCRIBE not in lines:
        raise ParseError(f'no line "{_DESCRIBE}" in {len(lines)} lines')
    rails: dict[str, dict[str, str]] = {}
    host: dict[str, str] = {}
    for line in lines[lines.index(_DESCRIBE) + 1 :]:
        if _DESCRIBED.match(line):
            return Endpoint(rails, host)
        words = shlex.split(line)
        if words[:1] == ["rail"] and len(words) > 1:
            rails[words[1]] = _pairs(words[2:])
        elif words[:1] == ["host"]:
            host.update(_pairs(words[1:]))
    raise ParseError("it ended before all rails were described")


def _pairs(words: list[str]) -> dict[str, str]:
    return dict(word.split("=", 1) for word in words if "=" in word)


def parse_batch(text: str, number: int) -> Log:
    """Return the tests of batch ``number`` in a tester's log, which may hold other batches too."""
    runs: dict[Key, Run] = {}
    times: dict[Key, tuple[int, int]] = {}
    inside = False
    frame: re.Match[str] | None = None
    body: list[str] = []
    for line in text.splitlines():
        if line == _END and frame:
            if inside:
                key = (int(frame["round"]), frame["rail"], frame["peer"])
                runs[key] = Run(int(frame["rc"]), "\n".join(body).strip())
                times[key] = (int(frame["start"]), int(frame["seconds"]))
            frame = None
        elif frame:
            body.append(line)
        elif _TEST.match(line):
            frame, body = _TEST.match(line), []
        elif _BEGIN.match(line):
            inside = line.split()[3] == str(number)
            runs, times = ({}, {}) if inside else (runs, times)
        elif inside and _DONE.match(line):
            return Log(runs, True, times, _late(runs))
    return Log(runs, False, times, _late(runs))


def _late(runs: Mapping[Key, Run]) -> int:
    missed = (_MISSED.match(run.text) for run in runs.values())
    return max((int(match[1]) for match in missed if match), default=0)
