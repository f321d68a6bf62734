"""The report's tasks of the role rdma_validate, played for real on this machine over a made-up measurement."""

from __future__ import annotations

import json
import subprocess
from pathlib import Path
from typing import Any

import pytest
from tests.scenario import SHOW_STATS, custom_stats
from tests.unit.support import report_factory as factory
from tests.unit.support.real_play import ansible_playbook

RUN = "20261123T013000Z-3f9a2c"
SCOPE = {
    "where": ["host"],
    "hosts": ["gpu-000", "gpu-001", "gpu-002"],
    "rails": ["rail0", "rail1"],
    "only": {},
    "limit": "",
    "image": "",
    "host_network": False,
    "subset": ["pods not measured"],
}


CLUSTER = {"name": "lab", "server": "https://lab.test:6443", "version": "v1.35.4"}


def play(
    tmp_path: Path, made: dict[str, Any], tasks: tuple[str, ...] = ("report",), **changes: Any
) -> subprocess.CompletedProcess[str]:
    """Play the tasks over one step of a measurement; ``made`` are the arguments of summary.build."""
    parts = made["parts"]
    step = {
        "results": made["results"],
        "warnings_found": made["warnings"],
        "summary": {"diagnoses": parts["diagnoses"]},
        "outliers": [],
        "unmeasured": [],
        "unsteady": [],
        "endpoints": {"where": "host", "hosts": {}},
        "links": parts["links"],
        "schedule": parts["schedule"][0],
        "requests": 3,
    }
    variables = {
        "rdma_validate_plan": {**made["plan"], "warnings": []},
        "rdma_validate_report_dir": str(tmp_path / "report"),
        "rdma_validate_where": ["host"],
        "__rdma_validate_step": step,
        "__rdma_validate_decision": {"scope": SCOPE, "hosts": {}},
        "__rdma_validate_begun": {
            "run": RUN,
            "folder": str(tmp_path / "report/runs" / RUN),
            "started": 1795397400,
            "earlier": {"resume": "", "baseline": "", "compare": ""},
        },
        **changes,
    }
    role = "gpufabric.rdma.rdma_validate"
    includes = [{"ansible.builtin.include_role": {"name": role, "tasks_from": name}} for name in tasks]
    book = {"hosts": "localhost", "gather_facts": False, "vars": variables, "tasks": includes}
    (tmp_path / "play.yml").write_text(json.dumps([book]))
    return ansible_playbook(tmp_path, "-i", "localhost,", "-c", "local", tmp_path / "play.yml", **SHOW_STATS)


@pytest.mark.parametrize(("faults", "rc", "verdict"), [({}, 0, "pass"), ({("gpu-001", "rail1"): "slow"}, 2, "fail")])
def test_a_workflow_gets_the_summary_whatever_the_verdict(
    faults: dict[tuple[str, str], str], rc: int, verdict: str, tmp_path: Path
) -> None:
    made = factory.fleet(3, 2, faults=faults)
    made["plan"]["operator"] = {"release": "26.7.1"}
    started: dict[str, Any] = {"__rdma_validate_pods_started": {"cluster": CLUSTER}} if faults else {}
    done = play(tmp_path, made, **started)
    assert done.returncode == rc, done.stdout + done.stderr
    bad = 4 if faults else 0
    assert custom_stats(done.stdout) == {
        "rdma_fabric_report": {
            "verdict": verdict,
            "hosts": 3,
            "tests": 12,
            "pass": 12 - bad,
            "fail": bad,
            "no_data": 0,
            "diagnoses": [diagnosis["text"] for diagnosis in made["parts"]["diagnoses"]],
            "gates": [],
            "path": str(tmp_path / "report"),
            "run": RUN,
            "subset": ["pods not measured"],
            "release": "26.7.1",
            "cluster": "lab (https://lab.test:6443, Kubernetes v1.35.4)" if faults else "",
        }
    }
    report = json.loads((tmp_path / "report/report.json").read_text())
    assert report["run"].get("cluster") == (CLUSTER if faults else None)
    assert report["context"]["requests"] == {"validation": 3}


def test_testers_that_cannot_be_removed_cost_no_report_and_fail_the_run(tmp_path: Path) -> None:
    """The cluster cannot be reached at the end; one play, 3 s."""
    made, kubeconfig = factory.fleet(3, 2), str(tmp_path / "none")
    rail = {"name": "rail0", "index": 0, "link_layer": "ethernet", "mtu": 9000}
    made["plan"].update(
        {
            "rails": [rail],
            "tests": {},
            "endpoints": {"host": SCOPE["hosts"], "pod": SCOPE["hosts"]},
            "expectations": {"rail0": {}},
            "thresholds": {"gpu_paths": {}, "outliers": {}, "unsteady": {"severity": "failure", "background": 0.001}},
        }
    )
    changes = {"rdma_validate_where": ["host", "pod"], "rdma_validate_kubeconfig": kubeconfig}
    done = play(tmp_path, made, ("pods", "report"), rdma_validate_image="i:1", **changes)
    assert done.returncode == 2, done.stdout + done.stderr
    assert (tmp_path / "report/report.json").exists(), done.stdout
    assert json.loads((tmp_path / "report/report.json").read_text())["run"]["id"] == RUN
    assert "The verdict is no_data." in done.stdout
    assert " The testers were not removed from the cluster: " in done.stdout
    assert f"{kubeconfig}: it cannot be read" in done.stdout and "gpufabric.rdma.abort" in done.stdout
