# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Rules for the objects of the SR-IOV operator."""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from ..._common.fold import fold
from ..._common.reader import and_more
from ..operator.claims import GATE
from .objects import Objects, at, dicts, label, mapping, number, pf_names, text, texts
from .policy_rules import ports_of_plugins
from .rule import ERROR, WARNING, Found, Rule

_POLICY, _POOL = "SriovNetworkNodePolicy", "SriovNetworkPoolConfig"
_NAME = re.compile(r"[\w.]+", re.ASCII)
_SHARED = "rdmaSharedDevicePlugin"
_NETNS = "ib_core.netns_mode="
_MODES = {"shared": f"{_NETNS}1", "exclusive": f"{_NETNS}0"}
# Systems on which the operator cannot change kernel arguments: it knows rpm-ostree and grubby.
_WITHOUT_GRUBBY = ("debian", "ubuntu")


def _default(objects: Objects) -> Iterator[Found]:
    for policy in objects.of(_POLICY):
        # The operator's own object of this name is empty.
        if text(policy, "metadata", "name") == "default" and number(policy, "spec", "numVfs"):
            yield Found(label(policy), "The operator ignores policies called default. Rename it")


def _no_vfs(objects: Objects) -> Iterator[Found]:
    for policy in objects.of(_POLICY):
        if number(policy, "spec", "numVfs") == 0 and text(policy, "metadata", "name") != "default":
            yield Found(label(policy), "spec.numVfs is 0, which resets the port. Set a number, or delete the policy")


def _name(objects: Objects) -> Iterator[Found]:
    for policy in objects.of(_POLICY):
        name = text(policy, "spec", "resourceName")
        if name and not _NAME.fullmatch(name):
            yield Found(label(policy), f'spec.resourceName "{name}": expected letters, digits, _ and . Rename it')


def _unknown_port(objects: Objects) -> Iterator[Found]:
    states = objects.of("SriovNetworkNodeState")
    # A node whose ports are not reported yet may have the port.
    if not all(dicts(state, "status", "interfaces") for state in states):
        return
    ports = [port for state in states for port in dicts(state, "status", "interfaces")]
    known = {text(port, key) for port in ports for key in ("name", "altName")}
    for policy in objects.of(_POLICY) if states and objects.complete else ():
        missing = [name for name in _pfs(policy) if name not in known]
        if missing:
            yield Found(label(policy), f"No node reports a port {' or '.join(missing)}. Correct nicSelector.pfNames")


def _too_many(objects: Objects) -> Iterator[Found]:
    for policy, node, port in _selected(objects):
        wanted, most = number(policy, "spec", "numVfs"), number(port, "totalvfs")
        if wanted and most is not None and wanted > most:
            yield Found(
                label(policy),
                f"spec.numVfs is {wanted}, but {text(port, 'name')} of {node} has at most {most}. Lower it, or raise"
                " NUM_OF_VFS in the firmware",
            )


def _external_mtu(objects: Objects) -> Iterator[Found]:
    for policy, node, port in _selected(objects):
        wanted, own = number(policy, "spec", "mtu"), number(port, "mtu")
        if at(policy, "spec", "externallyManaged") is True and wanted and own and wanted > own:
            yield Found(
                label(policy),
                f"spec.mtu is {wanted}, but {text(port, 'name')} of {node} has {own}, and the operator does not change"
                " ports that are managed externally. Set the MTU on the host, or lower it here",
            )


def _missing_vfs(objects: Objects) -> Iterator[Found]:
    for state in objects.of("SriovNetworkNodeState"):
        if text(state, "status", "syncStatus") != "Succeeded":
            continue
        actual = {text(port, "pciAddress"): port for port in dicts(state, "status", "interfaces")}
        for wanted in dicts(state, "spec", "interfaces"):
            port, count = actual.get(text(wanted, "pciAddress")), number(wanted, "numVfs")
            # A port without VFs has no number of them.
            found = (number(port, "numVfs") or 0) if port else None
            if count and found is not None and found < count:
                yield Found(
                    label(state),
                    f"syncStatus is Succeeded, but {text(port, 'name')} has {found} VFs, expected {count}. Restart the"
                    " pod of the config daemon on this node",
                )


