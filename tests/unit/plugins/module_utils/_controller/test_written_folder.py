"""Files that are written again and again: what others wrote stays."""

from __future__ import annotations

from pathlib import Path

import pytest

from ansible_collections.gpufabric.rdma.plugins.module_utils._common.errors import ConflictError, InputError
from ansible_collections.gpufabric.rdma.plugins.module_utils._controller.written_folder import INDEX, converge


def tree(folder: Path) -> dict[str, str]:
    found = {str(path.relative_to(folder)): path.read_text() for path in folder.rglob("*") if path.is_file()}
    return {path: text for path, text in found.items() if path != INDEX}


def test_files_are_written_changed_and_removed(tmp_path: Path) -> None:
    folder = tmp_path / "new" / "fabric"
    assert converge(str(folder), {"a/x.yaml": "1", "b.txt": "2"}, False).changed
    assert tree(folder) == {"a/x.yaml": "1", "b.txt": "2"}
    assert not converge(str(folder), {"a/x.yaml": "1", "b.txt": "2"}, False).changed
    change = converge(str(folder), {"b.txt": "3"}, False)
    assert change.before == {"a/x.yaml": "1", "b.txt": "2"} and change.after == {"b.txt": "3"}
    assert tree(folder) == {"b.txt": "3"} and not (folder / "a").exists()


def test_check_mode_writes_nothing(tmp_path: Path) -> None:
    assert converge(str(tmp_path / "new"), {"a": "1"}, True).changed
    assert list(tmp_path.iterdir()) == []


def test_what_others_wrote_stays(tmp_path: Path) -> None:
    (tmp_path / "a").write_text("mine")
    with pytest.raises(ConflictError, match="has a, which this collection did not write"):
        converge(str(tmp_path), {"a": "1"}, False)
    converge(str(tmp_path), {"b": "1"}, False)
    assert tree(tmp_path) == {"a": "mine", "b": "1"}


@pytest.mark.parametrize("index", ["{", '["../a"]', '["/a"]', '{"a": 1}', "[1]"])
def test_a_damaged_index_removes_nothing(tmp_path: Path, index: str) -> None:
    (tmp_path / INDEX).write_text(index)
    with pytest.raises(ConflictError, match="is damaged"):
        converge(str(tmp_path), {"a": "1"}, False)
    assert tree(tmp_path) == {}


def test_a_folder_that_cannot_be_written(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    with pytest.raises(InputError, match="Not a directory. Choose a folder that can be written"):
        converge(str(tmp_path / "file" / "below"), {"a": "1"}, False)


def test_a_call_that_was_cut_off_is_continued(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    from ansible_collections.gpufabric.rdma.plugins.module_utils._controller import written_folder

    real, calls = written_folder.write, []

    def cut(path: str, text: str, mode: int) -> None:
        calls.append(path)
        if len(calls) == 3:
            raise OSError(5, "cut off")
        real(path, text, mode)

    monkeypatch.setattr(written_folder, "write", cut)
    with pytest.raises(InputError):
        converge(str(tmp_path), {"a": "1", "b": "2"}, False)
    monkeypatch.setattr(written_folder, "write", real)
    assert converge(str(tmp_path), {"a": "1", "b": "2"}, False).changed
    assert tree(tmp_path) == {"a": "1", "b": "2"}
