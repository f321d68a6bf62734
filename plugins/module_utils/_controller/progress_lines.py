# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Show the progress of a pass or of a module while it runs, and the clock that passes follow."""

from __future__ import annotations

import tempfile
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

from .._fabric.measure.schedule.progress import Progress, line

# One line for the whole run, whatever the number of hosts.
INTERVAL = 60.0
# What a module waits for; most waits end before that.
REPORT_INTERVAL = 30.0
_MOST = 4096
UPTIME = Path("/proc/uptime")


def clock() -> float:
    """Return the seconds since the controller's boot, where it tells: a time server may set the other clock."""
    try:
        return float(UPTIME.read_text().split()[0])
    except (OSError, ValueError, IndexError):
        return time.time()


class Lines:
    """Shows the line of a pass that begins at ``start``, each ``INTERVAL`` of its own time."""

    def __init__(
        self, progress: Progress, start: float, display: Callable[[str], object], *, now: Callable[[], float] = clock
    ) -> None:
        self._progress, self._start, self._display, self._now = progress, start, display, now
        self._due = now() + INTERVAL

    def next_in(self) -> float:
        """Return the seconds until the next line is due."""
        return max(0.0, self._due - self._now())

    def show(self) -> None:
        """Show the line when it is due and the pass goes on."""
        elapsed = self._now() - self._start
        if self._now() < self._due:
            return
        self._due += INTERVAL
        if elapsed < self._progress.seconds:
            self._display(line(self._progress, elapsed))


class Reported:
    """Shows the line that a module has written to a file, each ``REPORT_INTERVAL``; nothing until it has."""

    def __init__(self, path: Path, display: Callable[[str], object], *, now: Callable[[], float] = clock) -> None:
        self._path, self._display, self._now = path, display, now
        self._due = now() + REPORT_INTERVAL

    def next_in(self) -> float:
        """Return the seconds until the next line is due."""
        return max(0.0, self._due - self._now())

    def show(self) -> None:
        """Show the line when it is due."""
        if self._now() < self._due:
            return
        self._due += REPORT_INTERVAL
        try:
            with self._path.open(encoding="utf-8", errors="replace") as file:
                self._display(file.read(_MOST))
        except OSError:
            return


@contextmanager
def reported(folder: str, display: Callable[[str], object]) -> Iterator[str]:
    """Give the path of a file for the line of a module, in a private folder that ends with it, and show the line."""
    with tempfile.TemporaryDirectory(prefix="progress-", dir=folder) as place:
        path = Path(place) / "line"
        with shown(Reported(path, display)):
            yield str(path)


@contextmanager
def shown(lines: Lines | Reported) -> Iterator[None]:
    """Show lines from a thread while something else waits for the end."""
    ended = threading.Event()

    def tell() -> None:
        while not ended.wait(lines.next_in()):
            lines.show()

    thread = threading.Thread(target=tell, daemon=True)
    thread.start()
    try:
        yield
    finally:
        ended.set()
        thread.join()
