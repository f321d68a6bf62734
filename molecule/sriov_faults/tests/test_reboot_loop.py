"""A kernel argument that makes the SR-IOV operator reboot a node again after each boot: plan and wait name it.

Its daemon wants the argument to be absent, and cannot remove it on this distribution. A step of `make soak`.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

import pytest
from tests import scenario
from tests.scenario import host, inventory_with, lab
from tests.scenario.virtual_functions import play, said

HOST = scenario.HOSTS[0]
WORD = "ib_core.netns_mode=0"


@pytest.fixture
def inventory(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    yield inventory_with(tmp_path_factory.mktemp("inventory"), {}, [HOST])
    # What reboots again and again cannot be told to stop.
    lab("reset")


def test_reboots_without_an_end_are_recognized(inventory: str) -> None:
    wishes = {"host_kernel_arguments": [WORD], "host_reboot_allowed": True}
    tags = ("--tags", "host_kernel,rail_names,rail_links,host_reboot")
    play("prepare", inventory, *tags, rails=1, vfs=2, variables=wishes).must()
    assert WORD in host(HOST).check_output("cat /proc/cmdline").split()
    run = play("deploy", inventory, rails=1, vfs=2, variables={"nic_cluster_policy_timeout": 2400})
    assert run.rc != 0
    assert f"{WORD} is set, but no SriovNetworkPoolConfig has an rdmaMode. Remove the argument" in said(run)
    assert re.search(r"the SR-IOV operator has rebooted it \d times and wants to do so again", said(run))
    assert "stopped, because waiting cannot resolve this" in said(run)
