"""The examples of roles/*/README.md run as shown: in check mode, in one run, the plan first where they need it.

The host is one of tests/tools/loopback.py: a local connection, and a fixture tree that all modules are led into;
nothing outside of it can be changed. The roles of the cluster have no API server here: they must get past the
validation of their arguments and the plan, and stop at the kubeconfig that does not exist.
"""

from __future__ import annotations

import json
import re
import shutil
from pathlib import Path
from typing import Any

import pytest
import yaml
from tests.tools import loopback
from tests.unit.support.real_play import ROOT, ansible_playbook

ROLES = sorted(path.name for path in (ROOT / "roles").iterdir())
CLUSTER = ("network_operator", "nic_cluster_policy", "secondary_networks")
PLAN = {"import_playbook": "gpufabric.rdma.plan"}
HOST = "gpu-0001"
BOOT = ROOT / "tests" / "fixtures" / "boot" / "ubuntu-24.04"
# What mstconfig prints of a card: default, in force, next boot.
CARD = """Configurations:                              Default         Current         Next Boot
         SRIOV_EN                                    False(0)        False(0)        False(0)
         NUM_OF_VFS                                  0               0               0
         LINK_TYPE_P1                                IB(1)           IB(1)           IB(1)
"""


def example(role: str) -> list[dict[str, Any]]:
    """The plays that the README of a role shows."""
    (block,) = re.findall(r"```yaml\n(.*?)```", (ROOT / "roles" / role / "README.md").read_text(), re.DOTALL)
    return yaml.safe_load(block)


@pytest.mark.parametrize("role", ROLES)
def test_an_example_is_a_whole_playbook(role: str) -> None:
    *before, play = example(role)
    assert before == ([PLAN] if "rdma_plan" in json.dumps(play) else [])
    assert play["hosts"] == "rdma_hosts"


@pytest.mark.parametrize("role", CLUSTER)
def test_an_example_of_the_cluster_supplies_every_value_of_the_plan(role: str) -> None:
    """What the playbooks take from the plan: with a default instead, another release or namespace would be used."""
    given = yaml.safe_load((ROOT / "playbooks" / "vars" / "cluster.yml").read_text())
    given = {name: given["__cluster_hosts"] if "__cluster_hosts" in value else value for name, value in given.items()}
    expected = {name: value for name, value in given.items() if name.startswith(f"{role}_") and "rdma_plan" in value}
    (shown,) = example(role)[-1]["roles"]
    assert {name: value for name, value in shown["vars"].items() if "rdma_plan" in value} == expected


@pytest.fixture(scope="module")
def output(tmp_path_factory: pytest.TempPathFactory) -> dict[str, str]:
    """Role -> what its example printed. One run for all: about 18 s on an idle machine, 40 s at a load of 5."""
    work = tmp_path_factory.mktemp("examples").resolve()
    inventory = loopback.make_hosts(work, [HOST])
    boot_loader_and_cards(work, work / "hosts" / HOST)
    defaults = loopback.path_defaults()
    collection(work, defaults)
    # A failure is printed, and the next example still runs.
    plays = [{**play, "name": role, "module_defaults": defaults, "ignore_errors": True}
             for role in ROLES for play in example(role) if play != PLAN]  # fmt: skip
    (work / "examples.yml").write_text(json.dumps([PLAN, *plays]))
    variables = {"rdma_report_dir": f"{work}/report", "rdma_kubeconfig": f"{work}/absent.kubeconfig"}
    done = ansible_playbook(
        work, "-i", inventory, work / "examples.yml", "--check", "-e", json.dumps(variables),
        ANSIBLE_HOME=f"{work}/ansible", ANSIBLE_PIPELINING="true", ANSIBLE_NO_TARGET_SYSLOG="true", COLUMNS="4000",
    )  # fmt: skip
    printed = re.split(r"^PLAY \[(.*)\] \**$", done.stdout, flags=re.MULTILINE)
    return {"all": done.stdout + done.stderr, **dict(zip(printed[1::2], printed[2::2]))}


def collection(work: Path, defaults: dict[str, Any]) -> None:
    """Make the collection of this run: the checkout, its playbooks led into the trees of the hosts."""
    place = work / "collections" / "ansible_collections" / "gpufabric" / "rdma"
    place.mkdir(parents=True)
    for path in ROOT.iterdir():
        if path.name != "playbooks":
            (place / path.name).symlink_to(path)
    loopback.make_playbooks(place / "playbooks", defaults)


def boot_loader_and_cards(work: Path, tree: Path) -> None:
    """Give a host the boot loader of Ubuntu, and cards that answer mstconfig."""
    shutil.copytree(BOOT, tree, dirs_exist_ok=True)
    (tree / "proc/sys/kernel/numa_balancing").write_text("1\n")
    loopback.script(work / "bin" / "grub-mkconfig", (BOOT / "usr/sbin/grub-mkconfig").read_text())
    loopback.script(work / "bin" / "mstconfig", f"#!/bin/sh\n/bin/cat <<'END'\n{CARD}END\n")
    shutil.copy(tree / "prints/ip -d -j addr show", tree / "prints/ip -d -j link show")


@pytest.mark.parametrize("role", sorted({*ROLES} - {*CLUSTER}))
def test_an_example_of_hosts_runs_in_check_mode(output: dict[str, str], role: str) -> None:
    assert role in output, output["all"][-6000:]
    assert re.findall(r"^(?:fatal|\[ERROR\]): .*", output[role], re.MULTILINE) == []
    assert re.search(rf"^(?:ok|changed): \[{HOST}", output[role], re.MULTILINE)


@pytest.mark.parametrize("role", CLUSTER)
def test_an_example_of_the_cluster_stops_only_at_the_kubeconfig(output: dict[str, str], role: str) -> None:
    assert role in output, output["all"][-6000:]
    first, *_others = re.findall(r"^fatal: .*", output[role], re.MULTILINE)
    assert "absent.kubeconfig" in first
