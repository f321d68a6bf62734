"""Readiness against recordings of the real operator, and against objects made by hand for what they lack."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import pytest
from tests.unit.support.operator_recording import NIC_LABEL, World, moments

from ansible_collections.gpufabric.rdma.plugins.module_utils._fabric.operator.network_ready import pool_ready
from ansible_collections.gpufabric.rdma.plugins.module_utils._fabric.operator.profiles import registry
from ansible_collections.gpufabric.rdma.plugins.module_utils._fabric.operator.readiness import (
    Finding,
    Hopeless,
    Readiness,
    Stable,
    policy_ready,
)

RELEASE = "26.7.1"
NODES = ("gpu-1", "gpu-2", "gpu-3")
(NETWORK,) = (kind for kind in registry.kinds() if kind.kind == "MacvlanNetwork")


def judge(world: World, release: str = RELEASE) -> Readiness:
    return policy_ready(
        world.policy(),
        world.kind("DaemonSet"),
        world.kind("Deployment"),
        nodes=world.nodes(),
        pods=[],
        expected_nodes=NODES,
        release=release,
    )


OLDEST, OLDEST_RELEASE = "v25.10.0", "25.10.0"


def timeline(name: str) -> list[tuple[float, bool, bool]]:
    """(t, what we say, what the policy says) after each line of a recording."""
    found = []
    for t, world, _line in moments(name):
        policy = world.policy()
        says = bool(policy) and policy["status"].get("state") == "ready"
        found.append((t, judge(world).ready, says))
    return found


def spans(name: str) -> list[tuple[float, float]]:
    """The times in which we say ready: from the line that made it so to the line that ended it."""
    return spans_of((t, ready) for t, ready, _says in timeline(name))


def spans_of(answers: Iterable[tuple[float, bool]]) -> list[tuple[float, float]]:
    found: list[tuple[float, float]] = []
    start = None
    for t, ready in answers:
        if ready and start is None:
            start = t
        elif not ready and start is not None:
            found.append((start, t))
            start = None
    return found if start is None else [*found, (start, float("inf"))]


def test_a_minimal_policy_is_ready_once_and_until_it_is_deleted() -> None:
    [(start, _end)] = spans("a-minimal-policy")
    first = next(t for t, _ready, says in timeline("a-minimal-policy") if says)
    assert start == first


def test_never_ready_while_no_pod_was_replaced() -> None:
    # The controller manager is held from 13.49 to 20.80; the policy says ready all that time, from 14.25 on
    # with the current generation. Pods are all replaced at 55.48.
    assert any(says for t, _ready, says in timeline("j3-slow-controller-manager") if 14.25 <= t <= 20.8)
    (first, edited), (last, _end) = spans("j3-slow-controller-manager")
    assert (first, edited) == (10.49, 13.8)
    assert last == 55.95


def test_a_line_without_conditions_is_judged_by_what_it_runs() -> None:
    answers = {
        name: spans_of((t, judge(world, OLDEST_RELEASE).ready) for t, world, _line in moments(name, OLDEST))
        for name in ("a-minimal-policy", "e-updates-and-generation")
    }
    assert answers["a-minimal-policy"] == [(11.56, 19.57)]
    # A change of the configuration at 14.64 is not rolled out on this line; one of the version is, at 18.66. The
    # policy says ready for a second after each change; a pod is broken at 40.28, a node added and removed.
    assert answers["e-updates-and-generation"] == [(10.63, 18.66), (37.21, 40.28), (61.33, 63.57), (136.38, 139.4)]


def test_how_to_restart_a_device_plugin_that_the_operator_does_not_restart() -> None:
    world = World()
    for t, at, _line in moments("e-updates-and-generation", OLDEST):
        world = at
        if t > 15:
            break
    nodes = [node(name, {"rdma/rdma_a": "63"}) for name in NODES]
    (said,) = answer(world, nodes=nodes, release=OLDEST_RELEASE, resources={"rdma_b": 63}).reasons
    restart = "kubectl --namespace nvidia-network-operator rollout restart daemonset/"
    assert said == (
        "rdma/rdma_b: expected 63 on each node, found gpu-1 (0), gpu-2 (0), gpu-3 (0). Release line 25.10 of the"
        " network operator may not restart a device plugin after a change of its configuration. If the resource is"
        f" still missing after a minute, run: {restart}network-operator-sriov-device-plugin &&"
        f" {restart}rdma-shared-dp-ds"
    )
    assert answer(world, nodes=nodes, release=OLDEST_RELEASE, resources={"rdma_a": 63}).ready


def test_updates_are_waited_for() -> None:
    found = spans("e-updates-and-generation")
    # Config change, version change, components swapped, pod broken, node added and removed (the
    # device plugin's status lags behind that until the label goes), label gone and back.
    assert [start for start, _end in found] == [10.9, 50.83, 89.44, 106.87, 131.49, 205.94]
    assert found[-1][1] == 208.95


def test_a_deployment_that_is_down_counts() -> None:
    says = [(t, ready) for t, ready, says in timeline("j-readiness-traps") if says and 14.4 < t < 68]
    assert says == [] or not any(ready for _t, ready in says)
    assert spans("j-readiness-traps")[0] == (11.26, 14.31)


def test_reasons_are_told() -> None:
    reasons: dict[float, Readiness] = {}
    for t, world, _line in moments("e-updates-and-generation"):
        reasons[t] = judge(world)
    assert reasons[14.92].reasons == ("NicClusterPolicy: the operator has not observed generation 2 yet",)
    assert not reasons[179.29].failed
    assert reasons[179.29].reasons[0] == "NicClusterPolicy: state is notReady"
    assert any(
        reason.startswith(f"Nodes without the label {NIC_LABEL}: gpu-1, gpu-2, gpu-3")
        for reason in reasons[179.29].reasons
    )


def ready_world() -> World:
    world = World()
    for _t, at, line in moments("a-minimal-policy"):
        world = at
        if line["event"] == "STEP" and line["do"].startswith("condition met"):
            break
    return world


def answer(world: World, **other: Any) -> Readiness:
    given: dict[str, Any] = {
        "policy": world.policy(),
        "daemonsets": world.kind("DaemonSet"),
        "deployments": world.kind("Deployment"),
        "nodes": world.nodes(),
        "pods": [],
        "expected_nodes": NODES,
        "release": RELEASE,
    }
    given.update(other)
    return policy_ready(**given)


def node(name: str, allocatable: dict[str, str]) -> dict[str, Any]:
    return {"metadata": {"name": name, "labels": {NIC_LABEL: "true"}}, "status": {"allocatable": allocatable}}


def pod(reason: str, message: str = "", restarts: int = 0, owner: str = "kube-multus-ds") -> dict[str, Any]:
    waiting = {"reason": reason, "message": message}
    container = {"name": "c", "image": "multus:1", "restartCount": restarts, "state": {"waiting": waiting}}
    return {
        "metadata": {
            "name": "kube-multus-ds-x1",
            "namespace": "nvidia-network-operator",
            "ownerReferences": [{"kind": "DaemonSet", "name": owner}],
        },
        "status": {"containerStatuses": [container]},
    }


def test_a_ready_world() -> None:
    assert answer(ready_world()) == Readiness(True, False, ())


@pytest.mark.parametrize(
    ("change", "failed", "reason"),
    [
        ({"policy": None}, False, "NicClusterPolicy is absent"),
        (
            {"expected_nodes": ("gpu-1",)},
            False,
            "DaemonSet rdma-shared-dp-ds: scheduled on 3 nodes, expected 1: narrow rdma_fabric.node_selector",
        ),
        ({"expected_nodes": (*NODES, "gpu-9")}, False, "missing Nodes: gpu-9"),
        (
            {"expected_nodes": (*NODES, "gpu-9")},
            False,
            "DaemonSet kube-multus-ds: scheduled on 3 nodes, expected 4: check the labels of the nodes",
        ),
        ({"deployments": []}, False, "the operator's Deployment is absent"),
        ({"daemonsets": []}, False, "state-multus-cni: no DaemonSet yet"),
        (
            {"nodes": [node(n, {"rdma/rdma_rail0": "63" if n == "gpu-1" else "0"}) for n in NODES],
             "resources": {"rdma_rail0": 63}},
            False,
            "rdma/rdma_rail0: expected 63 on each node, found gpu-2 (0), gpu-3 (0)",
        ),
        (
            {"pods": [pod("ImagePullBackOff", 'Back-off pulling image "multus:1"')]},
            True,
            'pod kube-multus-ds-x1: ImagePullBackOff of multus:1: Back-off pulling image "multus:1"',
        ),
        ({"pods": [pod("ErrImagePull")]}, False, "pod kube-multus-ds-x1: ErrImagePull of multus:1"),
        ({"pods": [pod("CrashLoopBackOff", restarts=5)]}, True, "pod kube-multus-ds-x1: CrashLoopBackOff of multus:1"),
        ({"pods": [pod("CrashLoopBackOff", restarts=1)]}, False, "pod kube-multus-ds-x1: CrashLoopBackOff of multus:1"),
    ],
)  # fmt: skip
def test_one_thing_is_wrong(change: dict[str, Any], failed: bool, reason: str) -> None:
    found = answer(ready_world(), **change)
    assert (found.ready, found.failed) == (False, failed)
    assert reason in found.reasons


def test_pods_of_others_and_pods_that_start_do_not_count() -> None:
    assert answer(ready_world(), pods=[pod("ImagePullBackOff", owner="other"), pod("ContainerCreating")]).ready


def test_the_image_of_the_policy_must_run() -> None:
    world = ready_world()
    world.spec = {**world.spec, "secondaryNetwork": {"multus": {"image": "multus-cni", "version": "v9"}}}
    assert answer(world).reasons == (
        "DaemonSet kube-multus-ds: runs image multus-cni:network-operator-v26.7.0, expected multus-cni:v9",
    )
    world.spec = {"global": {"version": "v9"}, "secondaryNetwork": {"multus": {"image": "multus-cni"}}}
    assert "expected multus-cni:v9" in answer(world).reasons[0]


def test_drivers_must_be_done() -> None:
    world = ready_world()
    driver = {"image": "doca-driver", "version": "x", "upgradePolicy": {"autoUpgrade": True}}
    world.spec = {**world.spec, "ofedDriver": driver}
    nodes = world.nodes()
    nodes[0]["metadata"]["labels"]["nvidia.com/ofed-driver-upgrade-state"] = "upgrade-done"
    nodes[1]["metadata"]["labels"]["nvidia.com/ofed-driver-upgrade-state"] = "upgrade-failed"
    found = answer(world, nodes=nodes)
    assert found.failed
    assert found.reasons == (
        "Node gpu-2: driver upgrade is upgrade-failed",
        "state-OFED: no DaemonSet yet",
        "Node gpu-3: driver upgrade is not started",
    )


def test_an_ignored_policy_and_a_failed_component_are_terminal() -> None:
    world = ready_world()
    policy = world.policy()
    assert policy is not None
    policy["status"] = {"state": "ignore", "reason": "Unsupported name"}
    found = answer(world, policy=policy, release="26.4.1")
    assert (found.failed, found.reasons) == (True, ("NicClusterPolicy is ignored by the operator: Unsupported name",))
    parts = [{"name": "state-OFED", "state": "error", "message": "no such ConfigMap"}]
    policy["status"] = {"state": "notReady", "appliedStates": parts}
    found = answer(world, policy=policy, release="26.4.1")
    assert (found.failed, found.reasons[0]) == (True, "state-OFED is error: no such ConfigMap")


def test_stable_starts_again_when_it_flaps() -> None:
    yes, no = Readiness(True, False, ()), Readiness(False, False, ("x",))
    stable = Stable(5)
    seen = [(100, yes), (103, yes), (104, no), (105, yes), (109, yes), (110, yes)]
    assert [stable.update(now, readiness) for now, readiness in seen] == [False, False, False, False, False, True]
    assert Stable(0).update(7, yes)


def test_what_waiting_cannot_help_must_be_seen_for_its_time() -> None:
    quick, slow = Finding("a", True), Finding("b", True, 60)
    both, late, none = Readiness.of([quick, slow]), Readiness.of([slow, Finding("c")]), Readiness.of([Finding("c")])
    cases = [
        ([(0, both), (9, both), (10, both)], True),
        # One that comes and goes does not end the wait for the other early.
        ([(0, late), (50, both), (55, late)], False),
        ([(0, late), (50, none), (60, late), (100, late)], False),
        ([(0, late), (50, both), (60, late)], True),
        ([(0, none), (100, none)], False),
    ]
    for seen, gives_up in cases:
        hopeless = Hopeless()
        *_before, last = [hopeless.update(now, readiness) for now, readiness in seen]
        assert (any(_before), last) == (False, gives_up)


def test_the_flap_at_the_end_of_a_change_is_not_stable() -> None:
    stable = Stable(5)
    first = next(t for t, world, _line in moments("a-minimal-policy") if stable.update(t, judge(world)))
    [(start, _end)] = spans("a-minimal-policy")
    assert first - start >= 5


def test_joined() -> None:
    parts = [Readiness(False, False, ("a",)), Readiness(True, False, ()), Readiness(False, True, ("b",))]
    assert Readiness.joined(parts) == Readiness(False, True, ("b", "a"))


def networks_at_the_end() -> dict[str, Readiness]:
    found: dict[str, Readiness] = {}
    specs: dict[str, dict[str, Any]] = {}
    for _t, world, line in moments("f-networks"):
        item = line.get("object") or {}
        if item.get("kind") == "MacvlanNetwork":
            specs[item["metadata"]["name"]] = item["spec"]
        for name, spec in specs.items():
            network = world.one("MacvlanNetwork", name)
            if network and name not in found and network["status"]:
                answer = NETWORK.ready({**network, "spec": spec}, world.one("NetworkAttachmentDefinition", name), NODES)
                found[name] = answer
    return found


def test_networks_as_recorded() -> None:
    found = networks_at_the_end()
    assert found["mv-nvipam"] == Readiness(True, False, ())
    assert found["mv-missing-ns"].reasons == (
        'MacvlanNetwork mv-missing-ns: notReady: failed to create/update objects: namespaces "later" not found',
        "MacvlanNetwork mv-missing-ns: no NetworkAttachmentDefinition in namespace later yet",
    )
    # The operator calls a network with broken ipam ready.
    assert found["mv-bad-ipam"].failed
    assert found["mv-bad-ipam"].reasons == (
        "MacvlanNetwork mv-bad-ipam: the config of its NetworkAttachmentDefinition is not valid JSON",
    )


def test_a_nad_that_was_edited_is_seen() -> None:
    spec = {"master": "rail0", "mode": "bridge", "mtu": 9000, "ipam": '{"type":"nv-ipam"}', "networkNamespace": "a"}
    network = {"metadata": {"name": "rail0"}, "spec": spec, "status": {"state": "ready"}}
    config = '{"type":"macvlan","master":"rail0","mode":"bridge","mtu":1500,"ipam":{"type":"nv-ipam"}}'
    nad = {"metadata": {"name": "rail0", "namespace": "a"}, "spec": {"config": config}}
    assert NETWORK.ready(network, nad, NODES).reasons == (
        "MacvlanNetwork rail0: its NetworkAttachmentDefinition has mtu 1500, expected 9000. If this persists, "
        "delete it; "
        "the operator recreates it",
    )
    nad["spec"]["config"] = config.replace("1500", "9000")
    assert NETWORK.ready(network, nad, NODES).ready


def test_pools() -> None:
    pool = {"metadata": {"name": "rail0"}, "status": {"allocations": [{"nodeName": "gpu-1"}]}}
    assert pool_ready("IPPool", pool, ["gpu-1"]).ready
    assert pool_ready("IPPool", pool, ["gpu-2", "gpu-1"]).reasons == ("IPPool rail0: no addresses yet for gpu-2",)


def driver_world(*, auto: bool, sets: dict[str, tuple[int, int]]) -> dict[str, Any]:
    """A policy with the driver container, and its DaemonSets: name -> (pods, of which have the newest driver)."""
    driver = {"image": "doca-driver", "version": "x", "upgradePolicy": {"autoUpgrade": auto}}
    world = ready_world()
    world.spec = {**world.spec, "ofedDriver": driver}
    like = world.kind("DaemonSet")[0]
    made = []
    for name, (pods, new) in sets.items():
        labels = {"nvidia.network-operator.state": "state-OFED"}
        meta = {**like["metadata"], "name": name, "labels": labels}
        image = {"containers": [{"image": "r/doca-driver:x-ubuntu24.04-amd64"}]}
        status = {
            "observedGeneration": meta.get("generation"),
            "desiredNumberScheduled": pods,
            "updatedNumberScheduled": new,
            "numberAvailable": pods,
        }
        made.append({**like, "metadata": meta, "spec": {"template": {"spec": image}}, "status": status})
    return {"policy": world.policy(), "daemonsets": [*world.kind("DaemonSet"), *made]}


def test_kernels_have_drivers_of_their_own() -> None:
    found = answer(ready_world(), **driver_world(auto=False, sets={"mofed-a": (2, 2), "mofed-b": (1, 1)}))
    assert found.reasons == ()
    found = answer(ready_world(), **driver_world(auto=False, sets={"mofed-a": (1, 1), "mofed-b": (1, 1)}))
    assert any(
        "DaemonSet mofed-a: scheduled on 1 nodes, expected 2: check the labels" in text for text in found.reasons
    )


def test_a_driver_that_nobody_replaces_ends_the_wait() -> None:
    found = answer(ready_world(), **driver_world(auto=False, sets={"mofed-a": (3, 1)}))
    assert found.failed
    assert found.reasons[0].startswith(
        "DaemonSet mofed-a: 2 of 3 pods run the driver of before, and nothing replaces them"
    )
    found = answer(ready_world(), **driver_world(auto=True, sets={"mofed-a": (3, 1)}))
    assert not found.failed
    assert "DaemonSet mofed-a: 1 of 3 pods updated, 3 available" in found.reasons
