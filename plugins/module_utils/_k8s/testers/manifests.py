# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The objects of the testers in pods: namespace, ConfigMap and one Indexed Job."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from ..._fabric.intent.host_classes import of_plan
from ..._fabric.operator import attachments
from ..._fabric.operator.profiles import registry
from ..._fabric.operator.sections import resource_key
from ..checks.test_namespace import COMPONENT
from ..client.api import MANAGER
from ..objects.ownership import MARK
from .resources import Needs

ENDPOINTS = "endpoints.json"
CONTAINER = "tester"
FOLDER = "/gpufabric"
MAILBOX = "/mailbox"
SELECTOR = f"{MARK}={MANAGER},app.kubernetes.io/component=tester"
RUN = "gpufabric.rdma/run"
RBAC = "rbac.authorization.k8s.io"
_HOSTNAME = "kubernetes.io/hostname"
_POD_SECURITY = ("enforce", "audit", "warn")
# After the run a Job that nobody could delete goes by itself.
_TTL = 600
_GRACE = 5
# What a tester asks for. It may take more: CPU without a limit, since throttling would be measured, memory up to that
# of its tests, and disk up to these limits for the output of perftest and of long passes. With whole CPUs it takes no
# more than it asks for: only then the kubelet's static CPU manager gives it cores of its own.
_MEMORY = "64Mi"
_DISK = "1Gi"
_MAILBOX = "512Mi"


@dataclass(frozen=True)
class Testers:
    """What to start. ``rails``: name, netdev, resource and network (its entry in a pod's annotation), in order.

    ``cpus``: whole CPUs that each tester gets, 0 for a share of ``cpu`` without a limit.
    ``role``: the ClusterRole that admits such pods, for a service account of their own; empty where none is needed.
    ``part``: the class of hosts that these testers are for, "" for all; each class has a Job of its own. ``parts``: all
    of these classes, where there are several.
    """

    namespace: str
    name: str
    image: str
    script: str
    rails: Sequence[Mapping[str, Any]]
    host_network: bool
    lifetime: int
    idle: int
    pull_policy: str = "IfNotPresent"
    pull_secrets: Sequence[str] = ()
    tolerations: Sequence[Mapping[str, Any]] = ()
    runtime_class: str | None = None
    labels: Mapping[str, str] = field(default_factory=dict)
    needs: Needs = field(default_factory=Needs)
    cpu: str = "100m"
    cpus: int = 0
    memory: int = 1 << 30
    run: str = ""
    role: str = ""
    part: str = ""
    parts: tuple[str, ...] = ()

    @property
    def selector(self) -> str:
        """Selects what the run made; what any run made when it has no ID."""
        return f"{SELECTOR},{RUN}={self.run}" if self.run else SELECTOR

    @property
    def job_name(self) -> str:
        """The name of the Job of the part."""
        return self._named(self.name, self.part)

    @property
    def job_names(self) -> list[str]:
        """The names of the Jobs of all parts."""
        return [self._named(self.name, part) for part in self.parts or ("",)]

    @property
    def table(self) -> str:
        """The name of the part's table of rails."""
        return self._named("rails", self.part)

    @staticmethod
    def _named(name: str, part: str) -> str:
        return f"{name}-{part}" if part else name


def pod_rails(plan: Mapping[str, Any]) -> dict[str, list[dict[str, Any]]]:
    """Return class of hosts -> its rails, each with its entry in a pod's annotation as ``network``."""
    namespace = (plan.get("operator") or {}).get("network_namespace") or "default"
    rails = {rail["name"]: rail for rail in plan.get("rails") or []}
    found = {}
    for own in of_plan(plan):
        network = registry.get(own["profile"].get("name", "")).pod_network
        found[own["name"]] = [{**rails[name], "network": network(rails[name], namespace)} for name in own["rails"]]
    return found


def pod_rail_names(rails: Sequence[Mapping[str, Any]], host_network: bool) -> dict[str, str]:
    """Return rail -> interface in the pod: Multus names additional networks net1, net2, ... in their order."""
    if host_network:
        return {rail["name"]: rail.get("master") or rail["netdev"] for rail in rails}
    return {rail["name"]: f"net{index}" for index, rail in enumerate(rails, 1)}


