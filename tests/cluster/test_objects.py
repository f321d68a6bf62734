"""Objects of earlier runs and of other owners on a real API server; the linter and the plan on it."""

from __future__ import annotations

import json
import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import yaml
from tests.lab.api import APPLY_PATCH, Api, ApiError
from tests.tools import environment, gallery, hollow, loopback, models
from tests.tools.fleet import Fleet, eventually
from tests.unit.support.module_run import run
from tests.unit.support.plan_factory import fleet

from ansible_collections.gpufabric.rdma.plugins.module_utils._fabric.plan.plan import plan
from ansible_collections.gpufabric.rdma.plugins.module_utils._k8s.objects import finalizers

CRDS = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions"
POOLS, NADS = "nv-ipam.nvidia.com/v1alpha1", "k8s.cni.cncf.io/v1"
LABEL = "app.kubernetes.io/managed-by"


@pytest.fixture(scope="module")
def line(cluster: Fleet) -> Iterator[str]:
    """The newest release line, whose kinds the cluster serves."""
    found = models.NEWEST
    definitions = [yaml.load(path.read_text(), yaml.CSafeLoader) for path in models.definitions(found).glob("*.yaml")]
    paths = [f"{CRDS}/{one['metadata']['name']}" for one in definitions]
    for one in definitions:
        cluster.api.post(CRDS, one)
    eventually(lambda: all(established(cluster.api, path) for path in paths), 60)
    yield found
    for path in paths:
        cluster.api.delete(path)
    eventually(lambda: not any(map(lambda path: exists(cluster.api, path), paths)), 60)


def exists(api: Api, path: str) -> bool:
    try:
        return bool(api.get(path))
    except ApiError:
        return False


def established(api: Api, path: str) -> bool:
    conditions = (api.get(path).get("status") or {}).get("conditions") or []
    return any(one["type"] == "Established" and one["status"] == "True" for one in conditions)


