# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Close a Node for new pods, remember at the Node that it was us and why, and open it again."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Callable
from urllib.parse import quote

from ..._common.errors import ClusterError, ConflictError
from ..client.api import Api, ApiError
from ..client.kinds import collection
from ..client.nodes import Host, control_plane, node_of_host
from ..client.poll import Clock, ticks

# There only when we cordoned the node: a run that was cut off is finished by the next one.
CORDONED = "gpufabric.rdma/cordoned"
# What is going on, or what went wrong, for whoever looks at the node.
REBOOT = "gpufabric.rdma/reboot"
POLL = 3.0
_TRIES = 5

Node = Mapping[str, Any]


def find_node(api: Api, host: Host) -> Node | None:
    """Return the Node of a host, None when the host is certainly not a node; ClusterError in doubt."""
    return node_of_host(host, list(api.items(collection("v1", "nodes"))))


def check_control_plane(api: Api, node: Node) -> None:
    """ConflictError when a control-plane node would go down while another one is down or being rebooted."""
    if not control_plane(node):
        return
    name = node["metadata"]["name"]
    for other in api.items(collection("v1", "nodes")):
        if other["metadata"]["name"] == name or not control_plane(other):
            continue
        mark = view(other)["annotations"].get(REBOOT)
        why = f'is being rebooted ("{mark}")' if mark else not_ready(other, "")
        if why:
            raise ConflictError(
                f"Node {name} belongs to the control plane, and so does Node {other['metadata']['name']}: {why}."
                " Only one node of the control plane may be down at a time. Restore that Node first: run the"
                " playbook for its host, or repair it and remove its annotation gpufabric.rdma/reboot"
            )


def view(node: Node) -> dict[str, Any]:
    """Return what of a Node is changed here, as a diff shows it."""
    notes = node["metadata"].get("annotations") or {}
    return {
        "unschedulable": bool((node.get("spec") or {}).get("unschedulable")),
        "annotations": {key: notes[key] for key in (CORDONED, REBOOT) if key in notes},
    }


def closed(node: Node, reason: str) -> dict[str, Any]:
    """Return the view of the node once it is cordoned; the mark is ours only when nobody cordoned it before."""
    before = view(node)
    ours = {} if before["unschedulable"] else {CORDONED: "true"}
    return {"unschedulable": True, "annotations": {**before["annotations"], **ours, REBOOT: reason}}


def opened(node: Node) -> dict[str, Any]:
    """Return the view of the node once it is given back: uncordoned only when we cordoned it."""
    before = view(node)
    ours = CORDONED in before["annotations"]
    return {"unschedulable": before["unschedulable"] and not ours, "annotations": {}}


def noted(node: Node, reason: str) -> dict[str, Any]:
    """Return the view of the node with another reason, otherwise as it is."""
    before = view(node)
    return {**before, "annotations": {**before["annotations"], REBOOT: reason}}


def change(api: Api, name: str, wanted: Callable[[Node], dict[str, Any]]) -> tuple[dict[str, Any], dict[str, Any]]:
    """Bring a Node to the view that ``wanted`` makes of it; return the views before and after.

    Only what was read is changed: when somebody else changes the node meanwhile, it is read again.
    """
    path = f"{collection('v1', 'nodes')}/{quote(name)}"
    for attempt in range(1, _TRIES + 1):
        node = _read(api, name)
        before, after = view(node), wanted(node)
        if before == after:
            return before, after
        try:
            return before, view(api.merge(path, _patch(node, after)))
        except ApiError as error:
            if error.status != 409 or attempt == _TRIES:
                raise
    raise AssertionError("unreachable")


def _read(api: Api, name: str) -> Node:
    node = api.get(f"{collection('v1', 'nodes')}/{quote(name)}")
    if node is None:
        raise ClusterError(f"Node {name} no longer exists. Check what removed it, then rerun the playbook")
    return node


def _patch(node: Node, after: Mapping[str, Any]) -> dict[str, Any]:
    notes = {key: after["annotations"].get(key) for key in (CORDONED, REBOOT)}
    meta = {"annotations": notes, "resourceVersion": node["metadata"].get("resourceVersion")}
    return {"metadata": meta, "spec": {"unschedulable": True if after["unschedulable"] else None}}


def wait_ready(api: Api, name: str, boot_id: str, *, timeout: float, clock: Clock) -> None:
    """Wait until the kubelet of this boot says Ready; ClusterError says what it said last.

    Right after a reboot the Node is still Ready from before it; the boot id tells the two apart.
    The API server may be away for a while: it can run on the very host that was rebooted.
    """
    why = "it was not looked at"
    for _elapsed in ticks(timeout, POLL, clock):
        try:
            why = not_ready(_read(api, name), boot_id)
        except ApiError as error:
            if error.status and error.status < 500:
                raise
            why = str(error)
        if not why:
            return
    raise ClusterError(f"Node {name} is not Ready {timeout:.0f} s after the host booted: {why}. Check its kubelet")


def not_ready(node: Node, boot_id: str) -> str:
    """Return why a Node is not Ready since the boot ``boot_id`` (empty: any); empty when it is."""
    status = node.get("status") or {}
    seen = str((status.get("nodeInfo") or {}).get("bootID") or "")
    if boot_id and seen != boot_id:
        return f"its kubelet has not reported since the boot (boot id {seen or 'unknown'}, expected {boot_id})"
    ready: Mapping[str, Any] = next((c for c in status.get("conditions") or [] if c.get("type") == "Ready"), {})
    if ready.get("status") == "True":
        return ""
    said = ": ".join(str(ready[key]) for key in ("reason", "message") if ready.get(key))
    return said or "it has no Ready condition"
