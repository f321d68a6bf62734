# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""A plan as a folder of manifests, which Argo CD, Flux or kubectl apply in place of the playbooks."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from ..intent import platforms
from ..intent.digests import known, with_digest
from ..intent.host_classes import of_plan
from ..intent.releases import line_of
from . import claims, coreos, gpu_operator, olm
from .attachments import NETWORKS
from .chart_images import chart_images
from .common import merged
from .image_list import drivers, images, mirror
from .mark import namespace_object
from .order import apply_order
from .profiles import registry
from .sections import resource_key

_EXAMPLE_IMAGE = "registry.example.com/tools/perftest:25.01"
_INTERVAL = "1h"


@dataclass(frozen=True)
class Chart:
    """How the operator's chart is installed. ``values``: those of the user, over the ones of the plan."""

    name: str = "network-operator"
    ref: str = "network-operator"
    repo: str = ""
    values: Mapping[str, Any] = field(default_factory=dict)


def manifests(
    plan: Mapping[str, Any],
    chart: Chart,
    image: str = "",
    *,
    kernel: coreos.Kernel | None = None,
    digests: Mapping[str, str] | None = None,
) -> dict[str, Any]:
    """Return path below the folder -> content: text, or a list of objects for YAML.

    ``image``: that of the example pod. ``kernel``: what hosts have that objects of the cluster configure. ``digests``:
    image -> digest, beside those that are known here. Files and objects come in the order to apply them.
    """
    operator, objects = plan["operator"], plan["objects"]
    platform = platforms.get(operator.get("platform") or "")
    files: dict[str, Any] = {"plan.txt": _summary(plan)}
    if platform.machines:
        files.update(_step("machines", coreos.objects(plan, kernel or coreos.Kernel())))
    if platform.catalog:
        aim = olm.aim_of(operator["namespace"], operator["release"], platform.catalog)
        files.update(_step("operator", olm.objects(aim)))
    else:
        files.update(_by_chart(operator, chart))
        container = any("ofedDriver" in (item.get("spec") or {}) for item in objects["policy"])
        files["operator/gpu-operator-values.yaml"] = gpu_operator.values(container, operator["nfd"])
    for step in ("policy", "networks"):
        files.update(_step(step, apply_order(objects[step])))
    # Operators of a catalog bring images that the catalog lists.
    values = None if platform.catalog else chart_values(operator, chart)
    names, notes = _images(operator, objects["policy"], values)
    pinned = {**known(), **(digests or {})}
    files["images.txt"] = _lines([*(with_digest(name, pinned) for name in names), *notes])
    pairs = mirror(names, operator["image_repository"], operator["release"], digests=pinned)
    if pairs:
        files["mirror.txt"] = _lines([f"{source} {target}" for source, target in pairs])
    if plan.get("partitions"):
        files["infiniband/partitions.conf"] = _lines(plan["partitions"])
    for own in of_plan(plan) if objects["networks"] else ():
        path = f"examples/pod-{own['name']}.yaml" if own["name"] else "examples/pod.yaml"
        files[path] = [_pod(plan, own, image or _EXAMPLE_IMAGE)]
    templates = [claims.of_rail(rail, operator["network_namespace"]) for rail in plan["rails"] if rail.get("claim")]
    files.update({"examples/resource-claims.yaml": templates} if templates else {})
    return files


def _by_chart(operator: Mapping[str, Any], chart: Chart) -> dict[str, Any]:
    values = chart_values(operator, chart)
    files: dict[str, Any] = {
        "operator/namespace.yaml": [namespace_object(operator["namespace"])],
        "operator/values.yaml": [values],
    }
    if chart.repo:
        files["operator/argocd.yaml"] = [_argocd(operator, chart, values)]
        files["operator/flux.yaml"] = _flux(operator, chart, values)
    return files


def chart_values(operator: Mapping[str, Any], chart: Chart) -> dict[str, Any]:
    """Return the chart's values of a plan where the cluster is not known, with the user's over them."""
    own = {"nfd": {"enabled": operator["nfd"], "deployNodeFeatureRules": operator["nfd"]}}
    return merged(merged(own, operator.get("chart_values") or {}), chart.values)


