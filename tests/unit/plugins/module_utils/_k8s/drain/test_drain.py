"""Cordon, drain and release of a Node, against the API server in memory."""

from __future__ import annotations

import json
from typing import Any

import pytest
from tests.unit.support.cluster_fake import FakeClock, FakeCluster, down, ok, status

from ansible_collections.gpufabric.rdma.plugins.module_utils._common.errors import ClusterError, ConflictError
from ansible_collections.gpufabric.rdma.plugins.module_utils._k8s.client import nodes
from ansible_collections.gpufabric.rdma.plugins.module_utils._k8s.drain import cordon, drain

RULES = drain.Rules(timeout=20)


def node(name: str = "a", boot: str = "boot-1", ready: str = "True", **spec: Any) -> dict[str, Any]:
    return {
        "apiVersion": "v1",
        "kind": "Node",
        "metadata": {"name": name, "resourceVersion": "1"},
        "spec": spec,
        "status": {
            "nodeInfo": {"machineID": f"id-{name}", "bootID": boot},
            "conditions": [{"type": "Ready", "status": ready, "reason": "KubeletNotReady", "message": "no network"}],
        },
    }


def pod(name: str, owner: str | None = "ReplicaSet", on: str = "a", **more: Any) -> dict[str, Any]:
    meta: dict[str, Any] = {"name": name, "namespace": "shop", **more.pop("metadata", {})}
    if owner:
        meta["ownerReferences"] = [{"kind": owner, "name": "o", "controller": True}]
    spec = {"nodeName": on, **more.pop("spec", {})}
    return {"apiVersion": "v1", "kind": "Pod", "metadata": meta, "spec": spec, **more}


def blocked(budget: str = "web") -> Any:
    said = f"The disruption budget {budget} needs 2 healthy pods and has 2 currently"
    causes = [{"reason": "DisruptionBudget", "message": said}]
    message = "Cannot evict pod as it would violate the pod's disruption budget."
    return status(429, "TooManyRequests", message, {"details": {"causes": causes}})


MIRROR = {"annotations": {"kubernetes.io/config.mirror": "x"}}
DATA = {"volumes": [{"name": "cache", "emptyDir": {}}, {"name": "conf", "configMap": {"name": "c"}}]}


@pytest.mark.parametrize(
    ("item", "evict", "problems"),
    [
        (pod("p"), True, ()),
        (pod("p", "Job"), True, ()),
        (pod("p", "DaemonSet"), False, ()),
        (pod("p", "Node", metadata=MIRROR), False, ()),
        (pod("p", None, status={"phase": "Succeeded"}), False, ()),
        (
            pod("p", None),
            True,
            (
                "pod shop/p has no controller that would recreate it. Move it, or set evict_unmanaged: true to "
                "delete it",
            ),
        ),
        (
            pod("p", spec=DATA),
            True,
            (
                "pod shop/p keeps data on the node (emptyDir cache). Move it, or set evict_local_storage: true to "
                "delete the data",
            ),
        ),
        (pod("p", None, metadata={"deletionTimestamp": "2026-01-01T00:00:00Z"}), True, ()),
    ],
)
def test_pods_are_sorted(item: dict[str, Any], evict: bool, problems: tuple[str, ...]) -> None:
    found = drain.sort_pods([item], RULES)
    assert (bool(found.evict), found.stay, found.problems) == (evict, () if evict else ("shop/p",), problems)


def test_consent_lets_them_go() -> None:
    rules = drain.Rules(unmanaged=True, local_storage=True)
    assert drain.sort_pods([pod("p", None, spec=DATA)], rules).problems == ()


def test_only_pods_of_this_node_go_and_daemons_stay() -> None:
    cluster = FakeCluster(pod("p"), pod("q"), pod("daemon", "DaemonSet"), pod("other", on="b"))
    clock = FakeClock()
    assert drain.drain(cluster.api(), "a", RULES, clock=clock.clock()) == ["shop/p", "shop/q"]
    assert [path.rsplit("/", 1)[-1] for path in sorted(cluster.objects)] == ["daemon", "other"]
    assert clock.slept == [drain.POLL]


def test_pods_of_other_nodes_are_left_alone_when_a_proxy_drops_the_selector() -> None:
    cluster = FakeCluster()
    pods = [pod(name, on=on, metadata={"uid": name}) for name, on in (("p", "a"), ("q", "b"), ("r", ""))]
    cluster.answers = [ok({"kind": "PodList", "items": [*pods, {"metadata": {"name": "s"}}]})]
    assert [item["metadata"]["name"] for item in drain.pods_of(cluster.api(), "a", RULES).evict] == ["p"]


