"""The modules against the cluster through their main(): results, check mode, messages."""

from __future__ import annotations

import dataclasses
import importlib
import json
from pathlib import Path
from typing import Any

import pytest
from tests.unit.support.cluster_fake import FakeClock, FakeCluster, Response, down, ok, status
from tests.unit.support.module_run import PACKAGE, run
from tests.unit.support.plan_factory import fleet

from ansible_collections.gpufabric.rdma.plugins.module_utils._fabric.operator.profiles import registry
from ansible_collections.gpufabric.rdma.plugins.module_utils._fabric.plan.plan import plan
from ansible_collections.gpufabric.rdma.plugins.module_utils._k8s.checks import survey
from ansible_collections.gpufabric.rdma.plugins.modules import fabric_wait

MODULES = ("cluster_info", "fabric_objects", "fabric_testers", "fabric_wait", "node_drain")
POOL = {
    "apiVersion": "nv-ipam.nvidia.com/v1alpha1",
    "kind": "IPPool",
    "metadata": {"name": "rail0", "namespace": "op", "labels": {"app.kubernetes.io/managed-by": "gpufabric"}},
    "spec": {"subnet": "10.0.0.0/24"},
}
NODE = {
    "apiVersion": "v1",
    "kind": "Node",
    "metadata": {"name": "a", "labels": {}},
    "status": {"nodeInfo": {"machineID": "1"}, "conditions": [{"type": "Ready", "status": "True"}]},
}


@pytest.fixture
def cluster(monkeypatch: pytest.MonkeyPatch) -> FakeCluster:
    found = FakeCluster(json.loads(json.dumps(NODE)))
    for name in MODULES:
        monkeypatch.setattr(importlib.import_module(f"{PACKAGE}.{name}"), "connect", lambda module: found.api())
    monkeypatch.setenv("KUBECONFIG", "/none")
    return found


def test_apply_is_idempotent_and_shows_what_changes(cluster: FakeCluster, capsys: pytest.CaptureFixture[str]) -> None:
    given: dict[str, Any] = {"objects": [POOL], "nodes": ["a"], "node_labels": {"nic": True}}
    preview = run("fabric_objects", capsys, check=True, **given)
    result = run("fabric_objects", capsys, **given)
    assert preview["changed"] and result["changed"]
    assert [item["action"] for item in preview["objects"]] == ["update", "create"]
    assert result["diff"]["before"] == {"Node a": {"metadata": {"labels": {}}}, "IPPool op/rail0": None}
    assert result["diff"]["after"]["Node a"] == {"metadata": {"labels": {"nic": "true"}}}
    again = run("fabric_objects", capsys, **given)
    # The node is read and applied; the pool is read once, with all pools of its namespace.
    assert (again["changed"], again["requests"]) == (False, 4)
    assert again["diff"] == {"before": {}, "after": {}}
    gone = run("fabric_objects", capsys, state="absent", **given)
    assert [(item["kind"], item["action"]) for item in gone["objects"]] == [("IPPool", "delete"), ("Node", "release")]
    assert run("fabric_objects", capsys, state="absent", **given)["changed"] is False


def test_objects_that_do_not_differ_cost_two_requests_each(
    cluster: FakeCluster, capsys: pytest.CaptureFixture[str]
) -> None:
    """40 objects of rails, two per rail; what looks for objects to remove is among the requests."""
    made = plan({"supernet": "10.64.0.0/10", "operator": {"namespace": "op"}}, fleet(2, rails=8))
    ours = [
        {**item, "metadata": {**item["metadata"], "name": name}}
        for item in made["objects"]["networks"]
        for name in (f"{item['metadata']['name']}-{part}" for part in "abc")
    ]
    given: dict[str, Any] = {"objects": [*ours[:20], *ours[-20:]]}
    assert len({item["kind"] for item in given["objects"]}) == 2
    assert run("fabric_objects", capsys, **given)["changed"]
    again = run("fabric_objects", capsys, **given)
    assert (again["changed"], again["requests"]) == (False, 61)
    pruned = run("fabric_objects", capsys, prune={"step": "networks", "namespace": "op"}, **given)
    assert not pruned["changed"] and pruned["requests"] <= 2 * 40


