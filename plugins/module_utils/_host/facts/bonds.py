# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Linux bonds, and which of them have an RDMA device of their own (RoCE LAG of mlx5). Pure.

mlx5_core joins the ports of one NIC that are members of one bond, and of no others: they then have one RDMA device in
common, mlx5_bond_N. Such a bond can be a rail. It goes by the PCI address of its first member: all else is keyed by PCI
addresses, and sees the port through the bond.
"""

from __future__ import annotations

import dataclasses
import re
from collections.abc import Iterable, Mapping
from typing import Any

from .devices import BOND, Netdev, Port, RdmaDevice
from .network import Interface

# The modes in which mlx5 joins ports: active-backup, balance-xor, 802.3ad.
_MODES = ("1", "2", "4")
_DRIVER = "mlx5_core"
# How mlx5_ib calls the RDMA device of joined ports, unless udev renames it.
_DEVICE = re.compile(r"mlx5_bond_\d+")
_ACTIVE = "active"


@dataclasses.dataclass(frozen=True)
class Bond:
    """A bond with its members, by name; ``port`` is the first member seen through the bond, None without any port.

    ``mode`` as the kernel prints it (``802.3ad 4``), ``lag`` the state of the NIC's LAG in debugfs, None where it
    cannot be read. ``problem``: why the bond cannot be a rail, "" when it can.
    """

    name: str
    mode: str
    members: tuple[tuple[str, Port | None], ...]
    port: Port | None
    lag: str | None
    problem: str

    def to_dict(self) -> dict[str, Any]:
        """Return what is known of the bond itself; HostInventory adds its port."""
        return {
            "name": self.name,
            "mode": self.mode,
            "lag": self.lag,
            "members": [
                {
                    "netdev": name,
                    "pci": port.pci if port else None,
                    "speed": port.netdev.speed if port and port.netdev else None,
                    "carrier": port.netdev.carrier if port and port.netdev else None,
                }
                for name, port in self.members
            ],
            "problem": self.problem,
        }


def read_bonds(
    raw: Mapping[str, Any],
    ports: Iterable[Port],
    interfaces: Mapping[str, Interface],
    *,
    devices: Iterable[RdmaDevice],
) -> tuple[Bond, ...]:
    """Return the bonds; ``raw`` is name -> files of /sys/class/net/NAME, of bonding, and ``lag`` by PCI address."""
    by_netdev = {port.netdev.name: port for port in ports if port.netdev}
    devices = tuple(devices)
    return tuple(
        _bond(name, one, by_netdev, interface=interfaces.get(name), devices=devices) for name, one in raw.items()
    )


def _bond(
    name: str,
    raw: Mapping[str, Any],
    by_netdev: Mapping[str, Port],
    *,
    interface: Interface | None,
    devices: tuple[RdmaDevice, ...],
) -> Bond:
    members = tuple((one, by_netdev.get(one)) for one in sorted((raw.get("slaves") or "").split()))
    ports = sorted((port for _name, port in members if port), key=lambda port: port.pci)
    own = [one for one in devices if one.pci in {port.pci for port in ports}]
    states = {raw["lag"].get(port.pci) for port in ports} if raw.get("lag") else set()
    lag = next((state for state in sorted(filter(None, states))), None)
    mode = raw.get("mode") or ""
    shape = _shape(mode, members, ports)
    return Bond(
        name=name,
        mode=mode,
        members=members,
        port=_seen(name, raw, ports, interface=interface, own=own) if ports else None,
        lag=lag,
        problem=shape or _device_problem(ports, own, lag),
    )


def _seen(
    name: str, raw: Mapping[str, Any], ports: list[Port], *, interface: Interface | None, own: list[RdmaDevice]
) -> Port:
    """Return the first member with the bond as its network device: one flow uses one member, so that rate counts."""
    links = [port.netdev for port in ports if port.netdev]
    link = Netdev.from_raw(name, raw, interface)
    most = [one.max_mtu for one in links if one.max_mtu]
    link = dataclasses.replace(
        link,
        kind=BOND,
        speed=min((one.speed for one in links if one.speed), default=None),
        max_speed=min((one.max_speed for one in links if one.max_speed), default=None),
        max_mtu=min([*most, *([link.max_mtu] if link.max_mtu else [])], default=0),
    )
    first = ports[0]
    return dataclasses.replace(first, netdev=link, rdma=tuple(one.name for one in own), rdma_rate=None)


def _shape(mode: str, members: tuple[tuple[str, Port | None], ...], ports: list[Port]) -> str:
    """Return why mlx5 cannot join these ports, "" when it can."""
    others = [name for name, port in members if port is None]
    if others:
        return f"has the member {others[0]}, which is not a port of a NIC"
    if len(ports) < 2:
        return f"has {len(ports)} members; ports have an RDMA device in common from 2 on"
    drivers = sorted({port.driver or "none" for port in ports})
    if drivers != [_DRIVER]:
        return f"has members with driver {', '.join(drivers)}; only {_DRIVER} gives a bond an RDMA device"
    if len({port.pci.rpartition(".")[0] for port in ports}) > 1:
        told = ", ".join(port.pci for port in ports)
        return f"has members of several NICs ({told}), which have no RDMA device in common"
    if mode.rpartition(" ")[2] not in _MODES:
        return f"has mode {mode or 'unknown'}; RDMA requires active-backup, balance-xor or 802.3ad"
    return ""


def _device_problem(ports: list[Port], own: list[RdmaDevice], lag: str | None) -> str:
    """Return what shows that the bond has no RDMA device of its own, "" when it has one."""
    is_active = lag == _ACTIVE
    if len(own) == 1 and (is_active or _DEVICE.fullmatch(own[0].name)):
        return ""
    # The driver of RDMA devices may come later: the NIC has joined the ports already.
    if not own and is_active:
        return ""
    told = ", ".join(f"{one.name} at {one.pci}" for one in own) or "none"
    state = f"; LAG of the NIC: {lag}" if lag else ""
    vfs = " VFs of the members prevent it." if any(port.vfs_count for port in ports) else ""
    return f"has no RDMA device of its own (RDMA devices of its members: {told}{state}).{vfs}".rstrip(".")


def through(ports: Iterable[Port], bonds: Iterable[Bond], wanted: Mapping[str, str]) -> tuple[Port, ...]:
    """Return the ports, those of ``wanted`` (PCI address -> bond) seen through their bonds where these exist."""
    seen = {(one.port.pci, one.name): one.port for one in bonds if one.port}
    return tuple(seen.get((port.pci, wanted.get(port.pci, "")), port) for port in ports)
