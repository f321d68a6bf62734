"""Begin and failure of role nccl_validate, played for real: no earlier verdict stands. Cost: ten seconds."""

from __future__ import annotations

import json
import sys
from pathlib import Path

from tests.unit.support import report_factory
from tests.unit.support.real_play import ansible_playbook

from ansible_collections.gpufabric.rdma.plugins.module_utils._fabric.intent.nccl import DEFAULTS
from ansible_collections.gpufabric.rdma.plugins.module_utils._fabric.report.formats import to_json
from ansible_collections.gpufabric.rdma.plugins.module_utils._fabric.report.summary import build


def test_an_earlier_verdict_is_replaced_where_collectives_are_planned_only(tmp_path: Path) -> None:
    for name in ("with", "without"):
        (tmp_path / name).mkdir()
        (tmp_path / name / "nccl.json").write_text('{"verdict": "pass"}')
        (tmp_path / name / "report.json").write_text('{"verdict": "pass"}')
    begin = {"ansible.builtin.import_role": {"name": "gpufabric.rdma.nccl_validate", "tasks_from": "begin.yml"}}
    given = {
        "nccl_validate_plan": {"tests": {"nccl": {"enabled": "{{ inventory_hostname == 'with' }}"}}},
        "nccl_validate_report_dir": f"{tmp_path}/{{{{ inventory_hostname }}}}",
    }
    plays = [{"hosts": name, "gather_facts": False, "vars": given, "tasks": [begin]} for name in ("with", "without")]
    (tmp_path / "play.yml").write_text(json.dumps(plays))
    done = ansible_playbook(tmp_path, "-i", "with,without,", "-c", "local", tmp_path / "play.yml")
    assert done.returncode == 0, done.stdout + done.stderr
    assert "changed=0" in done.stdout and "changed=1" not in done.stdout
    began = json.loads((tmp_path / "with/nccl.json").read_text())
    assert (began["verdict"], began["left_out"][""]) == ("no_data", "the run did not end, or is still in progress")
    assert json.loads((tmp_path / "without/nccl.json").read_text()) == {"verdict": "pass"}
    # The report of the rails is that of an earlier run until they are measured again.
    for name in ("with", "without"):
        assert json.loads((tmp_path / name / "report.json").read_text()) == {"verdict": "pass"}


def test_a_workflow_gets_no_passing_summary_of_collectives_that_failed(tmp_path: Path) -> None:
    made = report_factory.plan(2, 1)
    report = build(made, report_factory.results(2, 1))
    assert report["verdict"] == "pass"
    (tmp_path / "report.json").write_text(to_json(report))
    hosts = list(made["hosts"])
    planned = {
        **made,
        "rails": [{"name": "rail0"}],
        "endpoints": {"host": hosts, "pod": hosts},
        "tests": {"nccl": {**DEFAULTS, "enabled": True}},
    }
    given = {
        "ansible_python_interpreter": sys.executable,
        "nccl_validate_plan": planned,
        "nccl_validate_report_dir": str(tmp_path),
        "nccl_validate_image": "images.example/tester:1",
        "nccl_validate_kubeconfig": str(tmp_path / "none"),
    }
    role = {"ansible.builtin.include_role": {"name": "gpufabric.rdma.nccl_validate"}}
    (tmp_path / "play.yml").write_text(
        json.dumps([{"hosts": "all", "gather_facts": False, "vars": given, "tasks": [role]}])
    )
    done = ansible_playbook(
        tmp_path, "-i", f"{hosts[0]},", "-c", "local", tmp_path / "play.yml", ANSIBLE_SHOW_CUSTOM_STATS="1"
    )
    assert done.returncode == 2 and str(tmp_path / "none") in done.stdout, done.stdout + done.stderr
    stats = done.stdout.partition("CUSTOM STATS")[2]
    assert '"verdict": "no_data"' in stats and '"verdict": "pass"' not in stats, done.stdout
    assert json.loads((tmp_path / "report.json").read_text())["verdict"] == "no_data"
    assert "no data" in (tmp_path / "report.html").read_text()