def _not_offered(objects: Objects) -> Iterator[Found]:
    if any(at(one, "spec", "featureGates", GATE) is True for one in objects.of("SriovOperatorConfig")):
        return  # Pods claim VFs, and no device plugin offers them.
    offers = {text(node, "metadata", "name"): mapping(node, "status", "allocatable") for node in objects.of("Node")}
    states = objects.of("SriovNetworkNodeState")
    synced = {text(one, "metadata", "name") for one in states if text(one, "status", "syncStatus") == "Succeeded"}
    for policy, node, port in _selected(objects):
        name, offered = text(policy, "spec", "resourceName"), offers.get(node)
        if not (name and offered and node in synced and number(port, "numVfs")):
            continue
        if all(str(count) == "0" for key, count in offered.items() if str(key).rpartition("/")[2] == name):
            yield Found(
                label(policy),
                f"{text(port, 'name')} of {node} has VFs, but the node offers no {name}. If this persists, delete the"
                " pod of the SR-IOV device plugin on this node",
            )


def _external_drain(objects: Objects) -> Iterator[Found]:
    policies = [policy for policy in objects.of(_POLICY) if at(policy, "spec", "externallyManaged") is True]
    if policies and drains(objects) is not False:
        yield Found(
            label(policies[0]) + and_more(policies, 1),
            "Every change of a policy, and every restart of the daemon, drains the pods with VFs from the node. To"
            " avoid it, set disableDrain: true in the SriovOperatorConfig",
        )


def _single_node(objects: Objects) -> Iterator[Found]:
    nodes = objects.of("Node")
    if not objects.complete or len(nodes) != 1 or not objects.of(_POLICY):
        return
    for config in objects.of("SriovOperatorConfig"):
        if at(config, "spec", "disableDrain") is not True:
            yield Found(label(config), "The cluster has one node, which cannot be drained. Set disableDrain: true")


def _exclusive(objects: Objects) -> Iterator[Found]:
    sections = [
        policy
        for policy in objects.of("NicClusterPolicy", "NicNodePolicy")
        if isinstance(at(policy, "spec", _SHARED), Mapping)
    ]
    for pool in objects.of(_POOL):
        if text(pool, "spec", "rdmaMode") == "exclusive" and sections:
            yield Found(
                label(pool),
                f"rdmaMode is exclusive, but {label(sections[0])} has spec.{_SHARED}, whose devices need the mode"
                " shared. Apply each to nodes of its own",
            )


def _exclusive_hosts(objects: Objects) -> Iterator[Found]:
    argument, policies = _MODES["exclusive"], objects.for_hosts(_SHARED)
    modes = {name: _netns(text(facts, "kernel", "cmdline").split()) for name, facts in objects.hosts.items()}
    # The kernel takes the last one.
    hosts = [name for name, own in modes.items() if own[-1:] == [argument]]
    if policies and hosts:
        yield Found(
            f"host {fold(hosts)}",
            f"{argument} is set, and {label(policies[0])} has spec.{_SHARED}, whose devices need the mode shared."
            " Remove the argument, and reboot the host",
        )


def _netns(words: Sequence[str]) -> list[str]:
    return [word for word in words if word.startswith(_NETNS)]


def _two_owners(objects: Objects) -> Iterator[Found]:
    plugins = ports_of_plugins(objects)
    for policy in objects.of(_POLICY):
        for name in _pfs(policy):
            if name in plugins:
                yield Found(
                    label(policy), f"The port {name} belongs to {plugins[name]}, too. Remove it from one of them"
                )


def _reboot_loop(objects: Objects) -> Iterator[Found]:
    needed = _needed(objects)
    hosts: dict[str, list[str]] = defaultdict(list)
    for name, facts in objects.hosts.items() if objects.of(_POLICY) else ():
        words = text(facts, "kernel", "cmdline").split()
        # Without the arguments of the kernel nothing is known.
        if not words or not _is_debian(facts):
            continue
        for word in needed.keys() - {*words}:
            hosts[f"{needed[word]} needs {word} on the nodes that it selects. {_SET}"].append(name)
        netns = _netns(words)
        if netns and not {*needed} & {*_MODES.values()}:
            hosts[f"{netns[0]} is set, but no {_POOL} has an rdmaMode. Remove the argument"].append(name)
    for found, names in sorted(hosts.items()):
        yield Found(f"host {fold(names)}", found)


def _needed(objects: Objects) -> dict[str, str]:
    """Return kernel argument -> the object for which the operator sets it."""
    pools = [pool for pool in objects.of(_POOL) if text(pool, "spec", "rdmaMode") in _MODES]
    vfio = [policy for policy in objects.of(_POLICY) if text(policy, "spec", "deviceType") == "vfio-pci"]
    return {
        **{_MODES[text(pool, "spec", "rdmaMode")]: label(pool) for pool in pools},
        **({"iommu=pt": label(vfio[0])} if vfio else {}),
    }


