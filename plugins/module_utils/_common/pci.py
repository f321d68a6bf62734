# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""PCI addresses and paths."""

from __future__ import annotations

import dataclasses
import re

from .errors import InputError

# The vendor ID of NVIDIA's NICs (Mellanox).
NIC_VENDOR = "15b3"
_ADDRESS = re.compile(r"(?:([0-9a-fA-F]{4,8}):)?([0-9a-fA-F]{2}):([01][0-9a-fA-F])\.([0-7])")
# Offsets and values of a function's config space.
_FIRST_CAPABILITY, _PCIE_CAPABILITY = 0x34, 0x10
# 128 << 5 is 4096; higher codes are reserved.
_LARGEST_CODE = 5


@dataclasses.dataclass(frozen=True, order=True)
class PciAddress:
    """Domain, bus, slot and function; ordered as numbers."""

    domain: int
    bus: int
    slot: int
    function: int

    @classmethod
    def parse(cls, text: str) -> PciAddress:
        """Parse ``0000:18:00.0`` or ``18:00.0``; InputError when it is neither."""
        match = _ADDRESS.fullmatch(text)
        if not match:
            raise InputError(f"'{text}' is not a PCI address; expected the form 0000:18:00.0")
        domain, bus, slot, function = (int(part or "0", 16) for part in match.groups())
        return cls(domain, bus, slot, function)

    def __str__(self) -> str:
        return f"{self.domain:04x}:{self.bus:02x}:{self.slot:02x}.{self.function}"

    def vf(self, index: int, offset: int, stride: int) -> PciAddress:
        """Return the address of a VF of this PF, as ``pci_iov_virtfn_bus`` and ``_devfn`` of the kernel do."""
        number = (self.bus << 8 | self.slot << 3 | self.function) + offset + stride * index
        return PciAddress(self.domain, number >> 8 & 0xFF, number >> 3 & 0x1F, number & 7)

    @property
    def id_path(self) -> str:
        """The udev property ID_PATH of the function, which .link and .network files match."""
        return f"pci-{self}"


# Where extended capabilities begin; users other than root cannot read them.
EXTENDED = 0x100


def max_payload(config: bytes) -> int | None:
    """Return the payload that one PCIe packet may carry as set now (MPS), in bytes, from a function's config space.

    None for what is not PCIe, and for the 64 bytes that is all that others than root may read. PCI Express Base
    Specification: the list of capabilities begins at 0x34, Device Control stands 8 bytes into capability 0x10.
    """
    at, seen = (config[_FIRST_CAPABILITY] & ~3 if len(config) > _FIRST_CAPABILITY else 0), set()
    while 0 < at <= len(config) - 10 and at not in seen:
        seen.add(at)
        if config[at] == _PCIE_CAPABILITY:
            code = config[at + 8] >> 5
            return int(128 << code) if code <= _LARGEST_CODE else None
        at = config[at + 1] & ~3
    return None


def extended_capability(config: bytes, identity: int) -> int | None:
    """Return where an extended capability begins in a function's config space, None without it.

    Extended capabilities begin behind the 256 bytes of plain PCI; each has its identity, and where the next one is.
    """
    at, seen = EXTENDED, set()
    while EXTENDED <= at <= len(config) - 8 and at not in seen:
        seen.add(at)
        header = int.from_bytes(config[at : at + 4], "little")
        if header & 0xFFFF == identity:
            return at
        at = header >> 20 & 0xFFC
    return None


def device_path(realpath: str) -> tuple[str, ...]:
    """Return the components from the PCI root down to the device itself.

    ``/sys/devices/pci0000:00/0000:00:01.0/0000:01:00.0`` gives ``("pci0000:00",
    "0000:00:01.0", "0000:01:00.0")``; a path without a PCI root gives ``()``.
    """
    parts = realpath.split("/")
    root = next((i for i, part in enumerate(parts) if re.match(r"pci[0-9a-f]+:[0-9a-f]+$", part)), None)
    return () if root is None else tuple(parts[root:])
