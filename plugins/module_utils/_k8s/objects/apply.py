# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Apply objects with our field manager and take them back.

An object costs two requests at most: one that reads it, unless the caller has just read it, and one
server-side apply, which changes nothing on the server when nothing differs, and in check mode is a dry run.

What was there before us is shared, not taken: it does not get our mark, and taking it back only
gives up the fields that we applied. Nodes are always like that.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from ..._common.change import Change
from ..._common.errors import ClusterError, ConflictError, FabricError, InputError
from ..._fabric.operator.common import made_by_us
from ..._fabric.operator.profiles import registry
from ..client import answers
from ..client.api import Api, ApiError
from ..client.kinds import label, path_of
from ..client.poll import Clock, Tell, silent, ticks
from .ownership import is_ours, owned_fields, shown, union, without_mark


@dataclass(frozen=True)
class Outcome:
    """One object: the fields of ours before and after; None where there is no object."""

    item: Mapping[str, Any]
    before: Any
    after: Any
    gone: str = ""

    @property
    def action(self) -> str:
        """create, update, delete, release or none; the same word in check mode."""
        if self.before == self.after:
            return "none"
        if self.gone:
            return self.gone
        return "create" if self.before is None else "update"

    def to_dict(self) -> dict[str, Any]:
        """Return what a module result says of the object."""
        meta = self.item["metadata"]
        return {
            "kind": self.item["kind"],
            "name": meta["name"],
            "namespace": meta.get("namespace"),
            "action": self.action,
        }


@dataclass(frozen=True)
class Options:
    """``check``: change nothing. ``force``: take fields from other managers. Seconds to wait.

    ``adopt``: objects that were there before us become ours, with their fields. ``tell`` gets, with each poll of a
    wait, its seconds and what it waits for.
    """

    check: bool = False
    force: bool = False
    timeout: float = 120.0
    adopt: bool = False
    tell: Tell = silent


def told(outcomes: Sequence[Outcome]) -> dict[str, Any]:
    """Return what the result of a module says of objects: changed, diff and objects."""
    differ = [one for one in outcomes if one.action != "none"]
    change = Change({label(one.item): one.before for one in differ}, {label(one.item): one.after for one in differ})
    return {"changed": change.changed, "diff": change.diff(), "objects": [one.to_dict() for one in outcomes]}


def apply_object(
    api: Api, item: Mapping[str, Any], options: Options, *, clock: Clock, known: Mapping[str, Any] | None = None
) -> Outcome:
    """Apply one object; ConflictError names who owns a field, ClusterError says what is missing.

    ``known``: the object as it was just read, None when it is to be read.
    """
    path = path_of(api, item)
    live = _settled(api, item, known or api.get(path), options=options, clock=clock)
    foreign = live is not None and not made_by_us(live)
    if options.adopt and foreign and not _kept(item):
        body, options = dict(item), replace(options, force=True)
    else:
        body = _shared(item, live) if live is None or foreign else dict(item)
    result = _applied(api, path, body, options=options, clock=clock)
    if result is None:
        return Outcome(item, None, dict(item))
    fields = union(owned_fields(live), owned_fields(result))
    return Outcome(item, shown(live, fields), shown(result, fields))


def _settled(
    api: Api, item: Mapping[str, Any], live: Mapping[str, Any] | None, *, options: Options, clock: Clock
) -> Mapping[str, Any] | None:
    """Return the object as it is; None also for one that is being deleted, once it is gone.

    What is applied to an object that is being deleted goes with it, and nothing can be created in such a namespace.
    """
    if live is None or item["kind"] == "Node" or not live["metadata"].get("deletionTimestamp"):
        return live
    if not options.check:
        wait_gone(api, [item], options, clock=clock)
    return None


def _shared(item: Mapping[str, Any], live: Mapping[str, Any] | None) -> dict[str, Any]:
    """Return what to apply to an object that we did not make (yet)."""
    if _kept(item):
        if live is None:
            raise _missing(item)
        if item["kind"] == "Node":
            _only_labels(item)
        # The uid makes sure that an apply can never create an object that went away meanwhile.
        body = without_mark(item)
        return {**body, "metadata": {**body["metadata"], "uid": live["metadata"]["uid"]}}
    return dict(item) if live is None else without_mark(item)


def _kept(item: Mapping[str, Any]) -> bool:
    """Return whether an object is of a kind that is neither created nor deleted."""
    return item["kind"] == "Node" or registry.is_patched(item["kind"])


def _missing(item: Mapping[str, Any]) -> FabricError:
    if item["kind"] == "Node":
        return ClusterError(f"{label(item)} does not exist. Join it to the cluster, or correct node_name of its host")
    return ConflictError(
        f"{label(item)} does not exist. Install the operator that it belongs to, and create it as the documentation of"
        " that operator describes"
    )


def _only_labels(item: Mapping[str, Any]) -> None:
    extra = (set(item) - {"apiVersion", "kind", "metadata"}) | (set(item["metadata"]) - {"name", "labels"})
    if extra:
        raise InputError(f"{label(item)}: only labels of a node can be applied, found {', '.join(sorted(extra))}")


