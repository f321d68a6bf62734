"""One step after the other, with logs as testers write them."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable
from dataclasses import replace
from typing import Any

import pytest
from tests.unit.support import tester_logs
from tests.unit.support.tester_logs import LATENCY, ROW, frame

from ansible_collections.gpufabric.rdma.plugins.module_utils._common.errors import InputError
from ansible_collections.gpufabric.rdma.plugins.module_utils._fabric.measure.judge import passes as judge_passes
from ansible_collections.gpufabric.rdma.plugins.module_utils._fabric.measure.judge import step as judge_step
from ansible_collections.gpufabric.rdma.plugins.module_utils._fabric.measure.judge.earlier_report import (
    SCHEMA,
    EarlierReport,
)
from ansible_collections.gpufabric.rdma.plugins.module_utils._fabric.measure.judge.step import Step
from ansible_collections.gpufabric.rdma.plugins.module_utils._fabric.measure.readings.tester_log import Evidence, Pass
from ansible_collections.gpufabric.rdma.plugins.module_utils._fabric.measure.schedule.schedule import Measurement
from ansible_collections.gpufabric.rdma.plugins.module_utils._fabric.report import console
from ansible_collections.gpufabric.rdma.plugins.module_utils._fabric.report.page import page
from ansible_collections.gpufabric.rdma.plugins.module_utils._fabric.report.summary import build

RAILS = ["rail0", "rail1"]
HOSTS = ["lab-1", "lab-2", "lab-3"]
# (endpoint, round, rail, role, peer) -> (rc, text), or None for a frame that is missing
Answer = Callable[[str, int, str, str, str], Any]


def plan(**tests: Any) -> dict[str, Any]:
    return tester_logs.plan(HOSTS, RAILS, **tests)


def step(made: dict[str, Any], *args: Any, **options: Any) -> Step:
    """A step on hosts whose rails are soft-RoCE."""
    rails = {rail["name"]: {"kind": "soft"} for rail in made["rails"]}
    known = {name: {"drivers": {"rdma_rxe": "srcversion A"}, "rails": rails} for name in made["endpoints"]["host"]}
    return judge_step.step(made, *args, **{"hosts": known, **options})


def address(name: str, rail: str) -> str:
    return f"10.{rail[-1]}.0.{name[-1]}"


def described(name: str, errors: dict[str, str] | None = None, perftest: str = "6.24", mtu: int = 4096) -> str:
    lines = []
    for rail in RAILS:
        if rail in (errors or {}):
            lines.append(f'{rail} error="{(errors or {})[rail]}"')
        else:
            lines.append(
                f'{rail} device=mlx5_0 port=1 netdev={rail} gid=3 gid_type="RoCE v2" '
                f'address={address(name, rail)} mtu={mtu} rate="100 Gb/sec (4X EDR)" numa=0 cpus=0'
            )
    host = f"memlock=unlimited perftest={perftest} control=192.0.2.{name[-1]} machine_id=1"
    return tester_logs.described(lines, host)


def good(_name: str, _round: int, _rail: str, _role: str, _peer: str) -> Any:
    return 0, ROW % "97.9"


def played(found: Step, answer: Answer = good, lost: Iterable[str] = (), cut: Iterable[str] = ()) -> Pass:
    """The logs of a pass in which each test ends as ``answer`` says; ``cut`` logs lack their end."""
    logs = {}
    for name, lines in found.lines.items():
        out = []
        for line in lines[:-1]:
            number, rail, role, peer, *_rest = line.split()
            told = answer(name, int(number), rail, role, peer)
            if told:
                out.append(frame(line, *told))
        logs[name] = tester_logs.log(found.number, lines, out, name not in cut)
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
    assert (found.done, found.number, found.slot, found.rounds) == (False, 1, 16, 6)
    assert found.to_dict()["seconds"] == 96
    assert {name: len(lines) for name, lines in found.lines.items()} == dict.fromkeys(HOSTS, 9)
    assert found.lines["lab-1"][0].startswith("2 rail0 client 10.0.0.3 18504 write_bw -F ")
    # No verdict before the end, so that nothing can take half of a measurement for the whole.
    assert (found.results, found.summary, found.links, found.outliers) == ([], {}, [], [])


def test_control_by_management_addresses() -> None:
    found = step(plan(control="management"), "host", everybody())
    assert {line.split()[3] for lines in found.lines.values() for line in lines[:-1]} == {
        "192.0.2.1",
        "192.0.2.2",
        "192.0.2.3",
    }


def test_all_good_is_done_after_one_pass() -> None:
    found, passes = loop(good)
    assert passes == 1 and found.lines == {} and found.summary["verdict"] == "pass"
    assert found.results[0] == {
        "where": "host",
        "rail": "rail0",
        "client": "lab-1",
        "server": "lab-2",
        "test": "write_bw",
        "value": 97.9,
        "unit": "Gb/s",
        "expected": pytest.approx(93.1355, abs=0.001),
        "bound_by": "link",
        "verdict": "pass",
        "reason": "",
        "basis": "95 % of the 100 Gb/s link of lab-1 at RDMA MTU 4096",
        "passes": [{"pass": 1, "value": 97.9, "verdict": "pass", "reason": ""}],
    }
    assert found.summary["rails"][0] == {
        "where": "host",
        "rail": "rail0",
        "pairs": 6,
        "pass": 6,
        "fail": 0,
        "no_data": 0,
        "worst": 97.9,
        "median": 97.9,
    }


def test_the_same_evidence_gives_the_same_step() -> None:
    first = step(plan(), "host", everybody())
    evidence = everybody(played(first, lambda *a: None if a[2] == "rail1" else good(*a)))
    assert step(plan(), "host", evidence) == step(plan(), "host", evidence)


def test_verdicts_of_the_passes_so_far_are_known_before_the_end() -> None:
    first = step(plan(), "host", everybody())
    assert first.verdicts == {}
    after = step(plan(), "host", everybody(played(first, lambda *a: None if a[2] == "rail1" else good(*a))))
    assert not after.done and after.to_dict()["verdicts"] == {"pass": 6, "no_data": 6}
    assert loop(good)[0].verdicts == {"pass": 12}


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

    found, passes = loop(never, retries=2, isolation=0)
    assert passes == 3 and found.summary["verdict"] == "no_data"
    assert {v for (rail, _c, _s), v in verdicts(found).items() if rail == "rail1"} == {"no_data"}
    assert loop(never, retries=0, isolation=0)[1] == 1


def test_a_low_value_is_a_fail_and_is_not_repeated() -> None:
    def slow(name: str, number: int, rail: str, role: str, peer: str) -> Any:
        return (0, ROW % "9.79") if (name, rail) == ("lab-2", "rail1") else good(name, number, rail, role, peer)

    found, passes = loop(slow)
    assert passes == 1 and found.summary["verdict"] == "fail"
    bad = [r for r in found.results if r["verdict"] == "fail"]
    assert [(r["rail"], r["client"]) for r in bad] == [("rail1", "lab-2")] * 2
    assert bad[0]["reason"] == (
        "9.79 Gb/s measured, 93.1 Gb/s expected (95 % of the 100 Gb/s link of lab-1 at RDMA MTU 4096)"
    )
    assert found.summary["findings"] == [
        f"hosts: lab-2 rail1: no test with it as sender passed, while the other direction passed ({bad[0]['reason']})"
    ]


def test_more_than_the_link_can_is_no_data() -> None:
    found, _passes = loop(lambda *_a: (0, ROW % "240"))
    assert {r["verdict"] for r in found.results} == {"no_data"}
    assert found.results[0]["reason"] == (
        "240.0 Gb/s measured, more than the 98 Gb/s that is possible: an invalid reading"
    )


def test_a_rail_that_cannot_be_used_is_not_played_and_named() -> None:
    down = described("lab-1", {"rail0": "rail0 has no link: cable, transceiver or switch port"})
    first = step(plan(), "host", everybody(**{"lab-1": down}))
    assert not [line for line in first.lines["lab-1"] if " rail0 " in line]
    found = step(plan(), "host", everybody(played(first), **{"lab-1": down}))
    assert found.done and found.number == 1
    bad = [r for r in found.results if r["verdict"] != "pass"]
    assert {(r["rail"], r["verdict"], r["reason"]) for r in bad} == {
        ("rail0", "no_data", "lab-1 rail0: rail0 has no link: cable, transceiver or switch port")
    }
    assert len(bad) == 4 and len(found.results) == 12
    assert found.summary["findings"] == [
        "hosts: lab-1 rail0: none of its 4 tests passed, while other ports passed: check the host, NIC port and cable "
        "(lab-1 rail0: rail0 has no link: cable, transceiver or switch port)"
    ]


@pytest.mark.parametrize("field", ["seconds=" + "9" * 400, "late=inf", "ran=" + "9" * 5000])
def test_an_invalid_log_costs_its_endpoint_and_nobody_else(field: str) -> None:
    first = step(plan(), "host", everybody())
    told = played(first)
    bad = told.logs["lab-3"].replace("seconds=2", field, 1)
    found = step(plan(retries=0, isolation=0), "host", everybody(Pass({**told.logs, "lab-3": bad}, {})))
    assert found.done
    hit = [r for r in found.results if "lab-3" in (r["client"], r["server"])]
    assert {r["verdict"] for r in hit} == {"no_data"}
    assert {r["verdict"] for r in found.results if r not in hit} == {"pass"}
    assert all("lab-3: its log is not valid: " in r["reason"] for r in hit)
    json.dumps(found.to_dict(), allow_nan=False)


def test_a_reason_of_any_length_is_cut() -> None:
    told = {name: described(name) for name in HOSTS[:2]}
    found = step(plan(), "host", Evidence(told, {"lab-3": "x" * 9_000_000}, (), "gone"))
    assert max(len(r["reason"]) for r in found.results) < 5000


def test_a_management_address_that_is_no_address_keeps_the_host_from_use() -> None:
    text = described("lab-1").replace("control=192.0.2.1", 'control="192.0.2.1 18500 write_bw --out_json"')
    found = step(plan(control="management"), "host", everybody(**{"lab-1": text}))
    assert "lab-1" not in found.lines and "--out_json" not in str(found.lines)


def test_a_host_that_dies_is_not_used_again_and_costs_nobody_else() -> None:
    first = step(plan(), "host", everybody())
    second = step(plan(), "host", everybody(played(first, lost=["lab-3"])))
    assert second.done
    of_dead = [r for r in second.results if "lab-3" in (r["client"], r["server"])]
    assert len(of_dead) == 8 and {r["verdict"] for r in of_dead} == {"no_data"}
    assert all(r["reason"].startswith("lab-3: ssh: no route; lab-3 (") for r in of_dead)
    assert {r["verdict"] for r in second.results if r not in of_dead} == {"pass"}
    assert second.summary["findings"] == ["hosts: lab-3: 8 tests gave no data (ssh: no route)"]
    assert [one["confidence"] for one in second.summary["diagnoses"]] == ["suspected"]


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
    first, *_rest, found = play_all(plan(), everybody(**{"lab-2": text}))
    assert {r["reason"] for r in found.results if "lab-2" in (r["client"], r["server"])} == {reason}
    assert first.lines and "lab-2" not in first.lines


def test_an_absent_endpoint_is_reported_with_what_the_transport_said() -> None:
    texts = {name: described(name) for name in HOSTS[:2]}
    errors = {"lab-3": "pod cannot be scheduled:\n  0/3 nodes\n"}
    played_by_two = played(step(plan(), "pod", Evidence(texts, errors)))
    found = step(plan(), "pod", Evidence(texts, errors, (played_by_two,)))
    assert {r["reason"] for r in found.results if "lab-3" in (r["client"], r["server"])} == {
        "lab-3: pod cannot be scheduled: 0/3 nodes"
    }


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
        "widen --limit or the group of the fabric"
    )


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
        "nothing to judge by: the link rate or MTU of lab-1 is not known; give rdma_fabric.thresholds.floor"
    )


def test_a_floor_replaces_the_computation() -> None:
    low = plan()
    for rail in RAILS:
        for name in HOSTS:
            low["expectations"][rail][name]["floor"] = 0.005
    first = step(low, "host", everybody())
    found = step(low, "host", everybody(played(first, lambda *_a: (0, ROW % "0.04"))))
    assert found.summary["verdict"] == "pass" and found.results[0]["bound_by"] == "floor"
    assert found.warnings == []
    low["tests"].update(retries=0, isolation=0)
    impossible = step(low, "host", everybody(played(first, lambda *_a: (0, ROW % "5000"))))
    assert {r["verdict"] for r in impossible.results} == {"no_data"}


def test_a_floor_above_the_link_is_a_warning() -> None:
    high = plan(retries=0, isolation=0)
    high["expectations"]["rail0"]["lab-1"]["floor"] = high["expectations"]["rail0"]["lab-2"]["floor"] = 180.0
    for name in HOSTS:
        high["expectations"]["rail1"][name]["floor"] = 99.0
    first = step(high, "host", everybody())
    found = step(high, "host", everybody(played(first)))
    hint = "no reading is rejected as impossible there. Repair the link, or lower rdma_fabric.thresholds.floor"
    assert found.warnings == [
        f"rail0: the floor of 180 Gb/s is above the 98 Gb/s of the 100 Gb/s link of lab-1: {hint}",
        f"rail1: the floor of 99 Gb/s is above the 98 Gb/s of the 100 Gb/s link of lab-1 and 1 more: {hint}",
    ]


def test_a_smaller_rdma_mtu_is_a_warning() -> None:
    found = step(plan(), "host", everybody(**{"lab-3": described("lab-3", mtu=1024)}))
    assert [(link["host"], link["rail"], link["kind"], link["found"]) for link in found.links] == [
        ("lab-3", "rail0", "mtu", "1024"),
        ("lab-3", "rail1", "mtu", "1024"),
    ]


def test_a_slow_clock_is_a_warning() -> None:
    text = described("lab-2").replace("host memlock", "host clock=hpet memlock")
    assert step(plan(), "host", everybody(**{"lab-2": text})).warnings == [
        "lab-2: clock source hpet, not tsc: perftest may print rates of 0 (clock sampling)"
    ]


def test_cpus_far_from_the_nic_are_a_warning() -> None:
    text = described("lab-2").replace("cpus=0", "cpus=- local_cpus=32-63", 1)
    assert step(plan(), "host", everybody(**{"lab-2": text})).warnings == [
        "lab-2 rail0: the tester has no access to the CPUs near the NIC (32-63) and uses remote CPUs"
    ]


def test_an_outlier_among_passes_is_told() -> None:
    made, evidence = fleet(6, isolation=0)
    for rail in RAILS:
        for name in made["endpoints"]["host"]:
            made["expectations"][rail][name]["tolerance"] = 0.5
    last = play_all(
        made,
        evidence,
        lambda n, r, rail, role, peer: (
            0,
            ROW % ("60.0" if (n, rail, role, peer) == ("h1", "rail0", "client", "10.0.1.2") else f"97.{r}"),
        ),
    )[-1]
    assert last.summary["verdict"] == "pass"
    assert [(o["rail"], o["client"], o["server"], o["value"]) for o in last.outliers] == [("rail0", "h1", "h2", 60.0)]


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
        "(its server never listened, or the network between them)"
    )


def fleet(count: int, **tests: Any) -> tuple[dict[str, Any], Evidence]:
    """A plan of many hosts and what their testers say of themselves."""
    made = plan(**tests)
    names = [f"h{number}" for number in range(count)]
    side = made["expectations"]["rail0"]["lab-1"]
    made["endpoints"] = {"host": names, "pod": names}
    made["expectations"] = {rail: {name: dict(side) for name in names} for rail in RAILS}
    texts = {}
    for number, name in enumerate(names):
        text = described("lab-1")
        for rail in RAILS:
            text = text.replace(f"{address('lab-1', rail)} ", f"10.{rail[-1]}.1.{number} ")
        texts[name] = text
    return made, Evidence(texts, {})


def play_all(made: dict[str, Any], evidence: Evidence, answer: Answer = good, **options: Any) -> list[Step]:
    """Every step until done."""
    steps, passes = [], list(evidence.passes)
    for _turn in range(20):
        steps.append(step(made, "host", Evidence(evidence.describe, {}, tuple(passes)), **options))
        if steps[-1].done:
            return steps
        passes.append(played(steps[-1], answer))
    raise AssertionError("the judge never said that it was done")


def test_what_is_announced_before_a_pass_and_told_after_the_last() -> None:
    first, last = play_all(plan(), everybody())
    assert (
        first.announce
        == first.schedule["text"]
        == (
            "pass 1 (schedule), mode all_pairs: 12 tests of write_bw in 6 rounds of 16 s, 1 min 36 s; "
            "with all retries at worst 8 min 36 s beside the start of each pass; "
            "failures add up to 36 rounds to locate faults and up to 90 rounds (budget quick) for ports that read low"
            " intermittently, at worst 58 min 48 s"
        )
    )
    assert first.to_dict()["worst"] == 516 + (36 + 90) * 28
    assert (last.announce, last.to_dict()["worst"]) == ("", 0)
    assert {key: last.schedule[key] for key in ("mode", "rounds", "slot", "seconds", "passes")} == {
        "mode": "all_pairs",
        "rounds": 6,
        "slot": 16,
        "seconds": 96,
        "passes": 1,
    }
    assert last.schedule["text"].startswith("1 pass, 6 rounds, 1 min 36 s; perftest ran in ")


def test_a_long_schedule_learns_its_slot_from_a_trial() -> None:
    def clock(text: str, slot: int) -> str:
        out = []
        for line in text.splitlines():
            words = line.split()
            at = 1000 + int(words[3]) * slot if line.startswith("=== gpufabric test") else 0
            ran = 11.2 if " client " in line else 12.2
            out.append(line.replace("start=1 seconds=2", f"start={at} seconds=12.30 late=0.00 ran={ran}"))
        return "\n".join(out)

    made, evidence = fleet(22)
    trial = step(made, "host", evidence)
    assert (trial.rounds, trial.slot) == (4, 16) and "a trial for the length of slots" in trial.announce
    logs = {name: clock(text, 16) for name, text in played(trial).logs.items()}
    rest = step(made, "host", Evidence(evidence.describe, {}, (Pass(logs, {}),)))
    assert (rest.rounds, rest.slot, rest.number) == (38, 14, 2)
    assert rest.schedule["seconds"] == 4 * 16 + 38 * 14
    assert rest.verdicts == {
        "pass": sum(line.split()[2] == "client" for own in trial.lines.values() for line in own[:-1])
    }
    second = {name: clock(text, 14) for name, text in played(rest).logs.items()}
    done = step(made, "host", Evidence(evidence.describe, {}, (Pass(logs, {}), Pass(second, {}))))
    assert done.done and done.summary["verdict"] == "pass" and len(done.results) == 22 * 21 * 2
    # A client of 11.2 s, a server of 12.2 s.
    assert done.schedule["share"] == pytest.approx(11.7 * 42 / (4 * 16 + 38 * 14), abs=0.001)
    assert done.schedule["share"] >= 0.8
    assert set(done.schedule["lateness"].values()) == {0}


def test_repeats_show_their_spread_and_most_of_the_runs_decide() -> None:
    seen: dict[tuple[str, str, str], int] = {}

    def varies(name: str, number: int, rail: str, role: str, peer: str) -> Any:
        if role == "server":
            return good(name, number, rail, role, peer)
        turn = seen[name, rail, peer] = seen.get((name, rail, peer), 0) + 1
        third = "50.0" if (name, rail) == ("lab-1", "rail0") else "97.5"
        return 0, ROW % {1: "97.9", 2: "0.00" if name == "lab-2" else "97.0", 3: third}.get(turn, "96.9")

    steps = play_all(plan(repeats=3), everybody(), varies)
    assert [s.rounds for s in steps][:2] == [18, 2]
    results = {(r["rail"], r["client"], r["server"]): r for r in steps[-1].results}
    bad = results["rail0", "lab-1", "lab-2"]
    # One of three is too low: the test passes, and the low reading counts for its ports and paths.
    assert (bad["verdict"], bad["value"], bad["spread"]) == ("pass", 97.0, {"min": 50.0, "max": 97.9, "n": 3})
    assert [(one["kind"], one["rail"], one["count"]) for one in steps[-1].unsteady] == [("rail", "rail0", 2)]
    again = results["rail0", "lab-2", "lab-1"]
    assert (again["verdict"], again["value"], again["spread"]) == ("pass", 96.9, {"min": 96.9, "max": 97.9, "n": 3})
    assert [p["pass"] for p in again["passes"]] == [1, 1, 1, 2]


def test_fewer_runs_than_asked_for_are_no_data() -> None:
    def half(name: str, number: int, rail: str, role: str, peer: str) -> Any:
        return (0, ROW % "0.00") if number >= 6 else good(name, number, rail, role, peer)

    last = play_all(plan(repeats=2, retries=0), everybody(), half)[-1]
    assert last.summary["verdict"] == "no_data"
    assert last.results[0]["reason"].startswith("1 of 2 runs gave data; lab-1 (client): rate of 0")


def test_both_directions_at_once_must_reach_twice_as_much() -> None:
    last = play_all(plan(directions="together"), everybody(), lambda *_a: (0, ROW % "190"))[-1]
    assert last.summary["verdict"] == "pass" and len(last.results) == 6
    assert last.results[0]["expected"] == pytest.approx(0.9 * 2 * 98.0373, abs=0.001)
    slow = play_all(plan(directions="together"), everybody())[-1]
    assert slow.summary["verdict"] == "fail" and "90 % of twice the 100 Gb/s link" in slow.results[0]["reason"]


def test_several_sizes_are_tests_of_their_own() -> None:
    def sized(name: str, number: int, rail: str, role: str, peer: str) -> Any:
        return 0, (ROW % "97.9").replace(" 65536 ", " 65536 " if number < 6 else " 1048576 ")

    last = play_all(plan(sizes=[65536, 1048576]), everybody(), sized)[-1]
    assert last.summary["verdict"] == "pass"
    assert [(r["test"], r["size"]) for r in last.results[:2]] == [("write_bw", 65536), ("write_bw", 1048576)]


def test_the_sum_of_a_star_is_judged() -> None:
    made, evidence = fleet(5, mode="incast", fan=2, retries=0, isolation=0)

    def uneven(name: str, _number: int, _rail: str, _role: str, peer: str) -> Any:
        return 0, ROW % ("70.0" if (int(name[1:]) - int(peer.split(".")[-1])) % 5 == 1 else "27.0")

    last = play_all(made, evidence, uneven)[-1]
    assert last.summary["verdict"] == "pass" and len(last.results) == 2 * 5 * 2
    assert {round(r["expected"], 2) for r in last.results} == {46.57}
    low = play_all(made, evidence, lambda n, r, rail, role, peer: (0, ROW % ("20.0" if n == "h1" else "48.5")))[-1]
    bad = [r for r in low.results if r["verdict"] == "fail"]
    assert {r["server"] for r in bad} == {r["server"] for r in low.results if r["client"] == "h1"}
    assert {r["reason"].split(" measured")[0] for r in bad} == {"68.5 Gb/s"}


def test_a_star_with_a_silent_member_is_no_data_and_is_repeated_as_a_whole() -> None:
    made, evidence = fleet(5, mode="incast", fan=2, retries=1, isolation=0)
    steps = play_all(
        made, evidence, lambda n, r, rail, role, peer: (0, ROW % ("0.00" if (n, rail) == ("h1", "rail0") else "48.5"))
    )
    silent = [r for r in steps[-1].results if r["verdict"] == "no_data"]
    centres = {r["server"] for r in silent if r["client"] == "h1"}
    assert {r["server"] for r in silent} == centres and len(silent) == 2 * len(centres)
    assert {r["reason"] for r in silent if r["client"] != "h1"} == {
        f"its share is not conclusive: h1 to {centre} gave no data" for centre in centres
    }
    again = [line for lines in steps[1].lines.values() for line in lines[:-1]]
    assert steps[1].rounds == len(centres) and len(again) == 2 * len(silent)


@pytest.mark.parametrize("rate", ["slow", "silent"])
@pytest.mark.parametrize("mode", ["incast", "one_to_many"])
def test_of_a_star_that_failed_the_shares_are_measured_alone_and_only_the_bad_port_is_blamed(
    mode: str, rate: str
) -> None:
    made, evidence = fleet(10, mode=mode, fan=4, retries=0)
    steps, passes = [step(made, "host", evidence)], []
    centre = "server" if mode == "incast" else "client"

    def told(name: str, words: list[str]) -> tuple[int, str, str]:
        peer = f"h{words[3].split('.')[-1]}"
        lines = steps[-1].lines[name if words[2] == centre else peer][:-1]
        sharing = sum(line.split()[:3] == [*words[:2], centre] for line in lines)
        hit = words[1] == "rail0" and "h1" in (name, peer)
        low = 0.0 if rate == "silent" else 9.7
        return 0, "", ROW % ((low if hit else 97.9) / sharing)

    while not steps[-1].done:
        passes.append(framed(steps[-1], told))
        steps.append(step(made, "host", Evidence(evidence.describe, {}, tuple(passes))))
    last = steps[-1]
    assert [(b["kind"], b["rail"], b["host"], b["confidence"]) for b in last.summary["diagnoses"]] == [
        ("port", "rail0", "h1", "confirmed")
    ]
    # A silent share names its host by itself. Alone a test must reach what the link can, not a share of it.
    alone = [r for r in last.results if "star" not in r and r["unit"] == "Gb/s"]
    assert {(r["rail"], "h1" in (r["client"], r["server"]), r["verdict"], round(r["expected"], 1)) for r in alone} == (
        {("rail0", True, "fail", 93.1), ("rail0", False, "pass", 93.1)} if rate == "slow" else set()
    )
    shares = [r for r in last.results if r.get("star") == mode]
    assert len(shares) == 10 * 4 * 2 and {round(r["expected"], 1) for r in shares} == {23.3}


def test_the_share_of_a_star_that_passed_is_measured_again_with_its_star_when_resumed() -> None:
    made, evidence = fleet(5, mode="incast", fan=2, isolation=0)
    before = play_all(made, evidence, lambda *_a: (0, ROW % "48.5"))[-1].results
    hit = before[0]
    hit.update(verdict="fail")
    first = step(made, "host", evidence, earlier=recorded(before, made))
    again = [line.split() for name, lines in first.lines.items() for line in lines[:-1] if name == hit["server"]]
    assert [line[2] for line in again] == ["server", "server"]
    assert first.rounds == 1 and sum(len(lines) - 1 for lines in first.lines.values()) == 4


def test_loopback_measures_one_host_alone() -> None:
    last = play_all(plan(mode="loopback"), everybody(), limit=["lab-2"])[-1]
    assert [(r["client"], r["server"], r["rail"], r["peer_rail"], r["verdict"]) for r in last.results] == [
        ("lab-2", "lab-2", "rail0", "rail1", "pass"),
        ("lab-2", "lab-2", "rail1", "rail0", "pass"),
    ]


def test_a_rail_that_only_the_server_lacks_blocks_what_crosses_to_it() -> None:
    down = described("lab-2", {"rail1": "rail1 has no link: cable, transceiver or switch port"})
    last = play_all(plan(cross_rail=True), everybody(**{"lab-2": down}))[-1]
    told = {(r["rail"], r["client"], r["server"], r.get("peer_rail")): r["reason"] for r in last.results if r["reason"]}
    missing = "lab-2 rail1: rail1 has no link: cable, transceiver or switch port"
    assert told["rail0", "lab-1", "lab-2", "rail1"] == told["rail1", "lab-2", "lab-1", "rail0"] == missing
    assert ("rail1", "lab-1", "lab-2", "rail0") not in told and set(told.values()) == {missing}
    (found,) = last.summary["diagnoses"]
    assert [found[key] for key in ("kind", "rail", "host", "confidence", "failed")] == [
        "port",
        "rail1",
        "lab-2",
        "confirmed",
        8,
    ]


@pytest.mark.parametrize("floor", [None, 180.0])
@pytest.mark.parametrize("row", ["1e17", "1e305"])
@pytest.mark.parametrize("star", [{}, {"mode": "incast", "fan": 2}])
def test_a_damaged_rate_of_any_size_counts_for_no_counter(star: dict[str, Any], row: str, floor: float | None) -> None:
    """A floor above the link: no reading is rejected as impossible."""
    made, evidence = fleet(3, retries=0, isolation=0, kinds=["write_bw"], traffic=MARKED, **star)
    for own in made["expectations"].values():
        own.update({name: {**side, "floor": floor} for name, side in own.items()})
    first = step(made, "host", evidence)
    told = 0, "ran=11.00 exchange=plain", "amounts tx_prio3_bytes=+9\ncounters out_of_sequence=+1\n" + ROW % row
    last = step(made, "host", Evidence(evidence.describe, {}, (framed(first, lambda *_a: told),)))
    assert last.done and last.schedule["traffic"] == last.links == []
    assert {r["verdict"] for r in last.results} == ({"pass"} if floor and row == "1e17" else {"no_data"})
    json.dumps(last.to_dict(), allow_nan=False)


def test_what_crosses_is_judged_by_the_port_of_the_servers_rail() -> None:
    made = plan(cross_rail=True)
    made["expectations"]["rail1"]["lab-2"]["rate"] = 50.0
    found = {
        (r["rail"], r.get("peer_rail")): r["expected"]
        for r in play_all(made, everybody())[-1].results
        if (r["client"], r["server"]) == ("lab-1", "lab-2")
    }
    assert {ways: round(expected, 1) for ways, expected in found.items()} == {
        ("rail0", None): 93.1,
        ("rail0", "rail1"): 46.6,
        ("rail1", None): 46.6,
        ("rail1", "rail0"): 93.1,
    }


def test_a_port_that_also_fails_as_the_server_of_another_rail_is_blamed_with_commands_that_use_it() -> None:
    def slow(name: str, _number: int, rail: str, _role: str, peer: str) -> Any:
        hit = (name, rail) == ("lab-2", "rail1") or peer == address("lab-2", "rail1")
        return 0, ROW % ("9.9" if hit else "97.9")

    (found,) = play_all(plan(cross_rail=True), everybody(), slow)[-1].summary["diagnoses"]
    assert [found[key] for key in ("kind", "rail", "host", "confidence", "failed")] == [
        "port",
        "rail1",
        "lab-2",
        "confirmed",
        8,
    ]
    server, client = found["reproduce"]
    assert server.startswith("ssh lab-2 ") and client.startswith("ssh lab-1 ") and client.endswith(" 10.1.0.2")


GPUS = {rail: {name: {"bdf": f"0000:1{rail[-1]}:00.0", "path": "PIX"} for name in HOSTS} for rail in RAILS}


def in_gpu_memory(memory: str = "cuda:dmabuf", beside: bool = False, **more: Any) -> dict[str, Any]:
    return {**plan(memory=memory, compare_host_memory=beside, **more), "gpus": GPUS}


def test_gpu_memory_is_asked_for_and_told() -> None:
    made = in_gpu_memory()
    first, last = play_all(made, everybody())
    assert first.lines["lab-1"][0].endswith("--use_cuda_bus_id=0000:10:00.0 --use_cuda_dmabuf")
    assert last.results[0]["memory"] == "cuda:dmabuf"
    assert last.results[0]["gpu"] == {"client": GPUS["rail0"]["lab-1"], "server": GPUS["rail0"]["lab-2"]}


def test_a_rail_without_a_gpu_is_no_data_and_never_measured_in_host_memory() -> None:
    made = {**in_gpu_memory("cuda:peermem"), "gpus": {**GPUS, "rail1": {}}}
    first, probe, last = play_all(made, everybody())
    assert all("--use_cuda_bus_id=" in line for lines in first.lines.values() for line in lines[:-1])
    # The rail itself is good: that is told by a test of its own.
    assert not any("--use_cuda" in line for lines in probe.lines.values() for line in lines)
    assert [(r["rail"], r["verdict"]) for r in last.results if r["memory"] == "host"] == [("rail1", "pass")]
    silent = [r for r in last.results if r["verdict"] != "pass"]
    assert {(r["rail"], r["verdict"]) for r in silent} == {("rail1", "no_data")} and len(silent) == 6
    # The page has no path of a GPU that is not there.
    assert "gpu" not in silent[0] and page(build(made, last.results))
    assert silent[0]["reason"] == (
        "lab-1 rail1: the facts name no GPU for it, and cuda:peermem is asked for; "
        "lab-2 rail1: the facts name no GPU for it, and cuda:peermem is asked for"
    )


def played_by(made: dict[str, Any], told: Callable[[str, list[str]], tuple[int, str, str]]) -> list[Step]:
    """All steps of a measurement in which each test ends as ``told`` says."""
    steps, passes = [step(made, "host", everybody())], []
    while not steps[-1].done:
        passes.append(framed(steps[-1], told))
        steps.append(step(made, "host", everybody(*passes)))
    return steps


def test_slots_have_room_for_the_start_of_cuda_until_it_is_known() -> None:
    first = step(in_gpu_memory(), "host", everybody())
    assert (first.slot, "in 6 rounds of 28 s, 2 min 48 s" in first.announce) == (28, True)
    assert step(plan(), "host", everybody()).slot == 16
    # With late or timed-out tests each retry has one margin more, and all of it is announced.
    assert first.worst == 6 * (28 + 46 + 64) + 2 * 60 + (3 * 18 + 90) * 64


@pytest.mark.parametrize(
    ("memory", "cuda", "lacks"),
    [
        ("cuda:dmabuf", "none", "CUDA"),
        ("cuda:peermem", "none", "CUDA"),
        ("cuda:dmabuf", "peermem", "DMA-BUF for GPUs"),
        ("cuda:data_direct", "peermem", "DMA-BUF for GPUs"),
        ("cuda:data_direct", "dmabuf", "data direct"),
        ("cuda:data_direct", "data_direct", ""),
        ("cuda:peermem", "peermem", ""),
        ("cuda:dmabuf", "dmabuf", ""),
        # Its help did not come: perftest itself will tell.
        ("cuda:dmabuf", "-", ""),
    ],
)
def test_a_perftest_that_cannot_use_gpu_memory_wastes_no_slot(memory: str, cuda: str, lacks: str) -> None:
    text = described("lab-2").replace(" machine_id", f" cuda={cuda} machine_id")
    found = step(in_gpu_memory(memory, beside=True), "host", everybody(**{"lab-2": text}))
    asked = [line for name, lines in found.lines.items() for line in lines if "--use_cuda" in line and name == "lab-2"]
    assert (asked == []) is bool(lacks)
    # From host memory its ports are measured all the same.
    assert any("--use_cuda" not in line for line in found.lines["lab-2"][:-1])
    if lacks:
        passes = [played(found)]
        while not found.done:
            found = step(in_gpu_memory(memory, beside=True), "host", everybody(*passes, **{"lab-2": text}))
            passes.append(played(found))
        (diagnosis,) = found.summary["diagnoses"]
        assert (diagnosis["kind"], diagnosis["host"]) == ("configuration", "lab-2")
        assert f"lab-2: its perftest 6.24 is built without {lacks}, which {memory} needs" in diagnosis["text"]


def test_host_memory_is_measured_beside_gpu_memory() -> None:
    def told(name: str, words: list[str]) -> tuple[int, str, str]:
        gpu = any(word.startswith("--use_cuda") for word in words)
        slow = gpu and words[1] == "rail1" and "lab-2" in (name, f"lab-{words[3][-1]}")
        return 0, "", ROW % ("20.0" if slow else "97.9")

    steps = played_by(in_gpu_memory(beside=True), told)
    # All pairs of three hosts, and four rounds in which each port sends and receives.
    assert [s.rounds for s in steps][:1] == [10]
    beside = [r for r in steps[-1].results if r["memory"] == "host"]
    for side in ("client", "server"):
        assert {(r[side], r["rail"]) for r in beside} == {(name, rail) for name in HOSTS for rail in RAILS}
    assert len(beside) == 8 and {r["verdict"] for r in beside} == {"pass"}
    (found,) = steps[-1].summary["diagnoses"]
    assert (found["kind"], found["rail"], found["host"], found["confidence"]) == ("gpu", "rail1", "lab-2", "confirmed")
    assert "tests from host memory pass, tests from GPU memory do not" in found["text"]
    report = build({**in_gpu_memory(beside=True)}, steps[-1].results)
    first, second = report["gpu_memory"]
    assert (first["rail"], first["share"], first["low"], first["finding"]) == ("rail0", 1.0, 0, "")
    assert (second["rail"], second["low"]) == ("rail1", sum("lab-2" in (r["client"], r["server"]) for r in beside) // 2)
    assert second["finding"] in console.text(report) and page(report)["gpu_memory"]
    # The worst rate of a rail is not one of another memory.
    assert [row["worst"] for row in report["rails"]] == [97.9, 20.0]


def test_a_host_with_slow_memory_is_no_bad_port_or_path() -> None:
    def told(name: str, words: list[str]) -> tuple[int, str, str]:
        slow = not any(word.startswith("--use_cuda") for word in words) and "lab-2" in (name, f"lab-{words[3][-1]}")
        return 0, "", ROW % ("60.0" if slow else "97.9")

    last = played_by(in_gpu_memory(beside=True), told)[-1]
    assert {r["verdict"] for r in last.results if r["memory"] != "host"} == {"pass"}
    assert {len(r["passes"]) for r in last.results if r["verdict"] == "fail"} == {2}
    (found,) = last.summary["diagnoses"]
    assert (found["kind"], found["host"], found["confidence"]) == ("unknown", None, "suspected")
    assert "too slow from host memory, and the same pass from GPU memory" in found["text"]
    assert not last.summary.get("unsteady")
    report = build(in_gpu_memory(beside=True), last.results, parts=last.summary)
    assert report["verdict"] == "fail" and report["findings"] == [found["text"]]


def test_host_memory_is_judged_by_the_links_to_the_processor() -> None:
    made = in_gpu_memory(beside=True)
    link = {"pci": "0000:17:00.0", "speed": 8.0, "width": 8, "rails": list(RAILS)}
    for sides in made["expectations"].values():
        for side in sides.values():
            side.update(pcie={"speed": 16.0, "width": 16, "max_payload": 256, "ports": 1}, host_uplinks=[link])
    made["tests"]["host_sharing"] = [list(RAILS)]
    steps = played_by(made, lambda _name, words: (0, "", ROW % ("95.0" if "--use_cuda" in str(words) else "56.0")))
    found = {r["memory"]: (r["bound_by"], round(r["expected"]), r["verdict"]) for r in steps[-1].results}
    assert found == {"cuda:dmabuf": ("gpu", 90, "pass"), "host": ("pcie", 54, "pass")}
    # Rails that share this link go in opposite directions, or in turns.
    for lines in steps[0].lines.values():
        own = [line.split() for line in lines[:-1] if "--use_cuda" not in line]
        clients = [words[0] for words in own if words[2] == "client"]
        assert own and len(clients) == len(set(clients))


@pytest.mark.parametrize(("also_from_host_memory", "kind"), [(False, "gpu"), (True, "port")])
def test_a_port_that_fails_from_gpu_memory_is_probed_from_host_memory(also_from_host_memory: bool, kind: str) -> None:
    def told(name: str, words: list[str]) -> tuple[int, str, str]:
        hit = words[1] == "rail1" and "lab-2" in (name, f"lab-{words[3][-1]}")
        slow = hit and (also_from_host_memory or any(word.startswith("--use_cuda") for word in words))
        return 0, "", ROW % ("20.0" if slow else "97.9")

    steps = played_by(in_gpu_memory(), told)
    assert [s.rounds for s in steps] == [6, 2, 0]
    (found,) = steps[-1].summary["diagnoses"]
    assert (found["kind"], found["rail"], found["host"], found["confidence"]) == (kind, "rail1", "lab-2", "confirmed")
    assert ("tests from host memory pass, tests from GPU memory do not" in found["text"]) == (kind == "gpu")
    probes = [r for r in steps[-1].results if r["memory"] == "host"]
    assert {(r["rail"], r["verdict"], r["bound_by"]) for r in probes} == {
        ("rail1", "fail" if also_from_host_memory else "pass", "link")
    }
    assert len(probes) == 2 and all("gpu" not in r for r in probes)


PORT = {
    "machine_id": "1",
    "device": "mlx5_0",
    "rate": "100 Gb/sec (4X EDR)",
    "kind": "soft",
    "pci": None,
    "firmware": None,
    "drivers": "rdma_rxe srcversion A",
}


def recorded(results: list[dict[str, Any]], made: dict[str, Any], lacks: str = "", **ports: Any) -> EarlierReport:
    """The report of a run with this plan, without the key ``lacks``; ``ports``: what differs at the ports of lab-3."""
    endpoints = {
        where: {
            name: {rail["name"]: {**PORT, **(ports if name == "lab-3" else {})} for rail in made["rails"]}
            for name in made["endpoints"][where]
        }
        for where in ("host", "pod")
    }
    run = {"id": "20261122T000000Z-00000a"}
    report = {"schema": SCHEMA, "verdict": "fail", "results": results, "tests": made["tests"], "run": run}
    report["endpoints"] = endpoints
    return EarlierReport.read({key: value for key, value in report.items() if key != lacks}, "report.json")


def reported(results: list[dict[str, Any]], **tests: Any) -> EarlierReport:
    """The report of a run with these options."""
    return recorded(results, plan(**tests))


NINE: Answer = lambda *_a: (0, ROW % "9.0")  # noqa: E731


@pytest.mark.parametrize(
    ("floor", "tests", "why"),
    [
        (
            0.005,
            {},
            "12 below the current thresholds: lab-1 to lab-2 9 Gb/s measured, 93.1 Gb/s expected (95 % of the "
            "100 Gb/s link of lab-1 at RDMA MTU 4096)",
        ),
        (
            None,
            {"duration": 2, "size": 1024, "directions": "one"},
            "12 measured with other settings: duration 2, now 10; size 1024, now 65536",
        ),
        (
            None,
            {"mode": "incast", "fan": 2, "directions": "together", "mtu": 1024},
            "12 measured with other settings: mtu 1024, now None; directions together, now one way; mode incast "
            "of 2, now "
            "pairs",
        ),
        (None, None, "12 the earlier report does not record how they were measured"),
    ],
)
def test_resume_keeps_no_pass_of_other_rules(floor: float | None, tests: dict[str, Any] | None, why: str) -> None:
    lower = plan()
    for rail in RAILS:
        for name in HOSTS:
            lower["expectations"][rail][name]["floor"] = floor
    before = play_all(lower, everybody(), NINE if floor else good)[-1].results
    assert {r["verdict"] for r in before} == {"pass"}
    earlier = recorded(before, plan(**(tests or {})), "tests" if tests is None else "")
    steps = play_all(plan(), everybody(), earlier=earlier)
    assert [s.rounds for s in steps] == [6, 0]
    (told,) = steps[-1].warnings
    head = (
        "0 of 12 results are those of the earlier report: they passed there; 12 more passed in that run and "
        "are measured"
    )
    assert told == f"{head} again ({why})"


def test_what_is_kept_is_shown_with_todays_expectation() -> None:
    before = play_all(plan(), everybody(), slow_lab_2)[-1].results
    today = plan()
    for name in HOSTS:
        today["expectations"]["rail0"][name]["tolerance"] = 0.9
    last = play_all(today, everybody(), earlier=reported(before))[-1]
    kept = [r for r in last.results if r["rail"] == "rail0"]
    assert {(round(r["expected"], 2), r["basis"][:4]) for r in kept} == {(88.23, "90 %")}


def test_a_star_is_taken_over_as_a_whole() -> None:
    made, evidence = fleet(5, mode="incast", fan=2, retries=0, isolation=0)
    low: Answer = lambda n, r, rail, role, peer: (0, ROW % ("20.0" if n == "h1" else "48.5"))  # noqa: E731
    before = play_all(made, evidence, low)[-1].results
    failed = {(r["server"], r["rail"]) for r in before if r["verdict"] == "fail"}
    # A star that failed in part would be one of fewer members.
    part = [{**r, "verdict": "pass"} if r["client"] == "h1" and r["rail"] == "rail0" else r for r in before]
    for results in (before, part):
        first = step(made, "host", evidence, earlier=recorded(results, made))
        lines = [line.split() for own in first.lines.values() for line in own[:-1]]
        assert len([words for words in lines if words[2] == "server"]) == 2 * len(failed)

    def uneven(n: str, r: object, rail: str, role: str, peer: str) -> tuple[int, str]:
        return 0, ROW % ("70.0" if (int(n[1:]) - int(peer.split(".")[-1])) % 5 == 1 else "27.0")

    passed = play_all(made, evidence, uneven)[-1].results
    # Nothing is left for a mesh either.
    for mesh in (False, True):
        made["tests"]["mesh"] = mesh
        assert step(made, "host", evidence, earlier=recorded(passed, made)).done


def test_resume_measures_what_did_not_pass_and_keeps_the_rest() -> None:
    slow: Answer = lambda n, r, rail, *_a: (0, ROW % ("9.9" if (n, rail) == ("lab-2", "rail1") else "97.9"))  # noqa: E731
    before = play_all(plan(), everybody(), slow)[-1].results
    first, last = play_all(plan(), everybody(), earlier=reported(before))
    assert first.rounds == 2 and sum(len(lines) - 1 for lines in first.lines.values()) == 4
    assert last.summary["verdict"] == "pass" and len(last.results) == 12
    assert [(r["rail"], r["client"]) for r in last.results] == [(r["rail"], r["client"]) for r in before]
    assert last.warnings == ["10 of 12 results are those of the earlier report: they passed there"]
    # What is missing there is measured too, and so is everything of another place.
    assert step(plan(), "host", everybody(), earlier=reported(before[:3])).rounds > 2
    assert step(plan(), "pod", everybody(), earlier=reported(before)).rounds == 6
    assert [r["client"] for r in last.results if "resumed" not in r] == ["lab-2", "lab-2"]
    assert {r["resumed"] for r in last.results if "resumed" in r} == {"20261122T000000Z-00000a"}


def test_resume_with_nothing_left_ends_this_place_and_marks_every_result() -> None:
    before = play_all(plan(), everybody())[-1].results
    found = step(plan(), "host", everybody(), earlier=reported(before))
    assert found.done and found.number == 0 and len(found.results) == 12
    assert all(result["resumed"] for result in found.results)


def repaired() -> list[dict[str, Any]]:
    """Results of a run in which lab-1 and lab-2 failed on rail0; all others passed."""
    before = play_all(plan(), everybody())[-1].results
    for result in before:
        if result["rail"] == "rail0" and "lab-3" not in (result["client"], result["server"]):
            result.update(verdict="fail")
    return before


@pytest.mark.parametrize(
    ("describe", "errors", "reason", "lost"),
    [
        ({"lab-3": None}, {"lab-3": "no route to host"}, "lab-3: no route to host", 8),
        (
            {"lab-3": described("lab-3", {"rail1": "no link: cable, transceiver or switch port"})},
            {},
            "lab-3 rail1: no link: cable, transceiver or switch port",
            4,
        ),
        ({"lab-3": described("lab-3", perftest="-")}, {}, "lab-3: perftest is not installed", 8),
    ],
    ids=["host is gone", "cable is pulled", "no perftest"],
)
def test_resume_takes_over_nothing_of_ports_that_cannot_be_used_today(
    describe: dict[str, Any], errors: dict[str, str], reason: str, lost: int
) -> None:
    texts = {**everybody().describe, **describe}
    texts = {name: text for name, text in texts.items() if text is not None}
    steps, passes = [], []
    while not steps or not steps[-1].done:
        steps.append(step(plan(), "host", Evidence(texts, errors, tuple(passes)), earlier=reported(repaired())))
        passes.append(played(steps[-1]))
    silent = [r for r in steps[-1].results if r["verdict"] == "no_data"]
    assert len(silent) == lost and all(reason in r["reason"] for r in silent)
    assert (
        f"{lost} more passed in that run and are measured again ({lost} cannot be measured now: {reason}"
        in (steps[-1].warnings[-1])
    )


@pytest.mark.parametrize(
    ("port", "why"),
    [
        ({"machine_id": "2"}, "machine_id was 2, now 1"),
        ({"device": "mlx5_7"}, "device was mlx5_7, now mlx5_0"),
        ({"rate": "200 Gb/sec (4X HDR)"}, "rate was 200 Gb/sec (4X HDR), now 100 Gb/sec (4X EDR)"),
        ({"pci": "0000:18:00.0"}, "pci was 0000:18:00.0, now unknown"),
        ({"firmware": "28.43.2026"}, "firmware was 28.43.2026, now unknown"),
        ({"drivers": "rdma_rxe srcversion B"}, "drivers was rdma_rxe srcversion B, now rdma_rxe srcversion A"),
    ],
)
def test_resume_takes_over_nothing_of_another_port(port: dict[str, Any], why: str) -> None:
    earlier = recorded(repaired(), plan(), **port)
    first = step(plan(), "host", everybody(), earlier=earlier)
    assert sum(len(lines) - 1 for lines in first.lines.values()) == 2 * (2 + 8)
    assert (
        f"8 more passed in that run and are measured again (8 measured on another port: lab-3 rail0: {why}"
        in first.warnings[-1]
    )


SSH = "Failed to connect to the host via ssh: Connection timed out"


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        (f"Task failed: {SSH}\n", SSH),
        (f"Task failed: Action failed: {SSH}", SSH),
        ("Task failed: Module failed: no space\nleft", "no space left"),
        ("the step Task failed: x", "the step Task failed: x"),
        ("\n", ""),
        ("Task failed.\n", ""),
        ("", ""),
    ],
)
def test_reasons_are_those_of_the_host_and_never_empty(text: str, reason: str) -> None:
    silent = {name: told for name, told in everybody().describe.items() if name != "lab-3"}
    undescribed = step(plan(), "host", Evidence(silent, {"lab-3": text}, (), "Task failed: stop"))
    answered = played(step(plan(retries=0), "host", everybody()), lost=["lab-3"])
    unplayed = step(plan(retries=0), "host", everybody(Pass(answered.logs, {"lab-3": text})))
    found = [
        {r["reason"].partition("; ")[0] for r in one.results if "lab-3" in (r["client"], r["server"])}
        for one in (undescribed, unplayed)
    ]
    assert found == [{f"lab-3: {reason or 'stop'}"}, {f"lab-3: {reason or 'no log was returned'}"}]
    # The run ended in this pass, so nobody fetched the log.
    last = replace(everybody(Pass(answered.logs, {"lab-3": text})), failure="the run ended")
    ended = step(plan(retries=0), "host", last)
    told = {r["reason"].partition("; ")[0] for r in ended.results if "lab-3" in (r["client"], r["server"])}
    assert told == {f"lab-3: {reason or 'the run ended'}"}
    others = {r["reason"] for r in undescribed.results if "lab-3" not in (r["client"], r["server"])}
    assert others == {"stop"}


def test_resume_takes_over_nothing_of_unknown_ports() -> None:
    first = step(plan(), "host", everybody(), earlier=recorded(repaired(), plan(), "endpoints"))
    assert (
        first.rounds == 6
        and "(10 measured on another port: lab-1 rail0: not recorded in the earlier report" in (first.warnings[-1])
    )


def test_only_of_one_run_takes_the_place_of_that_of_the_plan() -> None:
    last = play_all(plan(only={"hosts": ["lab-1"]}), everybody(), only={"pairs": [["lab-2", "lab-3"]]})[-1]
    assert {(r["client"], r["server"]) for r in last.results} == {("lab-2", "lab-3"), ("lab-3", "lab-2")}
    with pytest.raises(InputError, match="only.hosts or pairs: gpu-7 not in this run"):
        step(plan(), "host", everybody(), only={"hosts": ["gpu-7"]})


def diagnosis(results: Any, names: Any, rails: Any, **_view: Any) -> list[Measurement]:
    """Ask for each failed test with the first host that is not in it, as long as there is one."""
    assert (names, rails) == (HOSTS, RAILS)
    known = {(r["rail"], r["client"], r["server"], r["test"]) for r in results.results}
    asked = []
    for r in results.results:
        if r["verdict"] == "fail" and r["test"] == "write_bw":
            other = next(name for name in names if name not in (r["client"], r["server"]))
            if (r["rail"], r["client"], other, "send_bw") not in known:
                asked.append(Measurement(r["rail"], r["client"], other, "send_bw"))
    return asked


def slow_lab_2(name: str, number: int, rail: str, role: str, peer: str) -> Any:
    return 0, ROW % ("9.9" if (name, rail) == ("lab-2", "rail1") else "97.9")


def test_isolation_is_asked_once_there_is_nothing_to_retry(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(judge_passes, "next_tests", diagnosis)
    steps = play_all(plan(), everybody(), slow_lab_2)
    assert [s.rounds for s in steps] == [6, 2, 0]
    assert steps[1].announce.startswith("pass 2 (isolation), mode all_pairs: 2 tests of send_bw in 2 rounds")
    assert "; failures add up to 34 rounds to locate faults and " in steps[1].announce
    assert {r["test"] for r in steps[-1].results} == {"write_bw", "send_bw"} and len(steps[-1].results) == 14


@pytest.mark.parametrize("limit", [0, 1, 3])
def test_isolation_without_end_is_limited_and_counts_a_second_reading(
    limit: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    def always(*_args: Any, **_view: Any) -> list[Measurement]:
        return [Measurement("rail1", "lab-2", "lab-1", "write_bw")]

    turns: list[int] = []

    def better(name: str, number: int, rail: str, role: str, peer: str) -> Any:
        if (name, rail, role, peer) == ("lab-2", "rail1", "client", "10.1.0.1"):
            turns.append(number)
            return 0, ROW % ("9.9" if len(turns) == 1 else "97.9")
        return good(name, number, rail, role, peer)

    monkeypatch.setattr(judge_passes, "next_tests", always)
    steps = play_all(plan(isolation=limit), everybody(), better)
    # A port with one low reading is tested alone after that.
    assert len(steps) == (2 + limit + (limit > 0))
    hit = [r for r in steps[-1].results if any(p["verdict"] == "fail" for p in r["passes"])]
    assert [(r["client"], r["server"], r["verdict"], r["value"], len(r["passes"])) for r in hit] == [
        ("lab-2", "lab-1", "pass" if limit else "fail", 97.9 if limit else 9.9, 1 + limit)
    ]


def only_once(bad: str, then: str) -> Answer:
    """One test of one pair gives ``bad`` and, when it is measured again, ``then``."""
    turns: list[str] = [bad]

    def answer(name: str, number: int, rail: str, role: str, peer: str) -> Any:
        if (name, rail, role, peer) != ("lab-2", "rail1", "client", "10.1.0.1"):
            return good(name, number, rail, role, peer)
        return 0, ROW % (turns.pop() if turns else then)

    return answer


def test_a_single_failure_that_passes_when_measured_again_is_a_warning_and_no_blame() -> None:
    steps = play_all(plan(), everybody(), only_once("40.0", "97.5"))
    # Both of its ports are suspects, and lab-3 is the only partner: one after the other.
    assert [s.rounds for s in steps] == [6, 1, 22, 0]
    assert "pass 2 (isolation), mode all_pairs: 1 test of write_bw in 1 round" in steps[1].announce
    assert "pass 3 (suspects alone), mode all_pairs: 22 tests of write_bw in 22 rounds" in steps[2].announce
    last = steps[-1]
    (one,) = [r for r in last.results if any(p["verdict"] == "fail" for p in r["passes"])]
    assert (one["verdict"], one["value"], last.summary["verdict"], last.summary["diagnoses"]) == (
        "pass",
        97.5,
        "pass",
        [],
    )
    assert [(p["pass"], p["value"], p["verdict"], p.get("repeated")) for p in one["passes"]] == [
        (1, 40.0, "fail", None),
        (2, 97.5, "pass", True),
    ]
    (found,) = last.unsteady
    assert (found["kind"], found["rail"], found["count"], found["tests"], found["severity"]) == (
        "rail",
        "rail1",
        1,
        29,
        "warning",
    )
    assert found["text"] == (
        "rail1: unsteady: 1 of 29 readings are too low or show a fault, no more than the background rate of 0.001 "
        "explains (lab-2 to lab-1 write_bw: 40, then 97.5 Gb/s)"
    )
    assert last.warnings == []


@pytest.mark.parametrize("then", ["41.0", "0.00"])
def test_a_single_failure_that_fails_again_is_blamed_with_both_readings(then: str) -> None:
    last = play_all(plan(), everybody(), only_once("40.0", then))[-1]
    (found,) = last.summary["diagnoses"]
    assert [found[key] for key in ("kind", "rail", "host", "peer", "confidence")] == [
        "pair",
        "rail1",
        "lab-2",
        "lab-1",
        "confirmed",
    ]
    first, second, *_more = [text for text in found["evidence"] if " measurement: " in text]
    assert first.startswith("first measurement: 40 Gb/s measured, 93.1 Gb/s expected")
    told = "rate of 0" if then == "0.00" else "41 Gb/s measured, 93.1 Gb/s expected"
    assert second.startswith("repeated measurement: ") and told in second
    assert last.summary["verdict"] == "fail" and last.warnings == []


def test_a_lone_test_without_data_is_tried_once_more_after_its_retries() -> None:
    steps = play_all(plan(retries=1), everybody(), only_once("0.00", "0.00"))
    # The last two are a test of small messages, and that once more: the pair is sure to be bad by then.
    assert [s.rounds for s in steps] == [6, 1, 1, 1, 1, 0]
    assert steps[-1].summary["diagnoses"][0]["confidence"] == "confirmed"


def test_what_is_measured_again_is_measured_as_often_as_repeats_say() -> None:
    turns = iter(["40.0", "40.0", "97.9", "97.9"])

    def at_first(name: str, number: int, rail: str, role: str, peer: str) -> Any:
        if (name, rail, role, peer) != ("lab-2", "rail1", "client", "10.1.0.1"):
            return good(name, number, rail, role, peer)
        return 0, ROW % next(turns)

    steps = play_all(plan(repeats=2, budget="deep"), everybody(), at_first)
    assert [s.rounds for s in steps][:2] == [12, 2] and "(isolation)" in steps[1].announce
    (one,) = [r for r in steps[-1].results if r["reason"] or len({p["verdict"] for p in r["passes"]}) > 1]
    assert (one["verdict"], [p["value"] for p in one["passes"]]) == ("pass", [40.0, 40.0, 97.9, 97.9])


# What a slow port that only sends badly looks like, with latency as testers print it.


def test_a_port_that_sends_slowly_is_blamed_with_the_commands_to_try_it() -> None:
    last = play_all(plan(), everybody(), slow_lab_2)[-1]
    (found,) = last.summary["diagnoses"]
    assert [found[key] for key in ("where", "kind", "rail", "host", "direction", "confidence")] == [
        "host",
        "direction",
        "rail1",
        "lab-2",
        "send",
        "confirmed",
    ]
    assert last.summary["findings"] == [f"hosts: {found['text']}"]
    server, client = found["reproduce"]
    assert server == (
        "ssh lab-1 taskset -c 0 ib_write_bw -d mlx5_0 -i 1 -x 3 -p 18499 -F --report_gbits -c RC -q 4 -s 65536 -t 128 "
        "-D 10 -f 2"
    )
    assert client.startswith("ssh lab-2 taskset -c 0 ib_write_bw ") and client.endswith(" -f 2 10.1.0.1")


def test_a_blame_says_on_which_switch_port_it_is() -> None:
    made = {**plan(), "switches": {"rail1": {"lab-2": {"switch": "leaf3", "port": "Ethernet12"}}}}
    (found,) = play_all(made, everybody(), slow_lab_2)[-1].summary["diagnoses"]
    assert found["evidence"][-1] == "lab-2 rail1 is on leaf3 port Ethernet12"


def test_large_messages_that_vanish_are_told_by_small_ones_that_pass() -> None:
    def hole(name: str, number: int, rail: str, role: str, peer: str) -> Any:
        if rail == "rail1" and "lab-2" in (name, f"lab-{peer[-1]}"):
            return (0, LATENCY) if probing(number) else (1, " Failed status 12: wr_id 0")
        return good(name, number, rail, role, peer)

    steps: list[Step] = []

    def probing(number: int) -> bool:
        kinds = {
            line.split()[5]
            for lines in steps[-1].lines.values()
            for line in lines[:-1]
            if line.split()[0] == str(number)
        }
        return kinds == {"write_lat"}

    passes: list[Pass] = []
    while not steps or not steps[-1].done:
        steps.append(step(plan(retries=0), "host", everybody(*passes)))
        passes.append(played(steps[-1], hole))
    (found,) = steps[-1].summary["diagnoses"]
    assert (found["kind"], found["rail"], found["host"]) == ("mtu", "rail1", "lab-2")
    small = [r for r in steps[-1].results if r["test"] == "write_lat"]
    assert {(r["verdict"], r["unit"], r["value"]) for r in small} == {("pass", "us", 1.11)}


def framed(found: Step, told: Callable[[str, list[str]], tuple[int, str, str]]) -> Pass:
    """A pass whose frames have what ``told(endpoint, words of its line)`` says: rc, more of the header, body."""
    logs = {}
    for name, lines in found.lines.items():
        out = []
        for line in lines[:-1]:
            rc, header, body = told(name, line.split())
            out.append(frame(line, rc, body, f"seconds=2 {header}"))
        logs[name] = tester_logs.log(found.number, lines, out)
    return Pass(logs, {})


def test_the_other_exchange_is_tried_after_one_failed_and_is_told() -> None:
    def told(name: str, words: list[str]) -> tuple[int, str, str]:
        way = "cm" if "-R" in words else "plain"
        if name == "lab-1" and words[1:4] == ["rail0", "client", "10.0.0.2"] and way == "cm":
            return 1, "exchange=cm", " Unexpected CM event bl blka 8\n"
        return 0, f"exchange={way}", ROW % "97.9"

    steps = [step(plan(rdma_cm=True), "host", everybody())]
    passes = [framed(steps[0], told)]
    again = step(plan(rdma_cm=True), "host", everybody(*passes))
    assert [line.split()[1:4] for line in again.lines["lab-1"][:-1]] == [["rail0", "client", "10.0.0.2"]]
    assert all("-R" not in lines[0].split() for lines in again.lines.values())
    passes.append(framed(again, told))
    last = step(plan(rdma_cm=True), "host", everybody(*passes))
    assert last.done and last.summary["verdict"] == "pass"
    assert last.warnings[0].startswith(
        "lab-1 to lab-2 rail0 write_bw: measured with the plain exchange of addresses, since RDMA-CM failed ("
    )


def test_no_other_exchange_is_tried_where_the_sides_meet_on_the_management_network() -> None:
    def told(name: str, words: list[str]) -> tuple[int, str, str]:
        bad = name == "lab-1" and words[1:3] == ["rail0", "client"]
        return (1, "exchange=plain", f"Couldn't connect to {words[3]}") if bad else (0, "exchange=plain", ROW % "97.9")

    made = plan(control="management")
    again = step(made, "host", everybody(framed(step(made, "host", everybody()), told)))
    assert again.lines and not any("-R" in line.split() for lines in again.lines.values() for line in lines)


def test_a_link_that_went_down_is_no_pass_however_fast() -> None:
    def told(name: str, words: list[str]) -> tuple[int, str, str]:
        down = name == "lab-3" and words[1] == "rail1"
        return 0, "exchange=plain", ("counters link_downed=+1 out_of_sequence=+3\n" if down else "") + ROW % "97.9"

    first = step(plan(), "host", everybody())
    last = step(plan(isolation=0), "host", everybody(framed(first, told)))
    hit = [r for r in last.results if r["verdict"] == "fail"]
    assert {(r["rail"], "lab-3" in (r["client"], r["server"])) for r in hit} == {("rail1", True)} and len(hit) == 4
    assert hit[0]["reason"] == (
        "fast enough, but not steady; lab-3 rail1: the link went down (link_downed +1); "
        "lab-3 rail1: packets came out of order, and the sender counted none that was sent again: several paths"
        " (adaptive routing) rather than loss (out_of_sequence +3)"
    )
    assert hit[0]["counters"] == {"server": {"link_downed": 1, "out_of_sequence": 3}}
    assert [(b["kind"], b["host"], b["rail"]) for b in last.summary["diagnoses"]] == [("port", "lab-3", "rail1")]


def test_counters_of_a_healthy_end_name_no_cause() -> None:
    made, evidence = fleet(6, isolation=0)

    def told(name: str, words: list[str]) -> tuple[int, str, str]:
        slow = words[1] == "rail1" and (name == "h2" or words[3] == "10.1.1.2")
        grown = "counters out_of_sequence=+3\n" if slow and name == "h3" else ""
        return 0, "exchange=plain", grown + ROW % ("20.0" if slow else "97.9")

    steps, passes = [step(made, "host", evidence)], []
    while not steps[-1].done:
        passes.append(framed(steps[-1], told))
        steps.append(step(made, "host", Evidence(evidence.describe, {}, tuple(passes))))
    last = steps[-1]
    assert [(b["kind"], b["host"], b["rail"]) for b in last.summary["diagnoses"]] == [("port", "h2", "rail1")]
    grown = [r for r in last.results if "counters" in r]
    assert len(grown) == 2 and all(
        r["reason"].endswith("(adaptive routing) rather than loss (out_of_sequence +3)") and "; at h3: " in r["reason"]
        for r in grown
    )


def test_a_link_that_is_below_the_plan_after_the_test_is_kept_and_named() -> None:
    made = plan(isolation=0)
    for name in HOSTS:
        made["expectations"]["rail1"][name]["rate"] = 200.0
    low = 'link rate="100 Gb/sec (4X EDR)" state=up carrier=1 mtu=9000'

    def told(name: str, words: list[str]) -> tuple[int, str, str]:
        hit = words[1] == "rail1" and "lab-2" in (name, f"lab-{words[3][-1]}")
        rate = low if name == "lab-2" else low.replace("100", "200")
        return 0, "exchange=plain", f"{rate}\n" + ROW % ("97.9" if hit or words[1] == "rail0" else "195.0")

    last = step(made, "host", everybody(framed(step(made, "host", everybody()), told)))
    failed = [r for r in last.results if r["verdict"] == "fail"]
    assert {r["rail"] for r in failed} == {"rail1"} and len(failed) == 4
    assert failed[0]["reason"] == (
        "97.9 Gb/s measured, 186.3 Gb/s expected (95 % of the 200 Gb/s link of lab-1 at RDMA MTU 4096); "
        "at lab-2: the link is at 100 Gb/s after the test, 200 Gb/s in the plan"
    )
    assert failed[0]["link"] == {
        "server": {"rate": "100 Gb/sec (4X EDR)", "state": "up", "carrier": "1", "mtu": "9000"}
    }
    assert not any("link" in r for r in last.results if r not in failed)


MARKED = {"rail0": {"traffic_class": 106, "dscp": 26, "priority": 3, "pfc": [3], "text": "traffic class 106"}}


def test_the_traffic_class_is_proven_by_the_bytes_of_its_priority() -> None:
    size = int(97.9e9 / 8 * 10)

    def told(name: str, words: list[str]) -> tuple[int, str, str]:
        way = "tx" if words[2] == "client" else "rx"
        known = {"lab-1": f"{way}_prio3_bytes=+{size}", "lab-2": f"{way}_prio0_bytes=+{size}"}
        amounts = known.get(name, 'error="no ethtool"')
        return 0, "ran=11.00 exchange=plain", f"amounts {amounts}\n" + ROW % "97.9"

    made = plan(traffic=MARKED, kinds=["write_bw"])
    first = step(made, "host", everybody())
    assert all("--tclass=106" in line for lines in first.lines.values() for line in lines if " rail0 " in line)
    last = step(made, "host", everybody(framed(first, told)))
    # The class changes no verdict, and the other rail has none.
    assert last.summary["verdict"] == "pass"
    assert last.schedule["traffic"] == [
        "traffic class proven by counters of its priority at 1 of 3 ports",
        "traffic class not proven at 1 of 3 ports (lab-2): only 0% of the bytes were in priority 3",
        "traffic class not proven at 1 of 3 ports (lab-3): no ethtool",
    ]
    assert [(one["host"], one["rail"], one["kind"], one["found"]) for one in last.links] == [
        ("lab-2", "rail0", "class", "priority 0")
    ] * 2
    report = build(made, last.results, parts={"schedule": [last.schedule], "links": last.links})
    shown = console.text(report)
    assert "bare hosts: traffic class proven by counters of its priority at 1 of 3 ports; bare hosts: " in shown
    assert "tests use traffic class 106; bare hosts" in shown and "link: lab-2 rail0: packets with DSCP 26" in shown
    assert any("tests use traffic class 106" in line for line in page(report)["head"]["about"])