def test_a_pool_that_was_read_before_others_are_removed_is_read_again(
    cluster: FakeCluster, capsys: pytest.CaptureFixture[str]
) -> None:
    run("fabric_objects", capsys, objects=[POOL])
    old = {**POOL, "metadata": {**POOL["metadata"], "name": "rail9"}}
    cluster.put(json.loads(json.dumps(old)))
    cluster.calls.clear()
    prune = {"step": "networks", "namespace": "op"}
    assert run("fabric_objects", capsys, objects=[POOL], prune=prune)["changed"]
    path = next(path for path in cluster.objects if path.endswith("ippools/rail0"))
    asked = [" ".join(call[:2]) for call in cluster.calls]
    assert asked.count(f"GET {path}") == 1


def test_labels_of_classes_are_on_their_own_nodes(cluster: FakeCluster, capsys: pytest.CaptureFixture[str]) -> None:
    for name in ("a", "b"):
        cluster.put({"apiVersion": "v1", "kind": "Node", "metadata": {"name": name}})
    classes = [
        {"hosts": ["h1"], "labels": {"class": "x"}, "selector": {"class": "x"}},
        {"hosts": ["h2", "absent"], "labels": {"class": "y"}, "selector": {"class": "y"}},
    ]
    given = {"nodes": ["a", "b"], "node_labels": {"site": "s"}, "classes": classes}
    given["nodes_by_host"] = {"h1": "a", "h2": "b"}
    assert run("fabric_objects", capsys, **given)["changed"] is True
    labels = [cluster.objects[f"/api/v1/nodes/{name}"]["metadata"]["labels"] for name in ("a", "b")]
    assert labels == [{"site": "s", "class": "x"}, {"site": "s", "class": "y"}]
    assert run("fabric_objects", capsys, **given)["changed"] is False
    assert run("fabric_objects", capsys, state="absent", **given)["changed"] is True
    assert [cluster.objects[f"/api/v1/nodes/{name}"]["metadata"].get("labels") or {} for name in ("a", "b")] == [{}, {}]


def test_all_objects_are_looked_at_before_the_first_change(
    cluster: FakeCluster, capsys: pytest.CaptureFixture[str]
) -> None:
    result = run("fabric_objects", capsys, objects=[POOL, {"apiVersion": "v1", "kind": "Node"}])
    assert result["msg"] == "fabric_objects: object Node ?: apiVersion, kind and metadata.name are needed"
    assert cluster.calls == []


def test_info_fails_with_everything_at_once(cluster: FakeCluster, capsys: pytest.CaptureFixture[str]) -> None:
    cluster.denied = ("patch nodes",)
    cluster.objects["/version"] = {"gitVersion": "v1.30.0", "major": "1", "minor": "30"}
    given: dict[str, Any] = {"hosts": {"h1": {"machine_id": "1"}, "h2": {"machine_id": "2"}}, "release": "26.7.1"}
    result = run("cluster_info", capsys, **given)
    assert result["nodes_by_host"] == {"h1": "a"}
    assert [problem.split(":")[0] for problem in result["problems"]] == [
        "permissions are missing",
        "host h2",
        "the API server is v1.30.0; release 26.7.1 of the operator needs 1.32 or newer, upgrade the cluster or choose"
        " an older release",
    ]
    failed = run("cluster_info", capsys, require=True, **given)
    assert failed["failed"] and failed["msg"].startswith("cluster_info: this stops the run:\n- permissions are missing")


def test_info_warns_of_a_gpu_operator_that_waits_for_other_drivers(
    cluster: FakeCluster, capsys: pytest.CaptureFixture[str]
) -> None:
    spec = {"driver": {"rdma": {"enabled": True}}}
    cluster.put({"apiVersion": "nvidia.com/v1", "kind": "ClusterPolicy", "metadata": {"name": "gpu"}, "spec": spec})
    assert "warnings" not in run("cluster_info", capsys)
    found = run("cluster_info", capsys, nic_drivers="doca_ofed")
    (policy,) = found["gpu_operator"]
    assert (policy["name"], policy["rdma"], policy["use_host_mofed"]) == ("gpu", True, False)
    assert len(found["warnings"]) == 1 and policy["problem"] in str(found["warnings"][0])
    assert policy["problem"].endswith("Set it to true")
    assert found["problems"] == []


