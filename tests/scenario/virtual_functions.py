"""The real SR-IOV operator in the lab: playbooks of its network model, what hosts and nodes have, a pod with a VF.

Emulated VFs have no RDMA of their own, and no CNI plugin puts one into a pod here: pods only hold the resource.
"""

from __future__ import annotations

import json
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from typing import Any

from tests.scenario import FABRIC, HOSTS, TRACEBACK, Run, extra, host, playbook
from tests.scenario.preparation import PCI
from tests.scenario.state import cluster, names

SPACE = "/api/v1/namespaces/nvidia-network-operator"
GROUP = "/apis/sriovnetwork.openshift.io/v1/namespaces/nvidia-network-operator"
RESOURCE = "nvidia.com/vf_"
# Emulated processors start a pod in a minute when all of them start one. Two polls in a row are enough here.
SLOW = {"nic_cluster_policy_timeout": 1200, "network_operator_timeout": 1200, "nic_cluster_policy_stable": 2}
# What VFs do not need would only start more pods; each operator runs on a host of its own, beside that with the VFs.
LEAN = {
    "profile": "sriov",
    "operator": {**FABRIC["operator"], "cni_plugins": False, "multus": False},
    "pools": {"ipam": "none"},
}
ELSEWHERE = {"operator": {"nodeSelector": {"kubernetes.io/hostname": HOSTS[2]}}}
VALUES = {**ELSEWHERE, "sriov-network-operator": {"operator": {"nodeSelector": {"kubernetes.io/hostname": HOSTS[1]}}}}
# The cluster has a Multus of its own, which runs on no node: pods attach no network here.
_MULTUS = {
    "apiVersion": "apps/v1",
    "kind": "DaemonSet",
    "metadata": {"name": "multus"},
    "spec": {
        "selector": {"matchLabels": {"app": "multus"}},
        "template": {
            "metadata": {"labels": {"app": "multus"}},
            "spec": {
                "nodeSelector": {"lab": "none"},
                "containers": [{"name": "multus", "image": "registry.lab/multus:1"}],
            },
        },
    },
}
_DAEMON_SETS = "/apis/apps/v1/namespaces/default/daemonsets"
_PODS = "/api/v1/namespaces/default/pods"
_PATIENCE = 300


def play(
    name: str, inventory: str, *args: str, rails: int = 2, variables: Mapping[str, Any] | None = None, **sriov: Any
) -> Run:
    """Run a playbook with VFs of emulated NICs; `sriov`: keys of that section of the intent."""
    if not [name for name in names(_DAEMON_SETS) if name.endswith("/multus")]:
        cluster().post(_DAEMON_SETS, _MULTUS)
    chosen = [{"name": rail, "pci": [pci]} for rail, pci in PCI.items()][:rails]
    wanted = {**LEAN, "rail_count": rails, "rails": chosen, "sriov": {"rdma": False, **sriov}}
    others = {**SLOW, "network_operator_values": VALUES, **(variables or {})}
    run = playbook(name, *extra(wanted, **others), *args, inventory=inventory, timeout=1800)
    assert not TRACEBACK.search(run.output), run.output[-6000:]
    return run


def resize(inventory: str, **given: Any) -> Run:
    """Change the policies alone."""
    return play("deploy", inventory, "--tags", "nic_cluster_policy", **given)


def said(run: Run) -> str:
    """What a run printed, in one line."""
    return " ".join(run.output.split())


def waited(run: Run) -> float:
    """How long a run waited for the policy, in seconds."""
    (row,) = [row for row in run.tasks if "Wait until the policy is ready" in row["task"] and not row.get("skipped")]
    return float(row["seconds"])


def ports(name: str) -> dict[str, tuple[int, int, list[str]]]:
    """VFs, MTU and addresses of each rail of a host."""
    links = {link["ifname"]: link for link in json.loads(host(name).check_output("ip -json address show"))}
    return {
        rail: (
            int(host(name).check_output(f"cat /sys/bus/pci/devices/{pci}/sriov_numvfs")),
            links[rail]["mtu"],
            sorted(address["local"] for address in links[rail]["addr_info"] if address["family"] == "inet"),
        )
        for rail, pci in PCI.items()
        if rail in links
    }


def allocatable(name: str) -> dict[str, int]:
    """How many VFs of each rail a node offers."""
    offered: Mapping[str, str] = cluster().get(f"/api/v1/nodes/{name}")["status"]["allocatable"]
    return {key[len(RESOURCE) :]: int(count) for key, count in offered.items() if key.startswith(RESOURCE)}


@contextmanager
def holder(node: str) -> Iterator[Callable[[], str]]:
    """A pod that holds a VF of rail0 of a node; gives the function that tells its phase."""
    limits = {"limits": {f"{RESOURCE}rail0": "1"}}
    container = {"name": "holder", "image": "registry.lab/pause:1", "resources": limits}
    spec = {"nodeName": node, "hostNetwork": True, "terminationGracePeriodSeconds": 1, "containers": [container]}
    cluster().post(_PODS, {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "holder"}, "spec": spec})
    deadline = time.monotonic() + _PATIENCE
    while phase_of_holder() != "Running":
        assert time.monotonic() < deadline, f"pod holder is {phase_of_holder()}, expected Running"
        time.sleep(1)
    yield phase_of_holder
    if phase_of_holder() != "gone":
        cluster().delete(f"{_PODS}/holder")


def phase_of_holder() -> str:
    """The phase of the pod, `gone` when it is not there."""
    found = [pod for pod in cluster().get(_PODS)["items"] if pod["metadata"]["name"] == "holder"]
    return str(found[0]["status"].get("phase")) if found else "gone"
