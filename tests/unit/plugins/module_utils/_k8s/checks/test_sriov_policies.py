"""Policies of others for ports of rails: what the operator wrote into node states, and selectors. Cost: below 1 s."""

from __future__ import annotations

import importlib
import json
from typing import Any

import pytest
from tests.unit.support.cluster_fake import FakeCluster
from tests.unit.support.module_run import PACKAGE, run

SPACE, API = "nvidia-network-operator", "sriovnetwork.openshift.io/v1"
OURS = {"app.kubernetes.io/managed-by": "gpufabric"}
HOSTS = {
    f"h{number}": {
        "machine_id": str(number),
        "rails": [
            {"rail": "rail0", "pci": "0000:18:00.0", "current": "ens1f0", "netdev": "rail0"},
            {"rail": "rail1", "pci": "0000:28:00.0", "current": "ens2f0", "netdev": "rail1"},
        ],
    }
    for number in (1, 2)
}
EFFECT = ": the SR-IOV operator creates VFs of these ports and can change their MTU. Remove the policy unless workloads"
WARNING = f"SriovNetworkNodePolicy {SPACE}/admin selects {{}}{EFFECT} need these VFs"
CONTESTED = (
    f"SriovNetworkNodePolicy {SPACE}/admin selects {{}}, and the plan has a policy for these ports, too. One policy can"
    " create the VFs of a port. Remove this policy, or leave these ports out of rdma_fabric"
)
BOTH = "rail0 of h[1-2]"


def policy(name: str = "admin", labels: Any = None, space: str = SPACE, **spec: Any) -> dict[str, Any]:
    meta = {"name": name, "namespace": space, "labels": labels or {}}
    return {"apiVersion": API, "kind": "SriovNetworkNodePolicy", "metadata": meta, "spec": {"numVfs": 4, **spec}}


def node(number: int) -> dict[str, Any]:
    labels = {"pool": "gpu", "one": str(number)}
    info = {"nodeInfo": {"machineID": str(number)}}
    return {"apiVersion": "v1", "kind": "Node", "metadata": {"name": f"n{number}", "labels": labels}, "status": info}


def state(number: int, pci: str = "", name: str = "admin") -> dict[str, Any]:
    groups = [{"policyName": "another", "vfRange": "0-3"}, {"policyName": name, "vfRange": "4-7"}]
    spec = {"interfaces": [{"pciAddress": pci, "name": "ens1f0", "numVfs": 8, "vfGroups": groups}]} if pci else {}
    meta = {"name": f"n{number}", "namespace": SPACE}
    return {"apiVersion": API, "kind": "SriovNetworkNodeState", "metadata": meta, "spec": spec}


def pf(*names: str, **more: Any) -> dict[str, Any]:
    return {"nicSelector": {"pfNames": list(names), **more}}


def info(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], live: list[dict[str, Any]], **given: Any
) -> tuple[dict[str, Any], FakeCluster]:
    cluster = FakeCluster(*json.loads(json.dumps([node(1), node(2), *live])))
    monkeypatch.setattr(importlib.import_module(f"{PACKAGE}.cluster_info"), "connect", lambda module: cluster.api())
    return run("cluster_info", capsys, hosts=HOSTS, steps=["policy"], existing="use", **given), cluster


