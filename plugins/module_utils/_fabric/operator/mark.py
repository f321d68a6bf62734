# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Whose the network operator in a cluster is.

An installation of ours has a mark: a ConfigMap in the operator's namespace that names the Helm release, the Secret of
one of its revisions, the release of the operator that runs, and the definitions (CRDs) that were there before. Without
a valid mark the operator belongs to someone else: it is neither upgraded nor removed.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from .common import made_by_us, metadata

MARK = "gpufabric-operator"


@dataclass(frozen=True)
class Revision:
    """One revision of a Helm release, as the labels of its Secret show it."""

    release: str
    number: int
    status: str
    uid: str


@dataclass(frozen=True)
class Mark:
    """What our ConfigMap records. ``secret``: uid of a revision's Secret; ``version``: the release that ran last.

    Both are empty before the first installation.
    """

    release: str
    secret: str
    definitions: tuple[str, ...]
    nfd: bool
    version: str = ""

    @classmethod
    def of(cls, item: Mapping[str, Any] | None) -> Mark | None:
        """Return the mark that a ConfigMap holds; None when it is not one of ours."""
        if not item or not made_by_us(item):
            return None
        data = item.get("data") or {}
        try:
            definitions = json.loads(data.get("definitions", ""))
        except ValueError:
            return None
        if not data.get("release") or not isinstance(definitions, list):
            return None
        nfd, version = data.get("nfd") == "true", data.get("version", "")
        return cls(data["release"], data.get("secret", ""), tuple(map(str, definitions)), nfd, version)


@dataclass(frozen=True)
class Target:
    """What is requested: namespace, Helm release, chart version, whether the chart brings NFD, rule for others'."""

    namespace: str
    release: str
    version: str
    nfd: bool
    existing: str = "refuse"


@dataclass(frozen=True)
class Seen:
    """What the cluster has. ``operators``, ``discoveries``: as survey.py returns them, of all namespaces.

    ``revisions``: those of Helm in the target's namespace. ``inhabitants``: what that namespace holds, without what
    belongs to another object of it; empty where it is not removed.
    """

    revisions: Sequence[Revision]
    mark: Mark | None
    namespace: Mapping[str, Any] | None
    operators: Sequence[Mapping[str, Any]]
    discoveries: Sequence[Mapping[str, Any]]
    inhabitants: Sequence[Mapping[str, Any]]
    definitions: Sequence[str]

    def history(self, release: str) -> list[Revision]:
        """Return the revisions of a release, oldest first."""
        return sorted((r for r in self.revisions if r.release == release), key=lambda r: r.number)

    @property
    def managed(self) -> str:
        """The Helm release that is ours; empty when there is none."""
        if self.mark is None:
            return ""
        found = [revision.uid for revision in self.history(self.mark.release)]
        valid = not found or not self.mark.secret or self.mark.secret in found
        return self.mark.release if valid else ""


def state(history: Sequence[Revision]) -> str:
    """Return the state of a release, in Helm's words; empty when there is none."""
    status = history[-1].status if history else ""
    return "" if status == "uninstalled" else status


def namespace_object(name: str) -> dict[str, Any]:
    """Return the operator's namespace: pods of drivers and device plugins use host paths and privileged containers."""
    meta = metadata(name)
    meta["labels"].update({f"pod-security.kubernetes.io/{mode}": "privileged" for mode in ("enforce", "audit", "warn")})
    return {"apiVersion": "v1", "kind": "Namespace", "metadata": meta}


def mark_object(namespace: str, mark: Mark) -> dict[str, Any]:
    """Return the ConfigMap that holds the mark."""
    data = {
        "release": mark.release,
        "secret": mark.secret,
        "definitions": json.dumps(mark.definitions),
        "nfd": str(mark.nfd).lower(),
        "version": mark.version,
    }
    return {"apiVersion": "v1", "kind": "ConfigMap", "metadata": metadata(MARK, namespace), "data": data}
