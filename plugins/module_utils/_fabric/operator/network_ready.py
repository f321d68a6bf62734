# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Are networks and pools really there? The operator's ``ready`` of a network proves nothing, so its NAD is compared."""

from __future__ import annotations

import json
from collections.abc import Collection, Iterator, Mapping, Sequence
from itertools import zip_longest
from typing import Any

from ..._common.reader import some
from .readiness import Finding, Readiness

Object = Mapping[str, Any]


def network_ready(kind: str, plugin: str, keys: Sequence[str], *, network: Object, nad: Object | None) -> Readiness:
    """Return whether a network is in force as its NetworkAttachmentDefinition ``nad`` (None: not there).

    ``plugin``: the type of CNI plugin that the operator makes of a network of this ``kind``; ``keys``: those of its
    spec that the plugin's config repeats beside ``ipam``.
    """
    name, spec = f"{kind} {network['metadata']['name']}", network["spec"]
    config = {"type": plugin, "ipam": ipam(spec), **{key: spec[key] for key in keys if spec.get(key)}}
    namespace = spec.get("networkNamespace") or "default"
    return Readiness.of([*_status(name, network), *attached(name, namespace, [config], nad=nad)])


def ipam(spec: Object) -> Any:
    """Return the ``ipam`` of a network as its NetworkAttachmentDefinition should have it; invalid JSON as it is."""
    text = spec.get("ipam") or "{}"
    try:
        return json.loads(text)
    except ValueError:
        return text


def attached(name: str, namespace: str, plugins: Sequence[Object], *, nad: Object | None) -> Iterator[Finding]:
    """Yield how the NetworkAttachmentDefinition ``nad`` of a network (None: not there) differs from what it should be.

    ``plugins``: the configuration of each CNI plugin in the order of the chain, with the keys to compare.
    """
    if nad is None:
        yield Finding(f"{name}: no NetworkAttachmentDefinition in namespace {namespace} yet")
        return
    if nad["metadata"].get("namespace") != namespace:
        yield Finding(
            f"{name}: its NetworkAttachmentDefinition is in {nad['metadata'].get('namespace')}, not {namespace}"
        )
    yield from _config(name, plugins, nad)


def _status(name: str, network: Object) -> Iterator[Finding]:
    status = network.get("status") or {}
    # A reason is not cleared when the network recovers, so it counts only with a state that is not ready.
    if status.get("state") != "ready":
        text = f": {status['reason']}" if status.get("reason") else ""
        terminal = status.get("state") == "error"
        yield Finding(f"{name}: {status.get('state') or 'the operator has not reported a status yet'}{text}", terminal)


def _config(name: str, plugins: Sequence[Object], nad: Object) -> Iterator[Finding]:
    try:
        config = json.loads((nad.get("spec") or {}).get("config") or "")
    except ValueError:
        yield Finding(f"{name}: the config of its NetworkAttachmentDefinition is not valid JSON", True)
        return
    found: list[Object] = config.get("plugins") or [config]
    nothing: Object = {"type": None}
    for desired, actual in zip_longest(plugins, found, fillvalue=nothing):
        for key, value in desired.items():
            if actual.get(key) != value:
                yield Finding(
                    f"{name}: its NetworkAttachmentDefinition has {key} {json.dumps(actual.get(key))}, expected "
                    f"{json.dumps(value)}. If this persists, delete it; the operator recreates it"
                )


def pool_ready(kind: str, pool: Object, nodes: Collection[str]) -> Readiness:
    """Return whether nv-ipam gave every one of ``nodes`` its addresses of a pool of this ``kind``."""
    return Readiness.of(_pool(kind, pool, nodes))


def _pool(kind: str, pool: Object, nodes: Collection[str]) -> Iterator[Finding]:
    allocations = (pool.get("status") or {}).get("allocations") or ()
    served = {allocation["nodeName"] for allocation in allocations}
    missing = sorted(set(nodes) - served)
    if missing:
        yield Finding(f"{kind} {pool['metadata']['name']}: no addresses yet for {some(missing)}")
