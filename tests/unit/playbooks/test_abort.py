"""The playbook that ends an interrupted measurement, played for real on this machine with a stand-in for systemctl."""

from __future__ import annotations

import json
import os
import subprocess
from pathlib import Path
from typing import Any

from tests.unit.support.real_play import ROOT, ansible_playbook


def abort(tmp_path: Path, hosts: dict[str, Any], **variables: Any) -> subprocess.CompletedProcess[str]:
    (tmp_path / "bin").mkdir()
    (tmp_path / "bin" / "systemctl").write_text(f'#!/bin/sh\necho "$*" >>{tmp_path}/asked\n')
    (tmp_path / "bin" / "systemctl").chmod(0o755)
    folder = tmp_path / "gpufabric" / "tester"
    folder.mkdir(parents=True)
    (folder / "tester.sh").write_text("left")
    (tmp_path / "hosts.json").write_text(json.dumps({"rdma_hosts": {"hosts": hosts}}))
    given = {"__rdma_validate_folder": str(folder), "ansible_become": False, **variables}
    return ansible_playbook(
        tmp_path,
        "-i",
        tmp_path / "hosts.json",
        "-e",
        json.dumps(given),
        ROOT / "playbooks" / "abort.yml",
        PATH=f"{tmp_path}/bin:{os.environ['PATH']}",
    )


def test_testers_are_stopped_and_their_folder_is_gone(tmp_path: Path) -> None:
    hosts = {"here": {"ansible_connection": "local"}}
    done = abort(tmp_path, hosts, rdma_validate_where=["host"])
    assert done.returncode == 0, done.stdout + done.stderr
    assert (tmp_path / "asked").read_text() == "stop gpufabric-tester.service\n"
    assert not (tmp_path / "gpufabric").exists()
    assert "changed=0" in done.stdout


def test_a_host_that_cannot_be_reached_is_named_and_the_others_are_cleaned(tmp_path: Path) -> None:
    (tmp_path / "ssh").write_text("#!/bin/sh\nexit 255\n")
    (tmp_path / "ssh").chmod(0o755)
    gone = {"ansible_connection": "ssh", "ansible_ssh_executable": str(tmp_path / "ssh")}
    done = abort(tmp_path, {"gone": gone, "here": {"ansible_connection": "local"}}, rdma_validate_where=["host"])
    assert done.returncode == 4
    assert "gone" in done.stdout and "UNREACHABLE" in done.stdout
    assert not (tmp_path / "gpufabric").exists()


def test_a_cluster_that_cannot_be_reached_fails_after_the_hosts(tmp_path: Path) -> None:
    hosts = {"here": {"ansible_connection": "local"}}
    done = abort(tmp_path, hosts, rdma_kubeconfig=str(tmp_path / "none"))
    assert done.returncode == 2
    assert "it cannot be read" in done.stdout
    assert not (tmp_path / "gpufabric").exists()
