# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The network model macvlan: a macvlan interface over each rail, RDMA shared device plugin, addresses of nv-ipam.

Pods share the port of a rail, or a VLAN interface of the host on it. The kernel refuses macvlan on InfiniBand.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from typing import Any

from ...intent.intent import Intent
from ...intent.releases import Line
from .. import sections
from ..attachments import definition
from ..common import metadata, mtu_field, to_json
from ..network_ready import network_ready
from ..pools import address_source, pools
from ..readiness import Readiness
from .kinds import DEFINITION, POOLS
from .profile import Kind, Mtu, Object, Profile, Rails, vf_warning

_API = "mellanox.com/v1alpha1"
_KIND = "MacvlanNetwork"


def _refuses(port: Object) -> str:
    return "is an InfiniBand port" if port["link_layer"] == "infiniband" else ""


def _warns(intent: Intent, port: Object) -> str:
    return vf_warning(
        port,
        "state auto max_tx_rate 0 trust on spoofchk off",
        mtu=intent.mtu or Mtu().default,
        why=", and pods have MAC addresses of their own, which it must not filter",
    )


def _devices(intent: Intent) -> int:
    return intent.shared_devices_max


def _sections(intent: Intent, line: Line, rails: Rails) -> dict[str, Any]:
    return {
        **sections.shared_device_plugin(intent, line, rails),
        **sections.nv_ipam(intent, line),
        **sections.secondary_network(intent, line),
    }


def _networks(intent: Intent, rails: Rails) -> list[dict[str, Any]]:
    # The operator's kind has neither further plugins nor capabilities on any supported line.
    return definitions(intent, rails) if intent.writes_definitions else [_network(intent, rail) for rail in rails]


def _network(intent: Intent, rail: Mapping[str, Any]) -> dict[str, Any]:
    """Return the network over a rail's interface; the operator makes its NetworkAttachmentDefinition."""
    spec = {
        "networkNamespace": intent.network_namespace,
        **_interface(intent, rail),
        "ipam": to_json(address_source(intent, rail)),
    }
    return {"apiVersion": _API, "kind": _KIND, "metadata": metadata(rail["network"]), "spec": spec}


def definitions(intent: Intent, rails: Rails) -> list[dict[str, Any]]:
    """Return the same networks as NetworkAttachmentDefinitions."""
    return [
        definition(
            intent, rail, plugin={"type": "macvlan", **_interface(intent, rail), "ipam": address_source(intent, rail)}
        )
        for rail in rails
    ]


def _interface(intent: Intent, rail: Mapping[str, Any]) -> dict[str, Any]:
    return {"master": rail["master"], "mode": "bridge", **mtu_field(intent, rail)}


def _ready(network: Object, nad: Object | None, nodes: Collection[str]) -> Readiness:
    return network_ready(_KIND, "macvlan", ("master", "mode", "mtu"), network=network, nad=nad)


PROFILE = Profile(
    name="macvlan",
    refuses=_refuses,
    warns=_warns,
    shares_port=True,
    resource=sections.shared_resource,
    resource_prefix=sections.SHARED_PREFIX,
    devices=_devices,
    sections=_sections,
    pools=pools,
    networks=_networks,
    own_sections=("vlan",),
    kinds=(*POOLS, Kind(_API, _KIND, "macvlannetworks", _ready, attaches=True), DEFINITION),
)
