"""An API server in memory: objects by path, server-side apply with owners of fields, access reviews, logs, exec."""

from __future__ import annotations

import copy
import json
from collections.abc import Iterator, Mapping
from typing import Any, Callable
from urllib.parse import parse_qsl, urlsplit

from ansible_collections.gpufabric.rdma.plugins.module_utils._k8s.client.api import Api, ConnectionFailed, Response
from ansible_collections.gpufabric.rdma.plugins.module_utils._k8s.client.poll import Clock

UNOWNED = ("name", "namespace", "uid")


class FakeClock:
    """Seconds that pass when somebody sleeps; ``at`` runs something once that time has come."""

    def __init__(self) -> None:
        self.time = 0.0
        self.slept: list[float] = []
        self._later: list[tuple[float, Callable[[], None]]] = []

    def clock(self) -> Clock:
        return Clock(lambda: self.time, self.sleep)

    def at(self, time: float, action: Callable[[], None]) -> None:
        self._later.append((time, action))

    def sleep(self, seconds: float) -> None:
        self.slept.append(seconds)
        self.time += seconds
        due = [action for time, action in self._later if time <= self.time]
        self._later = [(time, action) for time, action in self._later if time > self.time]
        for action in due:
            action()


class FakeCluster:
    """Stands in for the transport. ``served``: paths of collections whose kinds are served."""

    server = "https://cluster.test:6443"

    def __init__(self, *objects: Mapping[str, Any], denied: tuple[str, ...] = ()) -> None:
        #: Passes while somebody watches.
        self.clock = FakeClock()
        #: What the last list of a collection, or the watch after it, has told.
        self.told: dict[str, dict[str, str]] = {}
        self.objects: dict[str, dict[str, Any]] = {}
        self.calls: list[tuple[str, str]] = []
        self.commands: list[tuple[str, list[str], str]] = []
        self.answers: list[Any] = []
        self.changes: list[str] = []
        self.logs: dict[str, list[str]] = {}
        self.exec_results: list[Any] = []
        self.denied = denied
        self.unserved: set[str] = set()
        self.kept: set[str] = set()
        # Pod -> what its evictions are answered, one after another; an eviction without an answer deletes the pod.
        self.evictions: dict[str, list[Response]] = {}
        # Pod -> the seconds to end that its last eviction asked for.
        self.graces: dict[str, int | None] = {}
        self.uid = 0
        for item in objects:
            self.put(dict(item))

    def api(self) -> Api:
        return Api(self, sleep=lambda seconds: None)

    def put(self, item: dict[str, Any], manager: str = "kubectl") -> str:
        """Store an object as somebody else's work; return its path."""
        path = path_for(item)
        self._store(path, copy.deepcopy(item), manager)
        return path

    def send(self, method: str, path: str, headers: Mapping[str, str], body: str | None, timeout: float) -> Response:
        parts = urlsplit(path)
        query = dict(parse_qsl(parts.query))
        self.calls.append((method, path))
        if self.answers:
            answer = self.answers.pop(0)
            if isinstance(answer, Exception):
                raise answer
            if answer is not None:
                return answer
        data = json.loads(body) if body else {}
        return getattr(self, f"_{method.lower()}")(parts.path, query, data, headers)

    def stream(self, path: str, headers: Mapping[str, str], timeout: float) -> tuple[Response, Iterator[str]]:
        parts = urlsplit(path)
        query = dict(parse_qsl(parts.query))
        answer = self.send("GET", path, headers, None, timeout)
        if answer.status != 200:
            return answer, iter(())
        if query.get("watch"):
            return answer, self._changes(parts.path, query)
        return answer, iter(answer.text.splitlines())

    def _changes(self, path: str, query: dict[str, str]) -> Iterator[str]:
        """Yield what has changed since the list and changes while the clock goes on, as a watch does."""
        while self.changes:
            yield self.changes.pop(0)
        for _second in range(int(query["timeoutSeconds"])):
            self.clock.sleep(1.0)
            before, now = self.told[path], self._texts(path, query)
            self.told[path] = now
            for name, text in now.items():
                if before.get(name) != text:
                    yield json.dumps({"type": "MODIFIED" if name in before else "ADDED", "object": versioned(text)})
            for name in sorted(before.keys() - now.keys()):
                yield json.dumps({"type": "DELETED", "object": versioned(before[name])})

    def _texts(self, path: str, query: dict[str, str]) -> dict[str, str]:
        return {item["metadata"]["name"]: json.dumps(item) for item in self._matching(path, query)}

    def execute(self, path: str, command: list[str], stdin: Callable[[], str], timeout: float) -> tuple[int, str]:
        self.commands.append((path, command, stdin()))
        result = self.exec_results.pop(0) if self.exec_results else (0, "")
        if isinstance(result, Exception):
            raise result
        return result

    def _get(self, path: str, query: dict[str, str], _data: Any, _headers: Any) -> Response:
        if path.endswith("/log"):
            pages = self.logs.get(path.split("/")[-2])
            if not pages:
                return status(404, "NotFound", "container not found")
            return Response(200, {}, pages.pop(0) if len(pages) > 1 else pages[0])
        if path in self.objects:
            return ok(self.objects[path])
        if path.startswith("/apis") and path.count("/") in (1, 3):
            return self._discovery(path)
        if self._is_collection(path):
            if not query.get("watch"):
                self.told[path] = self._texts(path, query)
            kind = KINDS[path.rsplit("/", 1)[-1]] + "List"
            found = list(self._matching(path, query))
            return ok({"kind": kind, "items": found, "metadata": {"resourceVersion": "1"}})
        return self._missing(path)

    def _discovery(self, path: str) -> Response:
        """Groups, and the kinds of a group's version: those of which there is an object."""
        served = {tuple(key.split("/")[2:4]) for key in self.objects if key.startswith("/apis/")}
        if path == "/apis":
            groups = [{"name": group, "versions": [{"version": version}]} for group, version in sorted(served)]
            return ok({"kind": "APIGroupList", "groups": groups})
        found = {key.rsplit("/", 2)[1]: "/namespaces/" in key for key in self.objects if key.startswith(path + "/")}
        if not found:
            return self._missing(path)
        kinds = [{"name": plural, "kind": KINDS[plural], "namespaced": inside} for plural, inside in found.items()]
        return ok({"kind": "APIResourceList", "resources": kinds})

    def _is_collection(self, path: str) -> bool:
        return path.rsplit("/", 1)[-1] in KINDS and path not in self.unserved

    def _matching(self, path: str, query: dict[str, str]) -> Iterator[dict[str, Any]]:
        wanted = dict(part.split("=") for part in query.get("labelSelector", "").split(",") if part)
        node = query.get("fieldSelector", "").partition("spec.nodeName=")[2]
        base, plural = path.rsplit("/", 1)
        for key, item in sorted(self.objects.items()):
            parent = key.rsplit("/", 1)[0]
            inside = parent == path or (parent.endswith("/" + plural) and parent.startswith(base + "/namespaces/"))
            labels = item.get("metadata", {}).get("labels") or {}
            here = not node or item.get("spec", {}).get("nodeName") == node
            if inside and here and wanted.items() <= labels.items():
                yield item

    def _missing(self, path: str) -> Response:
        if path.rsplit("/", 1)[0] in self.unserved or path in self.unserved:
            return status(404, "NotFound", "the server could not find the requested resource")
        return status(404, "NotFound", f"{path.rsplit('/', 1)[-1]} not found")

    def _put(self, path: str, _query: Any, data: Any, _headers: Any) -> Response:
        live = self.objects.get(path)
        if live is None:
            return self._missing(path)
        if data["metadata"].get("resourceVersion") != live["metadata"].get("resourceVersion"):
            return status(409, "Conflict", "the object has been modified")
        self.uid += 1
        meta = {**data["metadata"], "uid": live["metadata"].get("uid"), "resourceVersion": f"v{self.uid}"}
        self.objects[path] = {**data, "metadata": meta}
        return ok(self.objects[path])

    def _create(self, path: str, data: Any) -> Response:
        space = self.objects.get(path.rsplit("/", 1)[0].replace("/apis/coordination.k8s.io/v1/", "/api/v1/"))
        if space is None:
            return status(404, "NotFound", "namespaces not found")
        if space["metadata"].get("deletionTimestamp"):
            return status(403, "Forbidden", "unable to create new content because it is being terminated")
        if f"{path}/{data['metadata']['name']}" in self.objects:
            return status(409, "AlreadyExists", "it already exists")
        self.uid += 1
        return ok(
            self.objects.setdefault(
                f"{path}/{data['metadata']['name']}",
                {**data, "metadata": {**data["metadata"], "uid": f"uid-{self.uid}", "resourceVersion": f"v{self.uid}"}},
            )
        )

    def _post(self, path: str, _query: Any, data: Any, _headers: Any) -> Response:
        if path.endswith("/leases"):
            return self._create(path, data)
        if path.endswith("/eviction"):
            return self._evict(path[: -len("/eviction")], data)
        wanted = data["spec"]["resourceAttributes"]
        resource = "/".join(part for part in (wanted["resource"], wanted.get("subresource")) if part)
        name = f"{wanted['verb']} {resource}"
        return ok({"status": {"allowed": name not in self.denied}})

    def _evict(self, path: str, data: Any) -> Response:
        pod = self.objects.get(path)
        if pod is None or data["deleteOptions"]["preconditions"]["uid"] != pod["metadata"]["uid"]:
            return self._missing(path)
        self.graces[pod["metadata"]["name"]] = data["deleteOptions"].get("gracePeriodSeconds")
        answers = self.evictions.get(pod["metadata"]["name"])
        return answers.pop(0) if answers else self._delete(path, {}, {}, {})

    def _patch(self, path: str, query: dict[str, str], data: Any, headers: Mapping[str, str]) -> Response:
        if path.rsplit("/", 1)[0] in self.unserved:
            return self._missing(path)
        if headers["Content-Type"] == "application/merge-patch+json":
            version = data.get("metadata", {}).get("resourceVersion")
            if version not in (None, self.objects[path]["metadata"].get("resourceVersion")):
                return status(409, "Conflict", "the object has been modified")
            merged = _merge(self.objects[path], data)
            self.objects[path] = merged
            meta = merged["metadata"]
            if meta.get("deletionTimestamp") and not meta.get("finalizers") and path not in self.kept:
                del self.objects[path]
            return ok(merged)
        live = self.objects.get(path)
        conflicts = [] if query["force"] == "true" else list(_conflicts(live, data, query["fieldManager"]))
        if conflicts:
            causes = [{"reason": "FieldManagerConflict", "field": f, "message": m} for f, m in conflicts]
            return status(409, "Conflict", "Apply failed", {"details": {"causes": causes}})
        result = self._applied(live, data, query["fieldManager"])
        if "dryRun" not in query:
            self.objects[path] = result
        return ok(result)

    def _applied(self, live: Any, data: Any, manager: str) -> dict[str, Any]:
        new = copy.deepcopy(live or {"metadata": {}})
        mine = _tree({k: v for k, v in data.items() if k not in ("apiVersion", "kind")}, top=True)
        entries = new["metadata"].pop("managedFields", [])
        old = next((e["fieldsV1"] for e in entries if e["manager"] == manager), {})
        others = [e for e in entries if e["manager"] != manager]
        for leaf in _leaves(old):
            if leaf not in _leaves(mine) and not any(leaf in _leaves(e["fieldsV1"]) for e in others):
                _drop(new, leaf)
        new = _merge(new, data)
        own = [{"manager": manager, "operation": "Apply", "fieldsV1": mine}] if mine else []
        new["metadata"]["managedFields"] = [*others, *own]
        self._identify(new)
        return new

    def _store(self, path: str, item: dict[str, Any], manager: str) -> None:
        fields = _tree({k: v for k, v in item.items() if k not in ("apiVersion", "kind", "status")}, top=True)
        item["metadata"].setdefault("managedFields", [{"manager": manager, "operation": "Update", "fieldsV1": fields}])
        self._identify(item)
        self.objects[path] = item

    def _identify(self, item: dict[str, Any]) -> None:
        if "uid" not in item["metadata"]:
            self.uid += 1
            item["metadata"]["uid"] = f"uid-{self.uid}"
        item["metadata"].setdefault("creationTimestamp", "2026-01-02T00:00:00Z")

    def _delete(self, path: str, query: Mapping[str, str], _data: Any, _headers: Any) -> Response:
        if path not in self.objects:
            return self._missing(path)
        if "dryRun" in query:
            return ok(self.objects[path])
        if path in self.kept or self.objects[path]["metadata"].get("finalizers"):
            self.objects[path]["metadata"]["deletionTimestamp"] = "2026-01-02T00:00:10Z"
            return ok(self.objects[path])
        space = path.rpartition("/")[2] if path.startswith("/api/v1/namespaces/") and path.count("/") == 4 else ""
        for inside in [other for other in self.objects if space and f"/namespaces/{space}/" in other]:
            del self.objects[inside]
        return ok(self.objects.pop(path))


