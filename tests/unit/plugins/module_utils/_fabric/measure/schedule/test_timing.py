"""Slots from evidence: what shortens them, what does not, who was late."""

from __future__ import annotations

import pytest

from ansible_collections.gpufabric.rdma.plugins.module_utils._fabric.measure.readings.tester_log import Log, parse_batch
from ansible_collections.gpufabric.rdma.plugins.module_utils._fabric.measure.schedule.schedule import Measurement
from ansible_collections.gpufabric.rdma.plugins.module_utils._fabric.measure.schedule.timing import (
    Timing,
    announce,
    announce_more,
    in_gpu_memory,
    length,
    margin_of,
    split,
    told,
)


def log(*frames: tuple[int, float, int], late: float = 0.0, memory: str = "host") -> Log:
    """Frames of one rail: (round, seconds of which perftest ran all but one, rc); ``late`` is that of the last."""
    out = ["=== gpufabric batch 1 begin 9"]
    for number, seconds, rc in frames:
        own = late if number == frames[-1][0] else 0.0
        out += [
            f"=== gpufabric test {number} r0 client 10.0.0.1 rc={rc} start=7 seconds={seconds} late={own}"
            f" ran={seconds - 1} exchange=plain memory={memory}",
            "=== gpufabric end",
        ]
    return parse_batch("\n".join([*out, "=== gpufabric batch 1 done 9 0"]), 1)


def after(*logs: Log, slot: int = 18) -> Timing:
    timing = Timing()
    timing.add({f"h{i}": one for i, one in enumerate(logs)}, 3, slot)
    return timing


def test_before_anything_is_known_a_slot_has_the_whole_margin() -> None:
    assert Timing().slot(10, 6) == 16
    assert Timing().share is None


@pytest.mark.parametrize(
    ("logs", "slot"),
    [
        ([log((0, 12.5, 0), (1, 11, 0))], 14),
        ([log((0, 12.7, 0), (1, 11, 0))], 14),
        ([log((0, 12.71, 0), (1, 11, 0))], 15),
        # The clean test that ended last in its slot counts, whether it began late or took long; nothing is added twice.
        ([log((0, 11, 0)), log((0, 13, 0))], 15),
        ([log((0, 12, 0), (1, 11.7, 0), late=0.9)], 14),
        ([log((0, 12, 0), (1, 11.9, 0), late=0.9)], 15),
        # A round that was missed says that somebody is too slow: there is one margin more.
        ([log((0, 12, 0)), log((0, 0, 125), late=1.0)], 26),
        ([log((0, 12, 0)), log((0, 0, 125), late=0.99)], 14),
        # Never longer than the margin allows.
        ([log((0, 17, 0))], 18),
        # A test that ran out of time may have needed more.
        ([log((0, 12, 0), (1, 15, 124))], 26),
        ([log((0, 12, 0), (1, 15, 137))], 26),
        # Nothing clean, nothing learned.
        ([log((0, 2, 1))], 18),
        # Another failure says nothing of the time that is needed.
        ([log((0, 12, 0), (1, 1, 1))], 14),
    ],
)
def test_the_next_slot(logs: list[Log], slot: int) -> None:
    assert after(*logs).slot(10, 8) == slot


@pytest.mark.parametrize(
    ("logs", "slot"),
    [
        ([log((0, 19.2, 0), memory="cuda:dmabuf")], 21),
        ([log((0, 19.2, 0), memory="cuda:dmabuf"), log((1, 12, 0))], 21),
        # What starts in host memory tells nothing of CUDA, whose tests failed.
        ([log((0, 3, 1), memory="cuda:dmabuf"), log((1, 12, 0))], 28),
        ([log((0, 26, 124), memory="cuda:peermem"), log((1, 12, 0))], 46),
    ],
)
def test_slots_follow_the_start_of_cuda(logs: list[Log], slot: int) -> None:
    tests = {"memory": "cuda:dmabuf"}
    assert Timing().slot(10, margin_of(tests, 6), gpu=in_gpu_memory(tests)) == 28
    assert after(*logs, slot=28).slot(10, margin_of(tests, 6), gpu=in_gpu_memory(tests)) == slot
    assert (margin_of({"memory": "host"}, 6), in_gpu_memory({"memory": "host"})) == (6, False)


def test_what_the_start_of_cuda_takes_is_told() -> None:
    timing = after(log((0, 19.2, 0), memory="cuda:dmabuf"), log((1, 12.4, 0)))
    assert told(timing, 1, 3, duration=10).endswith(
        "; tests from GPU memory needed up to 9.2 s besides their duration, tests from host memory 2.4 s"
    )
    assert "GPU" not in told(after(log((1, 12.4, 0))), 1, 3, duration=10)


def test_what_was_learned_stays() -> None:
    timing = after(log((0, 14, 0)))
    timing.add({"h0": log((0, 11, 0))}, 1, 17)
    assert (timing.slot(10, 8), timing.seconds, timing.last) == (16, 3 * 18 + 17, 17)


def test_share_of_perftest_in_its_slots() -> None:
    assert after(log((0, 13, 0), (1, 16, 0)), slot=15).share == 0.9


def test_lateness_is_told_by_host() -> None:
    timing = after(log((0, 13, 0), (1, 13, 0), late=0.2), log((0, 0, 125), late=4.1))
    assert timing.lateness == {"h0": 0.2, "h1": 4.1}
    assert told(timing, 1, 3) == (
        "1 pass, 3 rounds, 54 s; perftest ran in 67 % of the time of its slots; latest start 4.1 s (h1)"
    )