def test_info_checks_the_permissions_of_a_network_model(
    cluster: FakeCluster, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    other = dataclasses.replace(registry.get("macvlan"), name="other", kinds=())
    monkeypatch.setitem(registry.PROFILES, "other", other)
    cluster.denied = ("patch macvlannetworks",)
    assert run("cluster_info", capsys)["denied"] == ["patch macvlannetworks.mellanox.com"]
    assert run("cluster_info", capsys, profile="other")["denied"] == []
    found = run("cluster_info", capsys, profile="mcvlan")
    known = ", ".join(registry.names())
    assert found["msg"] == f'cluster_info: profile: expected one of {known}, found "mcvlan" (text)'


def test_a_cluster_that_is_down(cluster: FakeCluster, capsys: pytest.CaptureFixture[str]) -> None:
    cluster.answers = [down()] * 4
    result = run("cluster_info", capsys)
    assert result["msg"].startswith("cluster_info: the API server https://cluster.test:6443 does not answer")


def test_wait_says_in_check_mode_what_for(cluster: FakeCluster, capsys: pytest.CaptureFixture[str]) -> None:
    result = run("fabric_wait", capsys, check=True, objects=[POOL], nodes=["a"], release="26.7.1")
    assert result["reasons"] == ["would wait for IPPool op/rail0"]
    assert cluster.calls == []


def test_wait_gives_reasons(cluster: FakeCluster, capsys: pytest.CaptureFixture[str]) -> None:
    result = run("fabric_wait", capsys, objects=[POOL], nodes=["a"], release="26.7.1", timeout=0)
    assert result["msg"] == "fabric_wait: not ready in time, after 0 s: IPPool rail0 is absent"
    assert result["reasons"] == ["IPPool rail0 is absent"]


def test_wait_notes_what_for(cluster: FakeCluster, capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    given = {"objects": [POOL], "nodes": ["a"], "release": "26.7.1", "progress_file": str(tmp_path / "line")}
    run("fabric_wait", capsys, timeout=0, **given)
    assert (tmp_path / "line").read_text() == ("fabric_wait: 0 s of at most 0 s, not ready yet: IPPool rail0 is absent")


def test_wait_knows_the_nodes_without_a_port() -> None:
    lost = {"rail1": {"reason": "it has no port 0000:28:00.0", "resource": "rdma_rail1"}}
    hosts = {"a": {"missing": lost}, "b": {}, "c": {"missing": lost}}
    assert fabric_wait.lacking(hosts, {"a": "node-a", "b": "node-b"}) == {"rdma_rail1": ["node-a"]}


def test_testers_in_check_mode_touch_nothing(
    cluster: FakeCluster, capsys: pytest.CaptureFixture[str], tmp_path: Any
) -> None:
    script = tmp_path / "tester.sh"
    script.touch()
    plan = {"rails": [], "operator": {}, "hosts": {"h": {"machine_id": "1"}}, "endpoints": {"pod": ["h"]}}
    given = {"plan": plan, "image": "i", "script": str(script), "evidence": str(tmp_path / "ev")}
    result = run("fabric_testers", capsys, check=True, state="started", **given)
    assert (result["changed"], result["endpoints"], result["problems"]) == (False, {"h": "a"}, {})
    assert [(method, path.partition("?")[0]) for method, path in cluster.calls] == [
        ("GET", "/version"),
        ("GET", "/api/v1/nodes"),
    ]
    assert not (tmp_path / "ev").exists()
    assert result["cluster"] == {"name": "", "server": "https://cluster.test:6443", "version": ""}


@pytest.mark.parametrize(
    ("answer", "cluster_found"),
    [
        (ok({"gitVersion": "v1.35.4"}), {"name": "lab", "server": "https://cluster.test:6443", "version": "v1.35.4"}),
        (status(403, "Forbidden", "no"), {"name": "lab", "server": "https://cluster.test:6443", "version": ""}),
        (ok({"gitVersion": {"a": 1}}), {"name": "lab", "server": "https://cluster.test:6443", "version": ""}),
        (None, {}),
    ],
)
def test_testers_name_the_cluster_also_when_they_cannot_start(
    answer: Any,
    cluster_found: dict[str, str],
    cluster: FakeCluster,
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
    tmp_path: Any,
) -> None:
    monkeypatch.setattr(cluster, "server", "https://user:secret@cluster.test:6443/?token=secret")
    monkeypatch.setattr(importlib.import_module(f"{PACKAGE}.fabric_testers"), "cluster_name", lambda params: "lab")
    cluster.answers = [answer] if answer else [down()] * 4
    given = {"plan": {}, "image": "i", "script": "/none", "evidence": str(tmp_path)}
    result = run("fabric_testers", capsys, state="started", **given)
    assert result["failed"] and result["cluster"] == cluster_found


def test_testers_refuse_an_account_that_exec_does_not_have(
    cluster: FakeCluster, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch, tmp_path: Any
) -> None:
    given: dict[str, Any] = {"plan": {}, "image": "i", "script": "s", "evidence": str(tmp_path)}
    refused = run("fabric_testers", capsys, state="started", impersonate_groups=["lab"], **given)
    assert refused["msg"].startswith("fabric_testers: impersonation (K8S_AUTH_IMPERSONATE_USER,")
    assert "they would run with the permissions of the real account. Use a kubeconfig" in refused["msg"]
    monkeypatch.setenv("K8S_AUTH_IMPERSONATE_USER", "eve")
    assert run("fabric_testers", capsys, state="started", **given)["msg"] == refused["msg"]
    assert cluster.calls == []
    assert "failed" not in run("fabric_testers", capsys, state="absent", check=True)


def test_testers_need_their_script(cluster: FakeCluster, capsys: pytest.CaptureFixture[str], tmp_path: Any) -> None:
    result = run(
        "fabric_testers", capsys, state="started", plan={}, image="i", script="/none/tester.sh", evidence=str(tmp_path)
    )
    assert result["msg"] == (
        "fabric_testers: script /none/tester.sh cannot be read: No such file or directory. Set script to the "
        "tester script"
    )


POD = {
    "apiVersion": "v1",
    "kind": "Pod",
    "spec": {"nodeName": "a"},
    "metadata": {"name": "p", "namespace": "shop", "ownerReferences": [{"kind": "Job", "controller": True}]},
}
DRAIN: dict[str, Any] = {
    "inventory_host": "gpu-1",
    "identity": {"machine_id": "1", "hostname": "a", "kubelet": ["kubelet.service is active"]},
    "reason": "reboot: iommu=pt",
}
NO_KUBELET = {"machine_id": "2", "hostname": "gpu-1", "kubelet": []}
OURS = {"gpufabric.rdma/cordoned": "true", "gpufabric.rdma/reboot": "reboot: iommu=pt"}


@pytest.fixture
def no_waiting(monkeypatch: pytest.MonkeyPatch) -> None:
    clock = FakeClock()
    monkeypatch.setattr(importlib.import_module(f"{PACKAGE}.node_drain"), "Clock", clock.clock)


@pytest.mark.usefixtures("no_waiting")
def test_a_node_is_emptied_and_given_back(cluster: FakeCluster, capsys: pytest.CaptureFixture[str]) -> None:
    path = cluster.put(POD)
    preview = run("node_drain", capsys, check=True, **DRAIN)
    assert path in cluster.objects
    result = run("node_drain", capsys, **DRAIN)
    assert path not in cluster.objects
    assert [preview[key] for key in ("changed", "diff", "evicted", "node")] == [
        result[key] for key in ("changed", "diff", "evicted", "node")
    ]
    assert (result["changed"], result["node"], result["evicted"]) == (True, "a", ["shop/p"])
    assert result["diff"] == {
        "before": {"unschedulable": False, "annotations": {}, "pods": ["shop/p"]},
        "after": {"unschedulable": True, "annotations": OURS, "pods": []},
    }
    assert run("node_drain", capsys, **DRAIN)["changed"] is False
    early = run("node_drain", capsys, state="released", boot_id="new", timeout=0, **DRAIN)
    assert early["msg"].startswith("node_drain: Node a is not Ready 0 s after the host booted: its kubelet has not")
    back = run("node_drain", capsys, state="released", **DRAIN)
    assert back["diff"]["after"] == {"unschedulable": False, "annotations": {}}
    assert run("node_drain", capsys, state="released", **DRAIN)["changed"] is False


@pytest.mark.usefixtures("no_waiting")
def test_a_refused_drain_leaves_the_node_alone(cluster: FakeCluster, capsys: pytest.CaptureFixture[str]) -> None:
    cluster.put({**POD, "metadata": {"name": "bare", "namespace": "shop"}})
    result = run("node_drain", capsys, **DRAIN)
    assert result["msg"] == (
        "node_drain: Node a cannot be drained: pod shop/bare has no controller that would recreate it. Move it, or "
        "set evict_unmanaged: true to delete it"
    )
    assert [method for method, _path in cluster.calls if method == "PATCH"] == []
    assert run("node_drain", capsys, evict_unmanaged=True, **DRAIN)["evicted"] == ["shop/bare"]


@pytest.mark.usefixtures("no_waiting")
def test_a_node_that_is_not_empty_in_time_stays_cordoned(
    cluster: FakeCluster, capsys: pytest.CaptureFixture[str]
) -> None:
    cluster.put(POD)
    cluster.evictions["p"] = [status(429, "TooManyRequests", "not now")] * 9
    result = run("node_drain", capsys, timeout=5, **DRAIN)
    assert result["msg"] == "node_drain: Node a is not empty after 5 s: pod shop/p: not now"
    kept = run("node_drain", capsys, state="kept", **{**DRAIN, "reason": "not empty"})
    assert kept["diff"]["after"]["annotations"] == {**OURS, "gpufabric.rdma/reboot": "not empty"}
    assert kept["diff"]["after"]["unschedulable"] is True


def test_a_node_without_our_mark_gets_no_reason(cluster: FakeCluster, capsys: pytest.CaptureFixture[str]) -> None:
    assert run("node_drain", capsys, state="kept", **DRAIN)["changed"] is False


def test_a_host_that_is_certainly_no_node_is_left_alone(
    cluster: FakeCluster, capsys: pytest.CaptureFixture[str]
) -> None:
    result = run("node_drain", capsys, **{**DRAIN, "identity": NO_KUBELET})
    why = "no Node matches the host, and the host has no kubelet"
    assert (result["changed"], result["node"], result["why_none"]) == (False, None, why)


PAGE = Response(200, {"content-type": "text/html"}, "<html>Sign in</html>")


@pytest.mark.parametrize(
    ("answer", "identity", "message"),
    [
        (PAGE, NO_KUBELET, 'answered GET /api/v1/nodes with "<html>Sign in</html>" instead of a JSON object'),
        (Response(404, {}, "not found"), NO_KUBELET, "refused GET /api/v1/nodes with 404: not found"),
        (ok({"kind": "PodList", "items": []}), NO_KUBELET, "an object of kind PodList instead of a list"),
        (ok({"kind": "NodeList", "items": []}), NO_KUBELET, "the cluster has no Nodes at all"),
        (None, {**NO_KUBELET, "kubelet": ["/var/lib/kubelet is not empty"]}, "(/var/lib/kubelet is not empty)"),
        (None, {**NO_KUBELET, "kubelet": None}, "whether it runs a kubelet is unknown"),
        (None, {**NO_KUBELET, "machine_id": "1"}, "Node a has its machine id 1, but nothing else matches"),
    ],
)
def test_what_is_in_doubt_is_not_drained_and_not_rebooted(
    cluster: FakeCluster, capsys: pytest.CaptureFixture[str], answer: Any, identity: Any, message: str
) -> None:
    cluster.answers = [answer]
    result = run("node_drain", capsys, **{**DRAIN, "identity": identity})
    assert result.get("failed") and message in result["msg"]
    assert {method for method, _path in cluster.calls} == {"GET"}


@pytest.mark.usefixtures("no_waiting")
def test_of_two_control_planes_that_are_cordoned_together_neither_goes_down(
    cluster: FakeCluster, capsys: pytest.CaptureFixture[str]
) -> None:
    plane = {"node-role.kubernetes.io/control-plane": ""}
    cluster.objects["/api/v1/nodes/a"]["metadata"]["labels"] = plane
    ready = {"conditions": [{"type": "Ready", "status": "True"}]}
    path = cluster.put({**NODE, "metadata": {"name": "b", "labels": plane}, "status": ready})
    send = cluster.send

    def racing(method: str, *rest: Any, **more: Any) -> Response:
        if method == "PATCH":
            cluster.objects[path]["metadata"]["annotations"] = {"gpufabric.rdma/reboot": "reboot: x"}
        return send(method, *rest, **more)

    cluster.send = racing  # type: ignore[method-assign]
    result = run("node_drain", capsys, **DRAIN)
    assert "Node a belongs to the control plane, and so does Node b: is being rebooted" in result["msg"]
    left = cluster.objects["/api/v1/nodes/a"]
    assert not left["metadata"].get("annotations") and not left.get("spec", {}).get("unschedulable")


def test_a_controller_without_a_cluster_drains_nothing_that_may_be_a_node(
    cluster: FakeCluster, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch, tmp_path: Any
) -> None:
    for name in ("KUBECONFIG", "K8S_AUTH_KUBECONFIG", "K8S_AUTH_HOST", "KUBERNETES_SERVICE_HOST"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("HOME", str(tmp_path))
    result = run("node_drain", capsys, **{**DRAIN, "identity": NO_KUBELET})
    why = "no cluster is configured on the controller, and the host has no kubelet"
    assert (result["node"], result["why_none"]) == (None, why)
    for doubt, found in (
        (DRAIN, "but it runs or ran a kubelet (kubelet.service is active)"),
        ({**DRAIN, "identity": {"machine_id": "2"}}, "but whether it runs a kubelet is unknown"),
        ({**DRAIN, "identity": NO_KUBELET, "node": "a"}, "but its Node is named in the inventory (a)"),
    ):
        refused = run("node_drain", capsys, **doubt)
        assert f"host gpu-1: no cluster is configured on the controller, {found}. Set rdma_kubeconfig" in refused["msg"]
    assert cluster.calls == []


SHOP = {
    "apiVersion": "v1",
    "kind": "Pod",
    "spec": {"nodeName": "a"},
    "status": {"phase": "Running"},
    "metadata": {
        "name": "p",
        "namespace": "shop",
        "annotations": {
            "k8s.v1.cni.cncf.io/networks": "rail0",
            "k8s.v1.cni.cncf.io/network-status": json.dumps([{"name": "default/rail0", "ips": ["10.0.0.2"]}]),
        },
    },
}
BLOCK = {"nodeName": "a", "startIP": "10.0.0.1", "endIP": "10.0.0.2"}
USED = {**POOL, "spec": {"subnet": "10.0.0.0/24", "perNodeBlockSize": 2}, "status": {"allocations": [BLOCK]}}
IN_USE = (
    "IPPool op/rail0: changing spec.perNodeBlockSize from 2 to 8 assigns other addresses to a, but these pods keep"
    " addresses of the pool: shop/p (10.0.0.2). The same addresses would be assigned to other pods. Remove these"
    " workloads and rerun the playbook, restore the former values, or consent with rdma_disrupt_users: true"
)


def changed_pool(**spec: Any) -> dict[str, Any]:
    return {**POOL, "spec": {**USED["spec"], **spec}}


@pytest.mark.parametrize("check", [False, True])
def test_a_pool_that_pods_use_is_not_changed(
    cluster: FakeCluster, capsys: pytest.CaptureFixture[str], check: bool
) -> None:
    cluster.put(USED)
    pod = cluster.put(SHOP)
    other = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "c", "namespace": "op"}}
    given: dict[str, Any] = {"objects": [other, changed_pool(perNodeBlockSize=8)], "force": True}
    refused = run("fabric_objects", capsys, check=check, **given)
    assert refused["failed"] and refused["msg"] == f"fabric_objects: {IN_USE}"
    # Nothing else was applied either.
    assert [method for method, _path in cluster.calls if method == "PATCH"] == []
    early = run("cluster_info", capsys, check=check, steps=["networks"], objects=given["objects"])
    assert early["problems"] == [IN_USE]
    assert run("cluster_info", capsys, steps=["policy"], objects=given["objects"])["problems"] == []
    del cluster.objects[pod]
    assert run("cluster_info", capsys, steps=["networks"], objects=given["objects"])["problems"] == []
    assert run("fabric_objects", capsys, check=check, **given)["changed"] is True
    if not check:
        assert run("fabric_objects", capsys, **given)["changed"] is False


def test_a_pool_is_changed_with_consent_or_when_all_blocks_stay(
    cluster: FakeCluster, capsys: pytest.CaptureFixture[str]
) -> None:
    cluster.put(USED)
    cluster.put(SHOP)
    same = run("fabric_objects", capsys, objects=[changed_pool(subnet="10.0.0.0/16")], force=True)
    assert same["changed"] is True and [path for _method, path in cluster.calls if "pods" in path] == []
    given = {"objects": [changed_pool(perNodeBlockSize=8)], "disrupt_users": True}
    assert run("cluster_info", capsys, steps=["networks"], **given)["problems"] == []
    assert run("fabric_objects", capsys, force=True, **given)["changed"] is True


def test_a_new_pool_does_not_assign_what_pods_hold(
    cluster: FakeCluster, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """As after a rail was renamed: its pool is another one, of the same addresses, and nv-ipam knows no pod of it."""
    cluster.put(
        {
            **SHOP,
            "metadata": {
                **SHOP["metadata"],
                "name": "starting",
                "annotations": {"k8s.v1.cni.cncf.io/networks": "elsewhere"},
            },
        }
    )
    new = changed_pool()
    given: dict[str, Any] = {"steps": ["networks"], "objects": [new]}
    assert run("cluster_info", capsys, **given)["problems"] == []
    cluster.put(SHOP)
    refused = run("fabric_objects", capsys, objects=[new])
    assert refused["msg"] == (
        "fabric_objects: IPPool op/rail0: it does not exist, and creating it assigns addresses of 10.0.0.0/24, but"
        " these pods hold some of them: shop/p (10.0.0.2). The same addresses would be assigned to other pods. Remove"
        " these workloads and rerun the playbook, or consent with rdma_disrupt_users: true"
    )
    assert run("cluster_info", capsys, disrupt_users=True, **given)["problems"] == []
    send = cluster.send

    def refusing(method: str, path: str, *rest: Any, **more: Any) -> Response:
        return status(403, "Forbidden", "no pods") if "/pods" in path else send(method, path, *rest, **more)

    # Nothing shows that pods hold addresses of a pool that does not exist.
    monkeypatch.setattr(cluster, "send", refusing)
    assert run("cluster_info", capsys, **given)["problems"] == []


def test_a_pool_leaves_a_node_that_pods_are_on(cluster: FakeCluster, capsys: pytest.CaptureFixture[str]) -> None:
    cluster.put(USED)
    cluster.put(SHOP)
    rule = {"key": "rack", "operator": "In", "values": ["1"]}
    pool = changed_pool(nodeSelector={"nodeSelectorTerms": [{"matchExpressions": [rule]}]})
    given: dict[str, Any] = {"steps": ["networks"], "objects": [pool], "hosts": {"h": {"machine_id": "1"}}}
    (problem,) = run("cluster_info", capsys, **given)["problems"]
    assert "changing spec.nodeSelector from nothing to {" in problem and "to a, but these pods" in problem
    # The run itself gives the node this label.
    assert run("cluster_info", capsys, node_labels={"rack": "1"}, **given)["problems"] == []


def test_pods_that_cannot_be_listed_may_hold_addresses(
    cluster: FakeCluster, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    cluster.put(USED)
    send = cluster.send

    def refusing(method: str, path: str, *rest: Any, **more: Any) -> Response:
        return status(403, "Forbidden", "no pods") if "/pods" in path else send(method, path, *rest, **more)

    monkeypatch.setattr(cluster, "send", refusing)
    result = run("fabric_objects", capsys, objects=[changed_pool(perNodeBlockSize=8)])
    assert "assigns other addresses to a, and whether pods hold addresses cannot be read (" in result["msg"]
    assert "Use an account with permission to list pods" in result["msg"]


def test_pull_secrets_must_be_in_a_namespace_that_exists(
    cluster: FakeCluster, capsys: pytest.CaptureFixture[str]
) -> None:
    given: dict[str, Any] = {
        "namespace": "op",
        "pull_secrets": ["mirror", {"name": "login"}, {}],
        "test_namespace": "tests",
        "test_pull_secret": "mine",
    }
    assert run("cluster_info", capsys, **given)["problems"] == []
    for name in ("op", "tests"):
        cluster.put({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": name}})
    cluster.put({"apiVersion": "v1", "kind": "Secret", "metadata": {"name": "mirror", "namespace": "op"}})
    of_op = (
        "pull secret login, named by pull_secrets, does not exist in namespace op. Create it there, or"
        " correct pull_secrets"
    )
    of_tests = of_op.replace("login", "mine").replace("space op", "space tests")
    of_tests = of_tests.replace("pull_secrets", "test_pull_secret")
    assert run("cluster_info", capsys, **given)["problems"] == [of_op, of_tests]
    assert run("cluster_info", capsys, steps=["validate"], **given)["problems"] == [of_tests]
    cluster.objects["/api/v1/namespaces/op"]["metadata"]["deletionTimestamp"] = "2026-01-01T00:00:00Z"
    assert run("cluster_info", capsys, **given)["problems"] == [of_tests]


def test_the_namespace_of_the_testers_is_judged_first(cluster: FakeCluster, capsys: pytest.CaptureFixture[str]) -> None:
    """Before hosts are prepared, and only where the run measures in pods."""
    level = {"pod-security.kubernetes.io/enforce": "restricted"}
    space = {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "tests", "labels": level}}
    cluster.put(space)
    given: dict[str, Any] = {"test_namespace": "tests"}
    assert run("cluster_info", capsys, steps=["policy"], **given)["problems"] == []
    (problem,) = run("cluster_info", capsys, steps=["validate"], **given)["problems"]
    assert problem.startswith("namespace tests was not created for the testers, and its label ")
    own = {"app.kubernetes.io/managed-by": "gpufabric", "app.kubernetes.io/component": "tester"}
    assert run("cluster_info", capsys, steps=["policy"], test_cpus=-1)["problems"] == []
    assert run("cluster_info", capsys, steps=["validate"], test_cpus=-1)["problems"] == [
        "cpus: expected 0 or a number of whole CPUs, found -1"
    ]
    for labels in ({}, {**level, **own}, {"pod-security.kubernetes.io/enforce": "privileged"}):
        cluster.put({**space, "metadata": {"name": "tests", "labels": labels}})
        assert run("cluster_info", capsys, steps=["validate"], **given)["problems"] == []


@pytest.mark.parametrize(("minor", "old"), [("33", True), ("34", False), ("35+", False), ("", False)])
def test_claims_need_a_cluster_and_a_run_that_suit_them(
    cluster: FakeCluster, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch, minor: str, old: bool
) -> None:
    """Kubernetes has them enabled since 1.34, and testers do not make any: they would wait until the time-out."""
    monkeypatch.setattr(survey, "version", lambda api: ("v", (1, int(minor.rstrip("+"))) if minor else None))
    given: dict[str, Any] = {"rails": [{"name": "rail0", "claim": "rail0"}]}
    said = run("cluster_info", capsys, steps=["policy"], **given)["problems"]
    assert [text.startswith("Kubernetes 1.33 is too old for pods to claim VFs") for text in said] == [True] * old
    (told,) = run("cluster_info", capsys, steps=["validate"], **given)["problems"]
    assert told.startswith("testers make no claims")
    for steps in (["policy"], ["validate"]):
        assert run("cluster_info", capsys, steps=steps, rails=[{"name": "rail0"}])["problems"] == []


def test_the_secret_of_ufm_has_its_keys(cluster: FakeCluster, capsys: pytest.CaptureFixture[str]) -> None:
    given: dict[str, Any] = {"namespace": "op", "ufm_secret": "ufm"}
    assert run("cluster_info", capsys, **given)["problems"] == []
    cluster.put({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "op"}})
    what = "Secret ufm of UFM, named by rdma_fabric.sriov.ib_kubernetes.ufm_secret,"
    assert run("cluster_info", capsys, **given)["problems"] == [
        f"{what} does not exist in namespace op. Create it there, or correct ufm_secret"
    ]
    assert run("cluster_info", capsys, steps=["networks"], **given)["problems"] == []
    secret = {"apiVersion": "v1", "kind": "Secret", "metadata": {"name": "ufm", "namespace": "op"}}
    cluster.put({**secret, "data": {"UFM_USERNAME": "YWRtaW4=", "UFM_HOST": "c2VjcmV0"}})
    result = run("cluster_info", capsys, **given)
    assert result["problems"] == [f"{what} in namespace op lacks UFM_PASSWORD, UFM_ADDRESS. Add these keys"]
    assert "YWRtaW4" not in str(result) and "c2VjcmV0" not in str(result)
    cluster.put({**secret, "data": dict.fromkeys(("UFM_USERNAME", "UFM_PASSWORD", "UFM_ADDRESS"), "eA==")})
    assert run("cluster_info", capsys, **given)["problems"] == []


def test_secrets_that_cannot_be_read_are_no_problem(
    cluster: FakeCluster, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    cluster.put({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "tests"}})
    send = cluster.send

    def refusing(method: str, path: str, *rest: Any, **more: Any) -> Response:
        return status(403, "Forbidden", "no secrets") if "/secrets" in path else send(method, path, *rest, **more)

    monkeypatch.setattr(cluster, "send", refusing)
    given: dict[str, Any] = {"test_namespace": "tests", "test_pull_secret": "mine", "namespace": "tests"}
    given |= {"ufm_secret": "ufm", "steps": ["policy", "validate"]}
    assert run("cluster_info", capsys, **given)["problems"] == []
