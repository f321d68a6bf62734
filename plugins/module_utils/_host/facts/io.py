# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Read the raw state of a host: files below given roots, and a few tools. Judges nothing."""

from __future__ import annotations

import os
from collections.abc import Mapping
from typing import Any

from ..._common.errors import CommandError
from ..._common.pci import device_path
from ..system import command, files, systemd
from ..system.files import Roots, names, read_bytes, read_text
from . import ethtool_io, ib_switch_io, port_use_io
from .devices import NETWORK_CLASS
from .drivers import RDMA
from .inventory import HostInventory

PCI_FILES = [
    "class",
    "vendor",
    "device",
    "numa_node",
    "local_cpulist",
    "sriov_totalvfs",
    "sriov_numvfs",
]
NET_FILES = [
    "address",
    "mtu",
    "speed",
    "carrier",
    "operstate",
    "flags",
    "type",
    "dev_id",
    "phys_port_name",
    "addr_assign_type",
    "pkey",
]
RDMA_FILES = ["node_guid", "fw_ver", "parent"]
RDMA_PORT_FILES = ["state", "rate", "link_layer"]
MODULE_FILES = ["version", "srcversion", "taint"]
LINK_FILES = ["current_link_speed", "current_link_width", "max_link_speed", "max_link_width"]
# Network controllers, display controllers, processing accelerators: what an inventory lists.
PCI_CLASSES = ("0x02", "0x03", "0x12")
SECURE_BOOT = "firmware/efi/efivars/SecureBoot-8be4df61-93ca-11d2-aa0d-00e098032b8c"
# The unit of each network manager: a running service has a control group.
MANAGERS = {
    "NetworkManager": "NetworkManager.service",
    "systemd-networkd": "systemd-networkd.service",
    "wicked": "wickedd.service",
}
# /proc/cpuinfo of a large server is slow to make; the flags stand in its first block.
CPUINFO_BYTES = 8192
# LLDP daemons answer at once or are not well; facts do not wait for them.
LLDP_SECONDS = 2
# The config space of a PCI function; others than root get 64 bytes.
CONFIG_BYTES = 4096


def read_inventory(roots: Roots) -> HostInventory:
    """Read the host now; CommandError and ParseError as ``read_raw`` and ``from_raw`` say."""
    return HostInventory.from_raw(read_raw(roots))


def read_raw(roots: Roots) -> dict[str, Any]:
    """Read everything that ``HostInventory.from_raw`` takes.

    CommandError when ``ip`` is missing or fails; other tools are optional.
    """
    sysfs, proc, etc = roots.sysfs, roots.proc, roots.etc
    rdma, pci = _infiniband(sysfs), _pci(sysfs)
    running = managers(roots)
    return {
        "machine_id": read_text(f"{etc}/machine-id") or "",
        "hostname": read_text(f"{proc}/sys/kernel/hostname") or "",
        "arch": read_text(f"{proc}/sys/kernel/arch") or os.uname().machine,
        "os_release": read_text(f"{etc}/os-release") or "",
        "kernel_release": read_text(f"{proc}/sys/kernel/osrelease") or "",
        "cmdline": read_text(f"{proc}/cmdline") or "",
        "cpuinfo": read_text(f"{proc}/cpuinfo", CPUINFO_BYTES) or "",
        "secure_boot": _secure_boot(sysfs),
        "iommu_groups": len(names(f"{sysfs}/kernel/iommu_groups")),
        "managers": running,
        "pci": pci,
        "bridges": _bridges(pci),
        "drivers": _drivers(sysfs, pci),
        "infiniband": rdma,
        "bonds": _bonds(sysfs, pci),
        "ip_addr": command.run(["ip", "-d", "-j", "addr", "show"]).stdout,
        "route": read_text(f"{proc}/net/route") or "",
        "ipv6_route": read_text(f"{proc}/net/ipv6_route") or "",
        "modules": read_text(f"{proc}/modules") or "",
        "ssh_connection": _ssh_connection(proc),
        "perftest": _perftest(),
        "nvidia": read_text(f"{proc}/driver/nvidia/version") or "",
        "memory_peers": names(f"{sysfs}/kernel/mm/memory_peers"),
        "reboot": reboot_reasons(roots.run),
        "lldpd": _lldp(["lldpctl", "-f", "json0"]),
        "networkd": _lldp(["networkctl", "lldp", "--json=short"]) if "systemd-networkd" in running else None,
        "ib_switches": ib_switch_io.read(rdma),
        "boot": _boot(roots),
        **port_use_io.read(sysfs, proc, bool(rdma)),
        "rail_links": files.read_record(f"{roots.state}/rail_links.json"),
    }