def ok(body: Any) -> Response:
    return Response(200, {}, json.dumps(body))


def status(code: int, reason: str, message: str, more: dict[str, Any] | None = None) -> Response:
    return Response(code, {}, json.dumps({"kind": "Status", "reason": reason, "message": message, **(more or {})}))


def versioned(text: str) -> dict[str, Any]:
    item = json.loads(text)
    item["metadata"]["resourceVersion"] = "2"
    return item


def down(text: str = "Connection refused") -> ConnectionFailed:
    return ConnectionFailed(text)


PLURALS = {
    "CiliumNode": "ciliumnodes",
    "ClusterPolicy": "clusterpolicies",
    "Node": "nodes",
    "Namespace": "namespaces",
    "ConfigMap": "configmaps",
    "Secret": "secrets",
    "Service": "services",
    "ServiceCIDR": "servicecidrs",
    "Pod": "pods",
    "Job": "jobs",
    "DaemonSet": "daemonsets",
    "Deployment": "deployments",
    "IPPool": "ippools",
    "CIDRPool": "cidrpools",
    "MacvlanNetwork": "macvlannetworks",
    "HostDeviceNetwork": "hostdevicenetworks",
    "IPoIBNetwork": "ipoibnetworks",
    "SriovIBNetwork": "sriovibnetworks",
    "SriovNetwork": "sriovnetworks",
    "SriovNetworkNodePolicy": "sriovnetworknodepolicies",
    "SriovNetworkPoolConfig": "sriovnetworkpoolconfigs",
    "SriovNetworkNodeState": "sriovnetworknodestates",
    "NicClusterPolicy": "nicclusterpolicies",
    "NicNodePolicy": "nicnodepolicies",
    "NetworkAttachmentDefinition": "network-attachment-definitions",
    "Event": "events",
    "CustomResourceDefinition": "customresourcedefinitions",
    "StatefulSet": "statefulsets",
    "CronJob": "cronjobs",
    "PersistentVolumeClaim": "persistentvolumeclaims",
    "ServiceAccount": "serviceaccounts",
    "ReplicaSet": "replicasets",
    "NodeFeature": "nodefeatures",
    "Certificate": "certificates",
    "PodDisruptionBudget": "poddisruptionbudgets",
    "RoleBinding": "rolebindings",
    "OperatorGroup": "operatorgroups",
    "Subscription": "subscriptions",
    "InstallPlan": "installplans",
    "ClusterServiceVersion": "clusterserviceversions",
    "PackageManifest": "packagemanifests",
    "SriovOperatorConfig": "sriovoperatorconfigs",
}

