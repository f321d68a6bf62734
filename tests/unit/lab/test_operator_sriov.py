# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The stand-in of the SR-IOV operator against recordings of the real one, and its pools per node."""

from __future__ import annotations

import json
from typing import Any

import pytest
from tests.lab.chart.files.standin import nodes, sriov
from tests.unit.lab.operator_replay import RECORDINGS

FOLDER = RECORDINGS.parents[1] / "sriov_operator"
PORTS = [
    {
        "name": f"rail{at}",
        "pciAddress": f"0000:0{at + 1}:00.0",
        "vendor": "8086",
        "deviceID": "10c9",
        "linkType": "ETH",
        "mtu": 1500,
        "totalvfs": 7,
    }
    for at in range(2)
]


def state(name: str) -> dict[str, Any]:
    found: dict[str, Any] = json.loads((FOLDER / f"{name}.json").read_text())
    return found


def node(**port: Any) -> dict[str, Any]:
    note = {sriov.PORTS: json.dumps([{**one, **port} for one in PORTS])}
    return {"metadata": {"name": "lab-1", "labels": {"kubernetes.io/os": "linux"}, "annotations": note}}


def policy(rail: int, vfs: int, **other: Any) -> dict[str, Any]:
    spec = {
        "resourceName": f"vf_rail{rail}",
        "nodeSelector": {"kubernetes.io/os": "linux"},
        "nicSelector": {"pfNames": [f"rail{rail}"]},
        "numVfs": vfs,
        "mtu": 9000,
        "linkType": "eth",
        "deviceType": "netdevice",
        "isRdma": False,
        "eSwitchMode": "legacy",
    }
    return {"metadata": {"name": f"rail{rail}"}, "spec": {**spec, **other}}


@pytest.mark.parametrize(("name", "vfs", "external"), [("state-ready", 4, False), ("state-broken", 6, True)])
def test_policies_are_copied_as_recorded(name: str, vfs: int, external: bool) -> None:
    policies = [policy(rail, vfs, externallyManaged=external) for rail in range(2)]
    assert sriov.requested(policies, node(), PORTS) == state(name)["spec"]["interfaces"]


def test_a_state_that_can_be_reached_is_the_recorded_one() -> None:
    """Without what only real functions have: names, drivers, addresses."""
    real = state("state-ready")
    found, done = sriov.ports(node(), real["spec"])
    keys = ("name", "pciAddress", "vendor", "deviceID", "mtu", "numVfs", "totalvfs", "eSwitchMode", "linkType")
    assert done
    assert [[one.get(key) for key in keys] for one in found] == [
        [one.get(key) for key in keys] for one in real["status"]["interfaces"]
    ]
    assert [len(one["Vfs"]) for one in found] == [4, 4]
    assert sriov.resources(real["spec"], "nvidia.com") == {"nvidia.com/vf_rail0": 4, "nvidia.com/vf_rail1": 4}


def test_external_functions_that_are_missing_fail_as_recorded() -> None:
    real = state("state-broken")
    found, done = sriov.ports(node(numVfs=4, mtu=9000), real["spec"])
    assert not done and real["status"]["syncStatus"] == "InProgress"
    assert [one["numVfs"] for one in found] == [one["numVfs"] for one in real["status"]["interfaces"]] == [4, 4]


def test_a_failure_and_the_end_of_a_policy_leave_no_functions_and_the_former_mtu() -> None:
    asked = {"interfaces": sriov.requested([policy(0, 8)], node(), PORTS)}
    found, done = sriov.ports(node(), asked)
    assert not done and found == sriov.ports(node(), {})[0]
    assert [(one.get("numVfs"), one["mtu"]) for one in found] == [(None, 1500)] * 2


def test_selectors_and_priorities() -> None:
    first, second = policy(0, 2, priority=99), {**policy(0, 5, priority=10), "metadata": {"name": "theirs"}}
    (found,) = sriov.requested([second, first], node(), PORTS)
    assert (found["numVfs"], found["vfGroups"][0]["policyName"]) == (5, "theirs")
    others = (
        {**policy(0, 2), "metadata": {"name": sriov.IGNORED}},
        policy(0, 2, nodeSelector={"pool": "a"}),
        policy(0, 2, nicSelector={"vendor": "15b3"}),
        policy(0, 2, nicSelector={}),
        policy(0, 0),
    )
    assert [sriov.requested([one], node(), PORTS) for one in others] == [[]] * len(others)
    # A daemon that has not reported yet.
    assert sriov.requested([first], node(), []) == []


@pytest.mark.parametrize(
    ("kind", "spec", "plugins"),
    [
        (
            "SriovNetwork",
            {"vlan": 7, "trust": "on", "spoofChk": "off", "linkState": "auto", "ipam": '{"type": "x"}'},
            [{"type": "sriov", "vlan": 7, "spoofchk": "off", "trust": "on", "vlanQoS": 0, "link_state": "auto"}],
        ),
        ("SriovIBNetwork", {"metaPlugins": '{"type": "rdma"},{"type": "sbr"}'}, [{"type": "ib-sriov"}, "rdma", "sbr"]),
    ],
)
def test_networks(kind: str, spec: dict[str, Any], plugins: list[Any]) -> None:
    meta = {"name": "rail0", "namespace": "operators"}
    network = {"kind": kind, "metadata": meta, "spec": {"resourceName": "vf_rail0", **spec}}
    made = sriov.definition({**network, "spec": {**network["spec"], "networkNamespace": "pods"}}, "nvidia.com")
    assert made["metadata"]["namespace"] == "pods"
    assert made["metadata"]["annotations"]["k8s.v1.cni.cncf.io/resourceName"] == "nvidia.com/vf_rail0"
    config = json.loads(made["spec"]["config"])
    first, *rest = config.get("plugins") or [config]
    assert plugins[0].items() <= first.items() and first["ipam"] == json.loads(spec.get("ipam", "{}"))
    assert [one["type"] for one in rest] == plugins[1:]
    assert sriov.definition(network, "p")["metadata"]["namespace"] == "operators"
    assert sriov.same(made, made) and not sriov.same({**made, "spec": {"config": "{}"}}, made)


def pool(**other: Any) -> dict[str, Any]:
    return {"spec": {"cidr": "10.0.0.0/24", "perNodeNetworkPrefix": 26, **other}, "status": {"allocations": []}}


def test_networks_per_node() -> None:
    """Static ones are the node's own; a node keeps its network, and who finds none gets none."""
    fleet = [{"metadata": {"name": f"n{number}", "labels": {}}} for number in range(1, 6)]
    own = pool(gatewayIndex=1, staticAllocations=[{"nodeName": "n2", "prefix": "10.0.0.0/26"}])
    found = nodes.prefixes(own, fleet)
    assert [(one["nodeName"], one["prefix"], one["gateway"]) for one in found] == [
        ("n1", "10.0.0.64/26", "10.0.0.65"),
        ("n2", "10.0.0.0/26", "10.0.0.1"),
        ("n3", "10.0.0.128/26", "10.0.0.129"),
        ("n4", "10.0.0.192/26", "10.0.0.193"),
    ]
    kept = nodes.prefixes({**own, "status": {"allocations": found}}, fleet[2:])
    assert [(one["nodeName"], one["prefix"]) for one in kept][:2] == [("n3", "10.0.0.128/26"), ("n4", "10.0.0.192/26")]
