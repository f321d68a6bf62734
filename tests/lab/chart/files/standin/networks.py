# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""MacvlanNetwork, IPoIBNetwork and HostDeviceNetwork to NetworkAttachmentDefinition. Pure."""

from __future__ import annotations

import re
from dataclasses import dataclass

from .components import REVISION, Object, owned

NAD_API = "k8s.cni.cncf.io/v1"
STATE = {
    "MacvlanNetwork": "state-Macvlan-Network",
    "IPoIBNetwork": "state-IPoIB-Network",
    "HostDeviceNetwork": "state-host-device-network",
}
LINK = {
    "MacvlanNetwork": "macvlanNetworkAttachmentDef",
    "IPoIBNetwork": "ipoibNetworkAttachmentDef",
    "HostDeviceNetwork": "hostDeviceNetworkAttachmentDef",
}
_MANIFEST = {
    "MacvlanNetwork": ("state-macvlan-network/0010-macvlan-net-cr.yml", 9),
    "IPoIBNetwork": ("state-ipoib-network/0010-ipoib-net-cr.yaml", 11),
}


@dataclass(frozen=True)
class Network:
    """What a network asks for: its NAD, or why there can be none, and the annotations that it gets."""

    nad: Object | None
    namespace: str
    annotations: dict[str, str] | None
    problem: Object | None = None


def plan(network: Object) -> Network:
    """The NAD of a network.

    The macvlan and IPoIB annotations replace all others of the resource: a trap that the recordings show.
    """
    kind, spec = network["kind"], network.get("spec") or {}
    namespace = spec.get("networkNamespace") or ""
    if "'" in (spec.get("ipam") or ""):
        return Network(None, namespace, None, _quote_problem(kind))
    if kind == "HostDeviceNetwork":
        if not namespace:
            return Network(None, "", None, _with_applied({"state": "notReady"}, "notReady"))
        return Network(_nad(network, namespace), namespace, None)
    namespace = namespace or "default"
    return Network(_nad(network, namespace), namespace, {last_namespace_key(kind): namespace})


def last_namespace_key(kind: str) -> str:
    """The annotation in which the operator notes where the NAD stands."""
    return f"operator.{kind.lower()}.mellanox.com/last-network-namespace"


def status(network: Object, problem: str = "") -> Object:
    """The status after the NAD was written, or after that failed with this problem.

    An old reason is never cleared; without networkNamespace the link stays empty.
    """
    kind, old = network["kind"], dict(network.get("status") or {})
    applied = kind == "HostDeviceNetwork"
    if problem:
        old.update({"state": "notReady"} if applied else {"state": "notReady", "reason": problem})
        return _with_applied(old, "notReady") if applied else old
    old["state"] = "ready"
    namespace = (network.get("spec") or {}).get("networkNamespace")
    if namespace:
        name = network["metadata"]["name"]
        old[LINK[kind]] = f"k8s.cni.cncf.io/v1/namespaces/{namespace}/NetworkAttachmentDefinition/{name}"
    return _with_applied(old, "ready") if applied else old


def config(kind: str, name: str, spec: Object) -> str:
    """The text of spec.config, with the spaces that the real one has; the ipam is never checked."""
    ipam = spec.get("ipam") or "{}"
    if kind == "HostDeviceNetwork":
        return f'{{ "cniVersion":"0.3.1", "name":"{name}", "type":"host-device", "ipam":{ipam} }}'
    ipam = re.sub(r"\s", "", ipam)
    if kind == "IPoIBNetwork":
        master = spec.get("master", "")
        start = f'{{ "cniVersion":"0.3.1", "name":"{name}", "type":"ipoib", "master": "{master}", '
        return f'{start}"ipam":{ipam} }}'
    parts = [f'{{ "cniVersion":"0.3.1", "name":"{name}", "type":"macvlan"']
    parts += [f'"master": "{spec["master"]}"'] if spec.get("master") else []
    parts += [f'"mode" : "{spec["mode"]}"'] if spec.get("mode") else []
    parts += [f'"mtu" : {spec["mtu"]}'] if spec.get("mtu") else []
    return ",".join([*parts, f'"ipam":{ipam} }}'])


def same(nad: Object | None, wanted: Object) -> bool:
    """Whether a NAD needs no write. Only the revision is compared: an edit by hand stays."""
    if nad is None:
        return False
    found = (nad["metadata"].get("annotations") or {}).get(REVISION)
    return bool(found == wanted["metadata"]["annotations"][REVISION])


def _nad(network: Object, namespace: str) -> Object:
    kind, name, spec = network["kind"], network["metadata"]["name"], network.get("spec") or {}
    metadata: Object = {
        "name": name,
        "namespace": namespace,
        "labels": {"nvidia.network-operator.state": STATE[kind]},
    }
    if kind == "HostDeviceNetwork":
        resource = spec.get("resourceName") or ""
        full = resource if resource.startswith("nvidia.com/") else f"nvidia.com/{resource}"
        metadata["annotations"] = {"k8s.v1.cni.cncf.io/resourceName": full}
    nad = {
        "apiVersion": NAD_API,
        "kind": "NetworkAttachmentDefinition",
        "metadata": metadata,
        "spec": {"config": config(kind, name, spec)},
    }
    return owned(nad, network)


def _quote_problem(kind: str) -> Object:
    if kind == "HostDeviceNetwork":
        return _with_applied({"state": "notReady"}, "error")
    manifest, line = _MANIFEST[kind]
    reason = (
        f"failed to render {kind}: failed to render objects: failed to unmarshal manifest /manifests/{manifest}: "
        f"error converting YAML to JSON: yaml: line {line}: did not find expected key"
    )
    return {"state": "error", "reason": reason}


def _with_applied(status: Object, state: str) -> Object:
    return {**status, "appliedStates": [{"name": STATE["HostDeviceNetwork"], "state": state}]}
