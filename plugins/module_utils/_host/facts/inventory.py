# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What is known of a host: raw text of sysfs, /proc and ``ip`` becomes a HostInventory."""

from __future__ import annotations

import dataclasses
import re
import shlex
from collections.abc import Mapping
from typing import Any

from ..._common import host_facts
from ..._common.errors import InputError
from ..._common.host_facts import SCHEMA
from ..._common.rdma_modules import OTHERS, STORAGE
from ..system import json_text
from . import bonds, drivers, ib_switch, lldp, network, port_use
from .devices import NETWORK_CLASS, Gpu, Port, RdmaDevice, is_gpu, is_vf
from .next_kernel import next_kernel
from .nvidia_driver import NvidiaDriver

# Processes named as holders of queue pairs: enough to find them, few enough to read.
MAX_HOLDERS = 8
_RDMA_MODULES = re.compile(
    r"mlx[45]_(core|ib|en)|mlxfw|ib_\w+|rdma_\w+|rdmavt|iw_cm|siw|irdma|bnxt_re|ionic_rdma|efa|"
    r"nvidia|nvidia_peermem|nv_peer_mem|gdrdrv|amdgpu|mst_\w+|knem|" + "|".join((*STORAGE, *OTHERS))
)
_PERFTEST_VERSION = re.compile(r"[Vv]ersion:?\s*(\S+)")


@dataclasses.dataclass(frozen=True)
class Workloads:
    """Who uses RDMA now; ``queue_pairs`` is None where no tool could tell."""

    queue_pairs: int | None
    holders: tuple[str, ...]

    @classmethod
    def from_rdma(cls, text: str | None) -> Workloads:
        """Count user space's queue pairs in ``rdma -j resource show qp``.

        The kernel's own (one or two a port) have no ``pid``.
        """
        try:
            users = [pair for pair in json_text.loads(text or "") if "pid" in pair]
            holders = sorted({f"{pair.get('comm', '?')}[{pair['pid']}]" for pair in users})
        except (ValueError, TypeError, AttributeError):
            return cls(None, ())
        return cls(len(users), tuple(holders[:MAX_HOLDERS]))

    def to_dict(self) -> dict[str, Any]:
        """Return the value of ``ansible_facts.rdma.workloads``."""
        return {"queue_pairs": self.queue_pairs, "holders": list(self.holders)}


