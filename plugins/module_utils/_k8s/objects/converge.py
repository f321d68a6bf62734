# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Many objects at once: what goes and what comes, in the order that suits their kinds."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from ..._fabric.intent import platforms
from ..._fabric.operator.order import apply_order, delete_order
from ..client.api import Api
from ..client.kinds import label
from ..client.poll import Clock
from . import agents, finalizers, leftovers, prune, released
from .apply import Options, Outcome, apply_object, remove_object, wait_gone


def remove_all(api: Api, items: list[Any], params: dict[str, Any], *, options: Options, clock: Clock) -> list[Outcome]:
    """Remove what an operator left, then the objects in reverse order; wait until all are gone."""
    done: list[Outcome] = []
    given = params["remains"]
    if given:
        groups, labels = given["definitions"], given["node_labels"]
        wanted = leftovers.Wanted(groups, given["keep"], given["release"], labels, given["nfd"])
        done += leftovers.remove(api, wanted, options, clock=clock)
    done += _removed(api, items, options, clock=clock)
    if given and given["agents"]:
        # They run until their namespace is gone.
        gone = [item["metadata"]["name"] for item in items if item["kind"] == "Namespace"]
        done += leftovers.of_agents(api, options, gone=gone)
    return done


def _removed(api: Api, items: Sequence[Any], options: Options, *, clock: Clock) -> list[Outcome]:
    """Remove the objects in reverse order; wait until they are gone, and what the operator made of them.

    What agents undo on nodes is awaited first: without the policy and the labels of nodes, they do not run.
    """
    ordered = delete_order(items)
    undone = [item for _kind, _report, own in agents.reported(ordered) for item in own]
    first = max((number for number, item in enumerate(ordered, 1) if item in undone), default=0)
    return [
        outcome
        for part in (ordered[:first], ordered[first:])
        for outcome in _removed_at_once(api, part, options, clock=clock)
    ]


def _removed_at_once(api: Api, ordered: Sequence[Any], options: Options, *, clock: Clock) -> list[Outcome]:
    removed = [remove_object(api, item, options) for item in ordered]
    gone = [as_applied(outcome) for outcome in removed if outcome.action == "delete"]
    if not options.check:
        finalizers.end(api, ordered)
        wait_gone(api, gone, options, clock=clock)
        released.wait(api, gone, options.timeout, clock=clock, tell=options.tell)
    return removed


def as_applied(outcome: Outcome) -> Mapping[str, Any]:
    """Return a removed object with the spec that was applied: what it made on nodes may not follow from the plan."""
    applied = (outcome.before or {}).get("spec")
    return {**outcome.item, "spec": applied} if applied else outcome.item


def outdated(api: Api, params: dict[str, Any], items: list[Any]) -> prune.Found:
    """Return what earlier runs applied and is not among ``items``. Without items nothing says what is outdated."""
    given = params["prune"]
    if not given or not (items or params["state"] == "absent"):
        return prune.Found((), ())
    sriov = platforms.get(given["platform"]).sriov_in(given["namespace"])
    places = prune.Places(given["step"], given["namespace"], given["network_namespace"], sriov)
    return prune.find(api, places, items)


def remove_old(api: Api, items: Sequence[Any], options: Options, *, clock: Clock) -> list[Outcome]:
    """Remove outdated objects in reverse order, and wait until they and what the operator made of them are gone."""
    removed = _removed(api, items, options, clock=clock)
    if not options.check:
        gone = [outcome.item for outcome in removed if outcome.action == "delete"]
        wait_gone(api, prune.made_of(gone), options, clock=clock)
    return removed


def apply_all(
    api: Api,
    items: list[Any],
    old: Sequence[Any],
    *,
    known: Mapping[str, Mapping[str, Any]],
    nodes: Sequence[str],
    options: Options,
    clock: Clock,
) -> list[Outcome]:
    """Apply the objects in order; in check mode, what the operator made of ``old`` ones is still in their place.

    Objects that agents on ``nodes`` carry out come last, when the agents are there. ``known``: label -> object of those
    that were just read; what is removed before may change them.
    """
    known = {} if old else known
    replaced = {label(item) for item in prune.made_of(old)} if options.check else set()
    done, waits = [], [item for _kind, _report, own in agents.reported(items) for item in own]
    for item in apply_order(items):
        if waits and item in waits and not options.check:
            agents.wait(api, waits, nodes, timeout=options.timeout, clock=clock, tell=options.tell)
            waits = []
        if label(item) in replaced:
            done.append(Outcome(item, None, dict(item)))
        else:
            done.append(apply_object(api, item, options, clock=clock, known=known.get(label(item))))
    return done