def test_what_the_plan_no_longer_has_is_removed(
    cluster: Fleet, line: str, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """About 3 s: two rails of macvlan, then one of raw, then the end, as the API server sees them."""
    monkeypatch.setenv("KUBECONFIG", f"{cluster.folder}/cluster/{hollow.ADMIN}.kubeconfig")

    def objects(rails: int, profile: str, **more: Any) -> dict[str, Any]:
        fabric = {"supernet": "192.168.0.0/16", "rail_count": rails, "profile": profile}
        made = plan({**fabric, "operator": {"namespace": "default"}}, fleet(2, rails=rails))["objects"]["networks"]
        prune = {"step": "networks", "namespace": "default"}
        return run("fabric_objects", capsys, objects=made, prune=prune, **more)

    def left() -> set[tuple[str, str]]:
        kinds = ("ippools", "network-attachment-definitions")
        spaced = [f"/apis/{group}/namespaces/default/{plural}" for group, plural in zip((POOLS, NADS), kinds)]
        paths = {"mellanox.com/v1alpha1": ["/apis/mellanox.com/v1alpha1/macvlannetworks"], "": spaced}
        return {
            (path.rpartition("/")[2], item["metadata"]["name"])
            for path in sum(paths.values(), [])
            for item in cluster.api.get(path)["items"]
        }

    both = {("macvlannetworks", "rail0"), ("macvlannetworks", "rail1"), ("ippools", "rail0"), ("ippools", "rail1")}
    assert objects(2, "macvlan")["changed"]
    assert left() == both
    assert objects(1, "raw", check=True)["changed"]
    assert left() == both
    assert objects(1, "raw")["changed"]
    assert left() == {("network-attachment-definitions", "rail0"), ("ippools", "rail0")}
    assert not objects(1, "raw")["changed"]
    assert objects(2, "macvlan", state="absent")["changed"]
    assert left() == set()


def test_networks_go_after_the_sriov_operator(
    cluster: Fleet, line: str, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """About 2 s: a teardown where nothing ends the finalizer of that operator, which is not there any more."""
    monkeypatch.setenv("KUBECONFIG", f"{cluster.folder}/cluster/{hollow.ADMIN}.kubeconfig")
    space = "sriov"
    if not exists(cluster.api, f"/api/v1/namespaces/{space}"):
        cluster.api.post("/api/v1/namespaces", {"metadata": {"name": space}})
    made = models.objects_of(gallery.ENTRIES["sriov"], line, "default")["networks"]
    networks = [item for item in made if item["kind"] == "SriovNetwork"]
    for item in networks:
        item["metadata"]["namespace"] = space
    assert not run("fabric_objects", capsys, objects=networks).get("failed")
    for item in networks:
        path = f"{models.collection(item)}/{item['metadata']['name']}"
        cluster.api.patch(path, {"metadata": {"finalizers": [finalizers.FINALIZER]}})
        notes = {"k8s.v1.cni.cncf.io/resourceName": f"nvidia.com/{item['spec']['resourceName']}"}
        meta = {"name": item["metadata"]["name"], "namespace": "default", "annotations": notes}
        own = {"apiVersion": NADS, "kind": "NetworkAttachmentDefinition", "metadata": meta, "spec": {}}
        cluster.api.post(models.collection(own), own)
    found = run("fabric_objects", capsys, objects=networks, state="absent", timeout=60)
    assert [one["action"] for one in found["objects"]] == ["delete"] * len(networks), found
    assert cluster.api.get(f"/apis/{NADS}/namespaces/default/network-attachment-definitions")["items"] == []
    assert not run("fabric_objects", capsys, objects=networks, state="absent")["changed"]


def test_the_linter_reads_the_cluster(cluster: Fleet, line: str) -> None:
    """About 5 s."""
    api = "mellanox.com/v1alpha1"
    policy = {"apiVersion": api, "kind": "NicClusterPolicy", "metadata": {"name": "mlnx"}, "spec": {}}
    network = {
        "apiVersion": api,
        "kind": "MacvlanNetwork",
        "metadata": {"name": "rail9"},
        "spec": {"master": "rail9", "ipam": '{"type":"nv-ipam","poolName":"none"}'},
    }
    for item in (policy, network):
        cluster.api.post(models.collection(item), item)
    try:
        run = cluster.playbook("lint")
    finally:
        for item in (policy, network):
            cluster.api.delete(f"{models.collection(item)}/{item['metadata']['name']}")
    assert run.rc != 0
    assert "objects examined: 5, errors: 2" in run.output
    assert "- NicClusterPolicy mlnx: The operator ignores the policy." in run.output
    assert "- MacvlanNetwork rail9: Pods of the network do not start. spec.ipam: the IPPool none does not" in run.output
    assert "objects examined: 3, errors: 0, warnings: 0" in cluster.playbook("lint").must().output


def test_subnets_of_rails_are_compared_with_the_network_of_services(
    cluster: Fleet, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """The services of this cluster are in 10.96.0.0/16. About 1 s."""
    monkeypatch.setenv("KUBECONFIG", f"{cluster.folder}/cluster/{hollow.ADMIN}.kubeconfig")
    rails = [{"name": "rail0", "subnet": "192.168.0.0/24"}, {"name": "rail1", "subnet": "10.96.7.0/24"}]
    found = [text for text in run("cluster_info", capsys, rails=rails)["problems"] if " overlaps " in text]
    assert len(found) == 1
    assert found[0].startswith("the subnet 10.96.7.0/24 of rail1 overlaps 10.96.0.0/16, ServiceCIDR kubernetes. ")


def test_objects_of_another_owner(
    cluster: Fleet, line: str, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """About 5 s: a conflict names the owner and is foreseen; consent takes the fields alone, or the whole object."""
    monkeypatch.setenv("KUBECONFIG", f"{cluster.folder}/cluster/{hollow.ADMIN}.kubeconfig")
    made = models.objects_of(next(iter(gallery.ENTRIES.values())), line, "default")
    (pool, *others) = made["networks"]
    path = f"{models.collection(pool)}/{pool['metadata']['name']}"
    theirs = {**pool, "metadata": {"name": pool["metadata"]["name"], "namespace": "default"}}
    theirs["spec"] = {**pool["spec"], "perNodeBlockSize": 7}

    def objects(**more: Any) -> dict[str, Any]:
        return run("fabric_objects", capsys, objects=[pool], **more)

    def live() -> dict[str, Any]:
        return cluster.api.get(path)

    def applied_by_argocd() -> None:
        query = {"fieldManager": "argocd", "force": "true"}
        cluster.api.request("PATCH", path, theirs, kind=APPLY_PATCH, query=query)

    applied_by_argocd()
    before = live()
    shown = run("fabric_changes", capsys, policy=[], networks=[pool], namespace="default", network_namespace="default")
    failed = objects()
    assert 'conflict with "argocd"' in failed["msg"] and ".spec.perNodeBlockSize" in failed["msg"]
    assert f"fabric_objects: {shown['blocked'][0]}" == failed["msg"]
    assert live() == before
    # The fields alone: the object stays that of its owner.
    assert objects(force=True, check=True)["changed"] and live() == before
    assert objects(force=True)["changed"] and not objects(force=True)["changed"]
    assert live()["spec"]["perNodeBlockSize"] == pool["spec"]["perNodeBlockSize"]
    assert LABEL not in live()["metadata"].get("labels", {})
    assert [one["action"] for one in objects(state="absent")["objects"]] == ["release"]
    # The pool is not valid without a field that only we own now: the value stays, without an owner.
    assert live()["metadata"]["uid"] == before["metadata"]["uid"]
    assert live()["spec"]["perNodeBlockSize"] == pool["spec"]["perNodeBlockSize"]
    assert {entry["manager"] for entry in live()["metadata"]["managedFields"]} == {"argocd"}
    assert not objects(state="absent")["changed"]
    # The whole object.
    applied_by_argocd()
    assert objects(adopt=True)["changed"] and not objects()["changed"]
    assert live()["metadata"]["labels"][LABEL] == "gpufabric"
    # Drift: what somebody else edits afterwards is shown and set again.
    cluster.api.patch(path, {"spec": {"perNodeBlockSize": 9}})
    drift = objects(check=True, force=True)["diff"]
    (name,) = drift["before"]
    assert drift["before"][name]["spec"]["perNodeBlockSize"] == 9 != drift["after"][name]["spec"]["perNodeBlockSize"]
    assert "force: true" in objects()["msg"], "the editor owns the field now"
    assert objects(force=True)["changed"]
    assert [one["action"] for one in objects(state="absent")["objects"]] == ["delete"]
    assert not exists(cluster.api, path)


def test_the_plan_is_compared_with_the_cluster(cluster: Fleet, line: str) -> None:
    """About 10 s. The run is that of the playbook plan alone, which a copy of it is not."""
    scope = {"group": "rdma_hosts", "recorded": False, "only_plan": True}
    output = cluster.playbook("plan", __rdma_scope=scope).must().output
    assert "objects of the cluster: 5 to add, 0 to change, 0 to remove, 0 unchanged" in output
    assert "1. add    NicClusterPolicy nic-cluster-policy" in output
    assert "objects of the cluster" not in cluster.playbook("plan").must().output


def test_nodes_of_the_cluster_are_an_inventory(cluster: Fleet, tmp_path: Path) -> None:
    """About 2 s: ansible-core finds the plugin in the collection, reads the Nodes and makes groups of their labels."""
    source = tmp_path / "prod.rdma_nodes.yml"
    groups = [{"key": "rdma_node.labels['kubernetes.io/os']", "prefix": "os"}]
    source.write_text(yaml.dump({"plugin": "gpufabric.rdma.nodes", "keyed_groups": groups}))
    access = {"K8S_AUTH_KUBECONFIG": f"{cluster.folder}/cluster/{hollow.ADMIN}.kubeconfig"}
    command = ["ansible-inventory", "-i", str(source), "--list"]
    settings = {**environment.environ(), **loopback.environment(cluster.folder), **access}
    answer = subprocess.run(command, env=settings, cwd=environment.REPO, capture_output=True, text=True, check=False)
    assert answer.returncode == 0, answer.stderr
    listed = json.loads(answer.stdout)
    names = [node["metadata"]["name"] for node in cluster.api.get("/api/v1/nodes")["items"]]
    assert sorted(listed["rdma_hosts"]["hosts"]) == sorted(listed["os_linux"]["hosts"]) == sorted(names)
    for name in names:
        found = listed["_meta"]["hostvars"][name]
        reported = {
            one["type"]: one["address"] for one in cluster.api.get(f"/api/v1/nodes/{name}")["status"]["addresses"]
        }
        # ansible-inventory marks texts that no template may come from.
        assert found["ansible_host"] == {"__ansible_unsafe": reported["InternalIP"]}
        assert found["rdma_node"]["ready"]
