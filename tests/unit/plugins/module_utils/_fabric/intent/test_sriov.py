"""The section rdma_fabric.sriov."""

from __future__ import annotations

from typing import Any

import pytest

from ansible_collections.gpufabric.rdma.plugins.module_utils._common.errors import InputError
from ansible_collections.gpufabric.rdma.plugins.module_utils._fabric.intent.intent import Intent
from ansible_collections.gpufabric.rdma.plugins.module_utils._fabric.intent.sriov import Sriov

NAMES = ("plain", "vfs", "other")
SECTIONS = {"sriov": ("vfs", "other")}


def read(section: Any, profile: str = "vfs") -> Sriov:
    params = {"supernet": "192.168.0.0/16", "profile": profile, "sriov": section}
    return Intent.from_params(params, NAMES, SECTIONS).sriov


def test_the_defaults() -> None:
    defaults = Sriov(
        vfs=8,
        assigned_by="operator",
        eswitch_mode="legacy",
        device_type="netdevice",
        externally_managed=False,
        rdma_mode=None,
        max_unavailable=None,
        vlan=0,
        link_state=None,
        trust=None,
        spoof_check=None,
    )
    assert read({}) == read(None, profile="plain") == defaults


def test_every_key() -> None:
    section = {
        "vfs": "16",
        "assigned_by": "operator",
        "eswitch_mode": "switchdev",
        "device_type": "netdevice",
        "externally_managed": "true",
        "rdma_mode": "exclusive",
        "max_unavailable": 2,
        "vlan": 100,
        "link_state": "enable",
        "trust": "on",
        "spoof_check": False,
    }
    expected = Sriov(16, "operator", "switchdev", "netdevice", True, "exclusive", 2, 100, "enable", True, False)
    assert read(section) == expected


@pytest.mark.parametrize(
    ("section", "message"),
    [
        ({"vfs": 0}, "vfs: expected 1 to 128, found 0"),
        ({"vfs": 129}, "vfs: expected 1 to 128, found 129"),
        ({"vlan": 4095}, "vlan: expected 0 to 4094, found 4095"),
        ({"link_state": "up"}, 'link_state: expected one of auto, enable, disable, found "up" (text)'),
        ({"rdma_mode": "both"}, 'rdma_mode: expected one of shared, exclusive, found "both" (text)'),
        ({"spoofchk": True}, 'spoofchk: unknown key; did you mean "spoof_check"?'),
        (
            {"rdma": False, "rdma_mode": "shared"},
            "rdma_mode: with rdma: false, VFs have no RDMA device. Remove rdma_mode",
        ),
        (
            {"device_type": "vfio-pci", "rdma_mode": "exclusive"},
            "rdma_mode: VFs with device_type vfio-pci have no RDMA device. Remove rdma_mode",
        ),
    ],
)
def test_what_is_refused(section: dict[str, Any], message: str) -> None:
    with pytest.raises(InputError) as caught:
        read(section)
    assert str(caught.value) == f"rdma_fabric.sriov.{message}"


@pytest.mark.parametrize("section", [{}, {"vfs": 4}])
def test_the_section_is_refused_with_a_profile_that_does_not_use_it(section: dict[str, Any]) -> None:
    with pytest.raises(InputError) as caught:
        read(section, profile="plain")
    assert str(caught.value) == (
        "rdma_fabric.sriov: is used by profile vfs or other, but rdma_fabric.profile is plain. Remove one"
    )
