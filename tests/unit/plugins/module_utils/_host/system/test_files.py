"""Files of a host: whole after a power cut, or not there."""

from __future__ import annotations

import os
import stat
from pathlib import Path

import pytest

from ansible_collections.gpufabric.rdma.plugins.module_utils._common.errors import FabricError
from ansible_collections.gpufabric.rdma.plugins.module_utils._host.system import files


def test_the_text_is_on_the_disk_before_the_name(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    order: list[str] = []
    sync, replace = os.fsync, os.replace
    monkeypatch.setattr(os, "fsync", lambda handle: (order.append("sync"), sync(handle)))
    monkeypatch.setattr(os, "replace", lambda *paths: (order.append("rename"), replace(*paths)))
    files.write(str(tmp_path / "new" / "file"), "text\n", mode=0o600)
    assert order == ["sync", "rename", "sync"]
    assert (tmp_path / "new" / "file").read_text() == "text\n"
    assert stat.S_IMODE((tmp_path / "new" / "file").stat().st_mode) == 0o600


def test_a_write_that_fails_leaves_nothing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def full(handle: int) -> None:
        raise OSError(28, "No space left on device")

    (tmp_path / "file").write_text("old\n")
    monkeypatch.setattr(os, "fsync", full)
    with pytest.raises(FabricError) as error:
        files.write(str(tmp_path / "file"), "new\n")
    assert str(error.value) == f"cannot write {tmp_path}/file: No space left on device"
    assert [path.name for path in tmp_path.iterdir()] == ["file"]
    assert (tmp_path / "file").read_text() == "old\n"


def test_a_draft_that_a_power_cut_left_is_gone_after_the_next_write(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def dark(_old: str, _new: str) -> None:
        os._exit(0)

    child = os.fork()
    if child == 0:
        monkeypatch.setattr(os, "replace", dark)
        files.write(str(tmp_path / "file.conf"), "a longer text\n")
    os.waitpid(child, 0)
    (draft,) = tmp_path.iterdir()
    assert draft.read_text() == "a longer text\n" and stat.S_IMODE(draft.stat().st_mode) == 0o644
    # Programs that read a folder take files by suffix.
    assert not draft.name.endswith(".conf")
    files.write(str(tmp_path / "file.conf"), "text\n")
    assert [(path.name, path.read_text()) for path in tmp_path.iterdir()] == [("file.conf", "text\n")]


@pytest.mark.parametrize("kept", ["4096\t87380\t6291456\n", "4096 87380 6291456\n"])
def test_values_of_several_numbers(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, kept: str) -> None:
    path = tmp_path / "tcp_rmem"
    path.write_text("")
    monkeypatch.setattr(files, "read", lambda _path: kept)
    files.set_kernel(str(path), "4096 87380 6291456")


def test_a_file_that_cannot_be_read_is_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(*_args: object, **_options: object) -> None:
        raise PermissionError(13, "Permission denied")

    monkeypatch.setattr(files, "open", refuse, raising=False)
    with pytest.raises(FabricError) as error:
        files.read_record(str(tmp_path / "rail_links.json"))
    expected = f"cannot read {tmp_path}/rail_links.json: Permission denied. Run as root (become: true)"
    assert str(error.value) == expected