def test_a_pod_that_could_not_be_evicted_safely_is_refused() -> None:
    cluster = FakeCluster()
    cluster.answers = [ok({"kind": "PodList", "items": [pod("p")]})]
    with pytest.raises(ClusterError, match='the pod "p" of Node a has no namespace or uid in the answer to GET /api'):
        drain.pods_of(cluster.api(), "a", RULES)


@pytest.mark.parametrize("grace", [None, 0, 30])
def test_pods_end_in_their_own_time_or_in_the_given_one(grace: int | None) -> None:
    cluster = FakeCluster(pod("p"))
    drain.drain(cluster.api(), "a", drain.Rules(grace=grace), clock=FakeClock().clock())
    assert cluster.graces == {"p": grace}


def test_a_budget_is_asked_again_until_it_agrees() -> None:
    cluster = FakeCluster(pod("p"), pod("q"))
    cluster.evictions["p"] = [blocked(), status(500, "InternalError", "etcd is away")]
    assert drain.drain(cluster.api(), "a", RULES, clock=FakeClock().clock()) == ["shop/p", "shop/q"]
    asked = [path for method, path in cluster.calls if method == "POST"]
    assert [path.split("/")[-2] for path in asked] == ["p", "q", "p", "p"]


def test_who_holds_each_pod_is_said_at_the_end() -> None:
    cluster = FakeCluster(
        pod("p"), pod("q"), pod("slow", metadata={"deletionTimestamp": "2026-01-01T00:00:00Z", "finalizers": ["x/y"]})
    )
    cluster.evictions = {"p": [blocked()] * 9, "q": [status(500, "InternalError", "this pod has two budgets")] * 9}
    with pytest.raises(ClusterError) as failed:
        drain.drain(cluster.api(), "a", RULES, clock=FakeClock().clock())
    assert str(failed.value) == (
        "Node a is not empty after 20 s: "
        "pod shop/p: The disruption budget web needs 2 healthy pods and has 2 currently; "
        "pod shop/q: this pod has two budgets; "
        "pod shop/slow: it is ending since 2026-01-01T00:00:00Z, finalizers x/y"
    )


def test_a_pod_that_comes_meanwhile_and_must_not_be_evicted_stops() -> None:
    cluster = FakeCluster(pod("p"))
    cluster.evictions["p"] = [blocked()] * 9
    clock = FakeClock()
    clock.at(5, lambda: cluster.put(pod("bare", None)) and None)
    with pytest.raises(ConflictError, match="^Node a cannot be drained: pod shop/bare has no controller"):
        drain.drain(cluster.api(), "a", RULES, clock=clock.clock())


def test_a_refusal_is_not_tried_again() -> None:
    cluster = FakeCluster(pod("p"))
    cluster.evictions["p"] = [status(403, "Forbidden", "no")]
    with pytest.raises(ClusterError, match="refused POST .*/pods/p/eviction with 403: no"):
        drain.drain(cluster.api(), "a", RULES, clock=FakeClock().clock())


def test_permissions_are_asked_for_first() -> None:
    cluster = FakeCluster(denied=("create pods/eviction", "patch nodes"))
    with pytest.raises(ClusterError) as failed:
        drain.check_permissions(cluster.api())
    assert str(failed.value) == (
        "permissions are missing: patch nodes, create pods/eviction; use an account that has them"
    )


def test_a_node_that_we_cordon_is_opened_again() -> None:
    cluster = FakeCluster(node())
    api = cluster.api()
    before, after = cordon.change(api, "a", lambda live: cordon.closed(live, "reboot: why"))
    assert before == {"unschedulable": False, "annotations": {}}
    assert after == {"unschedulable": True, "annotations": {cordon.CORDONED: "true", cordon.REBOOT: "reboot: why"}}
    cordon.change(api, "a", lambda live: cordon.noted(live, "it did not come back"))
    # A second run, after one that was cut off.
    cordon.change(api, "a", lambda live: cordon.closed(live, "reboot: why"))
    assert cordon.change(api, "a", cordon.opened)[1] == {"unschedulable": False, "annotations": {}}


def test_a_node_that_somebody_else_cordoned_stays_cordoned() -> None:
    cluster = FakeCluster(node(unschedulable=True))
    api = cluster.api()
    after = cordon.change(api, "a", lambda live: cordon.closed(live, "reboot: why"))[1]
    assert after == {"unschedulable": True, "annotations": {cordon.REBOOT: "reboot: why"}}
    assert cordon.change(api, "a", cordon.opened)[1] == {"unschedulable": True, "annotations": {}}


