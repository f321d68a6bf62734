"""Apply and remove: two requests an object, what was there before us is shared, conflicts have an owner."""

from __future__ import annotations

from typing import Any

import pytest
from tests.unit.support.cluster_fake import FakeClock, FakeCluster, path_for, status

from ansible_collections.gpufabric.rdma.plugins.module_utils._common.errors import (
    ClusterError,
    ConflictError,
    InputError,
)
from ansible_collections.gpufabric.rdma.plugins.module_utils._k8s.client import kinds
from ansible_collections.gpufabric.rdma.plugins.module_utils._k8s.objects import apply, leftovers, release
from ansible_collections.gpufabric.rdma.plugins.module_utils._k8s.objects.apply import Options

OURS = {"app.kubernetes.io/managed-by": "gpufabric"}


def pool(subnet: str = "10.0.0.0/24") -> dict[str, Any]:
    return {
        "apiVersion": "nv-ipam.nvidia.com/v1alpha1",
        "kind": "IPPool",
        "metadata": {"name": "rail0", "namespace": "op", "labels": dict(OURS)},
        "spec": {"subnet": subnet},
    }


def plain(kind: str, name: str, **labels: str) -> dict[str, Any]:
    return {"apiVersion": "v1", "kind": kind, "metadata": {"name": name, "labels": labels}}


def put(cluster: FakeCluster, item: dict[str, Any], check: bool = False, force: bool = False) -> apply.Outcome:
    return apply.apply_object(cluster.api(), item, Options(check, force), clock=FakeClock().clock())


def test_create_update_and_nothing() -> None:
    cluster = FakeCluster()
    first = put(cluster, pool())
    assert (first.action, first.before, first.after) == (
        "create",
        None,
        {"metadata": {"labels": OURS}, "spec": {"subnet": "10.0.0.0/24"}},
    )
    cluster.calls.clear()
    assert put(cluster, pool()).action == "none"
    assert [method for method, _path in cluster.calls] == ["GET", "PATCH"]
    changed = put(cluster, pool("10.0.1.0/24"))
    assert changed.action == "update"
    assert changed.before["spec"] == {"subnet": "10.0.0.0/24"}
    assert changed.to_dict() == {"kind": "IPPool", "name": "rail0", "namespace": "op", "action": "update"}


def test_check_mode_changes_nothing_and_knows_what_it_would() -> None:
    cluster = FakeCluster()
    assert put(cluster, pool(), check=True).action == "create"
    assert cluster.objects == {}


def test_a_field_that_we_give_up_shows_as_removed() -> None:
    cluster = FakeCluster()
    put(cluster, {**pool(), "spec": {"subnet": "10.0.0.0/24", "gateway": "10.0.0.1"}})
    outcome = put(cluster, pool())
    assert outcome.before["spec"] == {"subnet": "10.0.0.0/24", "gateway": "10.0.0.1"}
    assert outcome.after["spec"] == {"subnet": "10.0.0.0/24"}


def test_a_conflict_names_the_owner_and_force_takes_the_field() -> None:
    cluster = FakeCluster()
    put(cluster, pool())
    path = path_for(pool())
    cluster.objects[path]["metadata"]["managedFields"].append(
        {"manager": "kubectl-edit", "operation": "Update", "fieldsV1": {"f:spec": {"f:subnet": {}}}}
    )
    with pytest.raises(ConflictError) as caught:
        put(cluster, pool("10.9.0.0/24"))
    assert str(caught.value) == (
        "IPPool op/rail0: another field manager owns fields that have to change: .spec.subnet: conflict with"
        ' "kubectl-edit". Remove these fields there, or set force: true to take them over'
    )
    assert put(cluster, pool("10.9.0.0/24"), force=True).action == "update"


