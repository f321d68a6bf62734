# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What a removed chart leaves behind: definitions of its kinds, and its operator's labels on nodes.

Helm never removes definitions, and nobody records who brought one. So a definition goes only when
it is no older than the namespace that we made for the chart and no object of its kind is left.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from .api import MERGE, Api
from .apply import Options, Outcome, wait_gone
from .kinds import DEFINITIONS, collection
from .ownership import made_by_us
from .poll import Clock


def made_since(api: Api, objects: Sequence[Mapping[str, Any]]) -> str | None:
    """Return when the first namespace among ``objects`` was made, if it was made by us."""
    for item in objects:
        if item.get("kind") == "Namespace":
            live = api.get(collection("v1", "namespaces") + "/" + item["metadata"]["name"])
            if live and made_by_us(live):
                return str(live["metadata"]["creationTimestamp"])
    return None


def remove(
    api: Api, groups: Sequence[str], labels: Sequence[str], since: str, options: Options, clock: Clock
) -> list[Outcome]:
    """Remove the unused definitions of API ``groups`` made at ``since`` or later, and node labels by prefix."""
    unused = list(_unused_definitions(api, groups, since)) if groups else []
    for outcome in unused:
        if not options.check:
            api.delete(f"{DEFINITIONS}/{outcome.item['metadata']['name']}")
    if unused and not options.check:
        wait_gone(api, [outcome.item for outcome in unused], options, clock)
    return unused + (list(_drop_labels(api, labels, options)) if labels else [])


def _unused_definitions(api: Api, groups: Sequence[str], since: str) -> Iterator[Outcome]:
    for meta in api.metadata(DEFINITIONS):
        plural, _dot, group = meta["name"].partition(".")
        # Both are times in RFC 3339 of one API server, so they compare as text.
        if group in groups and meta["creationTimestamp"] >= since and not _used(api, meta["name"], plural, group):
            item = {
                "apiVersion": "apiextensions.k8s.io/v1",
                "kind": "CustomResourceDefinition",
                "metadata": {"name": meta["name"]},
            }
            yield Outcome(item, {}, None, "delete")


def _used(api: Api, name: str, plural: str, group: str) -> bool:
    spec = (api.get(f"{DEFINITIONS}/{name}") or {}).get("spec") or {}
    served = [version["name"] for version in spec.get("versions") or [] if version.get("served")]
    return bool(served) and any(True for _item in api.items(collection(f"{group}/{served[0]}", plural), limit=1))


def _drop_labels(api: Api, prefixes: Sequence[str], options: Options) -> Iterator[Outcome]:
    path = collection("v1", "nodes")
    for meta in api.metadata(path):
        found = {key: value for key, value in (meta.get("labels") or {}).items() if key.startswith(tuple(prefixes))}
        if not found:
            continue
        if not options.check:
            body = {"metadata": {"labels": dict.fromkeys(found)}}
            api.call("PATCH", f"{path}/{meta['name']}", {}, body, MERGE)
        item = {"kind": "Node", "metadata": {"name": meta["name"]}}
        yield Outcome(item, {"metadata": {"labels": found}}, {}, "release")
