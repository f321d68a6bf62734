"""What the log of the SR-IOV operator's daemon repeats, and states of nodes: recorded from the real one."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from ansible_collections.gpufabric.rdma.plugins.module_utils._fabric.operator.profiles import sriov_log, sriov_ready

RECORDED = Path(__file__).parents[6] / "fixtures" / "sriov_operator"
CAUSE = (
    "checkExternallyManagedPF(): number of request virtual functions 6 is not equal to configured virtual functions 0"
    " but the policy is configured as ExternallyManaged for device 0000:01:00.0"
)
BEGINS = '2026-11-25T00:00:00.1Z\tINFO\tReconcile\tcontroller/controller.go:216\tnew generation\t{"generation": 2}'
FAILED = '2026-11-25T00:00:00.1Z\tERROR\tcontroller/controller.go:421\tReconciler error\t{"error": "no"}'
DONE = "2026-11-25T00:00:00.1Z\tINFO\tApply\tdaemon/daemon.go:259\tsync succeeded"
OLD = BEGINS.replace("2}", "1}")
AGAIN = [BEGINS, FAILED]


def line(error: str) -> str:
    return f'2026-11-25T00:00:00.1Z\tERROR\tx.go:1\tm\t{{"error": "{error}"}}'


def at(generation: int) -> dict[str, Any]:
    return {"metadata": {"generation": generation}}


def test_the_recorded_log_tells_the_cause() -> None:
    log = (RECORDED / "daemon-broken.log").read_text()
    assert sriov_log.complaint(log, at(5)) == CAUSE
    # Until the third time it may pass by itself.
    assert sriov_log.complaint(log.rpartition("Reconciler error")[0], at(5)) == ""
    # What was wrong before the policy was changed says nothing about the new one.
    assert sriov_log.complaint(log, at(6)) == ""


@pytest.mark.parametrize(
    ("lines", "complaint"),
    [
        ([], ""),
        (AGAIN * 2, ""),
        (AGAIN * 3, "no"),
        ([BEGINS, line("x" * 400), FAILED] * 3, "x" * 300),
        ([BEGINS, line("yes"), line("no"), FAILED] * 3, "yes"),
        ([BEGINS, line("one"), FAILED, *[BEGINS, line("two"), FAILED] * 2], ""),
        ([*AGAIN * 3, DONE], ""),
        ([*AGAIN, DONE, *AGAIN * 2], ""),
        ([OLD, FAILED] * 3, ""),
        ([*[OLD, FAILED] * 2, *AGAIN], ""),
        # The beginning is cut off, so nobody knows what it was about.
        ([FAILED] * 3, ""),
        ([BEGINS, FAILED.replace("ERROR", "INFO")] * 3, ""),
        # Details that are cut, or in another form.
        ([BEGINS, line("why"), FAILED.replace('"no"}', "")] * 3, "why"),
        ([BEGINS, line("why"), FAILED.replace('{"error": "no"}', "[]")] * 3, "why"),
        (["\x00", "\t\t", "ERROR", "\tERROR\t"], ""),
    ],
)
def test_what_a_log_repeats(lines: list[str], complaint: str) -> None:
    assert sriov_log.complaint("\n".join(lines), at(2)) == complaint


def state(name: str) -> dict[str, Any]:
    return json.loads((RECORDED / f"state-{name}.json").read_text())


def policies(vfs: int, **spec: Any) -> list[dict[str, Any]]:
    return [
        {"metadata": {"name": rail}, "spec": {"nicSelector": {"pfNames": [rail]}, "numVfs": vfs, **spec}}
        for rail in ("rail0", "rail1")
    ]


def test_recorded_states_of_nodes() -> None:
    assert sriov_ready.node_ready(policies(4), state("ready"), "lab-1").ready
    assert sriov_ready.node_ready(policies(4), state("broken"), "lab-1").failed is False
    found = sriov_ready.node_ready(policies(6, externallyManaged=True), state("broken"), "lab-1")
    assert found.reasons == (
        "Node lab-1: the SR-IOV operator reports InProgress (current state DrainComplete, desired state"
        " Drain_Required). If that stays, read the log of its config daemon",
        "Node lab-1: port rail0 has 4 VFs, expected 6",
        "Node lab-1: port rail1 has 4 VFs, expected 6",
    )
    assert sriov_ready.works(state("broken")) and not sriov_ready.works(state("ready"))
    # igb has 7 VFs at most.
    assert sriov_ready.node_ready(policies(8), state("ready"), "lab-1").failed
