# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The components of a NicClusterPolicy and the objects that each of them wants.

Pure: objects in, objects out. Names, labels and kinds are the recorded ones of 26.7. What cannot run in the
lab is replaced where it says so: nodes have images of the components' names that hold a program which sleeps.
"""

from __future__ import annotations

import hashlib
import json
import zlib
from dataclasses import dataclass
from typing import Any

Object = dict[str, Any]

POLICY_NAME = "nic-cluster-policy"
STATE_LABEL = "nvidia.network-operator.state"
REVISION = "nvidia.network-operator.revision"
NIC_LABEL = "feature.node.kubernetes.io/pci-15b3.present"
WAIT_LABEL = "network.nvidia.com/operator.mofed.wait"
OS_LABEL = "feature.node.kubernetes.io/system-os_release.ID"
OS_VERSION_LABEL = "feature.node.kubernetes.io/system-os_release.VERSION_ID"
KERNEL_LABEL = "feature.node.kubernetes.io/kernel-version.full"
DRIVER_POD_LABEL = "nvidia.com/ofed-driver"
PLUGIN_POD_LABELS = {"app": "rdma-shared-dp"}


@dataclass(frozen=True)
class Settings:
    """What the chart tells: where children go, CRDs of nv-ipam, an image of the real RDMA shared device plugin."""

    namespace: str
    pool_crds: tuple[Object, ...] = ()
    flap: bool = True
    rdma_plugin: str = ""


@dataclass(frozen=True)
class Component:
    """One entry of status.appliedStates: its condition (without "Ready") and its place in the spec."""

    state: str
    condition: str
    section: tuple[str, ...]


COMPONENTS = (
    Component("state-multus-cni", "MultusCNI", ("secondaryNetwork", "multus")),
    Component("state-container-networking-plugins", "CNIPlugins", ("secondaryNetwork", "cniPlugins")),
    Component("state-ipoib-cni", "IPoIBCNI", ("secondaryNetwork", "ipoib")),
    Component("state-OFED", "OFEDDriver", ("ofedDriver",)),
    Component("state-SRIOV-device-plugin", "SRIOVDevicePlugin", ("sriovDevicePlugin",)),
    Component("state-RDMA-device-plugin", "RDMASharedDevicePlugin", ("rdmaSharedDevicePlugin",)),
    Component("state-ib-kubernetes", "IBKubernetes", ("ibKubernetes",)),
    Component("state-nv-ipam-cni", "NVIPAM", ("nvIpam",)),
    Component("state-nic-feature-discovery", "NICFeatureDiscovery", ("nicFeatureDiscovery",)),
    Component("state-doca-telemetry-service", "DOCATelemetryService", ("docaTelemetryService",)),
    Component("state-nic-configuration-operator", "NICConfigurationOperator", ("nicConfigurationOperator",)),
    Component("state-spectrum-x-operator", "SpectrumXOperator", ("spectrumXOperator",)),
)
OFED, RDMA_PLUGIN, POOLS = COMPONENTS[3], COMPONENTS[5], COMPONENTS[7]


class RenderError(Exception):
    """A component whose objects cannot be made; `state` is what appliedStates shows of it."""

    def __init__(self, message: str, state: str = "notReady") -> None:
        super().__init__(f"failed to create k8s objects from manifest: {message}")
        self.state = state


def section(policy: Object, component: Component) -> Object | None:
    """The part of the spec that asks for a component, None when it is not asked for."""
    found: Any = policy.get("spec") or {}
    for key in component.section:
        found = found.get(key)
        if found is None:
            return None
    return dict(found)


def children(policy: Object, component: Component, nodes: list[Object], settings: Settings) -> list[Object]:
    """All objects of a component that is asked for, with labels, revision and owner, in the order of their making.

    Raises RenderError as the real operator complains.
    """
    asked = section(policy, component) or {}
    render = _RENDERERS.get(component.state)
    if render is None:
        raise RenderError("the stand-in of the tests does not play this component", "error")
    image = _image(policy, asked, component)
    made = render(policy, asked, image, nodes, settings)
    return [_finished(one, policy, component, settings) for one in made]


def resources(policy: Object | None) -> dict[str, int]:
    """Extended resources that the RDMA shared device plugin would announce: {"rdma/<name>": rdmaHcaMax}.

    A configuration that is not JSON, which the real policy accepts, announces nothing.
    """
    asked = section(policy, RDMA_PLUGIN) if policy else None
    try:
        entries = json.loads((asked or {}).get("config") or "{}").get("configList") or []
        return {
            f"{entry.get('resourcePrefix') or 'rdma'}/{entry['resourceName']}": int(entry["rdmaHcaMax"])
            for entry in entries
        }
    except (ValueError, KeyError, TypeError, AttributeError):
        return {}


def _image(policy: Object, asked: Object, component: Component) -> str:
    defaults = (policy.get("spec") or {}).get("global") or {}
    parts = {key: asked.get(key) or defaults.get(key) for key in ("repository", "version")}
    for key, value in parts.items():
        if not value:
            name = component.section[-1]
            raise RenderError(f"failed to validate {name} image spec: {key} is required")
    return f"{parts['repository']}/{asked['image']}:{parts['version']}"


def _finished(made: Object, policy: Object, component: Component, settings: Settings) -> Object:
    metadata = made["metadata"]
    if made["kind"] != "CustomResourceDefinition":
        metadata["namespace"] = settings.namespace
    metadata.setdefault("labels", {})[STATE_LABEL] = component.state
    return owned(made, policy)


def owned(made: Object, owner: Object) -> Object:
    """The object with its revision (of everything but the owner) and its controller reference."""
    revision = str(zlib.crc32(json.dumps(made, sort_keys=True).encode()))
    made["metadata"].setdefault("annotations", {})[REVISION] = revision
    made["metadata"]["ownerReferences"] = [
        {
            "apiVersion": owner["apiVersion"],
            "kind": owner["kind"],
            "name": owner["metadata"]["name"],
            "uid": owner["metadata"].get("uid", ""),
            "controller": True,
            "blockOwnerDeletion": True,
        }
    ]
    return made


def _account(name: str, labels: Object | None = None) -> Object:
    metadata = {"name": name, "labels": dict(labels or {})}
    return {"apiVersion": "v1", "kind": "ServiceAccount", "metadata": metadata}


def _config_map(name: str, data: dict[str, str], labels: Object) -> Object:
    metadata = {"name": name, "labels": dict(labels)}
    return {"apiVersion": "v1", "kind": "ConfigMap", "metadata": metadata, "data": data}


def _pod_template(
    policy: Object, container: str, image: str, labels: Object, settings: Settings, extra: Object
) -> Object:
    spec = {
        "hostNetwork": True,
        "terminationGracePeriodSeconds": 2,
        "automountServiceAccountToken": False,
        "tolerations": (policy.get("spec") or {}).get("tolerations") or [],
        "containers": [
            {
                "name": container,
                "image": image,
                "imagePullPolicy": "IfNotPresent",
            }
        ],
    }
    # A device plugin is made anew when its configuration changes: the recorded pods of 26.7 are.
    annotations = dict(extra.get("annotations", {}))
    if extra.get("nodeSelector"):
        spec["nodeSelector"] = extra["nodeSelector"]
    return {"metadata": {"labels": dict(labels), "annotations": annotations}, "spec": spec}


def _daemon_set(name: str, labels: Object, strategy: str, template: Object) -> Object:
    affinity = template["metadata"]["labels"]
    return {
        "apiVersion": "apps/v1",
        "kind": "DaemonSet",
        "metadata": {"name": name, "labels": dict(labels)},
        "spec": {
            "selector": {"matchLabels": dict(affinity)},
            "updateStrategy": {"type": strategy},
            "template": template,
        },
    }


def _multus(policy: Object, asked: Object, image: str, nodes: list[Object], settings: Settings) -> list[Object]:
    labels = {"app": "multus", "name": "multus", "tier": "node"}
    template = _pod_template(policy, "kube-multus", image, labels, settings, {})
    return [_account("multus"), _daemon_set("kube-multus-ds", labels, "RollingUpdate", template)]


def _cni_plugins(policy: Object, asked: Object, image: str, nodes: list[Object], settings: Settings) -> list[Object]:
    labels = {"app": "cni-plugins", "tier": "node"}
    template = _pod_template(policy, "cni-plugins", image, labels, settings, {})
    return [_daemon_set("cni-plugins-ds", labels, "RollingUpdate", template)]


def _plugin_extra(config: str) -> Object:
    return {
        "nodeSelector": {NIC_LABEL: "true", WAIT_LABEL: "false"},
        "annotations": {"gpufabric-lab/config-hash": hashlib.sha256(config.encode()).hexdigest()[:16]},
    }


def _rdma_plugin(policy: Object, asked: Object, image: str, nodes: list[Object], settings: Settings) -> list[Object]:
    owner = {"ds-owner": "NicClusterPolicy"}
    config = asked.get("config") or ""
    template = _pod_template(policy, "rdma-shared-dp", image, PLUGIN_POD_LABELS, settings, _plugin_extra(config))
    if settings.rdma_plugin:
        _run_rdma_plugin(template["spec"], settings.rdma_plugin)
    return [
        _config_map("rdma-devices", {"config.json": config}, owner),
        _daemon_set("rdma-shared-dp-ds", owner, "RollingUpdate", template),
    ]


def _run_rdma_plugin(spec: Object, image: str) -> None:
    """Run the real plugin with what the vendor's DaemonSet gives it."""
    places = {"plugins": "/var/lib/kubelet/device-plugins", "registry": "/var/lib/kubelet/plugins_registry"}
    places["devices"] = "/dev/"
    container = spec["containers"][0]
    mounts = [{"name": name, "mountPath": path} for name, path in places.items()]
    container.update(image=image, command=["/usr/bin/k8s-rdma-shared-dp"], securityContext={"privileged": True})
    container["volumeMounts"] = [*mounts, {"name": "config", "mountPath": "/k8s-rdma-shared-dev-plugin"}]
    volumes = [{"name": name, "hostPath": {"path": path}} for name, path in places.items()]
    spec["volumes"] = [*volumes, {"name": "config", "configMap": {"name": "rdma-devices"}}]


