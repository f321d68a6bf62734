"""Waiting for real readiness: it must hold, it ends early for what will not pass, and at the limit with reasons."""

from __future__ import annotations

import json
from typing import Any

import pytest
from tests.unit.support.cluster_fake import FakeClock, FakeCluster

from ansible_collections.gpufabric.rdma.plugins.module_utils._common.errors import InputError
from ansible_collections.gpufabric.rdma.plugins.module_utils._fabric.operator.profiles import registry
from ansible_collections.gpufabric.rdma.plugins.module_utils._k8s.ready import reports, wait

IPAM = {"type": "nv-ipam", "poolName": "rail0"}


def network(state: str = "ready", reason: str = "") -> dict[str, Any]:
    return {
        "apiVersion": "mellanox.com/v1alpha1",
        "kind": "MacvlanNetwork",
        "metadata": {"name": "rail0"},
        "spec": {"networkNamespace": "default", "master": "eth4", "mtu": 9000, "ipam": json.dumps(IPAM)},
        "status": {"state": state, "reason": reason},
    }


def nad(mtu: int = 9000) -> dict[str, Any]:
    config = {"type": "macvlan", "master": "eth4", "mtu": mtu, "ipam": IPAM}
    return {
        "apiVersion": "k8s.cni.cncf.io/v1",
        "kind": "NetworkAttachmentDefinition",
        "metadata": {"name": "rail0", "namespace": "default"},
        "spec": {"config": json.dumps(config)},
    }


def pool(*nodes: str) -> dict[str, Any]:
    return {
        "apiVersion": "nv-ipam.nvidia.com/v1alpha1",
        "kind": "IPPool",
        "metadata": {"name": "rail0", "namespace": "op"},
        "spec": {},
        "status": {"allocations": [{"nodeName": name} for name in nodes]},
    }


WANTED = wait.Wanted([pool(), network()], ["a", "b"], "26.7.1", "op")


def run(cluster: FakeCluster, clock: FakeClock, timeout: float = 60) -> wait.Waited:
    return wait.wait(cluster.api(), WANTED, timeout, stable=8, clock=clock.clock())


def test_ready_must_hold() -> None:
    cluster = FakeCluster(pool("a", "b"), network(), nad())
    assert run(cluster, FakeClock()) == wait.Waited(True, 8.0, ())
    # Pools, networks and NADs: three lists a poll, five polls.
    assert len(cluster.calls) == 15


def test_a_flap_starts_the_count_again() -> None:
    cluster, clock = FakeCluster(pool("a", "b"), network(), nad()), FakeClock()
    clock.at(4, lambda: cluster.put(network("notReady")) and None)
    clock.at(6, lambda: cluster.put(network()) and None)
    assert run(cluster, clock) == wait.Waited(True, 14.0, ())


def test_reasons_at_the_limit_name_what_is_missing_where() -> None:
    found = run(FakeCluster(pool("a"), network(), nad(1500)), FakeClock())
    assert (found.ready, found.seconds, found.gave_up) == (False, 60.0, False)
    assert found.reasons[0].startswith("IPPool rail0: no addresses yet for b")
    assert "NetworkAttachmentDefinition has mtu 1500, expected 9000" in found.reasons[1]


def test_what_waiting_cannot_help_ends_early() -> None:
    found = run(FakeCluster(pool("a", "b"), network("error", "bad ipam"), nad()), FakeClock())
    assert (found.ready, found.seconds, found.gave_up) == (False, 10.0, True)
    assert found.reasons == ("MacvlanNetwork rail0: error: bad ipam",)


def test_an_error_that_passes_is_no_end() -> None:
    cluster, clock = FakeCluster(pool("a", "b"), network("error"), nad()), FakeClock()
    clock.at(8, lambda: cluster.put(network()) and None)
    assert run(cluster, clock).ready


def test_nothing_there() -> None:
    found = run(FakeCluster(), FakeClock(), timeout=4)
    assert found.reasons == ("IPPool rail0 is absent", "MacvlanNetwork rail0 is absent")


def test_a_policy_that_is_not_there() -> None:
    policy = {"apiVersion": "mellanox.com/v1alpha1", "kind": "NicClusterPolicy", "metadata": {"name": "p"}, "spec": {}}
    cluster = FakeCluster()
    found = wait.wait(
        cluster.api(), wait.Wanted([policy], ["a"], "26.7.1", "op"), 2, stable=8, clock=FakeClock().clock()
    )
    assert found.reasons == ("NicClusterPolicy is absent",)
    # The policy, DaemonSets, Deployments, pods and nodes: five requests a poll whatever the number of nodes.
    assert len(cluster.calls) == 10


def test_a_kind_that_we_cannot_judge() -> None:
    with pytest.raises(InputError) as caught:
        wait.check(wait.Wanted([{"kind": "Secret"}], [], "26.7.1", "op"))
    known = ", ".join(sorted({"NicClusterPolicy", *(kind.kind for kind in registry.kinds())}))
    assert str(caught.value) == f"kinds that cannot be waited for: Secret; known: {known}"


def look(cluster: FakeCluster, wanted: wait.Wanted) -> list[str]:
    found = wait.look(cluster.api(), wanted, 0.0, seen=reports.Seen())
    return [reason for part in found for reason in part.reasons]


CLASSES = [wait.NodeClass(["a"], {"class": "x"}, {"rdma_rail0": 63}), wait.NodeClass(["b"], {"class": "y"}, {})]


@pytest.mark.parametrize(
    ("label", "served", "missing"),
    [("x", ["a"], ""), ("x", ["b"], "a"), ("y", ["a"], "b"), ("none", ["a"], "b")],
    ids=["its own nodes", "not its own", "of the other class", "of no class: all nodes"],
)
def test_a_pool_serves_the_nodes_of_the_classes_that_it_selects(label: str, served: list[str], missing: str) -> None:
    rules = [{"key": "class", "operator": "In", "values": [label]}]
    spec = {"nodeSelector": {"nodeSelectorTerms": [{"matchExpressions": rules}]}}
    item = {**pool(*served), "spec": spec}
    wanted = wait.Wanted([item], ["a", "b"], "26.7.1", "op", classes=CLASSES)
    reasons = look(FakeCluster(item), wanted)
    assert reasons == ([f"IPPool rail0: no addresses yet for {missing}"] if missing else [])


def test_a_node_has_the_policies_of_its_class_only() -> None:
    def policy(name: str, label: str) -> dict[str, Any]:
        spec = {"nodeSelector": {"class": label}, "nicSelector": {"pfNames": [name]}, "numVfs": 4}
        return {
            "apiVersion": "sriovnetwork.openshift.io/v1",
            "kind": "SriovNetworkNodePolicy",
            "metadata": {"name": name, "namespace": "op"},
            "spec": spec,
        }

    wanted = wait.Wanted([policy("p0", "x")], ["a", "b"], "26.7.1", "op", classes=CLASSES)
    cluster = FakeCluster(policy("p0", "x"))
    reasons = look(cluster, wanted)
    assert [reason.partition(":")[0] for reason in reasons if reason.startswith("Node ")] == ["Node a"]
