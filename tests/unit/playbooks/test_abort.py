"""The playbook that ends an interrupted measurement, played for real on this machine with a stand-in for systemctl."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[3]


def abort(tmp_path: Path, hosts: dict[str, Any], **variables: Any) -> subprocess.CompletedProcess[str]:
    (tmp_path / "bin").mkdir()
    (tmp_path / "bin" / "systemctl").write_text(f'#!/bin/sh\necho "$*" >>{tmp_path}/asked\n')
    (tmp_path / "bin" / "systemctl").chmod(0o755)
    folder = tmp_path / "gpufabric" / "tester"
    folder.mkdir(parents=True)
    (folder / "tester.sh").write_text("left")
    (tmp_path / "hosts.json").write_text(json.dumps({"rdma_hosts": {"hosts": hosts}}))
    given = {"__rdma_validate_folder": str(folder), "ansible_become": False, **variables}
    (tmp_path / "none.cfg").write_text("")
    program = str(Path(sys.executable).parent / "ansible-playbook")
    # A tree of collections below tmp_path, so that names lead to this checkout and nowhere else.
    place = tmp_path / "collections" / "ansible_collections" / "gpufabric"
    place.mkdir(parents=True)
    (place / "rdma").symlink_to(ROOT)
    environment = {
        **os.environ, "PATH": f"{tmp_path}/bin:{os.environ['PATH']}", "ANSIBLE_LOCAL_TEMP": str(tmp_path / "tmp"),
        "ANSIBLE_COLLECTIONS_PATH": str(tmp_path / "collections"), "ANSIBLE_CONFIG": str(tmp_path / "none.cfg"),
    }
    return subprocess.run(
        [program, "-i", tmp_path / "hosts.json", "-e", json.dumps(given), ROOT / "playbooks" / "abort.yml"],
        env=environment, capture_output=True, text=True, timeout=120, check=False,
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
