"""The begin of role nccl_validate, played for real: nothing stands of an earlier run. Cost: five seconds."""

from __future__ import annotations

import json
from pathlib import Path

from tests.unit.support.real_play import ansible_playbook


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
