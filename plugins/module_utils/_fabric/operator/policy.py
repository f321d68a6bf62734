# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""NicClusterPolicy: what the operator runs for the network model of the fabric."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from ..intent.intent import Intent
from ..intent.releases import Line
from . import sections
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
    if intent.node_selector:
        required = {"requiredDuringSchedulingIgnoredDuringExecution": node_selector(intent.node_selector)}
        spec["nodeAffinity"] = required
    if intent.operator.tolerations:
        spec["tolerations"] = [dict(item) for item in intent.operator.tolerations]
    return {
        "apiVersion": "mellanox.com/v1alpha1",
        "kind": "NicClusterPolicy",
        "metadata": metadata(POLICY_NAME),
        "spec": without_none(merged(spec, intent.operator.policy_overrides)),
    }


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
