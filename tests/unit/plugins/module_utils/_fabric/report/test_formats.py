"""A format of reports is one entry: the rest of the product picks up a new one."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from tests.unit.support import report_factory as factory
from tests.unit.support.module_run import run

from ansible_collections.gpufabric.rdma.plugins.module_utils._controller import report_folder
from ansible_collections.gpufabric.rdma.plugins.module_utils._fabric.report import formats

TOY = formats.Format("verdict.csv", lambda source: f"verdict,{source.report['verdict']},{len(source.plan)}\n")
RUN = "20261122T000000Z-00000a"


@pytest.fixture(autouse=True)
def toy(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(formats.FORMATS, "csv", TOY)


def test_no_two_formats_have_one_file() -> None:
    assert len(set(formats.files())) == len(formats.FORMATS)


def test_it_is_written_with_the_others(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    plan = factory.plan(2, 1)
    done = run("fabric_report", capsys, plan=plan, results=factory.results(2, 1), path=str(tmp_path))
    assert TOY.file in done["files"] and done["files"] == list(formats.files())
    assert (tmp_path / TOY.file).read_text() == f"verdict,pass,{len(plan)}\n"


def test_it_is_set_aside_with_the_others(tmp_path: Path) -> None:
    report = {"schema": "gpufabric.rdma/report/2", "run": {"id": RUN}}
    (tmp_path / "report.json").write_text(json.dumps(report))
    (tmp_path / TOY.file).write_text("1")
    (tmp_path / "notes.txt").write_text("kept in its place")
    report_folder.set_aside(str(tmp_path), "20261123T000000Z-00000b")
    assert (tmp_path / "runs" / RUN / TOY.file).read_text() == "1"
    assert (tmp_path / "notes.txt").exists() and not (tmp_path / TOY.file).exists()


def test_a_folder_with_it_is_one_of_reports_alone(tmp_path: Path) -> None:
    folder = tmp_path / f"unknown-{RUN}"
    folder.mkdir()
    (folder / "report.json").write_text('{"schema": "gpufabric.rdma/report/2"}')
    (folder / TOY.file).write_text("1")
    assert report_folder.is_unknown(str(folder))
    (folder / "notes.txt").write_text("of somebody else")
    assert not report_folder.is_unknown(str(folder))
