# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Whether a run moves the driver container to policies of another kind: its nodes lose the driver while pods run."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from ..._common.consent import CONSENT
from ..._fabric.operator.common import made_by_us
from ..._fabric.operator.profiles.kinds import NODE_POLICY
from ..client.api import Api
from ..client.kinds import NICS, collection, label

_SECTION = "ofedDriver"
_PLURALS = {"NicClusterPolicy": "nicclusterpolicies", NODE_POLICY.kind: NODE_POLICY.plural}


def problems(api: Api, params: Mapping[str, Any]) -> list[str]:
    """Return the policies of ours whose driver another kind has in the plan, without consent to it.

    One request, with the driver container only.
    """
    wanted = {kind for kind in _PLURALS for item in params["objects"] if item.get("kind") == kind and _has(item)}
    if not wanted or params["disrupt_users"] or params["existing"] == "use":
        return []
    return [
        f"{label({'kind': kind, **item})}: it has the driver container (spec.{_SECTION}), which the plan moves to"
        f" {' and '.join(sorted(wanted))}. The operator removes the driver from the nodes of this policy, also below"
        " running pods, before the driver of the plan is loaded, and nodes outside of the fabric do not get it again."
        f" Restore driver_version of the classes of rdma_fabric, or stop the users and consent with {CONSENT}: true"
        for kind, plural in _PLURALS.items()
        if kind not in wanted
        for item in api.items(collection(NICS, plural))
        if made_by_us(item) and _has(item)
    ]


def _has(item: Mapping[str, Any]) -> bool:
    return bool((item.get("spec") or {}).get(_SECTION))