def test_a_measurement_without_a_clean_test_says_so() -> None:
    assert told(after(log((0, 2, 1))), 2, 3) == "2 passes, 3 rounds, 54 s; no clean test"


@pytest.mark.parametrize(
    ("seconds", "words"), [(0, "0 s"), (59, "59 s"), (108, "1 min 48 s"), (3600, "1 h"), (9180, "2 h 33 min")]
)
def test_length(seconds: int, words: str) -> None:
    assert length(seconds) == words


@pytest.mark.parametrize(
    ("rounds", "hosts", "passes"),
    [(5, 2, [5]), (6, 2, [1, 5]), (20, 2, [2, 18]), (40, 2, [4, 36]), (400, 2, [4, 396]), (6, 3, [6]), (40, 4, [40])],
)
def test_a_schedule_begins_with_a_trial_that_most_hosts_take_part_in(
    rounds: int, hosts: int, passes: list[int]
) -> None:
    assert [len(part) for part in split([(Measurement("r", "a", "b", "write_bw"),)] * rounds, hosts)] == passes


COSTS = [cost / 10 for cost in range(10, 26)]


def round_of(cost: float, duration: int, late: float) -> tuple[Log, Log]:
    """A clean round of a client and a server as testers tell it; ``cost``: seconds that perftest needs beside its test.

    The client begins a second after the server; before and after perftest the tester needs a twentieth of a second.
    """
    ran, end = duration + cost, 1 + duration + cost + 0.1
    head = f"rc=0 start=7 seconds={end - late:.2f} late={late:.2f}"
    begin, done = "=== gpufabric batch 1 begin 1", "=== gpufabric end\n=== gpufabric batch 1 done 1 0"
    client, server = (
        parse_batch(f"{begin}\n=== gpufabric test 0 r0 {role} 10.0.0.1 {head} ran={own:.2f}\n{done}", 1)
        for role, own in (("client", ran), ("server", ran + 1 - late))
    )
    return client, server


def played_rounds(rounds: int, cost: float, duration: int, late: float) -> tuple[Timing, int]:
    """A schedule of all hosts, and the slot of its last pass."""
    timing, slot = Timing(), 0
    for part in split([(Measurement("r", "a", "b", "write_bw"),)] * rounds, 2):
        slot = timing.slot(duration, 6)
        for _round in part:
            client, server = round_of(cost, duration, late)
            timing.add({"a": client, "b": server}, 1, slot)
    return timing, slot


@pytest.mark.parametrize("rounds", [6, 38, 510])
@pytest.mark.parametrize("late", [0.0, 0.05])
@pytest.mark.parametrize("duration", [10, 30, 60])
def test_four_fifths_of_all_slots_are_perftest(rounds: int, late: float, duration: int) -> None:
    shares = {cost: played_rounds(rounds, cost, duration, late)[0].share for cost in COSTS}
    assert {cost: share for cost, share in shares.items() if not share or share < 0.8} == {}


@pytest.mark.parametrize("duration", [2, 10, 60])
def test_a_server_that_begins_late_loses_no_test_in_a_short_slot(duration: int) -> None:
    for cost in COSTS:
        slot = played_rounds(6, cost, duration, 0.05)[1]
        for late in (0.3, 0.6, 0.9):
            # The tester: its client tries again every 0.2 s, as long as a whole run fits; limits are whole seconds.
            tried = 1.05
            while tried < late + 0.1:
                tried += 0.25
                assert slot - tried > duration + 1.5, (cost, late)
            end = tried + duration + cost
            for begin in (late + 0.05, tried):
                assert end <= begin + int(slot - begin), (cost, late, slot)


def test_what_is_said_before_a_pass() -> None:
    rounds = [(Measurement("r", "a", "b", "write_bw"), Measurement("r", "c", "d", "read_bw"))]
    assert announce("ring", rounds, 18, number=2, what="schedule", worst=36) == (
        "pass 2 (schedule), mode ring: 2 tests of write_bw, read_bw in 1 round of 18 s, 18 s; "
        "with all retries at worst 36 s beside the start of each pass"
    )


def test_what_failures_may_add_is_said_before_a_pass() -> None:
    assert announce_more("quick", 64, 90, slot=28) == (
        "; failures add up to 64 rounds to locate faults and up to 90 rounds (budget quick) for ports that read low"
        " intermittently, at worst 1 h 11 min"
    )
    assert announce_more("quick", 1, 0, slot=28) == "; failures add up to 1 round to locate faults, at worst 28 s"
    assert announce_more("quick", 0, 0, slot=28) == ""


def test_slots_grow_to_a_limit_after_late_or_timed_out_tests() -> None:
    timing = after(log((0, 15, 124)))
    timing.add({"h0": log((0, 15, 124))}, 1, 26)
    assert timing.slot(10, 8) == 34
    timing.add({"h0": log((0, 15, 124))}, 1, 34)
    assert timing.slot(10, 8) == 34


@pytest.mark.parametrize(("clean", "slot"), [(3, 18), (2, 26)])
def test_the_rest_of_a_schedule_has_longer_slots_only_when_many_tests_needed_them(clean: int, slot: int) -> None:
    """A fifth and a fourth of the trial."""
    frames = [(number, 12.0, 0) for number in range(clean + 1)]
    timing = Timing()
    timing.add({"h0": log(*frames), "h1": log((0, 15, 124))}, 3, 18, waiting=True)
    assert timing.slot(10, 8) == slot


@pytest.mark.parametrize(("late", "lead"), [(0.9, 0), (4.1, 5), (400.0, 60)])
def test_the_next_pass_begins_later_by_what_hosts_missed_the_first_round(late: float, lead: int) -> None:
    assert after(log((0, 0, 125), late=late)).lead == lead