_SET = "The operator cannot set kernel arguments on this system; add it to the boot loader first"


def _is_debian(facts: Any) -> bool:
    return bool({text(facts, "os", "id"), *text(facts, "os", "id_like").split()} & {*_WITHOUT_GRUBBY})


def _pfs(policy: Mapping[str, Any]) -> list[str]:
    return list(dict.fromkeys(pf_names(texts(policy, "spec", "nicSelector", "pfNames"))))


def _selected(objects: Objects) -> Iterator[tuple[Mapping[str, Any], str, Mapping[str, Any]]]:
    """Yield policy, node and port for each port that a policy names, on nodes that it can select."""
    labels = {text(node, "metadata", "name"): at(node, "metadata", "labels") for node in objects.of("Node")}
    for policy in objects.of(_POLICY):
        names = {*_pfs(policy)}
        for state in objects.of("SriovNetworkNodeState"):
            node = text(state, "metadata", "name")
            if not _selects(at(policy, "spec", "nodeSelector"), labels.get(node)):
                continue
            for port in dicts(state, "status", "interfaces"):
                if text(port, "name") in names and _fits(at(policy, "spec", "nicSelector"), port):
                    yield policy, node, port


def _fits(selector: Any, port: Mapping[str, Any]) -> bool:
    """Return whether a port has all else that a selector requires; nodes may have other ports of the same name."""
    addresses = texts(selector, "rootDevices")
    given = {key: text(selector, key) for key in ("vendor", "deviceID", "netFilter")}
    return (not addresses or text(port, "pciAddress") in addresses) and all(
        text(port, key) == value for key, value in given.items() if value
    )


def _selects(selector: Any, labels: Any) -> bool:
    """Return whether a policy certainly selects a node: its labels must be known where it has a selector."""
    if not selector:
        return True
    known = labels if isinstance(labels, Mapping) else {}
    return isinstance(selector, Mapping) and all(known.get(key) == value for key, value in selector.items())


def drains(objects: Objects) -> bool | None:
    """Return whether the operator drains nodes, None when that is not known."""
    found = [at(config, "spec", "disableDrain") for config in objects.of("SriovOperatorConfig")]
    return None if not found else True not in found


_DAEMON, _VENDOR, _STATES = "the SR-IOV operator's daemon", "NVIDIA's documentation", "SR-IOV node states"
RULES = (
    Rule("sriov-default", ERROR, "The operator ignores the policy", _DAEMON, _default),
    Rule("sriov-no-vfs", WARNING, "The port loses its VFs, and the plugin offers the port itself", _DAEMON, _no_vfs),
    Rule("sriov-resource", ERROR, "The device plugin refuses the resource", "the operator's webhook", _name),
    Rule("sriov-port", ERROR, "The policy has no effect", _DAEMON, _unknown_port, f"a cluster with {_STATES}"),
    Rule(
        "sriov-vfs",
        ERROR,
        "The node stays InProgress, without an error",
        "sriov-network-operator #492",
        _too_many,
        _STATES,
    ),
    Rule("sriov-mtu", ERROR, "The node stays InProgress, without an error", _DAEMON, _external_mtu, _STATES),
    Rule(
        "sriov-missing-vfs",
        ERROR,
        "Pods get fewer VFs than the policy has",
        "sriov-network-operator #784, #786, #1124",
        _missing_vfs,
        _STATES,
    ),
    Rule(
        "sriov-not-offered",
        ERROR,
        "Pods with this resource do not start",
        "sriov-network-operator #1046",
        _not_offered,
        f"Nodes and {_STATES}",
    ),
    Rule("sriov-external", WARNING, "Pods are evicted though nothing changes for them", _DAEMON, _external_drain),
    Rule("sriov-one-node", ERROR, "The drain never ends", "sriov-network-operator #968", _single_node, "a cluster"),
    Rule(
        "sriov-exclusive",
        WARNING,
        "Where both apply to a node, pods have no RDMA device",
        "the kernel's RDMA subsystem",
        _exclusive,
    ),
    Rule(
        "shared-exclusive",
        ERROR,
        "The RDMA shared device plugin does not start",
        "NVIDIA's documentation",
        _exclusive_hosts,
        "facts of hosts",
    ),
    Rule(
        "port-owners",
        WARNING,
        "Where both apply to a node, two device plugins offer one port",
        "NVIDIA's documentation",
        _two_owners,
    ),
    Rule(
        "sriov-reboot",
        WARNING,
        "The operator reboots the node again and again",
        "sriov-network-operator #359, #1016",
        _reboot_loop,
        "facts of hosts",
    ),
)
