"""The computed expectation beside limits that others published for models. Milliseconds."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import pytest

from ansible_collections.gpufabric.rdma.plugins.module_utils._fabric.measure.judge.expectation import (
    Asked,
    expect,
    side_of,
)

PAGE = Path(__file__).parents[7] / "docs/validation.md"
LAYERS = ("ethernet", "infiniband")


def computed(rate: float, layer: str, gpu: bool) -> float:
    rail = {"name": "rail0", "link_layer": layer}
    own: dict[str, Any] = {"rate": rate, "mtu": 4096, "tolerance": 0.95, **({"gpu": "PIX"} if gpu else {})}
    sides = [side_of(rail, name, own, planned_mtu=None, asked=Asked()) for name in ("h1", "h2")]
    return expect(rail, sides, asked=Asked()).least or 0.0


def rows() -> list[list[str]]:
    table = PAGE.read_text().partition("### Published limits of hardware models")[2].partition("To use a published")[0]
    return [
        [cell.strip() for cell in line.strip("|").split("|")] for line in table.splitlines() if "Gb/s ports" in line
    ]


@pytest.mark.parametrize("row", rows(), ids=lambda row: row[0])
def test_the_page_has_what_is_computed_and_it_is_near_what_is_published(row: list[str]) -> None:
    model, limits, _source, told = row
    rate = float(re.findall(r"(\d+) Gb/s", model)[0])
    found = [computed(rate, layer, "GPU memory" in model) for layer in LAYERS]
    assert [f"{one:.1f}" for one in found] == told.split(", ")
    published = [float(number) for number in re.findall(r"\d+", limits.partition(", with")[0]) if float(number) > 50]
    assert all(one >= 0.95 * limit for one in found for limit in published)
    assert len(published) and len(rows()) == 7
