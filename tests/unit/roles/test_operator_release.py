"""Roles that are given no release take the default one: played by Ansible."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
import yaml
from tests.unit.support.real_play import ROOT, ansible_playbook

from ansible_collections.gpufabric.rdma.plugins.module_utils._fabric.intent.releases import DEFAULT

ROLES = ("network_operator", "nic_cluster_policy", "secondary_networks")


def test_an_empty_release_is_the_default_one(tmp_path: Path) -> None:
    asked = {
        "none": "{{ lookup('gpufabric.rdma.operator_release') }}",
        "empty": "{{ lookup('gpufabric.rdma.operator_release', '') }}",
        "given": "{{ lookup('gpufabric.rdma.operator_release', '1.2.3') }}",
    }
    copy = {"ansible.builtin.copy": {"dest": str(tmp_path / "found"), "content": "{{ asked | to_json }}"}}
    play = {"hosts": "localhost", "gather_facts": False, "vars": {"asked": asked}, "tasks": [copy]}
    (tmp_path / "play.yml").write_text(yaml.safe_dump([play]))
    done = ansible_playbook(tmp_path, tmp_path / "play.yml")
    assert done.returncode == 0, done.stdout + done.stderr
    found = json.loads((tmp_path / "found").read_text())
    assert found == {"none": DEFAULT, "empty": DEFAULT, "given": "1.2.3"}


@pytest.mark.parametrize("role", ROLES)
def test_every_role_asks_for_it(role: str) -> None:
    name = f"{role}_release"
    assert yaml.safe_load((ROOT / "roles" / role / "defaults/main.yml").read_text())[name] == ""
    tasks = "".join(path.read_text() for path in (ROOT / "roles" / role / "tasks").glob("*.yml"))
    assert tasks.count(name) == tasks.count(f"lookup('gpufabric.rdma.operator_release', {name})") > 0
