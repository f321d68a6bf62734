# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Policies of the SR-IOV operator that this collection did not make and that select ports of the rails."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from ..._fabric.intent import platforms
from ..._fabric.lint.other_policies import KIND, PLURAL, STATES, owned, ports
from ..._fabric.operator.common import made_by_us
from ..._fabric.operator.profiles.sriov import API
from ..client.api import Api
from . import survey

# The operator's own object, which selects nothing.
_DEFAULT = "default"


def read(
    api: Api,
    params: Mapping[str, Any],
    nodes: Sequence[Mapping[str, Any]],
    *,
    by_host: Mapping[str, str],
    objects: Mapping[str, Sequence[Mapping[str, Any]]],
    nodes_labels: Mapping[str, Mapping[str, Any]],
) -> list[dict[str, Any]]:
    """Return these policies with the hosts and rails of their ports, what is wrong, and whether that stops a run.

    ``objects``: those of the cluster by kind, as the survey has them; without policies of others, no request is sent.
    ``nodes_labels``: Node -> the labels that the plan gives it.
    What may not be read gives none.
    """
    others = [item for item in objects.get(KIND, ()) if not item["ours"] and item["name"] != _DEFAULT]
    known = ports(params["hosts"], by_host, params["rails"]) if others else []
    if not known:
        return []
    states = survey.listed(api, API, STATES)
    # The operator follows the policies of its own namespace only.
    expected = platforms.get(params["platform"] or "").sriov_in(params["namespace"])
    spaces = {state["metadata"]["namespace"] for state in states} or {expected}
    own = [item for item in params["objects"] if item.get("kind") == KIND]
    planned = {_place(item) for item in own}
    policies = [
        {**item, "kind": KIND}
        for item in survey.listed(api, API, PLURAL)
        if item["metadata"]["namespace"] in spaces
        and not made_by_us(item)
        and item["metadata"]["name"] != _DEFAULT
        and _place(item) not in planned
    ]
    live = {node["metadata"]["name"]: node["metadata"].get("labels") or {} for node in nodes}
    labels = {name: {**found, **nodes_labels.get(name, {})} for name, found in live.items()}
    return [
        {
            "name": one.policy["metadata"]["name"],
            "namespace": one.policy["metadata"]["namespace"],
            "ports": [{"host": port.host, "rail": port.rail, "pci": port.pci} for port in one.ports],
            "problem": one.problem,
            "stops": one.contested,
        }
        for one in owned(policies, states, known, labels=labels, own=own)
    ]


def _place(item: Mapping[str, Any]) -> tuple[str, str]:
    return item["metadata"].get("namespace") or "", item["metadata"]["name"]
