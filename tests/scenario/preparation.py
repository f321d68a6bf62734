"""A preparation with everything that the lab's hosts can have: its wishes, what a host then has, power cuts in it."""

from __future__ import annotations

import json
import re
import threading
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from tests.scenario import TRACEBACK, Run, extra, host, lab, playbook
from tests.scenario.state import cluster, files

WISHES: dict[str, Any] = {
    "host_kernel_arguments": ["transparent_hugepage=madvise"],
    "host_kernel_arguments_absent": ["quiet"],
    "host_kernel_hugepages": [{"size": "2M", "count": 16}],
    "host_kernel_sysctl": {"net.core.rmem_max": "16777216"},
    "rail_names_apply": "boot",
    "rail_names_vfs": True,
    "sriov_vfs": 4,
    "rail_links_qos": {"roce": "v2", "dscp": 26, "rings": {"rx": 512}},
    "host_reboot_batch": 2,
}
PCI = {"rail0": "0000:01:00.0", "rail1": "0000:02:00.0"}
REBOOT = "Reboot the host and wait for it"
# What the product writes anew while it works: what was there before it, and why a host waits for a reboot.
RECORDS = "/var/lib/gpufabric/"


def prepare(*args: str, check: bool = False, **wishes: Any) -> Run:
    """Run prepare with WISHES, and others in their place."""
    run = playbook("prepare", *extra(**{**WISHES, **wishes}), *args, *(["--check", "--diff"] if check else []))
    assert not TRACEBACK.search(run.output), run.output[-6000:]
    return run


@dataclass(frozen=True)
class Cut:
    """A preparation in which the power of its host failed.

    before, after: the host's files with their digests; damaged: what cannot be read of its records, "" when all can.
    """

    run: Run
    before: dict[str, str]
    after: dict[str, str]
    damaged: str


def cut_in(name: str, wishes: Mapping[str, Any], wait: Callable[[], None]) -> Cut:
    """Begin to prepare a host alone, wait, and cut its power."""
    before = files(name)
    thread = threading.Thread(target=lambda: (wait(), lab("fault", "cut", name)))
    thread.start()
    run = playbook("prepare", *extra(**wishes), "--limit", name)
    thread.join()
    return Cut(run, before, files(name), damaged_records(name))


def first_record(name: str) -> None:
    """Wait until a preparation has noted what was there before its first change."""
    deadline = time.monotonic() + 600
    while not host(name).run(f"ls {RECORDS}").stdout:
        assert time.monotonic() < deadline, f"{name}: no record of a change in {RECORDS}"
        time.sleep(1)


def unfinished(cut: Cut, prepared: Mapping[str, str]) -> list[str]:
    """Files that are neither as before nor as on the prepared host; drafts, whose suffix nothing reads, aside."""
    known = {*cut.before.items(), *prepared.items()}
    aside = [path for path in cut.after if path.startswith(RECORDS) or path.endswith(".gpufabric-new")]
    return sorted(path for path, digest in cut.after.items() if (path, digest) not in known and path not in aside)


def damaged_records(name: str) -> str:
    """What cannot be read of a host's records, in the words of a JSON parser; "" when all can."""
    parse = f"find {RECORDS} -name '*.json' -exec python3 -m json.tool {{}} /dev/null ';'"
    return str(host(name).run(f"test ! -d {RECORDS} || {parse}").stderr)


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
    for rail, pci in PCI.items():
        for number in range(count):
            assert machine.check_output(f"ls /sys/bus/pci/devices/{pci}/virtfn{number}/net") == f"{rail}v{number}"
        assert re.search(r"Current.*RX:\s+512\n", machine.check_output(f"ethtool -g {rail}"), re.DOTALL)
    assert machine.check_output("rdma link show").count("state ACTIVE") == 2
    for device in machine.check_output("ls /sys/class/infiniband").split():
        assert connection_manager(name, device) == ["106", "RoCE v2"]  # DSCP 26, and ECN may be marked


def connection_manager(name: str, device: str) -> list[str]:
    """Type of service and RoCE version by which RDMA-CM connects; the kernel shows them to who makes a folder."""
    folder = f"/sys/kernel/config/rdma_cm/{device}"
    files = f"{folder}/ports/1/default_roce_tos {folder}/ports/1/default_roce_mode"
    found: str = host(name).check_output(f"mkdir -p {folder} && cat {files}")
    return found.split("\n")


def in_service() -> bool:
    """Whether the nodes take pods, and nothing of a reboot is noted at them."""
    nodes = cluster().get("/api/v1/nodes")["items"]
    notes = [key for node in nodes for key in node["metadata"].get("annotations", {}) if key.startswith("gpufabric")]
    return not notes and not any(node["spec"].get("unschedulable") for node in nodes)