def test_a_node_that_changed_meanwhile_is_read_again() -> None:
    cluster = FakeCluster(node())
    seen = []

    def wanted(live: cordon.Node) -> dict[str, Any]:
        seen.append(live["metadata"]["resourceVersion"])
        if len(seen) == 1:
            cluster.objects["/api/v1/nodes/a"]["metadata"]["resourceVersion"] = "2"
        return cordon.closed(live, "r")

    assert cordon.change(cluster.api(), "a", wanted)[1]["unschedulable"] is True
    assert seen == ["1", "2"]


PLANE = {"node-role.kubernetes.io/control-plane": ""}


def member(name: str, labels: dict[str, str], ready: str = "True", reboot: str = "") -> dict[str, Any]:
    item = node(name, ready=ready)
    item["metadata"].update(labels=labels, annotations={cordon.REBOOT: reboot} if reboot else {})
    return item


@pytest.mark.parametrize(
    ("others", "why"),
    [
        ([], ""),
        ([member("b", {}, "False"), member("c", {}, reboot="reboot: x"), member("d", PLANE)], ""),
        ([member("b", PLANE, "False")], "KubeletNotReady: no network"),
        ([member("b", {"node-role.kubernetes.io/etcd": ""}, reboot="reboot: x")], 'is being rebooted ("reboot: x")'),
    ],
)
def test_only_one_node_of_the_control_plane_goes_down(others: list[Any], why: str) -> None:
    api = FakeCluster(member("a", PLANE, "False", "reboot: x"), *others).api()
    cordon.check_control_plane(api, member("w", {}))
    if not why:
        cordon.check_control_plane(api, member("a", PLANE))
        return
    with pytest.raises(ConflictError) as failed:
        cordon.check_control_plane(api, member("a", PLANE))
    start = "Node a belongs to the control plane, and so does Node b: "
    assert str(failed.value).startswith(f"{start}{why}. Only one node of the control plane may be down at a time.")


@pytest.mark.parametrize(
    ("labels", "expected"),
    [
        ({"node-role.kubernetes.io/control-plane": "true"}, True),
        ({"node-role.kubernetes.io/controlplane": "true"}, True),
        ({"node-role.kubernetes.io/master": ""}, True),
        ({"node-role.kubernetes.io/etcd": "true"}, True),
        ({"node.kubernetes.io/microk8s-controlplane": "microk8s-controlplane"}, True),
        ({"node.k0sproject.io/role": "control-plane"}, True),
        ({"node.k0sproject.io/role": "worker"}, False),
        ({"node.kubernetes.io/microk8s-worker": "microk8s-worker"}, False),
        ({}, False),
    ],
)
def test_labels_of_the_control_plane(labels: dict[str, str], expected: bool) -> None:
    assert nodes.control_plane(member("a", labels)) is expected


def test_ready_of_the_boot_before_does_not_count() -> None:
    cluster = FakeCluster(node(boot="old"))
    clock = FakeClock()
    clock.at(6, lambda: cluster.put(node(boot="new", ready="False")) and None)
    clock.at(12, lambda: cluster.put(node(boot="new")) and None)
    cordon.wait_ready(cluster.api(), "a", "new", timeout=60, clock=clock.clock())
    assert clock.time == 12


@pytest.mark.parametrize(
    ("item", "why"),
    [
        (node(boot="old"), "its kubelet has not reported since the boot (boot id old, expected new)"),
        (node(boot="new", ready="False"), "KubeletNotReady: no network"),
        ({"metadata": {"name": "a"}}, "its kubelet has not reported since the boot (boot id unknown, expected new)"),
    ],
)
def test_why_a_node_is_not_ready(item: dict[str, Any], why: str) -> None:
    cluster = FakeCluster()
    cluster.objects["/api/v1/nodes/a"] = json.loads(json.dumps(item))
    with pytest.raises(ClusterError) as failed:
        cordon.wait_ready(cluster.api(), "a", "new", timeout=9, clock=FakeClock().clock())
    assert str(failed.value) == f"Node a is not Ready 9 s after the host booted: {why}. Check its kubelet"


def test_an_api_server_that_reboots_too_is_waited_for() -> None:
    cluster = FakeCluster(node(boot="new"))
    cluster.answers = [down()] * 4
    cordon.wait_ready(cluster.api(), "a", "new", timeout=60, clock=FakeClock().clock())
