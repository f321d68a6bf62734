# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What a namespace holds that its removal would end or lose; metadata only, so no Secret is read.

An object with an owner is judged by its owner: one that is listed too, or one of the operator's kinds.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from ..._common.errors import InputError
from ..._fabric.operator.common import made_by_us
from ..client import answers
from ..client.api import Api, ApiError
from ..client.kinds import collection, path_of, served

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
_LISTED = {(version, kind) for version, _plural, kind in _KINDS}
# It issues the certificates of webhooks, and names a Secret's Certificate instead of an owner.
_ISSUER, _CERTIFICATE = "cert-manager.io", "cert-manager.io/certificate-name"


def read(api: Api, namespace: str, groups: Sequence[str]) -> list[dict[str, Any]]:
    """Return the roots of what a namespace holds, with kind and metadata; ``groups``: those of the operator's kinds.

    ApiError when something cannot be listed, since the namespace must not seem empty then.
    """
    found = _listed(api, namespace, (*_KINDS, *served(api, groups)))
    if any(_CERTIFICATE in _notes(item) for item in found):
        found += _listed(api, namespace, served(api, {_ISSUER}))
    known = {str(item["metadata"].get("uid")): True for item in found}
    certificates = {item["metadata"]["name"] for item in found if item["kind"] == "Certificate"}
    return [
        item
        for item in found
        if _notes(item).get(_CERTIFICATE) not in certificates
        and not any(
            _leaves(api, namespace, owner, groups=groups, known=known)
            for owner in item["metadata"].get("ownerReferences") or []
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


def _leaves(
    api: Api, namespace: str, owner: Mapping[str, Any], *, groups: Sequence[str], known: dict[str, bool]
) -> bool:
    """Whether an owner is judged itself, is ours, or is gone, so that what it owned is garbage-collected."""
    uid, version = str(owner.get("uid")), str(owner.get("apiVersion"))
    # An owner is in the same namespace: one of a listed kind that is not in the list is gone.
    if uid not in known and (version, owner.get("kind")) in _LISTED:
        known[uid] = True
    elif uid not in known:
        known[uid] = version.partition("/")[0] in groups and _gone_or_ours(api, namespace, owner)
    return known[uid]


def _gone_or_ours(api: Api, namespace: str, owner: Mapping[str, Any]) -> bool:
    try:
        live = api.get(path_of(api, {**owner, "metadata": {"name": owner.get("name"), "namespace": namespace}}))
    except InputError:
        # Its kind is not served: nothing is known of it.
        return False
    if live is None or live["metadata"].get("uid") != owner.get("uid"):
        return True
    return bool(live["metadata"].get("deletionTimestamp")) or made_by_us(live)
