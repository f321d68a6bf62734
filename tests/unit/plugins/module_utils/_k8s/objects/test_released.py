"""After node policies are removed: the run waits until no node has their VFs, and says what else changes."""

from __future__ import annotations

from typing import Any

import pytest
from tests.unit.support.cluster_fake import FakeClock, FakeCluster

from ansible_collections.gpufabric.rdma.plugins.module_utils._common.errors import ClusterError
from ansible_collections.gpufabric.rdma.plugins.module_utils._k8s.objects import converge, released
from ansible_collections.gpufabric.rdma.plugins.module_utils._k8s.objects.apply import Options

API, SPACE = "sriovnetwork.openshift.io/v1", "op"
STATE = f"/apis/{API}/namespaces/{SPACE}/sriovnetworknodestates/a"


def policy(name: str = "rail0", **spec: Any) -> dict[str, Any]:
    return {
        "apiVersion": API,
        "kind": "SriovNetworkNodePolicy",
        "metadata": {"name": name, "namespace": SPACE},
        "spec": {"nicSelector": {"pfNames": [name]}, "externallyManaged": False, **spec},
    }


def cluster(owner: str | None, vfs: int, pods: int = 1) -> FakeCluster:
    """A node whose port rail0 has VFs; ``owner``: the policy that its state asks for, if any."""
    wanted = [{"name": "rail0", "numVfs": vfs, "vfGroups": [{"policyName": owner}]}] if owner else []
    found = FakeCluster(
        {
            "apiVersion": "apps/v1",
            "kind": "DaemonSet",
            "metadata": {"name": "sriov-network-config-daemon", "namespace": SPACE},
            "status": {"desiredNumberScheduled": pods},
        },
        {
            "apiVersion": API,
            "kind": "SriovNetworkNodeState",
            "metadata": {"name": "a", "namespace": SPACE},
            "spec": {"interfaces": wanted},
            "status": {"interfaces": [{"name": "rail0", "numVfs": vfs}]},
        },
    )
    return found


def wait(found: FakeCluster, clock: FakeClock, *policies: dict[str, Any]) -> None:
    released.wait(found.api(), policies or [policy()], 60, clock=clock.clock())


def test_it_waits_until_the_vfs_are_gone() -> None:
    found, clock = cluster("rail0", 8), FakeClock()
    clock.at(6, lambda: found.objects[STATE]["spec"].update(interfaces=[]))
    clock.at(12, lambda: found.objects[STATE]["status"]["interfaces"][0].update(numVfs=0))
    told: list[tuple[float, list[str]]] = []
    released.wait(
        found.api(), [policy()], 60, clock=clock.clock(), tell=lambda second, left: told.append((second, list(left)))
    )
    assert clock.time == 12
    taken_over = ["Node a: the SR-IOV operator has not taken over the removal of rail0 yet"]
    assert [second for second, _left in told] == [0, 3, 6, 9] and told[0][1] == taken_over


@pytest.mark.parametrize(
    ("owner", "why"),
    [
        ("rail0", "Node a: the SR-IOV operator has not taken over the removal of rail0 yet"),
        (None, "Node a: port rail0 still has 8 VFs of rail0"),
    ],
)
def test_vfs_that_stay_are_named(owner: str | None, why: str) -> None:
    with pytest.raises(ClusterError) as caught:
        wait(cluster(owner, 8), FakeClock())
    assert str(caught.value) == (
        f"1 SriovNetworkNodePolicy were removed, but after 60 s nodes still have what they made: {why}. Check the log"
        " of the DaemonSet sriov-network-config-daemon on these nodes, then rerun the playbook."
        " Afterwards, run the playbook prepare with the tag rail_links, since the MTU of ports can be reset"
    )


