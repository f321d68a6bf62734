# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Network ports, RDMA devices and GPUs of a host, from raw sysfs text."""

from __future__ import annotations

import dataclasses
import re
from collections.abc import Iterable, Mapping
from typing import Any

from ..._common import pci, units
from . import link_modes
from .network import Interface
from .pcie import Pcie, Uplink, translates

NETWORK_CLASS = "0x02"
# VGA, 3D and other display controllers, and processing accelerators.
GPU_CLASSES = ("0x0300", "0x0302", "0x0380", "0x1200")
GPU_VENDORS = ("10de", "1002")
INFINIBAND_CLASS = "0x0207"
# The netdev type ARPHRD_INFINIBAND.
ARPHRD_INFINIBAND = "32"
IFF_UP = 0x1
# VFs by PCI id, as the driver mlx5_core of the kernel lists them, and by drivers that serve VFs alone.
_VF_DEVICES = ("1014", "1016", "1018", "101a", "101c", "101e", "a2d3")
_VF_DRIVERS = ("iavf", "ixgbevf", "igbvf")
# How the kernel got a MAC address (addr_assign_type): it made one up.
_RANDOM_MAC = "1"
# The kind of a network device that is no port's own, see bonds.py.
BOND = "bond"
# Names that a switchdev driver gives to representors, which share the PF's PCI function.
_REPRESENTOR = re.compile(r"(c\d+)?pf\d+((vf|sf)\d+|hpf)")

Raw = Mapping[str, Any]


@dataclasses.dataclass(frozen=True)
class Netdev:
    """The network device of a port; carrier is None while the link is down.

    ``duplicates``, ``tentative``: IPv6 addresses as of ``Interface``. ``kind``: BOND for one that stands for its
    first member.
    Speeds in Gb/s: ``max_speed`` is the fastest that the driver supports, ``vf_rate`` the lowest limit of a VF.
    """

    name: str
    mac: str
    mtu: int
    max_mtu: int
    min_mtu: int
    speed: float | None
    max_speed: float | None
    carrier: bool | None
    operstate: str
    up: bool
    infiniband: bool
    master: str | None
    uppers: tuple[str, ...]
    altnames: tuple[str, ...]
    addresses: tuple[str, ...]
    vf_rate: float | None
    phys_port_name: str
    random_mac: bool = False
    pkey: str | None = None
    duplicates: tuple[str, ...] = ()
    tentative: tuple[str, ...] = ()
    kind: str = ""

    @classmethod
    def from_raw(cls, name: str, raw: Raw, interface: Interface | None) -> Netdev:
        """Build it from /sys/class/net/NAME and, when there is one, the entry of ``ip``."""
        carrier = units.natural(raw.get("carrier"))
        return cls(
            name=name,
            mac=(interface.mac if interface else "") or raw.get("address") or "",
            mtu=units.natural(raw.get("mtu")) or 0,
            max_mtu=interface.max_mtu if interface else 0,
            min_mtu=interface.min_mtu if interface else 0,
            speed=units.gigabits(raw.get("speed")),
            max_speed=link_modes.max_speed(raw.get("link_settings")),
            carrier=None if carrier is None else bool(carrier),
            operstate=raw.get("operstate") or "unknown",
            up=bool((units.integer(raw.get("flags")) or 0) & IFF_UP),
            infiniband=raw.get("type") == ARPHRD_INFINIBAND,
            master=raw.get("master"),
            uppers=tuple(raw.get("uppers", ())),
            altnames=interface.altnames if interface else (),
            addresses=interface.addresses if interface else (),
            vf_rate=interface.vf_rate if interface else None,
            phys_port_name=raw.get("phys_port_name") or "",
            random_mac=raw.get("addr_assign_type") == _RANDOM_MAC,
            pkey=raw.get("pkey") or None,
            duplicates=interface.duplicates if interface else (),
            tentative=interface.tentative if interface else (),
        )

    @property
    def is_representor(self) -> bool:
        """Whether it stands for a VF or another function in the NIC's switch."""
        return bool(_REPRESENTOR.fullmatch(self.phys_port_name))


