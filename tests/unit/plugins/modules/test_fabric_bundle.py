"""fabric_bundle through its main(): what is in the archive, what must never be, and what is away. About 3 s."""

from __future__ import annotations

import importlib
import json
import os
import stat
import tarfile
from pathlib import Path
from typing import Any

import pytest
from tests.unit.support.cluster_fake import FakeCluster, down, status
from tests.unit.support.module_run import PACKAGE, run

from ansible_collections.gpufabric.rdma.plugins.module_utils._fabric.report.bundle import FILE_BYTES, Bundle
from ansible_collections.gpufabric.rdma.plugins.module_utils._k8s.bundle import collect

SPACE = "nvidia-network-operator"
OPERATOR = {
    "apiVersion": "apps/v1",
    "kind": "Deployment",
    "metadata": {"name": "op", "namespace": "other", "labels": {"app.kubernetes.io/name": "network-operator"}},
    "spec": {},
}
POLICY = {"apiVersion": "mellanox.com/v1alpha1", "kind": "NicClusterPolicy", "metadata": {"name": "nic-cluster-policy"}}
NODE = {
    "apiVersion": "v1",
    "kind": "Node",
    "metadata": {"name": "gpu-1"},
    "status": {"images": [{"names": ["x"]}], "addresses": [{"type": "InternalIP", "address": "10.1.2.3"}]},
}
SECRET = {
    "apiVersion": "v1",
    "kind": "Secret",
    "metadata": {"name": "ufm", "namespace": SPACE},
    "data": {"a": "czNjcmV0"},
}
HOST = {
    "files": {"kernel.log": "[1] up 10.1.2.3\n", "facts.json": '{"hostname": "gpu-1"}'},
    "missing": {"rdma.txt": "no"},
}
Output = pytest.CaptureFixture[str]


def pod(name: str, **more: Any) -> dict[str, Any]:
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {"name": name, "namespace": SPACE},
        "spec": {
            "containers": [
                {"name": "main", "env": [{"name": "UFM_PASSWORD", "value": "s3cret"}, {"name": "MODE", "value": "x"}]}
            ]
        },
        "status": {"phase": "Running", "containerStatuses": [{"name": "main", "ready": True, "restartCount": 0}]},
        **more,
    }


@pytest.fixture
def cluster(monkeypatch: pytest.MonkeyPatch) -> FakeCluster:
    event = {"apiVersion": "v1", "kind": "Event", "metadata": {"name": "e", "namespace": SPACE}, "message": "pulled"}
    found = FakeCluster(OPERATOR, POLICY, NODE, SECRET, event, pod("plugin-1"), pod("plugin-2"))
    monkeypatch.setattr(importlib.import_module(f"{PACKAGE}.fabric_bundle"), "connect", lambda module: found.api())
    return found


def members(result: dict[str, Any]) -> dict[str, str]:
    with tarfile.open(result["path"]) as archive:
        texts = {entry.name: archive.extractfile(entry).read().decode() for entry in archive}  # type: ignore[union-attr]
    top = Path(result["path"]).name[: -len(".tar.gz")]
    assert all(name.startswith(f"{top}/") and ".." not in name for name in texts)
    return {name[len(top) + 1 :]: text for name, text in texts.items()}


def bundled(capsys: Output, folder: Path, **params: Any) -> tuple[dict[str, Any], dict[str, str]]:
    given = {"path": str(folder), "namespaces": [SPACE], "redact": [], **params}
    result = run("fabric_bundle", capsys, **given)
    assert not result.get("failed"), result["msg"]
    return result, members(result)


def test_archive(cluster: FakeCluster, tmp_path: Path, capsys: Output) -> None:
    cluster.logs = {"plugin-1": ["line\n"], "plugin-2": ["\x1b[31mred\x1b[0m password=s3cret\n"]}
    report = tmp_path / "report"
    report.mkdir()
    (report / "report.json").write_text('{"schema": 1, "token": "s3cret"}')
    result, found = bundled(capsys, tmp_path / "out", hosts={"gpu-1": HOST}, report_dir=str(report))
    assert stat.S_IMODE(os.stat(result["path"]).st_mode) == 0o600
    assert list(found) == ["index.json", *sorted(set(found) - {"index.json"})]
    assert found["hosts/gpu-1/kernel.log"] == "[1] up 10.1.2.3\n"
    assert json.loads(found["hosts/gpu-1/facts.json"]) == {"hostname": "gpu-1"}
    place = f"cluster/namespaces/{SPACE}"
    assert found[f"{place}/logs/plugin-1/main.log"] == "line\n"
    assert found[f"{place}/logs/plugin-2/main.log"] == "\ufffd[31mred\ufffd[0m password=<removed>\n"
    assert '"MODE"' in found[f"{place}/Pod.json"] and "pulled" in found[f"{place}/events.json"]
    assert "cluster/namespaces/other/Deployment.json" in found, "the operator's own namespace is found"
    assert "images" not in json.loads(found["cluster/objects/Node.json"])[0]["status"]
    everything = "".join(found.values())
    assert "s3cret" not in everything and "czNjcmV0" not in everything
    assert not any("secrets" in path for _method, path in cluster.calls)
    assert {method for method, _path in cluster.calls} == {"GET"}
    index = json.loads(found["index.json"])
    assert [one["path"] for one in index["files"]] == sorted(set(found) - {"index.json"})
    assert {"what": "hosts/gpu-1/rdma.txt", "why": "no"} in index["missing"] == result["missing"]
    assert "hosts: 2 files" in result["summary"] and "missing: hosts/gpu-1/rdma.txt: no" in result["summary"]
    assert "hosts" not in result["invocation"]["module_args"]


