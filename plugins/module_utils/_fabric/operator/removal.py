# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What a teardown may remove of the network operator: only what has our mark (mark.py)."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from ..._common.reader import some
from .common import made_by_us
from .installation import half_removed
from .mark import Seen, mark_object, namespace_object, state

# What Kubernetes puts into every namespace.
_BUILT_IN = {("ConfigMap", "kube-root-ca.crt"), ("ServiceAccount", "default")}
# Annotations of what a program writes anew while it runs: a leader's record, and what NFD's worker found on a node.
_RECORDS = {"control-plane.alpha.kubernetes.io/leader", "nfd.node.kubernetes.io/worker.version"}


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
    if seen.namespace is not None and made_by_us(seen.namespace):
        if strangers:
            notes.append(
                f"Namespace {namespace} was not removed: it holds objects that this collection does not manage:"
                f" {some(strangers)}."
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
    """Yield what the namespace holds and neither Kubernetes, Helm, the operator nor this collection left in it."""
    for item in seen.inhabitants:
        if not (passing(item) or made_by_us(item) or (ours and _of_release(item, namespace, ours))):
            yield f"{item['kind']} {item['metadata']['name']}"


def passing(item: Mapping[str, Any]) -> bool:
    """Return whether an object keeps no namespace: Kubernetes puts it into each, it is going, or it is a record."""
    meta = item["metadata"]
    going = bool(meta.get("deletionTimestamp")) or not _RECORDS.isdisjoint(meta.get("annotations") or {})
    return going or (item["kind"], meta["name"]) in _BUILT_IN


def _of_release(item: Mapping[str, Any], namespace: str, release: str) -> bool:
    """Return whether an object is of our Helm release: applied by it, a hook of it, or a record of a revision."""
    notes, labels = (item["metadata"].get(part) or {} for part in ("annotations", "labels"))
    # What a hook of Helm leaves carries no name of a release.
    if "helm.sh/hook" in notes:
        return True
    if item["kind"] == "Secret" and labels.get("owner") == "helm":
        return bool(labels.get("name") == release)
    place = (notes.get("meta.helm.sh/release-namespace", namespace), notes.get("meta.helm.sh/release-name"))
    return place == (namespace, release)
