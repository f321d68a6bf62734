# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Which GPU is nearest to a network port, by their places in the PCI tree."""

from __future__ import annotations

import dataclasses
from collections.abc import Collection, Mapping, Sequence
from typing import Any

# As `nvidia-smi topo` names the ways, best first: one PCIe switch, several, the host bridge, another host bridge of the
# NUMA node, another NUMA node.
CLASSES = ("PIX", "PXB", "PHB", "NODE", "SYS")
# Those on which a packet does not reach the processor.
BELOW_SWITCHES = ("PIX", "PXB")
# The device itself and the port of the switch above it.
_BELOW_ONE_SWITCH = 2


@dataclasses.dataclass(frozen=True)
class NearGpu:
    """A GPU's PCI address and the class of the way to it, one of ``CLASSES``."""

    bdf: str
    path: str

    def to_dict(self) -> dict[str, str]:
        """Return {bdf, path}, as plans and results hold it."""
        return dataclasses.asdict(self)


def path_class(one: Mapping[str, Any], other: Mapping[str, Any]) -> str:
    """Return the class of the way between two PCI devices ({path, numa_node} of the facts).

    A NUMA node that is not known (None) is taken for the other's: machines of one socket do not tell it.
    """
    common = 0
    for a, b in zip(one["path"], other["path"]):
        if a != b:
            break
        common += 1
    if common > 1:
        below = max(len(one["path"]), len(other["path"])) - common
        return "PIX" if below <= _BELOW_ONE_SWITCH else "PXB"
    if common == 1:
        return "PHB"
    nodes = {one.get("numa_node"), other.get("numa_node")} - {None}
    return "SYS" if len(nodes) > 1 else "NODE"


def nearest_gpu(inventory: Mapping[str, Any], port: Mapping[str, Any], taken: Collection[str] = ()) -> NearGpu | None:
    """Return the GPU of ``inventory`` (the facts of a host) that is nearest to its ``port``, None without GPUs.

    Of several that are as near, one that is not ``taken`` (PCI addresses), then the lowest address.
    """
    found = [
        (CLASSES.index(path_class(port, gpu)), gpu["pci"] in taken, gpu["pci"]) for gpu in inventory.get("gpus", ())
    ]
    if not found:
        return None
    rank, _taken, bdf = min(found)
    return NearGpu(bdf, CLASSES[rank])


def gpus_of_rails(
    inventory: Mapping[str, Any] | None, ports: Sequence[Mapping[str, Any] | None]
) -> list[NearGpu | None]:
    """Return the GPU of each port in order, None where there is no port or no GPU; two share one only if they must."""
    taken: set[str] = set()
    chosen: list[NearGpu | None] = []
    for port in ports:
        gpu = nearest_gpu(inventory, port, taken) if inventory and port else None
        if gpu:
            taken.add(gpu.bdf)
        chosen.append(gpu)
    return chosen


def gpus_of_plan(tests: Mapping[str, Any], rails: Any, hosts: Sequence[Any]) -> dict[str, Any]:
    """Return {"gpus": rail -> host -> {bdf, path}} when tests use the memory of GPUs, and nccl_gpus when NCCL does.

    ``rails``: RailMap; ``hosts``: Host, of which those of the run with facts count.
    """
    keys = [key for key, used in (("gpus", tests["memory"] != "host"), ("nccl_gpus", tests["nccl"]["enabled"])) if used]
    made: dict[str, dict[str, dict[str, Any]]] = {key: {name: {} for name in rails.names} for key in keys}
    for host in hosts if keys else ():
        if host.facts and host.limited:
            for name, gpu in zip(rails.names, gpus_of_rails(host.facts, rails.ports[host.name])):
                for found in made.values():
                    found[name].update({host.name: gpu.to_dict()} if gpu else {})
    return made
