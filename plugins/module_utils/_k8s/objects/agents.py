# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Agents of an operator on nodes: what they report for each node, their pods, and what objects must wait for."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from ..._common.errors import ClusterError
from ..._common.reader import some
from ..._fabric.operator.nodes import selected_labels
from ..._fabric.operator.pod_failures import pod_findings
from ..._fabric.operator.profiles import registry
from ..._fabric.operator.profiles.profile import Kind, NodeReport
from ..._fabric.operator.readiness import Finding, Hopeless, Readiness
from ..client.kinds import collection
from ..client.mirror import Reader
from ..client.nodes import nodes_of
from ..client.poll import Clock, Tell, silent, ticks

_POLL = 3.0
Objects = Sequence[Mapping[str, Any]]


def reported(items: Objects) -> Iterator[tuple[Kind, NodeReport, Objects]]:
    """Yield the kinds among the objects that agents report on for each node, and their objects."""
    for kind in registry.kinds():
        own = [item for item in items if (item["apiVersion"], item["kind"]) == (kind.api_version, kind.kind)]
        if kind.report and own:
            yield kind, kind.report, own


def nodes_of_items(params: Mapping[str, Any], items: Objects) -> list[str]:
    """Return the nodes whose agents carry out objects: those of the classes that the objects select, else all.

    ``params``: {nodes, classes, nodes_by_host} as fabric_objects has them.
    """
    labels = [selected_labels(item).items() for _kind, _report, own in reported(items) for item in own]
    chosen = [own for own in params["classes"] if any(one <= own["selector"].items() for one in labels)]
    found = [node for own in chosen for node in nodes_of(own["hosts"], params["nodes_by_host"])]
    return found if chosen else list(params["nodes"])


def states(api: Reader, report: NodeReport, place: Any) -> dict[str, Mapping[str, Any]]:
    """Return node -> what the operator reports for it."""
    return {item["metadata"]["name"]: item for item in api.items(collection(report.api_version, report.plural, place))}


def pods(api: Reader, report: NodeReport, place: Any) -> list[Mapping[str, Any]]:
    """Return the agents' pods."""
    return list(api.items(collection("v1", "pods", place), labelSelector=f"app={report.agent}"))


def troubles(api: Reader, report: NodeReport, place: Any) -> Iterator[Finding]:
    """Yield what keeps the agents from running."""
    agent = api.get(f"{collection('apps/v1', 'daemonsets', place)}/{report.agent}")
    if agent is None:
        yield Finding(f"DaemonSet {report.agent} is absent from namespace {place}: read the log of the SR-IOV operator")
        return
    for reason, terminal in pod_findings(pods(api, report, place), [agent]):
        yield Finding(reason, terminal)


def wait(
    api: Reader,
    items: Objects,
    nodes: Sequence[str],
    *,
    timeout: float,
    clock: Clock,
    tell: Tell = silent,
) -> None:
    """Wait until the agents on all nodes have reported what they need for the objects; ClusterError when they do not.

    The operator looks at objects that came before that much later.
    """
    for kind, report, own in reported(items):
        place = own[0]["metadata"].get("namespace")
        hopeless, found = Hopeless(), Readiness(True, False, ())
        for elapsed in ticks(timeout, _POLL, clock):
            found = _known(api, report, nodes, place=place)
            if found.ready or hopeless.update(elapsed, found):
                break
            tell(elapsed, found.reasons)
        if not found.ready:
            raise ClusterError(
                f"{len(own)} {kind.kind} were not applied, because the SR-IOV operator does not know the ports of all"
                f" nodes: {some(found.reasons)}. Correct that, then rerun the playbook"
            )


def _known(api: Reader, report: NodeReport, nodes: Sequence[str], *, place: Any) -> Readiness:
    found = states(api, report, place)
    missing = [reason for node in nodes for reason in [report.lacks(found.get(node), node)] if reason]
    if not missing:
        return Readiness.of([])
    return Readiness.of([*troubles(api, report, place), *map(Finding, missing)])