KINDS = {plural: kind for kind, plural in PLURALS.items()}


def path_for(item: Mapping[str, Any]) -> str:
    version, meta = item["apiVersion"], item["metadata"]
    base = "/api/v1" if version == "v1" else f"/apis/{version}"
    space = f"/namespaces/{meta['namespace']}" if meta.get("namespace") else ""
    return f"{base}{space}/{PLURALS[item['kind']]}/{meta['name']}"


def _tree(value: Any, top: bool = False) -> dict[str, Any]:
    if not isinstance(value, Mapping):
        return {}
    found = {}
    for key, sub in value.items():
        if top and key == "metadata":
            kept = _tree({k: v for k, v in sub.items() if k not in (*UNOWNED, "managedFields", "creationTimestamp")})
            found.update({"f:metadata": kept} if kept else {})
        else:
            found[f"f:{key}"] = _tree(sub)
    return found


def _leaves(tree: Mapping[str, Any], before: tuple[str, ...] = ()) -> list[tuple[str, ...]]:
    if not tree:
        return [before] if before else []
    return [leaf for key, sub in tree.items() for leaf in _leaves(sub, (*before, key[2:]))]


def _value(item: Any, leaf: tuple[str, ...]) -> Any:
    for key in leaf:
        if not isinstance(item, Mapping) or key not in item:
            return None
        item = item[key]
    return item


def _conflicts(live: Any, data: Any, manager: str) -> Iterator[tuple[str, str]]:
    for entry in (live or {}).get("metadata", {}).get("managedFields", []):
        for leaf in _leaves(entry["fieldsV1"]) if entry["manager"] != manager else []:
            wanted = _value(data, leaf)
            if wanted is not None and not isinstance(wanted, Mapping) and wanted != _value(live, leaf):
                yield "." + ".".join(leaf), f'conflict with "{entry["manager"]}"'


def _drop(item: Any, leaf: tuple[str, ...]) -> None:
    for key in leaf[:-1]:
        item = item.get(key) or {}
    item.pop(leaf[-1], None)


def _merge(old: Any, new: Any) -> Any:
    if not isinstance(new, Mapping):
        return copy.deepcopy(new)
    merged = dict(old) if isinstance(old, Mapping) else {}
    for key, value in new.items():
        if value is None:
            merged.pop(key, None)
        else:
            merged[key] = _merge(merged.get(key), value)
    return merged