@dataclasses.dataclass(frozen=True)
class HostInventory:
    """Everything that the collection knows of one host, read at one moment."""

    machine_id: str
    hostname: str
    arch: str
    os: dict[str, str]
    kernel_release: str
    kernel_cmdline: str
    virtual: bool
    secure_boot: bool | None
    iommu_groups: int
    managers: tuple[str, ...]
    ports: tuple[Port, ...]
    rdma_devices: tuple[RdmaDevice, ...]
    gpus: tuple[Gpu, ...]
    default_route: tuple[str, ...]
    ssh_netdev: str | None
    networks: tuple[str, ...]
    modules: dict[str, int]
    # Driver of a port or of RDMA devices -> its version; None when it is unknown.
    drivers: dict[str, str | None]
    perftest: dict[str, str] | None
    nvidia_driver: NvidiaDriver | None
    # Clients of the RDMA core's peer memory interface, which only some kernels have.
    memory_peers: tuple[str, ...]
    workloads: Workloads
    reboot: tuple[str, ...]
    # The kernel release that the boot loader starts next; None when it cannot be told.
    next_kernel: str | None
    # All network devices, also those that no port has; not part of the facts.
    interfaces: tuple[network.Interface, ...] = ()
    # Netdev -> the switch port that it hangs on, where LLDP tells.
    neighbours: Mapping[str, lldp.Neighbour] = dataclasses.field(default_factory=dict)
    # What runs over the network.
    activity: port_use.Activity = dataclasses.field(default_factory=port_use.Activity)
    # PCI address of a port that rail_links configured -> the addresses that are the rail's.
    configured: Mapping[str, tuple[str, ...]] = dataclasses.field(default_factory=dict)
    # The VLAN interfaces that rail_links made on such a port.
    vlans: Mapping[str, tuple[str, ...]] = dataclasses.field(default_factory=dict)
    # The IPv6 networks to which rail_links set routes through such a port: the kernel lists those of all tables.
    routes: Mapping[str, tuple[str, ...]] = dataclasses.field(default_factory=dict)
    # The rail that such a port is; a port that is none any more, but could not be restored, is not among them.
    rails: Mapping[str, str] = dataclasses.field(default_factory=dict)
    # The owners that such a port had before rail_links configured it, as _core.disruption calls them.
    first: Mapping[str, tuple[str, ...]] = dataclasses.field(default_factory=dict)
    bonds: tuple[bonds.Bond, ...] = ()

    @classmethod
    def from_raw(cls, raw: Mapping[str, Any]) -> HostInventory:
        """Build it from what ``_host.sysfs.read_raw`` returns.

        Raises ParseError when a tool's output has another form than known.
        """
        interfaces = network.parse_interfaces(raw["ip_addr"])
        routes = network.parse_routes(raw["route"], raw["ipv6_route"])
        rdma = _rdma_devices(raw, interfaces)
        # Processors of arm64 have no such flag.
        virtual = is_virtual(raw["cpuinfo"]) or any(map(is_vf, raw["pci"].values()))
        ports = _ports(raw["pci"], interfaces, rdma, bridges=raw["bridges"], virtual=virtual)
        own = tuple(dict.fromkeys(route.netdev for route in routes if route.is_default))
        ssh = network.ssh_netdev(raw["ssh_connection"], interfaces.values())
        kept = {one for name in (*own, *([ssh] if ssh else [])) for one in network.carriers(interfaces.values(), name)}
        rail_capable = {port.netdev.name for port in ports if port.netdev}.union(_of_rails(raw["rail_links"])) - kept
        return cls(
            machine_id=raw["machine_id"],
            hostname=raw["hostname"],
            arch=raw["arch"],
            os=_os_release(raw["os_release"]),
            kernel_release=raw["kernel_release"],
            kernel_cmdline=raw["cmdline"],
            virtual=virtual,
            secure_boot=raw["secure_boot"],
            iommu_groups=raw["iommu_groups"],
            managers=tuple(raw["managers"]),
            ports=ports,
            rdma_devices=rdma,
            gpus=tuple(Gpu.from_raw(a, r) for a, r in sorted(raw["pci"].items()) if is_gpu(r)),
            default_route=own,
            ssh_netdev=ssh,
            networks=network.own_networks(interfaces.values(), routes, rail_capable),
            modules=_rdma_modules(raw["modules"]),
            drivers={name: drivers.version(one, raw["kernel_release"]) for name, one in sorted(raw["drivers"].items())},
            perftest=_perftest(raw["perftest"]),
            nvidia_driver=NvidiaDriver.from_proc(raw["nvidia"]),
            memory_peers=tuple(raw["memory_peers"]),
            workloads=Workloads.from_rdma(raw["queue_pairs"]),
            reboot=tuple(raw["reboot"]),
            next_kernel=next_kernel(raw["boot"]),
            interfaces=tuple(interfaces.values()),
            neighbours={**lldp.parse(raw["lldpd"], raw["networkd"]), **ib_switch.parse(raw["ib_switches"])},
            activity=port_use.Activity.from_raw(
                raw, [(route.netdev, route.network) for route in routes if route.network], interfaces.values()
            ),
            configured={pci: tuple(e.get("set", {}).get("addresses", ())) for pci, e in raw["rail_links"].items()},
            vlans={pci: tuple(e.get("set", {}).get("vlans", ())) for pci, e in raw["rail_links"].items()},
            routes={pci: tuple(e.get("set", {}).get("routes", ())) for pci, e in raw["rail_links"].items()},
            rails={pci: e["rail"] for pci, e in raw["rail_links"].items() if e.get("rail")},
            first={pci: tuple(e.get("owners", ())) for pci, e in raw["rail_links"].items()},
            bonds=bonds.read_bonds(raw["bonds"], ports, interfaces, devices=rdma),
        )

    def through_bonds(self, wanted: Mapping[str, str]) -> HostInventory:
        """Return the inventory in which ports (PCI address -> bond) are seen through their bonds."""
        return dataclasses.replace(self, ports=bonds.through(self.ports, self.bonds, wanted)) if wanted else self

    def port(self, address: str) -> Port:
        """Return the port at a PCI address; InputError names the ports that there are."""
        for port in self.ports:
            if port.pci == address:
                return port
        known = ", ".join(port.title for port in self.ports) or "none"
        raise InputError(f"no network port at {address} on {self.hostname}; its ports: {known}")

    def duty(self, netdev: str) -> str:
        """Say what a netdev carries that must not be cut off, empty when it carries nothing.

        A port below a bond, bridge or VLAN carries what that carries.
        """
        duties = [(name, "the default route") for name in self.default_route]
        duties += [(self.ssh_netdev, "the ssh connection of this run")] if self.ssh_netdev else []
        for name, what in duties:
            if netdev in network.carriers(self.interfaces, name):
                return f"carries {what}" + ("" if name == netdev else f" (of {name})")
        return ""

    def owner(self, netdev: str) -> str | None:
        """Say why a netdev must be left alone, None when it need not be."""
        duty = self.duty(netdev)
        return f"{netdev} {duty}" if duty else None

    @property
    def by_pci(self) -> dict[str, Port]:
        """Return PCI address -> port."""
        return {port.pci: port for port in self.ports}

    def uses(self, port: Port) -> list[host_facts.Use]:
        """Return who uses a port; addresses, routes and VLANs of a rail that rail_links set are no uses."""
        own = (*self.configured.get(port.pci, ()), *self.routes.get(port.pci, ()))
        vlans = self.vlans.get(port.pci, ())
        found = port_use.uses(port, self.interfaces, self.activity, own=own, vlans=vlans)
        # Whose VF such a device is cannot be told for VFs of pods, so all ports with VFs count as in use.
        known = {device.name for device in self.rdma_devices}
        return [*found, *(port_use.vf_uses(self.activity, known) if port.vfs_count else ())]

    def _port(self, port: Port) -> dict[str, Any]:
        return {
            **port.to_dict(),
            "addresses": self._addresses(port),
            "duty": self.duty(port.netdev.name) if port.netdev else "",
            "switch": self._switch(port),
            "uses": [use._asdict() for use in self.uses(port)],
            "configured": self._configured(port.pci),
        }

    def _addresses(self, port: Port) -> list[str]:
        """Return the addresses of a port, and those of the VLAN interface that it carries as a rail."""
        own = self.vlans.get(port.pci, ())
        of_vlans = [address for one in self.interfaces if one.name in own for address in one.addresses]
        return [*(port.netdev.addresses if port.netdev else ()), *of_vlans]

    def _configured(self, pci: str) -> dict[str, Any] | None:
        """Return the rail that rail_links made of a port, and the addresses that it set there."""
        if pci not in self.rails:
            return None
        return {"rail": self.rails[pci], "addresses": list(self.configured[pci])}

    def _switch(self, port: Port) -> dict[str, Any] | None:
        found = self.neighbours.get(port.netdev.name) if port.netdev else None
        return found.to_dict() if found else None

    def to_dict(self) -> dict[str, Any]:
        """Return the value of ``ansible_facts.rdma``."""
        return {
            "schema": SCHEMA,
            "machine_id": self.machine_id,
            "hostname": self.hostname,
            "arch": self.arch,
            "os": self.os,
            "kernel": {"release": self.kernel_release, "cmdline": self.kernel_cmdline},
            "virtual": self.virtual,
            "secure_boot": self.secure_boot,
            "iommu_groups": self.iommu_groups,
            "managers": list(self.managers),
            "ports": [self._port(port) for port in self.ports],
            "bonds": [{**bond.to_dict(), "port": self._port(bond.port) if bond.port else None} for bond in self.bonds],
            "lost_rails": {rail: pci for pci, rail in self.rails.items() if pci not in self.by_pci},
            "lost_addresses": {
                rail: list(self.configured[pci]) for pci, rail in self.rails.items() if pci not in self.by_pci
            },
            "rdma_devices": [device.to_dict() for device in self.rdma_devices],
            "gpus": [gpu.to_dict() for gpu in self.gpus],
            "default_route": list(self.default_route),
            "ssh_netdev": self.ssh_netdev,
            "networks": list(self.networks),
            "modules": self.modules,
            "drivers": self.drivers,
            "perftest": self.perftest,
            "nvidia_driver": self.nvidia_driver.to_dict() if self.nvidia_driver else None,
            "memory_peers": list(self.memory_peers),
            "workloads": self.workloads.to_dict(),
            "reboot": list(self.reboot),
            "next_kernel": self.next_kernel,
        }


