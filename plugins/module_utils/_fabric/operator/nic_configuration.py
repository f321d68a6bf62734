# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""NIC configuration operator: its section of the NicClusterPolicy, its objects, and what they need of the chart."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from typing import Any

from ..intent.intent import Intent
from ..intent.nic_configuration import Nics
from ..intent.releases import Line
from . import sections
from .common import merged, metadata, without_none
from .profiles.kinds import exists
from .profiles.profile import Kind, Object
from .readiness import Finding, Readiness

API = "configuration.net.nvidia.com/v1alpha1"
_SECTION = "nicConfigurationOperator"
# The operator holds nodes with this label until their NICs have the settings.
_WAIT_LABEL = "network.nvidia.com/operator.nic-configuration.wait"
_FAILED = ("ProcessingFailed", "DownloadFailed", "CacheVerificationFailed")


def section(intent: Intent, line: Line) -> dict[str, Any]:
    """Return the section, nothing without the operator."""
    own = intent.operator.nic_configuration
    if not own.enabled:
        return {}
    found: dict[str, Any] = {
        "operator": sections.image(intent, line, "nic_configuration_operator"),
        "configurationDaemon": sections.image(intent, line, "nic_configuration_daemon"),
        "logLevel": own.log_level,
    }
    if own.env:
        found["env"] = [{"name": name, "value": value} for name, value in own.env.items()]
    if own.firmware:
        storage = {"create": own.storage.create, "pvcName": own.storage.claim, "storageClassName": None}
        storage.update(storageClassName=own.storage.storage_class, availableStorageSize=own.storage.size)
        found["nicFirmwareStorage"] = without_none(storage)
    return {_SECTION: found}


def chart_values(intent: Intent, values: Mapping[str, Any]) -> dict[str, Any]:
    """Return the ``values`` of the chart for a network model with those that the operator needs.

    With the SR-IOV operator, only one of both may write the firmware, and VFs are made after it was written.
    """
    own = intent.operator.nic_configuration
    if not own.enabled:
        return dict(values)
    needed: dict[str, Any] = {}
    if own.maintenance_operator:
        needed = {
            "maintenanceOperator": {"enabled": True},
            "maintenance-operator-chart": {"operatorConfig": {"deploy": True}},
        }
    if (values.get("sriovNetworkOperator") or {}).get("enabled"):
        config = {"configDaemonNodeSelector": {_WAIT_LABEL: "false"}, "disablePlugins": ["mellanox"]}
        needed["sriov-network-operator"] = {"sriovOperatorConfig": config}
    return merged(needed, values)


def objects(intent: Intent) -> list[dict[str, Any]]:
    """Return the objects that are applied after the policy."""
    own = intent.operator.nic_configuration
    found = []
    for template in own.templates:
        spec = {"template": dict(template.settings), **({"resetToDefault": True} if template.reset else {})}
        found.append(
            _object(intent, "NicConfigurationTemplate", template.name, spec=_selected(intent, template.nics, spec))
        )
    for firmware in own.firmware:
        sources = {"binUrlSources": list(firmware.urls) or None, "bfbUrlSource": firmware.bundle_url}
        policy = {"nicFirmwareSourceRef": firmware.name, "updatePolicy": "Update" if firmware.update else "Validate"}
        found.append(_object(intent, "NicFirmwareSource", firmware.name, spec=without_none(sources)))
        spec = _selected(intent, firmware.nics, {"template": policy})
        found.append(_object(intent, "NicFirmwareTemplate", firmware.name, spec=spec))
    return found


def _selected(intent: Intent, nics: Nics, spec: Mapping[str, Any]) -> dict[str, Any]:
    selector: dict[str, Any] = {"nicType": nics.nic_type}
    for key, names in (("pciAddresses", nics.pci_addresses), ("serialNumbers", nics.serial_numbers)):
        if names:
            selector[key] = list(names)
    nodes = {"nodeSelector": dict(intent.node_selector)} if intent.node_selector else {}
    return {**nodes, "nicSelector": selector, **spec}


def _object(intent: Intent, kind: str, name: str, *, spec: Mapping[str, Any]) -> dict[str, Any]:
    return {
        "apiVersion": API,
        "kind": kind,
        "metadata": metadata(name, intent.operator.namespace),
        "spec": dict(spec),
    }


def source_ready(source: Object, _nad: Object | None, _nodes: Collection[str]) -> Readiness:
    """Judge a NicFirmwareSource: its files are downloaded and were accepted."""
    status, name = source.get("status") or {}, source["metadata"]["name"]
    state = status.get("state")
    if state == "Success":
        return Readiness.of([])
    reason = f": {status['reason']}" if status.get("reason") else ""
    shown = state or "the operator has not reported a status yet"
    return Readiness.of([Finding(f"NicFirmwareSource {name}: {shown}{reason}", state in _FAILED)])


KINDS = (
    Kind(
        API,
        "NicConfigurationTemplate",
        "nicconfigurationtemplates",
        exists,
        namespaced=True,
        step="policy",
        optional=True,
    ),
    Kind(API, "NicFirmwareSource", "nicfirmwaresources", source_ready, namespaced=True, step="policy", optional=True),
    Kind(API, "NicFirmwareTemplate", "nicfirmwaretemplates", exists, namespaced=True, step="policy", optional=True),
)