def _applied(api: Api, path: str, body: dict[str, Any], *, options: Options, clock: Clock) -> dict[str, Any] | None:
    """Apply, waiting for a kind that is about to be served; None when a dry run cannot know."""
    for _elapsed in ticks(0 if options.check else 30.0, 1.0, clock):
        try:
            return api.apply(path, body, options.force, dry_run=options.check)
        except ApiError as error:
            if error.status == 409:
                raise _conflict(body, error) from None
            if error.status != 404:
                raise ApiError(f"{label(body)}: {error}", error.status, error.answer) from None
            refused = error
    if options.check:
        return None
    what = f"{body['kind']} of {body['apiVersion']}"
    raise ClusterError(
        f"{label(body)}: it cannot be created: {refused}. Expected kind {what} to be served and its namespace to exist."
        " Install the operator first (roles network_operator and nic_cluster_policy)"
    )


def _conflict(body: Mapping[str, Any], error: ApiError) -> ConflictError:
    """Return what a 409 means: fields have another owner, or the object itself is another one than before."""
    causes = answers.causes(error.answer)
    owners = [f"{c.get('field')}: {c.get('message')}" for c in causes if c.get("reason") == "FieldManagerConflict"]
    if owners:
        return ConflictError(
            f"{label(body)}: another field manager owns fields that have to change: {'; '.join(owners)}."
            " Remove these fields there, or set force: true to take them over"
        )
    return ConflictError(
        f"{label(body)}: another client created, replaced or deleted the object at the same time:"
        f" {error.answer.get('message') or error}. Rerun the playbook"
    )


def remove_object(api: Api, item: Mapping[str, Any], options: Options) -> Outcome:
    """Delete one object of ours, or give up our fields of one that was there before us."""
    path = path_of(api, item)
    live = api.get(path)
    fields = owned_fields(live)
    if live is None or (live["metadata"].get("deletionTimestamp") and made_by_us(live)):
        return Outcome(item, None, None)
    if made_by_us(live) and not _kept(item):
        if not options.check:
            api.delete(path, {"preconditions": {"uid": live["metadata"]["uid"]}})
        return Outcome(item, shown(live, fields) or {}, None, "delete")
    if not fields:
        return Outcome(item, {}, {})
    return _release(api, path, item, live=live, options=options)


def _release(api: Api, path: str, item: Mapping[str, Any], *, live: Mapping[str, Any], options: Options) -> Outcome:
    meta = {key: live["metadata"][key] for key in ("name", "namespace", "uid") if key in live["metadata"]}
    empty = {"apiVersion": item["apiVersion"], "kind": item["kind"], "metadata": meta}
    try:
        result = api.apply(path, empty, False, dry_run=options.check)
    except ApiError as error:
        if error.status != 422:
            raise
        result = _disowned(api, path, live, check=options.check)
    fields = owned_fields(live)
    before, after = shown(live, fields), shown(result, fields)
    # Fields that somebody else owns too stay as they are; that our ownership ends is still a change.
    return Outcome(item, before, after if after != before else {}, "release")


def _disowned(api: Api, path: str, live: Mapping[str, Any], *, check: bool) -> dict[str, Any]:
    """Give up our fields and leave their values: without them the object is not valid, as with fields taken over."""
    meta = live["metadata"]
    others = [entry for entry in meta["managedFields"] if not is_ours(entry)]
    # The version makes sure that no owner is lost that came meanwhile. An empty list would change nothing.
    body = {"metadata": {"resourceVersion": meta.get("resourceVersion"), "managedFields": others or [{}]}}
    return dict(live) if check else api.merge(path, body)


def wait_gone(api: Api, items: Iterable[Mapping[str, Any]], options: Options, *, clock: Clock) -> None:
    """Wait until none of the objects is there; ClusterError names what holds each that stays."""
    left = {path_of(api, item): item for item in items}
    held: dict[str, str] = {}
    for elapsed in ticks(options.timeout, 3.0, clock):
        for path in list(left):
            live = api.get(path)
            if live is None:
                del left[path]
            else:
                held[path] = f"{label(left[path])} ({_holder(live)})"
        if not left:
            return
        options.tell(elapsed, [f"{held[path]} still exists" for path in left])
    raise ClusterError(
        f"{len(left)} objects still exist {options.timeout:.0f} s after their deletion:"
        f" {'; '.join(held[path] for path in left)}. Check what blocks their finalizers"
    )


def _holder(live: Mapping[str, Any]) -> str:
    finalizers = (live.get("metadata") or {}).get("finalizers") or (live.get("spec") or {}).get("finalizers")
    conditions = (live.get("status") or {}).get("conditions") or []
    said = [c.get("message", "") for c in conditions if c.get("status") == "True"]
    return "; ".join([f"finalizers {', '.join(finalizers)}" if finalizers else "no finalizer", *said[:2]])
