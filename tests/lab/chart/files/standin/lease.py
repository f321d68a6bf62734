# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The lease of the leader: a second operator waits until the first one's is over or given back."""

from __future__ import annotations

import time
from datetime import datetime, timezone

from .api import Api, ApiError
from .components import Object

NAME = "12620820.mellanox.com"
DURATION, RENEW = 30, 10


class Lease:
    """One Lease, held under one identity."""

    def __init__(self, api: Api, namespace: str, identity: str) -> None:
        self._api, self._identity = api.another(), identity
        self._path = f"/apis/coordination.k8s.io/v1/namespaces/{namespace}/leases"

    def acquire(self) -> None:
        """Return when it is ours."""
        while not self.renew():
            time.sleep(2)

    def renew(self) -> bool:
        """Take or keep it; False when somebody else holds it or was quicker, or no server answers."""
        try:
            found = self._get()
            if found and self._other_holds(found["spec"]):
                return False
            wanted = {**(found or self._new()), "spec": self._spec(self._identity)}
            if found:
                self._api.request("PUT", f"{self._path}/{NAME}", wanted)
            else:
                self._api.request("POST", self._path, wanted)
        except ApiError as error:
            if error.code == 409:
                return False
            raise
        except OSError:
            return False
        return True

    def release(self) -> None:
        """Let the next one begin at once."""
        found = self._get()
        if found and found["spec"].get("holderIdentity") == self._identity:
            self._api.request("PUT", f"{self._path}/{NAME}", {**found, "spec": self._spec("")})

    def _get(self) -> Object | None:
        try:
            return self._api.request("GET", f"{self._path}/{NAME}")
        except ApiError as error:
            if error.code == 404:
                return None
            raise

    def _other_holds(self, spec: Object) -> bool:
        holder = spec.get("holderIdentity")
        if not holder or holder == self._identity:
            return False
        renewed = datetime.strptime(spec["renewTime"], "%Y-%m-%dT%H:%M:%S.%fZ")
        age = datetime.now(timezone.utc) - renewed.replace(tzinfo=timezone.utc)
        return age.total_seconds() < spec.get("leaseDurationSeconds", DURATION)

    def _spec(self, holder: str) -> Object:
        stamp = datetime.now(timezone.utc).strftime("%Y-%m-%dT%H:%M:%S.%fZ")
        return {"holderIdentity": holder, "leaseDurationSeconds": DURATION, "renewTime": stamp}

    @staticmethod
    def _new() -> Object:
        return {"apiVersion": "coordination.k8s.io/v1", "kind": "Lease", "metadata": {"name": NAME}}
