"""Wrong input: one clear message before anything changes, never a traceback."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from tests.scenario import HOSTS, REPO, TRACEBACK, Run, extra, host, inventory_with, playbook
from tests.scenario.state import cluster_state, host_state


@pytest.fixture(scope="module")
def before() -> dict[str, Any]:
    return {"cluster": cluster_state(), **{name: host_state(name) for name in HOSTS}}


def refused(run: Run, *texts: str) -> None:
    """The run failed with every text in its messages, and nothing changed."""
    assert run.rc != 0
    assert not TRACEBACK.search(run.output), run.output[-4000:]
    flat = " ".join(run.output.split())
    assert [text for text in texts if text not in flat] == [], run.output[-4000:]
    assert run.changed == []


INTENT = [
    pytest.param(
        {"suppernet": "172.30.0.0/16", "tests": {"duratoin": 5}, "mtu": "big"},
        ["rdma_fabric.suppernet", "supernet", "rdma_fabric.tests.duratoin", "duration", "rdma_fabric.mtu", "big"],
        id="unknown keys and a wrong type, all at once",
    ),
    pytest.param(
        {"rails": [{"name": "rail0", "pci": ["0000:99:00.0"]}], "rail_count": 1},
        ["rail0", "lab-[1-3]", "0000:01:00.0"],
        id="rail that matches no port",
    ),
    pytest.param({"rail_count": 3}, ["3", "2", "lab-[1-3]"], id="more rails than ports"),
    pytest.param({"supernet": "172.30.0.0/24"}, ["172.30.0.0/24", "2", "1"], id="supernet too small"),
    pytest.param({"supernet": "10.0.2.0/23"}, ["10.0.2.0/24", "lab-1", "rail0"], id="overlap with the host"),
]


@pytest.mark.parametrize(("fabric", "texts"), INTENT)
def test_intent(before: dict[str, Any], fabric: dict[str, Any], texts: list[str]) -> None:
    refused(playbook("plan", *extra(fabric)), *texts)


def test_variables_of_roles_are_judged_before_the_first_one(before: dict[str, Any], tmp_path: Path) -> None:
    inventory = inventory_with(tmp_path, {"lab-2": {"sriov_vfs": "many"}, "lab-3": {"sriov_vf_count": 4}})
    run = playbook("site", *extra(rail_links_source_routing="alwas"), inventory=inventory)
    refused(
        run,
        "variables, 2 problem(s)",
        "(on all 3 hosts)",
        "'sriov_vfs' is of type str",
        "(on lab-2)",
        'sriov_vf_count is not a variable of this collection; did you mean "sriov_vfs"? (on lab-3)',
    )


def test_two_hosts_claim_one_node(before: dict[str, Any], tmp_path: Path) -> None:
    inventory = inventory_with(tmp_path, {name: {"rdma_host": {"node_name": "lab-1"}} for name in ("lab-1", "lab-2")})
    refused(playbook("plan", inventory=inventory), "lab-1", "lab-2", "node")


def test_names_that_cannot_be_equal(before: dict[str, Any]) -> None:
    """Without renaming, a rail's port must have one name on all hosts: give lab-3's first port another."""
    machine = host("lab-3")
    machine.check_output("ip link set dev enp1s0 name other0")
    try:
        refused(playbook("plan", *extra({"rename": False})), "other0", "enp1s0", "lab-3")
    finally:
        machine.check_output("ip link set dev other0 name enp1s0")


def test_perftest_missing(before: dict[str, Any]) -> None:
    machine = host("lab-2")
    machine.check_output("mv /usr/bin/ib_write_bw /usr/bin/ib_write_bw.away")
    try:
        run = playbook("validate", "-e", '{"rdma_validate_where": ["host"]}')
        refused(run, "perftest", "lab-2")
    finally:
        machine.check_output("mv /usr/bin/ib_write_bw.away /usr/bin/ib_write_bw")


def test_unreadable_kubeconfig(before: dict[str, Any], tmp_path: Path) -> None:
    bad = tmp_path / "kubeconfig"
    bad.write_text("not: [a kubeconfig")
    refused(playbook("deploy", *extra(rdma_kubeconfig=str(bad))), str(bad))
    refused(playbook("deploy", *extra(rdma_kubeconfig=str(tmp_path / "absent"))), str(tmp_path / "absent"))


def test_api_server_that_is_down(before: dict[str, Any], tmp_path: Path) -> None:
    config = json.loads((REPO / ".lab" / "kubeconfig").read_text())
    config["clusters"][0]["cluster"]["server"] = "https://127.0.0.1:1"
    down = tmp_path / "kubeconfig"
    down.write_text(json.dumps(config))
    refused(playbook("deploy", *extra(rdma_kubeconfig=str(down))), "https://127.0.0.1:1")


def test_missing_permissions_all_at_once(before: dict[str, Any]) -> None:
    run = playbook("deploy", K8S_AUTH_IMPERSONATE_USER="nobody-at-all")
    refused(run, "nicclusterpolicies", "namespaces", "nodes")


def test_chart_that_is_not_there(before: dict[str, Any], tmp_path: Path) -> None:
    absent = str(tmp_path / "chart.tgz")
    refused(playbook("deploy", *extra(network_operator_chart_ref=absent)), absent)


def test_chart_with_another_checksum(before: dict[str, Any]) -> None:
    refused(playbook("deploy", *extra(network_operator_chart_checksum="0" * 64)), "0" * 64)


def test_nothing_changed(before: dict[str, Any]) -> None:
    assert {name: host_state(name) for name in HOSTS} == {name: before[name] for name in HOSTS}
    assert cluster_state() == before["cluster"]
