# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Are networks and pools really there? The operator's ``ready`` of a network proves nothing, so its NAD is compared."""

from __future__ import annotations

import json
from collections.abc import Collection, Iterator, Mapping
from typing import Any

from ..._common.reader import some
from .readiness import Finding, Readiness

Object = Mapping[str, Any]
_STATUS_LINK = "macvlanNetworkAttachmentDef"


def network_ready(network: Object, nad: Object | None) -> Readiness:
    """Return whether a MacvlanNetwork stands as its NetworkAttachmentDefinition ``nad`` (None: not there)."""
    return Readiness.of(_network(network, nad))


def _network(network: Object, nad: Object | None) -> Iterator[Finding]:
    name = f"MacvlanNetwork {network['metadata']['name']}"
    status = network.get("status") or {}
    # A reason is not cleared when the network recovers, so it counts only with a state that is not ready.
    if status.get("state") != "ready":
        text = f": {status['reason']}" if status.get("reason") else ""
        terminal = status.get("state") == "error"
        yield Finding(f"{name}: {status.get('state') or 'the operator has not seen it yet'}{text}", terminal)
    namespace = network["spec"].get("networkNamespace") or "default"
    if nad is None:
        yield Finding(f"{name}: no NetworkAttachmentDefinition in namespace {namespace} yet")
        return
    if nad["metadata"].get("namespace") != namespace:
        yield Finding(
            f"{name}: its NetworkAttachmentDefinition is in {nad['metadata'].get('namespace')}, not {namespace}"
        )
    yield from _config(name, network["spec"], (nad.get("spec") or {}).get("config") or "")


def _config(name: str, spec: Object, text: str) -> Iterator[Finding]:
    try:
        found = json.loads(text)
        wanted = {"type": "macvlan", "ipam": json.loads(spec.get("ipam") or "{}")}
    except ValueError:
        yield Finding(f"{name}: its NetworkAttachmentDefinition holds no valid JSON", True)
        return
    wanted.update({key: spec[key] for key in ("master", "mode", "mtu") if spec.get(key)})
    for key, value in wanted.items():
        if found.get(key) != value:
            yield Finding(
                f"{name}: its NetworkAttachmentDefinition has {key} {json.dumps(found.get(key))}, expected "
                f"{json.dumps(value)}; delete it if that stays, the operator makes it again"
            )


def pool_ready(pool: Object | None, nodes: Collection[str], name: str = "") -> Readiness:
    """Return whether nv-ipam gave every one of ``nodes`` its block of an IPPool (None: not there, ``name`` tells)."""
    if pool is None:
        return Readiness.of([Finding(f"IPPool {name} is absent".replace("  ", " "))])
    return Readiness.of(_pool(pool, nodes))


def _pool(pool: Object, nodes: Collection[str]) -> Iterator[Finding]:
    allocations = (pool.get("status") or {}).get("allocations") or ()
    served = {allocation["nodeName"] for allocation in allocations}
    missing = sorted(set(nodes) - served)
    if missing:
        yield Finding(f"IPPool {pool['metadata']['name']}: no addresses yet for {some(missing)}")