@dataclasses.dataclass(frozen=True)
class RdmaDevice:
    """Port 1 of an RDMA device; rate in Gb/s, MTUs in bytes."""

    name: str
    pci: str | None
    netdev: str | None
    state: str
    link_layer: str
    rate: float | None
    active_mtu: int | None
    node_guid: str
    firmware: str | None

    @classmethod
    def from_raw(cls, name: str, raw: Raw, mtus: Mapping[str, int]) -> RdmaDevice:
        """Build it from /sys/class/infiniband/NAME.

        ``mtus`` maps netdev -> MTU: sysfs does not show the active RDMA MTU, but it follows
        from the netdev's.
        """
        link_layer = (raw.get("link_layer") or "Ethernet").lower()
        netdev = raw.get("parent") or raw.get("ndev") or None
        rdma_mtu = units.roce_mtu if link_layer == "ethernet" else units.ipoib_mtu
        return cls(
            name=name,
            pci=_pci_of(raw.get("realpath")),
            netdev=netdev,
            state=(raw.get("state") or "").partition(": ")[2] or "unknown",
            link_layer=link_layer,
            rate=units.leading_number(raw.get("rate")),
            active_mtu=rdma_mtu(mtus[netdev]) if netdev is not None and netdev in mtus else None,
            node_guid=raw.get("node_guid") or "",
            firmware=raw.get("fw_ver") or None,
        )

    @property
    def is_soft(self) -> bool:
        """Whether it is software on top of a netdev (soft-RoCE), without a PCI function."""
        return self.pci is None

    def to_dict(self) -> dict[str, Any]:
        """Return the entry of ``ansible_facts.rdma.rdma_devices``."""
        return dataclasses.asdict(self)


@dataclasses.dataclass(frozen=True)
class Gpu:
    """A GPU, with its path from the PCI root."""

    pci: str
    vendor: str
    device: str
    driver: str | None
    numa_node: int | None
    path: tuple[str, ...]

    @classmethod
    def from_raw(cls, address: str, raw: Raw) -> Gpu:
        """Build it from /sys/bus/pci/devices/ADDRESS."""
        return cls(
            pci=address,
            vendor=_hex_id(raw.get("vendor")),
            device=_hex_id(raw.get("device")),
            driver=raw.get("driver"),
            numa_node=units.natural(raw.get("numa_node")),
            path=pci.device_path(raw.get("realpath") or ""),
        )

    def to_dict(self) -> dict[str, Any]:
        """Return the entry of ``ansible_facts.rdma.gpus``."""
        return {**dataclasses.asdict(self), "path": list(self.path)}


