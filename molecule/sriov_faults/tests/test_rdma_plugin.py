"""The real RDMA shared device plugin finds no device of emulated NICs, and the run reports how many each node lacks.

Soft-RoCE is not part of a PCI device, so that plugin can offer nothing here. A step of `make soak`.
"""

from __future__ import annotations

import re

import pytest
from tests import scenario
from tests.lab.oci import SRIOV
from tests.scenario import FABRIC, TRACEBACK, extra, host, inventory_with, playbook
from tests.scenario.state import cluster
from tests.scenario.virtual_functions import ELSEWHERE, SLOW, SPACE, said

HOST = scenario.HOSTS[0]
TIMEOUT = 90


def test_nodes_without_devices_are_named_with_what_they_lack(tmp_path_factory: pytest.TempPathFactory) -> None:
    inventory = inventory_with(tmp_path_factory.mktemp("inventory"), {}, [HOST])
    fabric = {"profile": "macvlan", "operator": {**FABRIC["operator"], "cni_plugins": False}, "pools": {"ipam": "none"}}
    values = {**ELSEWHERE, "lab": {"rdmaPlugin": SRIOV["rdma-device-plugin"]}}
    others = {**SLOW, "network_operator_values": values, "nic_cluster_policy_timeout": TIMEOUT}
    tags = ("--tags", "rail_names,rdma_stack,deploy")
    run = playbook("site", *extra(fabric, **others), *tags, inventory=inventory)
    assert not TRACEBACK.search(run.output) and run.rc != 0
    assert re.search(rf"rdma/rdma_rail0: expected \d+ on each node, found {HOST} \(0\)", said(run))
    # It runs, and looked at the right ports.
    (pod,) = cluster().get(f"{SPACE}/pods", labelSelector="app=rdma-shared-dp")["items"]
    log = cluster().text(f"{SPACE}/pods/{pod['metadata']['name']}/log")
    assert "no devices in device pool, creating empty resource server for rdma_rail0" in log
    assert "enp1s0" not in log and host(HOST).check_output("rdma link show").count("rxe") == 2
    offered = cluster().get(f"/api/v1/nodes/{HOST}")["status"]["allocatable"]
    assert (offered["rdma/rdma_rail0"], offered["rdma/rdma_rail1"]) == ("0", "0")
    playbook("teardown", *extra(fabric, **others), "--tags", "teardown_cluster", inventory=inventory).must()
