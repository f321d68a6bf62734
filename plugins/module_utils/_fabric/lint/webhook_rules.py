# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What the admission webhooks of both operators refuse, which are off by default: then it shows on the nodes only."""

from __future__ import annotations

import itertools
import re
from collections import defaultdict
from collections.abc import Iterator, Mapping
from typing import Any

from ..._common.pci import NIC_VENDOR
from ..._common.reader import some
from ..intent.components import amount
from ..intent.images import REPOSITORY
from .objects import Objects, at, dicts, label, mapping, number, text, texts
from .policy_rules import IMAGES, KINDS, PLUGINS, entries
from .rule import ERROR, WARNING, Found, Rule

_SHARED, _SRIOV = PLUGINS
# What the device plugins know: keys of an entry, and of its selectors.
_KEYS = {
    _SHARED: {"resourceName", "resourcePrefix", "rdmaHcaMax", "devices", "selectors"},
    _SRIOV: {"resourceName", "resourcePrefix", "deviceType", "excludeTopology", "selectors", "additionalInfo"},
}
_SELECTORS = {
    _SHARED: {"vendors", "deviceIDs", "drivers", "ifNames", "linkTypes"},
    _SRIOV: {
        *("vendors", "devices", "drivers", "pciAddresses", "acpiIndexes", "pfNames", "rootDevices", "linkTypes"),
        *("pKeys", "ddpProfiles", "isRdma", "needVhostNet", "vdpaType", "auxTypes"),
    },
}
_LINK_TYPES = ("ether", "infiniband")
_DOMAIN = re.compile(r"(?=.{1,253}$)[a-z0-9]([a-z0-9-]*[a-z0-9])?(\.[a-z0-9]([a-z0-9-]*[a-z0-9])?)*")
_AMOUNTS = ("cpu", "memory")
_MOST_VFS = 128
_POLICY = "SriovNetworkNodePolicy"


def _repository(objects: Objects) -> Iterator[Found]:
    for policy in objects.of(*KINDS):
        for path in (("global",), *IMAGES):
            found = text(policy, "spec", *path, "repository")
            if found and not re.fullmatch(REPOSITORY.pattern, found):
                yield Found(label(policy), f'spec.{".".join(path)}.repository "{found}": expected {REPOSITORY.words}')


def _containers(objects: Objects) -> Iterator[tuple[Mapping[str, Any], str, Mapping[str, Any]]]:
    for policy in objects.of(*KINDS):
        for path in IMAGES:
            for one in dicts(policy, "spec", *path, "containerResources"):
                yield policy, f"spec.{'.'.join(path)}.containerResources, container {text(one, 'name')}", one


def _above_limit(objects: Objects) -> Iterator[Found]:
    for policy, place, one in _containers(objects):
        limits = mapping(one, "limits")
        for name, value in mapping(one, "requests").items():
            if name in limits and amount(str(value)) > amount(str(limits[name])) > 0:
                yield Found(
                    label(policy),
                    f"{place}: the request for {name}, {value}, is above the limit {limits[name]}. Lower it",
                )


def _amounts(objects: Objects) -> Iterator[Found]:
    for policy, place, one in _containers(objects):
        for key in ("requests", "limits"):
            for name, value in mapping(one, key).items():
                if name not in _AMOUNTS:
                    yield Found(label(policy), f"{place}: {key}.{name}: expected cpu or memory. Remove it")
                elif not amount(str(value)):
                    yield Found(label(policy), f"{place}: {key}.{name} is {value}. Set an amount such as 100m or 256Mi")


def _plugins(objects: Objects) -> Iterator[tuple[Mapping[str, Any], str, list[Mapping[str, Any]]]]:
    for policy in objects.of(*KINDS):
        for plugin in PLUGINS:
            yield policy, plugin, entries(policy, plugin)


def _selectors(entry: Mapping[str, Any]) -> list[Mapping[str, Any]]:
    """Return the selectors of an entry: one, or a list of alternatives."""
    return [one for one in (entry.get("selectors"), *dicts(entry, "selectors")) if isinstance(one, Mapping)]


def _unknown_keys(objects: Objects) -> Iterator[Found]:
    for policy, plugin, found in _plugins(objects):
        for entry in found:
            wrong = [str(key) for key in entry if key not in _KEYS[plugin]]
            # Accelerators and devices of other kinds have selectors of their own.
            if entry.get("deviceType", "netDevice") == "netDevice":
                wrong += [str(key) for one in _selectors(entry) for key in one if key not in _SELECTORS[plugin]]
            if wrong:
                name = text(entry, "resourceName")
                yield Found(label(policy), f"spec.{plugin}.config: {name} has {some(wrong)}. Remove or correct it")


def _link_types(objects: Objects) -> Iterator[Found]:
    for policy, plugin, found in _plugins(objects):
        for entry in found:
            types = [value for one in _selectors(entry) for value in texts(one, "linkTypes")]
            if types and not {*types} & {*_LINK_TYPES}:
                yield Found(
                    label(policy),
                    f"spec.{plugin}.config: {text(entry, 'resourceName')} has linkTypes {some(types)}. Expected"
                    f" {' or '.join(_LINK_TYPES)}",
                )


