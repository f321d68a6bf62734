"""The playbook that reports an interrupted measurement, played for real over the evidence of one. 3 runs, 3 s each."""

from __future__ import annotations

import json
import subprocess
from pathlib import Path
from typing import Any

import pytest
from tests.unit.plugins.modules.test_fabric_judge import KNOWN, PLAN, unfinished
from tests.unit.support.real_play import ansible_playbook

from ansible_collections.gpufabric.rdma.plugins.module_utils._fabric.measure.diagnosis.wording import level

RUN = "20261123T013000Z-3f9a2c"
SCOPE = {
    "where": ["host", "pod"], "hosts": ["a", "b"], "rails": ["rail0"], "only": {}, "limit": "", "image": "",
    "host_network": False, "subset": [],
}  # fmt: skip


def interrupted(folder: Path, capsys: pytest.CaptureFixture[str], **changes: Any) -> Path:
    """A run that ended after its pass on the hosts; nothing was measured in pods."""
    made = unfinished(folder / "runs" / RUN, capsys)
    about = {"run": {"id": RUN, "started": 1795397400}, "scope": SCOPE, "hosts": KNOWN}
    earlier = {"resume": "", "baseline": "", "compare": ""}
    (made / "run.json").write_text(json.dumps({**about, "earlier": earlier, **changes}))
    plan = {**PLAN, "endpoints": {"host": ["a", "b"], "pod": ["a", "b"]}, "warnings": ["told by the plan"]}
    (made / "plan.json").write_text(json.dumps(plan))
    return made


def report(folder: Path, **variables: Any) -> subprocess.CompletedProcess[str]:
    given = json.dumps({"rdma_report_dir": str(folder), **variables})
    # A limit that leaves localhost out.
    args = ("-i", "gpu-1,gpu-2,", "--limit", "gpu-2", "-e", given)
    return ansible_playbook(folder, *args, "gpufabric.rdma.report", COLUMNS="2000")


def test_what_was_measured_is_judged_and_the_run_can_go_on(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    made = interrupted(tmp_path, capsys)
    done = report(tmp_path)
    said = done.stdout + done.stderr
    assert done.returncode == 2 and "The verdict is no_data." in said, said
    found = json.loads((made / "so_far/report.json").read_text())
    verdicts = {(row["where"], row["verdict"], row["reason"]) for row in found["results"]}
    gone = "The run ended before this was measured"
    assert verdicts == {
        ("host", "pass", ""),
        *(("pod", "no_data", f"{one}: {gone}; {other}: {gone}") for one, other in ("ab", "ba")),
    }
    # No fault is seen in hosts and ports that nobody measured.
    assert {level(row) for row in found["diagnoses"]} == {"NO DATA"}, said
    assert found["run"]["id"] == RUN and found["scope"]["subset"] == ["the run was interrupted"]
    assert found["run"]["ended"] > found["run"]["started"]
    assert f"Report: {made}/so_far/report.html" in said and "testers were not removed" not in said
    # It has no report of its own, so it is still one that can be continued; a second report replaces the first.
    assert not (made / "report.json").exists() and not (tmp_path / "report.json").exists()
    # Options of the role do not count: the run has its own.
    others = {
        "rdma_validate_report_dir": str(tmp_path),
        "rdma_validate_where": ["host"],
        "rdma_validate_only": {"hosts": ["x"]},
    }
    assert report(tmp_path, rdma_validate_report_run=RUN, **others).returncode == 2
    assert not (made / "report.json").exists() and not (tmp_path / "report.json").exists()
    assert len(json.loads((made / "so_far/report.json").read_text())["results"]) == 4


def test_a_run_that_is_not_one(tmp_path: Path) -> None:
    done = report(tmp_path)
    assert done.returncode == 2
    assert f"run: no run in {tmp_path}/runs measured something and has no report." in done.stdout + done.stderr
