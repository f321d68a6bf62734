# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The components of a NicClusterPolicy or a NicNodePolicy, and the objects that each of them wants.

Pure: objects in, objects out. Names, labels and kinds are the recorded ones of 26.7. What cannot run in the
lab is replaced where it says so: nodes have images of the components' names that hold a program which sleeps.

Not recorded, but after the vendor's public manifests: the objects of the IPoIB CNI, NIC Feature Discovery, the DOCA
Telemetry Service and the NIC configuration operator. Assumed: names of the SR-IOV device plugin of a NicNodePolicy,
by analogy with the recorded ones of the RDMA device plugin; labels of the pods of both.
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
    """What the chart tells: where children go, CRDs of nv-ipam, an image of the real RDMA shared device plugin.

    `pace`: what the times of recordings are multiplied by.
    """

    namespace: str
    pool_crds: tuple[Object, ...] = ()
    flap: bool = True
    rdma_plugin: str = ""
    pace: float = 1.0


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
OFED, SRIOV_PLUGIN, RDMA_PLUGIN, POOLS = COMPONENTS[3], COMPONENTS[4], COMPONENTS[5], COMPONENTS[7]
NIC_CONFIGURATION = COMPONENTS[10]
#: Those of a NicNodePolicy, in the recorded order.
NODE_COMPONENTS = (OFED, RDMA_PLUGIN, SRIOV_PLUGIN)
DEVICE_PLUGINS = (RDMA_PLUGIN, SRIOV_PLUGIN)
NODE_POLICY = "NicNodePolicy"


def parts(policy: Object) -> tuple[Component, ...]:
    """The components that a policy of its kind can have, in the order of its status."""
    return NODE_COMPONENTS if policy.get("kind") == NODE_POLICY else COMPONENTS


def suffix(policy: Object) -> str:
    """What the names of a NicNodePolicy's children end with."""
    return f"-{policy['metadata']['name']}" if policy.get("kind") == NODE_POLICY else ""


def owner_label(policy: Object) -> Object:
    """The label that tells children of policies apart."""
    return {"ds-owner": f"nnp{suffix(policy)}" if suffix(policy) else "NicClusterPolicy"}


def selects(policy: Object, node: Object) -> bool:
    """Whether a NicNodePolicy is for a node; one without selector is for all."""
    wanted = (policy.get("spec") or {}).get("nodeSelector") or {}
    return bool(wanted.items() <= (node["metadata"].get("labels") or {}).items())


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
    # The NIC configuration operator has two images, each in a section of its own.
    image = "" if component == NIC_CONFIGURATION else _image(policy, asked, component)
    made = render(policy, asked, image, nodes, settings)
    return [_finished(one, policy, component, settings) for one in made]


def resources(policy: Object | None, component: Component = RDMA_PLUGIN) -> dict[str, int]:
    """Extended resources that a device plugin would announce on each of its nodes.

    Assumed, since no plugin sees a NIC here: every node has the ports that are selected. So a resource of the RDMA
    shared device plugin has rdmaHcaMax devices, and one of the SR-IOV device plugin one for each name of a port, or
    one for each virtual function where their numbers are given (name#0-7). A configuration that is not JSON, which
    the real policy accepts, announces nothing.
    """
    asked = section(policy, component) if policy else None
    try:
        config = json.loads((asked or {}).get("config") or "{}")
        if component == SRIOV_PLUGIN:
            return {
                f"{entry.get('resourcePrefix') or 'intel.com'}/{entry['resourceName']}": _devices(entry["selectors"])
                for entry in config.get("resourceList") or []
            }
        return {
            f"{entry.get('resourcePrefix') or 'rdma'}/{entry['resourceName']}": int(entry["rdmaHcaMax"])
            for entry in config.get("configList") or []
        }
    except (ValueError, KeyError, TypeError, AttributeError):
        return {}


