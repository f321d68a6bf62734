# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What a wait waits for, in a file: a module shows nothing before it ends, and a rollout can take an hour."""

from __future__ import annotations

import contextlib
import os
from collections.abc import Sequence

from ..._common.errors import harmless
from ..._common.reader import and_more
from ..client.poll import Tell

# A line for a person who looks on; the message at the end has all reasons.
_REASONS = 3
_LETTERS = 300


def line(module: str, elapsed: float, timeout: float, *, reasons: Sequence[str]) -> str:
    """Return the line of a wait of a module; without reasons all is ready, and must stay so for a while."""
    missing = "; ".join(reason[:_LETTERS] for reason in reasons[:_REASONS]) + and_more(reasons, _REASONS)
    what = f"not ready yet: {missing}" if reasons else "ready, and checked for some seconds more"
    return harmless(" ".join(f"{module}: {elapsed:.0f} s of at most {timeout:.0f} s, {what}".split()))


def teller(module: str, path: str | None, timeout: float) -> Tell:
    """Return what writes the line of a wait to a file, and does nothing without one."""

    def tell(elapsed: float, reasons: Sequence[str]) -> None:
        if path:
            write(path, line(module, elapsed, timeout, reasons=reasons))

    return tell


def write(path: str, text: str) -> None:
    """Replace the text of a file; a file that cannot be written costs the line, not the wait."""
    with contextlib.suppress(OSError):
        new = f"{path}.new"
        with open(os.open(new, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600), "w", encoding="utf-8") as file:
            file.write(text)
        os.replace(new, path)
