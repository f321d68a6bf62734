# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What a network model (``rdma_fabric.profile``) decides: everything in which one differs from another.

Each file beside this one has one ``Profile`` value, and registry.py lists them. The plan, the cluster checks, the wait
and the testers ask the registry.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Callable, Optional

from ...intent.intent import Intent
from ...intent.releases import Line
from ..readiness import Readiness

Object = Mapping[str, Any]
Rails = Sequence[Mapping[str, Any]]
# The object, the NetworkAttachmentDefinition that the operator made of it (None: not there), and the fabric's nodes.
Ready = Callable[[Object, Optional[Object], Collection[str]], Readiness]
# The objects as they were applied, the report of one node on them (None: not there), and that node's name.
NodeReady = Callable[[Sequence[Object], Optional[Object], str], Readiness]


@dataclass(frozen=True)
class NodeReport:
    """A kind in which the operator reports for each node what became of a model's objects, under the node's name.

    ``ready`` judges the report of one node; ``released``, with removed objects, whether the node still has what they
    made. It is in the namespace of those objects, as is the DaemonSet ``agent`` that does the work; its name is also
    that of its container and its label ``app``. ``after``: what a removal changes on nodes beside that.

    ``lacks``: what an agent must report before objects come, empty text when it has. ``works``, ``boots``: whether it
    is at work on a node, or waits for its reboot. ``complaint``: from the end of its log and its report, the failure
    that it repeats, or "". ``marks``: labels and annotations that the operator leaves on Nodes.
    """

    api_version: str
    plural: str
    ready: NodeReady
    released: NodeReady
    lacks: Callable[[Object | None, str], str]
    works: Callable[[Object | None], bool]
    boots: Callable[[Object | None], bool]
    complaint: Callable[[str, Object], str]
    agent: str
    after: str
    marks: tuple[str, ...] = ()


@dataclass(frozen=True)
class Kind:
    """A Kubernetes kind whose objects a model adds to the plan.

    A namespaced one lives in the operator's namespace, or in that of the networks when it is ``for_pods``.
    ``by_sriov``: a namespaced one that lives in the namespace of the SR-IOV operator, which not every platform has in
    that of the network operator.
    ``patched``: objects of it exist before; they are changed, and neither created nor deleted.
    ``optional``: plans have objects of it with some options only, and others need no permission for it.
    ``ready`` judges an object that exists. ``attaches``: the operator makes a NetworkAttachmentDefinition of each
    object, in the namespace of ``spec.networkNamespace``. ``step``: the part of a run that applies it, ``policy`` or
    ``networks``. ``report``: where the operator tells for each node what became of them.
    """

    api_version: str
    kind: str
    plural: str
    ready: Ready
    namespaced: bool = False
    for_pods: bool = False
    by_sriov: bool = False
    optional: bool = False
    patched: bool = False
    attaches: bool = False
    step: str = "networks"
    report: NodeReport | None = None

    @property
    def group(self) -> str:
        """The API group."""
        return self.api_version.partition("/")[0]


@dataclass(frozen=True)
class Mtu:
    """MTU of the rails of a model, unless ``rdma_fabric.mtu`` is set, and the largest possible one."""

    default: int = 9000
    most: int = 16384


# Datagram mode: the frames of InfiniBand, 2048 or 4096 bytes, less a header of 4. The partition of the subnet manager
# decides which. Drivers of ConnectX-4 and newer have no connected mode.
INFINIBAND_MTU = Mtu(default=2044, most=4092)


def mtu_warning(intent: Intent) -> str:
    """Return what an MTU of InfiniBand rails needs of others; empty text for nothing."""
    if intent.mtu is None or intent.mtu <= INFINIBAND_MTU.default:
        return ""
    return (
        f"an MTU of {intent.mtu} requires that the subnet manager gives the partition an MTU of 4096; otherwise the"
        f" link stays at {INFINIBAND_MTU.default}"
    )


