"""fabric_judge through its main(): what it reads from the evidence folder."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from tests.unit.support import module_run, tester_logs
from tests.unit.support.tester_logs import ROW, frame

from ansible_collections.gpufabric.rdma.plugins.module_utils._fabric.measure.judge.earlier_report import SCHEMA

PLAN = tester_logs.plan(["a", "b"], ["rail0"], retries=0)
KNOWN = {name: {"drivers": {"rdma_rxe": "1"}, "rails": {"rail0": {"kind": "soft"}}} for name in "ab"}


def run(capsys: pytest.CaptureFixture[str], folder: Path, **params: Any) -> dict[str, Any]:
    args = {"plan": PLAN, "where": "host", "evidence": str(folder), "hosts": KNOWN, **params}
    return module_run.run("fabric_judge", capsys, **args)


def describe(folder: Path) -> None:
    (folder / "describe").mkdir()
    for number, name in enumerate("ab"):
        (folder / "describe" / f"{name}.log").write_text(
            tester_logs.described(
                [f'rail0 device=mlx5_0 port=1 gid=3 address=10.0.0.{number} mtu=4096 rate="100 Gb/sec"'],
                "perftest=6.24 machine_id=1",
            )
        )


def play(folder: Path, lines_of: dict[str, list[str]], but: str = "") -> None:
    """The logs of the first pass, all tests as asked; no log of the host ``but``."""
    (folder / "pass-1").mkdir()
    for name, lines in lines_of.items():
        log = tester_logs.log(1, lines, [frame(line, 0, ROW % "97.90", "seconds=11") for line in lines[:-1]])
        if name != but:
            # A log may end in bytes that are no text.
            (folder / "pass-1" / f"{name}.log").write_bytes(log.encode() + b"\xff\xfe")


def test_from_nothing_to_done(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    describe(tmp_path)
    first = run(capsys, tmp_path)
    assert (first["changed"], first["done"], first["pass"], first["rounds"], first["seconds"]) == (
        False,
        False,
        1,
        2,
        32,
    )
    play(tmp_path, first["lines"])
    (tmp_path / "requests").write_text("12\n7\n")
    last = run(capsys, tmp_path)
    assert (last["done"], last["summary"]["verdict"], last["requests"]) == (True, "pass", 19)


def test_a_pass_without_logs_is_no_data_with_what_the_transport_said(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    describe(tmp_path)
    (tmp_path / "pass-1").mkdir()
    (tmp_path / "pass-1" / "a.error").write_text("Failed to connect to the host via ssh:\nno route to host\n")
    last = run(capsys, tmp_path)
    assert last["done"] and last["summary"]["no_data"] == 2
    assert last["results"][0]["reason"].startswith("a: Failed to connect to the host via ssh: no route to host; ")


def test_a_folder_that_is_not_there_is_no_data(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    answer = run(capsys, tmp_path / "none", failure="the API server does not answer")
    assert answer["done"] and answer["results"][0]["reason"] == (
        "a: the API server does not answer; b: the API server does not answer"
    )


def test_one_host_is_refused(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    answer = run(capsys, tmp_path, limit=["a"])
    assert answer["failed"]
    assert answer["msg"].startswith("nothing was measured: a measurement needs two hosts, one given")


def report(path: Path, *results: dict[str, Any]) -> str:
    usual = {
        "where": "host",
        "rail": "rail0",
        "client": "a",
        "server": "b",
        "test": "write_bw",
        "verdict": "pass",
        "value": 97.0,
        "unit": "Gb/s",
        "expected": 93.0,
        "bound_by": "link",
        "reason": "",
        "passes": [],
    }
    port = {"machine_id": "1", "device": "mlx5_0", "rate": "100 Gb/sec", "kind": "soft", "drivers": "rdma_rxe 1"}
    endpoints = {"host": {name: {"rail0": port} for name in "ab"}}
    rows = [{**usual, **change} for change in results]
    made = {"schema": SCHEMA, "verdict": "fail", "results": rows, "tests": PLAN["tests"], "endpoints": endpoints}
    path.write_text(json.dumps(made))
    return str(path)


def test_resume_reads_an_earlier_report(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    describe(tmp_path)
    path = report(tmp_path / "report.json", {}, {"client": "b", "server": "a", "verdict": "fail"})
    answer = run(capsys, tmp_path, resume=path)
    assert (answer["rounds"], answer["lines"]["b"][0].split()[:3]) == (1, ["0", "rail0", "client"])
    assert [r["verdict"] for r in run(capsys, tmp_path, resume=path, failure="stop")["results"]] == ["pass", "no_data"]
    assert answer["warnings_found"] == ["1 of 2 results are those of the earlier report: they passed there"]


def unfinished(folder: Path, capsys: pytest.CaptureFixture[str], but: str = "") -> Path:
    """The folder of a run that was interrupted after its first pass; no log of the host ``but`` came back."""
    evidence = folder / "evidence" / "host"
    evidence.mkdir(parents=True)
    describe(evidence)
    play(evidence, run(capsys, evidence)["lines"], but)
    about = {"run": {"id": "20261122T000000Z-00000a"}, "scope": {"only": {}}, "hosts": KNOWN, "earlier": {"resume": ""}}
    (folder / "run.json").write_text(json.dumps(about))
    (folder / "plan.json").write_text(json.dumps(PLAN))
    return folder


def test_a_run_that_did_not_end_is_continued(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    today = tmp_path / "today"
    today.mkdir()
    describe(today)
    before = unfinished(tmp_path / "before", capsys)
    answer = run(capsys, today, resume=str(before))
    assert (
        answer["done"]
        and [(r["verdict"], r["resumed"]) for r in answer["results"]] == [("pass", "20261122T000000Z-00000a")] * 2
    )
    # Of a pass whose logs did not all come back only what both sides recorded counts.
    assert run(capsys, today, resume=str(unfinished(tmp_path / "partly", capsys, but="a")))["rounds"] == 2
    # In another place nothing was measured.
    assert run(capsys, today, resume=str(before), where="pod")["rounds"] == 2
    # A run that resumed another one is continued as well.
    about = json.loads((before / "run.json").read_text())
    (before / "run.json").write_text(json.dumps({**about, "earlier": {"resume": str(tmp_path / "partly")}}))
    assert run(capsys, today, resume=str(before))["done"]


def test_a_folder_that_is_no_run(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    answer = run(capsys, tmp_path, resume=str(tmp_path))
    assert answer["failed"] and answer["msg"] == (
        f"resume: cannot read {tmp_path}/run.json: No such file or directory. Give the report.json or folder of an"
        " earlier run"
    )
    for name in ("run.json", "plan.json"):
        (tmp_path / name).write_text("{}")
    assert run(capsys, tmp_path, resume=str(tmp_path))["msg"] == (
        f"resume: {tmp_path} has no report.json and is not a run folder of this collection: run.json or plan.json is"
        " damaged. Give the report.json or folder of an earlier run"
    )


def test_a_run_that_resumes_itself_is_refused(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    folder = unfinished(tmp_path / "run", capsys)
    about = json.loads((folder / "run.json").read_text())
    (folder / "run.json").write_text(json.dumps({**about, "earlier": {"resume": str(folder)}}))
    assert run(capsys, tmp_path, resume=str(folder))["msg"] == (
        f"resume: {folder} is a run folder that resumes itself. Give the report.json or folder of an earlier run"
    )


@pytest.mark.parametrize("folder", [False, True])
def test_a_report_of_an_older_schema_is_not_resumed(
    folder: bool, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = tmp_path / "report.json"
    path.write_text('{"schema": "gpufabric.rdma/report/1", "results": []}')
    answer = run(capsys, tmp_path, resume=str(tmp_path if folder else path))
    assert answer["failed"] and answer["msg"] == (
        f"resume: {path} has the schema gpufabric.rdma/report/1, expected gpufabric.rdma/report/2: another version of"
        " this collection wrote it. Run a new measurement, and give its report.json"
    )


OTHER, GIVE = "PATH is not a report of this collection: ", "Give the report.json of an earlier run"


@pytest.mark.parametrize(
    ("text", "message"),
    [
        (None, "cannot read PATH: No such file or directory. Give the report.json or folder of an earlier run"),
        ("", f"{OTHER}expected JSON, found an error: Expecting value: line 1 column 1 (char 0). {GIVE}"),
        ("[3]", f"{OTHER}expected a dict, found a list. {GIVE}"),
        (json.dumps({"schema": SCHEMA, "verdict": "pass", "results": [{}]}),
         f"{OTHER}results[0].where: expected a value, found nothing (null). {GIVE}"),
    ],
)  # fmt: skip
def test_what_cannot_be_resumed(
    text: str | None, message: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = tmp_path / "report.json"
    if text is not None:
        path.write_text(text)
    answer = run(capsys, tmp_path, resume=str(path))
    assert answer["failed"] and answer["msg"] == f"resume: {message.replace('PATH', str(path))}"


@pytest.mark.parametrize(
    ("only", "message"),
    [
        ({"hosts": ["c"]}, "nothing was measured: only.hosts or pairs: c not in this run, which has a, b"),
        ({"pairs": [["a"]]}, "only.pairs: expected lists of two hosts such as [gpu-1, gpu-2], found a list in it"),
        ({"rails": ["rail9"]}, "nothing was measured: only.rails: rail9 not in this run, which has rail0"),
    ],
)
def test_only_with_a_wrong_name_is_refused(
    only: dict[str, Any], message: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    answer = run(capsys, tmp_path, only=only)
    assert answer["failed"] and answer["msg"] == message


def test_the_length_of_the_pass_is_announced(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    describe(tmp_path)
    answer = run(capsys, tmp_path, slot_margin=5)
    assert (
        answer["announce"]
        == answer["schedule"]["text"]
        == (
            "pass 1 (schedule), mode all_pairs: 2 tests of write_bw in 2 rounds of 15 s, 30 s; "
            "with all retries at worst 30 s beside the start of each pass; "
            "failures add up to 12 rounds to locate faults and up to 90 rounds (budget quick) for ports that read low"
            " intermittently, at worst 42 min 30 s"
        )
    )
    assert (answer["seconds"], answer["worst"]) == (30, 30 + 102 * 25)


def test_ports_of_hosts_are_read_for_pods(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    describe(tmp_path)
    first = run(capsys, tmp_path, where="pod")
    play(tmp_path, first["lines"])
    port = "=== gpufabric port rail0 eth0\nuncorrectable_blocks: {}\n"
    for when, count in (("before", 3), ("after", 5)):
        found = run(capsys, tmp_path, where="pod")
        # One reading alone shows nothing.
        assert not found["links"]
        (tmp_path / f"ports-{when}").mkdir()
        (tmp_path / f"ports-{when}" / "a.log").write_text(port.format(count))
    (link,) = run(capsys, tmp_path, where="pod")["links"]
    assert link["text"] == ("a rail0: FEC could not correct 2 blocks (ethtool --show-fec). Check cable and transceiver")
