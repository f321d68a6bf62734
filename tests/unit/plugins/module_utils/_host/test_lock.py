"""One run at a time on a host: the lock that changing modules hold."""

from __future__ import annotations

import fcntl
import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from ansible_collections.gpufabric.rdma.plugins.module_utils._core.errors import ConflictError
from ansible_collections.gpufabric.rdma.plugins.module_utils._host import lock


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
    holder = {"module": "rail_links", "pid": 4711, "since": "2026-11-23T01:30:00Z", "by": "ops from 192.0.2.9"}
    (tmp_path / "gpufabric/holder").write_text(json.dumps(holder))
    with pytest.raises(ConflictError) as caught, lock.held({"run_root": str(tmp_path)}, "sriov_vfs", False):
        pass
    assert str(caught.value) == (
        "another run changes this host: module rail_links, process 4711, since 2026-11-23T01:30:00Z, started by ops "
        "from 192.0.2.9. Waited 0 seconds for it. Wait until that run has ended, then run this again"
    )
    # Check mode only reads.
    with lock.held({"run_root": str(tmp_path)}, "sriov_vfs", True):
        pass
    os.close(handle)
    with lock.held({"run_root": str(tmp_path)}, "sriov_vfs", False):
        shown = json.loads((tmp_path / "gpufabric/holder").read_text())
        assert (shown["module"], shown["pid"]) == ("sriov_vfs", os.getpid())
        with pytest.raises(BlockingIOError):
            take(tmp_path)
    assert [path.name for path in (tmp_path / "gpufabric").iterdir()] == []


def test_the_lock_is_waited_for(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    handle = take(tmp_path)
    monkeypatch.setattr(lock.time, "sleep", lambda _seconds: os.close(handle))
    with lock.held({"run_root": str(tmp_path)}, "sriov_vfs", False):
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
    with lock.held({"run_root": str(tmp_path)}, "sriov_vfs", False):
        with pytest.raises(BlockingIOError):
            take(tmp_path)
        assert (tmp_path / "gpufabric/holder").exists()


def test_the_lock_ends_with_its_process_and_programs_do_not_inherit_it(tmp_path: Path) -> None:
    """One process, 0.1 s."""
    with lock.held({"run_root": str(tmp_path)}, "rdma_stack", False):
        child = subprocess.Popen([sys.executable, "-c", "import sys; sys.stdin.read()"], stdin=subprocess.PIPE)
    try:
        os.close(take(tmp_path))
    finally:
        child.communicate(b"")


@pytest.mark.parametrize("text", ["", "{", "[]", "{}"])
def test_a_holder_that_cannot_be_read_is_not_known(text: str) -> None:
    assert lock._describe(text) == "its module is not known"
