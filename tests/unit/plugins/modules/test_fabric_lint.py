"""fabric_lint through its main(): files, a cluster, errors and warnings, and what it must not read."""

from __future__ import annotations

import importlib
import json
import os
from pathlib import Path
from typing import Any

import pytest
from tests.unit.support.cluster_fake import FakeCluster, status
from tests.unit.support.module_run import PACKAGE, run, warned

from ansible_collections.gpufabric.rdma.plugins.module_utils._k8s.checks import lint_objects

NICS = "mellanox.com/v1alpha1"
POLICY = {"apiVersion": NICS, "kind": "NicClusterPolicy", "metadata": {"name": "mlnx"}, "spec": {}}
NETWORK = {
    "apiVersion": NICS,
    "kind": "MacvlanNetwork",
    "metadata": {"name": "rail0"},
    "spec": {"ipam": '{"type":"nv-ipam","poolName":"rail0"}'},
}
WARNS = {
    **POLICY,
    "metadata": {"name": "nic-cluster-policy"},
    "spec": {"ofedDriver": {"version": "v1", "upgradePolicy": {"autoUpgrade": True}}},
}
Output = pytest.CaptureFixture[str]


def test_files_are_examined(tmp_path: Path, capsys: Output) -> None:
    (tmp_path / "deep").mkdir()
    (tmp_path / "deep" / "list.json").write_text(json.dumps({"apiVersion": "v1", "kind": "List", "items": [POLICY]}))
    (tmp_path / "many.yml").write_text(f"{json.dumps(WARNS)}\n---\nnfd: {{enabled: true}}\n---\n")
    (tmp_path / ".git").mkdir()
    (tmp_path / ".git" / "broken.yaml").write_text("{")
    found = run("fabric_lint", capsys, path=str(tmp_path))
    assert found["failed"] and (found["objects"], found["requests"]) == (2, 0)
    assert found["msg"] == (
        "fabric_lint: objects examined: 2, errors: 1\n- NicClusterPolicy mlnx: The operator ignores the policy. It"
        " reads only the policy nic-cluster-policy. Rename it (policy-name)"
    )
    assert [(one["severity"], one["rule"]) for one in found["findings"]] == [
        ("error", "policy-name"),
        ("warning", "driver-drain"),
    ]
    allowed = run("fabric_lint", capsys, path=str(tmp_path), ignore=["policy-name"])
    assert not allowed["changed"] and "(driver-drain)" in warned(allowed)[0]


@pytest.mark.parametrize(
    ("files", "more", "message"),
    [
        ({"a.yaml": "{"}, {}, "a.yaml is not valid YAML: "),
        (
            {"a.yaml": "!!python/object/apply:os.getcwd []"},
            {},
            "a.yaml is not valid YAML: could not determine a constructor",
        ),
        (
            {"values.yaml": "a: 1", "notes.txt": "x"},
            {},
            "has no Kubernetes object in 1 YAML and JSON files. Correct the path",
        ),
        ({"a.yaml": b"\xff\xfe\xff"}, {}, "a.yaml is not UTF-8 text"),
        ({}, {"path": "/none"}, "path: cannot read /none: No such file or directory"),
        ({}, {"path": "here"}, "path: expected an absolute path, found here"),
        ({}, {"ignore": ["policy-nam"]}, 'ignore: there is no rule "policy-nam"; did you mean "policy-name"?'),
        ({}, {"facts_dir": "/none"}, "/none: No such file or directory"),
    ],
)
def test_what_cannot_be_examined_is_an_error(
    tmp_path: Path, capsys: Output, files: dict[str, Any], more: dict[str, Any], message: str
) -> None:
    for name, text in files.items():
        (tmp_path / name).write_bytes(text if isinstance(text, bytes) else text.encode())
    found = run("fabric_lint", capsys, **{"path": str(tmp_path), **more})
    assert found["failed"] and message in found["msg"], found["msg"]


def test_what_is_no_regular_file_is_not_opened(tmp_path: Path, capsys: Output) -> None:
    os.mkfifo(tmp_path / "pipe.yaml")
    (tmp_path / "policy.yaml").write_text(json.dumps(POLICY))
    assert run("fabric_lint", capsys, path=str(tmp_path))["objects"] == 1
    assert "expected a file or a folder" in run("fabric_lint", capsys, path=str(tmp_path / "pipe.yaml"))["msg"]


def test_a_cluster_is_examined_with_one_list_per_kind(monkeypatch: pytest.MonkeyPatch, capsys: Output) -> None:
    cluster = FakeCluster(POLICY, NETWORK)
    monkeypatch.setattr(importlib.import_module(f"{PACKAGE}.fabric_lint"), "connect", lambda module: cluster.api())
    found = run("fabric_lint", capsys)
    assert [one["rule"] for one in found["findings"]] == ["policy-name", "pool-absent"]
    assert found["requests"] == len(cluster.calls) == len(lint_objects.KINDS) + 1
    assert {method for method, _path in cluster.calls} == {"GET"}
    assert not any("secrets" in path for _method, path in cluster.calls)


def test_a_kind_that_cannot_be_listed_is_not_taken_for_absent(monkeypatch: pytest.MonkeyPatch, capsys: Output) -> None:
    cluster = FakeCluster(NETWORK)
    monkeypatch.setattr(importlib.import_module(f"{PACKAGE}.fabric_lint"), "connect", lambda module: cluster.api())
    send = cluster.send

    def refuse(method: str, path: str, *args: Any, **named: Any) -> Any:
        denied = status(403, "Forbidden", "ippools is forbidden")
        return denied if "/ippools" in path else send(method, path, *args, **named)

    monkeypatch.setattr(cluster, "send", refuse)
    found = run("fabric_lint", capsys)
    assert found["failed"] and "ippools is forbidden" in found["msg"] and "findings" not in found
