# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Names of a rail's VFs and of their representors, and the udev rules that give them. Pure.

A .link file cannot name them. It knows a VF by its PCI address alone, which follows from the PF's first offset and
stride: the specification leaves both open while there are no VFs, and another NUM_OF_VFS in the firmware may move them.
All representors have the PCI path of their PF, and no .link file reads phys_port_name. So udev rules look at what the
kernel says:

* a VF is what the PF's link ``virtfnN`` leads to. The kernel makes that link before a driver can bind to the VF, so it
  is there when the network device comes (``pci_iov_add_virtfn`` of drivers/pci/iov.c), under whatever address;
* a representor is on its PF's PCI function and has the phys_port_name ``pfMvfN`` and a phys_switch_id. M is the number
  of the PF with some kernels, that of the port with others, and the ports of a NIC can share one phys_switch_id: only
  the PCI address tells them apart.

TEST with %k in an absolute path and ``NAME:=`` mean the same in systemd 249 to 257 (src/udev/udev-rules.c).
"""

from __future__ import annotations

import dataclasses
import re
from collections.abc import Iterable, Mapping
from typing import Any

from ..._common import units
from ..._common.errors import InputError
from ..._common.pci import PciAddress
from ..facts import devices
from ..facts.devices import Netdev, Port
from ..facts.inventory import HostInventory
from ..facts.network import Interface
from ..facts.rail_ports import MAX_NAME, Rail
from ..system import systemd

TITLE = systemd.title("netdev_names")
# Before 80-net-setup-link.rules, which leaves alone what has a NAME.
FILE = "70-gpufabric-names.rules"
VF, REPRESENTOR = "VF", "representor"
# What stands in a name between the rail's and the number.
LETTERS = {VF: "v", REPRESENTOR: "r"}
_END, _NO_VF, _STANDS = "gpufabric_names_end", "gpufabric_names_no_vf", "gpufabric_names_representor"
# A rule of ours for network or RDMA devices: condition, name.
_RULE = re.compile(
    r'(?:ACTION=="add", SUBSYSTEM=="infiniband", )?(.+), '
    r'(?:NAME:="|PROGRAM="rdma_rename %k NAME_FIXED )([^"]+)", GOTO="[^"]+"'
)
_PORT_NAME = re.compile(r"pf\d+vf(\d+)")
_NOT_HERE = Netdev.from_raw("", {}, None)


@dataclasses.dataclass(frozen=True)
class Function:
    """A VF of the port ``pf``, or the representor of one, that is here or may come.

    ``seen`` is what .link files and udev rules would see of it, None where its address cannot be told. ``netdev`` is
    None while it is not here: no such VF, another driver, a pod's network namespace. ``rdma`` is its RDMA device,
    ``holders`` are the processes that hold that one.
    """

    pf: str
    kind: str
    index: int
    seen: Port | None = None
    netdev: Netdev | None = None
    rdma: str | None = None
    holders: tuple[str, ...] = ()

    @property
    def title(self) -> str:
        """What messages and records call it; stays the same whatever name and address it has."""
        return f"{self.pf} {self.kind} {self.index}"


@dataclasses.dataclass(frozen=True)
class Wish:
    """Whose names are wanted: the rails' ports, and the functions of ``kinds`` that they have.

    With ``now`` what nothing uses is renamed at once.
    """

    rails: tuple[Rail, ...]
    kinds: tuple[str, ...]
    now: bool

    def names(self, functions: Iterable[Function]) -> dict[str, str]:
        """Return PCI address or title -> name; InputError when a name is too long or would be given twice."""
        ports = {rail.pci: rail.netdev for rail in self.rails}
        chosen = [one for one in functions if one.kind in self.kinds and one.pf in ports]
        names = {**ports, **{one.title: f"{ports[one.pf]}{LETTERS[one.kind]}{one.index}" for one in chosen}}
        _refuse(names)
        return names


def kinds(vfs: bool, representors: bool) -> tuple[str, ...]:
    """Return the kinds that are asked for."""
    return (*((VF,) if vfs else ()), *((REPRESENTOR,) if representors else ()))


def from_raw(
    inventory: HostInventory, raw: Mapping[str, Any], holders: Mapping[str, tuple[str, ...]]
) -> tuple[Function, ...]:
    """Return all functions that ports have or may get, up to ``sriov_totalvfs``.

    ``raw`` is PCI address of the PF -> ``offset``, ``stride`` (text of sysfs), ``net`` (name -> raw) and ``vfs``: index
    -> ``pci``, ``driver``, ``net``, ``rdma`` (names). ``holders`` is RDMA device -> processes.
    """
    interfaces = {interface.name: interface for interface in inventory.interfaces}
    found: list[Function] = []
    for port in (port for port in inventory.ports if port.pci in raw):
        own = raw[port.pci]
        standing = _representors(devices.netdevs(own["net"], interfaces))
        here = [index + 1 for index in (*own["vfs"], *standing)]
        for index in range(max([port.vfs_total, *here])):
            found.append(_representor(port, index, standing.get(index)))
            found.append(_vf(port, index, own, interfaces=interfaces, holders=holders))
    return tuple(found)


def condition(function: Function, subsystem: str) -> str:
    """Return the udev condition that holds for the function's device of a subsystem (``net``, ``infiniband``) alone."""
    if function.kind == VF:
        return f'TEST=="/sys/bus/pci/devices/{function.pf}/virtfn{function.index}/{subsystem}/%k"'
    return f'KERNELS=="{function.pf}", ATTR{{phys_switch_id}}=="?*", ATTR{{phys_port_name}}=="pf*vf{function.index}"'


