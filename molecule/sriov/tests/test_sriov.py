"""The real SR-IOV operator on emulated NICs: VFs made, resized under a pod, broken, and taken away again.

A step of `make soak`: 21 minutes beside a load of 10 on two processors. Each test goes on where the one before ended.
Emulated VFs have no RDMA of their own, and no CNI plugin puts one into a pod here: pods only hold the resource.
"""

from __future__ import annotations

import json
import time
from collections.abc import Iterator, Mapping
from typing import Any

import pytest
from tests import scenario
from tests.scenario import TRACEBACK, Run, extra, host, inventory_with, playbook
from tests.scenario.preparation import PCI, vfs
from tests.scenario.state import cluster, names

HOSTS = scenario.HOSTS[:2]
GROUP = "/apis/sriovnetwork.openshift.io/v1/namespaces/nvidia-network-operator"
HOLDER = "/api/v1/namespaces/default/pods"
RESOURCES = ("nvidia.com/vf_rail0", "nvidia.com/vf_rail1")
PATIENCE = 300


@pytest.fixture(scope="module")
def inventory(tmp_path_factory: pytest.TempPathFactory) -> str:
    return inventory_with(tmp_path_factory.mktemp("inventory"), {}, HOSTS)


def play(name: str, inventory: str, *args: str, **sriov: Any) -> Run:
    wanted = {"profile": "sriov", "sriov": {"rdma": False, **sriov}}
    # Emulated processors start a pod in a minute when all of them start one.
    slow = {"nic_cluster_policy_timeout": 1200, "network_operator_timeout": 1200}
    run = playbook(name, *extra(wanted, **slow), *args, inventory=inventory, timeout=1800)
    assert not TRACEBACK.search(run.output), run.output[-6000:]
    return run


def resize(inventory: str, **sriov: Any) -> Run:
    return play("deploy", inventory, "--tags", "nic_cluster_policy", **sriov)


def ports(name: str) -> dict[str, tuple[int, int, list[str]]]:
    """VFs, MTU and addresses of each rail of a host."""
    links = {link["ifname"]: link for link in json.loads(host(name).check_output("ip -json address show"))}
    return {
        rail: (
            int(host(name).check_output(f"cat /sys/bus/pci/devices/{pci}/sriov_numvfs")),
            links[rail]["mtu"],
            sorted(address["local"] for address in links[rail]["addr_info"] if address["family"] == "inet"),
        )
        for rail, pci in PCI.items()
    }


def allocatable(name: str) -> dict[str, str]:
    offered: Mapping[str, str] = cluster().get(f"/api/v1/nodes/{name}")["status"]["allocatable"]
    return {resource: offered.get(resource, "0") for resource in RESOURCES}


def phase_of_holder() -> str:
    found = [pod for pod in cluster().get(HOLDER)["items"] if pod["metadata"]["name"] == "holder"]
    return str(found[0]["status"].get("phase")) if found else "gone"


def until_holder_is(*phases: str) -> None:
    deadline = time.monotonic() + PATIENCE
    while phase_of_holder() not in phases:
        assert time.monotonic() < deadline, f"pod holder is {phase_of_holder()}, expected {' or '.join(phases)}"
        time.sleep(1)


@pytest.fixture(scope="module")
def before(inventory: str) -> dict[str, Any]:
    """The rails as the hosts' roles make them."""
    playbook("prepare", *extra({"profile": "sriov"}), "--tags", "rail_names,rail_links", inventory=inventory).must()
    return {name: ports(name) for name in HOSTS}


@pytest.fixture(scope="module")
def made(before: dict[str, Any], inventory: str) -> Run:
    return play("deploy", inventory, vfs=4).must()


@pytest.fixture
def holder(made: Run) -> Iterator[None]:
    """A pod that holds a VF of rail0 of the first host."""
    limits = {"limits": {RESOURCES[0]: "1"}}
    container = {"name": "holder", "image": "registry.lab/pause:1", "resources": limits}
    spec = {"nodeName": HOSTS[0], "hostNetwork": True, "terminationGracePeriodSeconds": 1, "containers": [container]}
    cluster().post(HOLDER, {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "holder"}, "spec": spec})
    until_holder_is("Running")
    yield
    if phase_of_holder() != "gone":
        cluster().delete(f"{HOLDER}/holder")


@pytest.mark.parametrize("name", HOSTS)
def test_the_operator_made_the_vfs_and_its_device_plugin_offers_them(
    name: str, before: dict[str, Any], made: Run
) -> None:
    assert ports(name) == {rail: (4, *rest) for rail, (_none, *rest) in before[name].items()}
    assert {rail: len(found) for rail, found in vfs(name).items()} == dict.fromkeys(PCI, 4)
    assert allocatable(name) == dict.fromkeys(RESOURCES, "4")
    state = cluster().get(f"{GROUP}/sriovnetworknodestates/{name}")
    assert state["status"]["syncStatus"] == "Succeeded"
    # Created empty, and once more for all policies: they did not come before the ports were known.
    assert state["metadata"]["generation"] == 2


def test_a_second_run_changes_nothing(made: Run, inventory: str) -> None:
    assert play("deploy", inventory, vfs=4).must().changed == []


def test_vfs_are_resized_under_a_pod_that_holds_one(holder: None, inventory: str) -> None:
    resize(inventory, vfs=2).must()
    # The operator drains such pods before it changes VFs.
    assert phase_of_holder() in ("gone", "Failed", "Succeeded")
    for name in HOSTS:
        assert {rail: port[0] for rail, port in ports(name).items()} == dict.fromkeys(PCI, 2)
        assert allocatable(name) == dict.fromkeys(RESOURCES, "2")


def test_more_vfs_than_the_port_has_end_the_wait_at_once(made: Run, inventory: str) -> None:
    run = resize(inventory, vfs=8)
    assert run.rc != 0
    assert "port rail0 supports 7 VFs, the policy asks for 8" in " ".join(run.output.split())
    assert waited(run) < 60


def test_what_the_daemon_only_logs_ends_the_wait_with_its_cause(made: Run, inventory: str) -> None:
    """It asks for more VFs than the hosts' role made: the node would stay InProgress, without an error."""
    run = resize(inventory, vfs=6, externally_managed=True)
    assert run.rc != 0
    said = " ".join(run.output.split())
    assert "sriov-network-config-daemon fails again and again: checkExternallyManagedPF()" in said
    assert waited(run) < 1000


def waited(run: Run) -> float:
    (row,) = [row for row in run.tasks if "Wait until the policy is ready" in row["task"] and not row.get("skipped")]
    return float(row["seconds"])


def test_teardown_leaves_the_rails_as_they_were(before: dict[str, Any], made: Run, inventory: str) -> None:
    play("teardown", inventory, "--tags", "teardown_cluster").must()
    assert {name: ports(name) for name in HOSTS} == before
    assert names(f"{GROUP}/sriovnetworknodepolicies") == []
    assert [name for name in names("/api/v1/namespaces") if name == "nvidia-network-operator"] == []
