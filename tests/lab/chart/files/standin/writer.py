# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Writing to the API server: children, statuses, annotations."""

from __future__ import annotations

from typing import Any

from . import networks
from .api import MERGE, Api, ApiError
from .components import Object

NADS = "/apis/k8s.cni.cncf.io/v1"
PATHS = {
    "DaemonSet": ("/apis/apps/v1", "daemonsets"),
    "Deployment": ("/apis/apps/v1", "deployments"),
    "ServiceAccount": ("/api/v1", "serviceaccounts"),
    "ConfigMap": ("/api/v1", "configmaps"),
    "CustomResourceDefinition": ("/apis/apiextensions.k8s.io/v1", "customresourcedefinitions"),
    "NetworkAttachmentDefinition": (NADS, "network-attachment-definitions"),
}


def path(kind: str, namespace: str = "", name: str = "") -> str:
    """Where objects of a kind of ours are served."""
    group, plural = PATHS[kind]
    scope = f"/namespaces/{namespace}" if namespace else ""
    return f"{group}{scope}/{plural}" + (f"/{name}" if name else "")


class Writer:
    """Creates, replaces and deletes children; answers what went wrong as text where the status shows it."""

    def __init__(self, api: Api) -> None:
        self.api = api.another()

    def apply(self, wanted: Object) -> str:
        """Make it so, unless revision and owner are the wanted ones already. Returns the problem or ""."""
        for _ in range(3):
            try:
                self._apply(wanted)
            except ApiError as error:
                if error.code != 409:
                    return str(error)
            else:
                return ""
        return "the object keeps changing"

    def _apply(self, wanted: Object) -> None:
        metadata = wanted["metadata"]
        where = path(wanted["kind"], metadata.get("namespace", ""))
        found = self._get(f"{where}/{metadata['name']}")
        if found is None:
            metadata.pop("resourceVersion", None)
            self.api.request("POST", where, wanted)
        elif not networks.same(found, wanted) or not _same_owner(found, wanted):
            metadata["resourceVersion"] = found["metadata"]["resourceVersion"]
            self.api.request("PUT", f"{where}/{metadata['name']}", wanted)

    def delete(self, where: str) -> None:
        """Delete in the background; gone already is fine."""
        try:
            self.api.request("DELETE", where, {"propagationPolicy": "Background"})
        except ApiError as error:
            if error.code != 404:
                raise

    def status(self, where: str, old: Object | None, new: Object) -> None:
        """Write a status that differs; None as a value takes a key away. Gone meanwhile is fine."""
        changes = {key: value for key, value in new.items() if (old or {}).get(key) != value}
        if changes:
            self._patch(f"{where}/status", {"status": changes})

    def annotations(self, where: str, old: Object | None, new: dict[str, str]) -> None:
        """Make these the only annotations."""
        if (old or {}) != new:
            gone: dict[str, Any] = {key: None for key in old or {}}
            self._patch(where, {"metadata": {"annotations": {**gone, **new}}})

    def _patch(self, where: str, body: Object) -> None:
        try:
            self.api.request("PATCH", where, body, MERGE)
        except ApiError as error:
            if error.code != 404:
                raise

    def _get(self, where: str) -> Object | None:
        try:
            return self.api.request("GET", where)
        except ApiError as error:
            if error.code == 404:
                return None
            raise


def _same_owner(found: Object, wanted: Object) -> bool:
    owners = [one.get("uid") for one in found["metadata"].get("ownerReferences") or []]
    return owners == [wanted["metadata"]["ownerReferences"][0]["uid"]]
