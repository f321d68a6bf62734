# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What a teardown may remove of the network operator: only what has our mark (installation.py)."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from .installation import Seen, half_removed, is_ours, mark_object, namespace_object, state


@dataclass(frozen=True)
class Removal:
    """What a teardown removes: the Helm release and objects; ``notes``: what stays.

    ``leftovers``: definitions but those in ``keep``, and the operator's node labels; ``nfd``: those of NFD too.
    """

    release: str
    objects: tuple[Mapping[str, Any], ...]
    leftovers: bool
    keep: tuple[str, ...]
    nfd: bool
    notes: tuple[str, ...]
    problems: tuple[str, ...]


def removal(namespace: str, seen: Seen) -> Removal:
    """Return what a teardown may remove: only what has our mark."""
    ours = seen.managed
    objects = [mark_object(namespace, seen.mark)] if seen.mark else []
    strangers = sorted(set(_strangers(namespace, seen, ours)))
    foreign = [item for item in seen.operators if not ours or (item["namespace"], item["release"]) != (namespace, ours)]
    notes = [
        f"Network operator {item['namespace']}/{item['name']} is not managed by this collection. It was not removed."
        for item in foreign
    ]
    if seen.namespace is not None and is_ours(seen.namespace):
        if strangers:
            notes.append(
                f"Namespace {namespace} was not removed: it holds workloads that this collection does not manage:"
                f" {', '.join(strangers)}."
            )
        else:
            objects.append(namespace_object(namespace))
    status = state(seen.history(ours)) if ours else ""
    elsewhere = [item for item in seen.discoveries if item["namespace"] != namespace]
    return Removal(
        release=ours if status else "",
        objects=tuple(objects),
        leftovers=bool(ours) and not foreign,
        keep=seen.mark.definitions if seen.mark else (),
        nfd=bool(ours and seen.mark and seen.mark.nfd) and not foreign and not elsewhere,
        notes=tuple(notes),
        problems=(half_removed(ours, namespace),) if status == "uninstalling" else (),
    )


def _strangers(namespace: str, seen: Seen, ours: str) -> Iterator[str]:
    """Yield what runs in the namespace and is neither of our release nor made by an operator."""
    for item in seen.workloads:
        meta = item["metadata"]
        release = (meta.get("annotations") or {}).get("meta.helm.sh/release-name")
        if meta.get("namespace") != namespace or meta.get("ownerReferences") or meta.get("deletionTimestamp"):
            continue
        # Jobs that Helm itself left for a release carry no name of it.
        if ours and (meta.get("annotations") or {}).get("helm.sh/hook"):
            continue
        if not ours or release != ours:
            yield str(meta["name"])
