"""What passes beside the schedule may play: no more than was announced, nothing that is excluded. Cost: 2 s."""

from __future__ import annotations

from typing import Any

import pytest
from tests.unit.support import tester_logs

from ansible_collections.gpufabric.rdma.plugins.module_utils._fabric.intent import budgets
from ansible_collections.gpufabric.rdma.plugins.module_utils._fabric.measure.judge import passes as judge_passes
from ansible_collections.gpufabric.rdma.plugins.module_utils._fabric.measure.judge.earlier_report import (
    SCHEMA,
    EarlierReport,
    by_identity,
)
from ansible_collections.gpufabric.rdma.plugins.module_utils._fabric.measure.judge.resume import joined
from ansible_collections.gpufabric.rdma.plugins.module_utils._fabric.measure.judge.step import Step, step
from ansible_collections.gpufabric.rdma.plugins.module_utils._fabric.measure.readings.tester_log import Evidence, Pass
from ansible_collections.gpufabric.rdma.plugins.module_utils._fabric.measure.schedule.schedule import Measurement

HOSTS = [f"gpu-{number}" for number in range(1, 7)]
RAILS = ["rail0", "rail1"]
# Host, rail, role and the peer's address of the side of a test.
Side = tuple[str, str, str, str]
EARLIER = "20261122T000000Z-00000a"


def address(name: str, rail: str) -> str:
    return f"10.{rail[-1]}.0.{name[-1]}"


def plan(**tests: Any) -> dict[str, Any]:
    return tester_logs.plan(HOSTS, RAILS, **tests)


def described() -> dict[str, str]:
    port = 'device=mlx5_0 port=1 gid=3 gid_type="RoCE v2" mtu=4096 rate="100 Gb/sec (4X EDR)" numa=0 cpus=0'
    return {
        name: tester_logs.described(
            [f"{rail} {port} netdev={rail} address={address(name, rail)}" for rail in RAILS],
            "memlock=unlimited perftest=6.24 control=192.0.2.1 machine_id=1",
        )
        for name in HOSTS
    }


def play(low: Any, most: int = 30, **options: Any) -> tuple[list[list[Side]], Step]:
    """Play a run in which the sides of a test for which ``low`` is true read low; return who played in each pass."""
    tests, cpu = options.pop("tests", {}), options.pop("cpu", {})
    made = plan(**tests)
    made["rails"][0].update(options.pop("rail0", {}))
    passes: list[Pass] = []
    told = []
    hosts = {
        name: {"drivers": {"rdma_rxe": "srcversion A"}, "rails": dict.fromkeys(RAILS, {"kind": "soft"})}
        for name in HOSTS
    }
    while len(passes) < most:
        found = step(made, "host", Evidence(described(), {}, tuple(passes)), hosts=hosts, **options)
        if found.done:
            return told, found
        sides = [(name, *line.split()[1:4]) for name, own in found.lines.items() for line in own[:-1]]
        told.append(sides)
        number = found.number

        def told_first(name: str, number: int) -> str:
            own = cpu.get(name, "")
            return str(own(number) if callable(own) else own)

        def frame(name: str, line: str, number: int = number) -> str:
            rail, role, peer = line.split()[1:4]
            row = tester_logs.ROW % ("9.9" if low(number, (name, rail, role, peer)) else "97.9")
            return tester_logs.frame(line, 0, told_first(name, number) + row, "seconds=12 late=0.00 ran=10.50")

        logs = {
            name: tester_logs.log(number, own, [frame(name, line) for line in own[:-1]])
            for name, own in found.lines.items()
        }
        passes.append(Pass(logs, {}))
    raise AssertionError("the judge never said that it was done")


def bad_port(_number: int, side: Side) -> bool:
    return side[0] == "gpu-2" and side[1] == "rail0" or side[3] == address("gpu-2", "rail0")


def first_of_gpu_2(number: int, side: Side) -> bool:
    """One test of the port reads low in the schedule, and nothing afterwards."""
    ends = {address(side[0], side[1]), side[3]}
    return number == 2 and ends == {address("gpu-1", "rail0"), address("gpu-2", "rail0")}


@pytest.mark.parametrize("low", [bad_port, first_of_gpu_2])
@pytest.mark.parametrize(
    "only",
    [
        {"hosts": ["gpu-1"], "rails": ["rail0"]},
        {"pairs": [["gpu-1", "gpu-2"], ["gpu-3", "gpu-4"]]},
        {"hosts": ["gpu-2"]},
        {"rails": ["rail0"]},
    ],
)
def test_what_locates_a_fault_stays_within_only(low: Any, only: dict[str, Any]) -> None:
    told, _end = play(low, tests={"only": {"hosts": [], "rails": [], "pairs": [], **only}, "budget": "standard"})
    names = {address(name, rail): name for name in HOSTS for rail in RAILS}
    for host, rail, _role, peer in (side for sides in told for side in sides):
        pair = {host, names[peer]}
        assert not only.get("hosts") or pair & set(only["hosts"]), (pair, rail)
        assert not only.get("pairs") or any(pair == set(own) for own in only["pairs"]), (pair, rail)
        assert rail in only.get("rails", RAILS)


