"""Which ports and versions are surely the same as before, by kind of device."""

from __future__ import annotations

from typing import Any

import pytest
from tests.unit.support.plan_factory import host_facts, port, rdma_device

from ansible_collections.gpufabric.rdma.plugins.module_utils._fabric.measure.readings import identity

CARD = {
    "machine_id": "8d1f",
    "device": "mlx5_0",
    "rate": "400 Gb/sec",
    "kind": "pci",
    "pci": "0000:18:00.0",
    "firmware": "28.43.2026",
    "drivers": "mlx5_core 24.10",
}
SOFT = {**CARD, "device": "rxe0", "kind": "soft", "pci": None, "firmware": None, "drivers": "rdma_rxe srcversion A"}


@pytest.mark.parametrize(
    ("before", "now", "why"),
    [
        (CARD, CARD, ""),
        (SOFT, SOFT, ""),
        # Soft-RoCE on the port of a card: its address is known, and firmware is none of the device.
        ({**SOFT, "pci": "0000:01:00.0"}, {**SOFT, "pci": "0000:01:00.0"}, ""),
        ({**SOFT, "pci": "0000:01:00.0"}, SOFT, "pci was 0000:01:00.0, now unknown"),
        (CARD, {**CARD, "pci": None}, "pci was 0000:18:00.0, now unknown"),
        ({**CARD, "pci": None}, {**CARD, "pci": None}, "pci is unknown"),
        ({**CARD, "firmware": None}, {**CARD, "firmware": None}, "firmware is unknown"),
        ({**CARD, "firmware": ""}, {**CARD, "firmware": ""}, "firmware is unknown"),
        (CARD, SOFT, "device was mlx5_0, now rxe0"),
        (CARD, {**CARD, "kind": "soft"}, "kind was pci, now soft"),
        ({**CARD, "kind": None}, {**CARD, "kind": None}, "kind is unknown"),
        ({**SOFT, "kind": None}, {**SOFT, "kind": None}, "kind is unknown"),
        (CARD, {**CARD, "drivers": "mlx5_core 25.01"}, "drivers was mlx5_core 24.10, now mlx5_core 25.01"),
        ({**CARD, "drivers": None}, {**CARD, "drivers": None}, "drivers is unknown"),
        ({**SOFT, "drivers": None}, {**SOFT, "drivers": None}, "drivers is unknown"),
        ({**CARD, "machine_id": None}, {**CARD, "machine_id": None}, "machine_id is unknown"),
        (None, CARD, "not recorded in the earlier report"),
        (CARD, None, "not described today"),
        # On InfiniBand: a partition of the plan, or the first one of the port.
        (CARD, {**CARD, "pkey": "0x0001"}, "pkey was that of the port, now 0x0001"),
        ({**CARD, "pkey": "0x0001"}, CARD, "pkey was 0x0001, now that of the port"),
        ({**CARD, "pkey": "0x0001"}, {**CARD, "pkey": "0x0001"}, ""),
        # A report of before these were recorded.
        ({key: CARD[key] for key in ("machine_id", "device", "rate", "pci", "firmware")}, CARD,
         "kind was unknown, now pci"),
    ],
)  # fmt: skip
def test_ports_that_are_surely_the_same(before: Any, now: Any, why: str) -> None:
    assert identity.another(before, now) == why


PCI = "0000:18:00.0"
PLAN = {"endpoints": {"host": ["a"]}, "hosts": {"a": {"rails": [{"rail": "rail0", "pci": PCI}]}}}


NOTHING = {"link": None, "speed": None, "mtu": None, "state": None}
TODAY = {"link": "up", "speed": "400 Gb/s", "mtu": "1500", "state": "ACTIVE"}
UNKNOWN = {"pci": PCI, "driver": None, "firmware": None, "kind": None}


