# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""How fast a pair can be: the link's rate after protocol headers, the PCIe link, or a floor that the user gave."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from ..._core.units import IB_MTUS, leading_number, roce_mtu

# Bytes of a packet besides its payload, as the link's rate counts them. RoCE v2 over IPv4: preamble 8, gap 12,
# Ethernet 14, FCS 4, IPv4 20, UDP 8, BTH 12, ICRC 4. InfiniBand within a subnet: LRH 8, BTH 12, ICRC 4, VCRC 2.
OVERHEAD = {"ethernet": 82, "infiniband": 26}
# Share of a PCIe link's raw rate that is payload at the usual 256 bytes a packet (24 bytes of header, flow control).
PCIE_PAYLOAD = 0.90
# A measurement may exceed the computed ceiling by this much before it is taken for a wrong reading.
ABOVE = 1.02


@dataclass(frozen=True)
class Expectation:
    """What a test must reach. ``least`` Gb/s (None: not known); ``bound_by`` floor, link, pcie or unknown.

    ``ceiling`` Gb/s: more than this cannot be true; None when the link is not known or not to be trusted.
    """

    least: float | None
    bound_by: str
    ceiling: float | None
    why: str


def efficiency(mtu: int, link_layer: str) -> float:
    """Return the share of a link's rate that is payload at an RDMA MTU in bytes."""
    return mtu / (mtu + OVERHEAD[link_layer])


def pcie_rate(speed: float, width: int) -> float:
    """Return Gb/s of payload over a PCIe link of ``speed`` GT/s a lane and ``width`` lanes."""
    coding = 8 / 10 if speed <= 5 else 128 / 130
    return speed * width * coding * PCIE_PAYLOAD


def rdma_mtu(mtu: int | None, link_layer: str) -> int | None:
    """Return the RDMA MTU for an MTU that may be a netdev's (9000) or already RDMA's (4096)."""
    if mtu is None or mtu in IB_MTUS or link_layer != "ethernet":
        return mtu if mtu in IB_MTUS else None
    return roce_mtu(mtu)


def expect(rail: Mapping[str, Any], sides: Mapping[str, Mapping[str, Any]], planned_mtu: int | None) -> Expectation:
    """Return what a pair must reach on a rail.

    ``rail``: the plan's rail. ``sides``: host name to its expectation of the plan ({rate, mtu, floor, tolerance},
    optionally pcie {speed, width}), with ``rate`` in Gb/s. ``planned_mtu``: the RDMA MTU that tests ask for.
    """
    floors = [side["floor"] for side in sides.values() if side.get("floor") is not None]
    if floors:
        return Expectation(max(floors), "floor", None, "floor of the inventory")
    layer = rail.get("link_layer") or "ethernet"
    bounds = []
    for name, side in sides.items():
        mtu = planned_mtu or rdma_mtu(side.get("mtu"), layer) or rdma_mtu(rail.get("mtu"), layer)
        if side.get("rate") is None or mtu is None:
            return Expectation(None, "unknown", None, f"the link rate or MTU of {name} is not known")
        rate = side["rate"] * efficiency(mtu, layer)
        bounds.append((rate, "link", f"{side['rate']:g} Gb/s link of {name} at RDMA MTU {mtu}"))
        bounds += _pcie_bound(name, side.get("pcie"))
    ceiling, bound_by, what = min(bounds)
    tolerance = min(side.get("tolerance", 1.0) for side in sides.values())
    return Expectation(ceiling * tolerance, bound_by, ceiling, f"{tolerance * 100:g} % of the {what}")


def _pcie_bound(name: str, pcie: Any) -> list[tuple[float, str, str]]:
    if not pcie or not pcie.get("speed") or not pcie.get("width"):
        return []
    what = f"PCIe link of {name}, {pcie['speed']:g} GT/s x{pcie['width']}"
    return [(pcie_rate(pcie["speed"], pcie["width"]), "pcie", what)]


def described_rate(text: str | None) -> float | None:
    """Return Gb/s of an RDMA port's ``rate`` file (``100 Gb/sec (4X EDR)``); None when it has no number."""
    return leading_number(text)
