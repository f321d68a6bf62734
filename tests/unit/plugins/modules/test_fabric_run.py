"""fabric_run through its main(): folders of runs, what is set aside, what is removed, when nothing is measured."""

from __future__ import annotations

import json
import os
import subprocess
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest
import yaml
from tests.unit.support import report_factory as factory
from tests.unit.support.module_run import run as run_module
from tests.unit.support.plan_factory import host_facts, port, rdma_device

from ansible_collections.gpufabric.rdma.plugins.module_utils._controller import process, report_folder
from ansible_collections.gpufabric.rdma.plugins.module_utils._fabric.report import kept, runs
from ansible_collections.gpufabric.rdma.plugins.module_utils._fabric.report.formats import to_json
from ansible_collections.gpufabric.rdma.plugins.module_utils._fabric.report.summary import SCHEMA

ROOT = Path(__file__).resolve().parents[4]
FILES = ["report.json", "report.html", "junit.xml", "metrics.prom", "report.txt", "plan.json"]
OLD = "20261122T000000Z-00000a"
PLAN = {
    **factory.plan(2, 1),
    "rails": [{"name": "rail0"}],
    "endpoints": {"host": ["gpu-000", "gpu-001"], "pod": []},
    "tests": {},
    "operator": {"release": "26.7.1"},
}
PORT = port("0000:10:00.0", "rail0", rdma=["mlx5_0"])
DEVICE = {**rdma_device("mlx5_0", PORT), "firmware": "28.43.2026"}
FACTS = host_facts(
    1, ports=[PORT, port("0000:11:00.0", driver="igb")], machine_id="8d1f", kernel={"release": "6.8.0-45"},
    perftest={"path": "/usr/bin", "version": "6.24"},
    drivers={"ib_core": "24.10", "mlx5_core": "24.10, srcversion 8F7D", "igb": "1"},
    rdma_devices=[DEVICE, {**DEVICE, "name": "rxe0", "pci": None, "firmware": None}],
)  # fmt: skip
DAYS = [f"202611{day:02d}T000000Z-abcdef" for day in range(1, 15)]
# A process that has ended: another one has its number.
DEAD = {**process.note(os.getpid()), "start": "1"}
BOTH = {"gpu-000": FACTS, "gpu-001": FACTS}


def step(
    capsys: pytest.CaptureFixture[str], state: str, path: Path, check: bool = False, **params: Any
) -> dict[str, Any]:
    given = {"plan": PLAN, **params} if state != "ended" else params
    return run_module("fabric_run", capsys, check, state=state, path=str(path), **given)


def decide(capsys: pytest.CaptureFixture[str], path: Path, check: bool = False, **params: Any) -> dict[str, Any]:
    return step(capsys, "decided", path, check, **{"facts": BOTH, **params})


def begin(capsys: pytest.CaptureFixture[str], path: Path, **params: Any) -> dict[str, Any]:
    chosen = decide(capsys, path)
    return step(capsys, "begun", path, scope=chosen["scope"], hosts=chosen["hosts"], **params)


def report(path: Path, name: str = OLD, **changes: Any) -> dict[str, Any]:
    """The files of a report in a folder, as a run with all that FACTS have would have written them."""
    path.mkdir(parents=True, exist_ok=True)
    for file in FILES:
        (path / file).write_text("old")
    run = {"id": name, "ended": "2026-11-22 00:10:00 UTC"}
    made = {"schema": SCHEMA, "run": run, "verdict": "pass", "results": [], **changes}
    (path / "report.json").write_text(json.dumps(made))
    (path / "plan.json").write_text(json.dumps(PLAN))
    return made


