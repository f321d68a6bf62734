# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The stand-in's networks against the recording of the real ones."""

from __future__ import annotations

import json
from typing import Any

import pytest
from tests.lab.chart.files.standin import networks
from tests.unit.lab.operator_replay import merged, read

KINDS = tuple(networks.STATE)
LINES = read("f-networks")


def specs(name: str, until: float) -> dict[str, Any]:
    """The network as it was at a time: created, then patched."""
    found: dict[str, Any] = {}
    for line in LINES:
        if line["event"] != "STEP" or line["t"] > until or f"/{name} " not in f"{line['do']} ":
            continue
        if "object" in line and line["http"] == 201:
            found = {**line["object"], "metadata": {**line["object"]["metadata"], "uid": "1"}}
        elif "patch" in line:
            found = merged(found, line["patch"])
    return found


def recorded_nads() -> list[dict[str, Any]]:
    nads = [one for one in LINES if one.get("kind") == "NetworkAttachmentDefinition"]
    nads = [one for one in nads if one["event"] != "DELETED"]
    return [one for one in nads if one.get("spec.config", {}).get("type") != "edited"]


@pytest.mark.parametrize("nad", recorded_nads(), ids=lambda one: f"{one['t']}-{one['name']}")
def test_nad_is_the_recorded_one(nad: dict[str, Any]) -> None:
    planned = networks.plan(specs(nad["name"], nad["t"]))
    assert planned.nad is not None
    assert planned.nad["metadata"]["namespace"] == nad["ns"]
    text = planned.nad["spec"]["config"]
    if "spec.config.raw" in nad:
        assert text == nad["spec.config.raw"]
    else:
        assert json.loads(text) == nad["spec.config"]
    for part in ("labels", "annotations"):
        ours, theirs = dict(planned.nad["metadata"][part]), dict(nad["metadata"][part])
        ours.pop(networks.REVISION, None), theirs.pop(networks.REVISION, None)
        assert ours == theirs


@pytest.mark.parametrize("kind", KINDS)
def test_first_status_is_the_recorded_one(kind: str) -> None:
    seen = set()
    for line in LINES:
        name = line.get("name")
        if line.get("kind") != kind or line["event"] != "MODIFIED" or line["status"] == "(absent)" or name in seen:
            continue
        seen.add(name)
        network = specs(str(name), line["t"])
        planned = networks.plan(network)
        later = (network.get("spec") or {}).get("networkNamespace") == "later"
        problem = 'failed to create/update objects: namespaces "later" not found' if later else ""
        assert (planned.problem or networks.status(network, problem)) == line["status"]
    assert seen


def test_macvlan_drops_other_annotations_and_host_device_keeps_them() -> None:
    spec = {"networkNamespace": "a"}
    macvlan = {"apiVersion": "v1", "kind": "MacvlanNetwork", "metadata": {"name": "n"}, "spec": spec}
    key = "operator.macvlannetwork.mellanox.com/last-network-namespace"
    assert networks.plan(macvlan).annotations == {key: "a"}
    assert networks.plan({**macvlan, "kind": "HostDeviceNetwork"}).annotations is None
