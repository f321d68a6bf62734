# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What an RDMA host asks of its kernel: IOMMU and hugepages, as kernel arguments. Pure."""

from __future__ import annotations

import dataclasses
import re
from collections.abc import Iterable, Mapping
from typing import Any, NamedTuple

from ..._common.errors import InputError

IOMMU = ("auto", "passthrough", "none")
# Vendor in /proc/cpuinfo -> what switches the IOMMU on; arm64 has it on where firmware describes one.
SWITCH = {"GenuineIntel": "intel_iommu=on", "AuthenticAMD": "amd_iommu=on"}
PASSTHROUGH = "iommu=pt"
PASSTHROUGH_ARM = "iommu.passthrough=1"
KILOBYTES = {"k": 1, "m": 1024, "g": 1024 * 1024}


class Cpu(NamedTuple):
    """What decides about the IOMMU; ``translated`` counts the IOMMU groups whose DMA is translated."""

    vendor: str
    arch: str
    virtual: bool
    translated: int


@dataclasses.dataclass(frozen=True)
class Hugepages:
    """Pages of one size in kB; ``numa_node`` None leaves it to the kernel, ``boot`` reserves them at boot."""

    size: int
    count: int
    numa_node: int | None
    boot: bool

    @property
    def argument(self) -> str:
        """The kernel arguments that reserve them: a pair, in this order."""
        size = next(f"{self.size // unit}{name}" for name, unit in _UNITS if self.size % unit == 0)
        return f"hugepagesz={size} hugepages={self.count}"


_UNITS = (("G", KILOBYTES["g"]), ("M", KILOBYTES["m"]), ("K", KILOBYTES["k"]))


def vendor_of(cpuinfo: str) -> str:
    """Return the CPU vendor of /proc/cpuinfo, empty where it names none (arm64)."""
    match = re.search(r"^vendor_id\s*:\s*(\S+)", cpuinfo, re.MULTILINE)
    return match.group(1) if match else ""


def iommu_arguments(policy: str, cpu: Cpu, live: Iterable[str], *, ours: Iterable[str]) -> list[str]:
    """Return the kernel arguments for the IOMMU.

    ``auto`` asks for passthrough where DMA is translated now, on metal. Without that there is
    nothing to gain and no reason for a boot. What came with us stays: after the boot nothing is
    translated any more. What somebody else gave the running kernel is left to them. ``live`` and
    ``ours`` are arguments of the running kernel, and those that came with us.
    """
    if policy == "none":
        return []
    passthrough = PASSTHROUGH_ARM if cpu.arch == "aarch64" else PASSTHROUGH
    if policy == "auto":
        gain = cpu.translated and passthrough not in live
        return [passthrough] if not cpu.virtual and (gain or passthrough in ours) else []
    if cpu.arch == "aarch64":
        return [passthrough]
    if cpu.vendor not in SWITCH:
        raise InputError(
            f"iommu: passthrough supports the CPU vendors {', '.join(sorted(SWITCH))} and arm64; found "
            f"'{cpu.vendor or 'none'}' on {cpu.arch}. Set iommu: none and list the arguments explicitly"
        )
    return [SWITCH[cpu.vendor], passthrough]


def parse_hugepages(items: Iterable[Mapping[str, Any]]) -> tuple[Hugepages, ...]:
    """Take the user's list; InputError for a size that is none, and for what is asked twice."""
    found: list[Hugepages] = []
    for item in items:
        pages = Hugepages(_kilobytes(item["size"]), item["count"], item.get("numa_node"), item.get("at") == "boot")
        if pages.count < 0:
            raise InputError(f"hugepages of {pages.size} kB: {pages.count} pages requested; expected 0 or more")
        if pages.boot and pages.numa_node is not None:
            raise InputError(f"hugepages of {pages.size} kB: numa_node requires at: now")
        if any(_clash(pages, other) for other in found):
            raise InputError(
                f"hugepages of {pages.size} kB are requested twice. Specify one total, or one count per NUMA node"
            )
        found.append(pages)
    return tuple(found)


def _clash(one: Hugepages, other: Hugepages) -> bool:
    return one.size == other.size and (one.numa_node == other.numa_node or None in (one.numa_node, other.numa_node))


def _kilobytes(text: str) -> int:
    match = re.fullmatch(r"(\d+)\s*([kMG])i?B?", text, re.IGNORECASE)
    if not match or not int(match.group(1)):
        raise InputError(f"'{text}' is not a size of hugepages; expected a number with kB, M or G, such as 2M or 1G")
    return int(match.group(1)) * KILOBYTES[match.group(2).lower()]
