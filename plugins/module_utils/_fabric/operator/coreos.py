# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Hosts with CoreOS, which objects of the cluster configure: MachineConfig and NodeNetworkConfigurationPolicy.

A MachineConfig holds for all machines of a pool, so it has what is the same on them: names of ports by PCI address,
modules, sysctl values and kernel arguments. Addresses and MTU are those of one host each, and nmstate sets them.
"""

from __future__ import annotations

import ipaddress
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any
from urllib.parse import quote

from ..._common.errors import InputError
from ..._common.pci import PciAddress
from .common import metadata

_IGNITION = "3.2.0"
_ROLE = "machineconfiguration.openshift.io/role"
# What verbs and RDMA-CM need, and what each rail needs beside others in one subnet: as on other hosts.
_MODULES = ("ib_umad", "ib_uverbs", "rdma_ucm")
_SYSCTLS = {"arp_announce": "2", "arp_ignore": "1", "rp_filter": "2"}
_FIRST_TABLE = 27600


@dataclass(frozen=True)
class Kernel:
    """What the user sets for the kernel of all hosts: the options of the role host_kernel."""

    arguments: Sequence[str] = ()
    modules: Sequence[str] = ()
    sysctl: Mapping[str, Any] = field(default_factory=dict)


def objects(plan: Mapping[str, Any], kernel: Kernel) -> list[dict[str, Any]]:
    """Return the MachineConfig of the pool and the network of each host; InputError where the hosts contradict."""
    hosts = {name: host for name, host in plan["hosts"].items() if name not in plan["absent"]}
    networks = [_network(plan, host["node"] or name, host) for name, host in hosts.items()]
    return [_machine_config(plan, hosts, kernel), *networks]


def _machine_config(plan: Mapping[str, Any], hosts: Mapping[str, Any], kernel: Kernel) -> dict[str, Any]:
    pool = plan["operator"]["machine_pool"]
    meta = metadata(f"99-gpufabric-{pool}")
    meta["labels"][_ROLE] = pool
    files = {**dict(_links(hosts)), **_kernel_files(plan, kernel)}
    config = {"ignition": {"version": _IGNITION}, "storage": {"files": [_file(*item) for item in files.items()]}}
    return {
        "apiVersion": "machineconfiguration.openshift.io/v1",
        "kind": "MachineConfig",
        "metadata": meta,
        "spec": {"config": config, **({"kernelArguments": list(kernel.arguments)} if kernel.arguments else {})},
    }


def _links(hosts: Mapping[str, Any]) -> Iterator[tuple[str, str]]:
    """Yield path and text of the files that name ports."""
    names: dict[str, tuple[str, str]] = {}
    for host, own in hosts.items():
        for rail in own["rails"]:
            pci, netdev = rail["pci"], rail["netdev"]
            other, seen_on = names.setdefault(pci, (netdev, host)) if pci else (netdev, host)
            if other != netdev:
                raise InputError(
                    f"port {pci} is {other} on {seen_on} and {netdev} on {host}, and one MachineConfig names ports for"
                    " all hosts of a MachineConfigPool. Put these hosts into pools of their own, and plan each pool"
                    " with its rdma_fabric.operator.machine_pool"
                )
    for pci, (netdev, _host) in sorted(names.items()):
        path = f"/etc/systemd/network/10-gpufabric-{netdev}-{pci.replace(':', '-')}.link"
        yield path, f"[Match]\nPath={PciAddress.parse(pci).id_path}\n\n[Link]\nName={netdev}\n"


def _kernel_files(plan: Mapping[str, Any], kernel: Kernel) -> dict[str, str]:
    # A dot in the name of an interface is a slash there.
    names = [str(rail["master"]).replace(".", "/") for rail in plan["rails"]]
    of_rails = {f"net.ipv4.conf.{name}.{key}": value for name in names for key, value in _SYSCTLS.items()}
    values = {**of_rails, **kernel.sysctl}
    modules = dict.fromkeys((*_MODULES, *kernel.modules))
    return {
        "/etc/modules-load.d/gpufabric.conf": "".join(f"{name}\n" for name in modules),
        "/etc/sysctl.d/90-gpufabric.conf": "".join(f"{key} = {value}\n" for key, value in values.items()),
    }


def _file(path: str, text: str) -> dict[str, Any]:
    return {"path": path, "mode": 0o644, "overwrite": True, "contents": {"source": f"data:,{quote(text)}"}}


def _network(plan: Mapping[str, Any], node: str, host: Mapping[str, Any]) -> dict[str, Any]:
    desired: dict[str, Any] = {"interfaces": []}
    rails = {rail["name"]: rail for rail in plan["rails"]}
    for own in host["rails"]:
        rail = rails[own["rail"]]
        desired["interfaces"] += _interfaces(rail, own)
        for way in _versions(own):
            if not way.get("gateway"):
                continue
            table = _FIRST_TABLE + rail["index"]
            routes = desired.setdefault("routes", {"config": []})["config"]
            routes += [_route(rail["master"], way["gateway"], network, table=table) for network in way["routes"]]
            rules = desired.setdefault("route-rules", {"config": []})["config"]
            source = ipaddress.ip_interface(way["address"]).ip
            rules.append({"ip-from": f"{source}/{source.max_prefixlen}", "route-table": table, "priority": table})
    return {
        "apiVersion": "nmstate.io/v1",
        "kind": "NodeNetworkConfigurationPolicy",
        "metadata": metadata(f"gpufabric-{node}"),
        "spec": {"nodeSelector": {"kubernetes.io/hostname": node}, "desiredState": desired},
    }


def _interfaces(rail: Mapping[str, Any], own: Mapping[str, Any]) -> list[dict[str, Any]]:
    """Return the port of a rail, and its VLAN interface if the rail is in a VLAN; the last one has the address."""
    infiniband = rail["link_layer"] == "infiniband"
    common = {"state": "up", "mtu": own["mtu"]}
    found: list[dict[str, Any]] = [
        {"name": own["netdev"], "type": "infiniband" if infiniband else "ethernet", **common}
    ]
    if infiniband:
        found[0]["infiniband"] = {"mode": "datagram", "pkey": "0xffff"}
    if own.get("vlan"):
        tag = {"base-iface": own["netdev"], "id": own["vlan"]}
        found.append({"name": rail["master"], "type": "vlan", **common, "vlan": tag})
    for way in _versions(own):
        interface = ipaddress.ip_interface(way["address"])
        address = [{"ip": str(interface.ip), "prefix-length": interface.network.prefixlen}]
        automatic = {"autoconf": False} if interface.version == 6 else {}
        found[-1][f"ipv{interface.version}"] = {"enabled": True, "dhcp": False, **automatic, "address": address}
    return found


def _versions(own: Mapping[str, Any]) -> list[Mapping[str, Any]]:
    """Return address and router of each version of IP that a rail of a host has."""
    return [way for way in (own, own.get("ipv6") or {}) if way.get("address")]


def _route(interface: str, gateway: str, network: str, *, table: int) -> dict[str, Any]:
    return {
        "destination": network,
        "next-hop-address": gateway,
        "next-hop-interface": interface,
        "table-id": table,
    }
