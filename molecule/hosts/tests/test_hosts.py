"""A host prepared in full without consent, with a power cut in the middle, and back: a step of `make soak`.

Each test goes on where the last one ended. A host with everything in a fabric is in the scenario site; several
reboots, and packages of a vendor, are in the scenario batches.
"""

from __future__ import annotations

import time
from typing import Any

import pytest
from tests.scenario import Run, extra, host, lab, playbook
from tests.scenario.preparation import (
    REBOOT,
    WISHES,
    Cut,
    boot_id,
    cut_in,
    in_service,
    is_as_wished,
    prepare,
    unfinished,
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
def cut(refused: Run) -> Cut:
    """The power of the host failed in the middle of a preparation."""
    lab("reset")
    # The point of the cut is what is chosen here; nothing waits for a condition by it.
    return cut_in(HOST, WISHES, lambda: time.sleep(CUT_AT))


@pytest.fixture(scope="module")
def prepared(cut: Cut) -> Run:
    return prepare(*ONLY, host_reboot_allowed=True).must()


def of_roles(run: Run) -> set[str]:
    return {line for line in run.changed if "host_reboot" not in line}


def test_without_consent_nothing_is_rebooted(refused: Run) -> None:
    assert refused.rc != 0
    for word in ("Set allowed: true", "transparent_hugepage=madvise", "quiet", "rail0", "rail1"):
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


def test_no_file_was_half_written_when_the_power_failed(cut: Cut, prepared: Run) -> None:
    assert cut.damaged == ""
    assert unfinished(cut, files(HOST)) == []


def test_second_run_changes_nothing(prepared: Run) -> None:
    booted = boot_id(HOST)
    assert prepare(*ONLY).must().changed == []
    assert boot_id(HOST) == booted


def test_teardown_brings_everything_back(before: dict[str, Any], prepared: Run) -> None:
    playbook("teardown", *extra(host_reboot_allowed=True), *ONLY, "--tags", "teardown_hosts").must()
    assert host_state(HOST) == before
    assert "quiet" in host(HOST).check_output("cat /proc/cmdline").split()
