"""A host prepared in full, and back: consent, one reboot for all reasons, VFs, power cuts. Each test goes on where the
last one ended. Several hosts, and packages of a vendor, are in the scenario batches.
"""

from __future__ import annotations

from typing import Any

import pytest

from tests.scenario import Run, extra, host, lab, playbook
from tests.scenario.preparation import (
    PCI,
    REBOOT,
    boot_id,
    cut_in,
    damaged_records,
    in_service,
    is_as_wished,
    prepare,
    unfinished,
    vfs,
)
from tests.scenario.state import files, host_state

HOST = "lab-1"
ONLY = ("--limit", HOST)
# Seconds into a preparation: kernel arguments are written, the rest is not. `make soak` tries other moments.
CUT_AT = 45


@pytest.fixture(scope="module")
def before() -> dict[str, Any]:
    """The host as the lab's snapshot leaves it."""
    return host_state(HOST)


@pytest.fixture(scope="module")
def predicted(before: dict[str, Any]) -> set[str]:
    run = prepare(*ONLY, host_reboot_allowed=True, check=True).must()
    assert host_state(HOST) == before
    return of_roles(run)


@pytest.fixture(scope="module")
def refused(predicted: set[str]) -> Run:
    """A run without consent, on a host to which nothing was done yet."""
    return prepare(*ONLY)


@pytest.fixture(scope="module")
def after_cut(refused: Run) -> dict[str, str]:
    """The host's files after its power failed in the middle of a preparation."""
    lab("reset")
    cut_in(HOST, CUT_AT)
    assert damaged_records(HOST) == ""
    return files(HOST)


@pytest.fixture(scope="module")
def prepared(after_cut: dict[str, str]) -> Run:
    return prepare(*ONLY, host_reboot_allowed=True).must()


def of_roles(run: Run) -> set[str]:
    return {line for line in run.changed if "host_reboot" not in line}


def test_without_consent_nothing_is_rebooted(refused: Run) -> None:
    assert refused.rc != 0
    for word in ("host_reboot_allowed: true", "transparent_hugepage=madvise", "quiet", "rail0", "rail1"):
        assert word in refused.output
    assert REBOOT not in str(refused.tasks)


def test_one_reboot_brings_everything(prepared: Run) -> None:
    assert [row["host"] for row in prepared.tasks if REBOOT in row["task"]] == [HOST]
    is_as_wished(HOST, 4)
    assert in_service()


def test_check_mode_predicted_what_changed(predicted: set[str], refused: Run, prepared: Run) -> None:
    """What asks for the reboot changed before the cut, the rest after it."""
    assert predicted
    assert predicted == of_roles(refused) | of_roles(prepared)


def test_no_file_was_half_written_when_the_power_failed(
    before: dict[str, Any], after_cut: dict[str, str], prepared: Run
) -> None:
    assert unfinished(after_cut, [before["files"], files(HOST)]) == []


def test_second_run_changes_nothing(prepared: Run) -> None:
    booted = boot_id(HOST)
    assert prepare(*ONLY).must().changed == []
    assert boot_id(HOST) == booted


def test_vfs_are_resized_but_never_under_a_user(prepared: Run) -> None:
    four = vfs(HOST)
    prepare(*ONLY, "--tags", "sriov", sriov_vfs=7).must()
    seven = vfs(HOST)
    assert {rail: macs[:4] for rail, macs in seven.items()} == four
    assert len({mac for macs in seven.values() for mac in macs}) == 14
    too_many = prepare(*ONLY, "--tags", "sriov", sriov_vfs=8)
    assert too_many.rc != 0 and "(rail0) supports 7 VFs, 8 requested" in too_many.output
    netdev = host(HOST).check_output(f"ls /sys/bus/pci/devices/{PCI['rail1']}/virtfn3/net")
    host(HOST).check_output(f"ip address add 192.0.2.1/24 dev {netdev}")
    used = prepare(*ONLY, "--tags", "sriov", sriov_vfs=2)
    assert used.rc != 0 and "VF 3" in used.output and "192.0.2.1" in used.output
    assert vfs(HOST) and {len(macs) for macs in vfs(HOST).values()} == {7}
    host(HOST).check_output(f"ip address delete 192.0.2.1/24 dev {netdev}")
    prepare(*ONLY, "--tags", "sriov", sriov_vfs=2).must()
    assert vfs(HOST) == {rail: macs[:2] for rail, macs in four.items()}


def test_everything_is_there_again_after_a_power_cut(prepared: Run) -> None:
    lab("fault", "cut", HOST)
    is_as_wished(HOST, 2)
    assert prepare(*ONLY, sriov_vfs=2).must().changed == []


def test_teardown_brings_everything_back(before: dict[str, Any], prepared: Run) -> None:
    playbook("teardown", *extra(host_reboot_allowed=True), *ONLY, "--tags", "teardown_hosts").must()
    assert host_state(HOST) == before
    assert "quiet" in host(HOST).check_output("cat /proc/cmdline").split()
