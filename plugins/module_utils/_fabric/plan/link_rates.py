# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What a link and a PCIe slot carry after headers; rates in Gb/s."""

from __future__ import annotations

import re

from ..._common.units import IB_MTUS, leading_number, roce_mtu

# Bytes of a packet besides its payload, as the link's rate counts them. RoCE v2 over IPv4: preamble 8, gap 12,
# Ethernet 14, FCS 4, IPv4 20, UDP 8, BTH 12, ICRC 4. InfiniBand within a subnet: LRH 8, BTH 12, ICRC 4, VCRC 2.
OVERHEAD = {"ethernet": 82, "infiniband": 26}
# A header with the GIDs of both ends, which InfiniBand adds where LIDs are not enough; what IPv6 has more than IPv4.
GRH, IPV6 = 40, 20
# The share of the rate that the kernel shows of an InfiniBand port which carries data: 8b/10b coding up to QDR; of FDR
# it shows 14 of 14.0625 Gb/s a lane, which are coded in 64b/66b. It shows the others, FDR10 too, without their coding.
_LANE = {"SDR": 0.8, "DDR": 0.8, "QDR": 0.8, "FDR": 14.0625 * 64 / 66 / 14}
_GENERATION = re.compile(r"\([0-9]{1,2}X(?: ([A-Z0-9]{3,6}))?\)")
# Gb/s that only these generations have; FDR10 has some rates of QDR, which is far more frequent.
_RATES = {"QDR": (2.5, 5, 10, 20, 30, 40, 60, 80, 120), "FDR": (14, 28, 56, 112, 168)}


# Bytes of a PCIe packet besides its payload, and the share that flow control leaves: 0.83 of the raw rate at
# MPS 128, 0.90 at 256, 0.94 at 512.
PCIE_HEADER, PCIE_FLOW = 24, 0.985


# Where the payload of a PCIe packet is not known, the usual one of servers is assumed.
USUAL_PAYLOAD = 256


def efficiency(mtu: int, link_layer: str, more: int = 0) -> float:
    """Return the share of a link's rate that is payload at an RDMA MTU in bytes; ``more``: bytes of further headers."""
    return mtu / (mtu + OVERHEAD[link_layer] + more)


def coding(rate: float, described: str | None) -> float:
    """Return the share of the rate in Gb/s of an InfiniBand port that carries data.

    ``described``: how its tester read it, which tells the generation: ``56 Gb/sec (4X FDR)``. Another rate than that
    tells it of most generations, too.
    """
    found = _GENERATION.search(described or "")
    if found and leading_number(described) == rate:
        return _LANE.get(found[1] or "SDR", 1.0)
    return next((_LANE[name] for name, rates in _RATES.items() if rate in rates), 1.0)


def pcie_rate(speed: float, width: int, max_payload: int | None = None) -> float:
    """Return Gb/s of payload over a PCIe link of ``speed`` GT/s a lane, ``width`` lanes and MPS ``max_payload``."""
    # 8b/10b up to 5 GT/s; from 64 GT/s frames of fixed size (FLIT) leave about 1000 Gb/s of 16 lanes.
    coding = 8 / 10 if speed <= 5 else 128 / 130 if speed <= 32 else 1000 / 1024
    payload = max_payload or USUAL_PAYLOAD
    return speed * width * coding * payload / (payload + PCIE_HEADER) * PCIE_FLOW


def rdma_mtu(mtu: int | None, link_layer: str) -> int | None:
    """Return the RDMA MTU for an MTU that may be a netdev's (9000) or already RDMA's (4096)."""
    if mtu is None or mtu in IB_MTUS or link_layer != "ethernet":
        return mtu if mtu in IB_MTUS else None
    return roce_mtu(mtu)


def pcie_link(speed: float, width: int) -> str:
    """Return a PCIe link as messages call it: ``PCIe x8 16 GT/s``."""
    return f"PCIe x{width} {speed:g} GT/s"