def _devices(selectors: Any) -> int:
    first = selectors[0] if isinstance(selectors, list) else selectors
    count = 0
    for name in first.get("pfNames") or []:
        _port, _mark, numbers = name.partition("#")
        for part in numbers.split(",") if numbers else ["0"]:
            begin, _dash, end = part.partition("-")
            count += int(end or begin) - int(begin) + 1
    return count


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
    spec: Object = {
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
    own = (policy.get("spec") or {}).get("nodeSelector") or {} if suffix(policy) else {}
    if extra.get("nodeSelector") or own:
        spec["nodeSelector"] = {**extra.get("nodeSelector", {}), **own}
    affinity = (policy.get("spec") or {}).get("nodeAffinity")
    if affinity and not suffix(policy):
        spec["affinity"] = {"nodeAffinity": affinity}
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
    owner, more = owner_label(policy), suffix(policy)
    config = asked.get("config") or ""
    labels = {**PLUGIN_POD_LABELS, **(owner if more else {})}
    template = _pod_template(policy, "rdma-shared-dp", image, labels, settings, _plugin_extra(config))
    if settings.rdma_plugin:
        _run_rdma_plugin(template["spec"], settings.rdma_plugin)
    return [
        _config_map(f"rdma-devices{more}", {"config.json": config}, owner),
        _daemon_set(f"rdma-shared-dp-ds{more}", owner, "RollingUpdate", template),
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
    owner, more = owner_label(policy), suffix(policy)
    name, config = f"network-operator-sriov-device-plugin{more}", asked.get("config") or ""
    labels = {"app": "sriovdp", "tier": "node"}
    pod_labels = {**labels, **(owner if more else {})}
    template = _pod_template(policy, "kube-sriovdp", image, pod_labels, settings, _plugin_extra(config))
    return [
        _config_map(f"network-operator-sriovdp-config{more}", {"config.json": config}, owner),
        _account(name, owner),
        _daemon_set(name, {**labels, **owner}, "RollingUpdate", template),
    ]


def _ipoib_cni(policy: Object, asked: Object, image: str, nodes: list[Object], settings: Settings) -> list[Object]:
    labels = {"tier": "node", "app": "ipoib-cni", "name": "ipoib-cni"}
    template = _pod_template(policy, "ipoib-cni", image, labels, settings, {})
    return [_daemon_set("kube-ipoib-cni-ds", labels, "RollingUpdate", template)]


def _nic_features(policy: Object, asked: Object, image: str, nodes: list[Object], settings: Settings) -> list[Object]:
    labels = {"tier": "node", "app": "nic-feature-discovery", "name": "nic-feature-discovery"}
    template = _pod_template(policy, "nic-feature-discovery", image, labels, settings, {})
    return [_daemon_set("nic-feature-discovery-ds", labels, "RollingUpdate", template)]


def _telemetry(policy: Object, asked: Object, image: str, nodes: list[Object], settings: Settings) -> list[Object]:
    labels = {"app.kubernetes.io/name": "doca-telemetry"}
    extra = {"nodeSelector": {NIC_LABEL: "true", WAIT_LABEL: "false"}}
    template = _pod_template(policy, "doca-telemetry-service", image, labels, settings, extra)
    name = "doca-telemetry-service"
    return [_account(name), _daemon_set(name, {}, "RollingUpdate", template)]


def _nic_settings(policy: Object, asked: Object, image: str, nodes: list[Object], settings: Settings) -> list[Object]:
    name, daemon = "nic-configuration-operator", "nic-configuration-daemon"
    images = [_image(policy, asked.get(key) or {}, NIC_CONFIGURATION) for key in ("operator", "configurationDaemon")]
    control = _pod_template(policy, "manager", images[0], {"app.kubernetes.io/component": name}, settings, {})
    labels, extra = {"app.kubernetes.io/name": daemon}, {"nodeSelector": {WAIT_LABEL: "false"}}
    template = _pod_template(policy, daemon, images[1], labels, settings, extra)
    return [
        _account(name),
        _deployment(name, {"app.kubernetes.io/component": name}, 1, "NIC configuration operator", control),
        _daemon_set(daemon, labels, "RollingUpdate", template),
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
        own = not suffix(policy) or selects(policy, one)
        if own and labels.get(NIC_LABEL) == "true" and all(system):
            kinds.add(system)
    if not kinds:
        return []
    owner = owner_label(policy)
    made = [_account("ofed-driver", owner), _config_map("ofed-init-container-config", {}, owner)]
    return made + [_driver_set(policy, image, kind, settings) for kind in sorted(kinds)]


def _driver_set(policy: Object, image: str, system: tuple[str, ...], settings: Settings) -> Object:
    name, version, kernel = system
    app = f"mofed-{name}{version}-{hashlib.sha256(kernel.encode()).hexdigest()[:10]}{suffix(policy)}"
    owner = {"app": app, **owner_label(policy), DRIVER_POD_LABEL: ""}
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
    "state-ipoib-cni": _ipoib_cni,
    "state-OFED": _driver,
    "state-SRIOV-device-plugin": _sriov_plugin,
    "state-RDMA-device-plugin": _rdma_plugin,
    "state-ib-kubernetes": _ib_kubernetes,
    "state-nv-ipam-cni": _pools,
    "state-nic-feature-discovery": _nic_features,
    "state-doca-telemetry-service": _telemetry,
    "state-nic-configuration-operator": _nic_settings,
}
