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
from tests.unit.support.real_play import ROOT, ansible_playbook

REASON = "iommu=pt takes effect at the next boot"
REFUSED = "with local connection would reboot the control node."


def play(tmp_path: Path, reasons: dict[str, str], **variables: Any) -> subprocess.CompletedProcess[str]:
    """A play with the role over two hosts, one after the other; ``reasons`` is host -> what it waits for."""
    return play_all(tmp_path, {"one": {}, "two": {}}, reasons, 1, variables)


def play_all(
    tmp_path: Path, hosts: dict[str, Any], reasons: dict[str, str], serial: int, variables: dict[str, Any]
) -> subprocess.CompletedProcess[str]:
    """A play over hosts with variables: ``here`` is the machine that runs Ansible, ``plane`` is one that runs etcd."""
    for host, own in hosts.items():
        folder = tmp_path / host
        for name in ("run/gpufabric/reboot.d", "proc/sys/kernel/random", "etc/kubernetes/manifests"):
            (folder / name).mkdir(parents=True, exist_ok=True)
        # Another machine than the one that runs Ansible, which is refused.
        boot_id = Path("/proc/sys/kernel/random/boot_id").read_text() if own.get("here") else f"boot of {host}\n"
        (folder / "proc/sys/kernel/random/boot_id").write_text(boot_id)
        if own.get("plane"):
            (folder / "etc/kubernetes/manifests/etcd.yaml").touch()
        if host in reasons:
            (folder / "run/gpufabric/reboot.d/kernel_cmdline").write_text(f"{reasons[host]}\n")
    book = {
        "hosts": "all",
        "gather_facts": False,
        "serial": serial,
        "max_fail_percentage": 0,
        "module_defaults": {"gpufabric.rdma.reboot_reasons": {"root": f"{tmp_path}/{{{{ inventory_hostname }}}}"}},
        "roles": ["gpufabric.rdma.host_reboot"],
    }
    (tmp_path / "play.yml").write_text(json.dumps([book]))
    known = {name: {"ansible_connection": "local", **own} for name, own in hosts.items()}
    (tmp_path / "hosts.json").write_text(json.dumps({"all": {"hosts": known}}))
    given = json.dumps({"host_reboot_drain": False, "ansible_python_interpreter": sys.executable, **variables})
    args = ("-i", tmp_path / "hosts.json", "-e", given, tmp_path / "play.yml")
    return ansible_playbook(tmp_path, *args, COLUMNS="2000")


def record(tmp_path: Path, host: str) -> Any:
    path = tmp_path / host / "var/lib/gpufabric/host_reboot.json"
    return json.loads(path.read_text())["reasons"] if path.exists() else None


def test_hosts_without_reasons_are_left_alone(tmp_path: Path) -> None:
    done = play(tmp_path, {})
    assert done.returncode == 0, done.stdout + done.stderr
    assert done.stdout.count("changed=0") == 2 and "Reboot and wait" not in done.stdout


@pytest.mark.proves("host_reboot", "Debian 13", by="unit")
def test_without_consent_only_the_host_with_a_reason_fails(tmp_path: Path) -> None:
    done = play(tmp_path, {"two": REASON})
    assert done.returncode == 2
    assert f"two must be rebooted before the run can continue on it: {REASON}. Set allowed: true" in done.stdout
    assert "one must be rebooted" not in done.stdout and "Reboot and wait" not in done.stdout
    assert (record(tmp_path, "one"), record(tmp_path, "two")) == (None, None)


def test_a_reboot_that_fails_is_said_and_ends_the_batches(tmp_path: Path) -> None:
    done = play(tmp_path, {"one": REASON, "two": REASON}, host_reboot_allowed=True)
    assert done.returncode == 2
    assert f'"{REASON}"' in done.stdout
    assert "one: reboot | Reboot the host and wait for it: Running" in done.stdout
    assert f"{REFUSED} Repair it, then rerun the playbook to continue from there." in done.stdout
    # The next batch was not begun, and what the reboot was for is not forgotten.
    assert (record(tmp_path, "one"), record(tmp_path, "two")) == ([REASON], None)


def test_a_reason_that_a_reboot_did_not_cure_is_not_tried_again(tmp_path: Path) -> None:
    state = tmp_path / "one/var/lib/gpufabric"
    state.mkdir(parents=True)
    (state / "host_reboot.json").write_text(json.dumps({"boot_id": "before", "reasons": [REASON]}))
    done = play(tmp_path, {"one": REASON}, host_reboot_allowed=True)
    assert done.returncode == 2
    assert f"one was already rebooted, but these reasons remain: {REASON}" in done.stdout
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


def test_the_controller_and_two_of_the_control_plane_are_not_rebooted(tmp_path: Path) -> None:
    """A play, 3 s. The controller's refusal is a warning here, so that the others go on."""
    hosts: dict[str, Any] = {"one": {"plane": True}, "two": {"plane": True}, "here": {"here": True}}
    consent = {"host_reboot_allowed": True, "host_reboot_when_refused": "report"}
    done = play_all(tmp_path, hosts, dict.fromkeys(hosts, REASON), 3, consent)
    assert done.returncode == 2
    warned = " ".join((done.stdout + done.stderr).split())
    assert (
        f"here must be rebooted before the run can continue on it: {REASON}. Ansible runs on this machine or in a"
    ) in warned
    assert "one, two run an API server or etcd and are in one batch. Only one of them may be down" in done.stdout
    assert REFUSED not in done.stdout
    assert [record(tmp_path, host) for host in hosts] == [None] * 3


@pytest.mark.parametrize(
    ("percentage", "batch", "lost", "stops"),
    [
        (0, 1, 0, False),
        (0, 64, 1, True),
        (10, 3, 2, True),
        (10, 1, 1, True),
        (10, 10, 1, False),
        (10, 10, 2, True),
        ("10", 10, 2, True),
        (50, 2, 1, False),
        (100, 2, 2, False),
        (33, 3, 1, True),
        (34, 3, 1, False),
    ],
)
def test_hosts_that_were_lost_count_in_batches_of_any_size(percentage: Any, batch: int, lost: int, stops: bool) -> None:
    """In jinja alone: what Ansible loads to render a template changes how modules in this process warn."""
    book = yaml.safe_load((ROOT / "playbooks/reboot.yml").read_text())
    task = book[-1]["tasks"][-1]
    hosts = [f"gpu-{number}" for number in range(batch)]
    known = {"__reboot_batch": hosts, "ansible_play_batch": hosts[lost:]}
    known["__batches"] = {"host_reboot_max_fail_percentage": percentage}
    jinja = jinja2.Environment(autoescape=False)
    # Ansible's own: what is in the first list only.
    jinja.filters["difference"] = lambda left, right: [item for item in left if item not in right]
    for name, text in task["vars"].items():
        known[name] = jinja.compile_expression(text.strip("{} "))(**known)
    assert jinja.compile_expression(task["when"])(**known) is stops
    said = jinja.from_string(task["ansible.builtin.fail"]["msg"]).render(**known)
    assert f": {lost} of {batch} hosts of this batch failed or were not reachable" in said