def _sriov_plugin(policy: Object, asked: Object, image: str, nodes: list[Object], settings: Settings) -> list[Object]:
    owner = {"ds-owner": "NicClusterPolicy"}
    name, config = "network-operator-sriov-device-plugin", asked.get("config") or ""
    labels = {"app": "sriovdp", "tier": "node"}
    template = _pod_template(policy, "kube-sriovdp", image, labels, settings, _plugin_extra(config))
    return [
        _config_map("network-operator-sriovdp-config", {"config.json": config}, owner),
        _account(name, owner),
        _daemon_set(name, {**labels, **owner}, "RollingUpdate", template),
    ]


def _deployment(name: str, labels: Object, replicas: int, what: str, template: Object) -> Object:
    about = f"This deployment launches the {what}.\n"
    return {
        "apiVersion": "apps/v1",
        "kind": "Deployment",
        "metadata": {
            "name": name,
            "labels": dict(labels),
            "annotations": {"kubernetes.io/description": about},
        },
        "spec": {
            "replicas": replicas,
            "selector": {"matchLabels": template["metadata"]["labels"]},
            "template": template,
        },
    }


def _ib_kubernetes(policy: Object, asked: Object, image: str, nodes: list[Object], settings: Settings) -> list[Object]:
    template = _pod_template(policy, "ib-kubernetes", image, {"app": "ib-kubernetes"}, settings, {})
    what = "ib-kubernetes daemon for Infiniband CNI"
    return [_account("ib-kubernetes"), _deployment("ib-kubernetes", {}, 1, what, template)]