def test_nothing_else_is_left_out() -> None:
    told, end = play(bad_port, tests={"budget": "standard"})
    assert len(told) > 1
    assert [(one["kind"], one["host"]) for one in end.summary["diagnoses"]] == [("port", "gpu-2")]


@pytest.mark.parametrize(("change", "most"), [({}, 30 * 2), ({"repeats": 2}, 30 * 2 * 2), ({"isolation": 0}, 0)])
def test_passes_that_locate_a_fault_are_no_longer_than_announced(
    change: dict[str, Any], most: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Asked for more than a fabric of six hosts has, in every pass."""
    everything = [
        Measurement(rail, client, server, kind)
        for rail in RAILS
        for client in HOSTS
        for server in HOSTS
        if client != server
        for kind in ("write_bw", "read_bw", "send_bw")
    ]
    monkeypatch.setattr(judge_passes, "next_tests", lambda *_args, **_more: everything)
    tests = {"isolation": 2, "retries": 0, "budget": "quick", **change}
    monkeypatch.setattr(budgets, "LOCATING", 30)
    monkeypatch.setattr(budgets, "BUDGETS", {"quick": budgets.Budget(6, 0, 0.5, fills=False)})
    _told, end = play(lambda *_any: False, tests=tests)
    first = step(plan(**tests), "host", Evidence(described(), {}))
    # Five partners in both directions.
    assert end.schedule["rounds"] - 10 * change.get("repeats", 1) == most
    assert (f"; failures add up to {most} rounds to locate faults, at worst" in first.announce) == bool(most)
    assert end.schedule["seconds"] <= first.worst


def reported(results: list[dict[str, Any]], **tests: Any) -> EarlierReport:
    port = {"machine_id": "1", "device": "mlx5_0", "rate": "100 Gb/sec (4X EDR)", "pci": None, "firmware": None}
    ports = {rail: {**port, "kind": "soft", "drivers": "rdma_rxe srcversion A"} for rail in RAILS}
    return EarlierReport.read(
        {
            "schema": SCHEMA, "verdict": "fail", "results": results, "tests": plan(**tests)["tests"],
            "run": {"id": EARLIER}, "endpoints": {"host": {name: ports for name in HOSTS}},
        },
        "report.json",
    )  # fmt: skip


def result(verdict: str, value: float | None, *readings: tuple[str, float | None], **more: Any) -> dict[str, Any]:
    passes = [{"pass": 1, "value": got, "verdict": told, "reason": ""} for told, got in readings]
    about = {"where": "host", "rail": "rail0", "client": "a", "server": "b", "test": "write_bw"}
    return {**about, "value": value, "verdict": verdict, "passes": passes, **more}


@pytest.mark.parametrize(
    ("again", "verdict", "value"),
    [
        (result("pass", 98.0, ("pass", 98.0)), "pass", 98.0),
        (result("fail", 9.0, ("fail", 9.0)), "pass", 97.0),
        (result("fail", 9.0, ("fail", 9.0), ("fail", 9.5)), "fail", 9.0),
        (result("no_data", None, ("no_data", None)), "pass", 97.0),
    ],
)
def test_of_a_test_that_is_taken_over_and_measured_again_all_readings_count(
    again: dict[str, Any], verdict: str, value: float
) -> None:
    kept = result("pass", 97.0, ("pass", 97.0), resumed=EARLIER)
    other = {**kept, "server": "c"}
    gone = again["verdict"] == "no_data"
    one, two = joined([kept, other], [again], lambda _test: [gone] * len(again["passes"]))
    assert two == other
    assert (one["verdict"], one["value"], len(one["passes"])) == (verdict, value, 1 + len(again["passes"]))
    # A transfer that failed counts as a low reading of a test that passed.
    assert [bool(each.get("fault")) for each in one["passes"][1:]] == [gone] * len(again["passes"])


@pytest.mark.parametrize(("outcome", "shows"), [("fail", False), ("no_data", False), ("no_data", True)])
def test_only_what_shows_a_fault_today_is_one_of_a_test_that_is_taken_over(outcome: str, shows: bool) -> None:
    # In a result that passed, an attempt of a tester that was late has no mark.
    kept = result("pass", 97.0, ("no_data", None), ("pass", 97.0), ("pass", 98.0), resumed=EARLIER)
    again = result(outcome, None, (outcome, 9.0 if outcome == "fail" else None))
    (one,) = joined([kept], [again], lambda _test: [shows])
    assert one["verdict"] == "pass"
    assert [bool(each.get("fault")) for each in one["passes"]] == [False, False, False, shows]


def test_a_resumed_run_has_each_test_once() -> None:
    before = play(first_of_gpu_2, tests={"repeats": 3})[1].results
    assert any(one["verdict"] == "fail" for row in before for one in row["passes"])
    told, end = play(lambda *_any: False, earlier=reported(before, repeats=3), tests={"repeats": 3})
    # What read low there makes its ports suspects here, and partners are those whose tests were taken over.
    assert told
    assert len(by_identity(end.results)) == len(end.results) == len(before)
    assert any(row.get("resumed") for row in end.results)


STOPPED = "cpu nr_throttled=+30 nr_periods=+100\n"


def test_a_port_whose_tester_was_stopped_is_not_accused() -> None:
    _told, end = play(bad_port, cpu={"gpu-2": STOPPED})
    low = [row for row in end.results if "gpu-2" in (row["client"], row["server"]) and row["rail"] == "rail0"]
    assert {row["verdict"] for row in low} == {"no_data"}
    assert all(
        row["reason"].startswith("the CPU limit stopped the tester of gpu-2 in 30% of the time; ") for row in low
    )
    (found,) = end.summary["diagnoses"]
    assert (found["kind"], found["host"], found["rail"], found["confidence"]) == ("tester", "gpu-2", None, "suspected")
    assert found["text"].startswith("10 tests read too little while the CPU limit stopped the tester of gpu-2. Remove")
    assert end.summary["verdict"] == "no_data"


def test_a_reading_that_passes_counts_and_the_limit_is_a_finding() -> None:
    _told, end = play(lambda *_any: False, cpu={"gpu-2": STOPPED})
    assert end.summary["verdict"] == "pass"
    assert [(one["host"], one["rail"], one["kind"], one["found"]) for one in end.links] == [
        ("gpu-2", "rail0", "throttled", "30%"),
        ("gpu-2", "rail1", "throttled", "30%"),
    ]


def test_readings_that_a_limit_takes_away_are_a_finding_whatever_the_other_tests_show() -> None:
    """A tester says of itself that it was stopped, so it could hide low readings among others."""

    def low(number: int, side: Side) -> bool:
        return bad_port(number, side) and number == 1

    often = "cpu nr_throttled=+1 nr_periods=+1000000\n"
    shown = {"gpu-2": lambda number: STOPPED if number == 1 else often}
    _told, end = play(low, cpu=shown, tests={"repeats": 3, "retries": 2, "mesh": False})
    assert [row for row in end.results if any("CPU limit" in one["reason"] for one in row["passes"])]
    found = [one for one in end.links if one["kind"] == "throttled"]
    assert {(one["host"], one["rail"]) for one in found} == {("gpu-2", "rail0"), ("gpu-2", "rail1")}
    assert {(one["found"], one["expected"]) for one in found} == {("5% or more in 3 rounds", "0 rounds")}
    assert all("whose low readings count as no_data: 3. Remove" in one["text"] for one in found)


def test_what_is_wrong_with_the_cpus_of_many_testers_is_one_warning() -> None:
    limited = "online=0-63 allowed=0-63 quota=1.00"
    texts = {name: text.replace("machine_id=1", f"machine_id=1 {limited}") for name, text in described().items()}
    found = step(plan(), "host", Evidence(texts, {}))
    told = [text for text in found.warnings if "CPU limit" in text]
    assert told == [
        "gpu-[1-6]: the CPU limit of a tester is 1, and 2 tests at once need as many CPUs. Set cpus to 3, or remove the"
        " limit (a LimitRange of the namespace sets one)"
    ]


def test_a_member_of_a_bond_that_carries_nothing_is_a_finding() -> None:
    counted = {name: "amounts member_eth4_tx_bytes=+122000000000 member_eth4_rx_bytes=+122000000000" for name in HOSTS}
    other = " member_eth5_tx_bytes=+9000000000 member_eth5_rx_bytes=+9000000000"
    lines = {name: f"{text}{'' if name == 'gpu-3' else other}\n" for name, text in counted.items()}
    _told, end = play(lambda *_any: False, rail0={"members": ["eth4", "eth5"]}, cpu=lines)
    assert end.schedule["traffic"] == ["rail0: all members of the bond carried tests at 5 of 6 ports"]
    assert [(one["host"], one["rail"], one["kind"]) for one in end.links] == [("gpu-3", "rail0", "members")] * 2
    assert end.summary["verdict"] == "pass"
