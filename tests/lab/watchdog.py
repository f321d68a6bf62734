# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""A host's watchdog: runs its QEMU, and powers the host off and on when a boot of it stalled.

    python3 -m tests.lab.watchdog QEMU [ARGUMENT...]

In about one boot of ten an emulated processor loses a timer, and everything waits for it for ever: in the loader,
where nobody says so, or some seconds into the kernel, which complains a while later (seen with QEMU 10.0 and Linux
6.12). A warm reset ends the same way; a new QEMU boots. Real hosts have a watchdog in their board for the like.
"""

from __future__ import annotations

import ctypes
import os
import re
import select
import signal
import subprocess
import sys
import time
from collections.abc import Sequence
from pathlib import Path

# The firmware's word before it starts the loader, the kernel's complaint, and the prompt that ends a boot.
_BEGINS = b"BdsDxe: starting"
_COMPLAINS = re.compile(rb"\] rcu: .*kthread timer wakeup didn't happen")
_ENDS = b" login: "
_LOOK_SECONDS = 5.0
_STOP_SECONDS = 30
_PR_SET_PDEATHSIG = 1


def main(argv: Sequence[str]) -> int:
    """Run QEMU until it ends by itself; its exit code. SIGTERM is passed on to it."""
    qemu = _start(argv)
    signal.signal(signal.SIGTERM, lambda _number, _frame: qemu.terminate())
    boot = Boot(goes_on="-loadvm" not in argv)
    while why := _console_until_stall(qemu, boot):
        print(f"\nwatchdog: {why}: power off and on", flush=True)
        _stop(qemu)
        qemu = _start(without_snapshot(argv))
        boot = Boot(goes_on=True)
    return qemu.wait()


class Boot:
    """Judges a host's current boot by its console and by the processor time that its QEMU used.

    How long a boot takes says nothing: other work may leave the host little of a processor. It needs about 60 s of one.
    """

    #: A boot that used less than this, in so long, waits for what never comes.
    IDLE_USED = 6.0
    IDLE_SECONDS = 120.0
    #: One that used so much goes round in circles.
    MOST_USED = 200.0

    def __init__(self, goes_on: bool) -> None:
        self._goes_on = goes_on
        self._complaint = False
        self._rest = b""
        self._used_before: float | None = None
        self._last_life = (0.0, 0.0)

    def hear(self, said: bytes) -> None:
        """Take what the console said."""
        *lines, self._rest = (self._rest + said).split(b"\n")
        for line in lines:
            self._hear_line(line)
        if _ENDS in self._rest:
            self._goes_on = False

    def _hear_line(self, line: bytes) -> None:
        if _BEGINS in line:
            self._goes_on, self._complaint, self._used_before = True, False, None
        elif _ENDS in line:
            self._goes_on = False
        elif self._goes_on and _COMPLAINS.search(line):
            self._complaint = True

    def stall(self, now: float, used: float) -> str:
        """Why this boot will not end, "" as long as it may; `now` and the processor time `used` are in seconds."""
        if not self._goes_on:
            return ""
        if self._used_before is None:
            self._used_before, self._last_life = used, (now, used)
        since, used_then = self._last_life
        if used - used_then >= self.IDLE_USED:
            self._last_life = (now, used)
        elif now - since > self.IDLE_SECONDS:
            return f"the boot used {used - used_then:.0f} s of a processor in {now - since:.0f} s"
        if used - self._used_before > self.MOST_USED:
            return f"the boot used {used - self._used_before:.0f} s of a processor and has not ended"
        return "the boot lost a timer" if self._complaint else ""


def without_snapshot(argv: Sequence[str]) -> list[str]:
    """QEMU's arguments for a boot from the disk."""
    words = list(argv)
    if "-loadvm" in words:
        at = words.index("-loadvm")
        del words[at : at + 2]
    return words


def _start(argv: Sequence[str]) -> subprocess.Popen[bytes]:
    # Whoever kills the watchdog kills the host.
    return subprocess.Popen(argv, stdout=subprocess.PIPE, preexec_fn=_die_with_parent)


def _die_with_parent() -> None:
    ctypes.CDLL(None).prctl(_PR_SET_PDEATHSIG, signal.SIGKILL)


def _console_until_stall(qemu: subprocess.Popen[bytes], boot: Boot) -> str:
    """Pass the console on until QEMU ends ("") or the boot stalled (why)."""
    assert qemu.stdout
    console = qemu.stdout.fileno()
    while not (why := boot.stall(time.monotonic(), _processor_time(qemu.pid))):
        if select.select([console], [], [], _LOOK_SECONDS)[0]:
            said = os.read(console, 65536)
            if not said:
                return ""
            sys.stdout.buffer.write(said)
            sys.stdout.buffer.flush()
            boot.hear(said)
    return why


def _processor_time(pid: int) -> float:
    """How many seconds of a processor a child used so far."""
    fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    return sum(map(int, fields[11:13])) / os.sysconf("SC_CLK_TCK")


def _stop(qemu: subprocess.Popen[bytes]) -> None:
    """End QEMU so that it writes its disk's tables."""
    qemu.terminate()
    try:
        qemu.wait(_STOP_SECONDS)
    except subprocess.TimeoutExpired:
        qemu.kill()
        qemu.wait()


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
