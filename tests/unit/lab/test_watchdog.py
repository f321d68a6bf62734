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
# Stands in for QEMU: boots for ever when it was to load a snapshot, and waits.
MACHINE = f"""import signal, sys
open("started", "a").write(" ".join(sys.argv[1:]) + "\\n")
print("BdsDxe: starting\\n" + {STALL!r} if "-loadvm" in sys.argv else "lab-1 login: ", flush=True)
signal.pause()
"""


LOADER = 'BdsDxe: starting Boot0002 "UEFI Non-Block Boot Device"\r\n'
PROMPT = "Debian GNU/Linux 13 lab-1 ttyS0\r\n\r\nlab-1 login: "


def judged(*steps: str | tuple[float, float], goes_on: bool = True) -> list[str]:
    """What a boot is judged at each look (time, processor time) between what its console says."""
    boot = watchdog.Boot(goes_on)
    reasons = []
    for step in steps:
        if isinstance(step, str):
            boot.hear(step.encode())
        else:
            reasons.append(boot.stall(*step))
    return reasons


@pytest.mark.parametrize(
    ("steps", "why"),
    [
        pytest.param(((0, 0), STALL + "\n", (70, 40)), "lost a timer", id="complaint"),
        pytest.param(((0, 0), STALL[:40], STALL[40:] + "\n", (70, 40)), "lost a timer", id="complaint in two parts"),
        pytest.param(((0, 0), (60, 30), (185, 31)), "used 1 s of a processor in 125 s", id="waits"),
        pytest.param(((0, 0), (200, 150), (400, 201)), "used 201 s of a processor and has not ended", id="circles"),
        pytest.param((LOADER, (0, 900), (125, 901)), "used 1 s of a processor in 125 s", id="second boot"),
        pytest.param((PROMPT, "\r\n", LOADER, (0, 900), (125, 901)), "used 1 s of", id="boot after a boot"),
    ],
)
def test_a_boot_that_stalled(steps: list[str | tuple[float, float]], why: str) -> None:
    *before, last = judged(*steps)
    assert not any(before)
    assert why in last


@pytest.mark.parametrize(
    "steps",
    [
        pytest.param(((0, 0), (100, 7), (200, 14), (300, 21), (900, 81)), id="busy machine"),
        pytest.param(((0, 0), "[ 4.1] rcu: INFO: rcu_preempt detected stalls on CPUs/tasks:\n", (70, 40)), id="rcu"),
        pytest.param(((0, 0), PROMPT, (900, 1)), id="up"),
        pytest.param(((0, 0), PROMPT + "\r\n", (900, 1)), id="up, and a key pressed"),
        pytest.param(((0, 0), PROMPT, STALL + "\n", (5000, 4000)), id="complaint of a host that was up"),
        pytest.param((PROMPT, "\r\n", LOADER, (0, 900), (60, 960), PROMPT, (900, 961)), id="up again"),
        pytest.param(((0, 0), f"{STALL}\n{PROMPT}\r\n", LOADER, (200, 70)), id="complaint of the boot before"),
    ],
)
def test_a_boot_that_goes_on_or_has_ended(steps: list[str | tuple[float, float]]) -> None:
    assert not any(judged(*steps))


def test_a_restored_host_is_up() -> None:
    assert not any(judged((0, 0), (900, 1), goes_on=False))


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
        while " login: " not in (log := process.log_path("host").read_text()):
            assert time.monotonic() < deadline, log
            time.sleep(0.02)
        assert (tmp_path / "started").read_text().splitlines() == ["-m 1 -loadvm ready", "-m 1"]
        assert "watchdog: the boot lost a timer: power off and on" in log
        assert list(process.running()) == ["host"]
    finally:
        process.kill("host")
    assert process.running() == {}
