# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The network model ipoib: an IPoIB child of each InfiniBand rail, RDMA shared device plugin, addresses of nv-ipam.

Pods share the port of a rail. A child is in the partition of its parent and has its MTU. The kernel makes no child of a
child, so pods reach another partition only if it is the first one of the port.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from typing import Any

from ...intent.intent import Intent
from ...intent.releases import Line
from .. import sections
from ..attachments import definition
from ..common import merged, metadata, to_json
from ..network_ready import network_ready
from ..pools import address_source, pools
from ..readiness import Readiness
from .kinds import DEFINITION, POOLS
from .profile import INFINIBAND_MTU, Kind, Object, Profile, Rails, mtu_warning, vf_warning

_API = "mellanox.com/v1alpha1"
_KIND = "IPoIBNetwork"
_FULL_MEMBER = 0x8000


def _refuses(port: Object) -> str:
    return "" if port["link_layer"] == "infiniband" else "is not an InfiniBand port"


def _warns(intent: Intent, port: Object) -> str:
    passed = vf_warning(port, "state auto", mtu=intent.mtu or INFINIBAND_MTU.default)
    return "; ".join(filter(None, (mtu_warning(intent), _other_partition(intent, port), passed)))


def _other_partition(intent: Intent, port: Object) -> str:
    actual = port["pkey"]
    if not intent.pkey or not actual or int(actual, 16) == int(intent.pkey, 16) | _FULL_MEMBER:
        return ""
    return (
        f"the IPoIB interface is in the partition {actual}, and rdma_fabric.pkey is {intent.pkey}: the subnet manager"
        " must make it the first partition of the port, with full membership"
    )


def _devices(intent: Intent) -> int:
    return intent.shared_devices_max


def _sections(intent: Intent, line: Line, rails: Rails) -> dict[str, Any]:
    found = {
        **sections.shared_device_plugin(intent, line, rails),
        **sections.nv_ipam(intent, line),
        **sections.secondary_network(intent, line),
    }
    # The CNI plugin of this model is in none of the usual images, so others cannot have brought it.
    return merged(found, {"secondaryNetwork": {"ipoib": sections.image(intent, line, "ipoib_cni")}})


def _networks(intent: Intent, rails: Rails) -> list[dict[str, Any]]:
    return [_network(intent, rail) for rail in rails]


def _network(intent: Intent, rail: Mapping[str, Any]) -> dict[str, Any]:
    """Return the network over a rail's interface."""
    source = address_source(intent, rail)
    # The operator's kind has neither further plugins nor capabilities on any supported line.
    if intent.writes_definitions:
        return definition(intent, rail, plugin={"type": "ipoib", "master": rail["netdev"], "ipam": source})
    spec = {"networkNamespace": intent.network_namespace, "master": rail["netdev"], "ipam": to_json(source)}
    return {"apiVersion": _API, "kind": _KIND, "metadata": metadata(rail["network"]), "spec": spec}


def _ready(network: Object, nad: Object | None, nodes: Collection[str]) -> Readiness:
    return network_ready(_KIND, "ipoib", ("master",), network=network, nad=nad)


PROFILE = Profile(
    name="ipoib",
    own_sections=("pkey",),
    refuses=_refuses,
    warns=_warns,
    shares_port=True,
    mtu=INFINIBAND_MTU,
    link_layer="infiniband",
    resource=sections.shared_resource,
    resource_prefix=sections.SHARED_PREFIX,
    devices=_devices,
    sections=_sections,
    pools=pools,
    networks=_networks,
    kinds=(*POOLS, Kind(_API, _KIND, "ipoibnetworks", _ready, attaches=True), DEFINITION),
)
