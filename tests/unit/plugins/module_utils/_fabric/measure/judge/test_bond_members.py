"""Which members of bonds carried tests. Cost: below 1 s."""

from __future__ import annotations

from collections import Counter
from typing import Any

import pytest

from ansible_collections.gpufabric.rdma.plugins.module_utils._fabric.measure.judge import bond_members
from ansible_collections.gpufabric.rdma.plugins.module_utils._fabric.measure.judge.port_health import Port

PLAN: dict[str, Any] = {
    "rails": [{"name": "rail0", "members": ["eth4", "eth5"]}, {"name": "rail1"}, {"name": "rail2", "members": None}]
}


def port(tx: tuple[int, int], rx: tuple[int, int], asked: int = 1000) -> Port:
    names = ("member_eth4_tx", "member_eth5_tx", "member_eth4_rx", "member_eth5_rx")
    amounts = {f"{name}_bytes": growth for name, growth in zip(names, (*tx, *rx)) if growth}
    return Port(amounts=Counter(amounts), asked=Counter({"tx": asked, "rx": asked}))


@pytest.mark.parametrize(
    ("known", "idle", "told"),
    [
        (port((600, 400), (10, 990)), [], "all members of the bond carried tests at 1 of 1 ports"),
        (port((1000, 0), (500, 500)), ["eth5 of the bond sent 0%"], "at 0 of 1 ports"),
        (port((0, 1000), (995, 5)), ["eth4 of the bond sent 0%", "eth5 of the bond received 0%"], "at 0 of 1 ports"),
        # Not the bytes of the tests: nothing is known.
        (port((500, 0), (500, 0)), [], "at 0 of 1 ports; the counters of the members were not read on gpu-1"),
        (port((0, 0), (0, 0)), [], "at 0 of 1 ports; the counters of the members were not read on gpu-1"),
    ],
)
def test_members(known: Port, idle: list[str], told: str) -> None:
    ports = {("gpu-1", "rail0"): known, ("gpu-1", "rail1"): port((1000, 0), (1000, 0))}
    found = bond_members.findings(PLAN, ports)
    assert [(one["host"], one["rail"], one["kind"]) for one in found] == [("gpu-1", "rail0", "members")] * len(idle)
    assert all(part in one["text"] for part, one in zip(idle, found))
    (sentence,) = bond_members.proofs(PLAN, ports)
    assert sentence.startswith("rail0: ") and sentence.endswith(told)


def test_without_a_bond_or_a_test_nothing_is_told() -> None:
    assert bond_members.proofs(PLAN, {("gpu-1", "rail0"): Port(), ("gpu-1", "rail1"): port((1, 0), (1, 0))}) == []
    assert bond_members.findings(PLAN, {("gpu-1", "rail1"): port((1000, 0), (1000, 0))}) == []
