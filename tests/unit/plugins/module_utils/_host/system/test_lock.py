"""One run at a time on a host: the lock that changing modules hold, and the mark of a measurement."""

from __future__ import annotations

import fcntl
import os
import subprocess
import sys
import time
from pathlib import Path

import pytest

from ansible_collections.gpufabric.rdma.plugins.module_utils._common.errors import ConflictError
from ansible_collections.gpufabric.rdma.plugins.module_utils._host.system import lock


def take(root: Path) -> int:
    """Hold the lock as another process does; returns the handle that ends it."""
    (root / "gpufabric").mkdir(exist_ok=True)
    handle = os.open(root / "gpufabric", os.O_RDONLY)
    fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
    return handle


def test_a_second_run_waits_a_bounded_time_and_names_the_holder(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(lock, "PATIENCE", 0.0)
    monkeypatch.setattr(lock, "PAUSE", 0.0)
    handle = take(tmp_path)
    holder = "module rail_links, process 4711, since 2026-11-23T01:30:00Z, started by ops from 192.0.2.9"
    (tmp_path / "gpufabric/holder").write_text(holder + "\n")
    with pytest.raises(ConflictError) as caught, lock.held(str(tmp_path), "sriov_vfs", False):
        pass
    assert str(caught.value) == (
        "another run changes this host: module rail_links, process 4711, since 2026-11-23T01:30:00Z, started by ops "
        "from 192.0.2.9. Waited 0 seconds for it. Wait until that run has ended, then rerun the playbook"
    )
    # Check mode only reads.
    with lock.held(str(tmp_path), "sriov_vfs", True):
        pass
    os.close(handle)
    with lock.held(str(tmp_path), "sriov_vfs", False):
        shown = (tmp_path / "gpufabric/holder").read_text()
        assert shown.startswith(f"module sriov_vfs, process {os.getpid()}, since 20") and shown.endswith("\n")
        with pytest.raises(BlockingIOError):
            take(tmp_path)
    assert [path.name for path in (tmp_path / "gpufabric").iterdir()] == []


def test_the_lock_is_waited_for(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    handle = take(tmp_path)
    monkeypatch.setattr(lock.time, "sleep", lambda _seconds: os.close(handle))
    with lock.held(str(tmp_path), "sriov_vfs", False):
        pass


@pytest.mark.parametrize("again", [True, False])
def test_a_folder_that_was_removed_meanwhile_is_not_the_lock(
    again: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The end of a measurement removes the folder when it is empty; another module may have made it anew."""
    handle = take(tmp_path)

    def removed(_seconds: float) -> None:
        (tmp_path / "gpufabric").rmdir()
        if again:
            (tmp_path / "gpufabric").mkdir()
        os.close(handle)

    monkeypatch.setattr(lock.time, "sleep", removed)
    with lock.held(str(tmp_path), "sriov_vfs", False):
        with pytest.raises(BlockingIOError):
            take(tmp_path)
        assert (tmp_path / "gpufabric/holder").exists()


def test_the_lock_ends_with_its_process_and_programs_do_not_inherit_it(tmp_path: Path) -> None:
    """One process, 0.1 s."""
    with lock.held(str(tmp_path), "rdma_stack", False):
        child = subprocess.Popen([sys.executable, "-c", "import sys; sys.stdin.read()"], stdin=subprocess.PIPE)
    try:
        os.close(take(tmp_path))
    finally:
        child.communicate(b"")


@pytest.mark.parametrize("text", ["", "\n", "\x1b[2Jmodule\n", "\0"])
def test_a_holder_that_cannot_be_read_is_not_known(text: str, tmp_path: Path) -> None:
    (tmp_path / "holder").write_text(text)
    assert lock._read_holder(str(tmp_path)) == "its module is not known"


class Host:
    """A host with a mark, whose clock and the waiting for it are moved by hand."""

    def __init__(self, root: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        self.run, self.mark = str(root), root / "gpufabric" / "tester.run"
        self.mark.parent.mkdir()
        self.now, self.at = 1000.0, dict[float, str]()
        monkeypatch.setattr(lock.time, "clock_gettime", lambda _clock: self.now)
        monkeypatch.setattr(lock.time, "monotonic", lambda: self.now)
        monkeypatch.setattr(lock.time, "sleep", self.sleep)

    def sleep(self, seconds: float) -> None:
        # The run that measures can go on meanwhile.
        os.close(take(self.mark.parents[1]))
        self.now += seconds
        for when in [when for when in self.at if when <= self.now]:
            text = self.at.pop(when)
            if text:
                self.mark.write_text(text)
            else:
                self.mark.unlink()

    def refusal(self, check: bool = False) -> str:
        try:
            with lock.held(self.run, "sriov_vfs", check):
                return ""
        except ConflictError as error:
            return str(error)


@pytest.fixture
def host(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Host:
    return Host(tmp_path, monkeypatch)


def measured(left: int, waited: int) -> str:
    return (
        f"this host is being measured by run 20261123-r1 since 2026-11-23T01:30:00Z, for at most {left} s more. Waited "
        f"{waited} seconds for it. Wait until it ends, or end it with the playbook gpufabric.rdma.abort"
    )


# The mark's end in seconds since the boot, which is 1000 s ago; what becomes of it when; the message; seconds waited.
MEASURED: list[tuple[int, dict[float, str], str, float]] = [
    # It ended, or its controller died, before.
    (1000, {}, "", 0),
    (1, {}, "", 0),
    # It ends in time: its mark is removed, or expires.
    (1450, {1090.5: ""}, "", 91),
    (1100, {}, "", 100),
    # It does not end in time, as the mark tells at once, or when it goes on.
    (1481, {}, measured(481, 0), 0),
    (9999999, {}, measured(9998999, 0), 0),
    (1480, {}, measured(300, 180), 180),
    (1100, {1060.0: "20261123-r1 2026-11-23T01:30:00Z 5060"}, measured(4000, 60), 60),
]


@pytest.mark.parametrize(("until", "later", "message", "waited"), MEASURED)
def test_a_measurement_of_another_run_is_waited_for_or_named(
    until: int, later: dict[float, str], message: str, waited: float, host: Host
) -> None:
    host.mark.write_text(f"20261123-r1 2026-11-23T01:30:00Z {until}\n")
    host.at = dict(later)
    assert (host.refusal(), host.now - 1000) == (message, waited)
    # Whoever changes the host leaves no mark that its run could renew; whoever does not leaves it alone.
    assert host.mark.exists() == bool(message)
    assert host.refusal(check=True) == ""


@pytest.mark.parametrize("text", ["", "r1 then", "r1 then x", "r1 then -1", "r1 then 1 more", "\0", "[" * 9000])
def test_a_damaged_mark_is_refused_with_the_command_that_removes_it(text: str, host: Host) -> None:
    host.mark.write_text(text)
    message = host.refusal()
    assert message.startswith(f"{host.mark} does not name the run that measures this host: expected ")
    assert message.endswith("remove the file with the playbook gpufabric.rdma.abort") and len(message) < 400
    assert host.mark.exists() and host.now == 1000


def test_the_clock_of_the_mark_is_that_of_the_role() -> None:
    assert abs(time.clock_gettime(time.CLOCK_BOOTTIME) - float(Path("/proc/uptime").read_text().split()[0])) < 5
