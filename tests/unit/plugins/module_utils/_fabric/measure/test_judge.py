"""One step after the other, with logs as testers write them."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any

import pytest

from ansible_collections.gpufabric.rdma.plugins.module_utils._core.errors import InputError
from ansible_collections.gpufabric.rdma.plugins.module_utils._fabric.measure.evidence import Evidence, Pass
from ansible_collections.gpufabric.rdma.plugins.module_utils._fabric.measure.judge import Step, step

RAILS = ["rail0", "rail1"]
HOSTS = ["lab-1", "lab-2", "lab-3"]
ROW = " #bytes #iterations BW peak[Gb/sec] BW average[Gb/sec] MsgRate[Mpps]\n 65536 100 0.00 %s 0.1"
# (endpoint, round, rail, role, peer) -> (rc, text), or None for a frame that is missing
Answer = Callable[[str, int, str, str, str], Any]


def plan(**tests: Any) -> dict[str, Any]:
    side = {"rate": 100.0, "mtu": 4096, "floor": None, "tolerance": 0.95}
    return {
        "rails": [{"name": name, "index": i, "link_layer": "ethernet", "mtu": 9000} for i, name in enumerate(RAILS)],
        "endpoints": {"host": HOSTS, "pod": HOSTS},
        "expectations": {rail: {name: dict(side) for name in HOSTS} for rail in RAILS},
        "tests": {"duration": 10, "size": 65536, "queue_pairs": 4, "tx_depth": 128, "mtu": None, "port_base": 18500,
                  "kinds": ["write_bw"], "control": "rail", "retries": 2, **tests},
    }


def address(name: str, rail: str) -> str:
    return f"10.{rail[-1]}.0.{name[-1]}"


def described(name: str, errors: dict[str, str] | None = None, perftest: str = "6.24", mtu: int = 4096) -> str:
    lines = ["=== gpufabric describe v1"]
    for rail in RAILS:
        if rail in (errors or {}):
            lines.append(f'rail {rail} error="{(errors or {})[rail]}"')
        else:
            lines.append(f"rail {rail} device=mlx5_0 port=1 netdev={rail} gid=3 gid_type=\"RoCE v2\" "
                         f"address={address(name, rail)} mtu={mtu} rate=\"100 Gb/sec (4X EDR)\" numa=0 cpus=0")
    lines.append(f"host memlock=unlimited perftest={perftest} control=192.0.2.{name[-1]} machine_id=1")
    return "\n".join([*lines, "=== gpufabric described 2"]) + "\n"


def good(_name: str, _round: int, _rail: str, _role: str, _peer: str) -> Any:
    return 0, ROW % "97.9"


def played(found: Step, answer: Answer = good, lost: Iterable[str] = (), cut: Iterable[str] = ()) -> Pass:
    """The logs of a pass in which each test ends as ``answer`` says; ``cut`` logs lack their end."""
    logs = {}
    for name, lines in found.lines.items():
        out = [f"=== gpufabric batch {found.number} begin {len(lines) - 1}"]
        for line in lines[:-1]:
            number, rail, role, peer, *_rest = line.split()
            told = answer(name, int(number), rail, role, peer)
            if told:
                out += [f"=== gpufabric test {number} {rail} {role} {peer} rc={told[0]} start=1 seconds=2", told[1],
                        "=== gpufabric end"]
        out += [] if name in cut else [f"=== gpufabric batch {found.number} done {len(lines) - 1} 0"]
        logs[name] = "\n".join(out) + "\n"
    kept = {name: text for name, text in logs.items() if name not in lost}
    return Pass(kept, {name: "ssh: no route" for name in lost})


def everybody(*passes: Pass, **change: str) -> Evidence:
    return Evidence({**{name: described(name) for name in HOSTS}, **change}, {}, passes)


def loop(answer: Answer, **tests: Any) -> tuple[Step, int]:
    passes: list[Pass] = []
    for _turn in range(9):
        found = step(plan(**tests), "host", everybody(*passes))
        if found.done:
            return found, len(passes)
        passes.append(played(found, answer))
    raise AssertionError("the judge never said that it was done")


def verdicts(found: Step) -> dict[tuple[str, str, str], str]:
    return {(r["rail"], r["client"], r["server"]): r["verdict"] for r in found.results}


def test_the_first_step_is_the_whole_schedule() -> None:
    found = step(plan(), "host", everybody())
    assert (found.done, found.number, found.slot, found.rounds) == (False, 1, 18, 6)
    assert found.to_dict()["seconds"] == 108
    assert {name: len(lines) for name, lines in found.lines.items()} == dict.fromkeys(HOSTS, 9)
    assert found.lines["lab-1"][0].startswith("2 rail0 client 10.0.0.3 18504 write_bw -F ")
    assert len(found.results) == 12 and {r["reason"] for r in found.results} == {"not played"}
    assert {r["verdict"] for r in found.results} == {"no_data"}


def test_control_by_management_addresses() -> None:
    found = step(plan(control="management"), "host", everybody())
    assert {line.split()[3] for lines in found.lines.values() for line in lines[:-1]} == {
        "192.0.2.1", "192.0.2.2", "192.0.2.3"}


def test_all_good_is_done_after_one_pass() -> None:
    found, passes = loop(good)
    assert passes == 1 and found.lines == {} and found.summary["verdict"] == "pass"
    assert found.results[0] == {
        "where": "host", "rail": "rail0", "client": "lab-1", "server": "lab-2", "test": "write_bw", "value": 97.9,
        "unit": "Gb/s", "expected": pytest.approx(93.1355, abs=0.001), "bound_by": "link", "verdict": "pass",
        "reason": "", "passes": [{"pass": 1, "value": 97.9, "verdict": "pass", "reason": ""}],
    }
    assert found.summary["rails"][0] == {
        "where": "host", "rail": "rail0", "pairs": 6, "pass": 6, "fail": 0, "no_data": 0, "worst": 97.9, "median": 97.9}


def test_the_same_evidence_gives_the_same_step() -> None:
    first = step(plan(), "host", everybody())
    evidence = everybody(played(first, lambda *a: None if a[2] == "rail1" else good(*a)))
    assert step(plan(), "host", evidence) == step(plan(), "host", evidence)


def test_no_data_is_repeated_and_a_later_good_reading_counts() -> None:
    seen: list[str] = []

    def once(name: str, number: int, rail: str, role: str, peer: str) -> Any:
        if (name, rail, role) == ("lab-1", "rail0", "client") and peer not in seen:
            seen.append(peer)
            return 0, ROW % "0.00"
        return good(name, number, rail, role, peer)

    found, passes = loop(once)
    assert passes == 2 and found.summary["verdict"] == "pass"
    again = [r for r in found.results if len(r["passes"]) == 2]
    assert [(r["client"], r["rail"]) for r in again] == [("lab-1", "rail0")] * 2
    assert [p["verdict"] for p in again[0]["passes"]] == ["no_data", "pass"]


def test_passes_are_limited_and_end_as_no_data() -> None:
    def never(name: str, number: int, rail: str, role: str, peer: str) -> Any:
        return (0, ROW % "0.00") if rail == "rail1" else good(name, number, rail, role, peer)

    found, passes = loop(never, retries=2)
    assert passes == 3 and found.summary["verdict"] == "no_data"
    assert {v for (rail, _c, _s), v in verdicts(found).items() if rail == "rail1"} == {"no_data"}
    assert loop(never, retries=0)[1] == 1


def test_a_low_value_is_a_fail_and_is_not_repeated() -> None:
    def slow(name: str, number: int, rail: str, role: str, peer: str) -> Any:
        return (0, ROW % "9.79") if (name, rail) == ("lab-2", "rail1") else good(name, number, rail, role, peer)

    found, passes = loop(slow)
    assert passes == 1 and found.summary["verdict"] == "fail"
    bad = [r for r in found.results if r["verdict"] == "fail"]
    assert [(r["rail"], r["client"]) for r in bad] == [("rail1", "lab-2")] * 2
    assert bad[0]["reason"] == (
        "9.79 Gb/s measured, 93.1 Gb/s expected (95 % of the 100 Gb/s link of lab-1 at RDMA MTU 4096)")
    assert found.summary["findings"] == [
        f"hosts: lab-2 rail1: no test with it as sender passed, the other direction does ({bad[0]['reason']})"]


def test_more_than_the_link_can_is_no_data() -> None:
    found, _passes = loop(lambda *_a: (0, ROW % "240"))
    assert {r["verdict"] for r in found.results} == {"no_data"}
    assert found.results[0]["reason"] == (
        "240.0 Gb/s measured, more than the 98 Gb/s that is possible: a wrong reading")


def test_a_rail_that_cannot_be_used_is_not_played_and_named() -> None:
    down = described("lab-1", {"rail0": "rail0 has no link: cable, transceiver or switch port"})
    first = step(plan(), "host", everybody(**{"lab-1": down}))
    assert not [line for line in first.lines["lab-1"] if " rail0 " in line]
    found = step(plan(), "host", everybody(played(first), **{"lab-1": down}))
    assert found.done and found.number == 1
    bad = [r for r in found.results if r["verdict"] != "pass"]
    assert {(r["rail"], r["verdict"], r["reason"]) for r in bad} == {
        ("rail0", "no_data", "lab-1 rail0: rail0 has no link: cable, transceiver or switch port")}
    assert len(bad) == 4 and len(found.results) == 12
    assert found.summary["findings"] == [
        "hosts: lab-1 rail0: none of its 4 tests passed, others pass: host, NIC port or cable "
        "(lab-1 rail0: rail0 has no link: cable, transceiver or switch port)"]


def test_a_host_that_dies_is_not_used_again_and_costs_nobody_else() -> None:
    first = step(plan(), "host", everybody())
    second = step(plan(), "host", everybody(played(first, lost=["lab-3"])))
    assert second.done
    of_dead = [r for r in second.results if "lab-3" in (r["client"], r["server"])]
    assert len(of_dead) == 8 and {r["verdict"] for r in of_dead} == {"no_data"}
    assert all(r["reason"].startswith("lab-3: ssh: no route; lab-3 (") for r in of_dead)
    assert {r["verdict"] for r in second.results if r not in of_dead} == {"pass"}
    assert second.summary["findings"][0].startswith("hosts: lab-3: no test passed on any rail, others pass: the host")


def test_a_tester_that_was_killed_keeps_what_it_had_measured() -> None:
    first = step(plan(), "host", everybody())
    early: Answer = lambda n, r, rail, role, p: None if n == "lab-3" and r > 1 else good(n, r, rail, role, p)  # noqa: E731
    found = step(plan(), "host", everybody(played(first, early, cut=["lab-3"])))
    assert found.done
    assert {"pass", "no_data"} == {r["verdict"] for r in found.results if "lab-3" in (r["client"], r["server"])}
    reasons = {r["reason"] for r in found.results if r["verdict"] == "no_data"}
    assert all(reason.startswith("lab-3: its tester ended before the end of the pass; ") for reason in reasons)


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        (described("lab-2", perftest="-"), "lab-2: perftest is not installed"),
        ("Killed\n", 'lab-2: its tester did not describe itself: no line "=== gpufabric describe v1" in 1 lines'),
    ],
)
def test_endpoints_that_cannot_take_part(text: str, reason: str) -> None:
    found = step(plan(), "host", everybody(**{"lab-2": text}))
    assert {r["reason"] for r in found.results if "lab-2" in (r["client"], r["server"])} == {reason}
    assert "lab-2" not in found.lines


def test_an_absent_endpoint_is_reported_with_what_the_transport_said() -> None:
    texts = {name: described(name) for name in HOSTS[:2]}
    found = step(plan(), "pod", Evidence(texts, {"lab-3": "pod cannot be scheduled:\n  0/3 nodes\n"}))
    assert {r["reason"] for r in found.results if "lab-3" in (r["client"], r["server"])} == {
        "lab-3: pod cannot be scheduled: 0/3 nodes"}


def test_nobody_there_is_done_at_once_and_no_pass() -> None:
    found = step(plan(), "host", Evidence({}, {}))
    assert found.done and len(found.results) == 12 and found.summary["verdict"] == "no_data"


def test_a_transport_that_failed_as_a_whole_ends_it() -> None:
    found = step(plan(), "pod", Evidence({}, {}, (), "the API server does not answer"))
    assert found.done and {r["verdict"] for r in found.results} == {"no_data"}
    assert all("the API server does not answer" in r["reason"] for r in found.results)


@pytest.mark.parametrize(
    ("limit", "given"),
    [(["lab-1"], "one given (lab-1)"), (["gpu-7"], "none given (no name of the plan)")],
)
def test_fewer_than_two_hosts_are_refused(limit: list[str], given: str) -> None:
    with pytest.raises(InputError) as error:
        step(plan(), "host", everybody(), limit=limit)
    assert str(error.value) == (
        f"nothing was measured: a measurement needs two hosts, {given}; the plan knows 3: "
        "widen --limit or the group rdma_hosts")


def test_a_plan_without_rails_is_refused() -> None:
    with pytest.raises(InputError, match="nothing was measured: the plan has no rail"):
        step({**plan(), "rails": []}, "host", everybody())


def test_without_any_rate_nothing_can_be_judged_or_repeated() -> None:
    blind = plan()
    for rail in RAILS:
        for name in HOSTS:
            blind["expectations"][rail][name]["rate"] = None
    texts = {name: described(name).replace("100 Gb/sec (4X EDR)", "") for name in HOSTS}
    first = step(blind, "host", Evidence(texts, {}))
    found = step(blind, "host", Evidence(texts, {}, (played(first),)))
    assert found.done and found.results[0]["value"] == 97.9
    assert found.results[0]["reason"] == (
        "nothing to judge by: the link rate or MTU of lab-1 is not known; give rdma_fabric.thresholds.floor")


def test_a_floor_replaces_the_computation() -> None:
    low = plan()
    for rail in RAILS:
        for name in HOSTS:
            low["expectations"][rail][name]["floor"] = 0.005
    first = step(low, "host", everybody())
    found = step(low, "host", everybody(played(first, lambda *_a: (0, ROW % "0.04"))))
    assert found.summary["verdict"] == "pass" and found.results[0]["bound_by"] == "floor"


def test_a_smaller_rdma_mtu_is_a_warning() -> None:
    found = step(plan(), "host", everybody(**{"lab-3": described("lab-3", mtu=1024)}))
    assert found.warnings == ["lab-3 rail0: RDMA MTU 1024, 4096 planned", "lab-3 rail1: RDMA MTU 1024, 4096 planned"]


def test_a_slow_clock_is_a_warning() -> None:
    text = described("lab-2").replace("host memlock", "host clock=hpet memlock")
    assert step(plan(), "host", everybody(**{"lab-2": text})).warnings == [
        "lab-2: clock source hpet, not tsc: perftest may print rates of 0 (clock sampling)"]


def test_reasons_name_the_hosts_of_both_sides() -> None:
    def refused(name: str, number: int, rail: str, role: str, peer: str) -> Any:
        if (rail, name, role) == ("rail0", "lab-1", "client"):
            return 1, f"Couldn't connect to {peer}:18500"
        if (rail, peer, role) == ("rail0", "10.0.0.1", "server"):
            return 1, "Port number 1 state is Down"
        return good(name, number, rail, role, peer)

    found, _passes = loop(refused, retries=0)
    assert found.results[0]["reason"] == (
        "lab-2 (server): Port number 1 state is Down (link down); lab-1 (client): Couldn't connect to 10.0.0.2:18500 "
        "(its server never listened, or the network between them)")