def test_no_older_report_keeps_its_name_when_a_run_begins(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    report(tmp_path)
    (tmp_path / "notes.txt").write_text("mine")
    earlier = {"resume": str(tmp_path / "report.json"), "compare": "", "baseline": "/b.json"}
    answer = begin(capsys, tmp_path, earlier=earlier)
    assert not answer["changed"] and runs.RUN.fullmatch(answer["run"])
    assert sorted(p.name for p in tmp_path.iterdir()) == ["notes.txt", "runs"]
    old = tmp_path / "runs" / OLD
    assert sorted(p.name for p in old.iterdir()) == sorted(FILES)
    assert answer["earlier"] == {"resume": str(old / "report.json"), "compare": "", "baseline": "/b.json"}
    folder = Path(answer["folder"])
    assert folder == tmp_path / "runs" / answer["run"] and folder.stat().st_mode & 0o777 == 0o750
    assert sorted(str(p.relative_to(folder)) for p in folder.rglob("*")) == [
        "evidence",
        "evidence/host",
        "evidence/host/describe",
        "evidence/pod",
        "evidence/pod/describe",
        "plan.json",
        "run.json",
    ]
    about = json.loads((folder / "run.json").read_text())
    assert about["run"] == {"id": answer["run"], "started": answer["started"]}
    assert about["earlier"] == answer["earlier"]


@pytest.mark.parametrize("left", [["metrics.prom"], FILES])
def test_files_of_an_unknown_run_are_set_aside_too(
    left: list[str], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    for name in left:
        (tmp_path / name).write_text("gpufabric_rdma_fabric_passed 1\n")
    run = begin(capsys, tmp_path)["run"]
    assert [p.name for p in tmp_path.iterdir()] == ["runs"]
    assert sorted(p.name for p in (tmp_path / f"runs/unknown-{run}").iterdir()) == sorted(left)


def test_files_of_a_second_unknown_run_do_not_replace_those_of_the_first(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    for text in ("first", "second", "third"):
        (tmp_path / "report.json").write_text(text)
        report_folder.set_aside(str(tmp_path), OLD)
    places = (f"unknown-{OLD}", f"unknown-{OLD}-2", f"unknown-{OLD}-3")
    assert [(tmp_path / "runs" / place / "report.json").read_text() for place in places] == ["first", "second", "third"]


def test_reports_without_an_id_are_kept_as_long_as_those_of_runs(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """What else is in such a folder, or has another schema, was not written by this collection."""
    for day in range(1, 7):
        place = tmp_path / f"runs/unknown-2026110{day}T000000Z-00000a"
        place.mkdir(parents=True)
        (place / "report.json").write_text(json.dumps({"schema": SCHEMA if day != 2 else "mine", "verdict": "pass"}))
    (tmp_path / "runs/unknown-20261103T000000Z-00000a/notes.txt").write_text("mine")
    folders(tmp_path, {"20261104T120000Z-00000b": True, "unknown": True, "unknown-mine": True})
    answer = begin(capsys, tmp_path, keep=2)
    assert sorted(p.name for p in (tmp_path / "runs").iterdir()) == sorted(
        [
            "unknown-20261102T000000Z-00000a",
            "unknown-20261103T000000Z-00000a",
            "unknown-20261105T000000Z-00000a",
            "unknown-20261106T000000Z-00000a",
            "unknown",
            "unknown-mine",
            answer["run"],
        ]
    )
    kept = tmp_path / "runs/unknown-20261105T000000Z-00000a/report.json"
    again = begin(capsys, tmp_path, keep=0, earlier={"compare": str(kept)})
    assert kept.exists() and not (tmp_path / "runs/unknown-20261106T000000Z-00000a").exists() and not again["changed"]


def test_reports_of_an_older_schema_are_never_removed(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    old = ["20251101T000000Z-00000a", "20251102T000000Z-00000a", "unknown-20251103T000000Z-00000a"]
    new = ["20251104T000000Z-00000a", "20251105T000000Z-00000a"]
    for name in [*old, *new]:
        place = tmp_path / "runs" / name
        place.mkdir(parents=True)
        made = {"schema": SCHEMA.replace("/2", "/1") if name in old else SCHEMA, "verdict": "pass"}
        (place / "report.json").write_text(to_json(made))
    answer = begin(capsys, tmp_path, keep=1)
    assert sorted(p.name for p in (tmp_path / "runs").iterdir()) == sorted([*old, new[1], answer["run"]])
    assert answer["text"] == [
        f"3 runs in {tmp_path}/runs have a report of another version of this collection (its schema is not {SCHEMA})."
        " They are never removed automatically. Remove the ones that you do not need, such as the oldest:"
        f" rm -r {tmp_path}/runs/{old[0]}"
    ]


@pytest.mark.parametrize("when", ["never", "changed"])
def test_a_report_of_an_older_schema_is_not_relied_on(
    when: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    report(tmp_path, **{**whole(capsys, tmp_path), "schema": "gpufabric.rdma/report/1"})
    answer = decide(capsys, tmp_path, when=when)
    assert answer["measure"] is (when == "changed") and answer["text"][0].endswith(
        f"{tmp_path}/report.json has the schema gpufabric.rdma/report/1, expected gpufabric.rdma/report/2: another"
        " version of this collection wrote it"
    )


def folders(path: Path, names: Mapping[str, bool]) -> None:
    for name, finished in names.items():
        (path / "runs" / name / "evidence").mkdir(parents=True)
        if finished:
            (path / "runs" / name / "report.json").write_text("{}")


def passed(path: Path, name: str, **about: Any) -> Path:
    """The folder of a run that began a pass and has no report."""
    folder = path / "runs" / name
    (folder / "evidence/host/pass-1").mkdir(parents=True)
    (folder / "evidence/host/pass-1/gpu-1.log").write_text("x" * 100_000)
    (folder / "run.json").write_text(json.dumps(about))
    return folder


def test_an_unfinished_run_that_measured_is_never_removed(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    first = begin(capsys, tmp_path, process=DEAD)
    (Path(first["folder"]) / "evidence/pod/pass-1").mkdir(parents=True)
    for _ in range(12):
        answer = begin(capsys, tmp_path, process=DEAD)
    place = f"{tmp_path}/runs"
    assert answer["text"] == [f"Run {first['run']} did not end. To continue it, set resume: {place}/{first['run']}"]
    # Those that measured nothing go, all but the last 10.
    assert len(list(Path(place).iterdir())) == 1 + 10 + 1
    # Its own continuation needs no hint.
    assert begin(capsys, tmp_path, earlier={"resume": first["folder"]})["text"] == []


def test_unfinished_runs_that_pile_up_are_reported_with_their_size(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    tmp_path = tmp_path / "it's mine"
    for name in DAYS[:6]:
        passed(tmp_path, name, process=DEAD)
    text = begin(capsys, tmp_path)["text"]
    assert [line.split()[1] for line in text[:-1]] == DAYS[1:6]
    assert text[-1] == (
        f"6 runs in {tmp_path}/runs have no report and take 0.6 MB. Runs that measured something are never removed"
        " automatically. Remove the ones that you do not need, such as the oldest: rm -r '"
        + f"{tmp_path}/runs/{DAYS[0]}'".replace("it's", "it'\"'\"'s")
    )


UNKNOWN = "Run {} has no report; it may still run elsewhere. To continue it, set resume: {}"


@pytest.mark.parametrize(("noted", "text"), [
    (process.note(os.getpid()), "Run {} in the same folder is still in progress"),
    (DEAD, "Run {} did not end. To continue it, set resume: {}"),
    ({**DEAD, "pid": 0}, "Run {} did not end. To continue it, set resume: {}"),
    *(({**DEAD, **other}, UNKNOWN)
      for other in ({"system": "another boot"}, {"pid": "x"}, {"pid": None})),
    ({}, UNKNOWN),
    (7, UNKNOWN),
])  # fmt: skip
def test_a_run_that_is_still_going_on_is_told_apart(
    noted: Any, text: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    folder = passed(tmp_path, DAYS[0], process=noted)
    assert begin(capsys, tmp_path)["text"] == [text.format(DAYS[0], folder)]


def test_a_run_that_is_still_going_on_is_not_removed_before_its_first_pass(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    first = begin(capsys, tmp_path, process=process.note(os.getpid()))
    folders(tmp_path, dict.fromkeys((f"20990101T000000Z-0000{number}" for number in range(10, 25)), False))
    begin(capsys, tmp_path)
    assert Path(first["folder"]).exists() and not (tmp_path / "runs/20990101T000000Z-000014").exists()


def test_logs_that_hosts_may_still_have(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    folder = passed(tmp_path, DAYS[0], process=DEAD)
    last = folder / "evidence/host/pass-2"
    last.mkdir()
    (last / "gpu-000.log").write_text("=== gpufabric test\n=== gpufabric batch 2 done 1 0\n")
    (last / "gpu-001.log").write_text("=== gpufabric test\n")
    left = {"run": DAYS[0], "pass": 2, "folder": str(last), "hosts": ["gpu-001"], "ended": True, "largest": 958464}
    assert begin(capsys, tmp_path)["leftover"] == left
    assert begin(capsys, tmp_path, earlier={"resume": str(folder)})["leftover"] == left
    # What is continued, and not what is newest; a report has no logs on hosts.
    elsewhere = passed(tmp_path / "elsewhere", DAYS[1])
    other = begin(capsys, tmp_path, earlier={"resume": str(elsewhere)})["leftover"]
    assert (other["run"], other["pass"], other["hosts"], other["ended"]) == (DAYS[1], 1, ["gpu-000", "gpu-001"], False)
    (elsewhere / "report.json").write_text("{}")
    assert begin(capsys, tmp_path, earlier={"resume": str(elsewhere)})["leftover"] == {}
    # It ended before its first pass: it has the hosts, and no logs.
    first = begin(capsys, tmp_path, process=DEAD)["folder"]
    found = begin(capsys, tmp_path, earlier={"resume": first})["leftover"]
    assert (found["pass"], found["hosts"], found["ended"]) == (0, [], True)


def test_a_run_that_is_still_going_on_is_not_continued(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    folder = passed(tmp_path, DAYS[0], process=process.note(os.getpid()))
    answer = begin(capsys, tmp_path, earlier={"resume": str(folder)})
    assert answer["failed"] and answer["msg"] == (
        f"run: resume names {folder}, and this run is still in progress. Wait until it ends; its report"
        " then shows whether anything is left to measure"
    )
    assert [path.name for path in (tmp_path / "runs").iterdir()] == [DAYS[0]]
    assert begin(capsys, tmp_path)["leftover"] == {}


def test_an_earlier_run_of_the_same_process_is_not_going_on(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """One ansible-playbook measures several times, one after the other."""
    own = process.note(os.getpid())
    folder = passed(tmp_path, DAYS[0], process=own)
    answer = begin(capsys, tmp_path, process=own, earlier={"resume": str(folder)})
    assert answer["leftover"]["ended"] is True
    assert begin(capsys, tmp_path, process=own)["text"] == [
        f"Run {DAYS[0]} did not end. To continue it, set resume: {folder}"
    ]


def test_a_zombie_is_not_going_on() -> None:
    child = subprocess.Popen(["sleep", "0"])
    noted = process.note(child.pid)
    os.waitid(os.P_PID, child.pid, os.WEXITED | os.WNOWAIT)
    assert process.is_running(noted) is False
    child.wait()
    assert process.is_running(noted) is False
    assert process.note(child.pid) == {}


def test_only_old_runs_of_ours_are_removed(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    done = [f"2026112{day}T000000Z-00000{day}" for day in range(4)]
    others = {"mine": True, "20261120T000000Z": True}
    folders(tmp_path, {**dict.fromkeys(done, True), **others})
    passed(tmp_path, "20200101T000000Z-abcdef", process=DEAD)
    elsewhere = tmp_path / "elsewhere"
    elsewhere.mkdir()
    (tmp_path / "runs/20190101T000000Z-abcdef").symlink_to(elsewhere)
    answer = begin(capsys, tmp_path, keep=2)
    assert sorted(p.name for p in (tmp_path / "runs").iterdir()) == sorted(
        [*done[2:], "mine", "20261120T000000Z", "20200101T000000Z-abcdef", "20190101T000000Z-abcdef", answer["run"]]
    )
    assert answer["text"] == [
        f"Run 20200101T000000Z-abcdef did not end. To continue it, set resume: {tmp_path}/runs/20200101T000000Z-abcdef"
    ]


DONE, EMPTY, BEGUN = kept.Known(True), kept.Known(False), kept.Known(False, passes=True)
ALL = {"where": ["host", "pod"], "hosts": ["a", "b"], "rails": ["r"], "only": {}}


def resuming(done: bool, path: str, **changes: Any) -> kept.Known:
    return kept.Known(done, path, scope={**ALL, **changes})


@pytest.mark.parametrize(
    ("changes", "keep", "old", "unfinished"),
    [
        (dict.fromkeys(DAYS, BEGUN), 5, [], DAYS),
        (dict.fromkeys(DAYS, EMPTY), 5, DAYS[:4], DAYS[4:]),
        ({**dict.fromkeys(DAYS, EMPTY), DAYS[0]: kept.Known(False, running=True)}, 5, DAYS[1:4], [DAYS[0], *DAYS[4:]]),
        (dict.fromkeys(DAYS, DONE), 5, DAYS[:9], []),
        (dict.fromkeys(DAYS, DONE), 0, DAYS, []),
        # The first was continued by the last, so it is none that waits; the second is needed by one that does not end.
        ({DAYS[0]: BEGUN, DAYS[13]: kept.Known(True, f"/r/runs/{DAYS[0]}")}, 1, [DAYS[0]], []),
        ({DAYS[0]: BEGUN, DAYS[13]: kept.Known(True, f"/r/runs/{DAYS[0]}")}, 2, [], []),
        ({DAYS[1]: DONE, DAYS[2]: DONE, DAYS[3]: kept.Known(False, f"/r/{DAYS[1]}/report.json")}, 1, [], [DAYS[3]]),
        # Continued by one that did not end either, and that by one that did.
        ({DAYS[0]: BEGUN, DAYS[1]: kept.Known(False, DAYS[0], True), DAYS[2]: kept.Known(True, DAYS[1])}, 1,
         DAYS[:2], []),
        # What continued it did not measure all that it was to measure.
        *(({DAYS[0]: kept.Known(False, "", True, False, ALL), DAYS[1]: resuming(True, DAYS[0], **less)}, 0,
           [DAYS[1]], [DAYS[0]]) for less in ({"where": ["host"]}, {"hosts": ["a"]}, {"only": {"rails": ["r"]}})),
        ({DAYS[0]: kept.Known(False, "", True, False, ALL), DAYS[1]: resuming(True, DAYS[0])}, 0, DAYS[:2], []),
    ],
)  # fmt: skip
def test_which_runs_are_kept(changes: dict[str, kept.Known], keep: int, old: list[str], unfinished: list[str]) -> None:
    assert kept.sorted_out(changes, keep) == (old, unfinished)


@pytest.mark.parametrize("option", ["baseline", "compare", "resume"])
@pytest.mark.parametrize("file", ["report.json", ""])
def test_a_run_that_this_run_needs_is_not_removed(
    option: str, file: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    folders(tmp_path, {DAYS[0]: True, DAYS[1]: True})
    (tmp_path / "link").symlink_to(tmp_path / "runs")
    needed = str(tmp_path / "link" / DAYS[0] / file)
    answer = begin(capsys, tmp_path, keep=0, earlier={option: needed, "other": "", "none": None})
    assert sorted(p.name for p in (tmp_path / "runs").iterdir()) == [DAYS[0], answer["run"]]


def test_what_a_needed_run_resumed_is_needed_too() -> None:
    first, second, third, other = DAYS[:4]
    known = {first: DONE, second: kept.Known(True, f"/r/{first}"), third: kept.Known(True, f"/r/{second}"), other: DONE}
    assert kept.sorted_out(known, 0, [f"/r/runs/{third}"]) == ([other], [])


def test_a_negative_number_of_runs_is_refused(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    answer = begin(capsys, tmp_path, keep=-1)
    assert answer["failed"] and answer["msg"] == "run: keep is -1, expected 0 or more"
    assert list(tmp_path.iterdir()) == []


def test_the_report_folder_itself_can_be_resumed(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    report(tmp_path)
    answer = begin(capsys, tmp_path, earlier={"resume": str(tmp_path)})
    assert answer["earlier"] == {"resume": str(tmp_path / "runs" / OLD)}


def test_a_folder_that_cannot_be_written(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "file").write_text("")
    answer = begin(capsys, tmp_path / "file" / "report")
    assert answer["failed"] and answer["msg"].startswith(f"run: cannot write {tmp_path}/file/report")
    assert answer["msg"].endswith(": Not a directory; choose another folder or free space")


def test_a_run_ends_with_its_own_report(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    missing = step(capsys, "ended", tmp_path, run="20261123T013000Z-3f9a2c")
    assert missing["failed"] and missing["msg"] == (
        f"run 20261123T013000Z-3f9a2c ended without a report: {tmp_path}/report.json is missing; see the messages"
        f" above, and set resume: {tmp_path}/runs/20261123T013000Z-3f9a2c to continue it"
    )
    report(tmp_path)
    other = step(capsys, "ended", tmp_path, run="20261123T013000Z-3f9a2c")
    assert other["failed"] and f"report.json is that of run {OLD};" in other["msg"]
    assert "failed" not in step(capsys, "ended", tmp_path, run=OLD)
    # Another run has begun or ended meanwhile.
    report(tmp_path / "runs/20261123T013000Z-3f9a2c", "20261123T013000Z-3f9a2c")
    assert "failed" not in step(capsys, "ended", tmp_path, run="20261123T013000Z-3f9a2c")


def whole(capsys: pytest.CaptureFixture[str], path: Path, **params: Any) -> dict[str, Any]:
    """A report that covers what a run with these parameters covers."""
    chosen = decide(capsys, path, **params)
    return {"scope": chosen["scope"], "versions": chosen["hosts"]}


def test_changed_relies_on_a_pass_of_the_same_scope(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    report(tmp_path, **whole(capsys, tmp_path))
    answer = decide(capsys, tmp_path, when="changed")
    assert (answer["measure"], answer["text"]) == (
        False,
        [
            "nothing changed since the last report, which is a pass; the last report is "
            f"{tmp_path}/report.json: run {OLD}, ended 2026-11-22 00:10:00 UTC, verdict pass"
        ],
    )


OTHER = {**FACTS, "kernel": {"release": "6.8.0-49"}}
NEWER = {**DEVICE, "firmware": "28.44.1036"}
UPDATED = {"ib_core": "24.10", "mlx5_core": "25.01, srcversion 11AB"}


def changed_port(**changes: Any) -> dict[str, Any]:
    return {"facts": {**BOTH, "gpu-001": {**FACTS, "ports": [{**PORT, **changes}]}}}


@pytest.mark.parametrize(
    ("then", "now", "why"),
    [
        ({"only": {"rails": ["rail0"]}}, {}, "only is empty, it was rails rail0"),
        ({"where": ["host"]}, {}, "where is host, pod, it was host"),
        ({}, {"where": ["pod"]}, "where is pod, it was host, pod"),
        ({"image": "a:1"}, {"image": "a:2"}, "image is a:2, it was a:1"),
        ({}, {"host_network": True}, "host_network is True, it was False"),
        ({}, {"limit": "gpu-000,gpu-001"}, "limit is gpu-000,gpu-001, it was empty"),
        ({}, {"facts": {**BOTH, "gpu-001": OTHER}}, "gpu-001: the version of kernel is 6.8.0-49, it was 6.8.0-45"),
        ({}, {"facts": {**BOTH, "gpu-001": {**FACTS, "rdma_devices": [NEWER]}}},
         "gpu-001: rail0 firmware is 28.44.1036, it was 28.43.2026"),
        ({}, {"facts": {**BOTH, "gpu-001": {**FACTS, "ports": [{**PORT, "driver": "mlx5"}]}}},
         "gpu-001: rail0 driver is mlx5, it was mlx5_core"),
        ({}, changed_port(carrier=None), "gpu-001: rail0 link is unknown, it was up"),
        ({}, changed_port(carrier=False), "gpu-001: rail0 link is down, it was up"),
        ({}, changed_port(speed=100.0), "gpu-001: rail0 speed is 100 Gb/s, it was 400 Gb/s"),
        ({}, changed_port(mtu=9000), "gpu-001: rail0 mtu is 9000, it was 1500"),
        ({}, {"facts": {**BOTH, "gpu-001": {**FACTS, "rdma_devices": [{**DEVICE, "state": "DOWN"}]}}},
         "gpu-001: rail0 state is DOWN, it was ACTIVE"),
        ({}, {"facts": {**BOTH, "gpu-001": {**FACTS, "drivers": UPDATED}}},
         "gpu-001: the version of driver mlx5_core is 25.01, srcversion 11AB, it was 24.10, srcversion 8F7D"),
        ({}, {"facts": {**BOTH, "gpu-001": {**FACTS, "perftest": None}}},
         "gpu-001: the version of perftest is unknown, it was 6.24"),
        ({}, {"plan": {**PLAN, "tests": {"duration": 3}}}, "the plan is not that of the last report"),
    ],
)  # fmt: skip
def test_changed_compares_scope_and_versions(
    then: dict[str, Any], now: dict[str, Any], why: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    report(tmp_path, **whole(capsys, tmp_path, **then))
    answer = decide(capsys, tmp_path, when="changed", **now)
    assert answer["measure"] and why in answer["text"]


@pytest.mark.parametrize(
    ("changes", "why"),
    [
        ({"verdict": "fail"}, "the last verdict is fail"),
        ({"run": None}, "the last report does not record what it covers"),
        ({"scope": None}, "the last report does not record what it covers"),
        ({"versions": {}}, None),
    ],
)
def test_changed_does_not_rely_on_what_is_unknown(
    changes: dict[str, Any], why: str | None, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert decide(capsys, tmp_path, when="changed")["text"] == ["there is no report of an earlier run"]
    report(tmp_path, **{**whole(capsys, tmp_path), **changes})
    answer = decide(capsys, tmp_path, when="changed")
    assert answer["measure"] and (why is None or answer["text"] == [why])


def test_hosts_without_facts_are_measured(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    report(tmp_path, **whole(capsys, tmp_path, facts={}))
    answer = decide(capsys, tmp_path, when="changed", facts={})
    assert answer["measure"] and answer["text"] == ["no facts of gpu-000, gpu-001 could be read in this run"]
    report(tmp_path, **whole(capsys, tmp_path))
    answer = decide(capsys, tmp_path, when="changed", facts={"gpu-001": FACTS})
    assert answer["measure"] and answer["text"] == ["no facts of gpu-000 could be read in this run"]


def test_hosts_of_a_play_are_those_of_its_plan(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert "failed" not in decide(capsys, tmp_path, play=["gpu-001"], when="never")
    answer = decide(capsys, tmp_path, play=["gpu-000", "gpu-003", "gpu-004"], when="never")
    assert answer["failed"] and answer["msg"] == (
        "the plan has no endpoint for 2 of 3 hosts of this play: gpu-003, gpu-004. It is the plan of gpu-000, gpu-001."
        " Import gpufabric.rdma.plan for the hosts of this play"
    )


def test_hosts_with_different_traffic_classes_are_refused_only_where_they_are_measured(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    plan = {**PLAN, "tests": {**PLAN.get("tests", {}), "traffic": {"rail0": {"problem": "hosts differ"}}}}
    assert not decide(capsys, tmp_path, plan=plan, when="never")["measure"]
    answer = decide(capsys, tmp_path, plan=plan)
    assert answer["failed"] and answer["msg"] == "hosts differ"


def test_what_a_port_never_showed_did_not_change(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    silent = changed_port(carrier=None, speed=None)
    report(tmp_path, **whole(capsys, tmp_path, **silent))
    assert not decide(capsys, tmp_path, when="changed", **silent)["measure"]


def test_an_interrupted_run_in_between_means_measure_again(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    report(tmp_path, **whole(capsys, tmp_path))
    begin(capsys, tmp_path)
    assert decide(capsys, tmp_path, when="changed")["measure"]


@pytest.mark.parametrize(
    ("check", "when", "why"), [(True, "always", "check mode"), (False, "never", "option when is never")]
)
def test_a_deliberate_skip_names_what_it_relies_on(
    check: bool, when: str, why: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    answer = decide(capsys, tmp_path, check, when=when)
    path = tmp_path / "report.json"
    assert (answer["measure"], answer["text"]) == (False, [f"{why}; there is no report of an earlier run in {path}"])
    report(tmp_path, scope={"subset": ["pods not measured"]}, verdict="no_data")
    assert decide(capsys, tmp_path, check, when=when)["text"] == [
        f"{why}; the last report is {path}: run {OLD}, ended 2026-11-22 00:10:00 UTC, verdict no_data, subset:"
        " pods not measured"
    ]


@pytest.mark.parametrize("when", ["never", "changed"])
@pytest.mark.parametrize(
    ("text", "fault"),
    [
        (None, 'run: expected a dict, found "x" (text)'),
        ("", "expected JSON, found an error: Expecting value: line 1 column 1 (char 0)"),
        ("[" * 100_000, "expected JSON, found lists or dicts nested too deeply"),
    ],
)
def test_a_damaged_report_is_not_relied_on(
    text: str | None, fault: str, when: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    report(tmp_path, **{**whole(capsys, tmp_path), "run": "x"})
    if text is not None:
        (tmp_path / "report.json").write_text(text)
    answer = decide(capsys, tmp_path, when=when)
    found = f"{tmp_path}/report.json is not a report of this collection: {fault}"
    assert answer["measure"] is (when == "changed") and answer["text"][0].endswith(found)
    # Nevertheless its files are set aside.
    assert begin(capsys, tmp_path)["folder"] and not (tmp_path / "report.json").exists()


def test_a_report_that_cannot_be_read_is_named(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "report.json").mkdir()
    answer = decide(capsys, tmp_path, when="changed")
    assert answer["measure"] and answer["text"] == [f"cannot read {tmp_path}/report.json: Is a directory"]


def test_check_mode_writes_nothing(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    report(tmp_path)
    step(capsys, "begun", tmp_path, check=True)
    assert sorted(p.name for p in tmp_path.iterdir()) == sorted(FILES)


MORE = {**PLAN, "hosts": factory.plan(3, 1)["hosts"]}


@pytest.mark.parametrize(
    ("params", "subset"),
    [
        ({}, []),
        ({"where": ["host"]}, ["pods not measured"]),
        ({"plan": MORE, "limit": "gpu-00[01]"}, ["2 of 3 hosts (limit gpu-00[01])"]),
        ({"only": {"rails": ["rail0"], "hosts": []}}, ["only rails rail0"]),
        ({"plan": {**PLAN, "tests": {"only": {"pairs": [["a", "b"]]}}}}, ["only pairs a and b"]),
        ({"only": {"hosts": list("abcd")}}, ["only hosts a, b, c and more"]),
        # Empty answers of a survey are no choice, so that of the inventory counts.
        ({"only": {"hosts": [], "rails": []}, "plan": {**PLAN, "tests": {"only": {"rails": ["rail0"]}}}},
         ["only rails rail0"]),
    ],
)  # fmt: skip
def test_a_subset_is_named(
    params: dict[str, Any], subset: list[str], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert decide(capsys, tmp_path, **params)["scope"]["subset"] == subset


def test_the_version_is_that_of_the_collection() -> None:
    assert yaml.safe_load((ROOT / "galaxy.yml").read_text())["version"] == runs.VERSION


def test_hosts_in_use_stop_a_run_or_are_left_out(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    busy = {**FACTS, "workloads": {"queue_pairs": 2, "holders": ["ib_write_bw[7]"]}}
    facts = {"gpu-000": FACTS, "gpu-001": busy}
    found = decide(capsys, tmp_path, facts=facts)
    assert "gpu-001: 2 RDMA queue pairs are open (ib_write_bw[7])" in found["refused"] and found["excluded"] == {}
    found = decide(capsys, tmp_path, facts=facts, busy_hosts="exclude")
    assert found["refused"] == "" and list(found["excluded"]) == ["gpu-001"]
    assert "is not known" in decide(capsys, tmp_path, facts=facts, busy_hosts="maybe")["msg"]
    # What does not answer is not measured anyway.
    found = decide(capsys, tmp_path, facts=facts, plan={**PLAN, "absent": ["gpu-001"]})
    assert found["refused"] == ""


@pytest.mark.parametrize(
    ("asked", "expected"), [(False, ["gpu-000", "gpu-001"]), ("exclude", ["gpu-000", "gpu-001"]), (True, [])]
)
def test_no_pod_measures_on_a_host_whose_jobs_are_unknown(
    asked: Any, expected: list[str], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """One gave no facts for the plan, the other none just now. Neither refuses the run."""
    facts = {"gpu-000": FACTS, "gpu-001": {}}
    found = decide(capsys, tmp_path, facts=facts, plan={**PLAN, "absent": ["gpu-000"]}, busy_hosts=asked)
    assert (found["refused"], found["excluded"]) == ("", {})
    assert list(found["unanswered"]) == expected
    assert set(found["unanswered"].values()) <= {"the host did not answer, so it is unknown whether it is in use"}