@pytest.mark.parametrize(
    ("found", "gone"),
    [
        (cluster("another", 8), policy()),
        (cluster(None, 0), policy()),
        (cluster(None, 8), policy(externallyManaged=True)),
        (cluster(None, 8), policy("rail9")),
        (cluster("rail0", 8, pods=0), policy()),
        (FakeCluster(), policy()),
    ],
    ids=["another policy", "no VFs", "VFs of the host", "another port", "nothing undoes it", "no operator"],
)
def test_there_is_nothing_to_wait_for(found: FakeCluster, gone: dict[str, Any]) -> None:
    clock = FakeClock()
    wait(found, clock, gone)
    assert clock.time == 0


def test_what_an_operator_should_know() -> None:
    mtu = (
        "the SR-IOV operator gives ports the MTU that they had when it first started. Playbooks then configure the"
        " rails of the hosts of this run again; for other hosts, run the playbook prepare with the tag rail_links. Its"
        " daemon leaves files and labels on the nodes, which docs/inventory.md lists under Virtual functions"
    )
    assert list(released.notes(cluster(None, 0).api(), [policy()])) == [mtu]
    told = list(released.notes(FakeCluster().api(), [policy()]))
    assert told[0] == mtu
    assert told[1].startswith(
        "SriovNetworkNodePolicy: the DaemonSet sriov-network-config-daemon does not run, so nothing"
    )
    assert list(released.notes(FakeCluster().api(), [])) == []


def test_what_the_agents_need_stays_until_they_are_done() -> None:
    """Without the policy and the labels of nodes the operator ends its daemons, and VFs and cordons stay for ever."""
    found, clock = cluster("rail0", 8), FakeClock()
    ours = {"app.kubernetes.io/managed-by": "gpufabric"}
    whole = {
        "apiVersion": "mellanox.com/v1alpha1",
        "kind": "NicClusterPolicy",
        "metadata": {"name": "p", "labels": ours},
    }
    ports = policy()
    ports["metadata"]["labels"] = ours
    for item in (whole, ports):
        found.put(item, "gpufabric")
    deleted: list[str] = []

    def undone() -> None:
        deleted.extend(path.rsplit("/", 1)[-1] for method, path in found.calls if method == "DELETE")
        found.objects[STATE]["spec"].update(interfaces=[])
        found.objects[STATE]["status"]["interfaces"][0].update(numVfs=0)

    clock.at(12, undone)
    options = Options(False, True, 60, True)
    done = converge.remove_all(found.api(), [whole, ports], {"remains": None}, options=options, clock=clock.clock())
    assert [(outcome.item["kind"], outcome.action) for outcome in done] == [
        ("SriovNetworkNodePolicy", "delete"),
        ("NicClusterPolicy", "delete"),
    ]
    assert deleted == ["rail0"]


def test_what_was_applied_decides_and_not_what_the_plan_has_now() -> None:
    """VFs of the host stay, although the intent of a teardown does not mention them any more."""
    found, clock = cluster(None, 8), FakeClock()
    applied = policy(externallyManaged=True)
    applied["metadata"]["labels"] = {"app.kubernetes.io/managed-by": "gpufabric"}
    path = f"/apis/{API}/namespaces/{SPACE}/sriovnetworknodepolicies/rail0"
    found.api().apply(path, applied, False, dry_run=False)
    planned = policy(externallyManaged=False)
    options = Options(False, True, 60, True)
    done = converge.remove_all(found.api(), [planned], {"remains": None}, options=options, clock=clock.clock())
    assert [outcome.action for outcome in done] == ["delete"]
    assert clock.time == 0


def test_nodes_that_the_policy_did_not_select_are_not_awaited() -> None:
    """They can have VFs of hosts on a port of the same name."""
    found, clock = cluster(None, 8), FakeClock()
    found.put({"apiVersion": "v1", "kind": "Node", "metadata": {"name": "a", "labels": {"pool": "storage"}}})
    wait(found, clock, policy(nodeSelector={"pool": "gpu"}))
    assert clock.time == 0
    with pytest.raises(ClusterError):
        wait(found, clock, policy(nodeSelector={"pool": "storage"}))
