# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""How pods get virtual functions of rails: the section ``rdma_fabric.sriov``."""

from __future__ import annotations

from dataclasses import dataclass

from ..._common.reader import Reader

# What the webhook of the SR-IOV operator allows for a port of NVIDIA.
_MOST_VFS = 128


@dataclass(frozen=True)
class Sriov:
    """VFs of each rail and their settings; None leaves a setting as the SR-IOV operator or the driver has it."""

    vfs: int
    eswitch_mode: str
    device_type: str
    externally_managed: bool
    rdma_mode: str | None
    max_unavailable: int | None
    vlan: int
    link_state: str | None
    trust: bool | None
    spoof_check: bool | None


def read_sriov(reader: Reader) -> Sriov:
    """Read the section; problems are noted in the reader."""
    sriov = Sriov(
        vfs=reader.integer("vfs", 8, 1, high=_MOST_VFS),
        eswitch_mode=reader.text("eswitch_mode", "legacy", choices=("legacy", "switchdev")),
        device_type=reader.text("device_type", "netdevice", choices=("netdevice", "vfio-pci")),
        externally_managed=reader.flag("externally_managed", False),
        rdma_mode=reader.text("rdma_mode", None, choices=("shared", "exclusive")),
        max_unavailable=reader.integer("max_unavailable", None, 1, high=100000),
        vlan=reader.integer("vlan", 0, 0, high=4094),
        link_state=reader.text("link_state", None, choices=("auto", "enable", "disable")),
        trust=_optional(reader, "trust"),
        spoof_check=_optional(reader, "spoof_check"),
    )
    if sriov.device_type == "vfio-pci" and sriov.rdma_mode:
        reader.refuse("rdma_mode", "VFs with device_type vfio-pci have no RDMA device. Remove rdma_mode")
    reader.close()
    return sriov


def _optional(reader: Reader, key: str) -> bool | None:
    value = reader.flag(key, False)
    return value if key in reader else None