def _of_rails(record: Mapping[str, Any]) -> list[str]:
    """Return the VLAN interfaces and bonds that are rails."""
    vlans = [name for entry in record.values() for name in entry.get("set", {}).get("vlans", ())]
    return [*vlans, *(entry["bond"] for entry in record.values() if entry.get("bond"))]


def _rdma_devices(raw: Mapping[str, Any], interfaces: Mapping[str, network.Interface]) -> tuple[RdmaDevice, ...]:
    mtus = {name: interface.mtu for name, interface in interfaces.items()}
    devices = [RdmaDevice.from_raw(n, r, mtus) for n, r in sorted(raw["infiniband"].items())]
    # raw["pci"] holds physical functions only, so this leaves out the devices of VFs.
    return tuple(device for device in devices if device.is_soft or device.pci in raw["pci"])


def _ports(
    functions: Mapping[str, Any],
    interfaces: Mapping[str, network.Interface],
    rdma: tuple[RdmaDevice, ...],
    *,
    bridges: Mapping[str, Any],
    virtual: bool,
) -> tuple[Port, ...]:
    return tuple(
        Port.from_raw(address, raw, interfaces, rdma_devices=rdma, bridges=bridges, virtual=virtual)
        for address, raw in sorted(functions.items())
        if raw["class"].startswith(NETWORK_CLASS)
    )


