# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""A host whose boot stalled is powered off and on; one that runs is left alone."""

from __future__ import annotations

import sys
import time
from pathlib import Path

import pytest

from tests.lab import process, watchdog

# As the lab's kernel said it.
STALL = "[   63.361363] rcu: rcu_preempt kthread timer wakeup didn't happen for 15014 jiffies! g-1143 f0x0"
# Stands in for QEMU: notes its arguments, says STALL when it is to load a snapshot, and waits.
MACHINE = f"""import signal, sys
open("started", "a").write(" ".join(sys.argv[1:]) + "\\n")
print({STALL!r} if "-loadvm" in sys.argv else "login:", flush=True)
signal.pause()
"""


@pytest.mark.parametrize(
    ("line", "expected"),
    [
        (STALL, True),
        ("[    4.1] rcu: INFO: rcu_preempt detected stalls on CPUs/tasks:", False),
        ("[ 5063.361363] rcu: rcu_preempt kthread timer wakeup didn't happen for 15014 jiffies!", False),
        ("lab-1 login: timer wakeup didn't happen", False),
        ("", False),
    ],
)
def test_what_a_stalled_boot_says(line: str, expected: bool) -> None:
    assert watchdog.stalled(line.encode()) is expected


def test_a_boot_from_the_disk() -> None:
    assert watchdog.without_snapshot(["qemu", "-loadvm", "ready", "-m", "1"]) == ["qemu", "-m", "1"]
    assert watchdog.without_snapshot(["qemu", "-m", "1"]) == ["qemu", "-m", "1"]


def test_a_stalled_host_starts_from_its_disk_and_ends_with_its_watchdog(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setattr(process, "RUN", tmp_path)
    machine = [sys.executable, "-c", MACHINE, "-m", "1", "-loadvm", "ready"]
    repository = str(Path(__file__).parents[3])
    process.start(
        "host", [sys.executable, "-m", "tests.lab.watchdog", *machine], cwd=tmp_path, env={"PYTHONPATH": repository}
    )
    try:
        deadline = time.monotonic() + 30
        while "login:" not in (log := process.log_path("host").read_text()):
            assert time.monotonic() < deadline, log
            time.sleep(0.02)
        assert (tmp_path / "started").read_text().splitlines() == ["-m 1 -loadvm ready", "-m 1"]
        assert "watchdog: this boot stalled" in log
        assert list(process.running()) == ["host"]
    finally:
        process.kill("host")
    assert process.running() == {}
