"""fabric_report through its main(): files on disk, never a change, a clear error."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
import report_factory as factory
from ansible.module_utils.testing import patch_module_args

from ansible_collections.gpufabric.rdma.plugins.modules import fabric_report


def run(capsys: pytest.CaptureFixture[str], **params: Any) -> dict[str, Any]:
    args = {"plan": factory.plan(3, 1), "results": factory.results(3, 1), **params}
    with patch_module_args(args), pytest.raises(SystemExit):
        fabric_report.main()
    return json.loads(capsys.readouterr().out)


def test_files(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    answer = run(capsys, path=str(tmp_path / "new" / "report"))
    assert (answer["changed"], answer["verdict"]) == (False, "pass")
    folder = tmp_path / "new" / "report"
    assert sorted(p.name for p in folder.iterdir()) == sorted(answer["files"])
    assert json.loads((folder / "report.json").read_text())["verdict"] == "pass"
    assert {p.stat().st_mode & 0o777 for p in folder.iterdir()} == {0o640}


def test_check_mode_writes_nothing(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    answer = run(capsys, path=str(tmp_path / "report"), _ansible_check_mode=True)
    assert answer["verdict"] == "pass"
    assert list(tmp_path.iterdir()) == []


def test_no_result_is_not_a_pass(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert run(capsys, path=str(tmp_path), results=[])["verdict"] == "no_data"


def test_folder_that_cannot_be_made(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "file").write_text("")
    answer = run(capsys, path=str(tmp_path / "file" / "report"))
    assert answer["failed"]
    assert answer["msg"].startswith(f"report: cannot write to {tmp_path}/file/report: ")
