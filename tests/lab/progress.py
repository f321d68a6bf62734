# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Telling what is being done, and how long it took."""

from __future__ import annotations

import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager

_WIDTH = 44
_depth = 0


@contextmanager
def step(title: str) -> Iterator[None]:
    """Print the title now and the seconds at the end; steps inside steps are indented."""
    global _depth
    start = time.monotonic()
    _say(f"{title} ...")
    _depth += 1
    result = "failed"
    try:
        yield
        result = "done"
    finally:
        _depth -= 1
        note(title, f"{result} {time.monotonic() - start:6.1f} s")


def note(title: str, result: str) -> None:
    """One line about something that needed no time, such as a cached artefact."""
    _say(f"{title:<{_WIDTH - 2 * _depth}} {result}")


def _say(text: str) -> None:
    print(f"{'  ' * _depth}{text}", file=sys.stderr, flush=True)