def managers(roots: Roots) -> list[str]:
    """Return the network managers that run, ordered by name."""
    found = [name for name, unit in MANAGERS.items() if systemd.runs(roots, unit)]
    interfaces = read_text(f"{roots.etc}/network/interfaces") or ""
    stanzas = [line.split() for line in interfaces.splitlines() if line.startswith("iface ")]
    # ifupdown runs no service; it is in use when it configures more than the loopback.
    if any(words[1] != "lo" for words in stanzas if len(words) > 1):
        found.append("ifupdown")
    return sorted(found)


def _pci(sysfs: str) -> dict[str, Any]:
    found: dict[str, Any] = {}
    for address in names(f"{sysfs}/bus/pci/devices"):
        folder = f"{sysfs}/bus/pci/devices/{address}"
        kind = read_text(f"{folder}/class") or ""
        if not kind.startswith(PCI_CLASSES) or os.path.exists(f"{folder}/physfn"):
            continue
        raw: dict[str, Any] = {name: read_text(f"{folder}/{name}") for name in (*PCI_FILES, *LINK_FILES)}
        raw["config"] = read_bytes(f"{folder}/config", CONFIG_BYTES)
        raw["driver"] = link_name(f"{folder}/driver")
        raw["module"] = link_name(f"{folder}/driver/module") or (raw["driver"] or "").replace("-", "_")
        raw["realpath"] = os.path.realpath(folder)
        raw["net"] = {
            name: {**net, "link_settings": ethtool_io.link_settings(name)} for name, net in netdevs(folder).items()
        }
        found[address] = raw
    return found


def _bridges(pci: Mapping[str, Any]) -> dict[str, Any]:
    """Return the bridges above the functions: address -> raw of its PCIe link."""
    folders: dict[str, str] = {}
    for raw in pci.values():
        folder = raw["realpath"]
        for address in reversed(device_path(folder)[1:-1]):
            folder = os.path.dirname(folder)
            folders[address] = folder
    return {
        address: {
            **{name: read_text(f"{folder}/{name}") for name in LINK_FILES},
            "config": read_bytes(f"{folder}/config", CONFIG_BYTES),
        }
        for address, folder in sorted(folders.items())
    }


def _drivers(sysfs: str, pci: Mapping[str, Any]) -> dict[str, Any]:
    """Return the loaded drivers of network ports and of RDMA devices: name -> raw of the module."""
    ports = {raw["driver"]: raw["module"] for raw in pci.values() if raw["class"].startswith(NETWORK_CLASS)}
    modules = {**{name: name for name in RDMA}, **ports}
    return {
        name: {file: read_text(f"{sysfs}/module/{module}/{file}") for file in MODULE_FILES}
        for name, module in modules.items()
        if name and os.path.isdir(f"{sysfs}/module/{module}")
    }


def netdevs(folder: str) -> dict[str, Any]:
    """Return name -> raw of all network devices on the PCI function that ``folder`` is."""
    # virtio has one device between the PCI function and the netdev.
    below = [name for name in names(folder) if name.startswith("virtio")]
    homes = [f"{folder}/net", *(f"{folder}/{name}/net" for name in below)]
    return {name: _net(f"{home}/{name}") for home in homes for name in names(home)}


def _net(folder: str) -> dict[str, Any]:
    raw: dict[str, Any] = {name: read_text(f"{folder}/{name}") for name in NET_FILES}
    raw["master"] = link_name(f"{folder}/master")
    raw["uppers"] = [name[6:] for name in names(folder) if name.startswith("upper_")]
    return raw


