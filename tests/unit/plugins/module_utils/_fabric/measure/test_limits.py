"""Expected rates against published and computed ceilings."""

from __future__ import annotations

from typing import Any

import pytest

from ansible_collections.gpufabric.rdma.plugins.module_utils._fabric.measure.limits import (
    Expectation,
    efficiency,
    expect,
    pcie_rate,
    rdma_mtu,
)

RAIL = {"name": "rail0", "link_layer": "ethernet", "mtu": 9000}


def side(**change: Any) -> dict[str, Any]:
    return {"rate": 100.0, "mtu": 4096, "floor": None, "tolerance": 0.95, **change}


@pytest.mark.parametrize(
    ("mtu", "layer", "percent"),
    [(1024, "ethernet", 92.59), (2048, "ethernet", 96.15), (4096, "ethernet", 98.04), (4096, "infiniband", 99.37)],
)
def test_efficiency(mtu: int, layer: str, percent: float) -> None:
    assert round(efficiency(mtu, layer) * 100, 2) == percent


@pytest.mark.parametrize(
    ("speed", "width", "rate"), [(8.0, 8, 57), (8.0, 16, 113), (16.0, 16, 227), (32.0, 16, 454), (5.0, 8, 29)]
)
def test_pcie_rate(speed: float, width: int, rate: int) -> None:
    assert round(pcie_rate(speed, width)) == rate


@pytest.mark.parametrize(
    ("mtu", "layer", "expected"),
    [(9000, "ethernet", 4096), (1500, "ethernet", 1024), (4096, "ethernet", 4096), (None, "ethernet", None),
     (2044, "infiniband", None), (2048, "infiniband", 2048)],
)
def test_rdma_mtu(mtu: int | None, layer: str, expected: int | None) -> None:
    assert rdma_mtu(mtu, layer) == expected


def bound(found: Expectation) -> tuple[float | None, str, float | None]:
    return (found.least and round(found.least, 2), found.bound_by, found.ceiling and round(found.ceiling, 2))


@pytest.mark.parametrize(
    ("a", "b", "planned", "expected"),
    [
        (side(), side(), None, (93.14, "link", 98.04)),
        (side(), side(rate=25.0), None, (23.28, "link", 24.51)),
        (side(), side(), 1024, (87.96, "link", 92.59)),
        (side(pcie={"speed": 8.0, "width": 8}), side(), None, (53.88, "pcie", 56.71)),
        (side(pcie={"speed": None, "width": None}), side(), None, (93.14, "link", 98.04)),
        (side(floor=0.5), side(), None, (0.5, "floor", None)),
        (side(rate=None), side(), None, (None, "unknown", None)),
        ({}, side(), None, (None, "unknown", None)),
    ],
)
def test_expect(a: dict[str, Any], b: dict[str, Any], planned: int | None, expected: tuple[Any, ...]) -> None:
    assert bound(expect(RAIL, {"a": a, "b": b}, planned)) == expected


def test_why_names_the_bound_and_the_host() -> None:
    found = expect(RAIL, {"a": side(), "b": side(rate=25.0)}, None)
    assert found.why == "95 % of the 25 Gb/s link of b at RDMA MTU 4096"
    assert expect(RAIL, {"a": side(), "b": side(rate=None)}, None).why == "the link rate or MTU of b is not known"
