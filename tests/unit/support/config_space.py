"""PCI config spaces made by hand: what a bridge's ``config`` file in sysfs holds, as far as ACS needs it.

Layout after the PCI Express Base Specification. ``lspci -F`` of pciutils 3.9.0 reads from them a PCI bridge with AER,
``ACSCtl: SrcValid+ TransBlk- ReqRedir+ CmpltRedir+ UpstreamFwd+ EgressCtrl- DirectTrans-`` for 0x001d, and so on.
"""

from __future__ import annotations

import struct
from pathlib import Path

# Where the port has its ACS capability: behind AER, as on PEX switches.
ACS_AT = 0x148
# What an Intel root port, a Broadcom PEX switch and others can: SV TB RR CR UF.
CAN = 0x001F


def bridge(control: int | None, length: int = 4096) -> bytes:
    """Return the config space of a PCIe switch port with this ACS control register, None without the capability."""
    space = bytearray(4096)
    # Vendor and device (Broadcom PEX890xx), status "has capabilities", class PCI bridge, header type 1.
    struct.pack_into("<HHHHBBBBBBB", space, 0, 0x1000, 0xC030, 0x0507, 0x0010, 0xB0, 0, 4, 6, 0x10, 0, 1)
    space[0x34] = 0x68
    # PCI Express capability: version 2, downstream port of a switch.
    struct.pack_into("<BBH", space, 0x68, 0x10, 0, 0x62)
    # Advanced Error Reporting, then ACS, then Secondary PCI Express: id, version, offset of the next.
    struct.pack_into("<I", space, 0x100, 0x0001 | 1 << 16 | (0x1A0 if control is None else ACS_AT) << 20)
    if control is not None:
        struct.pack_into("<IHH", space, ACS_AT, 0x000D | 1 << 16 | 0x1A0 << 20, CAN, control)
    struct.pack_into("<I", space, 0x1A0, 0x0019 | 1 << 16)
    return bytes(space[:length])


def control_of(path: Path) -> int:
    """Return the ACS control register in a config file."""
    return struct.unpack_from("<H", path.read_bytes(), ACS_AT + 6)[0]


def set_control(path: Path, value: int) -> None:
    """Write the ACS control register of a config file, as hardware takes it: bits that the port cannot stay 0."""
    space = bytearray(path.read_bytes())
    struct.pack_into("<H", space, ACS_AT + 6, value & CAN)
    path.write_bytes(bytes(space))
