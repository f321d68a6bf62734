"""Policies of VFs are applied when the daemons of all nodes have reported their ports, and not before."""

from __future__ import annotations

from typing import Any

import pytest
from tests.unit.support.cluster_fake import FakeClock, FakeCluster

from ansible_collections.gpufabric.rdma.plugins.module_utils._common.errors import ClusterError
from ansible_collections.gpufabric.rdma.plugins.module_utils._k8s.objects import converge
from ansible_collections.gpufabric.rdma.plugins.module_utils._k8s.objects.apply import Options

API, SPACE, AGENT = "sriovnetwork.openshift.io/v1", "op", "sriov-network-config-daemon"
STATE = f"/apis/{API}/namespaces/{SPACE}/sriovnetworknodestates/a"
POLICY: dict[str, Any] = {
    "apiVersion": API,
    "kind": "SriovNetworkNodePolicy",
    "metadata": {"name": "rail0", "namespace": SPACE},
    "spec": {"numVfs": 4},
}
CLUSTER_POLICY: dict[str, Any] = {
    "apiVersion": "mellanox.com/v1alpha1",
    "kind": "NicClusterPolicy",
    "metadata": {"name": "nic-cluster-policy"},
    "spec": {},
}


def state(name: str = "a", *ports: str) -> dict[str, Any]:
    return {
        "apiVersion": API,
        "kind": "SriovNetworkNodeState",
        "metadata": {"name": name, "namespace": SPACE},
        "status": {"interfaces": [{"name": port} for port in ports]},
    }


def daemon(reason: str) -> list[dict[str, Any]]:
    owner = {"kind": "DaemonSet", "name": AGENT, "uid": "ds"}
    meta = {"name": "x", "namespace": SPACE, "labels": {"app": AGENT}, "ownerReferences": [owner]}
    status = {"containerStatuses": [{"image": "daemon:1", "state": {"waiting": {"reason": reason}}}]}
    return [
        {"apiVersion": "apps/v1", "kind": "DaemonSet", "metadata": {"name": AGENT, "namespace": SPACE}},
        {"apiVersion": "v1", "kind": "Pod", "metadata": meta, "status": status},
    ]


def apply(cluster: FakeCluster, clock: FakeClock, *, check: bool = False) -> list[str]:
    options = Options(check, False, 60, False)
    items = [POLICY, CLUSTER_POLICY]
    done = converge.apply_all(cluster.api(), items, [], known={}, nodes=["a"], options=options, clock=clock.clock())
    return [str(outcome.item["kind"]) for outcome in done]


def applied(cluster: FakeCluster) -> list[str]:
    return [path.partition("?")[0].rsplit("/", 1)[-1] for method, path in cluster.calls if method == "PATCH"]


def test_policies_wait_for_the_ports_of_nodes_and_the_rest_does_not() -> None:
    cluster, clock = FakeCluster(state(), *daemon("ContainerCreating")), FakeClock()
    before: list[str] = []
    clock.at(9, lambda: before.extend(applied(cluster)))
    clock.at(9, lambda: cluster.put(state("a", "rail0")) and None)
    assert apply(cluster, clock) == ["NicClusterPolicy", "SriovNetworkNodePolicy"]
    assert "nic-cluster-policy" in before and "rail0" not in before
    assert clock.time == 9


def test_check_mode_waits_for_nothing() -> None:
    clock = FakeClock()
    assert len(apply(FakeCluster(), clock, check=True)) == 2
    assert clock.time == 0


@pytest.mark.parametrize(
    ("objects", "seconds", "reasons"),
    [
        ([], 60, f"DaemonSet {AGENT} is absent from namespace op: read the log of the SR-IOV operator"),
        (daemon("ImagePullBackOff"), 12, "pod x: ImagePullBackOff of daemon:1"),
        (daemon("ContainerCreating"), 60, ""),
    ],
)
def test_nodes_without_ports_are_named(objects: list[dict[str, Any]], seconds: int, reasons: str) -> None:
    cluster, clock = FakeCluster(state(), *objects), FakeClock()
    with pytest.raises(ClusterError) as caught:
        apply(cluster, clock)
    assert str(caught.value) == (
        "1 SriovNetworkNodePolicy were not applied, because the SR-IOV operator does not know the ports of all nodes: "
        f"{reasons}{', ' if reasons else ''}Node a: no ports are reported. Correct that, then rerun the playbook"
    )
    assert clock.time == seconds
    assert "rail0" not in applied(cluster)
