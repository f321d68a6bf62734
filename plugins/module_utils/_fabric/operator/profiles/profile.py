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


@dataclass(frozen=True)
class Kind:
    """A Kubernetes kind whose objects a model adds to the plan; a namespaced one lives in the operator's namespace.

    ``ready`` judges an object that exists. ``attaches``: the operator makes a NetworkAttachmentDefinition of each
    object, in the namespace of ``spec.networkNamespace``. ``step``: the part of a run that applies it, ``policy`` or
    ``networks``.
    """

    api_version: str
    kind: str
    plural: str
    ready: Ready
    namespaced: bool = False
    attaches: bool = False
    step: str = "networks"

    @property
    def group(self) -> str:
        """The API group."""
        return self.api_version.partition("/")[0]


def attachment(rail: Mapping[str, Any], namespace: str) -> str:
    """Return the name of a rail's NetworkAttachmentDefinition as Multus takes it."""
    return f"{namespace}/{rail['network']}"


def no_policies(intent: Intent, rails: Rails) -> list[dict[str, Any]]:
    """Return no objects: most models need none beside the NicClusterPolicy."""
    return []


@dataclass(frozen=True)
class Profile:
    """One network model. ``rails`` are those of the plan.

    ``refuses``: why a port of a host cannot carry it, such as its link layer, driver or number of VFs; empty text
    when it can. ``operator_makes_vfs``: the VFs of rails belong to the SR-IOV operator, so the collection makes none.
    ``shares_port``: pods use the port itself, so no limit of a VF applies to them.

    ``resource``: rail -> resource that a pod asks for; without a prefix it is one of the RDMA shared device plugin.
    ``resource_prefix``: how the full names of all its resources begin. ``devices``: how many of each a node offers.
    ``pod_network``: rail and namespace of the networks -> its entry in a pod's annotation of networks.

    ``sections`` of the NicClusterPolicy; ``policies``: further objects that are applied with it; ``pools`` (the last
    argument: addresses per node) and ``networks``. ``kinds``: those of all these objects, in the order to apply them.
    """

    name: str
    refuses: Callable[[Object], str]
    shares_port: bool
    resource: Callable[[str], str]
    resource_prefix: str
    devices: Callable[[Intent], int]
    sections: Callable[[Intent, Line, Rails], dict[str, Any]]
    pools: Callable[[Intent, Rails, int], list[dict[str, Any]]]
    networks: Callable[[Intent, Rails], list[dict[str, Any]]]
    kinds: tuple[Kind, ...]
    policies: Callable[[Intent, Rails], list[dict[str, Any]]] = no_policies
    pod_network: Callable[[Mapping[str, Any], str], str] = attachment
    operator_makes_vfs: bool = False
