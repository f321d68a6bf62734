# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""NicClusterPolicy for the profile macvlan: shared RDMA device plugin, nv-ipam, Multus, CNI plugins."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from ..intent.intent import Intent
from ..intent.releases import Line
from .common import POLICY_NAME, metadata, node_selector, to_json

# The device plugin looks for devices again after so many seconds (its own default, said here so that it is seen).
_UPDATE_INTERVAL = 60


def resource_name(rail: str) -> str:
    """Return a rail's resource; the plugin takes letters, digits and underscore only."""
    return "rdma_" + rail.replace("-", "_")


def device_plugin_config(netdevs: Mapping[str, str], shares: int) -> dict[str, Any]:
    """Return the device plugin's config: one resource a rail (``netdevs``: resource -> netdev)."""
    entries = [
        {"resourceName": resource, "rdmaHcaMax": shares, "selectors": {"ifNames": [netdev]}}
        for resource, netdev in netdevs.items()
    ]
    return {"periodicUpdateInterval": _UPDATE_INTERVAL, "configList": entries}


def build_policy(intent: Intent, line: Line, rails: Sequence[Mapping[str, Any]]) -> dict[str, Any]:
    """Return the one NicClusterPolicy (``rails``: those of the plan)."""
    images = line.images
    netdevs = {rail["resource"]: rail["netdev"] for rail in rails}
    config = to_json(device_plugin_config(netdevs, intent.shared_devices_max))
    spec: dict[str, Any] = {
        "global": {
            "repository": intent.operator.image_repository,
            "version": intent.operator.component_version,
        },
        "rdmaSharedDevicePlugin": {"image": images["rdma_shared_device_plugin"], "config": config},
        "nvIpam": {"image": images["nv_ipam"], "enableWebhook": False},
        "secondaryNetwork": {
            "cniPlugins": {"image": images["cni_plugins"]},
            "multus": {"image": images["multus"]},
        },
    }
    if intent.node_selector:
        required = {"requiredDuringSchedulingIgnoredDuringExecution": node_selector(intent.node_selector)}
        spec["nodeAffinity"] = required
    return {
        "apiVersion": "mellanox.com/v1alpha1",
        "kind": "NicClusterPolicy",
        "metadata": metadata(POLICY_NAME),
        "spec": spec,
    }
