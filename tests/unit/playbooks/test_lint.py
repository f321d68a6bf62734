"""The playbook lint for real: without an inventory, and with a limit that would leave localhost out. About 2 s each."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from tests.unit.support.real_play import ansible_playbook

POLICY = {"apiVersion": "mellanox.com/v1alpha1", "kind": "NicClusterPolicy", "metadata": {"name": "nic-cluster-policy"}}


@pytest.mark.parametrize(
    ("name", "args", "message"),
    [
        ("nic-cluster-policy", (), "objects examined: 1, errors: 0, warnings: 0"),
        ("mlnx", (), "- NicClusterPolicy mlnx: The operator ignores"),
        (
            "mlnx",
            ("-i", "web-1,gpu-1,", "--limit", "web-1"),
            "- NicClusterPolicy mlnx: The operator ignores",
        ),
    ],
)
def test_manifests_are_examined(tmp_path: Path, name: str, args: tuple[str, ...], message: str) -> None:
    (tmp_path / "policy.json").write_text(json.dumps({**POLICY, "metadata": {"name": name}, "spec": {}}))
    given = ("gpufabric.rdma.lint", "-e", f"rdma_lint_path={tmp_path / 'policy.json'}", *args)
    done = ansible_playbook(tmp_path, *given, COLUMNS="2000")
    assert (done.returncode == 0) == (name == "nic-cluster-policy"), done.stdout + done.stderr
    assert message in done.stdout + done.stderr
