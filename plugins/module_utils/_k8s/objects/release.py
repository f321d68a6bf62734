# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Read what decides on the network operator: Helm's revisions (metadata only), our mark, namespace, definitions."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from typing import Any

from ..._fabric.operator.common import made_by_us
from ..._fabric.operator.installation import Decision, decide, installed_problem
from ..._fabric.operator.mark import MARK, Mark, Revision, Seen, Target, state
from ..._fabric.operator.removal import removal
from ..client.api import Api
from ..client.kinds import DEFINITIONS, collection
from . import inhabitants

# API groups whose definitions the chart or the policy brings.
GROUPS = (
    "configuration.net.nvidia.com",
    "k8s.cni.cncf.io",
    "maintenance.nvidia.com",
    "mellanox.com",
    "nfd.k8s-sigs.io",
    "nv-ipam.nvidia.com",
    "spectrumx.nvidia.com",
    "sriovnetwork.k8snetworkplumbingwg.io",
    "sriovnetwork.openshift.io",
)

# Labels that the operator sets on nodes and does not remove when it is removed.
NODE_LABELS = (
    "network.nvidia.com/operator.mofed.wait",
    "network.nvidia.com/operator.nic-configuration.wait",
    "nvidia.com/ofed-driver-upgrade-state",
)


def seen(
    api: Api,
    namespace: str,
    operators: Sequence[Mapping[str, Any]],
    *,
    discoveries: Sequence[Mapping[str, Any]],
    removing: bool,
) -> Seen:
    """Return what the cluster has (shapes: ``Seen``); ``operators`` and ``discoveries`` were listed already.

    ``removing``: whether the namespace is to be removed, if it is ours; only then is it searched.
    """
    space = api.get(f"{collection('v1', 'namespaces')}/{namespace}")
    searched = removing and space is not None and made_by_us(space)
    return Seen(
        revisions=revisions(api, namespace),
        mark=Mark.of(api.get(f"{collection('v1', 'configmaps', namespace)}/{MARK}")),
        namespace=space,
        operators=operators,
        discoveries=discoveries,
        inhabitants=inhabitants.read(api, namespace, GROUPS) if searched else [],
        definitions=[meta["name"] for meta in api.metadata(DEFINITIONS) if in_groups(meta["name"], GROUPS)],
    )


def revisions(api: Api, namespace: str) -> list[Revision]:
    """Return the revisions of all Helm releases of a namespace; the Secrets' content is not read."""
    found = []
    for meta in api.metadata(collection("v1", "secrets", namespace), labelSelector="owner=helm"):
        labels = meta.get("labels") or {}
        number = str(labels.get("version", ""))
        if labels.get("name") and number.isdecimal():
            found.append(Revision(labels["name"], int(number), str(labels.get("status", "unknown")), meta["uid"]))
    return found


def in_groups(definition: str, groups: Collection[str]) -> bool:
    """Return whether a definition such as ``ippools.nv-ipam.nvidia.com`` is of one of the API groups."""
    return definition.partition(".")[2] in groups


def judged(target: Target, found: Seen, step: str) -> tuple[Decision, dict[str, Any]]:
    """Return what a run does, and what the module says of it; ``step``: present, installed or absent."""
    decision = decide(target, found)
    removed = removal(target.namespace, found)
    problems: Sequence[str] = decision.problems
    if step == "installed":
        problems = list(filter(None, [installed_problem(target, found)]))
    elif step == "absent":
        problems = removed.problems
    remains = {
        "definitions": list(GROUPS),
        "keep": list(removed.keep),
        "release": removed.release,
        "node_labels": list(NODE_LABELS),
        "nfd": removed.nfd,
    }
    return Decision(decision.action, decision.objects, tuple(problems)), {
        "name": removed.release,
        "state": state(found.history(target.release)),
        "managed": found.managed == target.release,
        "action": decision.action,
        "objects": list(removed.objects if step == "absent" else decision.objects),
        "remains": remains if removed.leftovers else None,
        "notes": list(removed.notes),
    }