@pytest.mark.parametrize(
    ("reason", "message"),
    [
        ("AlreadyExists", 'object is being deleted: namespaces "tests" already exists'),
        ("Conflict", "Operation cannot be fulfilled: Precondition failed: UID in precondition: a, UID in object: b"),
    ],
)
def test_a_409_that_is_not_about_fields_is_not_called_so(reason: str, message: str) -> None:
    cluster = FakeCluster()
    cluster.answers = [None, status(409, reason, message)]
    with pytest.raises(ConflictError) as caught:
        put(cluster, pool())
    assert str(caught.value) == (
        "IPPool op/rail0: another client created, replaced or deleted the object at the same time:"
        f" {message}. Rerun the playbook"
    )


@pytest.mark.parametrize("labels", [OURS, {}])
@pytest.mark.parametrize("kind", ["Namespace", "ConfigMap"])
def test_what_is_being_deleted_is_waited_for_and_made_anew(kind: str, labels: dict[str, str]) -> None:
    item, clock = plain(kind, "x", **OURS), FakeClock()
    old = plain(kind, "x", **labels)
    for each in (item, old) if kind == "ConfigMap" else ():
        each["metadata"]["namespace"] = "n"
    old["metadata"]["deletionTimestamp"] = "2026-01-01T00:00:00Z"
    cluster = FakeCluster(old)
    path = path_for(item)
    clock.at(9, lambda: cluster.objects.pop(path) and None)
    preview = apply.apply_object(cluster.api(), item, Options(check=True), clock=clock.clock())
    assert (preview.action, clock.time) == ("create", 0)
    made = apply.apply_object(cluster.api(), item, Options(), clock=clock.clock())
    assert (made.action, clock.time) == ("create", 9)
    assert cluster.objects[path]["metadata"]["labels"] == OURS
    assert "deletionTimestamp" not in cluster.objects[path]["metadata"]


def test_what_never_ends_is_named_with_what_holds_it() -> None:
    item = plain("Namespace", "x", **OURS)
    item["metadata"].update(deletionTimestamp="2026-01-01T00:00:00Z", finalizers=["a/b"])
    with pytest.raises(ClusterError, match="still exist 120 s after their deletion: Namespace x .finalizers a/b"):
        put(FakeCluster(item), plain("Namespace", "x", **OURS))


def test_what_was_there_before_us_is_shared_and_given_back() -> None:
    cluster = FakeCluster(plain("Namespace", "default", team="a"))
    outcome = put(cluster, plain("Namespace", "default", security="privileged", **OURS))
    assert outcome.after == {"metadata": {"labels": {"security": "privileged"}}}
    back = apply.remove_object(cluster.api(), plain("Namespace", "default", **OURS), Options())
    assert back.action == "release"
    assert cluster.objects["/api/v1/namespaces/default"]["metadata"]["labels"] == {"team": "a"}
    again = apply.remove_object(cluster.api(), plain("Namespace", "default", **OURS), Options())
    assert again.action == "none"


def test_a_node_gets_labels_and_is_never_made_nor_deleted() -> None:
    cluster = FakeCluster(plain("Node", "a"))
    assert put(cluster, plain("Node", "a", nic="true")).action == "update"
    assert put(cluster, plain("Node", "a", nic="true")).action == "none"
    assert apply.remove_object(cluster.api(), plain("Node", "a"), Options(check=True)).action == "release"
    assert apply.remove_object(cluster.api(), plain("Node", "a"), Options()).action == "release"
    assert "nic" not in cluster.objects["/api/v1/nodes/a"]["metadata"]["labels"]
    with pytest.raises(ClusterError, match="Node b does not exist. Join it to the cluster"):
        put(cluster, plain("Node", "b", nic="true"))
    with pytest.raises(InputError, match="Node a: only labels of a node can be applied, found spec"):
        put(cluster, {**plain("Node", "a"), "spec": {"unschedulable": True}})
    assert "DELETE" not in [method for method, _path in cluster.calls]


