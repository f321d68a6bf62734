"""The MTU of rails against the largest frames of their switch ports, as LLDP reports them. Cost: below 1 s."""

from __future__ import annotations

from typing import Any

import pytest
from tests.unit.support.plan_factory import fleet

from ansible_collections.gpufabric.rdma.plugins.module_utils._fabric.plan.plan import plan

CURE = "by LLDP). Raise the MTU of these ports, or lower rdma_fabric.mtu"


def warned(frames: list[int | None], mtu: int, **switch: str) -> list[str]:
    """What the plan of as many hosts warns of, whose switch ports of rail0 have these largest frames."""
    hosts = fleet(len(frames), rails=2)
    for number, (host, frame) in enumerate(zip(hosts.values(), frames), 1):
        told: dict[str, Any] = {
            "system": "leaf1",
            "chassis": "aa",
            "port": f"swp{number}",
            "max_frame": frame,
            **switch,
        }
        host["facts"]["ports"][1]["switch"] = told
    made = plan({"supernet": "192.168.0.0/16", "mtu": mtu}, hosts)
    return [text for text in made["warnings"] if "LLDP" in text]


@pytest.mark.parametrize(
    ("frames", "mtu", "expected"),
    [
        # Some switches count the header of 14 bytes and the checksum, some do not: all of these may carry 9000 bytes.
        ([9000, 9014, 9018, 9216], 9000, []),
        ([None, None], 9000, []),
        ([0, None], 9000, []),
        ([1518, 1518], 1500, []),
        (
            [1518, 1518, 9216],
            9000,
            [
                "gpu-[0001-0002] rail0: the MTU of the rail is 9000, and the switch ports accept frames of at most 1518"
                f" bytes (leaf1 port swp1, leaf1 port swp2, {CURE}"
            ],
        ),
        (
            [1522, 4200],
            9000,
            [
                "gpu-0001 rail0: the MTU of the rail is 9000, and the switch ports accept frames of at most 1522 bytes"
                f" (leaf1 port swp1, {CURE}",
                "gpu-0002 rail0: the MTU of the rail is 9000, and the switch ports accept frames of at most 4200 bytes"
                f" (leaf1 port swp2, {CURE}",
            ],
        ),
    ],
)
def test_switch_ports_that_drop_full_frames(frames: list[int | None], mtu: int, expected: list[str]) -> None:
    assert warned(frames, mtu) == expected


def test_a_switch_without_a_name_goes_by_its_chassis() -> None:
    (text,) = warned([1518], 9000, system="", chassis="48:b0:2d:00:00:01")
    assert "(48:b0:2d:00:00:01 port swp1, by LLDP)" in text
