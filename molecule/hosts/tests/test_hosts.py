"""Hosts prepared in full: one reboot for all reasons, by consent and in batches; power cuts; VFs; packages of a vendor;
a host that does not come back; and the way back from all of it. Each test goes on where the last one ended.

Written, and not yet seen to pass: so it is a step of `make soak`, and proves nothing in docs/proofs.md.
"""

from __future__ import annotations

import json
import re
import threading
import time
from collections.abc import Iterator
from typing import Any

import pytest

from tests.scenario import HOSTS, Run, extra, host, lab, playbook
from tests.scenario.aptrepo import Key, Stub, build, served
from tests.scenario.preparation import WISHES, cut_in, damaged_records, prepare, unfinished
from tests.scenario.state import cluster, files, host_state

REBOOT = "Reboot and wait until the host is back"
PCI = {"rail0": "0000:01:00.0", "rail1": "0000:02:00.0"}
VERSION = "3.2.1-044000"
# Another reason to reboot, once VFs were resized.
MORE: dict[str, Any] = {"host_kernel_arguments": [*WISHES["host_kernel_arguments"], "panic=10"], "sriov_vfs": 2}
# Seconds into a preparation of one host: kernel arguments are written, the rest is not.
CUT_AT = 45


@pytest.fixture(scope="module")
def before() -> dict[str, Any]:
    """Hosts as the lab's snapshot leaves them, at a site without the Internet."""
    for name in HOSTS:
        host(name).check_output("truncate --size 0 /etc/apt/sources.list")
    return {name: host_state(name) for name in HOSTS}


@pytest.fixture(scope="module")
def predicted(before: dict[str, Any]) -> set[str]:
    run = prepare(host_reboot_allowed=True, check=True).must()
    assert {name: host_state(name) for name in HOSTS} == before
    return of_host(run, "lab-1")


@pytest.fixture(scope="module")
def refused(predicted: set[str]) -> Run:
    """lab-3 without consent."""
    return prepare("--limit", "lab-3")


@pytest.fixture(scope="module")
def after_cut(refused: Run) -> dict[str, str]:
    """Files of lab-2 after its power failed in the middle of a preparation; `make soak` tries other moments."""
    cut_in("lab-2", CUT_AT)
    assert damaged_records("lab-2") == ""
    return files("lab-2")


@pytest.fixture(scope="module")
def prepared(after_cut: dict[str, str]) -> Run:
    return prepare(host_reboot_allowed=True).must()


@pytest.fixture(scope="module")
def source(tmp_path_factory: pytest.TempPathFactory) -> Iterator[dict[str, Any]]:
    """A vendor's package source, with its key; and the key of somebody else."""
    folder = tmp_path_factory.mktemp("source")
    key, other = Key(folder, "vendor"), Key(folder, "other")
    stubs = [Stub("doca-ofed", VERSION, ["lab-stack"]), Stub("doca-ofed", "3.1.0-1"), Stub("lab-stack", "1.0")]
    build(folder / "repository", key, stubs)
    with served(folder / "repository") as address:
        yield {
            "other": {"rdma_stack_doca_key": str(other.public), "rdma_stack_doca_fingerprint": other.fingerprint},
            "wishes": {
                "rdma_stack_provider": "doca_ofed",
                "rdma_stack_doca_release": "3.2.1",
                "rdma_stack_doca_version": VERSION,
                "rdma_stack_doca_repository": address,
                "rdma_stack_doca_suite": "stable",
                "rdma_stack_doca_components": ["main"],
                "rdma_stack_doca_key": str(key.public),
                "rdma_stack_doca_fingerprint": key.fingerprint,
                "rdma_stack_doca_build": "precompiled",
                "rdma_stack_doca_supported": {"debian13": ["6.12."]},
            },
        }


def of_host(run: Run, name: str) -> set[str]:
    return {line for line in run.changed if line.startswith(name) and "host_reboot" not in line}


def boot_id(name: str) -> str:
    return str(host(name).check_output("cat /proc/sys/kernel/random/boot_id"))


def vfs(name: str) -> dict[str, list[str]]:
    """MAC addresses of the VFs of each rail, as the host's kernel has them."""
    links = json.loads(host(name).check_output("ip -json link show"))
    found = {link["ifname"]: link.get("vfinfo_list", []) for link in links}
    return {rail: [vf["address"] for vf in found[rail]] for rail in PCI}


