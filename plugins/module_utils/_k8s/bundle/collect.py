# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Read the cluster for a support bundle. Whatever cannot be read is noted; Secrets are never read."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping
from typing import Any, Callable

from ..._common.errors import ClusterError
from ..._fabric.operator.common import MANAGED_BY, made_by_us
from ..._fabric.operator.deployments import is_operator
from ..._fabric.report.bundle import Bundle, name_of
from ..client.api import Api, ApiError
from ..client.kinds import DEFINITIONS, collection
from . import objects

# Of each kind; the node states of a large cluster are the most.
MOST_OBJECTS = 2000
MOST_LOGS = 300
LOG_LINES, LOG_BYTES = 5000, 1 << 20
LOG_SECONDS = 20.0
# So many requests may stay without an answer: each takes a minute.
MOST_SILENT = 3
_OPENSHIFT = "/apis/config.openshift.io/v1/clusterversions/version"


class Unreachable(Exception):
    """The API server does not answer any more, so nothing else is asked of it."""


class Reader:
    """Reads one thing after the other into a bundle, and remembers what the cluster is."""

    def __init__(self, api: Api, bundle: Bundle) -> None:
        self._api = api
        self._bundle = bundle
        self.nodes: list[str] = []
        self.openshift = False
        self._answered = False
        self._silent = 0

    def read(self, namespaces: Collection[str]) -> None:
        """Read the cluster; ``namespaces``: where pods are looked at, beside those of operators and testers."""
        try:
            self._document("version", "/version")
            self._answered = True
            self._about()
            spaces = sorted({*namespaces, *self._spaces()})
            pods = [pod for space in spaces for pod in self._workloads(space)]
            self._objects()
            self._events(spaces)
            self._logs(pods)
        except Unreachable:
            self._bundle.miss("cluster", "nothing further was read, because the API server did not answer")

    def _about(self) -> None:
        version = self._document("openshift-version", _OPENSHIFT, absent="")
        self.openshift = version is not None
        try:
            names = [meta["name"] for meta in self._api.metadata(DEFINITIONS)]
            self._bundle.add_object("cluster/definitions.json", sorted(names))
        except ApiError as error:
            self._failed("cluster/definitions.json", error)

    def _document(self, name: str, path: str, absent: str = "there is none") -> dict[str, Any] | None:
        try:
            found = self._api.document(path)
        except ApiError as error:
            self._failed(f"cluster/{name}.json", error)
            return None
        if found is not None:
            self._bundle.add_object(f"cluster/{name}.json", found)
        elif absent:
            self._bundle.miss(f"cluster/{name}.json", absent)
        return found

    def _listed(self, path: str, what: str, **query: Any) -> list[dict[str, Any]] | None:
        """Return the objects of a collection, None when it cannot be read."""
        found: list[dict[str, Any]] = []
        try:
            for item in self._api.items(path, **query):
                if len(found) == MOST_OBJECTS:
                    self._bundle.miss(what, f"only the first {MOST_OBJECTS} objects are collected")
                    break
                found.append(item)
        except ApiError as error:
            self._failed(what, error)
            return None
        return found

    def _failed(self, what: str, error: ApiError) -> None:
        self._bundle.miss(what, str(error))
        # Without an answer, or with one that no API server gives.
        self._silent += not error.status
        if self._silent >= MOST_SILENT or (not error.status and not self._answered):
            raise Unreachable

    def _spaces(self) -> Iterator[str]:
        """Yield the namespaces of operators and testers, whatever they are called."""
        tests: tuple[tuple[str, str, dict[str, str], Callable[[Mapping[str, Any]], bool]], ...] = (
            ("apps/v1", "deployments", {}, is_operator),
            ("apps/v1", "daemonsets", {}, objects.is_agent),
            (
                "v1",
                "pods",
                {"labelSelector": ",".join(f"{key}={value}" for key, value in MANAGED_BY.items())},
                made_by_us,
            ),
        )
        for version, plural, query, fits in tests:
            found = set()
            try:
                found = {_space(item) for item in self._api.items(collection(version, plural), **query) if fits(item)}
            except ApiError as error:
                self._failed(f"namespaces of {plural}", error)
            else:
                if fits is is_operator and not found:
                    self._bundle.miss("network operator", "no Deployment of it exists in the cluster")
            yield from sorted(found)

    def _workloads(self, space: str) -> list[dict[str, Any]]:
        """Read the workloads of a namespace; return its pods."""
        found: list[dict[str, Any]] = []
        for version, kind, plural in objects.WORKLOADS:
            path = f"cluster/namespaces/{name_of(space)}/{kind}.json"
            found = self._listed(collection(version, plural, space), path) or []
            if found:
                self._bundle.add_object(path, found)
        return found

    def _objects(self) -> None:
        for version, kind, plural in objects.kinds():
            path = f"cluster/objects/{kind}.json"
            items = self._listed(collection(version, plural), path)
            if kind == "Node":
                self.nodes = [item["metadata"]["name"] for item in items or []]
            if items:
                self._bundle.add_object(path, [objects.slim(kind, item) for item in items])

    def _events(self, spaces: Collection[str]) -> None:
        for space in spaces:
            path = f"cluster/namespaces/{name_of(space)}/events.json"
            items = self._listed(collection("v1", "events", space), path)
            if items:
                self._bundle.add_object(path, items)
        path = "cluster/node-events.json"
        items = self._listed(collection("v1", "events"), path, fieldSelector="involvedObject.kind=Node")
        if items:
            self._bundle.add_object(path, items)

    def _logs(self, pods: Collection[Mapping[str, Any]]) -> None:
        wanted = list(objects.logs(pods))
        for log in wanted[:MOST_LOGS]:
            suffix = ".previous.log" if log.previous else ".log"
            parts = [name_of(part) for part in (log.namespace, log.pod, log.container)]
            self._log("/".join(("cluster/namespaces", parts[0], "logs", *parts[1:])) + suffix, log)
        if len(wanted) > MOST_LOGS:
            left = len(wanted) - MOST_LOGS
            self._bundle.miss("cluster/logs", f"{left} logs of pods without problems: {MOST_LOGS} are collected")

    def _log(self, path: str, log: objects.Log) -> None:
        place = f"{collection('v1', 'pods', log.namespace)}/{log.pod}/log"
        query = {"container": log.container, "tailLines": LOG_LINES, "limitBytes": LOG_BYTES, "timestamps": "true"}
        try:
            text = "".join(self._lines(place, {**query, **({"previous": "true"} if log.previous else {})}))
        except ApiError as error:
            self._failed(path, error)
        except ClusterError as error:
            self._bundle.miss(path, str(error))
        else:
            self._bundle.add(path, text, cut=text.count("\n") >= LOG_LINES)

    def _lines(self, path: str, query: Mapping[str, Any]) -> Iterator[str]:
        size = 0
        for line in self._api.follow(path, query, LOG_SECONDS):
            size += len(line) + 1
            if size > 2 * LOG_BYTES:
                raise ClusterError(f"more than {LOG_BYTES} bytes came, which is more than was requested")
            yield line + "\n"


def _space(item: Mapping[str, Any]) -> str:
    return str(item["metadata"].get("namespace"))
