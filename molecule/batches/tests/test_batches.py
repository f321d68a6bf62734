"""Reboots of several hosts in batches, one that does not come back, and packages of a vendor: a step of `make soak`.

Each test goes on where the last one ended.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Iterator
from typing import Any

import pytest
from tests.scenario import HOSTS, Run, extra, host, lab, playbook
from tests.scenario.aptrepo import Key, Stub, build, served
from tests.scenario.preparation import REBOOT, WISHES, boot_id, in_service, is_as_wished, prepare
from tests.scenario.state import cluster, host_state

VERSION = "3.2.1-044000"
# Another reason to reboot.
MORE: dict[str, Any] = {"host_kernel_arguments": [*WISHES["host_kernel_arguments"], "log_buf_len=1M"]}


@pytest.fixture(scope="module")
def before() -> dict[str, Any]:
    """Hosts as the lab's snapshot leaves them; that of the packages at a site without the Internet."""
    host("lab-3").check_output("truncate --size 0 /etc/apt/sources.list")
    return {name: host_state(name) for name in HOSTS}


@pytest.fixture(scope="module")
def prepared(before: dict[str, Any]) -> Run:
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


@pytest.mark.parametrize("name", HOSTS)
def test_each_host_is_rebooted_once(name: str, prepared: Run) -> None:
    assert [row["host"] for row in prepared.tasks if REBOOT in row["task"]].count(name) == 1
    is_as_wished(name, 4)
    assert in_service()


def test_packages_of_a_vendor(source: dict[str, Any], prepared: Run) -> None:
    """On one host: what is wrong changes nothing; then the pinned version, another provider, and all as before."""
    machine, others = host("lab-3"), source["wishes"]
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
    prepare(*only, rdma_stack_replace=True).must()
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
    said = node["metadata"]["annotations"]["gpufabric.rdma/reboot"]
    assert "Reboot the host and wait for it: Timed out" in said


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
    prepare(host_reboot_allowed=True, host_reboot_batch=3, **MORE).must()
    for name in HOSTS:
        is_as_wished(name, 4)
        assert "log_buf_len=1M" in host(name).check_output("cat /proc/cmdline").split()
    assert in_service()


@pytest.fixture(scope="module")
def torn_down(prepared: Run) -> Run:
    consent = extra(host_reboot_allowed=True, host_reboot_batch=3)
    return playbook("teardown", *consent, "--tags", "teardown_hosts").must()


@pytest.mark.parametrize("name", HOSTS)
def test_teardown_brings_everything_back(name: str, before: dict[str, Any], torn_down: Run) -> None:
    assert host_state(name) == before[name]
    assert "quiet" in host(name).check_output("cat /proc/cmdline").split()