def is_as_wished(name: str, count: int) -> None:
    machine = host(name)
    words = machine.check_output("cat /proc/cmdline").split()
    assert "transparent_hugepage=madvise" in words and "quiet" not in words
    assert machine.check_output("cat /sys/kernel/mm/hugepages/hugepages-2048kB/nr_hugepages") == "16"
    assert machine.check_output("sysctl -n net.core.rmem_max") == "16777216"
    for rail, pci in PCI.items():
        assert machine.check_output(f"readlink -f /sys/class/net/{rail}/device").endswith(pci)
    assert {rail: len(macs) for rail, macs in vfs(name).items()} == dict.fromkeys(PCI, count)
    for rail in PCI:
        assert re.search(r"Current.*RX:\s+512\n", machine.check_output(f"ethtool -g {rail}"), re.DOTALL)
    assert machine.check_output("rdma link show").count("state ACTIVE") == 2
    for device in machine.check_output("ls /sys/class/infiniband").split():
        assert connection_manager(name, device) == ["104", "RoCE v2"]


def connection_manager(name: str, device: str) -> list[str]:
    """Type of service and RoCE version by which RDMA-CM connects; the kernel shows them to who makes a folder."""
    folder = f"/sys/kernel/config/rdma_cm/{device}"
    files = f"{folder}/ports/1/default_roce_tos {folder}/ports/1/default_roce_mode"
    found: str = host(name).check_output(f"mkdir {folder} && cat {files} && rmdir {folder}")
    return found.split("\n")


def test_without_consent_nothing_is_rebooted(refused: Run) -> None:
    assert refused.rc != 0
    for word in ("host_reboot_allowed: true", "transparent_hugepage=madvise", "quiet", "rail0", "rail1"):
        assert word in refused.output
    assert REBOOT not in str(refused.tasks)


@pytest.mark.parametrize("name", HOSTS)
def test_one_reboot_brings_everything(name: str, prepared: Run) -> None:
    assert [row["host"] for row in prepared.tasks if REBOOT in row["task"]].count(name) == 1
    is_as_wished(name, 4)


def test_check_mode_predicted_what_changed(predicted: set[str], prepared: Run) -> None:
    assert predicted
    assert predicted == of_host(prepared, "lab-1")


def test_no_file_was_half_written_when_the_power_failed(
    before: dict[str, Any], after_cut: dict[str, str], prepared: Run
) -> None:
    assert unfinished(after_cut, [before["lab-2"]["files"], files("lab-2")]) == []


def test_nodes_are_in_service_again(prepared: Run) -> None:
    for node in cluster().get("/api/v1/nodes")["items"]:
        assert not node["spec"].get("unschedulable")
        assert [key for key in node["metadata"].get("annotations", {}) if key.startswith("gpufabric")] == []


def test_second_run_changes_nothing(prepared: Run) -> None:
    ids = [boot_id(name) for name in HOSTS]
    assert prepare().must().changed == []
    assert [boot_id(name) for name in HOSTS] == ids


def test_vfs_are_resized_but_never_under_a_user(prepared: Run) -> None:
    four = vfs("lab-1")
    prepare("--tags", "sriov", sriov_vfs=7).must()
    seven = vfs("lab-1")
    assert {rail: macs[:4] for rail, macs in seven.items()} == four
    assert len({mac for macs in seven.values() for mac in macs}) == 14
    too_many = prepare("--tags", "sriov", sriov_vfs=8)
    assert too_many.rc != 0 and "(rail0) supports 7 VFs, 8 requested" in too_many.output
    netdev = host("lab-2").check_output(f"ls /sys/bus/pci/devices/{PCI['rail1']}/virtfn3/net")
    host("lab-2").check_output(f"ip address add 192.0.2.1/24 dev {netdev}")
    used = prepare("--tags", "sriov", sriov_vfs=2)
    assert used.rc != 0 and "VF 3" in used.output and "192.0.2.1" in used.output
    assert vfs("lab-2") and {len(macs) for macs in vfs("lab-2").values()} == {7}
    host("lab-2").check_output(f"ip address delete 192.0.2.1/24 dev {netdev}")
    prepare("--tags", "sriov", sriov_vfs=2).must()
    assert vfs("lab-1") == {rail: macs[:2] for rail, macs in four.items()}