def test_a_kind_that_is_not_served() -> None:
    cluster = FakeCluster()
    cluster.unserved.add("/apis/nv-ipam.nvidia.com/v1alpha1/namespaces/op/ippools")
    assert put(cluster, pool(), check=True).action == "create"
    with pytest.raises(ClusterError) as caught:
        put(cluster, pool())
    assert "Expected kind IPPool of nv-ipam.nvidia.com/v1alpha1 to be served" in str(caught.value)
    assert apply.remove_object(cluster.api(), pool(), Options()).action == "none"


def test_a_kind_that_is_served_a_moment_later() -> None:
    cluster, clock = FakeCluster(), FakeClock()
    unserved = "/apis/nv-ipam.nvidia.com/v1alpha1/namespaces/op/ippools"
    cluster.unserved.add(unserved)
    clock.at(3, lambda: cluster.unserved.discard(unserved))
    assert apply.apply_object(cluster.api(), pool(), Options(), clock=clock.clock()).action == "create"


def test_delete_and_second_delete() -> None:
    cluster = FakeCluster()
    put(cluster, pool())
    assert apply.remove_object(cluster.api(), pool(), Options(check=True)).action == "delete"
    assert apply.remove_object(cluster.api(), pool(), Options()).action == "delete"
    assert apply.remove_object(cluster.api(), pool(), Options()).action == "none"


def test_an_object_that_does_not_go_is_named_with_what_holds_it() -> None:
    cluster = FakeCluster()
    put(cluster, pool())
    path = path_for(pool())
    cluster.kept.add(path)
    cluster.objects[path]["metadata"]["finalizers"] = ["example.com/hold"]
    apply.remove_object(cluster.api(), pool(), Options())
    told: list[tuple[float, list[str]]] = []
    options = Options(timeout=5, tell=lambda elapsed, reasons: told.append((elapsed, list(reasons))))
    with pytest.raises(ClusterError) as caught:
        apply.wait_gone(cluster.api(), [pool()], options, clock=FakeClock().clock())
    assert str(caught.value) == (
        "1 objects still exist 5 s after their deletion: IPPool op/rail0 (finalizers example.com/hold)."
        " Check what blocks their finalizers"
    )
    held = ["IPPool op/rail0 (finalizers example.com/hold) still exists"]
    assert told == [(0.0, held), (3.0, held), (5.0, held)]


@pytest.mark.parametrize(
    ("item", "message"),
    [
        ({"kind": "Node"}, "object Node ?: apiVersion, kind and metadata.name are needed"),
        (
            {"apiVersion": "batch/v1", "kind": "Job", "metadata": {"name": "j"}},
            "object Job j: Job needs metadata.namespace",
        ),
        (
            {"apiVersion": "a.b/v1", "kind": "Odd", "metadata": {"name": "j"}},
            "kind Odd of a.b/v1 is not served by the cluster and not known here",
        ),
    ],
)
def test_objects_that_cannot_be_addressed(item: dict[str, Any], message: str) -> None:
    with pytest.raises(InputError) as caught:
        kinds.path_of(FakeCluster().api(), item)
    assert str(caught.value) == message


def definition(name: str, created: str) -> dict[str, Any]:
    return {
        "apiVersion": "apiextensions.k8s.io/v1",
        "kind": "CustomResourceDefinition",
        "metadata": {"name": name, "creationTimestamp": created},
        "spec": {"versions": [{"name": "v1alpha1", "served": True}]},
    }


