# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Sections of the NicClusterPolicy that network models share."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from ..intent.addressing import NV_IPAM
from ..intent.components import TELEMETRY
from ..intent.intent import Intent
from ..intent.releases import Line
from .common import to_json

# The device plugin looks for devices again after so many seconds (its own default, said here so that it is seen).
_UPDATE_INTERVAL = 60
# The RDMA shared device plugin offers all its resources below this prefix.
SHARED_PREFIX = "rdma/"


def image(intent: Intent, line: Line, component: str) -> dict[str, Any]:
    """Return the image of a component as its section states it.

    Lines without the section ``global`` require repository and version in each section.
    """
    found: dict[str, Any] = {"image": line.images[component]}
    if not line.has("NicClusterPolicy", "spec.global"):
        found["repository"] = intent.operator.image_repository
        found["version"] = intent.operator.component_version
        found.update(pull_secrets(intent))
    own = intent.operator.own(component)
    if own:
        given = {"repository": own.repository, "version": own.version, "containerResources": list(own.resources)}
        found.update({key: value for key, value in given.items() if value})
    return found


def nic_feature_discovery(intent: Intent, line: Line) -> dict[str, Any]:
    """Return the section that labels nodes with what their NICs are."""
    if not intent.operator.nic_feature_discovery:
        return {}
    return {"nicFeatureDiscovery": image(intent, line, "nic_feature_discovery")}


def telemetry(intent: Intent, line: Line) -> dict[str, Any]:
    """Return the section of DOCA Telemetry Service, whose image has a tag and, at the vendor, a registry of its own."""
    own, release = intent.operator.telemetry, intent.operator.release
    if not own.enabled:
        return {}
    found = image(intent, line, TELEMETRY)
    chosen = intent.operator.own(TELEMETRY)
    if not (chosen and chosen.version):
        found["version"] = line.telemetry[release]
    if not (chosen and chosen.repository) and intent.operator.image_repository == line.repository(release):
        found["repository"] = line.publisher(found["image"], release)
    if own.config_map:
        found["config"] = {"fromConfigMap": own.config_map}
    return {"docaTelemetryService": found}


def pull_secrets(intent: Intent) -> dict[str, Any]:
    """Return the pull secrets as a section has them, nothing without any."""
    names = intent.operator.image_pull_secrets
    return {"imagePullSecrets": list(names)} if names else {}


def shared_resource(rail: str) -> str:
    """Return a rail's resource of the RDMA shared device plugin, which takes letters, digits and underscore only."""
    return "rdma_" + rail.replace("-", "_")


def resource_key(resource: str) -> str:
    """Return the name that nodes and pods use for a resource of the plan: complete when it has a prefix already."""
    return resource if "/" in resource else SHARED_PREFIX + resource


def port_names(rail: Mapping[str, Any]) -> list[str]:
    """Return the interfaces of the PCI functions of a rail: of a bond those of its members, as it has no function."""
    return list(rail.get("members") or [rail["netdev"]])


def shared_device_plugin(intent: Intent, line: Line, rails: Sequence[Mapping[str, Any]]) -> dict[str, Any]:
    """Return the section of the RDMA shared device plugin: one resource per rail (``rails``: those of the plan)."""
    entries = [
        {
            "resourceName": rail["resource"],
            "rdmaHcaMax": intent.shared_devices_max,
            "selectors": {"ifNames": port_names(rail)},
        }
        for rail in rails
    ]
    config = to_json({"periodicUpdateInterval": _UPDATE_INTERVAL, "configList": entries})
    return {"rdmaSharedDevicePlugin": {**image(intent, line, "rdma_shared_device_plugin"), "config": config}}


def nv_ipam(intent: Intent, line: Line) -> dict[str, Any]:
    """Return the section that gives pods addresses of pools, unless others do."""
    if intent.pools.ipam != NV_IPAM:
        return {}
    return {"nvIpam": {**image(intent, line, "nv_ipam"), "enableWebhook": False}}


def secondary_network(intent: Intent, line: Line) -> dict[str, Any]:
    """Return the section that attaches pods to more than one network: Multus and the CNI plugins, unless others do."""
    own = {"cniPlugins": ("cni_plugins", intent.operator.cni_plugins), "multus": ("multus", intent.operator.multus)}
    parts = {section: image(intent, line, component) for section, (component, wanted) in own.items() if wanted}
    return {"secondaryNetwork": parts} if parts else {}