def _prefix(objects: Objects) -> Iterator[Found]:
    for policy, plugin, found in _plugins(objects):
        for prefix in dict.fromkeys(text(entry, "resourcePrefix") for entry in found):
            if prefix and not _DOMAIN.fullmatch(prefix):
                yield Found(
                    label(policy),
                    f'spec.{plugin}.config: resourcePrefix "{prefix}": expected a domain such as nvidia.com',
                )


def _entries(objects: Objects) -> Iterator[Found]:
    for policy, plugin, found in _plugins(objects):
        place, names = f"spec.{plugin}.config", [text(entry, "resourceName") for entry in found]
        if "" in names:
            yield Found(label(policy), f"{place}: an entry has no resourceName. Set it")
        for name in sorted({name for name in names if name and names.count(name) > 1}) if plugin == _SHARED else ():
            yield Found(label(policy), f"{place}: {name} is the name of several entries. Rename them")
        for entry, name in zip(found, names) if plugin == _SHARED else ():
            most = number(entry, "rdmaHcaMax")
            if most is None or most < 0:
                yield Found(label(policy), f"{place}: {name} has no valid rdmaHcaMax. Set a number")
            if ("selectors" in entry) == ("devices" in entry):
                yield Found(label(policy), f"{place}: {name}: set either selectors or devices")


def _telemetry(objects: Objects) -> Iterator[Found]:
    for policy in objects.of("NicClusterPolicy"):
        name = text(policy, "spec", "docaTelemetryService", "config", "fromConfigMap")
        if name and not _DOMAIN.fullmatch(name):
            yield Found(
                label(policy),
                f'spec.docaTelemetryService.config.fromConfigMap "{name}" cannot be the name of a ConfigMap',
            )


def _overlap(objects: Objects) -> Iterator[Found]:
    nodes = [mapping(node, "metadata", "labels") for node in objects.of("Node")]
    for one, other in itertools.combinations(objects.of("NicNodePolicy"), 2):
        first, second = (mapping(policy, "spec", "nodeSelector") for policy in (one, other))
        both = [node for node in nodes if first.items() <= node.items() and second.items() <= node.items()]
        # Without Nodes only selectors of which one includes the other are certain.
        if both or (not nodes and (first.items() <= second.items() or second.items() <= first.items())):
            yield Found(label(other), f"Its nodeSelector selects nodes of {label(one)}, too. Make them different")


def _combinations(objects: Objects) -> Iterator[Found]:
    for policy in objects.of(_POLICY):
        spec = mapping(policy, "spec")
        vfs, nics = number(spec, "numVfs") or 0, mapping(spec, "nicSelector")
        if spec.get("deviceType") == "vfio-pci" and spec.get("isRdma") is True:
            yield Found(
                label(policy), "isRdma is true with deviceType vfio-pci, whose VFs have no RDMA. Change one of both"
            )
        if spec.get("eSwitchMode") == "switchdev" and text(spec, "linkType").lower() == "ib":
            yield Found(label(policy), "eSwitchMode is switchdev with linkType ib. Only Ethernet has this mode")
        if vfs > _MOST_VFS and nics.get("vendor") == NIC_VENDOR:
            yield Found(
                label(policy), f"numVfs is {vfs}; at most {_MOST_VFS} are possible with NICs of NVIDIA. Lower it"
            )


def _one_port(objects: Objects) -> Iterator[Found]:
    owners: dict[tuple[str, str, str], list[str]] = defaultdict(list)
    for policy in objects.of(_POLICY):
        # A range of VFs shares a port on purpose; of different priorities one replaces the other.
        for name in texts(policy, "spec", "nicSelector", "pfNames"):
            place = (name, str(at(policy, "spec", "priority")), str(at(policy, "spec", "nodeSelector")))
            owners[place] += [label(policy)] if "#" not in name else []
    for (name, _priority, _nodes), found in owners.items():
        if len(found) > 1:
            yield Found(found[1], f"{found[0]} selects the port {name} on the same nodes. Remove it from one of them")


_OPERATOR, _VENDOR = "the operator's webhook", "NVIDIA's documentation"
_REFUSED = "The webhook, where it is enabled, refuses the policy"
RULES = (
    Rule("image-repository", ERROR, "Nodes cannot pull the image", _OPERATOR, _repository),
    Rule("container-limit", ERROR, "The API server refuses the pods of the component", _OPERATOR, _above_limit),
    Rule("container-resources", WARNING, _REFUSED, _OPERATOR, _amounts),
    Rule("plugin-entries", ERROR, "The device plugin refuses its configuration", _OPERATOR, _entries),
    Rule("plugin-fields", WARNING, "The device plugin ignores the field", _OPERATOR, _unknown_keys),
    Rule("plugin-link-types", ERROR, "The resource has no devices", _VENDOR, _link_types),
    Rule("resource-prefix", ERROR, "The kubelet refuses the resource", _OPERATOR, _prefix),
    Rule("telemetry-config", ERROR, "Pods of the telemetry service do not start", _OPERATOR, _telemetry),
    Rule("node-policy-overlap", ERROR, "The newer policy stays in state error", _VENDOR, _overlap),
    Rule("sriov-combination", WARNING, _REFUSED, "the SR-IOV operator's webhook", _combinations),
    Rule(
        "sriov-one-port", WARNING, "Only one of the policies has an effect", "the SR-IOV operator's webhook", _one_port
    ),
)
