# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Nodes as hosts of an inventory. What a kubelet reports is not trusted: it comes from the machine itself."""

from __future__ import annotations

import ipaddress
import re
from collections.abc import Iterable, Iterator, Mapping
from typing import Any

from .nodes import control_plane, machine_id

# As RFC 1123 permits; a leading hyphen would be an option of ssh.
_HOST_NAME = re.compile(r"(?!-)[A-Za-z0-9-]{1,63}(\.(?!-)[A-Za-z0-9-]{1,63})*\.?")
_INFO = {
    "architecture": "architecture",
    "os_image": "osImage",
    "kernel": "kernelVersion",
    "kubelet": "kubeletVersion",
    "container_runtime": "containerRuntimeVersion",
}
ADDRESS_TYPES = ("InternalIP", "ExternalIP", "Hostname", "InternalDNS", "ExternalDNS")


def described(nodes: Iterable[Mapping[str, Any]], with_control_plane: bool) -> list[dict[str, Any]]:
    """Return the nodes for an inventory, oldest first: numbers of hosts follow their order, so new ones come last."""
    chosen = [node for node in nodes if with_control_plane or not control_plane(node)]
    return [_describe(node) for node in sorted(chosen, key=_age)]


def _age(node: Mapping[str, Any]) -> tuple[Any, ...]:
    name = node["metadata"]["name"]
    parts = re.split(r"(\d+)", name)
    # Numbers inside of names by their value: node-2 before node-10.
    natural = tuple((0, int(part), "") if part.isdecimal() else (1, 0, part) for part in parts)
    return (str(node["metadata"].get("creationTimestamp") or ""), natural)


def _describe(node: Mapping[str, Any]) -> dict[str, Any]:
    meta, status, spec = node["metadata"], node.get("status") or {}, node.get("spec") or {}
    info = status.get("nodeInfo") or {}
    return {
        "name": meta["name"],
        "labels": {str(key): str(value) for key, value in (meta.get("labels") or {}).items()},
        "addresses": list(_addresses(status)),
        "machine_id": machine_id(node),
        "ready": _ready(status),
        "schedulable": not spec.get("unschedulable"),
        "taints": sorted({str(one.get("key")) for one in _dicts(spec.get("taints"))}),
        "allocatable": {str(key): str(value) for key, value in _dict(status.get("allocatable")).items()},
        **{key: str(info.get(name) or "") for key, name in _INFO.items()},
    }


def _ready(status: Mapping[str, Any]) -> bool:
    return any(one.get("type") == "Ready" and one.get("status") == "True" for one in status.get("conditions") or [])


def _addresses(status: Mapping[str, Any]) -> Iterator[dict[str, str]]:
    for entry in status.get("addresses") or []:
        kind, address = entry.get("type"), str(entry.get("address") or "")
        if kind in ADDRESS_TYPES and _sound(kind, address):
            yield {"type": kind, "address": address}


def _sound(kind: str, address: str) -> bool:
    """Whether an address can be given to ssh: it becomes an argument of a command."""
    if not kind.endswith("IP"):
        return len(address) <= 253 and bool(_HOST_NAME.fullmatch(address))
    try:
        return not ipaddress.ip_address(address).is_link_local and "%" not in address
    except ValueError:
        return False


def _dict(value: Any) -> Mapping[str, Any]:
    return value if isinstance(value, dict) else {}


def _dicts(value: Any) -> list[Mapping[str, Any]]:
    return [one for one in value if isinstance(one, dict)] if isinstance(value, list) else []


def address_of(node: Mapping[str, Any], kinds: Iterable[str]) -> str:
    """Return the first address of a described node in the order of ``kinds``, "" when it has none of them."""
    return next((one["address"] for kind in kinds for one in node["addresses"] if one["type"] == kind), "")
