# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""NicClusterPolicy: what the operator runs for the network model of the fabric."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from ..._common.errors import InputError
from ..intent.intent import Intent
from ..intent.releases import Line
from . import nic_configuration, sections
from .common import POLICY_NAME, merged, metadata, node_selector, without_none
from .driver import driver_section
from .profiles import registry


def build_policy(intent: Intent, line: Line, rails: Sequence[Mapping[str, Any]]) -> dict[str, Any]:
    """Return the one NicClusterPolicy (``rails``: those of the plan)."""
    spec = {
        **_global(intent, line),
        **driver_section(intent, line),
        **registry.get(intent.profile).sections(intent, line, rails),
    }
    spec.update(sections.nic_feature_discovery(intent, line))
    spec.update(sections.telemetry(intent, line))
    spec.update(nic_configuration.section(intent, line))
    _check_components(intent, line, spec)
    spec.update(_placement(intent))
    return {
        "apiVersion": "mellanox.com/v1alpha1",
        "kind": "NicClusterPolicy",
        "metadata": metadata(POLICY_NAME),
        "spec": without_none(merged(spec, intent.operator.policy_overrides)),
    }


def _placement(intent: Intent) -> dict[str, Any]:
    """Return where the components run: on nodes (DaemonSets), and once per cluster (Deployments)."""
    operator, found = intent.operator, {}
    for key, labels in (
        ("nodeAffinity", intent.node_selector),
        ("deploymentNodeAffinity", operator.deployment_node_selector),
    ):
        if labels:
            found[key] = {"requiredDuringSchedulingIgnoredDuringExecution": node_selector(labels)}
    lists = {"tolerations": operator.tolerations, "deploymentTolerations": operator.deployment_tolerations}
    return {**found, **{key: [dict(item) for item in items] for key, items in lists.items() if items}}


def _check_components(intent: Intent, line: Line, spec: Mapping[str, Any]) -> None:
    """InputError for what is set for components that the policy does not have: it would have no effect."""
    there = set(images_of(spec))
    absent = [own.name for own in intent.operator.components if line.images.get(own.name) not in there]
    if absent:
        raise InputError(
            f"rdma_fabric.operator.components: {', '.join(absent)} is not among the components of the policy with"
            f" profile {intent.profile}. Remove the entry, or enable the component"
        )


def images_of(part: Any) -> Iterator[str]:
    """Yield the names of all images in a part of a policy."""
    if isinstance(part, Mapping):
        if isinstance(part.get("image"), str):
            yield part["image"]
        for one in part.values():
            yield from images_of(one)


def _global(intent: Intent, line: Line) -> dict[str, Any]:
    """Return what holds for all sections; without it each section has it (sections.image)."""
    if not line.has("NicClusterPolicy", "spec.global"):
        return {}
    return {
        "global": {
            "repository": intent.operator.image_repository,
            "version": intent.operator.component_version,
            **sections.pull_secrets(intent),
        }
    }
