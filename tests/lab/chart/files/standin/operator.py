# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The running operator: watches, and one worker each for policies, networks and pools."""

from __future__ import annotations

import sys
import threading
import time
import traceback
from collections.abc import Callable
from typing import Any

from . import components, networks, nodes, reconcile
from .api import JSON_PATCH, MERGE, Api, Watched, now
from .components import Object, Settings
from .writer import Writer, path

MELLANOX = "/apis/mellanox.com/v1alpha1"
NETWORKS = {
    "MacvlanNetwork": "macvlannetworks",
    "IPoIBNetwork": "ipoibnetworks",
    "HostDeviceNetwork": "hostdevicenetworks",
}


class Worker:
    """A thread that works when it is woken, or when the seconds are over that the work returned."""

    def __init__(self, work: Callable[[], float | None]) -> None:
        self._work, self._woken = work, threading.Event()

    def start(self) -> None:
        """Begin, with a first piece of work."""
        self._woken.set()
        threading.Thread(target=self._run, daemon=True).start()

    def wake(self, *_: Any) -> None:
        """Something happened."""
        self._woken.set()

    def _run(self) -> None:
        rest: float | None = None
        while True:
            self._woken.wait(rest)
            self._woken.clear()
            try:
                rest = self._work()
            except Exception:  # A worker that ends would be an operator that hangs without a word.
                traceback.print_exc(limit=3, file=sys.stderr)
                rest = 2.0


