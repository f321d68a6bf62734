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

_TEST = re.compile(r"=== gpufabric test (?P<round>\d+) (?P<rail>\S+) (?P<role>\S+) (?P<peer>\S+) rc=(?P<rc>\d+) ")
_BEGIN = re.compile(r"=== gpufabric batch (\d+) begin ")
_DONE = re.compile(r"=== gpufabric batch (\d+) done (\d+) (\d+)")
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


@dataclass(frozen=True)
class Log:
    """Tests of one batch by (round, rail); ``done`` when the tester came to the end of the batch."""

    runs: Mapping[tuple[int, str], Run] = field(default_factory=dict)
    done: bool = False


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
    runs: dict[tuple[int, str], Run] = {}
    inside = False
    frame: re.Match[str] | None = None
    body: list[str] = []
    for line in text.splitlines():
        if line == _END and frame:
            if inside:
                runs[int(frame["round"]), frame["rail"]] = Run(int(frame["rc"]), "\n".join(body).strip())
            frame = None
        elif frame:
            body.append(line)
        elif _TEST.match(line):
            frame, body = _TEST.match(line), []
        elif _BEGIN.match(line):
            inside = line.split()[3] == str(number)
            runs = {} if inside else runs
        elif inside and _DONE.match(line):
            return Log(runs, True)
    return Log(runs, False)
