# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What removed objects had made on nodes, such as VFs: an agent of the operator undoes it, and reports for each node.

Without waiting, the operator could be removed before its agents are done, and leave it for ever.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from ..._common.errors import ClusterError
from ..._common.reader import some
from ..._fabric.operator.nodes import selected_labels
from ..._fabric.operator.profiles.profile import NodeReport
from ..client.api import Api
from ..client.kinds import collection
from ..client.poll import Clock, Tell, silent, ticks
from . import agents

_POLL = 3.0
Objects = Sequence[Mapping[str, Any]]


def wait(
    api: Api,
    gone: Objects,
    timeout: float,
    *,
    clock: Clock,
    tell: Tell = silent,
) -> None:
    """Wait until no node has what the removed objects had made there; ClusterError names the nodes that have."""
    for kind, report, items in agents.reported(gone):
        place = items[0]["metadata"].get("namespace")
        if not _runs(api, report, place):
            continue
        left: list[str] = []
        for elapsed in ticks(timeout, _POLL, clock):
            left = list(_left(api, report, items))
            if not left:
                break
            tell(elapsed, left)
        if left:
            raise ClusterError(
                f"{len(items)} {kind.kind} were removed, but after {timeout:.0f} s nodes still have what they made:"
                f" {some(left)}. Check the log of the DaemonSet {report.agent} on these nodes, then rerun the playbook."
                " Afterwards, run the playbook prepare with the tag rail_links, since the MTU of ports can be reset"
            )


def notes(api: Api, gone: Objects) -> Iterator[str]:
    """Yield what an operator should know after the removal of objects."""
    for kind, report, items in agents.reported(gone):
        yield report.after
        if not _runs(api, report, items[0]["metadata"].get("namespace")):
            yield (
                f"{kind.kind}: the DaemonSet {report.agent} does not run, so nothing undoes what these objects made on"
                " the nodes"
            )


def _runs(api: Api, report: NodeReport, place: Any) -> bool:
    found = api.get(f"{collection('apps/v1', 'daemonsets', place)}/{report.agent}")
    return bool(found) and bool(((found or {}).get("status") or {}).get("desiredNumberScheduled"))


def _left(api: Api, report: NodeReport, items: Objects) -> Iterator[str]:
    place = items[0]["metadata"].get("namespace")
    labels = {meta["name"]: (meta.get("labels") or {}).items() for meta in api.metadata(collection("v1", "nodes"))}
    for state in api.items(collection(report.api_version, report.plural, place)):
        name = state["metadata"]["name"]
        # Other nodes can have VFs of hosts on ports of the same name.
        own = [item for item in items if selected_labels(item).items() <= labels.get(name, {}.items())]
        yield from report.released(own, state, name).reasons
