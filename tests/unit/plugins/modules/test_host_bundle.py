"""host_bundle through main() on a fixture tree: what it returns, its bounds, and a host that has nothing. About 1 s."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from tests.unit.support import sysfs_tree
from tests.unit.support.module_run import run
from tests.unit.support.sysfs_tree import Host

from ansible_collections.gpufabric.rdma.plugins.module_utils._host.system import command


@pytest.fixture()
def host(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Host:
    return sysfs_tree.materialise("gpu-server-8-rails", tmp_path, monkeypatch)


def call(host: Host, capsys: pytest.CaptureFixture[str], **params: Any) -> dict[str, Any]:
    return run("host_bundle", capsys, **{**host.options(), **params})


def write(path: Path, text: str) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text)


def test_what_is_returned(host: Host, capsys: pytest.CaptureFixture[str]) -> None:
    host.reacts = lambda argv: "no such option" if argv[:2] == ["dmesg", "--time-format"] or argv[0] == "rdma" else None
    host.prints["dmesg"] = "[1.0] mlx5_core 0000:18:00.0: up\n[1.1] option token=s3cret\n"
    host.prints["ip -details -statistics link show"] = "1: lo\n"
    write(host.root / "var/lib/gpufabric/sriov_vfs.json", '{"password": "s3cret", "mtu": 1500}')
    write(host.root / "run/gpufabric/reboot.d/kernel_cmdline", "iommu=pt\n")
    write(host.root / "etc/modprobe.d/gpufabric.conf", "options mlx5_core x=1\n")
    write(host.root / "etc/modprobe.d/other.conf", "options other\n")
    found = call(host, capsys)
    assert found["changed"] is False
    assert found["files"]["kernel.log"].splitlines()[1] == "[1.1] option token=<removed>"
    assert found["files"]["links.txt"] == "1: lo\n"
    assert found["files"]["records/sriov_vfs.json"] == '{"password": <removed>, "mtu": 1500}\n'
    assert found["files"]["reboot-reasons/kernel_cmdline"] == "iommu=pt\n"
    assert found["files"]["etc/modprobe.d/gpufabric.conf"] == "options mlx5_core x=1\n"
    assert len(json.loads(found["files"]["facts.json"])["ports"]) > 8
    assert not any("other" in name for name in found["files"]) and found["cut"] == []
    assert "status 2: no such option" in found["missing"]["rdma-system.txt"] and "s3cret" not in json.dumps(found)


def test_the_size_is_bounded(host: Host, capsys: pytest.CaptureFixture[str]) -> None:
    host.prints["dmesg --time-format iso"] = "".join(f"line {number}\n" for number in range(100_000))
    found = call(host, capsys, limit=65536)
    assert sum(map(len, found["files"].values())) <= 65536
    assert found["files"]["kernel.log"].endswith("line 99999\n") and "kernel.log" in found["cut"]
    small = call(host, capsys, limit=4096)
    assert small["missing"]["facts.json"].endswith("characters, and 2048 are left for this host")
    refused = call(host, capsys, limit=5)
    assert refused["msg"] == "host_bundle: limit: expected at least 4096, found 5. Use the default"


def test_a_damaged_record_takes_nothing_but_the_facts(host: Host, capsys: pytest.CaptureFixture[str]) -> None:
    host.prints["dmesg"] = "x"
    write(host.root / "var/lib/gpufabric/rail_links.json", '{"0000:18:00.0": "damaged"}')
    found = call(host, capsys)
    assert "the facts cannot be read: " in found["missing"]["facts.json"]
    assert "damaged" in found["files"]["records/rail_links.json"] and "kernel.log" in found["files"]


def test_a_host_without_anything(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: Any) -> None:
    """Neither programs nor files, as in a container: each is missing, and that is no failure."""
    monkeypatch.setattr(command, "SEARCH_PATH", str(tmp_path))
    found = run("host_bundle", capsys, root=str(tmp_path))
    assert not found.get("failed") and found["missing"]["kernel.log"] == "'dmesg' is not installed"
    assert {"proc-modules.txt", "rdma.txt"} < set(found["missing"])