def format_rules(functions: Iterable[Function], names: Mapping[str, str]) -> str | None:
    """Return the text of the rules file, None when no function gets a name; ``names`` is title -> name."""
    named = [one for one in functions if one.title in names]
    vfs, representors = ([_rule(one, names) for one in named if one.kind == kind] for kind in (VF, REPRESENTOR))
    if not named:
        return None
    # Most network devices of a host are those of pods: they leave at once.
    lines = [f"# {TITLE}", f'ACTION!="add", GOTO="{_END}"', f'SUBSYSTEM!="net", GOTO="{_END}"']
    if vfs:
        lines += [f'TEST!="device/physfn", GOTO="{_NO_VF}"', *vfs, f'LABEL="{_NO_VF}"']
    if representors:
        gate = [f'ATTR{{phys_port_name}}=="pf*vf*", GOTO="{_STANDS}"', f'GOTO="{_END}"', f'LABEL="{_STANDS}"']
        lines += [*gate, *representors]
    return "\n".join([*lines, f'LABEL="{_END}"']) + "\n"


def given_names(functions: Iterable[Function], subsystem: str, rules: str | None) -> dict[str, str]:
    """Return title -> name of the functions that our rules name already."""
    matches = [_RULE.fullmatch(line) for line in (rules or "").splitlines()]
    names = {match[1]: match[2] for match in matches if match}
    conditions = {one.title: condition(one, subsystem) for one in functions}
    return {title: names[where] for title, where in conditions.items() if where in names}


def _rule(function: Function, names: Mapping[str, str]) -> str:
    # Final, so that no later rule (the SR-IOV operator's, a driver package's) gives another name.
    return f'{condition(function, "net")}, NAME:="{names[function.title]}", GOTO="{_END}"'


def _representors(netdevs: Iterable[Netdev]) -> dict[int, Netdev]:
    matches = [(one, _PORT_NAME.fullmatch(one.phys_port_name)) for one in netdevs]
    return {int(match[1]): one for one, match in matches if match}


def _representor(port: Port, index: int, netdev: Netdev | None) -> Function:
    number = PciAddress.parse(port.pci).function
    expected = dataclasses.replace(_NOT_HERE, phys_port_name=f"pf{number}vf{index}")
    return Function(port.pci, REPRESENTOR, index, dataclasses.replace(port, netdev=netdev or expected), netdev)


def _vf(
    port: Port,
    index: int,
    own: Mapping[str, Any],
    *,
    interfaces: Mapping[str, Interface],
    holders: Mapping[str, tuple[str, ...]],
) -> Function:
    # One that is not here yet has the driver of its PF, unless the driver has another one for VFs.
    to_come: dict[str, Any] = {"pci": _address(port, index, own), "driver": port.driver, "net": {}, "rdma": []}
    vf = own["vfs"].get(index, to_come)
    netdev, rdma = devices.own_netdev(vf["net"], interfaces), next(iter(vf["rdma"]), None)
    return Function(port.pci, VF, index, _seen(port, vf, netdev), netdev, rdma, holders.get(rdma or "", ()))


def _address(port: Port, index: int, own: Mapping[str, Any]) -> str | None:
    """Return the address that a VF will have most likely: good enough to find files of others that name it."""
    offset, stride = units.natural(own["offset"]), units.natural(own["stride"])
    if not offset or stride is None:
        return None
    return str(PciAddress.parse(port.pci).vf(index, offset, stride))


def _seen(port: Port, vf: Mapping[str, Any], netdev: Netdev | None) -> Port | None:
    if not vf["pci"]:
        return None
    path = (*port.path[:-1], vf["pci"])
    return dataclasses.replace(port, pci=vf["pci"], driver=vf["driver"], netdev=netdev or _NOT_HERE, path=path)


def _refuse(names: Mapping[str, str]) -> None:
    long = [(title, name) for title, name in names.items() if len(name) > MAX_NAME]
    owners: dict[str, str] = {}
    for title, name in names.items():
        if owners.setdefault(name, title) != title:
            raise InputError(f"{owners[name]} and {title} would both be named {name}. Rename one of the rails")
    if long:
        # One stands for all: there can be hundreds.
        title, name = long[-1]
        raise InputError(
            f"{title} would be named {name}, which has {len(name)} characters, expected at most {MAX_NAME}. Give the "
            "rail a shorter name, or set vfs and representors to false"
        )
