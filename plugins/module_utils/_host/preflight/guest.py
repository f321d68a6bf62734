# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What the hypervisor of a virtual machine has not set, as far as it can be seen from inside. Pure."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from ..facts.devices import Port
from ..facts.inventory import HostInventory
from ..facts.rail_ports import Rail
from ..gpu_direct.acs import ports_between
from .checks import Finding


def find(inventory: HostInventory, ports: Iterable[tuple[Rail, Port]]) -> Iterator[Finding]:
    """Yield what was found of the rails that the hypervisor passed through."""
    passed = [(rail.name, port) for rail, port in ports if port.passthrough]
    for rail, port in passed:
        if port.passthrough == "vf":
            yield from _vf(rail, port, [one.node_guid for one in inventory.rdma_devices if one.pci == port.pci])
    yield from _topology(inventory, passed)


def no_carrier(port: Port) -> str:
    """Return what to do about a port without carrier."""
    if port.passthrough != "vf":
        return "Check the cable and the switch port"
    return (
        "On the hypervisor, check the cable and the switch port of its PF, and run 'ip link set PF vf N state auto' for"
        " this VF"
    )


def _vf(rail: str, port: Port, guids: Iterable[str]) -> Iterator[Finding]:
    """Yield which identity of a VF is missing: the hypervisor sets it before it starts the virtual machine.

    With the MAC address of an Ethernet VF, mlx5_core of the hypervisor sets the node GUID too.
    """
    zero = any(_is_zero(guid) for guid in guids)
    title = f"rail {rail}: {port.title} is a virtual function (VF)"
    restart = "and then stop and start the virtual machine"
    if port.infiniband and zero:
        yield Finding(
            True,
            f"{title} without GUIDs, so its port cannot become active. On the hypervisor, run 'ip link set PF vf N"
            f" node_guid GUID port_guid GUID', {restart}",
        )
    elif not port.infiniband:
        random = ["a random MAC address, which each boot changes"] if port.netdev and port.netdev.random_mac else []
        lacks = [*random, *(["no node GUID, by which programs distinguish cards"] if zero else [])]
        if lacks:
            yield Finding(
                False,
                f"{title} with {' and '.join(lacks)}. On the hypervisor, run 'ip link set PF vf N mac MAC', {restart}",
            )


def _is_zero(guid: str) -> bool:
    return bool(guid) and not guid.strip("0:")


def _topology(inventory: HostInventory, passed: Iterable[tuple[str, Port]]) -> Iterator[Finding]:
    """Yield the rails without a GPU below their switch: only devices below one switch use it for GPUDirect RDMA."""
    gpus = inventory.gpus
    far = [rail for rail, port in passed if gpus and not any(ports_between(port.path, gpu.path) for gpu in gpus)]
    if far:
        yield Finding(
            False,
            f"in the virtual machine no GPU is below the PCIe switch of {', '.join(far)}, so programs such as NCCL use"
            " GPUDirect RDMA for none of them unless they know the topology of the hypervisor. Configure a PCIe switch"
            " for each NIC and its GPUs in the virtual machine (libvirt: controllers of model"
            " pcie-switch-upstream-port and pcie-switch-downstream-port), or set NCCL_TOPO_FILE in pods",
        )
