# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The status of a NicClusterPolicy or NicNodePolicy, written as the recorded operator writes it. Pure."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from .components import COMPONENTS, POLICY_NAME, Component, Object, selects

_BY_STATE = {one.state: one for one in COMPONENTS}


@dataclass(frozen=True)
class Judged:
    """What one walk found of a component: ready, notReady, error or ignore, and why."""

    state: str
    message: str = ""


def daemon_set_ready(status: Object | None) -> bool:
    """The operator's own test. It ignores observedGeneration: that is one of its traps."""
    status = status or {}
    desired = status.get("desiredNumberScheduled", 0)
    same = desired == status.get("numberAvailable", 0) == status.get("updatedNumberScheduled", 0)
    return bool(desired and same)


def unsupported(name: str) -> Object:
    """The status of a policy with any other name than the only one that counts."""
    reason = f"Unsupported NicClusterPolicy instance {name}. Only instance with name {POLICY_NAME} is supported"
    return {"state": "ignore", "reason": reason}


def overlap(policy: Object, policies: list[Object], nodes: list[Object], now: str) -> Object | None:
    """The status of a NicNodePolicy that came while nodes are selected by several, None when there is none such.

    As recorded: one that selects none of these nodes gets it too, its Ready condition is true, and a policy that
    already has a state keeps that.
    """
    if (policy.get("status") or {}).get("appliedStates"):
        return None
    found = []
    for node in sorted(nodes, key=lambda one: one["metadata"]["name"]):
        names = sorted(one["metadata"]["name"] for one in policies if selects(one, node))
        if len(names) > 1:
            found.append(f'node "{node["metadata"]["name"]}" is selected by policies: [{", ".join(names)}]')
    if not found:
        return None
    old, generation = (policy.get("status") or {}).get("conditions") or [], policy["metadata"]["generation"]
    reason = f"node selector overlap detected: {'; '.join(found)}"
    return {"state": "error", "reason": reason, "conditions": _conditions(old, generation, {}, now)}


def next_status(
    old: Object | None,
    generation: int,
    judged: dict[str, Judged],
    now: str,
    parts: tuple[Component, ...] = COMPONENTS,
) -> Object:
    """The whole status after a walk.

    judged: by state name, that of all parts, in whose order it is. now: RFC 3339, for conditions that change.
    The very first status has no messages in appliedStates: they come with the second one.
    """
    first = not (old or {}).get("appliedStates")
    states = {found.state for found in judged.values()} - {"ignore"}
    return {
        "state": "ready" if states <= {"ready"} else "notReady",
        "appliedStates": [_applied(one.state, judged[one.state], first) for one in parts],
        "conditions": _conditions((old or {}).get("conditions") or [], generation, judged, now),
    }


def _applied(name: str, found: Judged, first: bool) -> Object:
    entry = {"name": name, "state": found.state}
    if found.message and not first:
        entry["message"] = found.message
    return entry


def _conditions(old: list[Object], generation: int, judged: dict[str, Judged], now: str) -> list[Object]:
    used = [_BY_STATE[state] for state, found in judged.items() if found.state != "ignore"]
    wanted = [_condition(one, judged[one.state]) for one in used]
    wanted.append(_ready([found.state for found in judged.values()]))
    before = {one["type"]: one for one in old}
    by_type = {one["type"]: one for one in wanted}
    # In the order of their first appearance; a component taken out loses its condition.
    order = [kind for kind in before if kind in by_type] + [kind for kind in by_type if kind not in before]
    return [_dated(by_type[kind], before.get(kind), generation, now) for kind in order]


def _condition(component: Component, found: Judged) -> Object:
    status, reason = {
        "ready": ("True", "ComponentReady"),
        "error": ("False", "ComponentError"),
    }.get(found.state, ("False", "ComponentNotReady"))
    kind = f"{component.condition}Ready"
    return {"type": kind, "status": status, "reason": reason, "message": found.message}


def _ready(states: list[str]) -> Object:
    if "error" in states:
        found = ("False", "ComponentError", "One or more components are in error state")
    elif "notReady" in states:
        found = ("False", "ComponentsNotReady", "One or more components are not yet ready")
    else:
        found = ("True", "AllComponentsReady", "")
    return dict(zip(("status", "reason", "message"), found), type="Ready")


def _dated(condition: Object, before: Object | None, generation: int, now: str) -> Object:
    kept: Any = now
    if before and before["status"] == condition["status"]:
        kept = before["lastTransitionTime"]
    return {**condition, "observedGeneration": generation, "lastTransitionTime": kept}
