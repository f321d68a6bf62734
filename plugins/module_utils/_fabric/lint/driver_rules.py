# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Rules for the driver container on the systems that it is to run on: by facts of hosts, and by what Nodes report."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Mapping
from typing import Any

from ..._common.fold import fold
from ..._common.pci import NIC_VENDOR
from ..._common.rdma_modules import OTHERS, STORAGE
from ..._common.reader import some
from ..intent.releases import LINES
from ..operator.nodes import NIC_LABEL_NAME
from .objects import Objects, at, dicts, label, mapping, text
from .rule import WARNING, Found, Rule

_SYSTEM = "feature.node.kubernetes.io/system-os_release.ID"
# Systems that the vendor builds images of the driver for.
_BUILT_FOR = ("azurelinux", "mariner", "ol", "rhcos", "rhel", "sles", "ubuntu")
_LARGE_PAGES = "64k"
# Variable of the container -> the modules that it unloads then.
_UNLOADS = {"UNLOAD_STORAGE_MODULES": STORAGE, "UNLOAD_THIRD_PARTY_RDMA_MODULES": OTHERS}


def _policies(objects: Objects) -> list[Mapping[str, Any]]:
    return objects.for_hosts("ofedDriver")


def _vendors_images(policy: Mapping[str, Any]) -> bool:
    """Return whether the images are the vendor's; another repository can have images for further systems."""
    repository = text(policy, "spec", "ofedDriver", "repository") or text(policy, "spec", "global", "repository")
    return not repository or any(repository in (line.registry, line.staging) for line in LINES.values())


def _hosts(objects: Objects) -> Iterator[tuple[str, Mapping[str, Any]]]:
    """Yield the hosts with a NIC of the vendor, and their facts."""
    for name, facts in objects.hosts.items():
        if any(text(port, "vendor") == NIC_VENDOR for port in dicts(facts, "ports")):
            yield name, facts


def _by_reason(found: Iterator[tuple[str, str]], what: str) -> Iterator[tuple[str, str]]:
    """Yield each reason once, with the names that have it."""
    names: dict[str, list[str]] = defaultdict(list)
    for name, reason in found:
        names[reason].append(name)
    for reason, own in sorted(names.items()):
        yield f"{what} {fold(own)}", reason


def _kernels(objects: Objects) -> Iterator[tuple[str, str]]:
    for name, facts in _hosts(objects):
        yield name, text(facts, "kernel", "release")
    for node in _nodes(objects):
        yield text(node, "metadata", "name"), text(node, "status", "nodeInfo", "kernelVersion")


def _kernel(objects: Objects) -> Iterator[Found]:
    for policy in _policies(objects):
        if at(policy, "spec", "ofedDriver", "forcePrecompiled") is True:
            continue
        found = dict.fromkeys((name, release) for name, release in _kernels(objects) if _LARGE_PAGES in release)
        for place, release in _by_reason(iter(found), "host"):
            yield Found(
                place,
                f"Its kernel is {release}, and {label(policy)} compiles the driver on the node. Use a precompiled"
                " driver, a driver on the host, or a kernel with pages of 4 KiB",
            )


def _secure_boot(objects: Objects) -> Iterator[Found]:
    hosts = [name for name, facts in _hosts(objects) if at(facts, "secure_boot") is True]
    for policy in _policies(objects) if hosts else ():
        yield Found(
            f"host {fold(hosts)}",
            f"Secure Boot is enabled, and the driver container of {label(policy)} has modules without a signature. Use"
            " signed packages of the driver on the host, or disable Secure Boot",
        )


def _primary(objects: Objects) -> Iterator[Found]:
    for policy in _policies(objects):
        duties = ((name, some(found)) for name, facts in _hosts(objects) if (found := list(_duties(facts))))
        for place, carried in _by_reason(duties, "host"):
            yield Found(
                place,
                f"{carried}, and the driver container of {label(policy)} loads the driver of this port again. VLANs,"
                " bonds and bridges on it are not restored. Use a driver on the host",
            )


def _duties(facts: Mapping[str, Any]) -> Iterator[str]:
    """Yield what ports with NICs of the vendor carry; a port can also be kept from use for another reason."""
    for port in dicts(facts, "ports"):
        duty = text(port, "duty")
        if text(port, "vendor") == NIC_VENDOR and text(port, "netdev") and duty.startswith("carries "):
            yield f"{text(port, 'netdev')} {duty}"


def _modules(objects: Objects) -> Iterator[Found]:
    for policy in _policies(objects):
        env = dicts(policy, "spec", "ofedDriver", "env")
        unloads = {text(one, "name") for one in env if text(one, "value").lower() == "true"}
        for variable, modules in _UNLOADS.items():
            found = (
                (name, some([module for module in modules if module in mapping(facts, "modules")]))
                for name, facts in _hosts(objects)
                if variable not in unloads and {*modules} & {*mapping(facts, "modules")}
            )
            for place, loaded in _by_reason(found, "host"):
                yield Found(
                    place,
                    f"These modules are loaded: {loaded}. Unload them, or set {variable} to true in ofedDriver.env of"
                    f" {label(policy)}, which ends what uses them",
                )


def _system(objects: Objects) -> Iterator[Found]:
    systems = ((text(node, "metadata", "name"), text(node, "metadata", "labels", _SYSTEM)) for node in _nodes(objects))
    found = [(name, system) for name, system in systems if system and system not in _BUILT_FOR]
    for policy in filter(_vendors_images, _policies(objects)) if found else ():
        for place, system in _by_reason(iter(found), "Node"):
            yield Found(
                place,
                f"Its system is {system}, and the vendor has images of the driver of {label(policy)} for"
                f" {some(_BUILT_FOR, most=len(_BUILT_FOR))}. Use a driver on the host, or build the image",
            )


def _nodes(objects: Objects) -> Iterator[Mapping[str, Any]]:
    """Yield the Nodes with a NIC of the vendor."""
    for node in objects.of("Node"):
        if text(node, "metadata", "labels", NIC_LABEL_NAME) == "true":
            yield node


_OPERATOR, _FACTS, _EITHER = "network-operator", "facts of hosts", "Nodes or facts of hosts"
_REFUSED = "The driver container does not load the driver"
RULES = (
    Rule("driver-kernel", WARNING, "The driver may not compile", f"{_OPERATOR} #1415", _kernel, _EITHER),
    Rule("driver-system", WARNING, "The image of the driver cannot be pulled", f"{_OPERATOR} #604", _system, "Nodes"),
    Rule(
        "driver-secure-boot", WARNING, "The kernel refuses the driver", "NVIDIA's documentation", _secure_boot, _FACTS
    ),
    Rule("driver-modules", WARNING, _REFUSED, f"{_OPERATOR} #1084", _modules, _FACTS),
    Rule("driver-primary", WARNING, "The node can become unreachable", f"{_OPERATOR} #2176", _primary, _FACTS),
)