@pytest.mark.parametrize(
    ("objects", "expected"),
    [
        # By name: the present one, the planned one, with a range of VFs.
        ([policy(**pf("ens1f0"))], [BOTH]),
        ([policy(**pf("rail0#4-7", "other"))], [BOTH]),
        ([policy(**pf("ens1f0"), nodeSelector={"one": "2"})], ["rail0 of h2"]),
        ([policy(**pf("ens1f0", "ens2f0"))], [f"{BOTH}, rail1 of h[1-2]"]),
        ([policy(nicSelector={"rootDevices": ["0000:28:00.0"]})], ["rail1 of h[1-2]"]),
        # All parts of a selector must fit, and what the plan cannot compare gives nothing.
        ([policy(**pf("ens1f0", rootDevices=["0000:28:00.0"]))], []),
        ([policy(**pf("ens1f0", deviceID="1021"))], []),
        ([policy(**pf("ens1f0", netFilter="openstack/NetworkID:a"))], []),
        ([policy(nicSelector={"vendor": "15b3"})], []),
        ([policy(**pf("eno1"))], []),
        ([policy(**pf("ens1f0"), nodeSelector={"pool": "cpu"})], []),
        # What the operator wrote for a node counts before selectors.
        ([policy(nicSelector={"vendor": "15b3"}), state(1, "0000:18:00.0"), state(2)], ["rail0 of h1"]),
        ([policy(**pf("ens1f0")), state(1, "0000:99:00.0"), state(2)], ["rail0 of h2"]),
        ([policy(**pf("ens1f0")), state(1, "0000:18:00.0", "other"), state(2, "0000:18:00.0")], ["rail0 of h2"]),
        # Made by this collection, of the operator itself, outside of its namespace, or for VFs that others made.
        ([policy(labels=OURS, **pf("ens1f0"))], []),
        ([policy("default", **pf("ens1f0"))], []),
        ([policy(space="team-a", **pf("ens1f0"))], []),
        ([policy(externallyManaged=True, **pf("ens1f0"))], []),
        # Damaged objects.
        ([policy(nicSelector=["a"], nodeSelector="b")], []),
        (
            [policy(**pf("ens1f0")), {**state(1), "spec": {"interfaces": [{"vfGroups": 1}, 2]}}, state(2)],
            ["rail0 of h2"],
        ),
    ],
)
def test_policies_of_others_for_ports_of_rails(
    objects: list[dict[str, Any]],
    expected: list[str],
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    found, _cluster = info(monkeypatch, capsys, objects)
    warned = [str(warning) for warning in found.get("warnings", ())]
    assert [one["problem"] for one in found["sriov_policies"] if one["problem"]] == [
        WARNING.format(e) for e in expected
    ]
    assert len(warned) == len(expected)
    assert found["problems"] == []


def test_a_policy_for_a_port_of_the_plan_stops_the_run(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    planned = [policy("rail0", OURS, **pf("rail0"))]
    found, _cluster = info(monkeypatch, capsys, [policy(externallyManaged=True, **pf("ens1f0"))], objects=planned)
    assert found["problems"] == [CONTESTED.format(BOTH)] and "warnings" not in found
    ports = [{"host": name, "rail": "rail0", "pci": "0000:18:00.0"} for name in HOSTS]
    (one,) = found["sriov_policies"]
    assert (one["namespace"], one["name"], one["stops"], one["ports"]) == (SPACE, "admin", True, ports)
    # A rail that the plan has no policy for is only a warning; one that the plan replaces is neither.
    other, _cluster = info(monkeypatch, capsys, [policy(**pf("ens2f0"))], objects=planned)
    assert other["problems"] == [] and len(other["warnings"]) == 1
    same, _cluster = info(monkeypatch, capsys, [policy("rail0", **pf("rail0"))], objects=planned)
    assert same["problems"] == [] and same["sriov_policies"] == []


def test_a_policy_of_another_class_is_none_for_this_port(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """Names of ports can be the same in two classes. Labels count that the plan gives, not only those of today."""
    classes = [
        {"name": name, "hosts": [host], "labels": {"class": name}, "profile": {"name": "sriov"}}
        for name, host in (("a", "h1"), ("b", "h2"))
    ]
    planned = [policy("rail0", OURS, **pf("rail0"), nodeSelector={"class": "a"})]
    for one, stops in (("1", True), ("2", False)):
        others = [policy(**pf("ens1f0"), nodeSelector={"one": one})]
        found, _cluster = info(monkeypatch, capsys, others, objects=planned, classes=classes)
        assert [found_["stops"] for found_ in found["sriov_policies"]] == [stops], one


@pytest.mark.parametrize(
    "objects",
    [
        [policy(nicSelector={"rootDevices": ["0000:18:00.1"]})],
        [policy(nicSelector={"vendor": "15b3"}), state(1, "0000:18:00.1"), state(2, "0000:18:00.1")],
        [policy(nicSelector={"rootDevices": ["0000:18:00.0", "0000:18:00.1"]})],
        [policy(**pf("ens1f1np1"))],
    ],
    ids=["selector", "states", "both", "name"],
)
def test_each_member_of_a_bond_is_a_port_of_its_rail(
    objects: list[dict[str, Any]], monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    bond = {"current": "bond0", "netdev": "bond0", "members": ["0000:18:00.0", "0000:18:00.1"]}
    hosts = {name: {**host, "rails": [{**host["rails"][0], **bond}]} for name, host in HOSTS.items()}
    monkeypatch.setitem(globals(), "HOSTS", hosts)
    rails = [{"name": "rail0", "netdev": "bond0", "members": ["ens1f0np0", "ens1f1np1"]}]
    found, _cluster = info(monkeypatch, capsys, objects, rails=rails)
    (one,) = found["sriov_policies"]
    assert one["problem"] == WARNING.format(BOTH)
    assert {"host": "h1", "rail": "rail0", "pci": "0000:18:00.1"} in one["ports"]


def test_no_request_is_sent_without_policies_of_others(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    paths = []
    for objects in ([policy(labels=OURS, **pf("ens1f0"))], [policy(**pf("ens1f0"))]):
        _found, cluster = info(monkeypatch, capsys, objects)
        paths.append(sum("sriovnetworknodestates" in path for _method, path in cluster.calls))
    assert paths == [0, 1]
