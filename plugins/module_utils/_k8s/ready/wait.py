# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Poll the cluster until the objects are really ready, in a few list requests a poll whatever the number of nodes."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import zip_longest
from typing import Any

from ..._common.errors import InputError
from ..._fabric.operator import attachments
from ..._fabric.operator.class_ready import class_ready, hint_of, node_policy_ready, offered
from ..._fabric.operator.nodes import selected_labels
from ..._fabric.operator.profiles import registry
from ..._fabric.operator.profiles.kinds import NODE_POLICY
from ..._fabric.operator.profiles.profile import Kind
from ..._fabric.operator.readiness import Finding, Hopeless, Readiness, Stable, policy_ready
from ..client.kinds import NICS, collection
from ..client.mirror import Reader
from ..client.poll import Clock, Tell, silent, ticks
from . import reports

POLL = 2.0
_POLICY = "NicClusterPolicy"


@dataclass(frozen=True)
class NodeClass:
    """The nodes of a class of hosts, the labels that select them, and what each of them is to offer."""

    nodes: Sequence[str]
    selector: Mapping[str, str]
    resources: Mapping[str, int]


@dataclass(frozen=True)
class Wanted:
    """What to wait for: objects as they were applied, and what the plan expects of them.

    ``resources``: of all nodes; those of ``classes`` are of their own nodes. ``without``: resource -> the nodes that
    have no port for it.
    """

    objects: Sequence[Mapping[str, Any]]
    nodes: Sequence[str]
    release: str
    namespace: str
    resources: Mapping[str, int] = field(default_factory=dict)
    classes: Sequence[NodeClass] = ()
    without: Mapping[str, Collection[str]] = field(default_factory=dict)

    def of(self, kind: str) -> list[Mapping[str, Any]]:
        """Return the objects of a kind."""
        return [item for item in self.objects if item.get("kind") == kind]

    def nodes_of(self, item: Mapping[str, Any]) -> Sequence[str]:
        """Return the nodes on which an object is to be ready: those of the classes that it selects, else all."""
        labels = selected_labels(item).items()
        chosen = [own for own in self.classes if labels <= own.selector.items()]
        return [node for own in chosen for node in own.nodes] if chosen else self.nodes

    def by_node(self, kind: str) -> dict[str, list[Mapping[str, Any]]]:
        """Return node -> those objects of a kind that are for it, without nodes that have none."""
        found: dict[str, list[Mapping[str, Any]]] = {}
        for item in self.of(kind):
            for node in self.nodes_of(item):
                found.setdefault(node, []).append(item)
        return found


@dataclass(frozen=True)
class Waited:
    """How it ended: ready, seconds, and why not."""

    ready: bool
    seconds: float
    reasons: tuple[str, ...]
    gave_up: bool = False


def check(wanted: Wanted) -> None:
    """InputError when there is an object that we cannot tell the readiness of."""
    known = sorted({_POLICY, *(kind.kind for kind in registry.kinds())})
    unknown = sorted({str(item.get("kind")) for item in wanted.objects} - set(known))
    if unknown:
        raise InputError(f"kinds that cannot be waited for: {', '.join(unknown)}; known: {', '.join(known)}")


def wait(
    api: Reader,
    wanted: Wanted,
    timeout: float,
    *,
    stable: float,
    clock: Clock,
    tell: Tell = silent,
) -> Waited:
    """Wait until everything was ready for ``stable`` seconds; end early when waiting cannot help.

    ``tell`` gets the seconds and the reasons of each poll after which the wait goes on.
    """
    holds, hopeless, seen = Stable(stable), Hopeless(), reports.Seen()
    found, elapsed = Readiness.of([Finding("nothing was checked yet")]), 0.0
    for elapsed in ticks(timeout, POLL, clock):
        found = Readiness.joined(look(api, wanted, elapsed, seen=seen))
        if holds.update(elapsed, found):
            return Waited(True, elapsed, ())
        if hopeless.update(elapsed, found):
            return Waited(False, elapsed, found.reasons, gave_up=True)
        tell(elapsed, found.reasons)
    return Waited(False, elapsed, found.reasons or (f"ready, but not for {stable:.0f} s without interruption",))


