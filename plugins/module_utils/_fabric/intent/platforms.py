# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The platforms (``rdma_fabric.operator.platform``): everything in which OpenShift differs from other Kubernetes.

Sources of the values are in docs/openshift.md.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from ..._common.errors import InputError
from ..._common.reader import Form, Reader, describe


@dataclass(frozen=True)
class Catalog:
    """Where the Operator Lifecycle Manager (OLM) finds a package."""

    package: str
    source: str
    namespace: str = "openshift-marketplace"

    def __str__(self) -> str:
        """Return how messages name it."""
        return f"package {self.package} of catalog {self.source}"


@dataclass(frozen=True)
class Platform:
    """One kind of cluster.

    ``group``: the API group that only its clusters serve; empty for any other cluster.
    ``catalog``: the operator is installed by OLM from there; None for the vendor's chart.
    ``operators``: those of the platform that this collection needs and does not install -> their packages.
    ``brings``: option of ``rdma_fabric.operator`` -> what the platform has of its own instead, so it is false.
    ``sriov_namespace``: that of the SR-IOV operator; empty for that of the network operator, which then brings it.
    ``sriov_domain``: the prefix of the SR-IOV operator's resources.
    ``shared_namespaces``: pods can use networks of their own namespace and of these; empty for networks of any.
    ``tester_role``: the ClusterRole that admits the testers' pods; empty where none is needed.
    ``machines``: hosts are configured by objects of the cluster (MachineConfig), not by the roles for hosts.
    """

    name: str
    title: str
    group: str = ""
    catalog: Catalog | None = None
    operators: Mapping[str, Catalog] = field(default_factory=dict)
    brings: Mapping[str, str] = field(default_factory=dict)
    sriov_namespace: str = ""
    sriov_domain: str = "nvidia.com/"
    shared_namespaces: tuple[str, ...] = ()
    tester_role: str = ""
    machines: bool = False

    def __str__(self) -> str:
        """Return the name, as the user gives it."""
        return self.name

    def sriov_in(self, namespace: str) -> str:
        """Return the namespace of the SR-IOV operator, with that of the network operator."""
        return self.sriov_namespace or namespace

    def network_problem(self, networks: str, pods: str) -> str:
        """Return why pods of one namespace cannot use networks of another; empty when they can."""
        if not self.shared_namespaces or networks in (pods, *self.shared_namespaces):
            return ""
        return (
            f"{self.title} lets pods use networks of their own namespace and of {self.shared_namespaces[0]} only, and"
            f" rdma_fabric.network_namespace is {networks}"
        )


PLATFORMS: dict[str, Platform] = {
    platform.name: platform
    for platform in (
        Platform("kubernetes", "Kubernetes"),
        Platform(
            "openshift",
            "OpenShift",
            group="config.openshift.io",
            catalog=Catalog("nvidia-network-operator", "certified-operators"),
            operators={
                "nfd": Catalog("nfd", "redhat-operators"),
                "sriov": Catalog("sriov-network-operator", "redhat-operators"),
            },
            brings={
                "nfd": "the Node Feature Discovery Operator of Red Hat",
                "multus": "Multus",
                "cni_plugins": "the CNI plugins",
            },
            sriov_namespace="openshift-sriov-network-operator",
            sriov_domain="openshift.io/",
            shared_namespaces=("default", "openshift-multus", "openshift-sriov-network-operator", "openshift-cnv"),
            tester_role="system:openshift:scc:privileged",
            machines=True,
        ),
    )
}
DEFAULT = "kubernetes"
_POOL = Form(r"[a-z0-9]([a-z0-9-]{0,61}[a-z0-9])?", "the name of a MachineConfigPool, such as worker")


def get(name: str) -> Platform:
    """Return the platform of a name; the default for an empty one."""
    found = PLATFORMS.get(name or DEFAULT)
    if found is None:
        raise InputError(f"platform: expected one of {', '.join(PLATFORMS)}, found {describe(name)}")
    return found


def of_sriov(namespace: str) -> Platform:
    """Return the platform on which the SR-IOV operator is in this namespace."""
    found = [platform for platform in PLATFORMS.values() if platform.sriov_namespace == namespace]
    return found[0] if found else PLATFORMS[DEFAULT]


def variants(prefix: str) -> tuple[str, ...]:
    """Return a prefix of resources as it is on every platform."""
    default = PLATFORMS[DEFAULT].sriov_domain
    if not prefix.startswith(default):
        return (prefix,)
    return tuple(platform.sriov_domain + prefix[len(default) :] for platform in PLATFORMS.values())


def read_platform(reader: Reader) -> tuple[Platform, str]:
    """Return the platform, and the MachineConfigPool of the hosts."""
    own = get(reader.text("platform", DEFAULT, choices=tuple(PLATFORMS)))
    pool = reader.text("machine_pool", "worker", form=_POOL)
    if "machine_pool" in reader and not own.machines:
        reader.refuse("machine_pool", f"is not used with platform {own.name}. Remove machine_pool")
    return own, pool


def brought(platform: Platform, reader: Reader, option: str) -> bool:
    """Return whether this collection installs what an option names: not where the platform has its own."""
    own = platform.brings.get(option)
    wanted = bool(reader.flag(option, own is None))
    if own and wanted:
        reader.refuse(option, f"{platform.title} has {own}, and a second one would conflict. Remove {option}")
    return wanted
