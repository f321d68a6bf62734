"""The real SR-IOV operator on emulated NICs: VFs made, resized under a pod that holds one, and taken away again.

Each test goes on where the one before ended. What goes wrong with it is in the scenario sriov_faults.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from typing import Any

import pytest
from tests import scenario
from tests.scenario import Run, host, inventory_with
from tests.scenario.preparation import PCI, vfs
from tests.scenario.state import cluster, names
from tests.scenario.virtual_functions import GROUP, RESOURCES, allocatable, holder, play, ports, resize, waited

HOST = scenario.HOSTS[0]
MTU = 9000
RAILS = ("--tags", "rail_names,rail_links,deploy")
# The daemon restores the MTU of its first start on a host, which it keeps here for later installations too.
FIRST_START = "/tmp/sno-initial-node-state.json"


@pytest.fixture(scope="module")
def inventory(tmp_path_factory: pytest.TempPathFactory) -> str:
    return inventory_with(tmp_path_factory.mktemp("inventory"), {}, [HOST])


@pytest.fixture(scope="module")
def made(inventory: str) -> Run:
    """Rails and VFs, on a host where the daemon has started once before, when the first rail had another MTU."""
    interfaces = [{"name": "rail0", "pciAddress": PCI["rail0"], "mtu": 1500, "vendor": "8086", "deviceID": "10c9"}]
    state = json.dumps({"metadata": {}, "spec": {}, "status": {"interfaces": interfaces}})
    host(HOST).check_output(f"echo '{state}' | tee {FIRST_START}")
    return play("site", inventory, *RAILS, vfs=4).must()


@pytest.fixture(scope="module")
def addresses(made: Run) -> dict[str, Any]:
    """The addresses of the rails, which nothing here changes."""
    found = {rail: own[2] for rail, own in ports(HOST).items()}
    assert all(found.values())
    return found


@pytest.fixture
def held(made: Run) -> Iterator[Any]:
    with holder(HOST) as phase:
        yield phase


def test_the_operator_made_the_vfs_and_its_device_plugin_offers_them(addresses: dict[str, Any], made: Run) -> None:
    assert ports(HOST) == {rail: (4, MTU, addresses[rail]) for rail in PCI}
    assert {rail: len(found) for rail, found in vfs(HOST).items()} == dict.fromkeys(PCI, 4)
    assert allocatable(HOST) == dict.fromkeys(RESOURCES, "4")
    state = cluster().get(f"{GROUP}/sriovnetworknodestates/{HOST}")
    assert state["status"]["syncStatus"] == "Succeeded"
    # Created empty, and once more for all policies: they did not come before the ports were known.
    assert state["metadata"]["generation"] == 2
    lines = re.findall(r"^fabric_wait: \d+ s of at most 1200 s, .*", made.output, re.MULTILINE)
    assert lines or waited(made) < 40


def test_a_second_run_changes_nothing(made: Run, inventory: str) -> None:
    assert play("site", inventory, *RAILS, vfs=4).must().changed == []


def test_vfs_are_resized_under_a_pod_that_holds_one(held: Any, inventory: str) -> None:
    resize(inventory, vfs=2).must()
    # The operator drains such pods before it changes VFs.
    assert held() in ("gone", "Failed", "Succeeded")
    assert {rail: port[0] for rail, port in ports(HOST).items()} == dict.fromkeys(PCI, 2)
    assert allocatable(HOST) == dict.fromkeys(RESOURCES, "2")


def test_teardown_leaves_the_rails_as_planned(addresses: dict[str, Any], made: Run, inventory: str) -> None:
    run = play("teardown", inventory, "--tags", "teardown_cluster").must()
    assert [task for task in run.changed if "Configure the rails" in task], "the operator left the MTU as it was"
    assert ports(HOST) == {rail: (0, MTU, addresses[rail]) for rail in PCI}
    assert names(f"{GROUP}/sriovnetworknodepolicies") == []
    assert [name for name in names("/api/v1/namespaces") if name == "nvidia-network-operator"] == []
