# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Everything about a cluster that stops a run, found before the first change and said at once."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from ..._common.reader import some
from ..._fabric.intent.platforms import DEFAULT, PLATFORMS, Platform
from ..._fabric.intent.releases import LINES, line_of
from ..._fabric.operator.nodes import NIC_LABEL


@dataclass(frozen=True)
class Aim:
    """What is requested: release, its namespace, whether its chart brings NFD, labels that we set.

    ``installs``: whether the chart is installed, or an operator is used that is there. ``multus``: whether the policy
    installs Multus. ``platform``: the kind of cluster.
    """

    release: str
    namespace: str
    nfd: bool
    labels: Mapping[str, str]
    installs: bool = True
    multus: bool = True
    platform: Platform = PLATFORMS[DEFAULT]


@dataclass(frozen=True)
class Found:
    """What the cluster has (shapes: survey.py) and which nodes the hosts are."""

    version: str
    numbers: tuple[int, int] | None
    nodes: Sequence[Mapping[str, Any]]
    hosts: Mapping[str, str]
    discoveries: Sequence[Mapping[str, Any]]
    multuses: Sequence[Mapping[str, Any]]


def problems(aim: Aim, found: Found) -> Iterator[str]:
    """Yield every problem, each with what to do."""
    yield from _version(aim, found)
    yield from _nodes(found)
    yield from _discovery(aim, found)
    yield from _multus(aim, found)


def _multus(aim: Aim, found: Found) -> Iterator[str]:
    others = [item for item in found.multuses if item["namespace"] != aim.namespace]
    if "multus" in aim.platform.brings:
        return
    if not aim.multus and not others:
        yield (
            "rdma_fabric.operator.multus is false, but no DaemonSet of the cluster runs Multus. Install it, or set"
            " rdma_fabric.operator.multus to true"
        )
    for item in others if aim.multus else ():
        yield (
            f"Multus runs already as DaemonSet {item['namespace']}/{item['name']}, and the policy would install a"
            " second one that changes the same CNI configuration. Set rdma_fabric.operator.multus to false to use the"
            " installed one"
        )


def _version(aim: Aim, found: Found) -> Iterator[str]:
    line = line_of(aim.release)
    if line is None:
        yield (
            f"release {aim.release} of the network operator is not supported. Supported release lines:"
            f" {', '.join(LINES)}. Set rdma_fabric.operator.release to one of them"
        )
    elif found.numbers and found.numbers < line.min_kubernetes:
        wanted = ".".join(map(str, line.min_kubernetes))
        yield (
            f"the API server is {found.version}; release {aim.release} of the operator needs {wanted} or newer,"
            " upgrade the cluster or choose an older release"
        )


def _nodes(found: Found) -> Iterator[str]:
    ready = {node["name"] for node in found.nodes if node["ready"]}
    for host, node in found.hosts.items():
        if node not in ready:
            yield f"Node {node} (host {host}) is not Ready. Check its kubelet, or take the host out of the run"


def platform(desired: str, actual: str) -> Iterator[str]:
    """Yield that the cluster is of another kind than ``rdma_fabric.operator.platform`` says."""
    if desired != actual:
        group = (PLATFORMS[actual] if PLATFORMS[actual].group else PLATFORMS[desired]).group
        yield (
            f"the cluster is {PLATFORMS[actual].title} (API group {group}:"
            f" {'served' if group == PLATFORMS[actual].group else 'not served'}), and rdma_fabric.operator.platform is"
            f" {desired}. Set it to {actual}, or correct the kubeconfig"
        )


def policy(existing: str, policies: Sequence[Mapping[str, Any]]) -> Iterator[str]:
    """Yield a problem for each policy (shape: survey.objects) of others that may be neither used nor adopted."""
    for item in policies:
        if not item["ours"] and existing == "refuse":
            yield (
                f"NicClusterPolicy {item['name']} is not managed by this collection. Set rdma_fabric.operator.existing"
                " to use (it stays as it is, and must offer the resources of all rails) or to adopt (this collection"
                " changes it, and removes it at teardown)"
            )


def _discovery(aim: Aim, found: Found) -> Iterator[str]:
    brings = aim.nfd and aim.installs
    others = [item for item in found.discoveries if not aim.installs or item["namespace"] != aim.namespace]
    if brings and others:
        names = ", ".join(f"{item['namespace']}/{item['name']}" for item in others)
        yield (
            f"Node Feature Discovery runs already ({names}), and the chart would install a second one;"
            " set rdma_fabric.operator.nfd to false"
        )
    own = "nfd" in aim.platform.brings
    if brings or (others and not own) or NIC_LABEL.items() <= aim.labels.items():
        return
    fabric = set(found.hosts.values())
    bare = [n["name"] for n in found.nodes if n["name"] in fabric and not NIC_LABEL.items() <= n["labels"].items()]
    label = ", ".join(NIC_LABEL)
    if bare and own:
        running = "runs" if others else "does not run"
        yield (
            f"nodes without the label {label}: {some(sorted(bare))}. On {aim.platform.title},"
            f" {aim.platform.brings['nfd']} sets it, and its master {running}. Install"
            f" {aim.platform.operators['nfd']}, channel stable, in namespace openshift-nfd, and create a"
            " NodeFeatureDiscovery with deviceLabelFields: [vendor] for the PCI source (docs/openshift.md), or give"
            " the label in rdma_fabric.node_labels"
        )
    elif bare:
        yield (
            f"Node Feature Discovery is missing, and these nodes have no label {label}: {', '.join(sorted(bare)[:8])};"
            " set rdma_fabric.operator.nfd to true, or give the label in rdma_fabric.node_labels"
        )
