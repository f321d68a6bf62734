# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""NicClusterPolicy: what the operator runs for the network model of the fabric."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping
from typing import Any

from ..._common.errors import InputError
from ..intent.intent import Intent
from ..intent.releases import Line
from . import nic_configuration, sections
from .common import POLICY_NAME, merged, metadata, node_selector, without_none
from .driver import driver_section


def build_policy(
    intent: Intent, line: Line, own: Mapping[str, Any], *, elsewhere: Collection[str] = ()
) -> dict[str, Any]:
    """Return the one NicClusterPolicy.

    ``own``: the sections of the network models; ``elsewhere``: the images that other policies have.
    """
    spec = {
        **_global(intent, line),
        **driver_section(intent, line),
        **own,
    }
    spec.update(sections.nic_feature_discovery(intent, line))
    spec.update(sections.telemetry(intent, line))
    spec.update(nic_configuration.section(intent, line))
    _check_components(intent, line, {*images_of(spec), *elsewhere})
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


def _check_components(intent: Intent, line: Line, there: Collection[str]) -> None:
    """InputError for what is set for components that the policy does not have: it would have no effect."""
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


def tolerations(intent: Intent) -> dict[str, Any]:
    """Return the taints that the pods of a policy tolerate as its spec has them, nothing without any."""
    found = [dict(item) for item in intent.operator.tolerations]
    return {"tolerations": found} if found else {}


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
