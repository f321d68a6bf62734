# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""A host's watchdog: runs its QEMU, and powers the host off and on when a boot of it stalled.

    python3 -m tests.lab.watchdog QEMU [ARGUMENT...]

In about one boot of ten an emulated processor loses a timer, some seconds into the kernel, and everything waits for
it for ever (seen with QEMU 10.0 and Linux 6.12). The kernel says so a while later. A warm reset ends the same way; a
new QEMU boots. Real hosts have a watchdog in their board for the like.
"""

from __future__ import annotations

import ctypes
import os
import re
import signal
import subprocess
import sys
from collections.abc import Sequence

# The kernel's complaint, with the seconds since its boot. A host that was up for long is never powered off.
_STALLED = re.compile(rb"\[ *(\d+)\.\d+\] rcu: .*kthread timer wakeup didn't happen")
_BOOT_SECONDS = 180
_STOP_SECONDS = 30
_PR_SET_PDEATHSIG = 1


def main(argv: Sequence[str]) -> int:
    """Run QEMU until it ends by itself; its exit code. SIGTERM is passed on to it."""
    qemu = _start(argv)
    signal.signal(signal.SIGTERM, lambda _number, _frame: qemu.terminate())
    while _console_until_stall(qemu):
        print("watchdog: this boot stalled, a timer was lost: power off and on", flush=True)
        _stop(qemu)
        qemu = _start(without_snapshot(argv))
    return qemu.wait()


def stalled(line: bytes) -> bool:
    """Whether a line of the console tells that this boot lost a timer."""
    match = _STALLED.search(line)
    return match is not None and int(match[1]) < _BOOT_SECONDS


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


def _console_until_stall(qemu: subprocess.Popen[bytes]) -> bool:
    """Pass the console on until QEMU ends (False) or the boot stalled (True)."""
    assert qemu.stdout
    line = b""
    while said := os.read(qemu.stdout.fileno(), 65536):
        sys.stdout.buffer.write(said)
        sys.stdout.buffer.flush()
        *lines, line = (line + said).split(b"\n")
        if any(map(stalled, lines)):
            return True
    return False


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
