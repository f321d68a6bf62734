"""Makes the facts of fleets that exist nowhere, in the shape of rdma_facts.

facts = host_facts(3, rails=8)             # one host
hosts = fleet(1000, rails=8)               # {"gpu-0001": {"facts": ..., "rdma_host": {}}, ...}
plan = plan({"supernet": "192.168.0.0/16"}, hosts)
"""

from __future__ import annotations

from typing import Any


def port(pci: str, netdev: str | None = None, **other: Any) -> dict[str, Any]:
    """Return one port: a 400 Gb/s NIC of the vendor, up, without address."""
    values = {
        "pci": pci,
        "vendor": "15b3",
        "device": "1021",
        "driver": "mlx5_core",
        "netdev": netdev,
        "mac": "02:00:" + pci[5:7] + ":" + pci[8:10] + ":00:01",
        "mtu": 1500,
        "speed": 400.0,
        "max_speed": 400.0,
        "carrier": True,
        "operstate": "up",
        "link_layer": "ethernet",
        "numa_node": 0,
        "local_cpus": "0-31",
        "pcie": {"speed": 32.0, "width": 16, "max_speed": 32.0, "max_width": 16, "max_payload": 256},
        "vfs": {"total": 8, "count": 0, "rate": None},
        "master": None,
        "addresses": [],
        "rdma": [],
        "path": ["pci0000:00", pci],
        "duty": "",
        "uses": [],
        "configured": None,
        "pkey": None,
        "passthrough": None,
        "switch": None,
    }
    values.update(other)
    return values


def rdma_device(name: str, own: dict[str, Any], host: int = 0) -> dict[str, Any]:
    """Return the RDMA device of a port of host ``host``."""
    return {
        "name": name,
        "pci": own["pci"],
        "netdev": own["netdev"],
        "state": "ACTIVE",
        "link_layer": own["link_layer"],
        "rate": own["speed"],
        "active_mtu": 1024,
        "node_guid": f"b83f:d203:00{own['pci'][5:7]}:{host:04x}",
        "firmware": "28.43.1014",
    }


def configured(rail: int | str, *addresses: str) -> dict[str, Any]:
    """Return what the record says of the port of a rail."""
    return {"rail": rail if isinstance(rail, str) else f"rail{rail}", "addresses": list(addresses)}


def rail_port(rail: int, **other: Any) -> dict[str, Any]:
    """Return the port of rail 0.. as a GPU server has it, one PCI bus a rail."""
    bus = 0x18 + 0x10 * rail
    values = {"rdma": [f"mlx5_{rail}"], "netdev": f"enp{bus}s0np0", **other}
    return port(f"0000:{bus:02x}:00.0", **values)


def host_facts(number: int, rails: int = 2, ports: list[dict[str, Any]] | None = None, **other: Any) -> dict[str, Any]:
    """Return the facts of host ``number`` (1..) with a management port and ``rails`` ports of the vendor."""
    management = port(
        "0000:01:00.0",
        "eno1",
        vendor="8086",
        device="1563",
        driver="ixgbe",
        speed=10.0,
        max_speed=10.0,
        duty="carries the default route",
    )
    own = [rail_port(rail) for rail in range(rails)] if ports is None else ports
    name = f"gpu-{number:04d}"
    values = {
        "schema": 3,
        "machine_id": f"{number:032x}",
        "hostname": name,
        "arch": "x86_64",
        "os": {"id": "debian", "version": "12", "name": "Debian GNU/Linux 12 (bookworm)"},
        "kernel": {"release": "6.1.0-30-amd64", "cmdline": "quiet"},
        "virtual": False,
        "secure_boot": False,
        "iommu_groups": 40,
        "managers": ["systemd-networkd"],
        "ports": sorted([management, *own], key=lambda item: item["pci"]),
        "lost_rails": {},
        "rdma_devices": [rdma_device(name, item, number) for item in own for name in item["rdma"]],
        "gpus": [],
        "default_route": ["eno1"],
        "ssh_netdev": "eno1",
        "networks": ["10.0.2.0/24"],
        "modules": {},
        "drivers": {},
        "perftest": {"path": "/usr/bin/ib_write_bw", "version": "6.10"},
        "nvidia_driver": None,
        "memory_peers": [],
        "workloads": {"queue_pairs": 0, "holders": []},
        "reboot": [],
        "next_kernel": None,
    }
    values.update(other)
    return values


def fleet(hosts: int, rails: int = 2, link_layer: str = "ethernet") -> dict[str, dict[str, Any]]:
    """Return the hosts of a fleet as fabric_plan takes them."""
    found = {
        f"gpu-{number:04d}": {"facts": host_facts(number, rails), "rdma_host": {}} for number in range(1, hosts + 1)
    }
    for host in found.values() if link_layer != "ethernet" else ():
        for port in host["facts"]["ports"]:
            port["link_layer"] = link_layer
    return found
