# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The stand-in's NicNodePolicies against the recording of the real ones."""

from __future__ import annotations

import re
from typing import Any

import pytest
from tests.lab.chart.files.standin import components, status
from tests.unit.lab.operator_replay import SETTINGS, read

LINES = read("h-nicnodepolicy")
POOLS = {"gpu-1": "a", "gpu-2": "a", "gpu-3": "b"}
SYSTEM = {
    components.NIC_LABEL: "true",
    components.OS_LABEL: "ubuntu",
    components.OS_VERSION_LABEL: "24.04",
    components.KERNEL_LABEL: "6.8.0-60-generic",
}
NODES = [
    {"metadata": {"name": name, "labels": {"kubernetes.io/os": "linux", "pool": pool, **SYSTEM}}}
    for name, pool in POOLS.items()
]


def created(name: str) -> dict[str, Any]:
    """A policy as the recorder sent it."""
    steps = [one for one in LINES if one["event"] == "STEP" and one["do"].startswith(f"create NicNodePolicy/{name} ")]
    steps = steps or [one for one in LINES if one.get("do") == f"create NicNodePolicy/{name}"]
    found = steps[0]["object"]
    return {**found, "metadata": {**found["metadata"], "generation": 1, "uid": name}}


def recorded(name: str) -> list[dict[str, Any]]:
    own = [one for one in LINES if one.get("kind") == "NicNodePolicy" and one["name"] == name]
    return [one["status"] for one in own if one["event"] == "MODIFIED" and one["status"] != "(absent)"]


def undated(found: dict[str, Any]) -> dict[str, Any]:
    times = ("lastTransitionTime",)
    conditions = [{key: value for key, value in one.items() if key not in times} for one in found["conditions"]]
    return {**found, "conditions": conditions}


@pytest.mark.parametrize("name", ["pool-a", "pool-b"])
def test_children_have_the_recorded_names_and_labels(name: str) -> None:
    policy, made = created(name), []
    for part in components.parts(policy):
        if components.section(policy, part):
            made += components.children(policy, part, NODES, SETTINGS)
    kinds = ("ConfigMap", "DaemonSet", "ServiceAccount")
    real = {}
    for one in LINES:
        owner = (one.get("metadata") or {}).get("labels", {}).get("ds-owner") if one.get("kind") in kinds else ""
        if one["event"] == "ADDED" and owner == f"nnp-{name}":
            real[one["kind"], unhashed(one["name"])] = {k: unhashed(v) for k, v in one["metadata"]["labels"].items()}
    ours = {
        (one["kind"], unhashed(one["metadata"]["name"])): {k: unhashed(v) for k, v in one["metadata"]["labels"].items()}
        for one in made
    }
    assert ours == real
    assert {one["metadata"]["ownerReferences"][0]["kind"] for one in made} == {"NicNodePolicy"}


def unhashed(name: str) -> str:
    """Without the hash of a kernel in the name of a driver, whose making is not known."""
    return re.sub(r"^(mofed-[a-z0-9.]+)-[0-9a-f]{10}(?=-)", r"\1-HASH", name)


def test_status_is_the_recorded_one() -> None:
    """notReady, then ready."""
    found = None
    for state, real in zip(("notReady", "ready"), recorded("pool-a")):
        judged = {one.state: status.Judged("ignore") for one in components.NODE_COMPONENTS}
        judged[components.RDMA_PLUGIN.state] = status.Judged(state)
        found = status.next_status(found, 1, judged, "now", components.NODE_COMPONENTS)
        assert undated(found) == undated(real)


@pytest.mark.parametrize(
    ("name", "others"), [("overlap", ["pool-a"]), ("no-selector", ["pool-a", "pool-b"]), ("empty-match", None)]
)
def test_overlap_is_the_recorded_one(name: str, others: list[str] | None) -> None:
    """Also of a policy that selects no node, while two others overlap."""
    every = [created(one) for one in [name, *(others or ["no-selector", "pool-a", "pool-b"])]]
    found = status.overlap(every[0], every, NODES, "now")
    assert found is not None and undated(found) == undated(recorded(name)[0])
    # One that had a state before keeps it.
    assert status.overlap({**every[1], "status": recorded("pool-a")[-1]}, every, NODES, "now") is None


def test_without_overlap_there_is_nothing_to_say() -> None:
    every = [created("pool-a"), created("pool-b")]
    assert status.overlap(every[0], every, NODES, "now") is None
