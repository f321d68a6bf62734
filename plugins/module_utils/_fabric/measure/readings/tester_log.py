# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What testers printed, taken out of its frames (roles/rdma_validate/files/tester.sh)."""

from __future__ import annotations

import re
import shlex
import sys
from collections.abc import Collection, Mapping
from dataclasses import dataclass, field
from functools import lru_cache

from ...._common.errors import ParseError
from ...._common.units import natural
from ...intent.typed import plain
from . import frames
from .described import checked_host, checked_rail
from .perftest import Run

# In the order in which testers write it; older ones have less.
_TEST = re.compile(
    rf"{frames.TEST}(?P<round>\d{{1,9}}) (?P<rail>\S+) \S+ (?P<peer>\S+) rc=(?P<rc>\d{{1,9}}) "
    r"(?:start=(?P<start>\S*) ?)?(?:seconds=(?P<seconds>\S*) ?)?(?:late=(?P<late>\S*) ?)?(?:ran=(?P<ran>\S*) ?)?"
    r"(?:exchange=(?P<exchange>\S*) ?)?(?:memory=(?P<memory>\S*))?"
)
_BEGIN = re.compile(r"batch (\d{1,9}) begin ")
_DONE = re.compile(r"batch (\d{1,9}) done (\d{1,9}) (\d{1,9})")
_SECONDS = re.compile(r"-?[0-9]{1,9}(?:\.[0-9]{0,9})?")
# A value in quotation marks may hold spaces; one whose mark is not closed ends at the first. A name begins after a
# space, so that a long word without "=" is read once and not once for each of its letters.
_PAIR = re.compile(r'(?<!\S)([^\s=]+)=("[^"]*"|\S*)')
# Words of a line whose only quotations are whole values: what shlex does, many times faster.
_WORD = re.compile(r'(?:[^\s"]|"[^"]*")+')
_DESCRIBED = re.compile(rf"{frames.DESCRIBED}\d+")
# What a tester adds to perftest's output stands before it, on lines of its own.
_ADDED = ("counters", "amounts", "cpu", "link", "link_before")
# More than a frame, its first line, a line of a description, a line of perftest and a whole description have. What is
# longer was not written by a tester.
_LONGEST = 8192
_LONGEST_HEAD = 1024
_LONGEST_LINE = 4096
_LONGEST_OUTPUT = 400
LARGEST_DESCRIPTION = 1 << 18
# Characters of a file of evidence; testers and transport keep theirs far below.
LARGEST_FILE = 1 << 28


@dataclass(frozen=True)
class Endpoint:
    """A tester that described itself: per rail its key=value pairs, or the error that keeps a rail from use."""

    rails: Mapping[str, Mapping[str, str]]
    host: Mapping[str, str]

    def without(self, rails: Collection[str]) -> Endpoint:
        """Return the endpoint as if it had not described ``rails``."""
        return Endpoint({rail: own for rail, own in self.rails.items() if rail not in rails}, self.host)

    def error(self, rail: str) -> str | None:
        """Return why ``rail`` cannot be used here, None when it can."""
        found = self.rails.get(rail)
        if found is None:
            return "not described"
        return found.get("error")


# Round, rail of this endpoint, the peer's address: one host may serve several on a rail at once.
Key = tuple[int, str, str]


@dataclass(frozen=True)
class Log:
    """Tests of one batch; ``done`` when the tester came to the end of the batch."""

    runs: Mapping[Key, Run] = field(default_factory=dict)
    done: bool = False


@dataclass(frozen=True)
class Pass:
    """What came back from one pass: raw logs and, for endpoints without a log, why."""

    logs: Mapping[str, str]
    errors: Mapping[str, str]


@dataclass(frozen=True)
class Evidence:
    """Everything collected so far: descriptions, reasons for missing ones, and the passes played.

    ``failure``: why the transport failed as a whole; nothing more will be played then. ``ports``: what the ports of
    hosts printed before and after (port_state.py), where their testers do not see them.
    """

    describe: Mapping[str, str]
    errors: Mapping[str, str]
    passes: tuple[Pass, ...] = ()
    failure: str = ""
    ports: tuple[Mapping[str, str], ...] = ()


def parse_describe(text: str) -> Endpoint:
    """Return what a tester reported about itself, checked; ParseError when it did not come to the end."""
    if len(text) > LARGEST_DESCRIPTION:
        raise ParseError(f"it has more than {LARGEST_DESCRIPTION} characters")
    lines = text.splitlines()
    if frames.DESCRIBE not in lines:
        raise ParseError(f'no line "{frames.DESCRIBE}" in {len(lines)} lines')
    rails: dict[str, dict[str, str]] = {}
    host: dict[str, str] = {}
    for line in lines[lines.index(frames.DESCRIBE) + 1 :]:
        if _DESCRIBED.match(line):
            return Endpoint({name: checked_rail(found) for name, found in rails.items()}, checked_host(host))
        if len(line) > _LONGEST_LINE:
            raise ParseError(f"a line has {len(line)} characters; expected {_LONGEST_LINE} at most")
        words = _words(line)
        if words[:1] == ["rail"] and len(words) > 1:
            rails[words[1]] = _pairs(words[2:])
        elif words[:1] == ["host"]:
            host.update(_pairs(words[1:]))
    raise ParseError("it ended before all rails were described")


