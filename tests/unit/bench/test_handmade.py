"""The table of a converged prepare against the plain role."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
import yaml
from tests.bench import handmade
from tests.bench.loopback import Measured, Memory

OWN: dict[str, Any] = {
    "name": "gpu-1",
    "rails": [{"netdev": "rail0", "pci": "0000:18:00.0", "mtu": 4200, "address": "10.0.0.1/19", "name": "rail0"}],
}


@pytest.mark.parametrize(("wall", "within"), [(10, True), (11, False)])
def test_prepare_is_at_least_eight_times_faster_than_the_plain_role(wall: float, within: bool) -> None:
    ours, plain = (Measured(seconds, 10, 20, Memory(), count) for seconds, count in ((wall, 9), (80, 58)))
    *others, (name, share, _unit, limit) = handmade.rows(10, [[ours, plain]] * 3)
    assert name == "10 entries on loopback with 8 rails: prepare / plain role, wall time"
    assert limit is not None and (share <= limit) is within
    assert [value for _name, value, _unit, _limit in others] == [9, 58, wall, 80, 1.0]


def test_the_plain_role_has_all_that_it_requires_on_a_fixture_tree(tmp_path: Path) -> None:
    (tmp_path / "prints").mkdir()
    (tmp_path / "prints" / "ip -d -j addr show").write_text(json.dumps([{"ifname": "lo"}, {"ifname": "rail0"}]))
    given = handmade.plain_variables(tmp_path, OWN)
    specs = yaml.safe_load((handmade.PLAIN.parent / "roles/plain/meta/argument_specs.yml").read_text())
    options = specs["argument_specs"]["main"]["options"]
    assert set(given) - {"plain_hosts"} <= set(options)
    assert [set(rail) for rail in given["plain_hosts"]["gpu-1"]] == [set(options["plain_rails"]["options"])]
    (link,) = json.loads((tmp_path / "prints" / "ip -json address show dev rail0").read_text())
    assert link["ifname"] == "rail0" and "UP" in link["flags"]
    assert (tmp_path / "prints" / "sysctl").read_text() == "2\n1\n2\n"
