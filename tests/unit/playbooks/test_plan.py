"""Facts of an earlier run never stand for hosts that do not answer, nor a plan for another fabric. One run, 5 s."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import pytest
from tests.unit.support import plan_factory as factory
from tests.unit.support.real_play import ROOT, ansible_playbook

from ansible_collections.gpufabric.rdma.plugins.module_utils._fabric.measure.readings.identity import read_hosts
from ansible_collections.gpufabric.rdma.plugins.module_utils._fabric.plan.plan import plan
from ansible_collections.gpufabric.rdma.plugins.module_utils._fabric.report import runs

FABRIC = {"supernet": "192.168.0.0/16"}
GROUPS = {"one": ["gpu-1", "gpu-2"], "two": ["gpu-3", "gpu-4"], "more": ["gpu-5"], "lone": ["gpu-6"]}
VERSIONS = {"drivers": {"mlx5_core": "24.10", "ib_core": "24.10"}}
FACTS = {f"gpu-{number}": factory.host_facts(number, **VERSIONS) for number in range(1, 7)}
ROLE = "gpufabric.rdma.rdma_validate"


def earlier_report(folder: Path) -> dict[str, Any]:
    """A report that passed, of the one host of ``lone``; return the plan of it."""
    made = plan(FABRIC, {"gpu-6": {"facts": FACTS["gpu-6"]}}, gates=[])
    asked = {"where": ["host"], "only": {}, "limit": "", "image": "", "host_network": False}
    folder.mkdir()
    (folder / "plan.json").write_text(json.dumps(made))
    (folder / "report.json").write_text(json.dumps({
        "verdict": "pass", "run": {"id": "20261122T000000Z-00000a"}, "scope": runs.scope_of(made, asked),
        "versions": read_hosts(made, FACTS),
    }))  # fmt: skip
    return made


def made_before(group: str) -> dict[str, Any]:
    """What an earlier playbook of the same run leaves: the plan of a group whose hosts answered then."""
    return {
        "hosts": group, "gather_facts": False, "vars_files": [str(ROOT / "playbooks/vars/plan.yml")],
        "vars": {"rdma_group": group},
        "tasks": [{"ansible.builtin.include_tasks": str(ROOT / "playbooks/tasks/plan.yml"), "run_once": True}],
    }  # fmt: skip


def planned(group: str) -> dict[str, Any]:
    return {"import_playbook": "gpufabric.rdma.plan", "vars": {"rdma_group": group}}


def same_intent(variables: dict[str, Any]) -> dict[str, Any]:
    """Print whether the last plan is that of the same group with these variables."""
    same = "{{ hostvars.localhost.__rdma_planned == __rdma_plan_basis }}"
    tasks = [{"ansible.builtin.debug": {"msg": f"SAME {sorted(variables)}: {same}"}, "run_once": True}]
    return {**made_before("one"), "vars": {"rdma_group": "one", **variables}, "tasks": tasks}


@pytest.fixture(scope="module")
def output(tmp_path_factory: pytest.TempPathFactory) -> str:
    """What one run printed. Nobody listens where its hosts are, and Ansible has facts of all of them."""
    folder = tmp_path_factory.mktemp("plan").resolve()
    role = {
        "rdma_validate_plan": earlier_report(folder / "report"), "rdma_validate_when": "changed",
        "rdma_validate_where": ["host"], "rdma_validate_report_dir": str(folder / "report"),
    }  # fmt: skip
    decision = "{{ ansible_failed_result.msg }} {{ __rdma_validate_decision }}"
    plays = [
        {"hosts": "all", "gather_facts": False, "tasks": [
            {"ansible.builtin.set_fact": {"rdma": "{{ facts_of_yesterday }}", "cacheable": True}}]},
        {"hosts": "lone", "gather_facts": False, "tasks": [
            {"block": [{"ansible.builtin.include_role": {"name": ROLE}, "vars": role}],
             "rescue": [{"ansible.builtin.debug": {"msg": f"DECISION {decision}"}}]}]},
        made_before("one"), planned("one"), *map(same_intent, ({}, {"rdma_fabric": {}}, {"rdma_gates": [1]})),
        made_before("two"), planned("both"),
    ]  # fmt: skip
    (folder / "play.yml").write_text(json.dumps(plays))
    groups: dict[str, Any] = {
        name: {"hosts": {host: {"facts_of_yesterday": FACTS[host]} for host in hosts}} for name, hosts in GROUPS.items()
    }
    groups["both"] = {"children": {"two": {}, "more": {}}}
    dead = {"ansible_host": "127.0.0.1", "ansible_port": 9, "rdma_fabric": FABRIC, "__rdma_read": {"ansible_facts": {}}}
    (folder / "hosts.json").write_text(json.dumps({"all": {"children": groups, "vars": dead}}))
    done = ansible_playbook(folder, "-i", folder / "hosts.json", folder / "play.yml", COLUMNS="4000")
    return done.stdout + done.stderr


def test_a_host_that_does_not_answer_is_measured_whatever_is_known_of_it(output: str) -> None:
    (told,) = re.findall(r"DECISION .*", output)
    assert "Nothing was measured: a measurement needs two hosts" in told
    assert "no facts of gpu-6 could be read in this run" in told


def test_a_plan_serves_all_playbooks_of_its_group_and_intent(output: str) -> None:
    assert re.findall(r"UNREACHABLE.*", output.split("PLAY [one]")[1].split("PLAY [two]")[0]) == []
    assert re.findall(r"SAME (.*): (\w+)", output) == [
        ("[]", "True"),
        ("['rdma_fabric']", "False"),
        ("['rdma_gates']", "False"),
    ]


def test_hosts_of_another_group_are_read_and_are_absent_whatever_is_known_of_them(output: str) -> None:
    assert "3 of the hosts returned no facts (unreachable, or rdma_facts did not run): gpu-3, gpu-4, gpu-5." in output