def _images(
    operator: Mapping[str, Any], policy: Sequence[Mapping[str, Any]], values: Mapping[str, Any] | None
) -> tuple[list[str], list[str]]:
    """Return all images, and a line for each one that is not known exactly."""
    line, release, compiled = line_of(operator["release"]), operator["release"], drivers(policy)
    own, unknown = (
        chart_images(line, release, values, driver=bool(compiled)) if line and values is not None else ([], [])
    )
    known_of = operator.get("driver_systems") or {}
    systems = {name: known_of.get(name.rpartition(":")[2]) or [""] for name in compiled}
    notes = [
        *(
            f"# {name}-SYSTEM-ARCHITECTURE for each other node, such as {name}-ubuntu24.04-amd64"
            for name in compiled
            if "" in systems[name]
        ),
        *(f"# {name}: not known here. List it with helm template" for name in unknown),
    ]
    exact = [f"{name}-{system}" for name in compiled for system in systems[name] if system]
    return sorted({*images(policy), *own, *exact}), notes


def _step(step: str, objects: Sequence[Mapping[str, Any]]) -> dict[str, Any]:
    files: dict[str, Any] = {}
    for item in objects:
        files[f"{step}/{item['kind'].lower()}-{item['metadata']['name']}.yaml"] = [item]
    if files:
        resources = [path.partition("/")[2] for path in files]
        kustomization = {"apiVersion": "kustomize.config.k8s.io/v1beta1", "kind": "Kustomization"}
        files[f"{step}/kustomization.yaml"] = [{**kustomization, "resources": resources}]
    return files


def _argocd(operator: Mapping[str, Any], chart: Chart, values: Mapping[str, Any]) -> dict[str, Any]:
    return {
        "apiVersion": "argoproj.io/v1alpha1",
        "kind": "Application",
        "metadata": {"name": chart.name, "namespace": "argocd"},
        "spec": {
            "project": "default",
            "source": {
                "repoURL": chart.repo,
                "chart": chart.ref,
                "targetRevision": operator["release"],
                "helm": {"releaseName": chart.name, "valuesObject": values},
            },
            "destination": {"server": "https://kubernetes.default.svc", "namespace": operator["namespace"]},
        },
    }


def _flux(operator: Mapping[str, Any], chart: Chart, values: Mapping[str, Any]) -> list[dict[str, Any]]:
    metadata = {"name": chart.name, "namespace": operator["namespace"]}
    source = {"kind": "HelmRepository", "name": chart.name}
    return [
        {
            "apiVersion": "source.toolkit.fluxcd.io/v1",
            "kind": "HelmRepository",
            "metadata": metadata,
            "spec": {"interval": _INTERVAL, "url": chart.repo},
        },
        {
            "apiVersion": "helm.toolkit.fluxcd.io/v2",
            "kind": "HelmRelease",
            "metadata": dict(metadata),
            "spec": {
                "interval": _INTERVAL,
                "releaseName": chart.name,
                "chart": {"spec": {"chart": chart.ref, "version": operator["release"], "sourceRef": source}},
                "install": {"crds": "Create"},
                # Helm itself never upgrades definitions.
                "upgrade": {"crds": "CreateReplace"},
                "values": values,
            },
        },
    ]


def _pod(plan: Mapping[str, Any], own: Mapping[str, Any], image: str) -> dict[str, Any]:
    """Return a pod with all rails of a class of hosts: what a workload needs to use them."""
    profile, namespace = registry.get(own["profile"]["name"]), plan["operator"]["network_namespace"]
    rails = [rail for rail in plan["rails"] if rail["name"] in own["rails"]]
    networks = ",".join(profile.pod_network(rail, namespace) for rail in rails)
    requested = {resource_key(rail["resource"]): "1" for rail in rails if not rail.get("claim")}
    claimed, own_claims = claims.of_pod([rail for rail in rails if rail.get("claim")])
    resources = {"requests": requested, "limits": dict(requested)} if requested else claimed
    suffix = f"-{own['name']}" if own["name"] else ""
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {"name": f"rdma-example{suffix}", "annotations": {NETWORKS: networks}},
        "spec": {
            "containers": [
                {
                    "name": "rdma",
                    "image": image,
                    "command": ["sleep", "infinity"],
                    # RDMA registers memory, which the kernel locks.
                    "securityContext": {"capabilities": {"add": ["IPC_LOCK"]}},
                    "resources": resources,
                }
            ],
            **(own_claims if not requested else {}),
        },
    }


def _summary(plan: Mapping[str, Any]) -> str:
    lines = [*plan["table"], *(f"warning: {text}" for text in plan["warnings"])]
    for own in plan.get("classes") or [{"name": "", "labels": plan["nodes"]["labels"]}]:
        labels = " ".join(f"{name}={value}" for name, value in own["labels"].items())
        which = f"class {own['name']}" if own["name"] else "the fabric"
        if labels:
            lines.append(f"Label each node of {which}: kubectl label node NAME {labels}")
    return _lines(lines)


def _lines(lines: Sequence[str]) -> str:
    return "".join(f"{line}\n" for line in lines)