def look(api: Reader, wanted: Wanted, elapsed: float, *, seen: reports.Seen) -> Iterator[Readiness]:
    """Yield the readiness of everything wanted as it is now; ``seen`` keeps what earlier looks saw."""
    for policy in wanted.of(_POLICY):
        yield from _policies(api, wanted, policy)
    for kind in registry.kinds():
        if kind != NODE_POLICY and wanted.of(kind.kind):
            yield from _objects(api, wanted, kind)
            if kind.report:
                own = wanted.by_node(kind.kind)
                yield reports.look(api, kind.report, own, elapsed=elapsed, seen=seen)


def _policies(api: Reader, wanted: Wanted, policy: Mapping[str, Any]) -> Iterator[Readiness]:
    """Yield the readiness of the NicClusterPolicy, of those of classes of hosts, and of the nodes of each class."""
    path = f"{collection(NICS, 'nicclusterpolicies')}/{policy['metadata']['name']}"
    live = api.get(path)
    parts = [
        list(api.items(collection(version, plural, wanted.namespace)))
        for version, plural in (("apps/v1", "daemonsets"), ("apps/v1", "deployments"), ("v1", "pods"))
    ]
    for items, kind in zip(parts, ("DaemonSet", "Deployment", "Pod")):
        for one in items:
            one.setdefault("kind", kind)
    nodes = list(api.items(collection("v1", "nodes")))
    daemonsets, deployments, pods = parts
    yield policy_ready(
        live,
        daemonsets,
        deployments,
        nodes=nodes,
        pods=pods,
        expected_nodes=wanted.nodes,
        release=wanted.release,
        resources={name: count for name, count in wanted.resources.items() if not wanted.without.get(name)},
    )
    hint = hint_of(wanted.release, live, daemonsets)
    partly = {name: count for name, count in wanted.resources.items() if wanted.without.get(name)}
    known = [node for node in nodes if node["metadata"]["name"] in wanted.nodes]
    yield Readiness.of(list(offered(known, partly, wanted.without, hint=hint)))
    for part in wanted.classes:
        yield class_ready(part.selector, nodes, part.nodes, resources=part.resources, hint=hint, without=wanted.without)
    own = wanted.of(NODE_POLICY.kind)
    found = _by_name(api, NICS, NODE_POLICY.plural, namespaces=[None] if own else [])
    for item in own:
        name, count = item["metadata"]["name"], len(wanted.nodes_of(item))
        seen = found.get((None, name))
        made = {**seen, "kind": NODE_POLICY.kind} if seen else None
        yield node_policy_ready(made, name, daemonsets, pods=pods, nodes=count, release=wanted.release)


def _objects(api: Reader, wanted: Wanted, kind: Kind) -> Iterator[Readiness]:
    """Yield the readiness of the objects of a network model's kind, after one list for each namespace."""
    items = wanted.of(kind.kind)
    places = [item["metadata"]["namespace"] if kind.namespaced else None for item in items]
    live = _by_name(api, kind.api_version, kind.plural, namespaces=places)
    spaces = [item["spec"].get("networkNamespace") or "default" for item in items] if kind.attaches else []
    nads = _by_name(api, attachments.API, attachments.PLURAL, namespaces=spaces)
    for item, place, space in zip_longest(items, places, spaces):
        name = item["metadata"]["name"]
        found = live.get((place, name))
        if found is None:
            yield Readiness.of([Finding(f"{kind.kind} {name} is absent")])
        else:
            yield kind.ready(found, nads.get((space, name)), wanted.nodes_of(item))


def _by_name(
    api: Reader, version: str, plural: str, *, namespaces: Sequence[str | None]
) -> dict[tuple[str | None, str], Mapping[str, Any]]:
    return {
        (namespace, item["metadata"]["name"]): item
        for namespace in sorted(set(namespaces), key=str)
        for item in api.items(collection(version, plural, namespace))
    }
