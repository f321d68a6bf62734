# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What a namespace holds that its removal would end or lose; metadata only, so no Secret is read.

An object with an owner is judged by its owner: one that is listed too, or one of the operator's kinds.
"""

from __future__ import annotations

from collections.abc import Container, Iterable, Iterator, Mapping, Sequence
from typing import Any

from .._core.errors import InputError
from . import answers
from .api import Api, ApiError
from .kinds import collection, path_of, served
from .ownership import made_by_us

_KINDS = (
    ("v1", "configmaps", "ConfigMap"),
    ("v1", "persistentvolumeclaims", "PersistentVolumeClaim"),
    ("v1", "pods", "Pod"),
    ("v1", "secrets", "Secret"),
    ("v1", "serviceaccounts", "ServiceAccount"),
    ("apps/v1", "daemonsets", "DaemonSet"),
    ("apps/v1", "deployments", "Deployment"),
    ("apps/v1", "replicasets", "ReplicaSet"),
    ("apps/v1", "statefulsets", "StatefulSet"),
    ("batch/v1", "cronjobs", "CronJob"),
    ("batch/v1", "jobs", "Job"),
)
# It issues the certificates of webhooks, and names a Secret's Certificate instead of an owner.
_ISSUER, _CERTIFICATE = "cert-manager.io", "cert-manager.io/certificate-name"


def read(api: Api, namespace: str, groups: Sequence[str]) -> list[dict[str, Any]]:
    """Return the roots of what a namespace holds, with kind and metadata; ``groups``: those of the operator's kinds.

    ApiError when something cannot be listed, since the namespace must not seem empty then.
    """
    found = _listed(api, namespace, (*_KINDS, *served(api, groups)))
    if any(_CERTIFICATE in _notes(item) for item in found):
        found += _listed(api, namespace, served(api, {_ISSUER}))
    listed = {item["metadata"].get("uid") for item in found}
    certificates = {item["metadata"]["name"] for item in found if item["kind"] == "Certificate"}
    leaving: dict[str, bool] = {}
    return [
        item
        for item in found
        if _notes(item).get(_CERTIFICATE) not in certificates
        and not any(
            owner.get("uid") in listed or _leaves(api, namespace, owner, leaving)
            for owner in _owners(item, groups, listed)
        )
    ]


def _listed(api: Api, namespace: str, kinds: Iterable[tuple[str, str, str]]) -> list[dict[str, Any]]:
    found = []
    for version, plural, kind in kinds:
        path = collection(version, plural, namespace)
        try:
            found += [{"kind": kind, "metadata": meta} for meta in api.metadata(path)]
        except ApiError as error:
            # Its definition has just been removed, and its objects with it.
            if error.status != 404 or not answers.custom(path):
                raise
    return found


def _notes(item: Mapping[str, Any]) -> Mapping[str, str]:
    return item["metadata"].get("annotations") or {}


def _owners(item: Mapping[str, Any], groups: Sequence[str], listed: Container[Any]) -> Iterator[Mapping[str, Any]]:
    for owner in item["metadata"].get("ownerReferences") or []:
        if owner.get("uid") in listed or str(owner.get("apiVersion")).partition("/")[0] in groups:
            yield owner


def _leaves(api: Api, namespace: str, owner: Mapping[str, Any], known: dict[str, bool]) -> bool:
    """Whether an owner is ours, or was removed so that the garbage collector removes what it owned."""
    uid = str(owner.get("uid"))
    if uid not in known:
        try:
            live = api.get(path_of(api, {**owner, "metadata": {"name": owner.get("name"), "namespace": namespace}}))
            known[uid] = live is None or bool(
                live["metadata"].get("uid") != uid or live["metadata"].get("deletionTimestamp") or made_by_us(live)
            )
        except InputError:
            # Its kind is not served: nothing is known of it.
            known[uid] = False
    return known[uid]
