# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""NetworkAttachmentDefinitions: what Multus reads when it attaches a pod to a network.

The operator makes one of each of its network kinds. Where such a kind cannot say what is wanted, we write it ourselves.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from ..intent.addressing import STATIC
from ..intent.intent import Intent
from ..intent.networks import of_rail
from .common import metadata, to_json

GROUP = "k8s.cni.cncf.io"
API, KIND, PLURAL = f"{GROUP}/v1", "NetworkAttachmentDefinition", "network-attachment-definitions"
# The networks that a pod asks for.
NETWORKS = "k8s.v1.cni.cncf.io/networks"
# Which resource of a device plugin a network belongs to; Multus passes the allocated device to the CNI plugin.
RESOURCE_NAME = "k8s.v1.cni.cncf.io/resourceName"
# That of the definitions which the operator makes.
_CNI_VERSION = "0.3.1"


def chained(intent: Intent, rail: Mapping[str, Any]) -> list[dict[str, Any]]:
    """Return the plugins that follow the one that makes the interface: first its settings, then its routes."""
    own = intent.networks
    found: list[dict[str, Any]] = []
    if own.sysctls:
        found.append({"type": "tuning", "sysctl": dict(own.sysctls)})
    if own.source_routing:
        found.append({"type": "sbr"})
    if own.vrf:
        found.append({"type": "vrf", "vrfname": of_rail(own.vrf, rail["name"])})
    return found


def definition(
    intent: Intent,
    rail: Mapping[str, Any],
    *,
    plugin: Mapping[str, Any],
    further: Sequence[Mapping[str, Any]] = (),
    resource: str = "",
) -> dict[str, Any]:
    """Return the definition of a rail's network: ``plugin``, ``further`` ones of the model, and those chained.

    ``resource``: complete name, if any.
    """
    meta = metadata(rail["network"], intent.network_namespace)
    if resource:
        meta["annotations"] = {RESOURCE_NAME: resource}
    first = dict(plugin)
    if intent.pools.ipam == STATIC:
        first["capabilities"] = {**plugin.get("capabilities", {}), "ips": True}
    config = {"cniVersion": _CNI_VERSION, "name": rail["network"], "plugins": [first, *further, *chained(intent, rail)]}
    return {"apiVersion": API, "kind": KIND, "metadata": meta, "spec": {"config": to_json(config)}}
