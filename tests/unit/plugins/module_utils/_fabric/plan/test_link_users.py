"""Ports beside rails on the same PCIe links. Milliseconds."""

from __future__ import annotations

from typing import Any

import pytest
from tests.unit.support.plan_factory import host_facts, port, rail_port

from ansible_collections.gpufabric.rdma.plugins.module_utils._fabric.plan.plan import plan

GEN5 = {"speed": 32.0, "width": 16, "max_speed": 32.0, "max_width": 16}
# A bridge of rail1 alone, as in a server with a PCIe switch for each GPU.
ABOVE = [{"pci": "0000:97:01.0", **GEN5}]
WARNING = (
    "gpu-[0001-0002]: port eth9 (0000:9d:00.0) of 200 Gb/s is not a rail, and uses the PCIe x16 32 GT/s link of rail1,"
    " which cannot carry both at the same time. Its traffic during the measurement lowers the results of this rail."
    " Measure while it is idle"
)


def beside(pci: str = "0000:9d:00.0", **change: Any) -> dict[str, Any]:
    path = ["pci0000:97", "0000:97:01.0", "0000:98:00.0", pci]
    duty = "carries the default route"
    return port(pci, "eth9", **{"speed": 200.0, "duty": duty, "path": path, "uplinks": ABOVE, **change})


def warnings(other: dict[str, Any], **rail: Any) -> list[str]:
    rails = [rail_port(0), rail_port(1, **{"uplinks": ABOVE, **rail})]
    hosts = {
        f"gpu-{number:04d}": {"facts": host_facts(number, ports=[*rails, other]), "rdma_host": {}} for number in (1, 2)
    }
    found: list[str] = plan({"supernet": "192.168.0.0/16"}, hosts)["warnings"]
    return [text for text in found if "is not a rail, and uses" in text]


def test_a_storage_nic_behind_the_switch_of_a_rail_is_named() -> None:
    """Rail 4 of a Dell XE9680: 400 and 200 Gb/s on a link that carries 454."""
    assert warnings(beside()) == [WARNING]


@pytest.mark.parametrize(
    ("other", "rail"),
    [
        # The link carries both.
        (beside(speed=25.0), {}),
        (beside(), {"speed": 200.0, "max_speed": 200.0}),
        # It has no link, or its rate is not known.
        (beside(carrier=False, speed=None), {}),
        (beside(speed=None, max_speed=None), {}),
        # Another bridge; links that are not known, as in virtual machines.
        (beside(path=["pci0000:16", "0000:16:01.0", "0000:9d:00.0"]), {}),
        (beside(), {"uplinks": []}),
    ],
)
def test_what_is_no_matter_of_a_rail(other: dict[str, Any], rail: dict[str, Any]) -> None:
    assert warnings(other, **rail) == []


def test_the_other_port_of_a_card_is_named_by_its_fastest_rate() -> None:
    rail = rail_port(1)
    other = beside(rail["pci"][:-1] + "1", path=[], uplinks=[], speed=None, max_speed=100.0)
    assert warnings(other, uplinks=[]) == [
        WARNING.replace("0000:9d:00.0", other["pci"]).replace("200 Gb/s", "100 Gb/s")
    ]
