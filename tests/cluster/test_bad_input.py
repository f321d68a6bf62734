"""Wrong input: one clear message before anything changes, never a traceback. The hosts are fixture trees.

That each wrong value has its message is a matter of unit tests; here playbooks end with one, for each place that it can
come from.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterator, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from tests.lab.helm import helm
from tests.scenario import TRACEBACK, Run
from tests.tools.fleet import FABRIC, Fleet

KINDS = (
    "/api/v1/namespaces",
    "/apis/apiextensions.k8s.io/v1/customresourcedefinitions",
    "/apis/apps/v1/daemonsets",
    "/apis/apps/v1/deployments",
    "/apis/batch/v1/jobs",
    "/apis/rbac.authorization.k8s.io/v1/clusterroles",
)


@pytest.fixture(scope="module")
def unchanged(cluster: Fleet) -> Iterator[None]:
    """Hosts and cluster are the same after all tests."""
    before = state(cluster)
    yield
    assert state(cluster) == before


def state(cluster: Fleet) -> dict[str, Any]:
    """Digests of the hosts' files, names of objects, labels and annotations of Nodes."""
    found: dict[str, Any] = {}
    for name in cluster.hosts:
        tree = cluster.folder / "hosts" / name
        # Ansible's own files, and what the guard of fixture trees notes.
        own = {tree / "tmp", tree / "guarded"}
        files = [path for path in tree.rglob("*") if path.is_file() and not own & {path, *path.parents}]
        found[name] = {str(path.relative_to(tree)): hashlib.sha256(path.read_bytes()).hexdigest() for path in files}
    for path in KINDS:
        found[path] = sorted(one["metadata"]["name"] for one in cluster.api.get(path)["items"])
    nodes = cluster.api.get("/api/v1/nodes")["items"]
    found["nodes"] = [(one["metadata"]["labels"], one["metadata"].get("annotations")) for one in nodes]
    return found


def with_variables(cluster: Fleet, folder: Path, own: Mapping[str, Mapping[str, Any]]) -> Fleet:
    """The same hosts with variables on some of them."""
    inventory = json.loads(cluster.inventory.read_text())
    hosts = inventory["all"]["children"]["rdma_hosts"]["hosts"]
    for name, values in own.items():
        hosts[name].update(values)
    path = folder / "inventory.yml"
    path.write_text(json.dumps(inventory))
    return replace(cluster, inventory=path)


def refused(run: Run, *texts: str) -> None:
    """The run failed with every text in its messages, and nothing changed."""
    assert run.rc != 0
    assert not TRACEBACK.search(run.output), run.output[-4000:]
    flat = " ".join(run.output.split())
    assert [text for text in texts if text not in flat] == [], run.output[-4000:]
    assert run.changed == []


@pytest.mark.usefixtures("unchanged")
def test_intent(cluster: Fleet) -> None:
    """About 3 s: unknown keys and a wrong type, all at once."""
    fabric = {**FABRIC, "suppernet": "172.30.0.0/16", "tests": {"duratoin": 5}, "mtu": "big"}
    keys = ("rdma_fabric.suppernet", "supernet", "rdma_fabric.tests.duratoin", "duration", "rdma_fabric.mtu", "big")
    refused(cluster.playbook("plan", rdma_fabric=fabric), *keys)


@pytest.mark.usefixtures("unchanged")
def test_variables_of_roles_are_judged_before_the_first_one(cluster: Fleet, tmp_path: Path) -> None:
    """About 3 s."""
    (second, third) = cluster.hosts[1:]
    wrong = with_variables(cluster, tmp_path, {second: {"sriov_vfs": "many"}, third: {"sriov_vf_count": 4}})
    run = wrong.playbook("site", rail_links_source_routing="alwas")
    refused(
        run,
        "variables, 2 problem(s)",
        "(on all 3 hosts)",
        "'sriov_vfs' is of type str",
        f"(on {second})",
        f'sriov_vf_count is not a variable of this collection; did you mean "sriov_vfs"? (on {third})',
    )


@pytest.mark.usefixtures("unchanged")
def test_api_server_that_is_down(cluster: Fleet, tmp_path: Path) -> None:
    """About 4 s."""
    config = json.loads((cluster.folder / "cluster" / "validator.kubeconfig").read_text())
    config["clusters"][0]["cluster"]["server"] = "https://127.0.0.1:1"
    down = tmp_path / "kubeconfig"
    down.write_text(json.dumps(config))
    refused(cluster.playbook("deploy", rdma_kubeconfig=str(down)), "https://127.0.0.1:1")


@pytest.mark.usefixtures("unchanged")
def test_missing_permissions_all_at_once(cluster: Fleet, monkeypatch: pytest.MonkeyPatch) -> None:
    """About 4 s."""
    monkeypatch.setenv("K8S_AUTH_IMPERSONATE_USER", "nobody-at-all")
    refused(cluster.playbook("deploy"), "nicclusterpolicies", "namespaces", "nodes")


@pytest.mark.usefixtures("unchanged")
def test_chart_with_another_checksum(cluster: Fleet, tmp_path: Path) -> None:
    """About 5 s."""
    archive = tmp_path / "chart.tgz"
    archive.write_bytes(b"another chart")
    own = {"ref": str(archive), "checksum": "0" * 64}
    variables = {f"network_operator_chart_{key}": value for key, value in own.items()}
    refused(cluster.playbook("deploy", network_operator_helm_binary=str(helm()), **variables), "0" * 64)
