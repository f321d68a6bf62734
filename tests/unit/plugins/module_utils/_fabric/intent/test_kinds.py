"""A kind of test is one entry: the rest of the product picks up a new one."""

from __future__ import annotations

from typing import Any

import pytest
from tests.unit.support import page
from tests.unit.support import report_factory as factory

from ansible_collections.gpufabric.rdma.plugins.module_utils._common.reader import Reader
from ansible_collections.gpufabric.rdma.plugins.module_utils._fabric.intent.kinds import KINDS, PROBE, USUAL, Kind
from ansible_collections.gpufabric.rdma.plugins.module_utils._fabric.intent.tests import complete, read_tests
from ansible_collections.gpufabric.rdma.plugins.module_utils._fabric.measure.diagnosis.follow_up import diagnose
from ansible_collections.gpufabric.rdma.plugins.module_utils._fabric.measure.diagnosis.pass_index import layers_of
from ansible_collections.gpufabric.rdma.plugins.module_utils._fabric.measure.judge.expectation import (
    Asked,
    expect,
    side_of,
)
from ansible_collections.gpufabric.rdma.plugins.module_utils._fabric.measure.judge.reproduce import covers
from ansible_collections.gpufabric.rdma.plugins.module_utils._fabric.measure.schedule.schedule import planned
from ansible_collections.gpufabric.rdma.plugins.module_utils._fabric.measure.schedule.tester_input import lines
from ansible_collections.gpufabric.rdma.plugins.module_utils._fabric.report import summary

# Small messages that the client pulls: nothing of its name says so.
TOY = Kind("fetch_small", "read_bw", sends="server", size=64, inline=False)
FLAT = {"where": "host", "rail": "r0", "test": "fetch_small"}


@pytest.fixture(autouse=True)
def toy(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(KINDS, TOY.name, TOY)


def problems(**tests: Any) -> list[str]:
    found: list[str] = []
    read_tests(Reader(tests, "rdma_fabric.tests", found))
    return found


def test_the_named_kinds_are_in_the_registry() -> None:
    assert {USUAL, PROBE} <= set(KINDS) and all(name == kind.name for name, kind in KINDS.items())
    assert not KINDS[USUAL].latency and KINDS[PROBE].latency
    assert {kind.sends for kind in KINDS.values()} == {"client", "server", "both"}


def test_the_intent_accepts_it() -> None:
    assert problems(kinds=["fetch_small"]) == []
    assert problems(kinds=["fetch_small"], inline=64) == [
        "rdma_fabric.tests.inline: fetch_small does not support inline messages. Omit inline, or measure fetch_small "
        "in a separate run"
    ]


def test_memory_of_gpus_is_refused_when_it_cannot_use_it(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(KINDS, TOY.name, Kind("fetch_small", "read_bw", gpu_memory=False))
    assert problems(kinds=["fetch_small"], memory="cuda:dmabuf") == [
        "rdma_fabric.tests.kinds: fetch_small cannot use memory cuda:dmabuf. Use write_bw or read_bw or send_bw, or"
        " set memory: host"
    ]


def test_it_is_scheduled_and_the_tester_gets_its_program_and_size() -> None:
    tests = complete({"kinds": ["fetch_small"], "directions": "one"})
    rounds = planned(["a", "b"], ["r0"], tests)
    assert [(test.kind, test.client, test.server) for round_ in rounds for test in round_] == [
        ("fetch_small", "a", "b")
    ]
    told = lines(rounds, ["r0"], tests, addresses=lambda _test: ("10.0.0.1", "10.0.0.2"))
    for own, role, peer in (("a", "client", "10.0.0.2"), ("b", "server", "10.0.0.1")):
        assert told[own] == [
            f"0 r0 {role} {peer} 18500 read_bw -F --report_gbits -c RC -q 4 -s 64 -t 128 -D 10 -f 2",
            "END 1",
        ]


def test_the_limit_of_the_side_that_sends_is_expected() -> None:
    side = {"rate": 100.0, "mtu": 4096, "floor": None, "tolerance": 1.0}
    rail, asked = {"name": "r0", "link_layer": "ethernet", "mtu": 9000}, Asked("fetch_small")
    for limited, bound in (("a", "link"), ("b", "vf")):
        planned = {name: {**side, **({"vf_rate": 10.0} if name == limited else {})} for name in ("a", "b")}
        sides = [side_of(rail, name, own, planned_mtu=None, asked=asked) for name, own in planned.items()]
        found = expect(rail, sides, asked=asked)
        assert (found.bound_by, found.unit) == (bound, "Gb/s")


def test_small_messages_say_nothing_of_the_mtu() -> None:
    assert layers_of({**FLAT, "client": "a", "server": "b"}) == ("base",)


def test_a_failed_direction_is_the_one_of_its_data() -> None:
    hosts = ("a", "b", "c", "d")
    flows = [(client, server) for client in hosts for server in hosts if client != server]
    # What "b" sends arrives nowhere; the server sends.
    results = [
        {**FLAT, "client": client, "server": server, "verdict": "fail" if server == "b" else "pass", "reason": ""}
        for client, server in flows
    ]
    (found,) = diagnose(results)
    assert (found.kind, found.host, found.direction) == ("direction", "b", "send")
    suspected = {"where": "host", "kind": "direction", "rail": "r0", "host": "b", "peer": None, "direction": "send"}
    assert [covers(suspected, one) for one in results] == [one["verdict"] == "fail" for one in results]


def test_the_report_names_it() -> None:
    results = [{**one, "test": "fetch_small"} for one in factory.results(2, 1)]
    report = summary.build(factory.plan(2, 1), results, [], context={"seconds": 3})
    files = page.files(report, {}, 8)
    for name in ("report.json", "report.html", "metrics.prom"):
        assert "fetch_small" in files[name], name
