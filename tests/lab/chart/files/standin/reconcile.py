# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""One walk over a NicClusterPolicy or NicNodePolicy, in the recorded order and at the recorded pace.

The world (API server and clock) is a parameter: in the lab the real ones, in the tests a replayed recording.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, Protocol

from .components import NODE_POLICY, POLICY_NAME, Component, Object, RenderError, Settings, children, parts, section
from .status import Judged, daemon_set_ready, next_status, unsupported

#: Seconds that a walk takes. A walk over four used components of twelve takes about a second, and the status
#: is written at its end: that is why an old status stays for 0.5 to 1.3 s after a change.
USED, UNUSED, END = 0.15, 0.02, 0.25
#: Seconds until a policy that is not ready is walked again, though nothing happened.
AGAIN = 5.0


class World(Protocol):
    """What a walk needs from outside."""

    def pause(self, seconds: float) -> None:
        """Let time pass."""

    def stamp(self) -> str:
        """The time now, RFC 3339."""

    def nodes(self) -> list[Object]:
        """All Nodes."""

    def apply(self, wanted: Object) -> str:
        """Create the object, or replace it when its revision or owner differs. Returns what went wrong, or ""."""

    def owned(self, state: str, policy: Object) -> list[Any]:
        """References to all children of a policy's component."""

    def delete(self, reference: Any) -> None:
        """Delete one of them; gone already is fine."""

    def daemon_set(self, name: str) -> Object | None:
        """The status of a DaemonSet as last seen."""


def walk(policy: Object, world: World, settings: Settings) -> Object:
    """Bring the children of a policy about and return the status to write (maybe the one it has)."""
    name = policy["metadata"]["name"]
    if name != POLICY_NAME and policy.get("kind") != NODE_POLICY:
        return unsupported(name)
    old = policy.get("status") or {}
    judged = {one.state: _judge(policy, one, world, settings) for one in parts(policy)}
    world.pause(END)
    return next_status(old, policy["metadata"]["generation"], judged, world.stamp(), parts(policy))


def _judge(policy: Object, component: Component, world: World, settings: Settings) -> Judged:
    if section(policy, component) is None:
        return _take_out(policy, component, world)
    try:
        wanted = children(policy, component, world.nodes(), settings)
    except RenderError as error:
        world.pause(USED)
        return Judged(error.state, str(error))
    for one in wanted:
        problem = world.apply(one)
        if problem:
            world.pause(USED)
            return Judged("notReady", f"failed to create/update objects: {problem}")
    world.pause(USED)
    return Judged("ready" if _all_ready(component, wanted, world) else "notReady")


def _all_ready(component: Component, wanted: Iterable[Object], world: World) -> bool:
    """Only DaemonSets count: a Deployment that is down goes unnoticed. A driver without DaemonSet is not ready."""
    names = [one["metadata"]["name"] for one in wanted if one["kind"] == "DaemonSet"]
    if not names:
        return component.state == "state-ib-kubernetes"
    return all(daemon_set_ready(world.daemon_set(name)) for name in names)


def _take_out(policy: Object, component: Component, world: World) -> Judged:
    """A component that was used is notReady for one more status, while its children go."""
    world.pause(UNUSED)
    before = {one["name"]: one["state"] for one in (policy.get("status") or {}).get("appliedStates") or []}
    if before.get(component.state, "ignore") == "ignore":
        return Judged("ignore")
    gone = world.owned(component.state, policy)
    for one in gone:
        world.delete(one)
    return Judged("notReady" if gone else "ignore")
