"""The support bundle of a real API server with hollow nodes and hosts that are fixture trees."""

from __future__ import annotations

import json
import tarfile
from typing import Any

from tests.tools.fleet import Fleet, eventually

SPACE = "nvidia-network-operator"


def spaces(cluster: Fleet) -> set[str]:
    """The names of all namespaces."""
    return {one["metadata"]["name"] for one in cluster.api.get("/api/v1/namespaces")["items"]}


def test_support_bundle(cluster: Fleet) -> None:
    """About 30 s: objects and logs of a pod with a secret in it, hosts; then without the cluster."""
    cluster.api.post("/api/v1/namespaces", {"metadata": {"name": SPACE}})
    try:
        cluster.api.post(f"/api/v1/namespaces/{SPACE}/pods", pod(cluster.hosts[0]))
        path = f"/api/v1/namespaces/{SPACE}/pods/plugin"
        eventually(lambda: cluster.api.get(path)["status"].get("phase") == "Running", 60)
        folder = cluster.folder / "bundle"
        run = cluster.playbook("support_bundle", rdma_bundle_dir=str(folder)).must()
        found = members(folder)
    finally:
        cluster.api.delete(f"/api/v1/namespaces/{SPACE}")
        # Other tests install into it.
        eventually(lambda: SPACE not in spaces(cluster), 120)
    index = json.loads(found["index.json"])
    assert f"cluster: {sum(name.startswith('cluster/') for name in found)} files" in run.output
    nodes = json.loads(found["cluster/objects/Node.json"])
    assert [node["metadata"]["name"] for node in nodes] == list(cluster.hosts)
    (listed,) = json.loads(found[f"cluster/namespaces/{SPACE}/Pod.json"])
    assert listed["spec"]["containers"][0]["env"][0] == {"name": "UFM_PASSWORD", "value": "<removed>"}
    for host in cluster.hosts:
        assert json.loads(found[f"hosts/{host}/facts.json"])["hostname"] == host
    why = {one["what"]: one["why"] for one in index["missing"]}
    assert why["network operator"] == "no Deployment of it exists in the cluster"
    assert "s3cret" not in "".join(found.values())
    # Without the cluster.
    folder = cluster.folder / "bundle-of-hosts"
    run = cluster.playbook("support_bundle", rdma_bundle_dir=str(folder), rdma_kubeconfig="/none").must()
    assert "missing: cluster: kubeconfig /none: it cannot be read" in run.output
    assert not any(name.startswith("cluster/") for name in members(folder))


def pod(node: str) -> dict[str, Any]:
    image = "registry.example.com/plugin:1"
    env = [{"name": "UFM_PASSWORD", "value": "s3cret"}]
    spec = {"nodeName": node, "containers": [{"name": "main", "image": image, "env": env}]}
    return {"metadata": {"name": "plugin"}, "spec": spec}


def members(folder: Any) -> dict[str, str]:
    (path,) = folder.iterdir()
    with tarfile.open(path) as archive:
        files = {entry.name.partition("/")[2]: archive.extractfile(entry) for entry in archive}
        return {name: stream.read().decode() for name, stream in files.items() if stream}