@dataclasses.dataclass(frozen=True)
class Port:
    """A network function without a PF on this host; ``netdev`` is None while no network driver has it.

    ``passthrough``: in a virtual machine whether it is a "vf" of a card of the hypervisor or a "pf", which an emulated
    device counts as; None on metal.
    """

    pci: str
    vendor: str
    device: str
    driver: str | None
    netdev: Netdev | None
    infiniband: bool
    rdma_rate: float | None
    numa_node: int | None
    local_cpus: str
    pcie: Pcie
    vfs_total: int
    vfs_count: int
    rdma: tuple[str, ...]
    path: tuple[str, ...]
    # The bridges above it, from the root port down.
    uplinks: tuple[Uplink, ...]
    passthrough: str | None = None
    # Whether its address translation service is in use, None when it is not known.
    ats: bool | None = None

    @classmethod
    def from_raw(
        cls,
        address: str,
        raw: Raw,
        interfaces: Mapping[str, Interface],
        *,
        rdma_devices: Iterable[RdmaDevice],
        bridges: Mapping[str, Raw],
        virtual: bool = False,
    ) -> Port:
        """Build it from /sys/bus/pci/devices/ADDRESS, what is configured on it, and the ``bridges`` above it.

        What a hypervisor shows a ``virtual`` machine of PCIe links is made up.
        """
        path = pci.device_path(raw.get("realpath") or "")
        netdev = own_netdev(raw.get("net", {}), interfaces)
        rdma = [device for device in rdma_devices if _stands_on(device, address, netdev)]
        return cls(
            pci=address,
            vendor=_hex_id(raw.get("vendor")),
            device=_hex_id(raw.get("device")),
            driver=raw.get("driver"),
            netdev=netdev,
            infiniband=_is_infiniband(raw, netdev, rdma),
            rdma_rate=next((d.rate for d in rdma if not d.is_soft), None),
            numa_node=units.natural(raw.get("numa_node")),
            local_cpus=raw.get("local_cpulist") or "",
            pcie=Pcie.from_raw({} if virtual else raw),
            vfs_total=units.natural(raw.get("sriov_totalvfs")) or 0,
            vfs_count=units.natural(raw.get("sriov_numvfs")) or 0,
            rdma=tuple(device.name for device in rdma),
            path=path,
            uplinks=tuple(Uplink.from_raw(one, bridges[one]) for one in path[1:-1] if one in bridges and not virtual),
            passthrough=("vf" if is_vf(raw) else "pf") if virtual else None,
            ats=None if virtual else translates(raw.get("config") or b""),
        )

    @property
    def title(self) -> str:
        """What messages call the port: its address and, when it has one, its netdev."""
        return f"{self.pci} ({self.netdev.name})" if self.netdev else self.pci

    def to_dict(self) -> dict[str, Any]:
        """Return the entry of ``ansible_facts.rdma.ports``."""
        link = self.netdev
        return {
            "pci": self.pci,
            "vendor": self.vendor,
            "device": self.device,
            "driver": self.driver,
            "netdev": link.name if link else None,
            "mac": link.mac if link else "",
            "mtu": link.mtu if link else None,
            # The netdev of an InfiniBand port knows no speed, its RDMA device does.
            "speed": (link.speed if link else None) or self.rdma_rate,
            "max_speed": link.max_speed if link else None,
            "carrier": link.carrier if link else None,
            "operstate": link.operstate if link else "unknown",
            "link_layer": "infiniband" if self.infiniband else "ethernet",
            "pkey": link.pkey if link else None,
            "numa_node": self.numa_node,
            "local_cpus": self.local_cpus,
            "pcie": dataclasses.asdict(self.pcie),
            "vfs": {"total": self.vfs_total, "count": self.vfs_count, "rate": link.vf_rate if link else None},
            "master": link.master if link else None,
            "addresses": list(link.addresses) if link else [],
            "rdma": list(self.rdma),
            "path": list(self.path),
            "uplinks": [dataclasses.asdict(link) for link in self.uplinks],
            "ats": self.ats,
            "passthrough": self.passthrough,
        }


def is_vf(raw: Raw) -> bool:
    """Whether a network function is a VF by its id or driver: one without a PF on this host was passed through."""
    known = _hex_id(raw.get("vendor")) == pci.NIC_VENDOR and _hex_id(raw.get("device")) in _VF_DEVICES
    return raw["class"].startswith(NETWORK_CLASS) and (known or raw.get("driver") in _VF_DRIVERS)


def is_gpu(raw: Raw) -> bool:
    """Whether a PCI function is a GPU, and not a board's own display adapter."""
    return raw["class"].startswith(GPU_CLASSES) and _hex_id(raw.get("vendor")) in GPU_VENDORS


def own_netdev(nets: Mapping[str, Raw], interfaces: Mapping[str, Interface]) -> Netdev | None:
    """Return a PCI function's own network device, of all that stand on it; ``nets`` is name -> raw."""
    own = [one for one in netdevs(nets, interfaces) if not one.is_representor]
    # IPoIB children have the parent's PCI function too; the parent is dev_id 0 and comes first.
    return min(own, key=lambda one: (units.natural(nets[one.name].get("dev_id")) or 0, one.name), default=None)


def netdevs(nets: Mapping[str, Raw], interfaces: Mapping[str, Interface]) -> list[Netdev]:
    """Return all network devices of a PCI function, representors among them."""
    return [Netdev.from_raw(name, raw, interfaces.get(name)) for name, raw in nets.items()]


def _stands_on(device: RdmaDevice, address: str, netdev: Netdev | None) -> bool:
    if device.pci:
        return device.pci == address
    return netdev is not None and device.netdev == netdev.name


def _is_infiniband(raw: Raw, netdev: Netdev | None, rdma: Iterable[RdmaDevice]) -> bool:
    if netdev:
        return netdev.infiniband
    layers = [device.link_layer for device in rdma]
    return "infiniband" in layers or raw["class"].startswith(INFINIBAND_CLASS)


def _hex_id(text: str | None) -> str:
    return (text or "").replace("0x", "")


def _pci_of(realpath: str | None) -> str | None:
    path = pci.device_path(realpath or "")
    # Below the PCI function stand infiniband/NAME or, with auxiliary devices, one more level.
    functions = [part for part in path[1:] if part.count(":") == 2]
    return functions[-1] if functions else None
