"""The real SR-IOV operator on an emulated NIC: VFs made, resized under a pod that holds one, and taken away again.

Each test goes on where the one before ended. One rail of one host with two VFs: each further rail costs its operator
half a minute in each test, each VF 5 s. Two rails, and what goes wrong, are in the scenario sriov_faults.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterator

import pytest
from tests import scenario
from tests.scenario import Run, host, inventory_with
from tests.scenario.preparation import PCI
from tests.scenario.state import cluster, names
from tests.scenario.virtual_functions import GROUP, allocatable, holder, play, ports, resize, waited

HOST = scenario.HOSTS[0]
MTU = 9000
PREPARED = ("--tags", "rail_names,rail_links,deploy")
# The daemon restores the MTU of its first start on a host, which it keeps here for later installations too.
FIRST_START = "/tmp/sno-initial-node-state.json"


@pytest.fixture(scope="module")
def inventory(tmp_path_factory: pytest.TempPathFactory) -> str:
    return inventory_with(tmp_path_factory.mktemp("inventory"), {}, [HOST])


@pytest.fixture(scope="module")
def made(inventory: str) -> Run:
    """The rail and its VFs, on a host where the daemon has started once before, when the port had another MTU."""
    interfaces = [{"name": "rail0", "pciAddress": PCI["rail0"], "mtu": 1500, "vendor": "8086", "deviceID": "10c9"}]
    state = json.dumps({"metadata": {}, "spec": {}, "status": {"interfaces": interfaces}})
    host(HOST).check_output(f"echo '{state}' | tee {FIRST_START}")
    return play("site", inventory, *PREPARED, rails=1, vfs=2).must()


@pytest.fixture(scope="module")
def addresses(made: Run) -> list[str]:
    """The addresses of the rail, which nothing here changes."""
    found = ports(HOST)["rail0"][2]
    assert found
    return found


@pytest.fixture
def held(made: Run) -> Iterator[Callable[[], str]]:
    with holder(HOST) as phase:
        yield phase


def test_the_operator_made_the_vfs_and_its_device_plugin_offers_them(addresses: list[str], made: Run) -> None:
    assert ports(HOST) == {"rail0": (2, MTU, addresses)}
    assert allocatable(HOST) == {"rail0": 2}
    state = cluster().get(f"{GROUP}/sriovnetworknodestates/{HOST}")
    assert state["status"]["syncStatus"] == "Succeeded"
    # Created empty, and once more for the policy: it did not come before the ports were known.
    assert state["metadata"]["generation"] == 2
    lines = re.findall(r"^fabric_wait: \d+ s of at most 1200 s, .*", made.output, re.MULTILINE)
    assert lines or waited(made) < 40


def test_vfs_are_resized_under_a_pod_that_holds_one(held: Callable[[], str], inventory: str) -> None:
    resize(inventory, rails=1, vfs=1).must()
    # The operator drains such pods before it changes VFs.
    assert held() in ("gone", "Failed", "Succeeded")
    assert ports(HOST)["rail0"][0] == 1
    assert allocatable(HOST) == {"rail0": 1}


def test_teardown_leaves_the_rail_as_planned(addresses: list[str], made: Run, inventory: str) -> None:
    consent = {"rdma_remove_sriov_leftovers": True}
    run = play("teardown", inventory, "--tags", "teardown_cluster", rails=1, variables=consent).must()
    assert [task for task in run.changed if "Configure the rails" in task], "the operator left the MTU as it was"
    assert ports(HOST)["rail0"] == (0, MTU, addresses)
    assert names(f"{GROUP}/sriovnetworknodepolicies") == []
    assert [name for name in names("/api/v1/namespaces") if name == "nvidia-network-operator"] == []
    meta = cluster().get(f"/api/v1/nodes/{HOST}")["metadata"]
    assert [key for key in (*meta["labels"], *meta["annotations"]) if "sriov" in key] == []
