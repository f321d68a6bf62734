"""fabric_report through its main(): files on disk, never a change, a clear error."""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import Any

import jsonschema
import pytest
from tests.unit.support import module_run
from tests.unit.support import report_factory as factory

from ansible_collections.gpufabric.rdma.plugins.plugin_utils import page

ROOT = Path(__file__).resolve().parents[4]


def run(capsys: pytest.CaptureFixture[str], **params: Any) -> dict[str, Any]:
    args = {"plan": factory.plan(3, 1), "results": factory.results(3, 1), **params}
    answer = module_run.run("fabric_report", capsys, **args)
    # The action plugin does this with the module's answer.
    if data := answer.pop("page", None):
        page.write(answer["path"], data)
    return answer


def test_files(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    answer = run(capsys, path=str(tmp_path / "new" / "report"))
    assert (answer["changed"], answer["verdict"]) == (False, "pass")
    folder = tmp_path / "new" / "report"
    assert sorted(p.name for p in folder.iterdir()) == sorted(answer["files"])
    assert json.loads((folder / "report.json").read_text())["verdict"] == "pass"
    # node-exporter has a user of its own.
    assert {p.name: p.stat().st_mode & 0o777 for p in folder.iterdir()} == {
        **dict.fromkeys(answer["files"], 0o640),
        "metrics.prom": 0o644,
    }


def test_check_mode_writes_nothing(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    answer = run(capsys, path=str(tmp_path / "report"), check=True)
    assert answer["verdict"] == "pass"
    assert list(tmp_path.iterdir()) == []


def test_no_result_is_not_a_pass(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert run(capsys, path=str(tmp_path), results=[])["verdict"] == "no_data"


def test_folder_that_cannot_be_made(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "file").write_text("")
    answer = run(capsys, path=str(tmp_path / "file" / "report"))
    assert answer["failed"]
    assert answer["msg"].startswith(f"report: cannot write to {tmp_path}/file/report: ")


@pytest.mark.parametrize("call", ["chmod", "replace"])
def test_a_file_that_cannot_be_written_leaves_no_draft(
    call: str, tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    def refuse(*_args: object) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(os, call, refuse)
    answer = run(capsys, path=str(tmp_path))
    assert answer["msg"] == f"report: cannot write to {tmp_path}: No space left on device; choose another path"
    assert list(tmp_path.iterdir()) == []


def test_summary_is_small_and_complete(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    made = factory.fleet(8, 2, faults={("gpu-003", "rail1"): "slow"})
    answer = run(capsys, path=str(tmp_path), plan=made["plan"], results=made["results"], **made["parts"])
    assert answer["summary"] == {
        "verdict": "fail",
        "hosts": 8,
        "tests": 112,
        "pass": 98,
        "fail": 14,
        "no_data": 0,
        "gates": [],
        "diagnoses": [made["parts"]["diagnoses"][0]["text"]],
        "path": str(tmp_path),
        "run": "",
        "subset": [],
        "cluster": "",
        "release": "",
    }
    assert answer["text"][0].startswith("FAULT (confirmed): gpu-003 rail1")
    assert json.loads((tmp_path / "report.json").read_text())["schedule"] == made["parts"]["schedule"]


def test_compare_with_the_report_that_is_replaced(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert run(capsys, path=str(tmp_path))["verdict"] == "pass"
    slow = factory.results(3, 1, {("gpu-001", "rail0"): ("fail", "slow")})
    answer = run(capsys, path=str(tmp_path), results=slow, compare=str(tmp_path / "report.json"))
    assert "compared: worse: gpu-001 rail0 (host) in 4 tests" in answer["text"]
    made = json.loads((tmp_path / "report.json").read_text())["comparison"]
    assert (made["before"]["verdict"], len(made["worse"])) == ("pass", 4)
    assert "gpu-001 rail0 (host) in 4 tests" in (tmp_path / "report.html").read_text()


def test_a_run_of_several_sizes_is_a_baseline_for_the_next(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    sized = [{**one, "size": size} for size in (4096, 65536) for one in factory.results(3, 1)]
    run(capsys, path=str(tmp_path), results=sized)
    before = str(tmp_path / "report.json")
    slow = [{**one, "value": 50.0} if one["size"] == 4096 else one for one in sized]
    answer = run(capsys, path=str(tmp_path / "new"), results=slow, baseline=before, compare=before)
    assert answer["verdict"] == "fail"
    made = json.loads((tmp_path / "new" / "report.json").read_text())
    jsonschema.validate(made, json.loads((ROOT / "docs" / "report.schema.json").read_text()))
    assert len(made["baseline"]) == len(made["comparison"]["worse"]) == 6
    assert all("write_bw 4096 B: 50 Gb/s" in row["text"] for row in made["baseline"])


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        (None, "No such file or directory"),
        ("{", ": expected JSON, found an error: Expecting property name"),
        ("[" * 100_000, ": expected JSON, found lists or dicts nested too deeply"),
        ("[]", ": expected a dict, found a list"),
        ('{"schema": "other/2"}', ': schema: expected gpufabric.rdma/report/2, found "other/2" (text)'),
    ],
)
@pytest.mark.parametrize("option", ["baseline", "compare"])
def test_a_file_that_is_not_a_report_is_refused(
    option: str, tmp_path: Path, capsys: pytest.CaptureFixture[str], text: str | None, expected: str
) -> None:
    earlier = tmp_path / "earlier.json"
    if text is not None:
        earlier.write_text(text)
    answer = run(capsys, path=str(tmp_path / "report"), **{option: str(earlier)})
    what = "is not a report of this collection" if text else f"cannot read {earlier}: "
    assert answer["failed"] and what in answer["msg"] and expected in answer["msg"]
    assert answer["msg"].startswith(f"{option}: ") and str(earlier) in answer["msg"]
    assert answer["msg"].endswith(". Give the report.json of an earlier run")
    assert not (tmp_path / "report").exists()


@pytest.mark.parametrize("option", ["baseline", "compare"])
def test_a_report_of_an_older_schema_is_refused(
    option: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    run(capsys, path=str(tmp_path / "old"))
    earlier = tmp_path / "old" / "report.json"
    earlier.write_text(earlier.read_text().replace("rdma/report/2", "rdma/report/1"))
    answer = run(capsys, path=str(tmp_path / "new"), **{option: str(earlier)})
    assert answer["failed"] and answer["msg"] == (
        f"{option}: {earlier} has the schema gpufabric.rdma/report/1, expected gpufabric.rdma/report/2: another version"
        " of this collection wrote it. Run a new measurement, and give its report.json"
    )
    assert not (tmp_path / "new").exists()


@pytest.mark.parametrize(
    ("redact", "address", "host"),
    [
        (False, True, True),
        ("no", True, True),
        (True, False, True),
        ("yes", False, True),
        (["addresses"], False, True),
        ("hosts", True, False),
        (["addresses", "serials", "hosts"], False, False),
    ],
)
def test_redact_everywhere(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], redact: Any, address: bool, host: bool
) -> None:
    slow = factory.results(3, 1, {("gpu-001", "rail0"): ("fail", "192.168.0.2 of gpu-001 is slow")})
    answer = run(capsys, path=str(tmp_path), results=slow, redact=redact, warnings=["192.168.0.3 of gpu-002 too"])
    answer.pop("invocation", None)
    texts = {path.name: path.read_text() for path in tmp_path.iterdir()}
    texts["answer"] = json.dumps(answer)
    assert any("192.168.0." in text for text in texts.values()) is address
    assert any("gpu-00" in text for text in texts.values()) is host


def test_redact_that_is_not_known(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    answer = run(capsys, path=str(tmp_path / "report"), redact=["everything"])
    assert answer["msg"].startswith("redact: everything is not known; expected true, false or some of ")
    assert not (tmp_path / "report").exists()


def schema_holds(folder: Path) -> dict[str, Any]:
    made = json.loads((folder / "report.json").read_text())
    jsonschema.validate(made, json.loads((ROOT / "docs" / "report.schema.json").read_text()))
    return made


def test_a_gate_that_does_not_hold_fails_the_report(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    query = "min(rails[].worst) > `100000`"
    for severity, verdict in (("failure", "fail"), ("warning", "pass")):
        plan = {**factory.plan(3, 1), "gates": [{"name": "fast", "query": query, "severity": severity}]}
        answer = run(capsys, path=str(tmp_path), plan=plan)
        (found,) = schema_holds(tmp_path)["gates"]
        assert (answer["verdict"], found["verdict"], found["text"]) == (verdict, "fail", "fast: does not hold")
        assert answer["summary"]["gates"] == (["fast"] if verdict == "fail" else [])
    assert "gate fast" not in answer["text"][0]


def test_a_test_that_lost_against_the_baseline_fails_the_report(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    good = tmp_path / "good"
    assert run(capsys, path=str(good))["verdict"] == "pass"
    results = [{**r, "value": r["value"] * 0.8} if r["client"] == "gpu-001" else r for r in factory.results(3, 1)]
    before = str(good / "report.json")
    answer = run(capsys, path=str(tmp_path), results=results, baseline=before)
    assert answer["verdict"] == "fail" and any("-20 %" in line for line in answer["text"])
    assert len(schema_holds(tmp_path)["baseline"]) == sum(r["client"] == "gpu-001" for r in results)
    assert run(capsys, path=str(tmp_path), results=results, baseline=before, baseline_drop=0.3)["verdict"] == "pass"


def test_a_baseline_of_other_hosts_proves_nothing(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    good = tmp_path / "good"
    run(capsys, path=str(good))
    results = [{**r, "client": f"x{r['client']}", "server": f"x{r['server']}"} for r in factory.results(3, 1)]
    answer = run(capsys, path=str(tmp_path), results=results, baseline=str(good / "report.json"))
    assert answer["verdict"] == "fail"
    (found,) = schema_holds(tmp_path)["baseline"]
    assert found["text"].startswith("nothing was compared") and found["value"] is None
    partly = run(capsys, path=str(tmp_path), results=factory.results(3, 1)[1:], baseline=str(good / "report.json"))
    assert partly["verdict"] == "pass" and any("have no value in this run" in line for line in partly["text"])
    schema_holds(tmp_path)


def test_results_of_an_earlier_run_alone_are_no_measurement(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    kept = [{**result, "resumed": "20261122T000000Z-00000a"} for result in factory.results(3, 1)]
    (tmp_path / "old").mkdir()
    report, new = tmp_path / "old/report.json", tmp_path / "new"
    report.write_text("{}")
    for resumed in (report, report.parent):
        about = {"id": "20261123T013000Z-3f9a2c", "started": 1, "resumed": str(resumed)}
        answer = run(capsys, path=str(new), results=kept, run=about)
        assert answer["failed"] and answer["msg"] == (
            "nothing was measured: all 6 tests passed in the earlier run 20261122T000000Z-00000a. Its report remains "
            f"valid: {report}. To measure again, leave resume empty"
        )
    assert not new.exists()
    some = [*kept[1:], factory.result("gpu-000", "gpu-001")]
    assert run(capsys, path=str(new), results=some, run=about)["verdict"] == "pass"


def test_all_results_of_a_run_without_a_report_are_reported(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    kept = [{**result, "resumed": "20261122T000000Z-00000a"} for result in factory.results(3, 1)]
    about = {"id": "20261123T013000Z-3f9a2c", "started": 1, "resumed": str(tmp_path / "old")}
    (tmp_path / "old").mkdir()
    assert run(capsys, path=str(tmp_path / "new"), results=kept, run=about)["verdict"] == "pass"
    assert schema_holds(tmp_path / "new")["run"]["resumed"] == str(tmp_path / "old")


def test_runs_with_one_report_folder_keep_each_report(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    first, second = ({"id": f"20261123T01300{number}Z-3f9a2c", "started": 1} for number in (0, 1))
    run(capsys, path=str(tmp_path), run=first)
    (tmp_path / "notes").write_text("mine")
    # The same run may write its report again.
    answer = run(capsys, path=str(tmp_path), run=first)
    assert sorted(path.name for path in tmp_path.iterdir()) == sorted([*answer["files"], "notes"])
    run(capsys, path=str(tmp_path), run=second)
    aside = tmp_path / "runs" / first["id"]
    assert sorted(path.name for path in aside.iterdir()) == sorted(answer["files"])
    for place, about in ((aside, first), (tmp_path, second)):
        assert json.loads((place / "report.json").read_text())["run"]["id"] == about["id"]
    for text in ("{", "[]"):
        (tmp_path / "report.json").write_text(text)
        run(capsys, path=str(tmp_path), run=second)
    unknown = tmp_path / "runs" / f"unknown-{second['id']}"
    assert (unknown / "report.json").read_text() == "{"
    assert (unknown.with_name(unknown.name + "-2") / "report.json").read_text() == "[]"


def test_hostile_text_reaches_no_terminal_and_no_number_is_infinite(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    bad = "\x1b[2J\x9b31m\x07 \udc80 gone"
    failed = factory.result("gpu-000", "gpu-001", verdict="fail", reason=bad, value=float("inf"), rail="r\x1b[0m")
    made = factory.fleet(3, 1, faults={("gpu-001", "rail0"): "slow"})["parts"]["diagnoses"][0]
    answer = run(capsys, path=str(tmp_path), results=[failed], warnings=[bad], diagnoses=[{**made, "text": bad}])
    assert answer["verdict"] == "fail" and "gone" in answer["summary"]["diagnoses"][0]
    texts = [(tmp_path / name).read_text() for name in answer["files"]]
    for text in [*texts, *answer["text"], *answer["summary"]["diagnoses"]]:
        assert not [char for char in text if (char < " " and char not in "\n\t") or "\x7f" <= char <= "\x9f"]
    strict = json.loads(texts[0], parse_constant=lambda word: pytest.fail(word))
    assert strict["results"][0]["value"] is None
