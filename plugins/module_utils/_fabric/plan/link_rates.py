# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What a link and a PCIe slot carry after headers; rates in Gb/s."""

from __future__ import annotations

from ..._common.units import IB_MTUS, roce_mtu

# Bytes of a packet besides its payload, as the link's rate counts them. RoCE v2 over IPv4: preamble 8, gap 12,
# Ethernet 14, FCS 4, IPv4 20, UDP 8, BTH 12, ICRC 4. InfiniBand within a subnet: LRH 8, BTH 12, ICRC 4, VCRC 2.
OVERHEAD = {"ethernet": 82, "infiniband": 26}


# Bytes of a PCIe packet besides its payload, and the share that flow control leaves: 0.83 of the raw rate at
# MPS 128, 0.90 at 256, 0.94 at 512.
PCIE_HEADER, PCIE_FLOW = 24, 0.985


# Where the payload of a PCIe packet is not known, the usual one of servers is assumed.
USUAL_PAYLOAD = 256


def efficiency(mtu: int, link_layer: str) -> float:
    """Return the share of a link's rate that is payload at an RDMA MTU in bytes."""
    return mtu / (mtu + OVERHEAD[link_layer])


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
