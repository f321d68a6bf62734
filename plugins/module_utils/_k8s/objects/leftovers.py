# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What a removed chart leaves behind: definitions of its kinds, and labels of its programs on nodes.

Helm never removes definitions. One is removed when it was not there before our installation, is not part of another
Helm release, and no object of its kind is left. Node Feature Discovery lists its own labels on each Node.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from ..._fabric.operator.profiles import registry
from ..client.api import MERGE, Api
from ..client.kinds import DEFINITIONS, collection
from ..client.poll import Clock
from .apply import Options, Outcome, wait_gone
from .release import in_groups

NFD_LABELS = "nfd.node.kubernetes.io/feature-labels"
_NFD_PREFIX = "feature.node.kubernetes.io/"
_RELEASE = "meta.helm.sh/release-name"


@dataclass(frozen=True)
class Wanted:
    """API ``groups`` whose definitions go, but those in ``keep`` and of other Helm releases than ``release``.

    ``labels``: node labels that go unless a person set them with kubectl; ``nfd``: those of Node Feature Discovery too.
    """

    groups: Collection[str] = ()
    keep: Collection[str] = ()
    release: str = ""
    labels: Sequence[str] = ()
    nfd: bool = False


def remove(api: Api, wanted: Wanted, options: Options, *, clock: Clock) -> list[Outcome]:
    """Remove the unused definitions and the node labels."""
    unused = list(_unused_definitions(api, wanted)) if wanted.groups else []
    for outcome in unused:
        if not options.check:
            api.delete(f"{DEFINITIONS}/{outcome.item['metadata']['name']}")
    if unused and not options.check:
        wait_gone(api, [outcome.item for outcome in unused], options, clock=clock)
    return unused + (list(_drop_labels(api, wanted, options)) if wanted.labels or wanted.nfd else [])


def _unused_definitions(api: Api, wanted: Wanted) -> Iterator[Outcome]:
    for meta in api.metadata(DEFINITIONS):
        name = meta["name"]
        release = (meta.get("annotations") or {}).get(_RELEASE, wanted.release)
        ours = in_groups(name, wanted.groups) and name not in wanted.keep and release == wanted.release
        if ours and not _used(api, name):
            item = {
                "apiVersion": "apiextensions.k8s.io/v1",
                "kind": "CustomResourceDefinition",
                "metadata": {"name": name},
            }
            yield Outcome(item, {}, None, "delete")


def _used(api: Api, name: str) -> bool:
    plural, _dot, group = name.partition(".")
    spec = (api.get(f"{DEFINITIONS}/{name}") or {}).get("spec") or {}
    served = [version["name"] for version in spec.get("versions") or [] if version.get("served")]
    return bool(served) and any(True for _item in api.items(collection(f"{group}/{served[0]}", plural), limit=1))


def _drop_labels(api: Api, wanted: Wanted, options: Options) -> Iterator[Outcome]:
    path = collection("v1", "nodes")
    for meta in api.metadata(path):
        labels = meta.get("labels") or {}
        listed = _listed(meta) if wanted.nfd else set()
        ours = {*listed, *wanted.labels} - (_by_hand(meta) - listed)
        found = {key: value for key, value in labels.items() if key in ours}
        if not found and not listed:
            continue
        if not options.check:
            body: dict[str, Any] = {"labels": dict.fromkeys(found)}
            body.update({"annotations": {NFD_LABELS: None}} if listed else {})
            api.call("PATCH", f"{path}/{meta['name']}", {}, body={"metadata": body}, content_type=MERGE)
        item = {"kind": "Node", "metadata": {"name": meta["name"]}}
        yield Outcome(item, {"metadata": {"labels": found}}, {}, "release")


def of_agents(api: Api, options: Options, *, gone: Collection[str]) -> list[Outcome]:
    """Remove labels and annotations from Nodes that the agents of operators left; none of an agent that still runs.

    ``gone``: namespaces that are removed, or would be in check mode.
    """
    daemonsets = api.metadata(collection("apps/v1", "daemonsets"))
    running = {meta["name"] for meta in daemonsets if meta.get("namespace") not in gone}
    reports = [kind.report for kind in registry.kinds() if kind.report and kind.report.agent not in running]
    marks = {mark for report in reports for mark in report.marks}
    path, done = collection("v1", "nodes"), []
    for meta in api.metadata(path) if marks else ():
        ours = marks - _by_hand(meta)
        held = {
            part: {key: value for key, value in (meta.get(part) or {}).items() if key in ours}
            for part in ("labels", "annotations")
        }
        found = {part: keys for part, keys in held.items() if keys}
        if not found:
            continue
        if not options.check:
            body = {part: dict.fromkeys(keys) for part, keys in found.items()}
            api.call("PATCH", f"{path}/{meta['name']}", {}, body={"metadata": body}, content_type=MERGE)
        item = {"kind": "Node", "metadata": {"name": meta["name"]}}
        done.append(Outcome(item, {"metadata": found}, {}, "release"))
    return done


def _by_hand(meta: Mapping[str, Any]) -> set[str]:
    """Return the labels and annotations of a Node that kubectl set, as its managedFields record it."""
    found: set[str] = set()
    for entry in meta.get("managedFields") or []:
        if str(entry.get("manager")).startswith("kubectl"):
            fields = (entry.get("fieldsV1") or {}).get("f:metadata") or {}
            found.update(key[2:] for part in ("f:labels", "f:annotations") for key in fields.get(part) or {})
    return found


def _listed(meta: Mapping[str, Any]) -> set[str]:
    """Return the labels that Node Feature Discovery says it has set on a Node; it leaves its usual prefix out."""
    text = (meta.get("annotations") or {}).get(NFD_LABELS) or ""
    return {name if "/" in name else _NFD_PREFIX + name for name in text.split(",") if name}
