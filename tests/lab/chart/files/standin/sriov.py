# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What the SR-IOV operator and its config daemon make of policies and networks, where the real ones do not run. Pure.

The lab runs the real ones, so this part is for hollow nodes alone. Networks and the copying of policies follow the
source of the SR-IOV operator (December 2025), states of nodes its recordings in tests/fixtures/sriov_operator. Assumed:
the ports of a node are those of its annotation, as they were before the operator: [{name, pciAddress, vendor, deviceID,
linkType, mtu, totalvfs, numVfs}]. Drains, firmware of NVIDIA's ports and switchdev are not played: a port gets no more
virtual functions than its totalvfs, without a reboot.
"""

from __future__ import annotations

import json
from typing import Any

from .components import Object

API = "sriovnetwork.openshift.io/v1"
PORTS = "gpufabric-lab/ports"
DAEMON = "sriov-network-config-daemon"
FINALIZER = "netattdef.finalizers.sriovnetwork.openshift.io"
LAST_NAMESPACE = "operator.sriovnetwork.openshift.io/last-network-namespace"
CURRENT, DESIRED = (f"sriovnetwork.openshift.io/{which}-state" for which in ("current", "desired"))
SELECTOR = {"kubernetes.io/os": "linux", "network.nvidia.com/operator.mofed.wait": "false"}
#: The operator ignores a policy of this name.
IGNORED = "default"
_PLUGINS = {"SriovNetwork": "sriov", "SriovIBNetwork": "ib-sriov"}
#: Field of a SriovNetwork -> key of the plugin's configuration, in the order of the real text.
_SWITCHES = {"spoofChk": "spoofchk", "trust": "trust"}


def hardware(node: Object) -> list[Object]:
    """The ports of a node as they were before the operator."""
    found = json.loads((node["metadata"].get("annotations") or {}).get(PORTS) or "[]")
    return [dict(one) for one in found]


def ports(node: Object, spec: Object) -> tuple[list[Object], bool]:
    """(status.interfaces after the daemon has worked on spec, whether all of it could be done).

    A failure, as the end of a policy, leaves a port without virtual functions and with its MTU of before the operator.
    """
    wanted = {one["pciAddress"]: one for one in spec.get("interfaces") or []}
    found, done = [], True
    for port in hardware(node):
        asked = wanted.get(port["pciAddress"])
        if asked is None:
            found.append(_port(port, port.get("numVfs", 0), port["mtu"]))
        elif asked.get("externallyManaged"):
            possible = asked["numVfs"] <= port.get("numVfs", 0) and asked.get("mtu", 0) <= port["mtu"]
            found.append(_port(port, port.get("numVfs", 0), port["mtu"]))
            done = done and possible
        elif asked["numVfs"] > port["totalvfs"]:
            found.append(_port(port, 0, port["mtu"]))
            done = False
        else:
            found.append(_port(port, asked["numVfs"], asked.get("mtu") or port["mtu"]))
    return found, done


def _port(port: Object, count: int, mtu: int) -> Object:
    fixed = ("name", "pciAddress", "vendor", "deviceID", "linkType", "totalvfs")
    made: Object = {key: port[key] for key in fixed}
    made.update({"mtu": mtu, "linkAdminState": "up", "eSwitchMode": "legacy"})
    if count:
        made["numVfs"] = count
        made["Vfs"] = [_function(port, number, mtu) for number in range(count)]
    return made


def _function(port: Object, number: int, mtu: int) -> Object:
    address = f"{port['pciAddress'].rpartition(':')[0]}:{16 + number // 8:02x}.{number % 8}"
    own = {"name": f"{port['name']}v{number}", "pciAddress": address, "vfID": number, "mtu": mtu}
    return {**own, "vendor": port["vendor"], "deviceID": port["deviceID"]}


def requested(policies: list[Object], node: Object, known: list[Object]) -> list[Object]:
    """spec.interfaces of a node's state; known: the ports that its status has, none before the daemon has run.

    Of two policies for one port the one with the lower priority number wins.
    """
    found: dict[str, Object] = {}
    labels = (node["metadata"].get("labels") or {}).items()
    order = sorted(policies, key=lambda one: (-one["spec"].get("priority", 0), one["metadata"]["name"]))
    for policy in order:
        spec, name = policy["spec"], policy["metadata"]["name"]
        if name == IGNORED or not (spec.get("nodeSelector") or {}).items() <= labels:
            continue
        for port in known:
            if spec.get("numVfs") and _selected(spec.get("nicSelector") or {}, port):
                found[port["pciAddress"]] = _interface(name, spec, port)
    return [found[address] for address in sorted(found)]


def _selected(selector: Object, port: Object) -> bool:
    names = [one.partition("#")[0] for one in selector.get("pfNames") or []]
    pairs = (("vendor", "vendor"), ("deviceID", "deviceID"))
    same = all(not selector.get(key) or selector[key] == port[own] for key, own in pairs)
    roots = selector.get("rootDevices") or []
    return bool(
        selector and same and (not names or port["name"] in names) and (not roots or port["pciAddress"] in roots)
    )


def _interface(name: str, spec: Object, port: Object) -> Object:
    group = {"policyName": name, "resourceName": spec["resourceName"], "vfRange": f"0-{spec['numVfs'] - 1}"}
    group.update({key: spec[key] for key in ("deviceType", "isRdma", "mtu") if spec.get(key)})
    made = {"name": port["name"], "pciAddress": port["pciAddress"], "numVfs": spec["numVfs"], "vfGroups": [group]}
    return {
        **made,
        **{key: spec[key] for key in ("mtu", "linkType", "eSwitchMode", "externallyManaged") if spec.get(key)},
    }


def resources(spec: Object, prefix: str) -> dict[str, int]:
    """What the SR-IOV device plugin announces on a node whose state has this spec."""
    found: dict[str, int] = {}
    for port in spec.get("interfaces") or []:
        for group in port["vfGroups"]:
            key = f"{prefix}/{group['resourceName']}"
            found[key] = found.get(key, 0) + port["numVfs"]
    return found


def definition(network: Object, prefix: str) -> Object:
    """The NetworkAttachmentDefinition of a SriovNetwork or SriovIBNetwork. Raises ValueError for invalid JSON in it."""
    kind, spec, meta = network["kind"], network["spec"], network["metadata"]
    plugin: Object = {"type": _PLUGINS[kind]}
    if kind == "SriovNetwork":
        plugin["vlan"] = spec.get("vlan", 0)
        plugin.update({key: spec[field] for field, key in _SWITCHES.items() if spec.get(field)})
        plugin["vlanQoS"] = spec.get("vlanQoS", 0)
        plugin.update({"vlanProto": spec["vlanProto"]} if spec.get("vlanProto") else {})
    if spec.get("capabilities"):
        plugin["capabilities"] = json.loads(spec["capabilities"])
    if spec.get("linkState"):
        plugin["link_state"] = spec["linkState"]
    plugin["ipam"] = json.loads(spec.get("ipam") or "{}")
    config: Object = {"cniVersion": "1.0.0", "name": meta["name"]}
    chain = json.loads(f"[{spec.get('metaPlugins') or ''}]")
    config.update({"plugins": [plugin, *chain]} if chain else plugin)
    annotations = {
        "k8s.v1.cni.cncf.io/resourceName": f"{prefix}/{spec['resourceName']}",
        "sriovnetwork.openshift.io/owner-ref": f"{kind}.sriovnetwork.openshift.io/{meta['namespace']}/{meta['name']}",
    }
    place = spec.get("networkNamespace") or meta["namespace"]
    return {
        "apiVersion": "k8s.cni.cncf.io/v1",
        "kind": "NetworkAttachmentDefinition",
        "metadata": {"name": meta["name"], "namespace": place, "annotations": annotations},
        "spec": {"config": json.dumps(config, indent=2)},
    }


def same(found: Object | None, wanted: Object) -> bool:
    """Whether a definition needs no write; unlike with the network operator's kinds, an edit by hand does not stay."""
    if found is None:
        return False
    notes: Any = found["metadata"].get("annotations") or {}
    return bool(found["spec"] == wanted["spec"] and wanted["metadata"]["annotations"].items() <= notes.items())