def facts(device: dict[str, Any] | None, driver: str | None = "mlx5_core", **drivers: str | None) -> dict[str, Any]:
    own = port(PCI, driver=driver, rdma=[device["name"]] if device else [])
    devices = [{**rdma_device(device["name"], own), **device}] if device else []
    return host_facts(
        1, ports=[own], machine_id="8d1f", kernel={"release": "6.8.0"}, perftest={"version": "6.24"},
        rdma_devices=devices, drivers=drivers,
    )  # fmt: skip


@pytest.mark.parametrize(
    ("known", "rail", "drivers"),
    [
        (facts({"name": "mlx5_0", "pci": PCI, "firmware": "28.43"}, mlx5_core="24.10", ib_core="24.10", ixgbe="5"),
         {"pci": PCI, "driver": "mlx5_core", "firmware": "28.43", "kind": "pci", **TODAY},
         {"ib_core": "24.10", "mlx5_core": "24.10"}),
        (facts({"name": "rxe0", "pci": None, "firmware": None}, "igb", igb="srcversion A", rdma_rxe="srcversion B"),
         {"pci": PCI, "driver": "igb", "firmware": None, "kind": "soft", **TODAY},
         {"igb": "srcversion A", "rdma_rxe": "srcversion B"}),
        # A driver of which nothing is known is missing, not equal.
        (facts(None), {"pci": PCI, "driver": "mlx5_core", "firmware": None, "kind": None, **TODAY, "state": None},
         {"mlx5_core": None}),
        (facts(None, None, ib_core="x"), {**UNKNOWN, **TODAY, "state": None}, {"ib_core": "x"}),
        ({}, {**UNKNOWN, **NOTHING}, {}),
    ],
)  # fmt: skip
def test_what_is_recorded_of_a_host(known: dict[str, Any], rail: dict[str, Any], drivers: dict[str, Any]) -> None:
    found = identity.read_hosts(PLAN, {"a": known})["a"]
    assert (found["rails"]["rail0"], found["drivers"]) == (rail, drivers)


WHOLE = identity.read_hosts(PLAN, {"a": facts({"name": "mlx5_0", "pci": PCI, "firmware": "28.43"}, mlx5_core="1")})
LOST = facts({"name": "mlx5_0", "pci": PCI, "firmware": None}, mlx5_core=None)
SOFT_HOST = facts({"name": "rxe0", "pci": None, "firmware": None}, "igb", igb="srcversion A", rdma_rxe="srcversion B")


@pytest.mark.parametrize(
    ("before", "now", "where", "told"),
    [
        (WHOLE, WHOLE, ["host"], []),
        (SOFT_HOST, SOFT_HOST, ["host"], []),
        (LOST, LOST, ["host"], ["a: the version of driver mlx5_core is unknown, so it cannot be compared",
                                "a: rail0 firmware is unknown, so it cannot be compared"]),
        (WHOLE, LOST, ["host"], ["a: the version of driver mlx5_core is unknown, it was 1",
                                 "a: rail0 firmware is unknown, it was 28.43"]),
        ({**SOFT_HOST, "perftest": None}, {**SOFT_HOST, "perftest": None}, ["host"],
         ["a: the version of perftest is unknown, so it cannot be compared"]),
        # In pods it is that of the image.
        ({**SOFT_HOST, "perftest": None}, {**SOFT_HOST, "perftest": None}, ["pod"], []),
        ({**SOFT_HOST, "kernel": {"release": ""}}, {**SOFT_HOST, "kernel": {"release": ""}}, ["pod"],
         ["a: the version of kernel is unknown, so it cannot be compared"]),
        ({}, {}, ["host"], ["a: its versions are unknown"]),
        (facts(None, None), facts(None, None), ["pod"],
         [f"a: rail0 {key} is unknown, so it cannot be compared" for key in ("driver", "kind")]),
    ],
)  # fmt: skip
def test_two_unknown_versions_prove_nothing(before: Any, now: Any, where: list[str], told: list[str]) -> None:
    then, today = (one if "a" in one else identity.read_hosts(PLAN, {"a": one}) for one in (before, now))
    assert sorted(identity.differences(then, today, where)) == sorted(told)