def test_pseudonyms_are_the_same_everywhere(cluster: FakeCluster, tmp_path: Path, capsys: Output) -> None:
    _result, found = bundled(capsys, tmp_path, hosts={"gpu-1": HOST}, redact=["addresses", "hosts"])
    everything = "".join([*found, *found.values()])
    assert "10.1.2.3" not in everything and "gpu-1" not in everything
    assert "up address-1" in found["hosts/host-1/kernel.log"]
    assert '"address": "address-1"' in found["cluster/objects/Node.json"]


def test_hostile_hosts_and_pods(cluster: FakeCluster, tmp_path: Path, capsys: Output) -> None:
    """Paths stay inside, sizes are bounded, and what is no text is no traceback."""
    cluster.put(pod("..", spec={"containers": [7, {"name": "../../x"}]}))
    cluster.logs = {"plugin-1": ["x" * 100 + "\n" + "y" * (FILE_BYTES + 50)], "plugin-2": ["z" * (3 * FILE_BYTES)]}
    hosts = {
        "../evil": {
            "files": {"../../etc/passwd": "x", "facts.json": "[" * 100_000, "records/facts.json": "{", "n": 7},
            "cut": 3,
            "missing": 4,
        },
        "b": {"files": 9},
        "c": 5,
        "d": {"unreachable": True, "msg": "no route"},
        "e": {"failed": True, "msg": "no\x1bpython", "module_stderr": "sh: not found\n"},
    }
    _result, found = bundled(capsys, tmp_path / "out", hosts=hosts)
    assert found["hosts/_evil/_/_/etc/passwd"] == "x" and found["hosts/_evil/records/facts.json"] == "{"
    log = found[f"cluster/namespaces/{SPACE}/logs/plugin-1/main.log"]
    assert len(log) == FILE_BYTES and log.endswith("y\n")
    index = json.loads(found["index.json"])
    why = {one["what"]: one["why"] for one in index["missing"]}
    assert why["hosts/_evil/facts.json"] == "the host returned facts that are not JSON"
    assert why["hosts/_evil/n"] == "the host returned something else than text"
    assert why["hosts/b"] == why["hosts/c"] == "it returned nothing"
    assert (why["hosts/d"], why["hosts/e"]) == ("unreachable: no route", "no\ufffdpython: sh: not found")
    assert "more than was requested" in why[f"cluster/namespaces/{SPACE}/logs/plugin-2/main.log"]
    assert [one["path"] for one in index["files"] if one["cut"]] == [
        f"cluster/namespaces/{SPACE}/logs/plugin-1/main.log"
    ]


def test_parts_that_are_away(
    cluster: FakeCluster, tmp_path: Path, capsys: Output, monkeypatch: pytest.MonkeyPatch
) -> None:
    del cluster.objects["/apis/apps/v1/namespaces/other/deployments/op"]
    send = cluster.send

    def refuse(method: str, path: str, *args: Any, **named: Any) -> Any:
        if "/ippools" in path:
            return status(403, "Forbidden", "ippools is forbidden")
        return send(method, path, *args, **named)

    monkeypatch.setattr(cluster, "send", refuse)
    result, _found = bundled(capsys, tmp_path, report_dir=str(tmp_path / "none"))
    why = {one["what"]: one["why"] for one in result["missing"]}
    assert why["network operator"] == "no Deployment of it exists in the cluster"
    assert "ippools is forbidden" in why["cluster/objects/IPPool.json"]
    assert why["report"].endswith("has no report of a measurement")
    assert "not found" in why[f"cluster/namespaces/{SPACE}/logs/plugin-1/main.log"]
    # Nothing answers any more: one request, and the hosts alone.
    monkeypatch.setattr(cluster, "send", send)
    cluster.answers = [down()] * 9
    cluster.calls.clear()
    result, found = bundled(capsys, tmp_path / "other", hosts={"gpu-1": HOST})
    assert len(cluster.calls) == 4 and not any(path.startswith("cluster") for path in found)
    assert [one["what"] for one in result["missing"]][-2:] == ["cluster/version.json", "cluster"]