def test_definitions_that_came_with_the_chart_and_are_unused_go() -> None:
    others = definition("sriovnetworks.sriovnetwork.openshift.io", "2026-01-01T10:00:01Z")
    others["metadata"]["annotations"] = {"meta.helm.sh/release-name": "sriov"}
    kept = definition("nicdevices.configuration.net.nvidia.com", "2026-01-01T10:00:01Z")
    kept["metadata"]["annotations"] = {"meta.helm.sh/release-name": "net"}
    cluster = FakeCluster(
        definition("nicclusterpolicies.mellanox.com", "2026-01-01T10:00:01Z"),
        # There before our installation, and unused.
        definition("macvlannetworks.mellanox.com", "2026-01-01T10:00:01Z"),
        definition("ippools.nv-ipam.nvidia.com", "2026-01-01T10:00:01Z"),
        definition("other.example.com", "2026-01-01T10:00:01Z"),
        others,
        kept,
        pool(),
    )
    cluster.put(plain("Node", "a", **{"network.nvidia.com/operator.mofed.wait": "false", "mine": "x"}), "manager")
    wanted = leftovers.Wanted(release.GROUPS, ["macvlannetworks.mellanox.com"], "net", release.NODE_LABELS)
    done = leftovers.remove(cluster.api(), wanted, Options(), clock=FakeClock().clock())
    assert [(o.item["metadata"]["name"], o.action) for o in done] == [
        ("nicclusterpolicies.mellanox.com", "delete"),
        ("nicdevices.configuration.net.nvidia.com", "delete"),
        ("a", "release"),
    ]
    assert cluster.objects["/api/v1/nodes/a"]["metadata"]["labels"] == {"mine": "x"}


def test_labels_that_the_operator_did_not_set_stay() -> None:
    """One with a name that only begins like its labels, and one of its names that a person set with kubectl."""
    ours = {"network.nvidia.com/operator.nic-configuration.wait": "false"}
    theirs = {"network.nvidia.com/operator.team": "storage", "nvidia.com/ofed-driver-upgrade-state": "upgrade-done"}
    node = plain("Node", "a", **ours, **theirs)
    fields = {"f:metadata": {"f:labels": {"f:nvidia.com/ofed-driver-upgrade-state": {}}}}
    node["metadata"]["managedFields"] = [{"manager": "kubectl-label", "operation": "Update", "fieldsV1": fields}]
    cluster = FakeCluster(node)
    wanted = leftovers.Wanted(labels=release.NODE_LABELS)
    (done,) = leftovers.remove(cluster.api(), wanted, Options(), clock=FakeClock().clock())
    assert done.before == {"metadata": {"labels": ours}}
    assert cluster.objects["/api/v1/nodes/a"]["metadata"]["labels"] == theirs


def test_labels_that_node_feature_discovery_did_not_set_stay() -> None:
    prefix = "feature.node.kubernetes.io/"
    labels = {f"{prefix}cpu-model": "1", f"{prefix}hand-set": "x", "nvidia.com/gpu": "y", "mine": "z"}
    node = plain("Node", "a", **labels)
    node["metadata"]["annotations"] = {leftovers.NFD_LABELS: "cpu-model,nvidia.com/gpu,gone", "other": "1"}
    cluster = FakeCluster(node)
    assert leftovers.remove(cluster.api(), leftovers.Wanted(), Options(), clock=FakeClock().clock()) == []
    wanted = leftovers.Wanted(nfd=True)
    assert len(leftovers.remove(cluster.api(), wanted, Options(check=True), clock=FakeClock().clock())) == 1
    (done,) = leftovers.remove(cluster.api(), wanted, Options(), clock=FakeClock().clock())
    assert done.before == {"metadata": {"labels": {f"{prefix}cpu-model": "1", "nvidia.com/gpu": "y"}}}
    meta = cluster.objects["/api/v1/nodes/a"]["metadata"]
    assert (meta["labels"], meta["annotations"]) == ({f"{prefix}hand-set": "x", "mine": "z"}, {"other": "1"})
    assert leftovers.remove(cluster.api(), wanted, Options(), clock=FakeClock().clock()) == []


_DEVICES, _STATE = "sriovnetwork.openshift.io/device-plugin", "sriovnetwork.openshift.io/state"


