# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Networks whose SR-IOV operator is gone: nothing would end the finalizer that it set, and their removal never ends.

The operator sets it where the NetworkAttachmentDefinition is in another namespace than its network, and cannot have it
as an owner. For objects of ours that are being deleted, this does what the operator would do.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from ..._fabric.operator import attachments
from ..._fabric.operator.common import made_by_us
from ..._fabric.operator.deployments import image_name, images
from ..._fabric.operator.profiles import registry
from ..client.api import Api, ApiError
from ..client.kinds import collection, path_of

FINALIZER = "netattdef.finalizers.sriovnetwork.openshift.io"
_OPERATOR = "sriov-network-operator"


def end(api: Api, items: Sequence[Mapping[str, Any]]) -> None:
    """End the finalizers of networks that are being deleted and that no operator serves."""
    runs: dict[str, bool] = {}
    for path, live in _held(api, items):
        space = live["metadata"]["namespace"]
        if space not in runs:
            runs[space] = _runs(api, space)
        if not runs[space]:
            _remove_definition(api, live)
            _end(api, path, live["metadata"])


def _end(api: Api, path: str, meta: Mapping[str, Any]) -> None:
    left = [one for one in meta["finalizers"] if one != FINALIZER]
    try:
        api.merge(path, {"metadata": {"resourceVersion": meta.get("resourceVersion"), "finalizers": left}})
    except ApiError as error:
        # It has gone or changed meanwhile: then another client is at work on it, and what stays is waited for.
        if error.status not in (404, 409):
            raise


def _held(api: Api, items: Sequence[Mapping[str, Any]]) -> Iterator[tuple[str, Mapping[str, Any]]]:
    networks = {kind.kind for kind in registry.kinds() if kind.by_sriov and kind.attaches}
    for item in items:
        live = api.get(path_of(api, item)) if item["kind"] in networks else None
        meta = (live or {}).get("metadata") or {}
        if live and made_by_us(live) and meta.get("deletionTimestamp") and FINALIZER in (meta.get("finalizers") or []):
            yield path_of(api, item), live


def _runs(api: Api, space: str) -> bool:
    """Return whether the operator is installed in a namespace, also where that cannot be seen."""
    try:
        found = list(api.items(collection("apps/v1", "deployments", space)))
    except ApiError as error:
        if error.status != 403:
            raise
        return True
    return any(
        _OPERATOR in item["metadata"]["name"] or any(image_name(image) == _OPERATOR for image in images(item))
        for item in found
    )


def _remove_definition(api: Api, live: Mapping[str, Any]) -> None:
    """Delete the definition of a network, if it is for the resource of the network."""
    spec = live.get("spec") or {}
    space = str(spec.get("networkNamespace") or live["metadata"]["namespace"])
    path = f"{collection(attachments.API, attachments.PLURAL, space)}/{live['metadata']['name']}"
    made = api.get(path)
    notes = ((made or {}).get("metadata") or {}).get("annotations") or {}
    resource = str(notes.get(attachments.RESOURCE_NAME) or "").rpartition("/")[2]
    if made and resource and resource == spec.get("resourceName"):
        api.delete(path, {"preconditions": {"uid": made["metadata"]["uid"]}})
