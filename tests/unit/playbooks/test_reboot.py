"""Hosts are rebooted in the order of the inventory, whoever answered first."""

from __future__ import annotations

from pathlib import Path

import yaml
from ansible.inventory.manager import InventoryManager
from ansible.parsing.dataloader import DataLoader

PLAYBOOK = Path(__file__).parents[3] / "playbooks/reboot.yml"
INVENTORY = {"all": {"children": {"rdma_hosts": {"hosts": dict.fromkeys(("gpu-3", "gpu-1", "gpu-10", "gpu-2"))}}}}


def test_batches_follow_the_inventory(tmp_path: Path) -> None:
    (tmp_path / "hosts.yml").write_text(yaml.safe_dump(INVENTORY, sort_keys=False))
    inventory = InventoryManager(loader=DataLoader(), sources=[str(tmp_path / "hosts.yml")])
    # As group_by adds them: in the order of their answers.
    inventory.add_group("host_reboot_due")
    for name in ("gpu-2", "gpu-10", "gpu-3"):
        inventory.add_host(name, group="host_reboot_due")
    play = next(play for play in yaml.safe_load(PLAYBOOK.read_text()) if "serial" in play)
    pattern = play["hosts"].split("'")[1]
    assert [host.name for host in inventory.get_hosts(pattern)] == ["gpu-3", "gpu-10", "gpu-2"]
