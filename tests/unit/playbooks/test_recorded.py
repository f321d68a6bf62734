"""`plan` without hosts: for real, since only Ansible shows what it does without an inventory. About 2 s each."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from tests.unit.support.real_play import ansible_playbook

FABRIC = json.dumps({"rdma_fabric": {"supernet": "192.168.0.0/16"}})
PRESET = ("-e", "rdma_preset=dell_xe9680_h200")


def test_a_preset_is_planned_without_an_inventory(tmp_path: Path) -> None:
    out = tmp_path / "out"
    given = ("-e", FABRIC, *PRESET, "-e", "rdma_preset_hosts=4", "-e", f"rdma_manifests_dir={out}")
    done = ansible_playbook(tmp_path, "gpufabric.rdma.plan", *given)
    assert done.returncode == 0, done.stdout + done.stderr
    assert "gpu-[1-4]: 4 identical hosts" in done.stdout
    assert "chart: network-operator" in (out / "operator" / "argocd.yaml").read_text()


@pytest.mark.parametrize(
    ("args", "message"),
    [
        (("gpufabric.rdma.site", *PRESET), "rdma_preset is for a plan without hosts. Run playbook plan alone"),
        (("gpufabric.rdma.plan", "-e", "rdma_facts_dir=/none"), "/none: No such file or directory"),
        (
            ("gpufabric.rdma.plan", *PRESET, "-e", "rdma_facts_dir=/none"),
            "rdma_facts_dir and rdma_preset: expected one",
        ),
        (
            ("gpufabric.rdma.plan", *PRESET, "-i", "gpu-1,", "-e", "rdma_group=all"),
            "but the group all has the hosts gpu-1",
        ),
    ],
)
def test_what_stands_for_hosts_is_for_the_plan_alone(tmp_path: Path, args: tuple[str, ...], message: str) -> None:
    done = ansible_playbook(tmp_path, "-e", FABRIC, *args, COLUMNS="2000")
    assert done.returncode != 0
    assert message in done.stdout + done.stderr, done.stdout + done.stderr
