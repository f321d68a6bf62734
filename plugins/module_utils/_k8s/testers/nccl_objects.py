# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The objects of collectives: for each unit of hosts a ConfigMap, a headless Service and an Indexed Job."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from .manifests import FOLDER, Testers, config_map, job

_INDEX = "$(JOB_COMPLETION_INDEX)"
# NCCL and CUDA keep this much in the memory of the host for each GPU, and share memory between processes.
MEMORY_PER_GPU = 8 << 30
_SHARED = "32Gi"


@dataclass(frozen=True)
class Part:
    """A unit as Kubernetes runs it. ``lines``: those of nccl.sh; ``patience``: seconds until all of its pods run."""

    testers: Testers
    hostnames: Sequence[str]
    lines: Sequence[str]
    environment: Mapping[str, str]
    scripts: Mapping[str, str]
    gpus: int
    patience: int


def settings(part: Part) -> dict[str, Any]:
    """Return the ConfigMap with scripts, rails and collectives."""
    made = config_map([part.testers], {})
    rails = made["data"][part.testers.table]
    return {
        **made,
        "data": {**part.scripts, "rails": rails, "collectives": "".join(f"{line}\n" for line in part.lines)},
    }


def service(part: Part, owner: Mapping[str, Any]) -> dict[str, Any]:
    """Return the Service by which pods find the first one before it is ready; it goes with the ConfigMap."""
    name = part.testers.name
    reference = {"apiVersion": "v1", "kind": "ConfigMap", "name": name, "uid": owner["metadata"]["uid"]}
    meta = {key: owner["metadata"][key] for key in ("name", "namespace", "labels")}
    selector = {"app.kubernetes.io/name": name}
    return {
        "apiVersion": "v1",
        "kind": "Service",
        "metadata": {**meta, "ownerReferences": [reference]},
        "spec": {"clusterIP": "None", "publishNotReadyAddresses": True, "selector": selector},
    }


def unit_job(part: Part) -> dict[str, Any]:
    """Return the Job of the testers with the collectives instead of the tester."""
    made = job(part.testers, part.hostnames)
    spec = made["spec"]["template"]["spec"]
    (container,) = spec["containers"]
    name, namespace = part.testers.name, part.testers.namespace
    launcher = f"{part.testers.job_name}-0.{name}.{namespace}.svc"
    container["command"] = ["sh", f"{FOLDER}/nccl.sh", "serve", f"{FOLDER}/rails", f"{FOLDER}/collectives"]
    container["command"] += [launcher, _INDEX, str(len(part.hostnames)), str(part.gpus), str(part.patience)]
    container["env"] += [{"name": key, "value": value} for key, value in part.environment.items()]
    container["volumeMounts"].append({"name": "shared", "mountPath": "/dev/shm"})
    # The usual 64 MiB of shared memory end NCCL.
    spec["volumes"].append({"name": "shared", "emptyDir": {"medium": "Memory", "sizeLimit": _SHARED}})
    spec["subdomain"] = name
    if part.testers.host_network:
        spec["dnsPolicy"] = "ClusterFirstWithHostNet"
    return made
