# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Which switch port a network device hangs on, from what LLDP daemons of the host heard. It may be missing."""

from __future__ import annotations

import dataclasses
import re
from collections.abc import Iterator, Mapping
from typing import Any

from ..system import json_text

# Long enough for every name in use, short enough for the facts of a host.
_LONGEST = 64
# IEEE 802.1Q, annex D: the configuration of priority-based flow control, of two bytes.
_PFC = ("00,80,C2", "11")
_PRIORITIES = range(8)
_BYTE = re.compile("[0-9A-Fa-f]{2}")
# Of the largest frame, which is a number of 16 bits.
_DIGITS = 5
# IEEE 802.1AB, system capabilities: MAC bridge and router, as lldpd names them and as bits.
_FORWARD = ("Bridge", "Router")
_FORWARD_BITS = 0x04 | 0x10


@dataclasses.dataclass(frozen=True)
class Neighbour:
    """The far end of a cable: the switch's name ("" when it tells none), its chassis id, and the port there.

    ``max_frame``: the largest frame that the port accepts, in bytes. ``pfc``: the priorities with flow control. Both
    None when the switch does not tell.
    """

    system: str
    chassis: str
    port: str
    max_frame: int | None = None
    pfc: tuple[int, ...] | None = None

    @property
    def title(self) -> str:
        """How a message calls the port: whoever sends LLDP chooses the names."""
        name = f"{self.system or self.chassis} port {self.port}"
        return "".join(letter if letter.isprintable() else "?" for letter in name)

    def to_dict(self) -> dict[str, Any]:
        """Return the value of ``ansible_facts.rdma.ports[].switch``."""
        return {**dataclasses.asdict(self), "pfc": None if self.pfc is None else list(self.pfc)}


def parse(lldpd: str | None, networkd: str | None) -> dict[str, Neighbour]:
    """Return netdev -> neighbour from the output of ``lldpctl -f json0`` and of ``networkctl lldp --json=short``.

    What one of them says of a port counts before the next; text in another form says nothing. A neighbour that neither
    bridges nor routes is no switch: a host, heard through a switch that forwards LLDP. Of several the first counts.
    """
    found: dict[str, Neighbour] = {}
    for netdev, neighbour in (*_lldpd(_load(lldpd)), *_networkd(_load(networkd))):
        if neighbour.chassis:
            found.setdefault(netdev, neighbour)
    return found


def _load(text: str | None) -> Any:
    try:
        return json_text.loads(text) if text else None
    except ValueError:
        return None


def _lldpd(data: Any) -> Iterator[tuple[str, Neighbour]]:
    """json0 writes each element as a list, also where there can be but one."""
    for one in _list(_get(data, "lldp").get("interface")):
        chassis, port = _get(one, "chassis"), _get(one, "port")
        can = [_map(item) for item in _list(chassis.get("capability"))]
        if can and not any(item.get("enabled") is True and item.get("type") in _FORWARD for item in can):
            continue
        own, told = _get(port, "id"), _text(_get(port, "descr").get("value"))
        known = _text(own.get("value"))
        system = _text(_get(chassis, "name").get("value"))
        name = told if own.get("type") == "mac" and told else known
        frame = _text(_get(port, "mfs").get("value"))
        found = Neighbour(
            system=system,
            chassis=_text(_get(chassis, "id").get("value")),
            port=name,
            max_frame=int(frame) if frame.isascii() and frame.isdecimal() and len(frame) <= _DIGITS else None,
            pfc=_pfc(one),
        )
        yield _text(_map(one).get("name")), found


def _pfc(interface: Any) -> tuple[int, ...] | None:
    """Return the priorities with flow control; lldpd shows what it does not know of DCBX as bytes."""
    for one in map(_map, _list(_get(interface, "unknown-tlvs").get("unknown-tlv"))):
        if (one.get("oui"), one.get("subtype")) == _PFC:
            _head, _comma, enabled = _text(one.get("value")).partition(",")
            if _BYTE.fullmatch(enabled):
                return tuple(priority for priority in _PRIORITIES if int(enabled, 16) & 1 << priority)
    return None


def _networkd(data: Any) -> Iterator[tuple[str, Neighbour]]:
    for interface in _list(_map(data).get("Neighbors")):
        for one in map(_map, _list(_map(interface).get("Neighbors"))):
            capabilities = one.get("EnabledCapabilities")
            if isinstance(capabilities, int) and not capabilities & _FORWARD_BITS:
                continue
            port, told = _text(one.get("PortID")), _text(one.get("PortDescription"))
            # It does not say of which kind an id is, but an address shows.
            name = told if port.count(":") == 5 and told else port
            yield (
                _text(_map(interface).get("InterfaceName")),
                Neighbour(_text(one.get("SystemName")), _text(one.get("ChassisID")), name),
            )


def _map(value: Any) -> Mapping[str, Any]:
    return value if isinstance(value, Mapping) else {}


def _list(value: Any) -> list[Any]:
    return value if isinstance(value, list) else []


def _get(value: Any, key: str) -> Mapping[str, Any]:
    """Return the dict under ``key``, or the first of a list of dicts there."""
    found = _map(value).get(key)
    return _map(found[0] if isinstance(found, list) and found else found)


def _text(value: Any) -> str:
    return value[:_LONGEST] if isinstance(value, str) else ""