@pytest.mark.parametrize(
    "space, gone, by_hand, found",
    [
        ("", [], False, {"labels": {_DEVICES: "Disabled"}, "annotations": {_STATE: "Idle"}}),
        ("op", ["op"], False, {"labels": {_DEVICES: "Disabled"}, "annotations": {_STATE: "Idle"}}),
        ("op", [], False, None),
        ("", [], True, {"annotations": {_STATE: "Idle"}}),
    ],
    ids=["no agent", "its namespace goes", "an agent runs", "a label by kubectl"],
)
def test_marks_of_agents_go_when_none_runs(space: str, gone: list[str], by_hand: bool, found: Any) -> None:
    node = plain("Node", "a", **{_DEVICES: "Disabled", "mine": "z"})
    node["metadata"]["annotations"] = {_STATE: "Idle", "other": "1"}
    fields = {"f:metadata": {"f:labels": {f"f:{_DEVICES}": {}}}}
    node["metadata"]["managedFields"] = [{"manager": "kubectl-label", "fieldsV1": fields}] if by_hand else []
    daemon = {"apiVersion": "apps/v1", "kind": "DaemonSet"}
    daemon["metadata"] = {"name": "sriov-network-config-daemon", "namespace": space}  # type: ignore[assignment]
    cluster = FakeCluster(node, *([daemon] if space else []))
    foreseen = leftovers.of_agents(cluster.api(), Options(check=True), gone=gone)
    assert cluster.objects["/api/v1/nodes/a"]["metadata"]["annotations"] == {_STATE: "Idle", "other": "1"}
    done = leftovers.of_agents(cluster.api(), Options(), gone=gone)
    assert [one.before for one in done] == [one.before for one in foreseen] == ([{"metadata": found}] if found else [])
    meta = cluster.objects["/api/v1/nodes/a"]["metadata"]
    assert meta["labels"] == ({"mine": "z"} if found and not by_hand else {_DEVICES: "Disabled", "mine": "z"})
    assert meta["annotations"] == ({"other": "1"} if found else {_STATE: "Idle", "other": "1"})


def test_an_object_of_others_is_adopted_by_consent_only() -> None:
    theirs = {**pool(), "spec": {"subnet": "10.9.0.0/24"}}
    theirs["metadata"] = {"name": "rail0", "namespace": "op"}
    cluster = FakeCluster(theirs)
    with pytest.raises(ConflictError):
        put(cluster, pool())
    clock = FakeClock().clock()
    assert apply.apply_object(cluster.api(), pool(), Options(adopt=True), clock=clock).action == "update"
    assert cluster.objects[path_for(pool())]["metadata"]["labels"] == OURS
    assert apply.apply_object(cluster.api(), pool(), Options(adopt=True), clock=clock).action == "none"
    assert apply.remove_object(cluster.api(), pool(), Options()).action == "delete"


def test_fields_without_which_an_object_is_not_valid_are_left_without_an_owner(monkeypatch: pytest.MonkeyPatch) -> None:
    """Fields that were taken over by force may have no other owner; the API server refuses to remove required ones."""
    cluster = FakeCluster()
    theirs = pool()
    del theirs["metadata"]["labels"]
    path = cluster.put(theirs, "argocd")
    put(cluster, pool("10.0.1.0/24"), force=True)
    send = cluster.send

    def refuse(method: str, path: str, *args: Any, **named: Any) -> Any:
        if method == "PATCH" and "fieldManager=gpufabric&force=false" in path:
            return status(422, "Invalid", "spec.subnet: Required value")
        return send(method, path, *args, **named)

    monkeypatch.setattr(cluster, "send", refuse)
    for check in (True, False):
        assert apply.remove_object(cluster.api(), pool(), Options(check=check)).action == "release"
    live = cluster.objects[path]
    assert live["spec"] == {"subnet": "10.0.1.0/24"}
    assert [entry["manager"] for entry in live["metadata"]["managedFields"]] == ["argocd"]
    assert apply.remove_object(cluster.api(), pool(), Options()).action == "none"
