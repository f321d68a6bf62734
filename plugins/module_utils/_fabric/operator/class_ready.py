# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Are the policies and nodes of a class of hosts ready? As readiness.py, true to a recording of the operator."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from typing import Any

from ..._common.reader import some
from ..intent.releases import line_of
from .pod_failures import pod_findings
from .readiness import Finding, Readiness, allocatable, has_labels, is_owned, policy_status, restart_hint, rollouts
from .sections import resource_key

Object = Mapping[str, Any]


def node_policy_ready(
    policy: Object | None,
    name: str,
    daemonsets: Sequence[Object],
    *,
    pods: Sequence[Object],
    nodes: int,
    release: str,
) -> Readiness:
    """Return whether a NicNodePolicy is in force on so many ``nodes``; the rest as for ``policy_ready``."""
    title, line = f"NicNodePolicy {name}", line_of(release)
    if policy is None or line is None:
        return Readiness.of([Finding(f"{title} is absent")])
    own = [item for item in daemonsets if is_owned(item, policy)]
    findings = [
        *policy_status(policy, line, title),
        *rollouts(policy, own, nodes),
        *(Finding(reason, terminal) for reason, terminal in pod_findings(pods, own)),
    ]
    return Readiness.of(findings)


def class_ready(
    selector: Mapping[str, str],
    nodes: Sequence[Object],
    expected: Collection[str],
    *,
    resources: Mapping[str, int],
    hint: str,
    without: Mapping[str, Collection[str]] | None = None,
) -> Readiness:
    """Return whether the nodes of a class of hosts have its labels and offer its resources.

    ``hint``: what else to say of resources that they do not offer (``hint_of``). ``without``: resource -> nodes that
    need not offer it.
    """
    known = [node for node in nodes if node["metadata"]["name"] in expected]
    unlabelled = [node["metadata"]["name"] for node in known if not has_labels(node, selector)]
    found = []
    if unlabelled:
        labels = ", ".join(f"{key}={value}" for key, value in selector.items())
        found.append(Finding(f"Nodes without the labels of their class ({labels}): {some(unlabelled)}"))
    return Readiness.of([*found, *offered(known, resources, without or {}, hint=hint)])


def offered(
    nodes: Sequence[Object], resources: Mapping[str, int], without: Mapping[str, Collection[str]], *, hint: str
) -> Iterator[Finding]:
    """Yield which nodes do not offer resources, except those that are ``without`` a port for it."""
    for resource, count in resources.items():
        own = [node for node in nodes if node["metadata"]["name"] not in without.get(resource, ())]
        yield from allocatable(own, resource_key(resource), count, hint=hint)


def hint_of(release: str, policy: Object | None, daemonsets: Sequence[Object]) -> str:
    """Return how to restart the device plugins of a policy where the operator may not do it; empty where it does."""
    line = line_of(release)
    if policy is None or line is None:
        return ""
    return restart_hint(line, [item for item in daemonsets if is_owned(item, policy)])