def _bonds(sysfs: str, pci: Mapping[str, Any]) -> dict[str, Any]:
    """Return name -> raw of the bonds; ``lag`` is what debugfs tells of each port of mlx5, by PCI address."""
    folders = {name: f"{sysfs}/class/net/{name}" for name in names(f"{sysfs}/class/net")}
    found = {name: folder for name, folder in folders.items() if os.path.isdir(f"{folder}/bonding")}
    ports = [address for address, raw in pci.items() if raw["driver"] == "mlx5_core"] if found else []
    lag = {address: read_text(f"{sysfs}/kernel/debug/mlx5/{address}/lag/state") for address in ports}
    return {
        name: {
            **_net(folder),
            "lag": lag,
            **{file: read_text(f"{folder}/bonding/{file}") for file in ("mode", "slaves")},
        }
        for name, folder in found.items()
    }


def _infiniband(sysfs: str) -> dict[str, Any]:
    found: dict[str, Any] = {}
    for name in names(f"{sysfs}/class/infiniband"):
        folder = f"{sysfs}/class/infiniband/{name}"
        raw: dict[str, Any] = {file: read_text(f"{folder}/{file}") for file in RDMA_FILES}
        raw.update({file: read_text(f"{folder}/ports/1/{file}") for file in RDMA_PORT_FILES})
        raw["ndev"] = read_text(f"{folder}/ports/1/gid_attrs/ndevs/0")
        raw["realpath"] = os.path.realpath(folder)
        found[name] = raw
    return found


def link_name(link: str) -> str | None:
    """Return the last part of where a link leads, None when there is no such link."""
    try:
        return os.path.basename(os.readlink(link))
    except OSError:
        return None


def _secure_boot(sysfs: str) -> bool | None:
    if not os.path.isdir(f"{sysfs}/firmware/efi"):
        return False
    content = read_bytes(f"{sysfs}/{SECURE_BOOT}", 5)
    # Four bytes of attributes, then the value.
    return None if content is None else content[4:] == b"\x01"


def _ssh_connection(proc: str) -> str:
    """Find SSH_CONNECTION in the processes above us: sudo clears it in our own environment."""
    process = "self"
    while process not in ("0", ""):
        environment = read_text(f"{proc}/{process}/environ") or ""
        for item in environment.split("\0"):
            if item.startswith("SSH_CONNECTION="):
                return item.partition("=")[2]
        status = read_text(f"{proc}/{process}/status") or ""
        parents = [line.split()[1] for line in status.splitlines() if line.startswith("PPid:")]
        process = parents[0] if parents else ""
    return ""


def _perftest() -> dict[str, str] | None:
    path = command.find("ib_write_bw")
    if not path:
        return None
    # It prints its version and exits with status 1.
    result = command.run([path, "--version"], check=False)
    return {"path": path, "output": result.stdout + result.stderr}


def _lldp(argv: list[str]) -> str | None:
    """Return what an LLDP daemon's tool prints; None when it is missing, fails or is slow."""
    if not command.find(argv[0]):
        return None
    try:
        return command.run(argv, timeout=LLDP_SECONDS).stdout
    except CommandError:
        return None


def boot_id(roots: Roots) -> str:
    """Return what is another one after each boot."""
    return read_text(f"{roots.proc}/sys/kernel/random/boot_id") or ""


def reboot_reasons(run: str) -> list[str]:
    """Return the reasons to reboot that modules left since the boot, module by module."""
    folder = f"{run}/gpufabric/reboot.d"
    lines = [(read_text(f"{folder}/{name}") or "").splitlines() for name in names(folder)]
    return [line for part in lines for line in part]


def _boot(roots: Roots) -> dict[str, Any]:
    """Read what ``_core.nextkernel`` takes; a kernel is installed when its image and its modules are there."""
    entries = f"{roots.boot}/loader/entries"
    # Red Hat and SUSE call the folder grub2.
    grub = f"{roots.boot}/grub2" if os.path.isdir(f"{roots.boot}/grub2") else f"{roots.boot}/grub"
    images = [name[len("vmlinuz-") :] for name in names(roots.boot) if name.startswith("vmlinuz-")]
    return {
        "grub_cfg": read_text(f"{grub}/grub.cfg") or "",
        "grubenv": read_text(f"{grub}/grubenv") or "",
        "entries": {name: read_text(f"{entries}/{name}") or "" for name in names(entries) if name.endswith(".conf")},
        "kernels": [release for release in images if os.path.isdir(f"{roots.modules}/{release}")],
    }
