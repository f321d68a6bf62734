"""The playbook that collects a support bundle, played for real: a host that is away, no root, no cluster. About 8 s."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tarfile
from pathlib import Path
from typing import Any

from tests.unit.support.real_play import ansible_playbook


def bundle(folder: Path, hosts: dict[str, Any], **variables: Any) -> subprocess.CompletedProcess[str]:
    (folder / "hosts.json").write_text(json.dumps({"rdma_hosts": {"hosts": hosts}}))
    given = {"rdma_bundle_dir": str(folder / "out"), "rdma_report_dir": str(folder / "report"), **variables}
    return ansible_playbook(
        folder,
        "-i",
        folder / "hosts.json",
        "-e",
        json.dumps(given),
        "gpufabric.rdma.support_bundle",
        KUBECONFIG="/none",
        COLUMNS="2000",
    )


def failing(path: Path, code: int) -> str:
    path.write_text(f"#!/bin/sh\nexit {code}\n")
    path.chmod(0o755)
    return str(path)


def test_what_there_is_is_collected(tmp_path: Path) -> None:
    """`here` has a become that fails, so it is read without; `gone` is away, and so is the cluster."""
    no_root = {
        "ansible_python_interpreter": sys.executable,
        "ansible_become": True,
        "ansible_become_exe": failing(tmp_path / "sudo", 1),
    }
    gone = {"ansible_connection": "ssh", "ansible_ssh_executable": failing(tmp_path / "ssh", 255)}
    done = bundle(tmp_path, {"here": {"ansible_connection": "local", **no_root}, "gone": gone}, rdma_fabric="broken")
    assert done.returncode == 0, done.stdout + done.stderr
    assert "Traceback" not in done.stdout + done.stderr
    (path,) = (tmp_path / "out").iterdir()
    assert f"archive: {path}" in done.stdout
    for text in (
        "hosts: ",
        "missing: hosts/gone: unreachable: ",
        "missing: cluster: kubeconfig /none: it cannot be read",
    ):
        assert text in done.stdout, text
    with tarfile.open(path) as archive:
        names = [name.partition("/")[2] for name in archive.getnames()]
    assert names[0] == "index.json" and "hosts/here/facts.json" in names and "hosts/here/proc-version.txt" in names


def test_nothing_is_a_failure(tmp_path: Path) -> None:
    gone = {"ansible_connection": "ssh", "ansible_ssh_executable": failing(tmp_path / "ssh", 255)}
    done = bundle(tmp_path, {"gone": gone})
    assert done.returncode == 2, done.stdout + done.stderr
    assert "fabric_bundle: nothing could be collected: hosts/gone: unreachable: " in done.stdout
    assert os.listdir(tmp_path / "out") == []