def test_everything_is_there_again_after_a_power_cut(prepared: Run) -> None:
    lab("fault", "cut", "lab-2")
    is_as_wished("lab-2", 2)
    assert prepare("--limit", "lab-2", sriov_vfs=2).must().changed == []


def test_packages_of_a_vendor(source: dict[str, Any], prepared: Run) -> None:
    """On one host: what is wrong changes nothing; then the pinned version, another provider, and all as before."""
    machine, others = host("lab-3"), {"sriov_vfs": 2, **source["wishes"]}
    only = ("--limit", "lab-3", "--tags", "rdma_stack")
    at_first = host_state("lab-3")
    for wrong, expected in (
        (source["other"], "NO_PUBKEY|signature"),
        ({"rdma_stack_doca_fingerprint": "0" * 40}, "fingerprint"),
        ({"rdma_stack_doca_version": "9.9.9"}, VERSION),
        ({"rdma_stack_doca_build": "dkms"}, "headers"),
        ({"rdma_stack_doca_supported": {"debian13": ["5.10."]}}, "5.10."),
    ):
        run = prepare(*only, **{**others, **wrong})
        assert run.rc != 0
        assert any(word in run.output for word in expected.split("|")), run.output[-3000:]
        assert host_state("lab-3") == at_first
    prepare(*only, **others).must()
    assert machine.check_output("dpkg-query -W -f '${Version}' doca-ofed") == VERSION
    assert machine.check_output("apt-mark showhold") == "doca-ofed"
    assert prepare(*only, **others).must().changed == []
    prepare(*only, sriov_vfs=2, rdma_stack_replace=True).must()
    assert host_state("lab-3") == at_first


def test_a_host_that_does_not_come_back_stops_the_batches(prepared: Run) -> None:
    ids = {name: boot_id(name) for name in HOSTS}
    thread = threading.Thread(target=kill_when_rebooting, args=("lab-1", ids["lab-1"]))
    thread.start()
    run = prepare(host_reboot_allowed=True, host_reboot_batch=1, host_reboot_timeout=60, **MORE)
    thread.join()
    assert run.rc != 0
    assert "lab-1" in run.output
    assert {name: boot_id(name) for name in HOSTS[1:]} == {name: ids[name] for name in HOSTS[1:]}
    (node,) = [item for item in cluster().get("/api/v1/nodes")["items"] if item["metadata"]["name"] == "lab-1"]
    assert node["spec"]["unschedulable"]
    assert "panic=10" in node["metadata"]["annotations"]["gpufabric.rdma/reboot"]


def kill_when_rebooting(name: str, old: str) -> None:
    """Kill a host once it is on its way down: its ssh answers no more, or from a new boot."""
    deadline = time.monotonic() + 600
    while time.monotonic() < deadline:
        if boot_id_or_none(name) != old:
            lab("fault", "dead", name)
            return
        time.sleep(1)


def boot_id_or_none(name: str) -> str | None:
    try:
        return boot_id(name)
    except (AssertionError, RuntimeError):
        return None


def test_the_next_run_goes_on_from_there(prepared: Run) -> None:
    """lab-1 comes back as it was in the snapshot."""
    lab("heal")
    host("lab-1").check_output("truncate --size 0 /etc/apt/sources.list")
    prepare(host_reboot_allowed=True, host_reboot_batch=3, **MORE).must()
    for name in HOSTS:
        is_as_wished(name, 2)
        assert "panic=10" in host(name).check_output("cat /proc/cmdline").split()
    test_nodes_are_in_service_again(prepared)


@pytest.fixture(scope="module")
def torn_down(prepared: Run) -> Run:
    consent = extra(host_reboot_allowed=True, host_reboot_batch=3)
    return playbook("teardown", *consent, "--tags", "teardown_hosts").must()


@pytest.mark.parametrize("name", HOSTS)
def test_teardown_brings_everything_back(name: str, before: dict[str, Any], torn_down: Run) -> None:
    assert host_state(name) == before[name]
    assert "quiet" in host(name).check_output("cat /proc/cmdline").split()