class Operator:
    """Everything together; `start()` returns once all is watched."""

    def __init__(self, api: Api, settings: Settings) -> None:
        self.settings = settings
        self._ready_once: set[str] = set()
        self.policy_worker = Worker(self._policies)
        self.network_worker = Worker(self._networks)
        self.pool_worker = Worker(self._pools)
        self._policy_writer, self._network_writer, self._pool_writer = Writer(api), Writer(api), Writer(api)
        space, wake = settings.namespace, self.policy_worker.wake
        self.policies = Watched(api, f"{MELLANOX}/nicclusterpolicies", wake)
        self.daemon_sets = Watched(api, path("DaemonSet", space), wake)
        self.deployments = Watched(api, path("Deployment", space), self.pool_worker.wake)
        self.nodes_seen = Watched(api, "/api/v1/nodes", self._node_changed)
        pools = f"/apis/nv-ipam.nvidia.com/v1alpha1/namespaces/{space}/ippools"
        self.pools = Watched(api, pools, self.pool_worker.wake)
        self.networks = {
            kind: Watched(api, f"{MELLANOX}/{plural}", self.network_worker.wake) for kind, plural in NETWORKS.items()
        }
        self.nads = Watched(api, path("NetworkAttachmentDefinition"), self.network_worker.wake)

    def start(self) -> None:
        """Wait for the first lists, then work."""
        for seen in (self.policies, self.daemon_sets, self.deployments, self.nodes_seen, self.nads):
            seen.listed.wait()
        for seen in self.networks.values():
            seen.listed.wait()
        for worker in (self.policy_worker, self.network_worker, self.pool_worker):
            worker.start()

    def _node_changed(self, old: Object | None, new: Object | None) -> None:
        """Kubelets write their node often; only what we act on counts."""
        if _node_view(old) != _node_view(new):
            self.policy_worker.wake()
            self.pool_worker.wake()

    # -- policies -------------------------------------------------------------------------------------

    def _policies(self) -> float | None:
        rest: float | None = None
        ours: Object | None = None
        for policy in self.policies.all():
            name = policy["metadata"]["name"]
            status = reconcile.walk(policy, self, self.settings)
            where = f"{MELLANOX}/nicclusterpolicies/{name}"
            self._policy_writer.status(where, policy.get("status"), status)
            if name == components.POLICY_NAME:
                ours = {**policy, "status": status}
                rest = None if status["state"] == "ready" else reconcile.AGAIN
        self._nodes(ours)
        return rest

    def _nodes(self, policy: Object | None) -> None:
        """After the status, as recorded: node labels, and what device plugins announce."""
        pods = self._plugin_pods(policy)
        drivers = bool(policy and components.section(policy, components.OFED))
        held = self._held(policy)
        # The real plugin speaks for itself.
        announced = {} if self.settings.rdma_plugin else components.resources(policy)
        for node in self.nodes_seen.all():
            name = node["metadata"]["name"]
            waiting = name == held or (drivers and (components.OFED.state, name) not in pods)
            labels = nodes.label_changes(node, waiting, drivers and self._has_driver())
            running = (components.RDMA_PLUGIN.state, name) in pods
            patch = nodes.capacity_patch(node, announced if running else {})
            if labels:
                self._policy_writer.api.request(
                    "PATCH", f"/api/v1/nodes/{name}", {"metadata": {"labels": labels}}, MERGE
                )
            if patch:
                self._policy_writer.api.request("PATCH", f"/api/v1/nodes/{name}/status", patch, JSON_PATCH)

    def _held(self, policy: Object | None) -> str | None:
        """The node whose device plugin comes last, once for each new policy: then ready flaps at the end.

        It is the mechanism that was recorded with drivers (the plugin's pods need the label
        mofed.wait=false, which comes after the status), also where the policy has no driver.
        """
        if not policy or not self.settings.flap or not components.section(policy, components.RDMA_PLUGIN):
            return None
        if policy["metadata"]["uid"] in self._ready_once:
            return None
        if policy["status"]["state"] == "ready":
            self._ready_once.add(policy["metadata"]["uid"])
            return None
        names = [one["metadata"]["name"] for one in self.nodes_seen.all() if nodes.is_nic_node(one)]
        return names[-1] if len(names) > 1 else None

    def _has_driver(self) -> bool:
        label = components.DRIVER_POD_LABEL
        return any(label in (one["metadata"].get("labels") or {}) for one in self.daemon_sets.all())

    def _plugin_pods(self, policy: Object | None) -> set[tuple[str, str]]:
        """{(state, node)} of driver and RDMA device plugin pods that are ready."""
        found = set()
        selectors = {
            components.OFED: components.DRIVER_POD_LABEL,
            components.RDMA_PLUGIN: "app%3Drdma-shared-dp",
        }
        for component, selector in selectors.items():
            if not policy or components.section(policy, component) is None:
                continue
            where = f"/api/v1/namespaces/{self.settings.namespace}/pods?labelSelector={selector}"
            for pod in self._policy_writer.api.request("GET", where)["items"]:
                if _pod_ready(pod):
                    found.add((component.state, pod["spec"]["nodeName"]))
        return found

    # -- the world of a walk ----------------------------------------------------------------------------

    def pause(self, seconds: float) -> None:
        """Let time pass."""
        time.sleep(seconds)

    def stamp(self) -> str:
        """The time now."""
        return now()

    def nodes(self) -> list[Object]:
        """All Nodes as last seen."""
        return self.nodes_seen.all()

    def apply(self, wanted: Object) -> str:
        """See Writer.apply. New CRDs make pools possible: look for them."""
        problem = self._policy_writer.apply(wanted)
        if wanted["kind"] == "CustomResourceDefinition":
            self.pools.nudge()
        return problem

    def owned(self, state: str) -> list[str]:
        """Paths of all children of a component."""
        found = []
        for kind in ("DaemonSet", "Deployment", "ServiceAccount", "ConfigMap", "CustomResourceDefinition"):
            space = "" if kind == "CustomResourceDefinition" else self.settings.namespace
            where = f"{path(kind, space)}?labelSelector={components.STATE_LABEL}%3D{state}"
            items = self._policy_writer.api.request("GET", where)["items"]
            found += [path(kind, space, one["metadata"]["name"]) for one in items]
        return found

    def delete(self, reference: str) -> None:
        """See Writer.delete."""
        self._policy_writer.delete(reference)

    def daemon_set(self, name: str) -> Object | None:
        """The status of a DaemonSet as last seen."""
        return (self.daemon_sets.get(name, self.settings.namespace) or {}).get("status")

    # -- networks and pools -----------------------------------------------------------------------------

    def _networks(self) -> float | None:
        rest = None
        for kind, seen in self.networks.items():
            for network in seen.all():
                if not self._network(kind, network):
                    rest = reconcile.AGAIN
        return rest

    def _network(self, kind: str, network: Object) -> bool:
        """One network; False when it must be tried again."""
        name, planned = network["metadata"]["name"], networks.plan(network)
        where = f"{MELLANOX}/{NETWORKS[kind]}/{name}"
        if planned.problem or planned.nad is None:
            self._network_writer.status(where, network.get("status"), planned.problem or {})
            return False
        annotations = network["metadata"].get("annotations") or {}
        last = annotations.get(networks.last_namespace_key(kind))
        if last and last != planned.namespace:
            self._network_writer.delete(path("NetworkAttachmentDefinition", last, name))
        seen = self.nads.get(name, planned.namespace)
        problem = "" if networks.same(seen, planned.nad) else self._network_writer.apply(planned.nad)
        if problem:
            problem = f"failed to create/update objects: {problem}"
        elif planned.annotations is not None:
            self._network_writer.annotations(where, annotations, planned.annotations)
        self._network_writer.status(where, network.get("status"), networks.status(network, problem))
        return not problem

    def _pools(self) -> float | None:
        """Blocks for nodes, as long as a pod of the nv-ipam controller is there to give them."""
        space = self.settings.namespace
        controller = self.deployments.get("nv-ipam-controller", space) or {}
        if not (controller.get("status") or {}).get("availableReplicas"):
            return None
        for pool in self.pools.all():
            where = f"/apis/nv-ipam.nvidia.com/v1alpha1/namespaces/{space}/ippools/{pool['metadata']['name']}"
            found = nodes.allocations(pool, self.nodes_seen.all())
            self._pool_writer.status(where, pool.get("status"), {"allocations": found})
        return None


def _node_view(node: Object | None) -> Any:
    if node is None:
        return None
    capacity = (node.get("status") or {}).get("capacity") or {}
    return node["metadata"].get("labels"), {key: value for key, value in capacity.items() if "/" in key}


def _pod_ready(pod: Object) -> bool:
    if pod["metadata"].get("deletionTimestamp"):
        return False
    found = (pod.get("status") or {}).get("conditions") or []
    return any(one["type"] == "Ready" and one["status"] == "True" for one in found)