def _os_release(text: str) -> dict[str, str]:
    """Parse /etc/os-release; ``like`` is ID_LIKE, the families that the system descends from."""
    values: dict[str, str] = {}
    for line in text.splitlines():
        key, found, value = line.partition("=")
        if found:
            values[key.strip()] = _unquoted(value)
    return {
        "id": values.get("ID", ""),
        "version": values.get("VERSION_ID", ""),
        "name": values.get("PRETTY_NAME", ""),
        "like": values.get("ID_LIKE", ""),
    }


def _unquoted(value: str) -> str:
    try:
        return " ".join(shlex.split(value))
    except ValueError:
        # A quote that does not end.
        return value.strip(" \"'\\")


def is_virtual(cpuinfo: str) -> bool:
    """Whether the flags in /proc/cpuinfo say that this is a virtual machine."""
    flags = next((line for line in cpuinfo.splitlines() if line.startswith("flags")), "")
    return "hypervisor" in flags.split()


def _rdma_modules(text: str) -> dict[str, int]:
    lines: list[list[str]] = [line.split() for line in text.splitlines()]
    return {
        fields[0]: int(fields[2])
        for fields in sorted(lines)
        if len(fields) > 2 and fields[2].isdecimal() and _RDMA_MODULES.fullmatch(fields[0])
    }


def _perftest(raw: Mapping[str, str] | None) -> dict[str, str] | None:
    if not raw:
        return None
    match = _PERFTEST_VERSION.search(raw["output"])
    return {"path": raw["path"], "version": match.group(1) if match else ""}
