# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Facts of servers that nobody has read, made of the places of their NICs: enough to plan, not to measure."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from ..._common import host_facts
from ..._common.pci import NIC_VENDOR


@dataclass(frozen=True)
class Nic:
    """A port of a network card of NVIDIA. ``rail``: its number, None for a port that is not a rail.

    ``device``: PCI device ID; ``rate``: Gb/s, None when it is not known; ``numa``: NUMA node, None likewise.
    """

    pci: str
    device: str
    rail: int | None = None
    numa: int | None = None
    rate: float | None = None
    netdev: str | None = None


def server(name: str, nics: Sequence[Nic], link_layer: str = "ethernet") -> dict[str, Any]:
    """Return {facts, rdma_host} of a server, as the plan takes them.

    What only the server itself knows is as on one that nothing has configured: no address, no GPU, no VF.
    """
    rails = sorted((nic for nic in nics if nic.rail is not None), key=lambda nic: nic.rail or 0)
    return {
        "facts": {
            "schema": host_facts.SCHEMA,
            "machine_id": "",
            "hostname": name,
            "kernel": {"release": ""},
            "perftest": None,
            "drivers": {},
            "ports": [_port(nic, link_layer) for nic in nics],
            "lost_rails": {},
            "rdma_devices": [],
            "gpus": [],
            "networks": [],
        },
        "rdma_host": {"rails": {f"rail{index}": nic.pci for index, nic in enumerate(rails)}},
    }


def _port(nic: Nic, link_layer: str) -> dict[str, Any]:
    return {
        "pci": nic.pci,
        "vendor": NIC_VENDOR,
        "device": nic.device,
        "driver": "mlx5_core",
        "netdev": nic.netdev,
        "mac": "",
        "mtu": None,
        "carrier": None,
        "speed": None,
        "max_speed": nic.rate,
        "link_layer": link_layer,
        "numa_node": nic.numa,
        "pcie": {"speed": None, "width": None, "max_speed": None, "max_width": None, "max_payload": None},
        "vfs": {"rate": None, "total": 0, "count": 0},
        "master": None,
        "addresses": [],
        "rdma": [],
        "path": [],
        "duty": "" if nic.rail is not None else "is not one of the rails",
        "uses": [],
        "configured": None,
        "switch": None,
    }
