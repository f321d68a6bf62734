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

from . import components, networks, nodes, reconcile, status
from .api import JSON_PATCH, MERGE, Api, Watched, now
from .components import Object, Settings
from .writer import Writer, path

MELLANOX = "/apis/mellanox.com/v1alpha1"
POOLS = "/apis/nv-ipam.nvidia.com/v1alpha1"
#: Kind of pool -> what nv-ipam gives its nodes.
ALLOCATE = {"ippools": nodes.allocations, "cidrpools": nodes.prefixes}
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
        #: Node -> resources that its device plugins announced last.
        self._announced: dict[str, set[str]] = {}
        self.policy_worker = Worker(self._policies)
        self.network_worker = Worker(self._networks)
        self.pool_worker = Worker(self._pools)
        self._policy_writer, self._network_writer, self._pool_writer = Writer(api), Writer(api), Writer(api)
        space, wake = settings.namespace, self.policy_worker.wake
        self.policies = Watched(api, f"{MELLANOX}/nicclusterpolicies", wake)
        self.node_policies = Watched(api, f"{MELLANOX}/nicnodepolicies", wake)
        self.daemon_sets = Watched(api, path("DaemonSet", space), wake)
        self.deployments = Watched(api, path("Deployment", space), self.pool_worker.wake)
        self.nodes_seen = Watched(api, "/api/v1/nodes", self._node_changed)
        self.pools = {
            plural: Watched(api, f"{POOLS}/namespaces/{space}/{plural}", self.pool_worker.wake) for plural in ALLOCATE
        }
        self.networks = {
            kind: Watched(api, f"{MELLANOX}/{plural}", self.network_worker.wake) for kind, plural in NETWORKS.items()
        }
        self.nads = Watched(api, path("NetworkAttachmentDefinition"), self.network_worker.wake)

    def start(self) -> None:
        """Wait for the first lists, then work."""
        for seen in (self.policies, self.node_policies, self.daemon_sets, self.deployments, self.nodes_seen, self.nads):
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
            written = reconcile.walk(policy, self, self.settings)
            where = f"{MELLANOX}/nicclusterpolicies/{name}"
            self._policy_writer.status(where, policy.get("status"), written)
            if name == components.POLICY_NAME:
                ours = {**policy, "status": written}
                rest = None if written["state"] == "ready" else reconcile.AGAIN * self.settings.pace
        for policy in self.node_policies.all():
            written = self._node_policy(policy)
            if written["state"] != "ready":
                rest = reconcile.AGAIN * self.settings.pace
        self._nodes(ours)
        return rest

    def _node_policy(self, policy: Object) -> Object:
        """Walk one NicNodePolicy, unless nodes are selected by several; the status that it has then."""
        every = self.node_policies.all()
        written = status.overlap(policy, every, self.nodes(), now()) or reconcile.walk(policy, self, self.settings)
        where = f"{MELLANOX}/nicnodepolicies/{policy['metadata']['name']}"
        # A reason stays only as long as it is true; as with the other kind, times alone are no change.
        self._policy_writer.status(where, policy.get("status"), {"reason": None, **written})
        return written

    def _nodes(self, policy: Object | None) -> None:
        """After the status, as recorded: node labels, and what device plugins announce."""
        policies = [*([policy] if policy else []), *self.node_policies.all()]
        drivers = {one["metadata"]["uid"]: one for one in policies if components.section(one, components.OFED)}
        pods = self._plugin_pods()
        held = self._held(policy)
        for node in self.nodes_seen.all():
            name = node["metadata"]["name"]
            driven = any(not components.suffix(one) or components.selects(one, node) for one in drivers.values())
            waiting = name == held or (driven and (components.OFED.state, name) not in pods)
            labels = nodes.label_changes(node, waiting, driven and self._has_driver())
            announced: dict[str, int] = {}
            for one in policies:
                for plugin in components.DEVICE_PLUGINS:
                    # The real plugin speaks for itself.
                    real = plugin == components.RDMA_PLUGIN and self.settings.rdma_plugin
                    if not real and (f"{plugin.state}{components.suffix(one)}", name) in pods:
                        announced.update(components.resources(one, plugin))
            # An operator that was replaced may have announced some.
            shared = {key for key in (node.get("status") or {}).get("capacity") or {} if key.startswith("rdma/")}
            before, self._announced[name] = self._announced.get(name, shared), set(announced)
            patch = nodes.capacity_patch(node, announced, before)
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

    def _plugin_pods(self) -> set[tuple[str, str]]:
        """{(state and suffix of the policy, node)} of ready pods of device plugins, and (state, node) of drivers'."""
        found = set()
        selectors = {
            components.OFED: components.DRIVER_POD_LABEL,
            components.RDMA_PLUGIN: "app%3Drdma-shared-dp",
            components.SRIOV_PLUGIN: "app%3Dsriovdp",
        }
        used = {(one["metadata"].get("labels") or {}).get(components.STATE_LABEL) for one in self.daemon_sets.all()}
        for component, selector in selectors.items():
            if component.state not in used:
                continue
            where = f"/api/v1/namespaces/{self.settings.namespace}/pods?labelSelector={selector}"
            for pod in self._policy_writer.api.request("GET", where)["items"]:
                if _pod_ready(pod):
                    owner = (pod["metadata"].get("labels") or {}).get("ds-owner", "")
                    of_policy = owner.removeprefix("nnp") if owner.startswith("nnp-") else ""
                    more = of_policy if component in components.DEVICE_PLUGINS else ""
                    found.add((component.state + more, pod["spec"]["nodeName"]))
        return found

    # -- the world of a walk ----------------------------------------------------------------------------

    def pause(self, seconds: float) -> None:
        """Let time pass."""
        time.sleep(seconds * self.settings.pace)

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
            for seen in self.pools.values():
                seen.nudge()
        return problem

    def owned(self, state: str, policy: Object) -> list[str]:
        """Paths of all children of a policy's component."""
        found = []
        for kind in ("DaemonSet", "Deployment", "ServiceAccount", "ConfigMap", "CustomResourceDefinition"):
            space = "" if kind == "CustomResourceDefinition" else self.settings.namespace
            where = f"{path(kind, space)}?labelSelector={components.STATE_LABEL}%3D{state}"
            items = self._policy_writer.api.request("GET", where)["items"]
            found += [path(kind, space, one["metadata"]["name"]) for one in items if _owned(one, policy)]
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
                    rest = reconcile.AGAIN * self.settings.pace
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
        for plural, allocate in ALLOCATE.items():
            for pool in self.pools[plural].all():
                where = f"{POOLS}/namespaces/{space}/{plural}/{pool['metadata']['name']}"
                found = allocate(pool, self.nodes_seen.all())
                self._pool_writer.status(where, pool.get("status"), {"allocations": found})
        return None


def _owned(child: Object, policy: Object) -> bool:
    owners = child["metadata"].get("ownerReferences") or []
    return any((one["kind"], one["name"]) == (policy["kind"], policy["metadata"]["name"]) for one in owners)


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
