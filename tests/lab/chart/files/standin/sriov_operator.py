# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The running SR-IOV operator with the daemons of all nodes: for hollow nodes only, the lab has the real one."""

from __future__ import annotations

import time
from typing import Any

from . import nodes, sriov
from .api import JSON_PATCH, MERGE, Api, ApiError, Watched
from .components import Object, Settings
from .operator import Worker
from .writer import Writer, path

#: Seconds that a daemon works on a new spec, and after which it tries a failure again.
WORK, AGAIN = 2.0, 5.0
#: Seconds after which the operator copies policies to states without a change.
RESYNC = 300.0
NETWORKS = {"SriovNetwork": "sriovnetworks", "SriovIBNetwork": "sriovibnetworks"}


class SriovOperator:
    """Everything together, as Operator; image: that of the daemon, prefix: of the resources."""

    def __init__(self, api: Api, settings: Settings, image: str, prefix: str) -> None:
        self.settings, self._image, self._prefix = settings, image, prefix
        self._own = f"/apis/{sriov.API}/namespaces/{settings.namespace}"
        self._writer, self._network_writer = Writer(api), Writer(api)
        #: Node -> resources that its device plugin announced last.
        self._announced: dict[str, set[str]] = {}
        #: Node -> generation of its state that its daemon has worked on; that it works on, and since when.
        self._seen: dict[str, int] = {}
        self._begun: dict[str, tuple[int, float]] = {}
        #: Node -> policies and labels when its state was written, and the time of that.
        self._copied: dict[str, tuple[Any, float]] = {}
        self.state_worker, self.network_worker = Worker(self._states), Worker(self._networks)
        wake = self.state_worker.wake
        self.nodes = Watched(api, "/api/v1/nodes", wake)
        self.policies = Watched(api, f"{self._own}/sriovnetworknodepolicies", wake)
        self.states = Watched(api, f"{self._own}/sriovnetworknodestates", wake)
        self.daemon_sets = Watched(api, path("DaemonSet", settings.namespace), wake)
        self.networks = {
            kind: Watched(api, f"{self._own}/{plural}", self.network_worker.wake) for kind, plural in NETWORKS.items()
        }
        self.definitions = Watched(api, path("NetworkAttachmentDefinition"), self.network_worker.wake)

    def start(self) -> None:
        """Wait for the first lists, then work."""
        for seen in (
            self.nodes,
            self.policies,
            self.states,
            self.daemon_sets,
            self.definitions,
            *self.networks.values(),
        ):
            seen.listed.wait()
        self.state_worker.start()
        self.network_worker.start()

    # -- nodes ------------------------------------------------------------------------------------------

    def _states(self) -> float:
        if self.daemon_sets.get(sriov.DAEMON, self.settings.namespace) is None:
            self._make_daemon()
        running, rest = self._daemons(), RESYNC * self.settings.pace
        for node in self.nodes.all():
            labels = node["metadata"].get("labels") or {}
            if sriov.SELECTOR.items() <= labels.items() and not self._node(node, running):
                rest = WORK * self.settings.pace
        return rest

    def _node(self, node: Object, running: set[str]) -> bool:
        """One node; False when its daemon must try again."""
        name = node["metadata"]["name"]
        state, where = self.states.get(name, self.settings.namespace), f"{self._own}/sriovnetworknodestates/{name}"
        if state is None:
            self._create_state(name)
            return True
        known = (state.get("status") or {}).get("interfaces") or []
        if self._copy(node, known):
            wanted = sriov.requested(self.policies.all(), node, known)
            if wanted != ((state.get("spec") or {}).get("interfaces") or []):
                _patch(self._writer, where, {"spec": {"interfaces": wanted}})
                return True
        if name not in running:
            return True
        notes = state["metadata"].get("annotations") or {}
        if sriov.CURRENT not in notes:
            idle = {sriov.CURRENT: "Idle", sriov.DESIRED: "Idle"}
            _patch(self._writer, where, {"metadata": {"annotations": idle}})
            return True
        return self._daemon(node, state, where)

    def _copy(self, node: Object, known: list[Object]) -> bool:
        """Whether the operator looks at policies for a node now: it does not when a daemon reports its first ports."""
        name, labels = node["metadata"]["name"], node["metadata"].get("labels") or {}
        policies = [(one["metadata"]["uid"], one["metadata"]["generation"]) for one in self.policies.all()]
        key = (tuple(policies), tuple(sorted(labels.items())))
        before, at = self._copied.get(name, (None, 0.0))
        if before == key and time.monotonic() - at < RESYNC * self.settings.pace:
            return False
        self._copied[name] = (key, time.monotonic())
        return True

    def _daemon(self, node: Object, state: Object, where: str) -> bool:
        """What the daemon does on a node; it works on each generation once, and again where that failed."""
        name, status = node["metadata"]["name"], state.get("status") or {}
        found, done = sriov.ports(node, state.get("spec") or {})
        result = {"interfaces": found, "syncStatus": "Succeeded" if done else "InProgress"}
        generation = state["metadata"]["generation"]
        if self._seen.get(name) != generation:
            begun, at = self._begun.get(name, (0, 0.0))
            if begun != generation and status.get("syncStatus"):
                self._begun[name] = (generation, time.monotonic())
                _patch(self._writer, f"{where}/status", {"status": {"syncStatus": "InProgress"}})
                return False
            if begun == generation and time.monotonic() - at < WORK * self.settings.pace:
                return False
            self._seen[name] = generation
            _patch(self._writer, f"{where}/status", {"status": result})
        elif found != (status.get("interfaces") or []):
            # It looks at the ports every 30 s.
            _patch(self._writer, f"{where}/status", {"status": {"interfaces": found}})
        offered = sriov.resources(state.get("spec") or {}, self._prefix) if done else {}
        before, self._announced[name] = self._announced.get(name, set()), set(offered)
        patch = nodes.capacity_patch(node, offered, before)
        if patch:
            self._writer.api.request("PATCH", f"/api/v1/nodes/{name}/status", patch, JSON_PATCH)
        return done

    def _daemons(self) -> set[str]:
        """Nodes on which the daemon runs."""
        where = f"/api/v1/namespaces/{self.settings.namespace}/pods?labelSelector=app%3D{sriov.DAEMON}"
        found = self._writer.api.request("GET", where)["items"]
        return {one["spec"]["nodeName"] for one in found if (one.get("status") or {}).get("phase") == "Running"}

    def _create_state(self, name: str) -> None:
        made = {"apiVersion": sriov.API, "kind": "SriovNetworkNodeState", "metadata": {"name": name}, "spec": {}}
        _accepted(self._writer, "POST", f"{self._own}/sriovnetworknodestates", made)

    def _make_daemon(self) -> None:
        labels = {"app": sriov.DAEMON}
        container = {"name": sriov.DAEMON, "image": self._image}
        spec = {"nodeSelector": sriov.SELECTOR, "containers": [container], "tolerations": [{"operator": "Exists"}]}
        made = {
            "apiVersion": "apps/v1",
            "kind": "DaemonSet",
            "metadata": {"name": sriov.DAEMON},
            "spec": {
                "selector": {"matchLabels": labels},
                "template": {"metadata": {"labels": labels}, "spec": spec},
            },
        }
        _accepted(self._writer, "POST", path("DaemonSet", self.settings.namespace), made)

    # -- networks ---------------------------------------------------------------------------------------

    def _networks(self) -> float | None:
        rest = None
        for seen in self.networks.values():
            for network in seen.all():
                if not self._network(network):
                    rest = AGAIN * self.settings.pace
        return rest

    def _network(self, network: Object) -> bool:
        meta = network["metadata"]
        where = f"{self._own}/{NETWORKS[network['kind']]}/{meta['name']}"
        try:
            wanted = sriov.definition(network, self._prefix)
        except ValueError:
            return False
        place = wanted["metadata"]["namespace"]
        last = (meta.get("annotations") or {}).get(sriov.LAST_NAMESPACE)
        if meta.get("deletionTimestamp"):
            self._network_writer.delete(path("NetworkAttachmentDefinition", last or place, meta["name"]))
            left = [one for one in meta.get("finalizers") or [] if one != sriov.FINALIZER]
            _patch(self._network_writer, where, {"metadata": {"finalizers": left or None}})
            return True
        if sriov.FINALIZER not in (meta.get("finalizers") or []):
            _patch(
                self._network_writer,
                where,
                {"metadata": {"finalizers": [*(meta.get("finalizers") or []), sriov.FINALIZER]}},
            )
        if last and last != place:
            self._network_writer.delete(path("NetworkAttachmentDefinition", last, meta["name"]))
        found = self.definitions.get(meta["name"], place)
        if not sriov.same(found, wanted):
            kind = path("NetworkAttachmentDefinition", place)
            if found is None:
                # A namespace that does not exist yet is waited for.
                if not _accepted(self._network_writer, "POST", kind, wanted):
                    return False
            else:
                _patch(self._network_writer, f"{kind}/{meta['name']}", wanted)
        if last != place:
            _patch(self._network_writer, where, {"metadata": {"annotations": {sriov.LAST_NAMESPACE: place}}})
        return True


def _patch(writer: Writer, where: str, body: Object) -> None:
    _accepted(writer, "PATCH", where, body, MERGE)


def _accepted(writer: Writer, method: str, where: str, body: Any, kind: str = "application/json") -> bool:
    """Send; False for what is gone or was there already, and is looked at again when its event comes."""
    try:
        writer.api.request(method, where, body, kind)
    except ApiError as error:
        if error.code not in (404, 409):
            raise
        return False
    return True
