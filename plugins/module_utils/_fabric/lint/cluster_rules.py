# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Rules for what is beside the policies on a cluster: labels of Nodes, NFD, the GPU Operator, disruption budgets."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Mapping
from typing import Any

from ..._common.reader import some
from ..operator.nodes import NIC_LABEL_NAME
from .objects import Objects, at, label, number, text
from .policy_rules import IMAGES, KINDS, PLUGINS
from .rule import ERROR, WARNING, Found, Rule
from .sriov_rules import drains

_NFD = "node-feature-discovery"
_NIC_COMPONENTS = ("ofedDriver", *PLUGINS)
_GPU_API = "nvidia.com/"
_MAINTENANCE = "maintenance.nvidia.com"


def _node_label(objects: Objects) -> Iterator[Found]:
    nodes = objects.of("Node") if objects.complete else []
    if not nodes or any(text(node, "metadata", "labels", NIC_LABEL_NAME) == "true" for node in nodes):
        return
    for policy in objects.of(*KINDS):
        if any(isinstance(at(policy, "spec", section), Mapping) for section in _NIC_COMPONENTS):
            yield Found(
                label(policy),
                f"No Node has the label {NIC_LABEL_NAME}=true. Install Node Feature Discovery with the rule of the"
                " operator, or set the label on the nodes with these NICs",
            )


def _nfd_twice(objects: Objects) -> Iterator[Found]:
    masters = [
        deployment
        for deployment in objects.of("Deployment")
        if text(deployment, "metadata", "labels", "app.kubernetes.io/name") == _NFD
        and "master" in (text(deployment, "metadata", "labels", "role"), text(deployment, "metadata", "name")[-6:])
    ]
    if len({text(master, "metadata", "namespace") for master in masters}) > 1:
        yield Found(
            label(masters[1]),
            f"{label(masters[0])} is a master of Node Feature Discovery, too. Keep one, and set nfd.enabled: false in"
            " the values of the other chart",
        )


def _gpu_driver(objects: Objects) -> Iterator[Found]:
    drivers = [one for one in objects.of(*KINDS) if isinstance(at(one, "spec", "ofedDriver"), Mapping)]
    for policy in objects.of("ClusterPolicy"):
        driver, rdma = (at(policy, "spec", "driver", *path) for path in ((), ("rdma",)))
        enabled = at(rdma, "enabled") is True and at(driver, "enabled") is not False
        if not (enabled and text(policy, "apiVersion").startswith(_GPU_API)):
            continue
        on_host = at(rdma, "useHostMofed") is True
        if drivers and on_host:
            yield Found(
                label(policy),
                f"spec.driver.rdma.useHostMofed is true, but {label(drivers[0])} has ofedDriver. Set it to false",
            )
        elif objects.complete and not drivers and not on_host:
            yield Found(
                label(policy),
                "spec.driver.rdma.enabled is true without useHostMofed, but no policy has ofedDriver. Set useHostMofed"
                " if the hosts have DOCA-OFED, otherwise set enabled to false",
            )


def _maintenance(objects: Objects) -> Iterator[Found]:
    if not objects.groups or _MAINTENANCE in objects.groups:
        return
    for policy in objects.of("NicClusterPolicy"):
        if isinstance(at(policy, "spec", "nicConfigurationOperator"), Mapping):
            yield Found(
                label(policy),
                f"It has nicConfigurationOperator, but the cluster does not serve {_MAINTENANCE}. Install the"
                " maintenance operator, with maintenanceOperator.enabled: true in the values of the chart",
            )


def _budgets(objects: Objects) -> Iterator[Found]:
    if not _something_drains(objects):
        return
    for budget in objects.of("PodDisruptionBudget"):
        status = at(budget, "status")
        expected, healthy = number(status, "expectedPods"), number(status, "currentHealthy")
        # With a pod that is not healthy, the budget may permit an eviction later.
        if expected and healthy is not None and healthy >= expected and number(status, "disruptionsAllowed") == 0:
            yield Found(
                label(budget),
                f"All {expected} pods are healthy, and it permits no eviction. Permit one, or move the pods before",
            )


def _something_drains(objects: Objects) -> bool:
    upgrades = [at(policy, "spec", "ofedDriver", "upgradePolicy") for policy in objects.of(*KINDS)]
    by_driver = any(at(one, "autoUpgrade") is True and at(one, "drain", "enable") is True for one in upgrades)
    return by_driver or bool(objects.of("SriovNetworkNodePolicy") and drains(objects) is not False)


def _pull_secrets(objects: Objects) -> Iterator[Found]:
    for policy in objects.of(*KINDS):
        if at(policy, "spec", "global", "imagePullSecrets"):
            continue
        sections: dict[str, list[tuple[str, Any]]] = defaultdict(list)
        for path in IMAGES:
            section = at(policy, "spec", *path)
            if isinstance(section, Mapping) and text(section, "repository"):
                sections[text(section, "repository")].append(
                    (f"spec.{'.'.join(path)}", at(section, "imagePullSecrets"))
                )
        for repository, found in sections.items():
            bare = [place for place, secrets in found if not secrets]
            if 0 < len(bare) < len(found):
                yield Found(
                    label(policy),
                    f"{some(bare)}: no imagePullSecrets, but another section with the repository {repository} has them."
                    " Set them in each section",
                )


_OPERATOR, _CLUSTER = "network-operator", "a cluster"
RULES = (
    Rule("node-label", ERROR, "Its pods run on no node", f"{_OPERATOR} #211, #439", _node_label, _CLUSTER),
    Rule(
        "nfd-twice",
        WARNING,
        "Each removes labels that the other has set",
        f"{_OPERATOR} #833, #1212",
        _nfd_twice,
        "Deployments",
    ),
    Rule(
        "gpu-driver",
        ERROR,
        "Pods of the GPU driver wait for another driver of the NICs",
        "gpu-operator #448, #588",
        _gpu_driver,
        "the ClusterPolicy of the GPU Operator",
    ),
    Rule(
        "nic-maintenance",
        WARNING,
        "The NIC configuration daemon may not start",
        "NVIDIA's known issues",
        _maintenance,
        _CLUSTER,
    ),
    Rule(
        "drain-budget",
        WARNING,
        "A drain that evicts its pods does not end",
        "sriov-network-operator #306, #718",
        _budgets,
        "PodDisruptionBudgets",
    ),
    Rule("pull-secrets", WARNING, "Nodes may not pull these images", "NVIDIA's known issues", _pull_secrets),
)
