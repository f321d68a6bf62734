"""Which run without a report is meant, and what is refused."""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import Any

import pytest

from ansible_collections.gpufabric.rdma.plugins.module_utils._common.errors import InputError
from ansible_collections.gpufabric.rdma.plugins.module_utils._controller import process, unfinished

OLD, NEW = "20261122T000000Z-00000a", "20261123T000000Z-00000b"
PLAN = {"endpoints": {"host": ["a", "b"]}}


def run(place: Path, name: str, passes: bool = True, **about: Any) -> Path:
    folder = place / name
    (folder / "evidence/host" / ("pass-1" if passes else "describe")).mkdir(parents=True)
    known = {"run": {"id": name, "started": 1795397400}, "earlier": {}, "hosts": {}}
    scope = {"where": ["host"], "subset": ["pods not measured"]}
    (folder / "run.json").write_text(json.dumps({**known, "scope": scope, **about}))
    (folder / "plan.json").write_text(json.dumps(PLAN))
    return folder


def test_the_newest_that_measured_something(tmp_path: Path) -> None:
    run(tmp_path, OLD)
    run(tmp_path, NEW, passes=False)
    found = unfinished.reopen(tmp_path.as_posix(), "", {})
    assert (found["run"], found["plan"], found["started"]) == (OLD, PLAN, 1795397400)
    assert found["scope"]["subset"] == ["pods not measured", "the run was interrupted"]
    assert found["report"] == f"{tmp_path}/{OLD}/so_far" and found["ended"] > found["started"]
    # What the report itself writes is no evidence.
    (tmp_path / OLD / "so_far").mkdir()
    (tmp_path / OLD / "so_far/report.json").write_text("{}")
    assert unfinished.reopen(tmp_path.as_posix(), OLD, {})["ended"] == found["ended"]


def test_a_run_that_ended_in_its_mesh_measured_nothing(tmp_path: Path) -> None:
    run(tmp_path, OLD)
    killed = run(tmp_path, NEW) / "evidence/host"
    (killed / "pass-1/mesh").touch()
    assert unfinished.reopen(tmp_path.as_posix(), "", {})["run"] == OLD
    (killed / "pass-2").mkdir()
    (killed / "pass-2/mesh").touch()
    assert unfinished.reopen(tmp_path.as_posix(), "", {})["run"] == OLD
    # The first pass after it measures.
    (killed / "pass-3").mkdir()
    assert unfinished.reopen(tmp_path.as_posix(), "", {})["run"] == NEW


def test_what_is_no_unfinished_run(tmp_path: Path) -> None:
    own = process.note(os.getpid())
    done, going = run(tmp_path, OLD), run(tmp_path, NEW, process=own)
    (done / "report.json").write_text("{}")
    damaged = run(tmp_path, "20261124T000000Z-00000c")
    (damaged / "plan.json").write_text("[")
    for name, message in (
        ("nothing", f"run: nothing is not a run in {tmp_path}. The runs there: {OLD}, {NEW}, {damaged.name}"),
        (OLD, f"run: {OLD} has a report: {done}/report.html. Read it there"),
        (going.name, f"run: {NEW} is still in progress. Wait until it ends and writes its report"),
        (damaged.name, f"run: {damaged} cannot be judged: run.json or plan.json is missing or damaged. Measure again"),
    ):
        with pytest.raises(InputError) as caught:
            unfinished.reopen(tmp_path.as_posix(), name, {})
        assert str(caught.value) == message
    with pytest.raises(InputError, match="measured something and has no report"):
        unfinished.reopen((tmp_path / "none").as_posix(), "", {})