def vf_warning(port: Object, settings: str, *, mtu: int, why: str = "") -> str:
    """Return what the hypervisor must set for a port that is a VF of its card, empty text for another port.

    ``settings``: those of the VF, as words of ``ip link set``; ``why`` they are needed.
    """
    if port["passthrough"] != "vf":
        return ""
    return (
        "the port is a virtual function (VF) that the hypervisor passed through, whose settings cannot be read in the"
        f" virtual machine{why}. On the hypervisor, run 'ip link set PF mtu {mtu}' and 'ip link set PF vf N {settings}'"
        " for the VF that 'ip link show' lists with the MAC address of the port"
    )


def attachment(rail: Mapping[str, Any], namespace: str) -> str:
    """Return the name of a rail's NetworkAttachmentDefinition as Multus takes it."""
    return f"{namespace}/{rail['network']}"


def no_policies(intent: Intent, rails: Rails) -> list[dict[str, Any]]:
    """Return no objects: most models need none beside the NicClusterPolicy."""
    return []


def no_values(intent: Intent) -> dict[str, Any]:
    """Return no values: most models run with the operator's chart as it is."""
    return {}


def no_warning(intent: Intent, port: Object) -> str:
    """Return that there is nothing to know about a port."""
    return ""


def no_host_vfs(intent: Intent) -> int | None:
    """Return that the model needs no VFs of hosts, so their number is that of the role's own options."""
    return None


def makes_none(intent: Intent) -> bool:
    """Return that the operator makes no VFs."""
    return False


@dataclass(frozen=True)
class Profile:
    """One network model. ``rails`` are those of the plan.

    ``refuses``: why a port of a host cannot carry it, such as its link layer, driver or number of VFs; empty text
    when it can. ``warns``: what the plan warns of about a port of a rail, empty text for nothing.
    ``operator_makes_vfs``: whether the VFs of rails belong to the SR-IOV operator, so the collection makes none.
    ``host_vfs``: how many VFs of each rail this collection makes for it where nothing else is requested, None for any.
    ``shares_port``: pods use the port itself, so no limit of a VF applies to them. ``takes_port``: the host has no
    address on it meanwhile. ``mtu``, ``link_layer``: those of rails that carry the model.

    ``resource``: rail -> resource that a pod asks for; without a prefix it is one of the RDMA shared device plugin.
    ``resource_prefix``: how the full names of all its resources begin. Those of the SR-IOV operator have that of
    Kubernetes; registry.py knows those of other platforms. ``devices``: how many of each a node offers.
    ``pod_network``: rail and namespace of the networks -> its entry in a pod's annotation of networks.

    ``sections`` of the NicClusterPolicy; ``policies``: further objects that are applied with it; ``pools`` (the last
    argument: rail -> subnets of Nodes that have their own, {nodeName, prefix}) and ``networks``. ``kinds``: those of
    all these objects, in the order to apply them. ``values``: those of the operator's chart that the model needs.
    ``own_sections``: the sections of ``rdma_fabric`` that only models that list them use.
    """

    name: str
    refuses: Callable[[Object], str]
    shares_port: bool
    resource: Callable[[str], str]
    resource_prefix: str
    devices: Callable[[Intent], int]
    sections: Callable[[Intent, Line, Rails], dict[str, Any]]
    pools: Callable[[Intent, Rails, Mapping[str, Rails]], list[dict[str, Any]]]
    networks: Callable[[Intent, Rails], list[dict[str, Any]]]
    kinds: tuple[Kind, ...]
    policies: Callable[[Intent, Rails], list[dict[str, Any]]] = no_policies
    pod_network: Callable[[Mapping[str, Any], str], str] = attachment
    operator_makes_vfs: Callable[[Intent], bool] = makes_none
    host_vfs: Callable[[Intent], int | None] = no_host_vfs
    warns: Callable[[Intent, Object], str] = no_warning
    values: Callable[[Intent], dict[str, Any]] = no_values
    own_sections: tuple[str, ...] = ()
    takes_port: bool = False
    mtu: Mtu = Mtu()
    link_layer: str = "ethernet"

    @property
    def by_sriov(self) -> bool:
        """Whether the SR-IOV operator offers its resources."""
        return any(kind.by_sriov for kind in self.kinds)
