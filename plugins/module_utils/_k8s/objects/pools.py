# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Address pools that pods use: a change that takes addresses from pods is refused before anything is applied."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from ..._common.consent import CONSENT
from ..._common.reader import some
from ..._fabric.operator.common import made_by_us
from ..._fabric.operator.pools import KINDS, NOTES, Effect, creation, effect, users
from ..client.api import Api, ApiError
from ..client.kinds import NICS, POOLS, collection, label, path_of


def existing(api: Api, items: Sequence[Mapping[str, Any]]) -> dict[str, dict[str, Any]]:
    """Return label -> pool where pools among ``items`` are to be; one request per kind and namespace."""
    for item in (wanted := _pools(items)):
        path_of(api, item)
    places = dict.fromkeys((item["kind"], item["metadata"]["namespace"]) for item in wanted)
    found = (
        {**pool, "apiVersion": POOLS, "kind": kind}
        for kind, space in places
        for pool in api.items(collection(POOLS, f"{kind.lower()}s", space))
    )
    return {label(pool): pool for pool in found}


def problems(
    api: Api,
    items: Sequence[Mapping[str, Any]],
    live: Mapping[str, Mapping[str, Any]],
    *,
    labels: Mapping[str, Mapping[str, str]] | None = None,
) -> list[str]:
    """Return why pools among ``items`` cannot be applied while pods run, without a request when no block changes.

    ``live``: the existing ones. ``labels``: node -> labels that it will have beside its own.
    """
    changes = {label(item): change for item, change in _changes(api, items, live, labels=labels or {})}
    if not changes:
        return []
    try:
        every = api.items(collection("v1", "pods"))
        pods = [pod for pod in every if NOTES & (pod["metadata"].get("annotations") or {}).keys()]
    except ApiError as error:
        if error.status != 403:
            raise
        return [
            f"{name}: changing {change.text} assigns other addresses to {_nodes(change)}, and whether pods hold"
            f" addresses cannot be read ({error}). Use an account with permission to list pods, or consent with"
            f" {CONSENT}: true"
            for name, change in changes.items()
            if not change.new
        ]
    held = {name: list(users(change, pods)) for name, change in changes.items()}
    return [_problem(name, changes[name], found) for name, found in held.items() if found]


def lost(api: Api, items: Sequence[Mapping[str, Any]]) -> list[str]:
    """Return why policies of ours among ``items`` cannot be removed: every pool goes with nv-ipam, whoever made it."""
    policies = [item for item in items if (item.get("apiVersion"), item.get("kind")) == (NICS, "NicClusterPolicy")]
    alive = [item for item in policies if _brings_pools(api.get(path_of(api, item)))]
    if not alive:
        return []
    foreign = [
        label({"kind": kind, **pool})
        for kind in KINDS
        for pool in api.items(collection(POOLS, f"{kind.lower()}s"))
        if not made_by_us(pool)
    ]
    return [
        f"{label(item)}: the operator removes all address pools with this policy, and this collection does not manage"
        f" these: {some(foreign)}. Save and remove them, then rerun the playbook"
        for item in alive
        if foreign
    ]


def _brings_pools(live: Mapping[str, Any] | None) -> bool:
    if live is None or live["metadata"].get("deletionTimestamp"):
        return False
    return made_by_us(live) and "nvIpam" in (live.get("spec") or {})


def _problem(name: str, change: Effect, held: Sequence[str]) -> str:
    what, restore = "but these pods keep addresses of the pool", " restore the former values,"
    why = f"changing {change.text} assigns other addresses to {_nodes(change)}"
    if change.new:
        what, restore = "but these pods hold some of them", ""
        why = f"it does not exist, and creating it assigns addresses of {change.network}"
    return (
        f"{name}: {why}, {what}: {some(held)}. The same addresses would be assigned to other pods. Remove these"
        f" workloads and rerun the playbook,{restore} or consent with {CONSENT}: true"
    )


def _nodes(change: Effect) -> str:
    return some(change.lost) if change.lost else "nodes"


def _pools(items: Sequence[Mapping[str, Any]]) -> list[Mapping[str, Any]]:
    return [item for item in items if item.get("kind") in KINDS and item.get("apiVersion") == POOLS]


def _changes(
    api: Api,
    items: Sequence[Mapping[str, Any]],
    live: Mapping[str, Mapping[str, Any]],
    *,
    labels: Mapping[str, Mapping[str, str]],
) -> Iterator[tuple[Mapping[str, Any], Effect]]:
    """Yield the pools that are new, and those whose change takes blocks from nodes."""
    wanted = _pools(items)
    for item in wanted:
        made = creation(item.get("spec") or {}) if label(item) not in live else None
        if made is not None:
            yield item, made
    pairs = [(item, live[label(item)]) for item in wanted if label(item) in live]
    known: Mapping[str, Mapping[str, str]] = {}
    if any(item["spec"].get("nodeSelector") != (pool.get("spec") or {}).get("nodeSelector") for item, pool in pairs):
        known = _labels(api, labels)
    for item, pool in pairs:
        change = effect(pool, item["spec"], known)
        # A pool whose status has no blocks does not tell what its pods hold.
        if change is not None and (change.lost or not change.kept):
            yield item, change


def _labels(api: Api, added: Mapping[str, Mapping[str, str]]) -> dict[str, Mapping[str, str]]:
    metas = [node["metadata"] for node in api.items(collection("v1", "nodes"))]
    return {meta["name"]: {**(meta.get("labels") or {}), **added.get(meta["name"], {})} for meta in metas}
