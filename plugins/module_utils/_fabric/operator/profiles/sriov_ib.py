# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The network model sriov_ib: each pod gets a virtual function (VF) of each InfiniBand rail from the SR-IOV operator.

With ib-kubernetes, the VFs of pods get GUIDs and are added to the partition through NVIDIA UFM; without, the
administrator of the subnet manager adds the GUIDs of VFs. The operator's kind of network has no field for the key of a
partition on any line, so the NetworkAttachmentDefinition is written here.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import replace
from typing import Any

from ...._common.errors import InputError
from ...intent.intent import Intent
from ...intent.releases import Line
from ...intent.sriov import SRIOV_OPERATOR
from .. import sections
from ..attachments import definition
from ..common import metadata, to_json
from ..pools import address_source
from ..readiness import Readiness
from . import sriov, sriov_ready
from .kinds import DEFINITION, POOLS
from .profile import INFINIBAND_MTU, Kind, Object, Rails, mtu_warning

_KIND = "SriovIBNetwork"
# Options of VFs that only Ethernet has -> their values without effect.
_OF_ETHERNET = {
    "vlan": (0,),
    "trust": (None,),
    "spoof_check": (None,),
    "eswitch_mode": ("legacy",),
    "device_type": ("netdevice",),
    "rdma": (True,),
}


def _refuses(port: Object) -> str:
    return sriov.lacks_vfs(port) if port["link_layer"] == "infiniband" else "is not an InfiniBand port"


def _warns(intent: Intent, port: Object) -> str:
    return "; ".join(filter(None, (mtu_warning(intent), sriov.warns(intent, port))))


def _policies(intent: Intent, rails: Rails) -> list[dict[str, Any]]:
    wrong = [key for key, values in _OF_ETHERNET.items() if getattr(intent.sriov, key) not in values]
    if wrong:
        raise InputError(f"rdma_fabric.sriov: VFs of InfiniBand do not have {', '.join(wrong)}. Remove these options")
    if intent.sriov.assigned_by != SRIOV_OPERATOR:
        raise InputError(
            f"rdma_fabric.sriov.assigned_by: {intent.sriov.assigned_by} is for profile sriov; VFs of InfiniBand need"
            " the SR-IOV operator with its device plugin, which gives them their GUIDs. Remove assigned_by"
        )
    return sriov.policies(intent, rails, link_type="ib")


def _sections(intent: Intent, line: Line, rails: Rails) -> dict[str, Any]:
    found = sriov.network_sections(intent, line, rails)
    own = intent.sriov.ib_kubernetes
    if not own.ufm_secret:
        return found
    manager = {
        **sections.image(intent, line, "ib_kubernetes"),
        "periodicUpdateSeconds": own.period,
        "pKeyGUIDPoolRangeStart": own.first_guid,
        "pKeyGUIDPoolRangeEnd": own.last_guid,
        "ufmSecret": own.ufm_secret,
    }
    return {**found, "ibKubernetes": manager}


def _networks(intent: Intent, rails: Rails) -> list[dict[str, Any]]:
    return [_in_partition(intent, rail) if intent.sriov.pkey else _network(intent, rail) for rail in rails]


def _network(intent: Intent, rail: Mapping[str, Any]) -> dict[str, Any]:
    return {
        "apiVersion": sriov.API,
        "kind": _KIND,
        "metadata": metadata(rail["network"], sriov.namespace(intent)),
        "spec": {
            "networkNamespace": intent.network_namespace,
            "resourceName": sriov.resource_name(rail),
            "ipam": to_json(address_source(intent, rail)),
            **sriov.common_settings(intent, rail),
        },
    }


def _in_partition(intent: Intent, rail: Mapping[str, Any]) -> dict[str, Any]:
    """Return a definition with the partition, to which ib-kubernetes adds pods before their VFs come up."""
    own = intent.sriov
    managed = bool(own.ib_kubernetes.ufm_secret)
    plugin = {
        "type": "ib-sriov",
        "pkey": own.pkey,
        **({"ibKubernetesEnabled": True} if managed else {}),
        **({"link_state": own.link_state} if own.link_state else {}),
        **({"capabilities": {"infinibandGUID": True}} if managed else {}),
        "ipam": address_source(intent, rail),
    }
    return definition(intent, rail, plugin=plugin, further=sriov.isolation(intent), resource=rail["resource"])


def _ready(network: Object, nad: Object | None, nodes: Collection[str]) -> Readiness:
    return sriov_ready.network_ready(network, nad, plugin="ib-sriov")


PROFILE = replace(
    sriov.PROFILE,
    name="sriov_ib",
    refuses=_refuses,
    warns=_warns,
    mtu=INFINIBAND_MTU,
    link_layer="infiniband",
    sections=_sections,
    policies=_policies,
    networks=_networks,
    kinds=(
        *sriov.POLICY_KINDS,
        *POOLS,
        Kind(sriov.API, _KIND, "sriovibnetworks", _ready, namespaced=True, by_sriov=True, attaches=True),
        DEFINITION,
    ),
)
