"""Manifests of plans without hosts, and the facts that such plans are made of."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
import yaml
from tests.unit.support.module_run import run, warned
from tests.unit.support.plan_factory import fleet

FABRIC = {"supernet": "192.168.0.0/16"}
Output = pytest.CaptureFixture[str]


def test_a_preset_becomes_files_once(tmp_path: Path, capsys: Output) -> None:
    args: dict[str, Any] = {"path": str(tmp_path / "out"), "preset": "dell_xe9680_h200", "fabric": FABRIC}
    predicted = run("fabric_manifests", capsys, check=True, **args)
    assert predicted["changed"] and not (tmp_path / "out").exists()
    found = run("fabric_manifests", capsys, **args)
    assert found["changed"] and found["table"][0] == "gpu-[1-2]: 2 identical hosts"
    for name in found["files"]:
        if name.endswith(".yaml"):
            assert all(isinstance(item, dict) for item in yaml.safe_load_all((tmp_path / "out" / name).read_text()))
    lines = (tmp_path / "out" / "images.txt").read_text().splitlines()
    assert lines == [*found["images"], "# node-feature-discovery: not known here. List it with helm template"]
    (operator,) = [name for name in found["images"] if "/network-operator:" in name]
    assert operator.startswith("nvcr.io/nvidia/cloud-native/network-operator:v26.7.1@sha256:")
    assert not run("fabric_manifests", capsys, **args)["changed"]


def test_recorded_facts_become_the_plan_of_the_run(tmp_path: Path, capsys: Output) -> None:
    """Through both modules: what was recorded gives the addresses that the run itself would give."""
    hosts = fleet(3)
    names = list(hosts)[::-1]
    recorded = {
        "path": str(tmp_path / "facts"),
        "facts": {name: hosts[name]["facts"] for name in names},
        "settings": {names[0]: {"number": 9}},
        "group": names,
        "groups": {"rdma_hosts": names},
    }
    assert run("facts_folder", capsys, **recorded)["files"] == [f"{name}.json" for name in names]
    assert not run("facts_folder", capsys, **recorded)["changed"]
    args = {"facts": recorded["facts"], "settings": recorded["settings"], "group": names, "fabric": FABRIC}
    live = run("fabric_plan", capsys, **args)["plan"]
    first = run("fabric_manifests", capsys, facts_dir=recorded["path"], fabric=FABRIC, path=str(tmp_path / "out"))
    assert first["table"] == live["table"]
    second = run("fabric_manifests", capsys, plan=live, path=str(tmp_path / "out"))
    assert not second["changed"]


def test_warnings_of_a_calculated_plan_are_shown(capsys: Output) -> None:
    found = run("fabric_manifests", capsys, preset="dell_xe9680_h200", fabric={"addresses": "keep"})
    assert "rdma_fabric.supernet is not given, so no networks for pods are planned" in warned(found)


@pytest.mark.parametrize(
    ("args", "message"),
    [
        ({"fabric": FABRIC}, "one of the following is required: plan, facts_dir, cluster_file, preset"),
        ({"preset": "dell_xe9680_h200"}, "missing parameter(s) required by 'preset': fabric"),
        ({"preset": "x", "facts_dir": "/x", "fabric": FABRIC}, "parameters are mutually exclusive"),
        ({"cluster_file": "/none", "fabric": FABRIC}, "cluster_file: cannot read /none: No such file or directory"),
        ({"preset": "dell_xe9680_h200", "fabric": {"mtuu": 1}}, "rdma_fabric.mtuu: unknown key"),
    ],
)
def test_wrong_input_is_one_message(capsys: Output, args: dict[str, Any], message: str) -> None:
    found = run("fabric_manifests", capsys, **args)
    assert found["failed"] and message in found["msg"]


def test_a_cluster_file_that_is_not_yaml(tmp_path: Path, capsys: Output) -> None:
    (tmp_path / "cluster-config.yaml").write_text("a: [")
    found = run("fabric_manifests", capsys, cluster_file=str(tmp_path / "cluster-config.yaml"), fabric=FABRIC)
    assert "is not valid YAML" in found["msg"]


def test_digests_of_a_file_are_in_the_lists(tmp_path: Path, capsys: Output) -> None:
    digest, image = f"sha256:{'d' * 64}", "nvcr.io/nvidia/mellanox/multus-cni:network-operator-v26.7.1"
    (tmp_path / "digests.txt").write_text(f"{image} {digest}\n")
    args: dict[str, Any] = {"preset": "dell_xe9680_h200", "image_digests": str(tmp_path / "digests.txt")}
    assert f"{image}@{digest}" in run("fabric_manifests", capsys, fabric=FABRIC, **args)["images"]
    mirrored = {**FABRIC, "operator": {"image_repository": "m.example.com/m"}}
    run("fabric_manifests", capsys, fabric=mirrored, path=str(tmp_path / "out"), **args)
    target = "m.example.com/m/multus-cni:network-operator-v26.7.1"
    assert f"nvcr.io/nvidia/mellanox/multus-cni@{digest} {target}" in (tmp_path / "out" / "mirror.txt").read_text()


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (None, "image_digests: {path} does not exist"),
        (b"multus \xff", "image_digests: {path} has no line with an image and a sha256 digest"),
    ],
)
def test_a_file_without_digests(tmp_path: Path, capsys: Output, content: bytes | None, message: str) -> None:
    path = tmp_path / "digests.txt"
    if content is not None:
        path.write_bytes(content)
    found = run("fabric_manifests", capsys, preset="dell_xe9680_h200", fabric=FABRIC, image_digests=str(path))
    assert message.format(path=path) in found["msg"]