def namespace_object(testers: Testers) -> dict[str, Any]:
    """Return the namespace; host network, IPC_LOCK and RDMA devices are beyond all but `privileged`."""
    security = {f"pod-security.kubernetes.io/{mode}": "privileged" for mode in _POD_SECURITY}
    labels = {MARK: MANAGER, **COMPONENT, **security}
    return {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": testers.namespace, "labels": labels}}


def config_map(parts: Sequence[Testers], endpoints: Mapping[str, str]) -> dict[str, Any]:
    """Return the ConfigMap with the tester script, the rails of each part, and which endpoint is which node."""
    testers, tables = parts[0], {}
    for own in parts:
        names = pod_rail_names(own.rails, own.host_network)
        tables[own.table] = "".join(f"rail {rail} {netdev} -\n" for rail, netdev in names.items())
    return {
        "apiVersion": "v1",
        "kind": "ConfigMap",
        "metadata": _metadata(testers),
        "data": {"tester.sh": testers.script, **tables, ENDPOINTS: json.dumps(dict(endpoints))},
    }


def account(testers: Testers, owner: Mapping[str, Any]) -> list[dict[str, Any]]:
    """Return the service account of the testers and its role, if they need one; they go with their ``owner``."""
    if not testers.role:
        return []
    reference = {"apiVersion": "v1", "kind": "ConfigMap", "name": testers.name, "uid": owner["metadata"]["uid"]}
    meta = {**_metadata(testers), "ownerReferences": [reference]}
    role = {"apiGroup": RBAC, "kind": "ClusterRole", "name": testers.role}
    subject = {"kind": "ServiceAccount", "name": testers.name, "namespace": testers.namespace}
    return [
        {"apiVersion": "v1", "kind": "ServiceAccount", "metadata": meta},
        {"apiVersion": f"{RBAC}/v1", "kind": "RoleBinding", "metadata": meta, "roleRef": role, "subjects": [subject]},
    ]


def job(testers: Testers, hostnames: Sequence[str]) -> dict[str, Any]:
    """Return the Job: one pod on each node of ``hostnames`` (values of the nodes' hostname label).

    A tester that ends is never started again: what it measured would be lost with no one noticing.
    The time limit stands at the pods, since the Job's own would delete pods and logs.
    """
    return {
        "apiVersion": "batch/v1",
        "kind": "Job",
        "metadata": {**_metadata(testers), "name": testers.job_name},
        "spec": {
            "completionMode": "Indexed",
            "completions": len(hostnames),
            "parallelism": len(hostnames),
            "backoffLimitPerIndex": 0,
            "ttlSecondsAfterFinished": _TTL,
            "template": {"metadata": _pod_metadata(testers), "spec": _pod_spec(testers, hostnames)},
        },
    }


def _metadata(testers: Testers) -> dict[str, Any]:
    return {"name": testers.name, "namespace": testers.namespace, "labels": _labels(testers)}


def _labels(testers: Testers) -> dict[str, str]:
    return {
        MARK: MANAGER,
        **COMPONENT,
        "app.kubernetes.io/name": testers.name,
        **({RUN: testers.run} if testers.run else {}),
        **testers.labels,
    }


def _pod_metadata(testers: Testers) -> dict[str, Any]:
    networks = ", ".join(rail["network"] for rail in testers.rails)
    return {
        "labels": _labels(testers),
        **({} if testers.host_network else {"annotations": {attachments.NETWORKS: networks}}),
    }


def _pod_spec(testers: Testers, hostnames: Sequence[str]) -> dict[str, Any]:
    return {
        "restartPolicy": "Never",
        "activeDeadlineSeconds": testers.lifetime,
        "terminationGracePeriodSeconds": _GRACE,
        "automountServiceAccountToken": False,
        **({"serviceAccountName": testers.name} if testers.role else {}),
        "enableServiceLinks": False,
        "affinity": _one_per_node(testers, hostnames),
        "tolerations": [dict(item) for item in testers.tolerations],
        "imagePullSecrets": [{"name": name} for name in testers.pull_secrets],
        "containers": [_container(testers)],
        "volumes": [
            {"name": "tester", "configMap": {"name": testers.name}},
            {"name": "mailbox", "emptyDir": {"sizeLimit": _MAILBOX}},
        ],
        "securityContext": {"seccompProfile": {"type": "RuntimeDefault"}},
        **({"hostNetwork": True} if testers.host_network else {}),
        **({"runtimeClassName": testers.runtime_class} if testers.runtime_class else {}),
    }


def _one_per_node(testers: Testers, hostnames: Sequence[str]) -> dict[str, Any]:
    node = {"key": _HOSTNAME, "operator": "In", "values": list(hostnames)}
    pod = {
        "labelSelector": {"matchLabels": {"app.kubernetes.io/name": testers.name}},
        "topologyKey": _HOSTNAME,
    }
    required = "requiredDuringSchedulingIgnoredDuringExecution"
    return {
        "nodeAffinity": {required: {"nodeSelectorTerms": [{"matchExpressions": [node]}]}},
        "podAntiAffinity": {required: [pod]},
    }


def _container(testers: Testers) -> dict[str, Any]:
    # RDMA locks memory; on the hosts' network it needs their devices too, which only privileged pods see.
    locked = {"allowPrivilegeEscalation": False, "capabilities": {"drop": ["ALL"], "add": ["IPC_LOCK"]}}
    security = {"privileged": True} if testers.host_network else locked
    gpus = [{"name": "NVIDIA_VISIBLE_DEVICES", "value": "all"}] if testers.needs.show_gpus else []
    return {
        "name": CONTAINER,
        "image": testers.image,
        "imagePullPolicy": testers.pull_policy,
        "command": ["sh", f"{FOLDER}/tester.sh", "serve", f"{FOLDER}/{testers.table}", MAILBOX, str(testers.idle)],
        "securityContext": security,
        "env": [{"name": "TMPDIR", "value": MAILBOX}, *gpus],
        "resources": _resources(testers),
        "volumeMounts": [
            {"name": "tester", "mountPath": FOLDER, "readOnly": True},
            {"name": "mailbox", "mountPath": MAILBOX},
        ],
    }


def _resources(testers: Testers) -> dict[str, Any]:
    """Return what the pod is given: rails, huge pages, GPUs; and its limits.

    Huge pages need no volume: perftest takes them as System V shared memory, for which IPC_LOCK is enough.
    """
    rails = () if testers.host_network else testers.rails
    limits = {resource_key(rail["resource"]): "1" for rail in rails}
    limits.update({resource: str(amount) for resource, amount in testers.needs.amounts.items()})
    limits.update({"memory": str(testers.memory), "ephemeral-storage": _DISK})
    asked = {"cpu": testers.cpu, "memory": _MEMORY}
    if testers.cpus:
        asked = {"cpu": str(testers.cpus), "memory": limits["memory"]}
        limits.update(asked)
    # Without a request for disk its limit would be one.
    return {"limits": limits, "requests": {**asked, "ephemeral-storage": "0"}}
