# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The images of the operator's chart, as its values name them: the operator, Node Feature Discovery and sub-charts."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from ..intent.releases import Line
from .common import image_reference

# What the chart runs for the SR-IOV operator: value below "images" -> image.
_SRIOV = {
    "operator": "sriov-network-operator",
    "sriovConfigDaemon": "sriov-network-operator-config-daemon",
    "sriovCni": "sriov-cni",
    "ibSriovCni": "ib-sriov-cni",
    "ovsCni": "ovs-cni-plugin",
    "rdmaCni": "rdma-cni",
    "sriovDevicePlugin": "sriov-network-device-plugin",
}
_CLAIMS = {"sriovDraDriver": "dra-driver-sriov"}
_WEBHOOKS = {"webhook": "sriov-network-operator-webhook"}


def chart_images(line: Line, release: str, values: Mapping[str, Any], *, driver: bool) -> tuple[list[str], list[str]]:
    """Return the images of the chart, and the names of those whose place is not known.

    ``values``: all that the chart gets; ``driver``: whether the policy has the driver container.
    """
    found = list(_named(line, release, values, driver=driver))
    return sorted({image for image, known in found if known}), sorted({image for image, known in found if not known})


def _named(line: Line, release: str, values: Mapping[str, Any], *, driver: bool) -> Iterator[tuple[str, bool]]:
    """Yield images, and whether their place is known."""
    tag, vendor = f"network-operator-v{release}", line.repository(release)
    own = _at(values, "operator")
    name, repository = own.get("image", "network-operator"), own.get("repository", line.operator_registry(release))
    yield f"{repository}/{image_reference(name, own.get('tag', f'v{release}'))}", True
    init = _at(own, "ofedDriver", "initContainer")
    if driver and init.get("enable", True):
        container = image_reference(init.get("image", "network-operator-init-container"), init.get("version", tag))
        yield f"{init.get('repository', vendor)}/{container}", True
    if _at(values, "nfd").get("enabled", True):
        # The vendor's lists of images do not have it.
        image = _at(values, "node-feature-discovery", "image")
        known = bool(image.get("repository") and image.get("tag"))
        yield (image_reference(image["repository"], image["tag"]), True) if known else ("node-feature-discovery", False)
    yield from _sriov(values, vendor, tag)
    if _at(values, "maintenanceOperator").get("enabled"):
        image = _at(values, "maintenance-operator-chart", "operator", "image")
        shown = image_reference(image.get("name", "maintenance-operator"), image.get("tag", tag))
        yield f"{image.get('repository', vendor)}/{shown}", True


def _sriov(values: Mapping[str, Any], vendor: str, tag: str) -> Iterator[tuple[str, bool]]:
    if not _at(values, "sriovNetworkOperator").get("enabled"):
        return
    chart = _at(values, "sriov-network-operator")
    webhooks = _at(chart, "operator", "admissionControllers").get("enabled")
    claims = _at(chart, "sriovOperatorConfig", "featureGates").get("dynamicResourceAllocation")
    chosen = _at(chart, "images")
    for key, name in {**_SRIOV, **(_CLAIMS if claims else {}), **(_WEBHOOKS if webhooks else {})}.items():
        yield chosen.get(key) or f"{vendor}/{image_reference(name, tag)}", True
    if webhooks:
        injector = chosen.get("resourcesInjector")
        yield injector or "network-resources-injector", bool(injector)


def _at(values: Any, *path: str) -> Mapping[str, Any]:
    """Return the dict at a path, an empty one where there is none."""
    for key in path:
        values = values.get(key) if isinstance(values, Mapping) else None
    return values if isinstance(values, Mapping) else {}
