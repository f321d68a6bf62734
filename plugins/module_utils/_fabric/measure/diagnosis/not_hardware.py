# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Causes that show no fault of hardware or of a path: settings and facts that are missing, tests that were too slow.

A time-out, or a peer that was never reached, says nothing about large messages or GPU memory.
"""

from __future__ import annotations

import re
from collections.abc import Sequence

from ..readings.exchange import NEVER_MET
from ..readings.perftest import NO_END, OWN_CAUSES
from .causes import Cause
from .pass_index import BASE, GPU, Failure

CONFIGURATION, TESTER = "configuration", "tester"
# What testers and perftest report of the state of a link or a port.
_STATE = re.compile(r"\blink\b|is not up|no network device|port \d+ of |Port number \d+ state")
# What perftest, the shell that starts it, or a tester that does not try a test reports of its own side.
_REFUSED = ("exit code 12[67]", r"TCP port \d+ is in use", "is not installed", "has no IPv4 address", "RoCE v2 GID")
_OF_PERFTEST = re.compile("|".join([*(pattern for pattern, _meaning in OWN_CAUSES[1:]), *_REFUSED]))
# Only a transfer tells something about the size of its messages.
_TRANSFER = re.compile(r"Failed status|not one message was acknowledged|\bmtu\b|message too long", re.I)
# These end before GPU memory is tried.
_UNTRIED = re.compile(
    rf"{re.escape(NO_END)}|{NEVER_MET.pattern}|Unexpected CM event|Couldn't read|Failed to exchange|was killed|"
    "no output was returned"
)


def kind_of(cause: Cause) -> str:
    """Return CONFIGURATION or TESTER for a cause that shows no fault, "" for one that does."""
    if all(_is_setting(failure, cause) for failure in cause.failures):
        return CONFIGURATION
    if cause.named:
        return ""
    slow = all(failure.timed_out or _echoed(failure) for failure in cause.failures)
    untried = cause.layer != BASE and not any(_tried(failure, cause.layer) for failure in cause.failures)
    return TESTER if slow or untried else ""


def _echoed(failure: Failure) -> bool:
    """Return whether a side ran out of time in a test of which the other side tells no more than that."""
    if failure.verdict != "no_data" or not failure.passes or NEVER_MET.search(failure.reason):
        return False
    return NO_END in failure.reason and all(one.get("evidence") for one in failure.passes)


def _is_setting(failure: Failure, cause: Cause) -> bool:
    """Return whether a test lacks its reading for what a tester reports of itself, and of no link or port.

    What perftest says where only GPU memory fails is about the path of that memory.
    """
    scope, base = cause.scope, cause.layer == BASE
    if failure.verdict != "no_data" or not failure.firm:
        return False
    ends = failure.ends if scope.host is None or scope.peer else failure.own(scope)
    told = failure.reason.split("; ")
    parts = {part: end for end in ends for part in told if part.startswith((f"{end[0]} ", f"{end[0]}: "))}
    found = (
        part.startswith((f"{host}: ", f"{host} {rail}: "))
        or (base and part.startswith((f"{host} (client): ", f"{host} (server): ")) and _OF_PERFTEST.search(part))
        for part, (host, rail) in parts.items()
    )
    return any(found) and not any(map(_STATE.search, parts))


def _tried(failure: Failure, layer: str) -> bool:
    """Return whether a transfer was observed to fail, or for GPU memory anything else of the test itself."""
    if failure.verdict == "fail":
        return True
    texts = [one.get("reason") or "" for one in failure.passes if not one.get("evidence")]
    texts += [] if failure.passes else [failure.reason]
    if layer == GPU:
        return any(not _UNTRIED.search(part) for text in texts for part in text.split("; "))
    return any(_TRANSFER.search(text) for text in texts)


def sentence(cause: Cause, kind: str, place: str, *, passed: int) -> str:
    """Return what to say of it; ``passed``: how many tests of the place passed."""
    where = place or "all rails"
    if kind == CONFIGURATION:
        return f"{where}: {_count(cause.failures)} could not be measured. Correct the configuration"
    if cause.layer != BASE:
        others = "tests from host memory pass" if cause.layer == GPU else "small messages pass"
        text = f"{where}: {others}, the other {_count(cause.failures)} ran out of time or found no peer"
        action = "Check for a slow start of perftest or of its GPU memory, then set slot_margin"
        return f"{text}. {action} to a higher value"
    count = f"{len(cause.failures)} of {len(cause.failures) + passed} tests"
    return f"{where}: {count if passed else f'all {_count(cause.failures)}'} ran out of time"


def _count(failures: Sequence[Failure]) -> str:
    return "1 test" if len(failures) == 1 else f"{len(failures)} tests"
