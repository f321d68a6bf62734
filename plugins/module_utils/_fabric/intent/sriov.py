# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""How pods get virtual functions of rails: the section ``rdma_fabric.sriov``."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from ..._common.reader import Form, Reader
from .images import PULL_SECRET

SRIOV_OPERATOR, DEVICE_PLUGIN, DRA = "operator", "device_plugin", "dra"
# What only the SR-IOV operator, with its CNI plugin, can set -> the value that leaves it as it is.
_OF_OPERATOR = {
    "externally_managed": False,
    "eswitch_mode": "legacy",
    "device_type": "netdevice",
    "rdma": True,
    "rdma_mode": None,
    "max_unavailable": None,
    "vlan": 0,
    "link_state": None,
    "trust": None,
    "spoof_check": None,
    "pkey": None,
    "operator_config": {},
}
# What the webhook of the SR-IOV operator allows for a port of NVIDIA.
_MOST_VFS = 128
_PKEY = Form(r"0x[0-9a-fA-F]{1,4}", 'a partition key such as "0x8001" (quoted)')
# The other bit of a key tells full members of the partition from limited ones.
_KEY_BITS = 0x7FFF
_GUID = Form(r"([0-9a-fA-F]{2}:){7}[0-9a-fA-F]{2}", 'a GUID such as "02:00:00:00:00:00:00:01"')
_GUIDS = re.compile(rf"(?P<first>{_GUID.pattern})(-(?P<last>{_GUID.pattern}))?")
_NEEDED = {"ufm_secret": PULL_SECRET, "first_guid": _GUID, "last_guid": _GUID}


@dataclass(frozen=True)
class IbKubernetes:
    """Partitions of VFs through UFM: its Secret, the GUIDs for VFs, and the seconds between updates.

    ``reserved``: GUIDs that VFs of other clusters of the fabric have.
    """

    ufm_secret: str | None
    first_guid: str | None
    last_guid: str | None
    period: int
    reserved: tuple[str, ...] = ()


@dataclass(frozen=True)
class Sriov:
    """VFs of each rail and their settings; None leaves a setting as the SR-IOV operator or the driver has it.

    ``assigned_by``: who gives VFs to pods: the device plugin of the SR-IOV operator, that of the policy, or the
    DRA driver of the SR-IOV operator.
    """

    vfs: int
    assigned_by: str
    eswitch_mode: str
    device_type: str
    externally_managed: bool
    rdma_mode: str | None
    max_unavailable: int | None
    vlan: int
    link_state: str | None
    trust: bool | None
    spoof_check: bool | None
    rdma: bool = True
    pkey: str | None = None
    ib_kubernetes: IbKubernetes = IbKubernetes(None, None, None, 5)
    operator_config: Mapping[str, Any] = field(default_factory=dict)

    @property
    def made_on_hosts(self) -> bool:
        """Whether the role sriov makes the VFs, and not the SR-IOV operator."""
        return self.externally_managed or self.assigned_by == DEVICE_PLUGIN


def read_sriov(reader: Reader) -> Sriov:
    """Read the section; problems are noted in the reader."""
    sriov = Sriov(
        vfs=reader.integer("vfs", 8, 1, high=_MOST_VFS),
        assigned_by=reader.text("assigned_by", SRIOV_OPERATOR, choices=(SRIOV_OPERATOR, DEVICE_PLUGIN, DRA)),
        eswitch_mode=reader.text("eswitch_mode", "legacy", choices=("legacy", "switchdev")),
        device_type=reader.text("device_type", "netdevice", choices=("netdevice", "vfio-pci")),
        externally_managed=reader.flag("externally_managed", False),
        rdma_mode=reader.text("rdma_mode", None, choices=("shared", "exclusive")),
        max_unavailable=reader.integer("max_unavailable", None, 1, high=100000),
        vlan=reader.integer("vlan", 0, 0, high=4094),
        link_state=reader.text("link_state", None, choices=("auto", "enable", "disable")),
        trust=_optional(reader, "trust"),
        spoof_check=_optional(reader, "spoof_check"),
        rdma=reader.flag("rdma", True),
        pkey=read_pkey(reader),
        ib_kubernetes=_ib_kubernetes(reader.section("ib_kubernetes"), "ib_kubernetes" in reader),
        operator_config=reader.mapping("operator_config"),
    )
    if sriov.device_type == "vfio-pci" and sriov.rdma_mode:
        reader.refuse("rdma_mode", "VFs with device_type vfio-pci have no RDMA device. Remove rdma_mode")
    if not sriov.rdma and sriov.rdma_mode:
        reader.refuse("rdma_mode", "with rdma: false, VFs have no RDMA device. Remove rdma_mode")
    if not sriov.pkey and "ib_kubernetes" in reader:
        reader.refuse("ib_kubernetes", "it brings VFs into a partition. Set pkey, or remove ib_kubernetes")
    if sriov.assigned_by == DEVICE_PLUGIN:
        for key in (key for key, without in _OF_OPERATOR.items() if getattr(sriov, key) != without):
            reader.refuse(key, f"only the SR-IOV operator sets it. Remove it, or set assigned_by: {SRIOV_OPERATOR}")
    reader.close()
    return sriov


def read_pkey(reader: Reader) -> str | None:
    """Read the key of a partition; problems are noted in the reader."""
    key: str | None = reader.text("pkey", None, form=_PKEY)
    if key and not int(key, 16) & _KEY_BITS:
        reader.refuse("pkey", f"{key} is not the key of a partition: all but its first bit are zero")
    return key


def _ib_kubernetes(reader: Reader, given: bool) -> IbKubernetes:
    texts = {key: reader.text(key, None, form=form) for key, form in _NEEDED.items()}
    for key in (key for key in texts if given and key not in reader):
        reader.refuse(key, "missing")
    found = IbKubernetes(**texts, period=reader.integer("period", 5, 1, high=3600), reserved=reader.texts("reserved"))
    if found.first_guid and found.last_guid and guid_number(found.first_guid) > guid_number(found.last_guid):
        reader.refuse("last_guid", f"{found.last_guid} is below first_guid, {found.first_guid}")
    for text in found.reserved:
        _check_reserved(reader, found, text)
    reader.close()
    return found


def _check_reserved(reader: Reader, own: IbKubernetes, text: str) -> None:
    match = _GUIDS.fullmatch(text)
    if not match:
        reader.refuse("reserved", f'expected {_GUID.words}, or two with - between them, found "{text}"')
        return
    first, last = guid_number(match["first"]), guid_number(match["last"] or match["first"])
    if last < first:
        reader.refuse("reserved", f"{text}: the second GUID is below the first")
    elif (
        own.first_guid and own.last_guid and first <= guid_number(own.last_guid) and guid_number(own.first_guid) <= last
    ):
        reader.refuse(
            "reserved",
            f"{text} and the range of this cluster, {own.first_guid}-{own.last_guid}, overlap, so two VFs could get the"
            " same GUID. Set first_guid and last_guid to a range that no other cluster of the fabric has",
        )


def guid_number(text: str) -> int:
    """Return a GUID as a number."""
    return int(text.replace(":", ""), 16)


def _optional(reader: Reader, key: str) -> bool | None:
    value = reader.flag(key, False)
    return value if key in reader else None
