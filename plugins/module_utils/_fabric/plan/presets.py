# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Well-known servers by name, for a plan without hosts. Each names where its PCI addresses are from.

Addresses of devices differ with firmware settings and with cards in other slots: a preset is for trying and for
drafts, and the facts of real hosts are for use.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from ..._common.errors import InputError
from ..._common.reader import nearest
from .servers import Nic, server

# Of BlueField-3 in its E series for one port of 400 Gb/s.
_SUPERNIC, _RATE = "a2dc", 400.0
_CONNECTX_6_LX = "101f"


@dataclass(frozen=True)
class Preset:
    """A server as it is sold. ``source``: where the addresses of its ports are from."""

    title: str
    source: str
    nics: tuple[Nic, ...]


def _supernics(first: int, *addresses: str, numa: int) -> tuple[Nic, ...]:
    return tuple(Nic(pci, _SUPERNIC, first + at, numa, _RATE) for at, pci in enumerate(addresses))


def _others(*addresses: str, numa: int, device: str = _SUPERNIC) -> tuple[Nic, ...]:
    return tuple(Nic(pci, device, None, numa) for pci in addresses)


_KIT = "topologies of NVIDIA/k8s-launch-kit, presets/{}/topology.yaml at commit aa1fef72"

PRESETS: Mapping[str, Preset] = {
    "dell_xe9680_h200": Preset(
        "Dell PowerEdge XE9680, 8 H200, 8 BlueField-3 SuperNICs",
        _KIT.format("PowerEdge-XE9680"),
        (
            *_supernics(0, "0000:1a:00.0", "0000:3c:00.0", "0000:4d:00.0", "0000:5e:00.0", numa=0),
            *_supernics(4, "0000:9c:00.0", "0000:bc:00.0", "0000:cc:00.0", "0000:dc:00.0", numa=1),
            *_others("0000:9d:00.0", "0000:9d:00.1", numa=1),
        ),
    ),
    "lenovo_sr680a_v3_h200": Preset(
        "Lenovo ThinkSystem SR680a V3, 8 H200, 8 BlueField-3 SuperNICs",
        _KIT.format("ThinkSystem-SR680a-V3"),
        (
            *_supernics(0, "0000:19:00.0", "0000:2a:00.0", "0000:3b:00.0", "0000:4c:00.0", numa=0),
            *_supernics(4, "0000:9b:00.0", "0000:ab:00.0", "0000:c1:00.0", "0000:cb:00.0", numa=1),
            *_others("0000:5a:00.0", "0000:5a:00.1", numa=0, device=_CONNECTX_6_LX),
            *_others("0000:d8:00.0", "0000:d8:00.1", numa=1),
        ),
    ),
    "cisco_ucsc_885a_m8_h200": Preset(
        "Cisco UCS C885A M8, 8 H200, 8 BlueField-3 SuperNICs",
        _KIT.format("UCSC-885A-M8-H22"),
        (
            *_supernics(0, "0000:09:00.0", "0000:23:00.0", "0000:53:00.0", "0000:69:00.0", numa=0),
            *_supernics(4, "0000:8f:00.0", "0000:9c:00.0", "0000:cd:00.0", "0000:f1:00.0", numa=1),
            *_others("0000:35:00.0", "0000:35:00.1", numa=0),
        ),
    ),
}


def hosts(name: str, count: int, link_layer: str = "ethernet") -> dict[str, dict[str, Any]]:
    """Return host name -> {facts, rdma_host} of ``count`` servers of a preset, whose NICs can be of either kind."""
    preset = PRESETS.get(name)
    if preset is None:
        raise InputError(f'preset: there is none called "{name}"; {nearest(name, PRESETS)}')
    width = len(str(count))
    names = [f"gpu-{number:0{width}d}" for number in range(1, count + 1)]
    return {one: server(one, preset.nics, link_layer) for one in names}
