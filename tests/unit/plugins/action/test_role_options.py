"""role_options in real plays of hosts that nobody contacts: what is wrong with variables is said once for all hosts."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

from tests.unit.support.real_play import ROOT, ansible_playbook

from ansible_collections.gpufabric.rdma.plugins.module_utils._fabric.intent import layers

PLAY = {
    "hosts": "all",
    "gather_facts": False,
    "tasks": [
        {"gpufabric.rdma.role_options": {"fabric": True}, "run_once": True},
        {"ansible.builtin.debug": {"msg": "THE NEXT STEP"}},
    ],
}


def play(tmp_path: Path, hosts: dict[str, dict[str, Any]], **variables: Any) -> subprocess.CompletedProcess[str]:
    """A play with hosts that have variables of their own, and variables for all of them."""
    (tmp_path / "play.yml").write_text(json.dumps([PLAY]))
    # Whoever contacted a host would fail: nobody listens there.
    everybody = {"ansible_host": "127.0.0.1", "ansible_port": 9, "rdma_fabric": {"supernet": "10.0.0.0/8"}}
    (tmp_path / "hosts.json").write_text(json.dumps({"all": {"hosts": hosts, "vars": {**everybody, **variables}}}))
    return ansible_playbook(tmp_path, "-i", tmp_path / "hosts.json", tmp_path / "play.yml", COLUMNS="2000")


def test_all_that_is_wrong_is_said_at_once_and_the_run_ends(tmp_path: Path) -> None:
    fabrics = {"two": {"mtu": "{{ absent }}"}, "three": {"supernet": "10.0.0.0/9"}}
    hosts: dict[str, dict[str, Any]] = {
        "one": {"sriov_vfs": "many", "rail_links_qos": {"rings": 512}},
        "two": {"rdma_fabric": fabrics["two"], "rail_links_qos": {"pfcs": [3], "trust": "both"}},
        "three": {"sriov_vfs": "many", "rdma_fabric": fabrics["three"], "rail_links_qos": {"pfc": [float("inf")]}},
    }  # fmt: skip
    pages = [{"size": "1G", "cont": 4}]
    done = play(
        tmp_path, hosts, host_kernel_iommu="pasthrough", host_kernel_hugepages=pages, rdma_report_dir="", rdma_gate=[],
        rdma_validate_image="https://r.example/perftest", rdma_validate_namespace="default",
        rdma_stack_provider="container", rdma_host={"nmber": 1}, sriov_link_state="up", rdma_validate_only={"host": []},
        rdma_fabric={"mtu": "{{ 'v9' }}", "supernet": "10.0.0.0/8"},
        network_operator_values={"nvIpam": {"deploy": True}},
    )  # fmt: skip
    assert done.returncode != 0 and "THE NEXT STEP" not in done.stdout
    said = " ".join((done.stdout + done.stderr).split())
    for text in (
        "variables, 22 problem(s): ",
        "network_operator_values.nvIpam: the chart has no such value since release 24.10 and ignores it. Set it in "
        "rdma_fabric, or in rdma_fabric.operator.policy_overrides (on all 3 hosts)",
        'found "https://r.example/perftest" (on all 3 hosts)',
        "rdma_validate_namespace is default, which is a system namespace of Kubernetes.",
        "argument 'sriov_vfs' is of type str and we were unable to convert to int",
        "(on one, three)",
        "rdma_stack_provider is container, but nothing deploys the driver container of the network operator",
        "value of sriov_link_state must be one of: None, auto, enable, disable, got: up (on all 3 hosts)",
        "not known: rdma_validate_only.host. Supported parameters include: hosts, pairs, rails.",
        "value of host_kernel_iommu must be one of: auto, passthrough, none, got: pasthrough (on all 3 hosts)",
        "not known: host_kernel_hugepages.cont. Supported parameters include: at, count, numa_node, size.",
        "missing required arguments: count found in host_kernel_hugepages (on all 3 hosts)",
        "rail_links_qos.rings: expected a dict, found 512 (number) (on one)",
        "rail_links_qos: expected finite numbers, found infinity (on three)",
        "not known: rail_links_qos.pfcs. Supported parameters include: buffer, cnp_dscp, dscp, ",
        "value of trust must be one of: dscp, pcp, got: both found in rail_links_qos (on two)",
        'rdma_gate is not a variable of this collection; did you mean "rdma_gates"? (on all 3 hosts)',
        'rdma_report_dir: expected a folder such as /srv/rdma-report, found "" (text)',
        'rdma_host of two.nmber: unknown key; did you mean "number"? (on two)',
        'rdma_fabric.mtu: expected a whole number, found "v9" (text) (on one)',
        "rdma_fabric cannot be evaluated: 'absent' is undefined (on two)",
        "rdma_fabric differs from that of the first host. All hosts of the group need the same (on three)",
    ):
        assert text in said, said


def test_a_name_that_is_nearly_an_option_is_a_warning(tmp_path: Path) -> None:
    done = play(tmp_path, {"one": {"sriov_vf_count": 4}, "two": {}}, sriov_of_another_collection=1, host_kern=1)
    assert done.returncode == 0 and "THE NEXT STEP" in done.stdout
    assert 'sriov_vf_count is not a variable of this collection; did you mean "sriov_vfs"? (on one)' in done.stderr
    assert done.stderr.count("is not a variable") == 1


def test_what_a_user_may_give_is_fine(tmp_path: Path) -> None:
    """A number as text, as -e gives it; a template; and what nobody can know before the plan."""
    fine = {
        "sriov_vfs": "4",
        "rail_links_qos": '{"pfc": [3], "rings": {"rx": "512"}}',
        "rail_names_vfs": "{{ sriov_vfs | int > 0 }}",
        "pcie_acs_rails": "{{ rdma_plan.rails }}",
    }
    done = play(tmp_path, {"one": {}}, **fine)
    assert done.returncode == 0 and "is not a variable" not in done.stderr, done.stdout + done.stderr


def play_effective(
    tmp_path: Path, known: dict[str, dict[str, Any]], shared: dict[str, Any], *words: str, **read: Any
) -> subprocess.CompletedProcess[str]:
    """A play that reads the options of roles and writes what the first host sees of them to a file."""
    tasks = [
        {"gpufabric.rdma.role_options": read, "run_once": True, "register": "found", "tags": ["always"]},
        *(
            {
                "ansible.builtin.copy": {"content": f"{{{{ found.{key} | to_json }}}}", "dest": str(tmp_path / name)},
                "run_once": True,
                "tags": ["always"],
            }
            for key, name in (("options", "found"), ("left_out", "left_out"))
        ),
    ]
    book = {
        "hosts": "all",
        "gather_facts": False,
        "tags": ["prepare"],
        "vars": {**shared, "ansible_python_interpreter": sys.executable},
        "tasks": tasks,
    }
    (tmp_path / "play.yml").write_text(json.dumps([book]))
    (tmp_path / "hosts.json").write_text(json.dumps({"all": {"hosts": known}}))
    return ansible_playbook(
        tmp_path, "-i", tmp_path / "hosts.json", "-c", "local", tmp_path / "play.yml", *words, COLUMNS="2000"
    )


def effective(tmp_path: Path, known: dict[str, dict[str, Any]], shared: dict[str, Any], **read: Any) -> dict[str, Any]:
    """What the action returns in a play with variables of its own, seen by the first host."""
    done = play_effective(tmp_path, known, shared, **read)
    assert done.returncode == 0, done.stdout + done.stderr
    return dict(json.loads((tmp_path / "found").read_text()))


def test_effective_options_are_validated_too(tmp_path: Path) -> None:
    """Those that depend on the plan could not be validated before. A play, 2 s."""
    hosts = {"one": {"sriov_vfs": "{{ vfs_by_plan }}"}, "two": {}}
    done = play_effective(tmp_path, hosts, {"vfs_by_plan": "many"}, effective=["sriov"])
    assert done.returncode != 0 and not (tmp_path / "found").exists()
    said = " ".join(done.stdout.split())
    assert "variables, 1 problem(s): argument 'sriov_vfs' is of type str and we were unable to convert to int" in said
    assert "(on one)" in said


def test_an_option_that_cannot_be_evaluated_is_named_with_its_host(tmp_path: Path) -> None:
    """A play, 2 s."""
    done = play_effective(
        tmp_path, {"one": {"sriov_vfs": "{{ 1 // zero }}"}, "two": {}}, {"zero": 0}, effective=["sriov"]
    )
    assert done.returncode != 0
    assert "sriov_vfs of one cannot be evaluated" in " ".join((done.stdout + done.stderr).split())


def test_options_of_roles_are_what_is_set_or_their_default(tmp_path: Path) -> None:
    """Of the inventory, of the play, of a template, and of nobody; one that cannot be known is missing. 2 s."""
    hosts = {
        "one": {"sriov_vfs": 4, "rail_names_rdma": "{{ rdma_plan.later }}", "rdma_report_dir": "/srv/r"},
        "two": {"rail_names_vfs": "{{ inventory_hostname == 'two' }}"},
    }
    play_vars = {"sriov_trust": True, "rail_names_apply": "{{ 'now' if sriov_vfs | default(0) else 'boot' }}"}
    roles = ["sriov", "rail_names", "rdma_validate"]
    found = effective(tmp_path, hosts, play_vars, effective=roles)
    one, two = found["one"], found["two"]
    names = ("sriov_vfs", "sriov_trust", "sriov_identity", "rail_names_vfs", "rail_names_apply", "rail_names_rdma")
    assert [one.get(name) for name in names] == [4, True, "derived", False, "now", None]
    assert [two.get(name) for name in names] == [None, True, "derived", True, "boot", "keep"]
    assert "rail_names_rdma" not in one and one["rdma_validate_report_dir"] == "/srv/r"
    assert two["rdma_validate_report_dir"].endswith("/rdma-report") and one["rdma_validate_where"] == ["host", "pod"]


def test_options_are_read_of_the_hosts_that_are_named(tmp_path: Path) -> None:
    assert list(effective(tmp_path, {"one": {}, "two": {}}, {}, effective=["sriov"], hosts=["two"])) == ["two"]


def test_roles_that_the_tags_of_a_run_leave_out(tmp_path: Path) -> None:
    roles = ["preflight", "sriov", "rail_links", "rail_names"]
    words = ("--tags", "preflight,sriov,rail_links", "--skip-tags", "rail_links")
    done = play_effective(tmp_path, {"one": {}}, {}, *words, effective=roles)
    assert done.returncode == 0, done.stdout + done.stderr
    assert json.loads((tmp_path / "left_out").read_text()) == ["rail_links", "rail_names"]


def test_single_keys_of_a_job_are_checked_and_merged_as_the_playbooks_merge_them(tmp_path: Path) -> None:
    """The filter of vars/plan.yml and the check agree, for keys of all three variables. About 2 s."""
    plan = {"vars_files": [str(ROOT / "playbooks/vars/plan.yml")], "hosts": "all", "gather_facts": False}
    shown = {"ansible.builtin.debug": {"msg": "MERGED {{ __rdma_fabric | to_json }}"}}
    (tmp_path / "merge.yml").write_text(json.dumps([{**plan, "connection": "local", "tasks": [shown]}]))
    values: dict[str, Any] = {
        "rdma_fabric": {"supernet": "10.0.0.0/8", "tests": {"kinds": ["write"], "budget": "quick"}},
        "rdma_fabric_overrides": {"mtu": 9000, "tests": {"kinds": ["read"]}},
        "rdma_fabric_job": {"tests": {"budget": "deep"}},
    }
    (tmp_path / "hosts.json").write_text(json.dumps({"all": {"hosts": {"localhost": None}, "vars": values}}))
    done = ansible_playbook(tmp_path, "-i", tmp_path / "hosts.json", tmp_path / "merge.yml")
    assert done.returncode == 0, done.stdout
    said = done.stdout.split('"MERGED ')[1].splitlines()[0].rstrip('"')
    assert json.loads(said.replace('\\"', '"')) == layers.merged(values)

    wrong = {**values, "rdma_fabric_job": {"tests": {"budget": "depp"}}, "rdma_fabric_overrides": {"mtuu": 9000}}
    done = play(tmp_path, {"one": {}}, **wrong)
    assert done.returncode != 0
    assert "rdma_fabric_job.tests.budget: " in done.stdout
    assert "rdma_fabric_overrides.mtuu: unknown key" in done.stdout
    done = play(tmp_path, {"one": {}}, **{**values, "rdma_fabric_job": "tests"})
    assert "rdma_fabric_job: expected a dict with keys of rdma_fabric, found" in done.stdout
    assert "THE NEXT STEP" not in done.stdout
