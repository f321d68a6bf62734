# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Which Deployment is a network operator, whatever its Helm release is called."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

CHART = "network-operator"


def is_operator(deployment: Mapping[str, Any]) -> bool:
    """Return whether a Deployment runs the network operator: by the chart's labels, or else by its image."""
    labels = deployment["metadata"].get("labels") or {}
    chart, _dash, version = str(labels.get("helm.sh/chart", "")).partition(f"{CHART}-")
    if labels.get("app.kubernetes.io/name") == CHART or (not chart and version[:1].isdigit()):
        return True
    return any(image_name(image) == CHART for image in images(deployment))


def images(workload: Mapping[str, Any]) -> list[str]:
    """Return the images of a workload's containers; one empty text when there is none."""
    spec = ((workload.get("spec") or {}).get("template") or {}).get("spec") or {}
    return [container.get("image") or "" for container in spec.get("containers") or []] or [""]


def image_name(image: str) -> str:
    """Return the last part of an image's path, without tag and digest."""
    return image.rpartition("/")[2].partition("@")[0].partition(":")[0]


def is_available(deployment: Mapping[str, Any]) -> bool:
    """Return whether a Deployment runs its newest pods, all of them available."""
    status = deployment.get("status") or {}
    desired = (deployment.get("spec") or {}).get("replicas", 1)
    counts = [status.get(key, 0) for key in ("replicas", "updatedReplicas", "availableReplicas")]
    seen = status.get("observedGeneration") == deployment["metadata"].get("generation")
    return seen and counts == [desired] * 3
