"""The role host_reboot, played for real on this machine, which Ansible refuses to reboot: where a failure
ends. And whom the playbook reboots first.
"""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import jinja2
import pytest
import yaml
from real_play import ROOT, ansible_playbook

REASON = "iommu=pt waits for the next boot"
REFUSED = "with local connection would reboot the control node."


def play(tmp_path: Path, reasons: dict[str, str], **variables: Any) -> subprocess.CompletedProcess[str]:
    """A play with the role over two hosts, one after the other; ``reasons`` is host -> what it waits for."""
    for host, reason in reasons.items():
        folder = tmp_path / host / "run/gpufabric/reboot.d"
        folder.mkdir(parents=True, exist_ok=True)
        (folder / "kernel_cmdline").write_text(f"{reason}\n")
    own = {f"{name}_root": f"{tmp_path}/{{{{ inventory_hostname }}}}/{name}" for name in ("run", "state")}
    book = {
        "hosts": "all",
        "gather_facts": False,
        "serial": 1,
        "max_fail_percentage": 0,
        "module_defaults": {"gpufabric.rdma.reboot_reasons": own},
        "roles": ["gpufabric.rdma.host_reboot"],
    }
    (tmp_path / "play.yml").write_text(json.dumps([book]))
    hosts = {name: {"ansible_connection": "local"} for name in ("one", "two")}
    (tmp_path / "hosts.json").write_text(json.dumps({"all": {"hosts": hosts}}))
    given = json.dumps({"host_reboot_drain": False, "ansible_python_interpreter": sys.executable, **variables})
    args = ("-i", tmp_path / "hosts.json", "-e", given, tmp_path / "play.yml")
    return ansible_playbook(tmp_path, *args, COLUMNS="2000")


def record(tmp_path: Path, host: str) -> Any:
    path = tmp_path / host / "state/host_reboot.json"
    return json.loads(path.read_text())["reasons"] if path.exists() else None


def test_hosts_without_reasons_are_left_alone(tmp_path: Path) -> None:
    done = play(tmp_path, {})
    assert done.returncode == 0, done.stdout + done.stderr
    assert done.stdout.count("changed=0") == 2 and "Reboot and wait" not in done.stdout


@pytest.mark.proves("host_reboot", "Debian 13", by="unit")
def test_without_consent_only_the_host_with_a_reason_fails(tmp_path: Path) -> None:
    done = play(tmp_path, {"two": REASON})
    assert done.returncode == 2
    assert f"two must be rebooted before it can go on: {REASON}. Set host_reboot_allowed: true" in done.stdout
    assert "one must be rebooted" not in done.stdout and "Reboot and wait" not in done.stdout
    assert (record(tmp_path, "one"), record(tmp_path, "two")) == (None, None)


def test_a_reboot_that_fails_is_said_and_ends_the_batches(tmp_path: Path) -> None:
    done = play(tmp_path, {"one": REASON, "two": REASON}, host_reboot_allowed=True)
    assert done.returncode == 2
    assert f'"{REASON}"' in done.stdout
    assert "one: reboot | Reboot and wait until the host is back: Running" in done.stdout
    assert f"{REFUSED} Repair it, then run this again: it goes on from there." in done.stdout
    # The next batch was not begun, and what the reboot was for is not forgotten.
    assert (record(tmp_path, "one"), record(tmp_path, "two")) == ([REASON], None)


def test_a_reason_that_a_reboot_did_not_cure_is_not_tried_again(tmp_path: Path) -> None:
    state = tmp_path / "one/state"
    state.mkdir(parents=True)
    (state / "host_reboot.json").write_text(json.dumps({"boot_id": "before", "reasons": [REASON]}))
    done = play(tmp_path, {"one": REASON}, host_reboot_allowed=True)
    assert done.returncode == 2
    assert f"one was rebooted already and this is still there: {REASON}" in done.stdout
    assert REFUSED not in done.stdout


def test_batches_follow_the_inventory_whoever_answered_first(tmp_path: Path) -> None:
    groups = {"rdma_hosts": ("gpu-3", "gpu-1", "gpu-10", "gpu-2"), "host_reboot_due": ("gpu-2", "gpu-10", "gpu-3")}
    inventory = {"all": {"children": {name: {"hosts": dict.fromkeys(hosts)} for name, hosts in groups.items()}}}
    (tmp_path / "hosts.yml").write_text(yaml.safe_dump(inventory, sort_keys=False))
    book = yaml.safe_load((ROOT / "playbooks/reboot.yml").read_text())
    pattern = jinja2.Template(next(play["hosts"] for play in book if "serial" in play)).render(groups=groups)
    program = str(Path(sys.executable).parent / "ansible")
    argv = [program, "-i", str(tmp_path / "hosts.yml"), pattern, "--list-hosts"]
    told = subprocess.run(argv, capture_output=True, text=True, timeout=120, check=True).stdout
    assert told.split()[2:] == ["gpu-3", "gpu-10", "gpu-2"]
