# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The network model host_device: a pod gets the whole port of each rail, SR-IOV device plugin, addresses of nv-ipam.

One pod per node and rail. While a pod has the port, the host does not have it.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping
from typing import Any

from ...intent.intent import Intent
from ...intent.releases import Line
from .. import sections
from ..attachments import RESOURCE_NAME, definition
from ..common import metadata, to_json
from ..network_ready import network_ready
from ..pools import address_source, pools
from ..readiness import Finding, Readiness
from .kinds import DEFINITION, POOLS
from .profile import Kind, Mtu, Object, Profile, Rails, vf_warning

_API = "mellanox.com/v1alpha1"
_KIND = "HostDeviceNetwork"
_PREFIX = "nvidia.com/"
# GPUs have the prefix as well: pods that request them are no users of rails.
_RESOURCES = _PREFIX + "hostdev_"


def _refuses(port: Object) -> str:
    if port["link_layer"] == "infiniband":
        return "is an InfiniBand port"
    count = port["vfs"]["count"]
    # The device plugin selects VFs by the name of their port too, so a pod could get one of them.
    return f"has {count} VFs" if count else ""


def _warns(intent: Intent, port: Object) -> str:
    return vf_warning(port, "state auto max_tx_rate 0", mtu=intent.mtu or Mtu().default)


def _resource(rail: str) -> str:
    # The operator refuses a hyphen in these names.
    return _RESOURCES + rail.replace("-", "_")


def _devices(intent: Intent) -> int:
    return 1


def device_sections(intent: Intent, line: Line, rails: Rails, *, vfs: int = 0) -> dict[str, Any]:
    """Return the sections of the policy that give pods ports of rails, or ``vfs`` VFs of each instead."""
    return {
        "sriovDevicePlugin": {
            **sections.image(intent, line, "sriov_device_plugin"),
            "config": to_json({"resourceList": [_devices_of(rail, vfs) for rail in rails]}),
        },
        **sections.nv_ipam(intent, line),
        **sections.secondary_network(intent, line),
    }


def _devices_of(rail: Mapping[str, Any], vfs: int) -> dict[str, Any]:
    """Return the resource of a rail in the configuration of the SR-IOV device plugin."""
    # The plugin takes the name of a port for the port itself where it has no VFs; numbers of VFs select VFs only.
    name = f"{rail['netdev']}#0-{vfs - 1}" if vfs else rail["netdev"]
    return {
        "resourcePrefix": _PREFIX.rstrip("/"),
        "resourceName": rail["resource"].removeprefix(_PREFIX),
        "selectors": {"vendors": rail["vendors"], "pfNames": [name], "isRdma": True},
    }


def networks(intent: Intent, rails: Rails) -> list[dict[str, Any]]:
    """Return the networks that move the device of a rail, a port or a VF, into the pod."""
    return [_network(intent, rail) for rail in rails]


def _network(intent: Intent, rail: Mapping[str, Any]) -> dict[str, Any]:
    # The operator's kind has neither further plugins nor capabilities on any supported line.
    if intent.writes_definitions:
        return definition(
            intent,
            rail,
            plugin={"type": "host-device", "ipam": address_source(intent, rail)},
            resource=rail["resource"],
        )
    return {
        "apiVersion": _API,
        "kind": _KIND,
        "metadata": metadata(rail["network"]),
        "spec": {
            "networkNamespace": intent.network_namespace,
            "resourceName": rail["resource"].removeprefix(_PREFIX),
            "ipam": to_json(address_source(intent, rail)),
        },
    }


def _ready(network: Object, nad: Object | None, nodes: Collection[str]) -> Readiness:
    config = network_ready(_KIND, "host-device", (), network=network, nad=nad)
    return Readiness.joined([config, Readiness.of(_annotation(network, nad))])


def _annotation(network: Object, nad: Object | None) -> Iterator[Finding]:
    if nad is None:
        return
    wanted = _PREFIX + network["spec"]["resourceName"].removeprefix(_PREFIX)
    found = (nad["metadata"].get("annotations") or {}).get(RESOURCE_NAME)
    if found != wanted:
        yield Finding(
            f"{_KIND} {network['metadata']['name']}: its NetworkAttachmentDefinition is for the resource"
            f" {found or 'nothing'}, expected {wanted}. If this persists, delete it; the operator recreates it"
        )


NETWORK = Kind(_API, _KIND, "hostdevicenetworks", _ready, attaches=True)

PROFILE = Profile(
    name="host_device",
    refuses=_refuses,
    warns=_warns,
    shares_port=True,
    takes_port=True,
    resource=_resource,
    resource_prefix=_RESOURCES,
    devices=_devices,
    sections=device_sections,
    pools=pools,
    networks=networks,
    kinds=(*POOLS, NETWORK, DEFINITION),
)