def _pools(policy: Object, asked: Object, image: str, nodes: list[Object], settings: Settings) -> list[Object]:
    if asked.get("enableWebhook"):
        message = 'no matches for kind "Issuer" in version "cert-manager.io/v1"'
        error = RenderError(message)
        error.args = (f"failed to create/update objects: {message}",)
        raise error
    controller = {"app": "nv-ipam", "component": "nv-ipam-controller", "name": "nv-ipam-controller"}
    node = {"app": "nv-ipam", "component": "nv-ipam-node", "name": "nv-ipam-node"}
    control = _pod_template(policy, "nv-ipam-controller", image, controller, settings, {})
    template = _pod_template(policy, "nv-ipam-node", image, node, settings, {})
    return [
        *(json.loads(json.dumps(crd)) for crd in settings.pool_crds),
        _account("nv-ipam-node"),
        _account("nv-ipam-controller"),
        _deployment("nv-ipam-controller", controller, 2, "nv-ipam controller for nv-ipam", control),
        _daemon_set("nv-ipam-node", node, "RollingUpdate", template),
    ]


def _driver(policy: Object, asked: Object, image: str, nodes: list[Object], settings: Settings) -> list[Object]:
    """One DaemonSet for each kind of system; a node without the labels of NFD is left out silently."""
    kinds = set()
    for one in nodes:
        labels = one["metadata"].get("labels") or {}
        system = tuple(labels.get(key, "") for key in (OS_LABEL, OS_VERSION_LABEL, KERNEL_LABEL))
        if labels.get(NIC_LABEL) == "true" and all(system):
            kinds.add(system)
    if not kinds:
        return []
    owner = {"ds-owner": "NicClusterPolicy"}
    made = [_account("ofed-driver", owner), _config_map("ofed-init-container-config", {}, owner)]
    return made + [_driver_set(policy, image, kind, settings) for kind in sorted(kinds)]


def _driver_set(policy: Object, image: str, system: tuple[str, ...], settings: Settings) -> Object:
    name, version, kernel = system
    app = f"mofed-{name}{version}-{hashlib.sha256(kernel.encode()).hexdigest()[:10]}"
    owner = {"app": app, "ds-owner": "NicClusterPolicy", DRIVER_POD_LABEL: ""}
    selector = dict(zip((OS_LABEL, OS_VERSION_LABEL, KERNEL_LABEL), system))
    template = _pod_template(
        policy,
        "mofed-container",
        f"{image}-{name}{version}-amd64",
        {**owner, "kernel": kernel},
        settings,
        {"nodeSelector": {NIC_LABEL: "true", **selector}},
    )
    return _daemon_set(f"{app}-ds", {**owner, "mofed-ds-format-version": "1"}, "OnDelete", template)


_RENDERERS = {
    "state-multus-cni": _multus,
    "state-container-networking-plugins": _cni_plugins,
    "state-OFED": _driver,
    "state-SRIOV-device-plugin": _sriov_plugin,
    "state-RDMA-device-plugin": _rdma_plugin,
    "state-ib-kubernetes": _ib_kubernetes,
    "state-nv-ipam-cni": _pools,
}
