# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""PCIe links of functions and of the bridges above them, from raw sysfs text."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping
from typing import Any

from ..._common import pci, units

Raw = Mapping[str, Any]
# Extended capabilities, their control registers, and the bits in them (of ATS in the second byte).
_ACS, _ATS, _CONTROL = 0x000D, 0x000F, 6
_REDIRECT, _DIRECT_TRANSLATED, _ENABLE = 0x0C, 0x40, 0x80


@dataclasses.dataclass(frozen=True)
class Pcie:
    """Speeds in GT/s, widths in lanes, the payload of a packet (MPS) in bytes; None when it is not known."""

    speed: float | None
    width: int | None
    max_speed: float | None
    max_width: int | None
    max_payload: int | None

    @classmethod
    def from_raw(cls, raw: Raw) -> Pcie:
        """Build it from the ``{current,max}_link_{speed,width}`` files and the config space."""
        return cls(
            speed=units.leading_number(raw.get("current_link_speed")),
            width=units.natural(raw.get("current_link_width")),
            max_speed=units.leading_number(raw.get("max_link_speed")),
            max_width=units.natural(raw.get("max_link_width")),
            max_payload=pci.max_payload(raw.get("config") or b""),
        )


@dataclasses.dataclass(frozen=True)
class Uplink:
    """The PCIe link of a bridge above a function: speeds in GT/s, widths in lanes, None when it is not known."""

    pci: str
    speed: float | None
    width: int | None
    max_speed: float | None
    max_width: int | None
    # Whether ACS sends what a device below has for another one below up to the root; None when it is not known.
    redirects: bool | None
    # Whether it lets requests with addresses that ATS translated pass directly all the same.
    translated_direct: bool | None

    @classmethod
    def from_raw(cls, address: str, raw: Raw) -> Uplink:
        """Build it from the ``{current,max}_link_{speed,width}`` files of the bridge."""
        link = Pcie.from_raw(raw)
        control = _acs_control(raw.get("config") or b"")
        flags = (None if control is None else bool(control & bits) for bits in (_REDIRECT, _DIRECT_TRANSLATED))
        return cls(address, link.speed, link.width, link.max_speed, link.max_width, *flags)


def _acs_control(config: bytes) -> int | None:
    """Return the control of ACS of a bridge, 0 without ACS, None if it cannot be read.

    PCI Express Base Specification: of the control register of the ACS Extended Capability, bits 2 and 3 redirect
    requests and completions between devices below the same switch, and bit 6 exempts translated requests from it.
    """
    if len(config) <= pci.EXTENDED:
        return None
    at = pci.extended_capability(config, _ACS)
    return 0 if at is None else config[at + _CONTROL]


def translates(config: bytes) -> bool | None:
    """Return whether ATS of a function is in use, so that its requests can have translated addresses."""
    if len(config) <= pci.EXTENDED:
        return None
    at = pci.extended_capability(config, _ATS)
    return at is not None and bool(config[at + _CONTROL + 1] & _ENABLE)
