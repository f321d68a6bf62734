# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Collections of a large cluster, each listed once and then kept up to date by a watch of its own.

Whoever polls reads from memory: a poll of 1000 nodes and their pods would be megabytes and a dozen requests.
"""

from __future__ import annotations

import threading
from collections.abc import Iterator, Mapping
from typing import Any, Protocol

from ..._common.errors import ClusterError
from . import answers
from .api import Api, ApiError, Response
from .poll import Clock
from .watch import watched

# A watch lasts so long, and is one request.
WINDOW = 300.0
LIST_SECONDS = 180.0
# What no one who waits reads, and most of the size of pods and nodes.
_LARGE = {
    "metadata": ("managedFields", "annotations"),
    "spec": ("volumes", "initContainers", "containers", "tolerations", "affinity"),
    "status": ("images", "volumesInUse", "volumesAttached"),
}
_MANY = ("/pods", "/nodes")


class Reader(Protocol):
    """Where objects are read from: Api or Mirror."""

    def get(self, path: str) -> Mapping[str, Any] | None:
        """Return the object at a path, None when there is none."""

    def items(self, path: str, **query: Any) -> Iterator[dict[str, Any]]:
        """Yield the objects of a collection; of queries only ``labelSelector`` with equal values."""

    def send(self, method: str, path: str, query: Mapping[str, Any] | None = None) -> Response:
        """Send one request."""


class Mirror:
    """Reads like Api: ``get`` and ``items``. Its threads end with the process."""

    def __init__(self, api: Api, timeout: float) -> None:
        """``timeout``: seconds after which nobody reads any more."""
        self._api = api
        self._timeout = timeout
        self._collections: dict[str, _Collection] = {}
        # What the account may list and not watch.
        self._listed: set[str] = set()

    def get(self, path: str) -> Mapping[str, Any] | None:
        """Return the object at a path, None when there is none."""
        parent, _slash, name = path.rpartition("/")
        return next((item for item in self.items(parent) if item["metadata"]["name"] == name), None)

    def send(self, method: str, path: str, query: Mapping[str, Any] | None = None) -> Response:
        """Send one request, such as for a log."""
        return self._api.send(method, path, query)

    def items(self, path: str, **query: Any) -> Iterator[dict[str, Any]]:
        """Yield the objects of a collection; none when its custom resource is not served."""
        wanted = [pair.partition("=")[::2] for pair in str(query.get("labelSelector") or "").split(",") if pair]
        for item in self._items(path):
            labels = item["metadata"].get("labels") or {}
            if all(labels.get(key) == value for key, value in wanted):
                yield item

    def _items(self, path: str) -> Iterator[dict[str, Any]]:
        if path in self._listed:
            yield from self._api.items(path)
            return
        if path not in self._collections:
            self._collections[path] = _Collection(self._api, path, self._timeout)
        try:
            yield from self._collections[path].items()
        except ApiError as error:
            del self._collections[path]
            if error.status == 403:
                self._listed.add(path)
                yield from self._api.items(path)
            elif error.status != 404 or not answers.custom(path):
                raise


class _Collection:
    def __init__(self, api: Api, path: str, timeout: float) -> None:
        self._path = path
        self._listed = threading.Event()
        self._found: Mapping[str, Any] = {}
        self._failed: Exception | None = None
        threading.Thread(target=self._follow, args=(api, timeout), daemon=True).start()

    def items(self) -> list[dict[str, Any]]:
        if not self._listed.wait(LIST_SECONDS):
            raise ClusterError(f"{self._path} was not listed in {LIST_SECONDS:.0f} s. Check the API server")
        if self._failed is not None:
            raise self._failed
        # Copied in one step, since the thread goes on; whoever reads may add keys.
        return [dict(item) for item in list(self._found.values())]

    def _follow(self, api: Api, timeout: float) -> None:
        try:
            see = slim if self._path.endswith(_MANY) else dict
            changes = watched(api, self._path, "", see=see, timeout=timeout, clock=Clock(), window=WINDOW)
            for _elapsed, found in changes:
                self._found = found
                self._listed.set()
        except Exception as error:  # whoever reads gets it, whatever it is
            self._failed = error
        finally:
            self._listed.set()


def slim(item: Mapping[str, Any]) -> dict[str, Any]:
    """Return a pod or node without the parts that no one who waits reads."""
    found = dict(item)
    for part, keys in _LARGE.items():
        if isinstance(item.get(part), Mapping):
            found[part] = {key: value for key, value in item[part].items() if key not in keys}
    return found
