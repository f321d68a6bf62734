"""What goes wrong with the real SR-IOV operator: each wait that cannot succeed ends early, with its cause.

And VFs that the role sriov made and the operator only hands out. A step of `make soak`. Each test goes on where the one
before ended.
"""

from __future__ import annotations

import pytest
from tests import scenario
from tests.scenario import Run, host, inventory_with
from tests.scenario.preparation import PCI, vfs
from tests.scenario.virtual_functions import (
    allocatable,
    play,
    ports,
    resize,
    said,
    waited,
)

HOST = scenario.HOSTS[0]
RAILS = ("--tags", "rail_names,rail_links,deploy")
ALL = ("--tags", "rail_names,sriov,rail_links,deploy")


@pytest.fixture(scope="module")
def inventory(tmp_path_factory: pytest.TempPathFactory) -> str:
    return inventory_with(tmp_path_factory.mktemp("inventory"), {}, [HOST])


def external(inventory: str) -> Run:
    # The daemon gives each VF the address that its driver has. Drivers of emulated VFs choose one while their port
    # resets, whatever the role has set.
    own = {"sriov_identity": "driver"}
    return play("site", inventory, *ALL, vfs=4, externally_managed=True, variables=own)


@pytest.fixture(scope="module")
def made(inventory: str) -> Run:
    """VFs that the role sriov makes, and the operator hands out."""
    return external(inventory).must()


def test_vfs_of_the_role_are_handed_out_as_they_are(made: Run, inventory: str) -> None:
    addresses = vfs(HOST)
    assert {rail: len(found) for rail, found in addresses.items()} == dict.fromkeys(PCI, 4)
    assert [task for task in made.changed if "Configure the VFs" in task]
    assert allocatable(HOST) == dict.fromkeys(PCI, 4)
    assert external(inventory).must().changed == []
    assert vfs(HOST) == addresses


def test_more_vfs_than_the_role_made_end_the_wait_with_the_words_of_the_daemon(made: Run, inventory: str) -> None:
    """The node would stay InProgress, without an error."""
    run = resize(inventory, vfs=6, externally_managed=True)
    assert run.rc != 0
    assert "sriov-network-config-daemon fails again and again: checkExternallyManagedPF()" in said(run)
    assert waited(run) < 1000


def test_their_removal_leaves_the_vfs_of_the_role(made: Run, inventory: str) -> None:
    before = ports(HOST)
    play("teardown", inventory, "--tags", "teardown_cluster").must()
    assert ports(HOST) == before
    # As a run leaves it that fails before it compares the rails with the plan.
    host(HOST).check_output("ip link set dev rail0 mtu 1500")
    play("teardown", inventory, "--tags", "teardown_cluster").must()
    assert ports(HOST) == before
    assert left_on(HOST) != []
    play("teardown", inventory, "--tags", "teardown_hosts", variables={"rdma_remove_sriov_leftovers": True}).must()
    counts = [host(HOST).check_output(f"cat /sys/bus/pci/devices/{pci}/sriov_numvfs") for pci in PCI.values()]
    assert counts == ["0", "0"]
    assert left_on(HOST) == []


def left_on(name: str) -> list[str]:
    """Files with names of the SR-IOV operator that are on a host."""
    find = "find /etc /tmp -path '*sriov*' -o -name 'sno-*' -o -name '10-nm-disable-*' -o -name 'switchdev-vf-link*'"
    return [path for path in host(name).check_output(find).split() if "gpufabric" not in path]


@pytest.fixture(scope="module")
def by_operator(inventory: str) -> Run:
    """VFs that the operator makes."""
    return play("site", inventory, *RAILS, vfs=4).must()


def test_the_operator_makes_them_on_both_rails_once(by_operator: Run, inventory: str) -> None:
    assert {rail: len(found) for rail, found in vfs(HOST).items()} == dict.fromkeys(PCI, 4)
    assert allocatable(HOST) == dict.fromkeys(PCI, 4)
    assert play("site", inventory, *RAILS, vfs=4).must().changed == []


def test_more_vfs_than_the_port_has_end_the_wait_at_once(by_operator: Run, inventory: str) -> None:
    run = resize(inventory, vfs=8)
    assert run.rc != 0
    assert "port rail0 supports 7 VFs, the policy asks for 8" in said(run)
    assert waited(run) < 60
