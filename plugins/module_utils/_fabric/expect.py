# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What each rail of each host should reach, from the facts at planning time."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from .._core.errors import InputError
from .._core.units import IB_MTUS, roce_mtu
from .hosts import Host
from .intent import Intent
from .rails import Port, RailMap


def rdma_mtu(netdev_mtu: int) -> int:
    """Return the RDMA MTU that fits an Ethernet netdev: 1500 -> 1024, 2144 -> 2048, 4192 -> 4096."""
    return roce_mtu(netdev_mtu) or min(IB_MTUS)


def port_rate(port: Port | None, devices: Mapping[str, Mapping[str, Any]]) -> float | None:
    """Return a port's rate in Gb/s, None when unknown.

    The netdev's speed counts first. The rate of an RDMA device stands in only for real hardware: soft-RoCE
    says 10 whatever is underneath.
    """
    if port is None:
        return None
    if port["speed"] is not None:
        return float(port["speed"])
    for name in port["rdma"]:
        device = devices.get(name)
        if device and device["pci"] and device["rate"]:
            return float(device["rate"])
    return None


def expectations(intent: Intent, rails: RailMap, hosts: Sequence[Host]) -> dict[str, dict[str, dict[str, Any]]]:
    """Return rail -> host -> {rate, mtu, floor, tolerance, pcie} for the hosts of this run (pcie: {speed, width})."""
    mtu = _test_mtu(intent)
    rates = {host.name: _rates(host, rails) for host in hosts}
    links = {host.name: _pcie_links(host, rails) for host in hosts}
    expected: dict[str, dict[str, dict[str, Any]]] = {}
    for index, rail in enumerate(rails.names):
        threshold = intent.thresholds.of(rail)
        expected[rail] = {
            name: {
                "rate": own[index],
                "mtu": mtu,
                "floor": threshold.floor,
                "tolerance": threshold.tolerance,
                "pcie": links[name][index],
            }
            for name, own in rates.items()
        }
    return expected


def _rates(host: Host, rails: RailMap) -> list[float | None]:
    if not host.facts:
        return [None] * len(rails.names)
    devices = {device["name"]: device for device in host.facts["rdma_devices"]}
    return [port_rate(port, devices) for port in rails.ports[host.name]]


def _pcie_links(host: Host, rails: RailMap) -> list[dict[str, Any] | None]:
    """Return the negotiated PCIe link of each rail's port, None when it is not known."""
    if not host.facts:
        return [None] * len(rails.names)
    links = [port["pcie"] if port else {} for port in rails.ports[host.name]]
    return [
        {"speed": link["speed"], "width": link["width"]} if link.get("speed") and link.get("width") else None
        for link in links
    ]


def _test_mtu(intent: Intent) -> int:
    largest = rdma_mtu(intent.mtu)
    wanted = intent.tests["mtu"]
    if wanted and wanted > largest:
        raise InputError(
            f"rdma_fabric.tests.mtu: {wanted} does not fit rdma_fabric.mtu {intent.mtu}, which carries at most "
            f"{largest}; raise mtu or lower tests.mtu"
        )
    return int(wanted or largest)
