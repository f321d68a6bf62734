# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Servers from the cluster file of NVIDIA's k8s-launch-kit (``l8k discover``): groups of nodes with their ports.

The file lists for each group the PCI addresses, and which ports are rails (``traffic: east-west``, ``rail``). What else
it says, about networks and the operator, is not used: this is what ``rdma_fabric`` is for.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any

from ..._common.errors import InputError
from ..._common.reader import Reader, describe, raise_problems
from .servers import Nic, server

_PCI = re.compile(r"[0-9a-f]{4}:[0-9a-f]{2}:[01][0-9a-f]\.[0-7]")
_DEVICE = re.compile(r"[0-9a-f]{1,4}")
_LAYERS = {"": "ethernet", "ethernet": "ethernet", "infiniband": "infiniband"}
_RAIL = "east-west"


def hosts(content: Any) -> dict[str, dict[str, Any]]:
    """Return node name -> {facts, rdma_host}; raise one InputError that names everything wrong with the file."""
    groups = content.get("clusterConfig") if isinstance(content, dict) else None
    if not isinstance(groups, list) or not groups:
        found = describe(groups if isinstance(content, dict) else content)
        raise InputError(f"clusterConfig: expected the list of node groups that l8k discover writes, found {found}")
    problems: list[str] = []
    found_hosts: dict[str, dict[str, Any]] = {}
    for index, group in enumerate(groups):
        reader = Reader(group, f"clusterConfig[{index}]", problems)
        layer = _LAYERS.get(str(reader.text("linkType", "")).lower())
        if layer is None:
            reader.refuse("linkType", "expected Ethernet or InfiniBand")
        nics = list(_nics(reader))
        names = reader.texts("workerNodes")
        if not names:
            reader.refuse("workerNodes", "missing; run l8k discover on the cluster")
        for name in names:
            if name in found_hosts:
                reader.refuse("workerNodes", f"{name} is in two groups")
            found_hosts[name] = server(name, nics, layer or "ethernet")
    raise_problems(problems)
    return found_hosts


def _nics(group: Reader) -> Iterator[Nic]:
    for port in group.sections("pfs"):
        pci, device = (str(port.text(key, "")).lower() for key in ("pciAddress", "deviceID"))
        if not _PCI.fullmatch(pci):
            port.refuse("pciAddress", f'expected a PCI address such as 0000:18:00.0, found "{pci}"')
        if not _DEVICE.fullmatch(device):
            port.refuse("deviceID", f'expected a PCI device ID such as 1021, found "{device}"')
        rail = port.integer("rail", None, 0, high=63)
        if port.text("traffic", "") != _RAIL:
            rail = None
        elif rail is None:
            port.refuse("rail", "missing; a port with traffic: east-west needs the number of its rail")
        numa = port.integer("numaNode", None, 0, high=65536)
        yield Nic(pci, device, rail, numa, netdev=port.text("networkInterface", "") or None)
