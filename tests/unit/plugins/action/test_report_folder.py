"""The folder of the report: where it is without a variable, and what keeps a report from being written there."""

from __future__ import annotations

import getpass
import importlib.util
import json
import os
import subprocess
import sys
import types
from collections.abc import Callable
from pathlib import Path
from unittest.mock import patch

import pytest
import yaml
from tests.unit.support.real_play import ROOT, ansible_playbook


def _problem() -> Callable[[str, Path], str]:
    """The function alone: Ansible's own import would make this process a controller, also for tests of modules."""
    base = types.SimpleNamespace(ActionBase=object)
    name = "ansible_collections.gpufabric.rdma.plugins.action.report_folder"
    spec = importlib.util.spec_from_file_location(name, ROOT / "plugins/action/report_folder.py")
    assert spec and spec.loader
    module = importlib.util.module_from_spec(spec)
    with patch.dict(sys.modules, {"ansible.plugins": types.ModuleType("plugins"), "ansible.plugins.action": base}):
        spec.loader.exec_module(module)
    found: Callable[[str, Path], str] = module.problem
    return found


problem = _problem()


@pytest.fixture
def collection(tmp_path: Path) -> Path:
    (tmp_path / "installed").mkdir()
    (tmp_path / "installed/MANIFEST.json").touch()
    return tmp_path / "installed"


def test_a_folder_or_the_parent_that_will_hold_it_must_be_writable(
    tmp_path: Path, collection: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "file").touch()
    (tmp_path / "locked").mkdir()
    writable = os.access
    monkeypatch.setattr(os, "access", lambda place, mode: place.name != "locked" and writable(place, mode))
    monkeypatch.setattr(getpass, "getuser", lambda: "ops")
    assert problem(f"{tmp_path}/report", collection) == problem(f"{tmp_path}/a/b/c", collection) == ""
    for path, found in (
        ("", "an absolute path is needed, such as /srv/rdma-report"),
        ("report", "an absolute path is needed, such as /srv/rdma-report"),
        ("/", "an absolute path is needed, such as /srv/rdma-report"),
        (f"{tmp_path}/file", f"{tmp_path}/file is not a folder"),
        (f"{tmp_path}/file/report", f"{tmp_path}/file is not a folder"),
        (f"{tmp_path}/locked", f"the user ops has no permission to write in {tmp_path}/locked"),
        (f"{tmp_path}/locked/a/b", f"the user ops has no permission to write in {tmp_path}/locked"),
        (f"{collection}/report", "it lies in the installed collection, and its next upgrade would remove it"),
    ):
        assert problem(path, collection) == found


def play(tmp_path: Path, *args: str) -> subprocess.CompletedProcess[str]:
    """The check of the playbook site, and what it reads the folder from."""
    read = yaml.safe_load((ROOT / "playbooks/tasks/cluster.yml").read_text())[0]
    site = yaml.safe_load((ROOT / "playbooks/site.yml").read_text())
    (check,) = [task for play in site for task in play.get("tasks", []) if "gpufabric.rdma.report_folder" in task]
    book = {"hosts": "all", "gather_facts": False, "tasks": [read, check]}
    (tmp_path / "plays").mkdir(exist_ok=True)
    (tmp_path / "plays/play.yml").write_text(json.dumps([book]))
    return ansible_playbook(tmp_path, "-v", "-i", "nobody,", tmp_path / "plays/play.yml", *args)


def test_a_report_goes_below_the_current_directory(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Not beside the playbook, which for an installed collection is in the collection. About 1.3 s for each play."""
    (tmp_path / "mine").mkdir()
    (tmp_path / "file").touch()
    monkeypatch.chdir(tmp_path / "mine")
    assert f'"path": "{tmp_path}/mine/rdma-report"' in play(tmp_path).stdout
    done = play(tmp_path, "-e", "rdma_report_dir=../file/report")
    assert done.returncode != 0
    assert f"The report cannot be written to {tmp_path}/file/report: {tmp_path}/file is not a folder." in done.stdout
