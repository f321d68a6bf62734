"""Nodes whose SR-IOV daemon does not come up, fails again and again, or reboots them for ever: the wait ends early."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
from tests.unit.support.cluster_fake import FakeClock, FakeCluster

from ansible_collections.gpufabric.rdma.plugins.module_utils._k8s.ready import wait

API, SPACE, AGENT = "sriovnetwork.openshift.io/v1", "op", "sriov-network-config-daemon"
POLICY: dict[str, Any] = {
    "apiVersion": API,
    "kind": "SriovNetworkNodePolicy",
    "metadata": {"name": "rail0", "namespace": SPACE},
    "spec": {"nicSelector": {"pfNames": ["rail0"]}, "numVfs": 4, "externallyManaged": False},
}
WANTED = wait.Wanted([POLICY], ["a"], "26.7.1", SPACE)
BEGINS = '2026-11-25T00:00:00.1Z\tINFO\tReconcile\tcontroller/controller.go:216\tnew generation\t{"generation": 2}\n'
FAILED = (
    BEGINS + '2026-11-25T00:00:00.1Z\tERROR\tcontroller/controller.go:474\tReconciler error\t{"error": "no IOMMU"}\n'
)
DAEMON_SET = {
    "apiVersion": "apps/v1",
    "kind": "DaemonSet",
    "metadata": {"name": AGENT, "namespace": SPACE, "uid": "ds"},
}


def state(sync: str = "InProgress", vfs: int = 0, desired: str = "Idle") -> dict[str, Any]:
    port = {"name": "rail0", "numVfs": 4, "totalvfs": 7, "vendor": "8086"}
    notes = {"sriovnetwork.openshift.io/current-state": "Idle", "sriovnetwork.openshift.io/desired-state": desired}
    return {
        "apiVersion": API,
        "kind": "SriovNetworkNodeState",
        "metadata": {"name": "a", "namespace": SPACE, "generation": 2, "annotations": notes},
        "spec": {"interfaces": [port]},
        "status": {"syncStatus": sync, "interfaces": [{**port, "numVfs": vfs}]},
    }


def pod(reason: str = "", restarts: int = 0) -> dict[str, Any]:
    running: dict[str, Any] = {"waiting": {"reason": reason}} if reason else {"running": {}}
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {
            "name": "daemon-x",
            "namespace": SPACE,
            "labels": {"app": AGENT},
            "ownerReferences": [{"kind": "DaemonSet", "name": AGENT, "uid": "ds"}],
        },
        "spec": {"nodeName": "a"},
        "status": {"containerStatuses": [{"image": "daemon:1", "restartCount": restarts, "state": running}]},
    }


def node(boot: str) -> dict[str, Any]:
    return {
        "apiVersion": "v1",
        "kind": "Node",
        "metadata": {"name": "a"},
        "status": {"nodeInfo": {"bootID": boot}},
    }


def run(cluster: FakeCluster, clock: FakeClock) -> wait.Waited:
    return wait.wait(cluster.api(), WANTED, 600, stable=4, clock=clock.clock())


def test_a_node_in_force_costs_no_look_at_pods_and_logs() -> None:
    cluster = FakeCluster(POLICY, state("Succeeded", 4), DAEMON_SET, pod())
    assert run(cluster, FakeClock()).ready
    assert {path.partition("?")[0].rsplit("/", 1)[-1] for _method, path in cluster.calls} == {
        "sriovnetworknodepolicies",
        "sriovnetworknodestates",
    }


@pytest.mark.parametrize(
    ("broken", "reason", "ends"),
    [
        (pod("ImagePullBackOff"), "pod daemon-x: ImagePullBackOff of daemon:1", 10),
        # The daemon ends with exit code 0 when it cannot start.
        (pod("CrashLoopBackOff", 5), "pod daemon-x: CrashLoopBackOff of daemon:1", 10),
    ],
)
def test_a_daemon_that_does_not_come_up(broken: dict[str, Any], reason: str, ends: int) -> None:
    found = run(FakeCluster(POLICY, state(), DAEMON_SET, broken), FakeClock())
    assert (found.gave_up, found.seconds) == (True, ends)
    assert reason in found.reasons


@pytest.mark.parametrize(
    ("pages", "gave_up"),
    [
        ([FAILED * 3], True),
        ([FAILED * 2], False),
        # It passes by itself.
        ([FAILED * 3, "2026-11-25T00:00:01.1Z\tINFO\tdaemon/daemon.go:1\tsync succeeded\n"], False),
    ],
)
def test_what_the_log_repeats_ends_the_wait(pages: list[str], gave_up: bool) -> None:
    cluster = FakeCluster(POLICY, state(), DAEMON_SET, pod())
    cluster.logs["daemon-x"] = pages
    found = run(cluster, FakeClock())
    assert found.gave_up == gave_up
    if gave_up:
        assert found.seconds <= 120
        assert f"Node a: {AGENT} fails again and again: no IOMMU" in found.reasons
    # Read now and then, however often the cluster is polled.
    assert len([path for _method, path in cluster.calls if "/log?" in path]) <= found.seconds / 30
    assert all("limitBytes" in path and "tailLines" in path for _method, path in cluster.calls if "/log?" in path)


def test_a_log_that_may_not_be_read_is_no_failure() -> None:
    found = run(FakeCluster(POLICY, state(), DAEMON_SET, pod()), FakeClock())
    assert (found.ready, found.gave_up, found.seconds) == (False, False, 600)


@pytest.mark.parametrize(("boots", "gave_up"), [(("one", "two"), False), (("one", "two", "three"), True)])
def test_a_node_that_is_rebooted_again_and_again(boots: tuple[str, ...], gave_up: bool) -> None:
    cluster, clock = FakeCluster(POLICY, state(desired="Reboot_Required"), DAEMON_SET, node("zero")), FakeClock()

    def booted(boot: str) -> Callable[[], None]:
        return lambda: cluster.put(node(boot)) and None

    for number, boot in enumerate(boots[1:], 1):
        clock.at(100.0 * number, booted(boot))
    found = run(cluster, clock)
    assert found.gave_up == gave_up
    if gave_up:
        assert found.seconds == 500
        assert any("has rebooted it 2 times and wants to do so again" in reason for reason in found.reasons)