def test_nothing_at_all_fails(cluster: FakeCluster, tmp_path: Path, capsys: Output) -> None:
    cluster.answers = [down()] * 9
    result = run("fabric_bundle", capsys, path=str(tmp_path), hosts={"a": {"unreachable": True, "msg": "away"}})
    assert result["failed"] and not list(tmp_path.iterdir())
    assert result["msg"].startswith("fabric_bundle: nothing could be collected: hosts/a: unreachable: away; cluster/")


def test_folder_and_check_mode(cluster: FakeCluster, tmp_path: Path, capsys: Output) -> None:
    (tmp_path / "file").touch()
    result = run("fabric_bundle", capsys, path=str(tmp_path / "file"))
    assert result["failed"] and result["msg"].endswith(
        "cannot be written: File exists. Set rdma_bundle_dir to another folder"
    )
    assert not cluster.calls
    result = run("fabric_bundle", capsys, check=True, path=str(tmp_path / "new"))
    assert result["changed"] and result["path"] == "" and result["files"] > 3
    assert not (tmp_path / "new").exists()


def test_openshift(cluster: FakeCluster, tmp_path: Path, capsys: Output, monkeypatch: pytest.MonkeyPatch) -> None:
    """oc is a program of this machine that writes what the real one does: a tree of text files and archives."""
    cluster.objects["/apis/config.openshift.io/v1/clusterversions/version"] = {"metadata": {"name": "version"}}
    monkeypatch.setenv("PATH", f"{tmp_path}:/usr/bin:/bin")
    result, _found = bundled(capsys, tmp_path / "a")
    (why,) = [one["why"] for one in result["missing"] if one["what"] == "must-gather"]
    assert why == "oc is not installed on the controller. Install it, or run oc adm must-gather yourself"
    oc = tmp_path / "oc"
    oc.write_text(
        '#!/bin/sh\necho "$@" >>"${0%/*}/asked"\n'
        'for one; do case $one in --dest-dir=*) cd "${one#*=}" || exit;; esac; done\n'
        "mkdir img; echo 'password: s3cret' >img/a.yaml; ln -s /etc/passwd img/link.yaml; : >img/b.gz\n"
    )
    oc.chmod(0o755)
    _result, found = bundled(capsys, tmp_path / "b", kubeconfig="/etc/kube", context="c")
    assert [name for name in found if name.startswith("must-gather")] == ["must-gather/img/a.yaml"]
    assert found["must-gather/img/a.yaml"] == "password: <removed>\n"
    asked = (tmp_path / "asked").read_text()
    assert asked.startswith("adm must-gather --dest-dir=") and "--kubeconfig=/etc/kube --context=c" in asked
    oc.write_text("#!/bin/sh\necho it broke >&2\nexit 3\n")
    for more, reason in (
        ({}, "oc adm must-gather failed with status 3: it broke"),
        ({"must_gather": False}, "must_gather is false"),
        ({"api_key": "s3cret"}, "credentials are set by options. Use a kubeconfig, or run oc adm must-gather yourself"),
    ):
        result, _found = bundled(capsys, tmp_path / f"c{len(reason)}", **more)
        assert {"what": "must-gather", "why": reason} in result["missing"]


def test_an_unfinished_run_is_added(cluster: FakeCluster, tmp_path: Path, capsys: Output) -> None:
    older, newest = (tmp_path / "report/runs" / f"2026010{day}T000000Z-abcdef" for day in (1, 2))
    for folder in (older, newest):
        (folder / "evidence").mkdir(parents=True)
        (folder / "evidence" / "gpu-1.log").write_text(folder.name)
    _result, found = bundled(capsys, tmp_path / "out", report_dir=str(tmp_path / "report"))
    assert [name for name in found if name.startswith("report/")] == [f"report/runs/{newest.name}/evidence/gpu-1.log"]


def test_sizes_and_numbers_are_bounded(cluster: FakeCluster, tmp_path: Path, capsys: Output, monkeypatch: Any) -> None:
    bundle = Bundle(most=100)
    bundle.add("a", "x" * 60)
    bundle.add("b", "x" * 60)
    assert len(bundle) == 1 and bundle.missing[0]["what"] == "b"
    monkeypatch.setattr(collect, "MOST_LOGS", 1)
    bad = {"phase": "Running", "containerStatuses": [{"name": "main", "ready": False, "restartCount": 2}]}
    cluster.put(pod("a-calm"))
    cluster.put(pod("z-broken", status=bad))
    monkeypatch.setattr(collect, "MOST_OBJECTS", 4)
    cluster.put(pod("zz-left-out"))
    cluster.logs = {"z-broken": ["why\n"]}
    result, found = bundled(capsys, tmp_path)
    assert [name for name in found if "/logs/" in name] == [f"cluster/namespaces/{SPACE}/logs/z-broken/main.log"]
    why = {one["what"]: one["why"] for one in result["missing"]}
    assert why[f"cluster/namespaces/{SPACE}/Pod.json"] == "only the first 4 objects are collected"
    assert why["cluster/logs"] == "4 logs of pods without problems: 1 are collected"
