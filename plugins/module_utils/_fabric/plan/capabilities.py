# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What each rail of each host should reach, from the facts at planning time."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Mapping, Sequence
from typing import Any

from ..._common.errors import InputError
from ..._common.units import IB_MTUS, ipoib_mtu, roce_mtu
from ..intent.intent import Intent
from ..operator.profiles import registry
from . import bonds
from .gpu_affinity import BELOW_SWITCHES
from .hosts import Host
from .rails import Port, RailMap
from .uplinks import Link, card, redirects, uplinks


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


def expectations(
    intent: Intent,
    rails: RailMap,
    hosts: Sequence[Host],
    *,
    names: Mapping[str, Collection[str]],
    gpus: Mapping[str, Mapping[str, Mapping[str, str]]],
) -> dict[str, dict[str, dict[str, Any]]]:
    """Return rail -> host -> its side of an expectation, for the hosts of this run.

    A side is {rate, max_rate, mtu, pcie, uplinks, vf_rate} and the threshold (thresholds.py). ``max_rate`` is what the
    NIC can do where its driver tells, both rates in Gb/s, ``mtu`` the RDMA MTU of the tests,
    ``vf_rate`` the lowest limit of a VF in Gb/s where pods get VFs, ``pcie`` {speed, width, max_speed, max_width,
    max_payload, ports} with the number of rails on the same card, ``uplinks`` (uplinks.py) the PCIe links above it that
    can limit it, there only when there are such, ``host_uplinks`` those on the way to host memory where tests use GPU
    memory and they differ, ``links`` the number of members of a bond, of which a queue pair uses
    one. What is not known is None. ``names``: host -> its own name and those of its groups. ``gpus``: rail -> host ->
    the GPU whose memory tests use (NearGpu), as the plan has them.
    """
    mtu = _test_mtu(intent)
    shares_port = registry.get(intent.profile).shares_port
    found = {host.name: _sides(host, rails, shares_port, gpus=gpus) for host in hosts}
    return {
        rail: {
            name: {"mtu": mtu, **side, **intent.thresholds.side(rail, names[name])}
            for name, sides in found.items()
            if (side := sides[index]) is not None
        }
        for index, rail in enumerate(rails.names)
    }


def _sides(
    host: Host, rails: RailMap, shares_port: bool, *, gpus: Mapping[str, Mapping[str, Mapping[str, str]]]
) -> list[dict[str, Any] | None]:
    """Return what the facts tell of each rail's port, None for one that is missing."""
    if not host.facts:
        return [{"rate": None, "max_rate": None, "pcie": None, "vf_rate": None} for _rail in rails.names]
    devices = {device["name"]: device for device in host.facts["rdma_devices"]}
    own = rails.ports[host.name]
    cards = Counter(card(port) for port in own if port)
    above, redirected = links_above(host, rails, gpus)
    # Some tests are done from host memory as well, whose way may be longer.
    to_host = links_above(host, rails, {})[0] if gpus else above
    return [
        None
        if port is None
        else {
            "rate": port_rate(port, devices),
            "max_rate": port.get("max_speed"),
            "pcie": _pcie_link(port, cards[card(port)]),
            "vf_rate": None if shares_port else port["vfs"].get("rate"),
            **({"uplinks": links} if links else {}),
            **({"host_uplinks": beside} if beside != links else {}),
            **({"redirected": True} if up else {}),
            **bonds.side(port),
        }
        for port, links, beside, up in zip(own, above, to_host, redirected)
    ]


def links_above(
    host: Host, rails: RailMap, gpus: Mapping[str, Mapping[str, Mapping[str, str]]]
) -> tuple[list[list[Link]], list[bool]]:
    """Return for each port of a host the links above it that limit it on the way to its GPU, and whether ACS redirects.

    ``gpus``: rail -> host -> the GPU; links of the way to host memory without one.
    """
    avoided, redirected = _avoided(host, rails, gpus)
    return uplinks(rails.ports[host.name], rails.names, avoided), redirected


def bridges_avoided(
    host: Host, rails: RailMap, gpus: Mapping[str, Mapping[str, Mapping[str, str]]]
) -> list[Collection[str]]:
    """Return for each port of a host the bridges that its tests do not cross (``gpus`` as of ``links_above``)."""
    return _avoided(host, rails, gpus)[0]


def _avoided(
    host: Host, rails: RailMap, gpus: Mapping[str, Mapping[str, Mapping[str, str]]]
) -> tuple[list[Collection[str]], list[bool]]:
    near = [_common_bridges(host, gpus.get(rail, {}).get(host.name)) for rail in rails.names]
    redirected = [
        bool(port and common and redirects(port, common)) for port, common in zip(rails.ports[host.name], near)
    ]
    # What a bridge sends up to the root crosses the links above it, as from host memory.
    return [() if up else common for up, common in zip(redirected, near)], redirected


def _common_bridges(host: Host, gpu: Mapping[str, str] | None) -> Collection[str]:
    """Return the bridges above a GPU: what a NIC below one of them sends to it turns round there."""
    gpus = host.facts["gpus"] if host.facts and gpu and gpu["path"] in BELOW_SWITCHES else ()
    return next((one["path"] for one in gpus if gpu and one["pci"] == gpu["bdf"]), ())


def _pcie_link(port: Port, ports: int) -> dict[str, Any] | None:
    """Return the negotiated PCIe link of a port, None when it is not known."""
    link = port["pcie"]
    return {**link, "ports": ports} if link.get("speed") and link.get("width") else None


def _test_mtu(intent: Intent) -> int:
    mtu = registry.mtu_of(intent)
    infiniband = registry.get(intent.profile).link_layer == "infiniband"
    largest = ipoib_mtu(mtu) or min(IB_MTUS) if infiniband else rdma_mtu(mtu)
    wanted = intent.tests["mtu"]
    if wanted and wanted > largest:
        raise InputError(
            f"rdma_fabric.tests.mtu: {wanted} does not fit rdma_fabric.mtu {mtu}, which carries at most "
            f"{largest}; raise mtu or lower tests.mtu"
        )
    return int(wanted or largest)