def _words(line: str) -> list[str]:
    """Split as a shell does; ParseError when a quotation is not closed."""
    if line.isprintable() and not line.count('"') % 2 and not {"'", "\\"} & set(line):
        return [word.replace('"', "") for word in _WORD.findall(line)]
    try:
        return shlex.split(line)
    except ValueError as exc:
        raise ParseError(f"{exc} in: {line[:200]}") from exc


def _pairs(words: list[str]) -> dict[str, str]:
    return dict(word.split("=", 1) for word in words if "=" in word)


def parse_batch(text: str, number: int) -> Log:
    """Return the tests of batch ``number`` in a tester's log, which may hold other batches too.

    ParseError when a whole frame holds what no tester writes.
    """
    runs: dict[Key, Run] = {}
    inside = False
    frame: re.Match[str] | None = None
    body = ""
    # From mark to mark, not line by line: a fleet's logs have millions of lines.
    for part in f"\n{text}".split(f"\n{frames.MARK}")[1:]:
        head, _newline, rest = part.partition("\n")
        if frame and head.rstrip() == frames.END:
            if inside:
                # One text for a name that stands in thousands of frames.
                key = (int(frame["round"]), sys.intern(frame["rail"]), sys.intern(frame["peer"]))
                runs[key] = _run(frame, body)
            frame = None
        elif len(head) > _LONGEST_HEAD:
            raise ParseError(f"the first line of a frame has {len(head)} characters; expected {_LONGEST_HEAD} at most")
        elif started := _TEST.match(head):
            # Of a frame without an end its tester was killed: what it had is no result.
            frame, body = started, rest
        elif frame:
            body += f"\n{frames.MARK}{part}"
        elif begun := _BEGIN.match(head):
            inside = int(begun[1]) == number
            runs = {} if inside else runs
        elif inside and _DONE.match(head):
            return Log(runs, True)
    return Log(runs, False)


def parse_logs(played: Pass, number: int) -> tuple[dict[str, Log], dict[str, str]]:
    """Return the logs of a pass by endpoint, and why the others are not valid: one of them costs no other."""
    logs: dict[str, Log] = {}
    invalid: dict[str, str] = {}
    for name, text in played.logs.items():
        try:
            logs[name] = parse_batch(text, number)
        except ParseError as exc:
            invalid[name] = f"its log is not valid: {exc}"
    return logs, invalid


def _run(frame: re.Match[str], body: str) -> Run:
    """Return one side of a test from its frame. Testers before these additions have none of them."""
    added: dict[str, Mapping[str, str]] = {}
    while body.startswith(_ADDED):
        line, _newline, rest = body.partition("\n")
        word, _space, pairs = line.partition(" ")
        # A tester writes each once. What follows is output, and cutting off one line after another takes the square of
        # the time.
        if word not in _ADDED or word in added:
            break
        if len(line) > _LONGEST:
            raise ParseError(f"a line of a frame has {len(line)} characters; expected {_LONGEST} at most")
        added[word], body = _quoted_pairs(pairs), rest
    _round, _rail, _peer, rc, start, seconds, late, ran, exchange, memory = frame.groups()
    amounts = added.get("amounts")
    unread = "its tester does not report them" if amounts is None else plain(amounts.get("error", ""), 100)
    return Run(
        int(rc),
        _output(body),
        started=_whole(_number(start, "start")),
        seconds=_number(seconds, "seconds"),
        late=_number(late, "late"),
        ran=_number(ran, "ran"),
        counters=_growth(added["counters"]) if "counters" in added else {},
        link=added.get("link", {}),
        link_before=added.get("link_before", {}),
        exchange=sys.intern(exchange or ""),
        memory=sys.intern(memory or ""),
        amounts=_growth({**(amounts or {}), **added.get("cpu", {})}),
        unread=sys.intern(unread),
    )


def _output(body: str) -> str:
    """Return perftest's output, each line as far as it can mean anything: patterns take long for longer lines."""
    body = body[-_LONGEST:].strip()
    lines = body.split("\n")
    if max(map(len, lines)) <= _LONGEST_OUTPUT:
        return body
    return "\n".join(line[:_LONGEST_OUTPUT] for line in lines)


# Testers round to hundredths of a second: thousands of frames have the same few numbers.
@lru_cache(maxsize=4096)
def _number(text: str | None, name: str) -> float | None:
    """Return the seconds in a field of a frame; None without them, ParseError when they are not such a number."""
    if not text:
        return None
    if not _SECONDS.fullmatch(text):
        raise ParseError(f"{name}={plain(text, 40)} is not a number of seconds")
    # A difference below zero tells nothing.
    return None if text[0] == "-" else float(text)


def _whole(number: float | None) -> int | None:
    return None if number is None else int(number)


# Most ports of a fleet say the same of their links. Nobody may change what is returned.
@lru_cache(maxsize=4096)
def _quoted_pairs(text: str) -> Mapping[str, str]:
    return {key: value.strip('"') for key, value in _PAIR.findall(text)}


def _growth(pairs: Mapping[str, str]) -> dict[str, int]:
    """Return name to growth of counters ("out_of_sequence": "+3")."""
    grown = {name: natural(value.lstrip("+")[:18]) for name, value in pairs.items()}
    return {name: number for name, number in grown.items() if number}
