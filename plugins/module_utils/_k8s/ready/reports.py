# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What the agents of an operator do on nodes: their reports, and where these say nothing, their pods, logs and reboots.

Pods and logs are read only while a node is not ready.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from ..._fabric.operator.profiles.profile import NodeReport
from ..._fabric.operator.readiness import Finding, Readiness
from ..client.api import ApiError
from ..client.kinds import collection
from ..client.mirror import Reader
from ..objects import agents

Object = Mapping[str, Any]
# A log is read this often, of so many nodes, and no more of it.
LOG_SECONDS = 30.0
_LOG_NODES = 3
_LOG = {"tailLines": 400, "limitBytes": 131072}
# A node boots once for its reasons, and a second time when something else asked for that. A third time is a loop.
_BOOTS = 3
_START_SECONDS = 300.0


@dataclass
class Seen:
    """What earlier looks saw: boots of nodes, when logs were read, and what they said."""

    boots: dict[str, set[str]] = field(default_factory=dict)
    read: float = 0.0
    said: dict[str, str] = field(default_factory=dict)


def look(
    api: Reader, report: NodeReport, items: Mapping[str, Sequence[Object]], *, elapsed: float, seen: Seen
) -> Readiness:
    """Return whether the agents have done their work on all nodes, and what keeps them from it.

    ``items``: node -> the objects that are for it.
    """
    place = next((own[0]["metadata"].get("namespace") for own in items.values()), None)
    states = agents.states(api, report, place)
    parts = {node: report.ready(own, states.get(node), node) for node, own in items.items()}
    waiting = [node for node, part in parts.items() if not part.ready]
    if not waiting:
        return Readiness.joined(parts.values())
    working = {node: states[node] for node in waiting if report.works(states.get(node))}
    findings = [
        *agents.troubles(api, report, place),
        *_logs(api, report, working, place=place, elapsed=elapsed, seen=seen),
        *_boots(api, [node for node in waiting if report.boots(states.get(node))], seen),
    ]
    return Readiness.joined([*parts.values(), Readiness.of(findings)])


def _logs(
    api: Reader, report: NodeReport, nodes: Mapping[str, Object], *, place: Any, elapsed: float, seen: Seen
) -> Iterator[Finding]:
    """Yield what the agents of nodes (name -> report) say again and again; read now and then, remembered between."""
    seen.said = {node: text for node, text in seen.said.items() if node in nodes}
    if not nodes:
        seen.read = elapsed
    elif elapsed - seen.read >= LOG_SECONDS:
        seen.read = elapsed
        pods = {
            (pod.get("spec") or {}).get("nodeName"): pod["metadata"]["name"] for pod in agents.pods(api, report, place)
        }
        for node in [node for node in nodes if node in pods][:_LOG_NODES]:
            log = _log(api, f"{collection('v1', 'pods', place)}/{pods[node]}/log", report)
            seen.said[node] = report.complaint(log, nodes[node])
    for node, text in seen.said.items():
        if text:
            yield Finding(f"Node {node}: {report.agent} fails again and again: {text}", True, 2 * LOG_SECONDS)


def _log(api: Reader, path: str, report: NodeReport) -> str:
    """Return the end of a log, nothing where it may not be read."""
    try:
        response = api.send("GET", path, {"container": report.agent, **_LOG})
    except ApiError:
        return ""
    return response.text if response.status == 200 else ""


def _boots(api: Reader, nodes: Sequence[str], seen: Seen) -> Iterator[Finding]:
    """Yield the nodes that the operator reboots again after each boot."""
    for node in nodes:
        found = api.get(f"{collection('v1', 'nodes')}/{node}") or {}
        boot = ((found.get("status") or {}).get("nodeInfo") or {}).get("bootID")
        boots = seen.boots.setdefault(node, set())
        boots.update(filter(None, [boot]))
        if len(boots) >= _BOOTS:
            yield Finding(
                f"Node {node}: the SR-IOV operator has rebooted it {len(boots) - 1} times and wants to do so again,"
                " because it cannot set the kernel arguments that it wants on this system. The playbook lint names"
                " them: set them with the role host_kernel",
                True,
                # The daemon withdraws its request only after it has started on the new boot.
                _START_SECONDS,
            )
