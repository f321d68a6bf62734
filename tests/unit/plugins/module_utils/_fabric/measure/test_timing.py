"""Slots from evidence: what shortens them, what does not, who was late."""

from __future__ import annotations

import pytest

from ansible_collections.gpufabric.rdma.plugins.module_utils._fabric.measure.evidence import Log, parse_batch
from ansible_collections.gpufabric.rdma.plugins.module_utils._fabric.measure.schedule import Test as Trial
from ansible_collections.gpufabric.rdma.plugins.module_utils._fabric.measure.timing import (
    Timing,
    announce,
    length,
    split,
    told,
)


def log(*frames: tuple[int, int, int], late: float = 0.0) -> Log:
    """Frames of one rail: (round, seconds of which perftest ran all but one, rc); ``late`` is that of the last."""
    out = ["=== gpufabric batch 1 begin 9"]
    for number, seconds, rc in frames:
        own = late if number == frames[-1][0] else 0.0
        out += [f"=== gpufabric test {number} r0 client 10.0.0.1 rc={rc} start=7 seconds={seconds} late={own}"
                f" ran={seconds - 1}", "=== gpufabric end"]
    return parse_batch("\n".join([*out, "=== gpufabric batch 1 done 9 0"]), 1)


def after(*logs: Log, slot: int = 18) -> Timing:
    timing = Timing()
    timing.add({f"h{i}": one for i, one in enumerate(logs)}, 3, slot)
    return timing


def test_before_anything_is_known_a_slot_has_the_whole_margin() -> None:
    assert Timing().slot(10, 8) == 18
    assert Timing().share is None


@pytest.mark.parametrize(
    ("logs", "slot"),
    [
        ([log((0, 12, 0), (1, 11, 0))], 15),
        # The slowest clean test of the slowest host counts, and how late the latest one was.
        ([log((0, 11, 0)), log((0, 13, 0))], 16),
        ([log((0, 12, 0), (1, 11, 0), late=0.07)], 16),
        # Never longer than the margin allows.
        ([log((0, 17, 0))], 18),
        # A test that ran out of time may have needed more: nothing is shortened.
        ([log((0, 12, 0), (1, 15, 124))], 18),
        ([log((0, 12, 0), (1, 15, 137))], 18),
        # Nothing clean, nothing learned.
        ([log((0, 2, 1))], 18),
        # Another failure says nothing of the time that is needed.
        ([log((0, 12, 0), (1, 1, 1))], 15),
    ],
)
def test_the_next_slot(logs: list[Log], slot: int) -> None:
    assert after(*logs).slot(10, 8) == slot


def test_what_was_learned_stays() -> None:
    timing = after(log((0, 14, 0)))
    timing.add({"h0": log((0, 11, 0))}, 1, 17)
    assert (timing.slot(10, 8), timing.seconds, timing.last) == (17, 3 * 18 + 17, 17)


def test_share_of_perftest_in_its_slots() -> None:
    assert after(log((0, 13, 0), (1, 16, 0)), slot=15).share == 0.9


def test_lateness_is_told_by_host() -> None:
    timing = after(log((0, 13, 0), (1, 13, 0), late=0.2), log((0, 0, 125), late=4.1))
    assert timing.lateness == {"h0": 0.2, "h1": 4.1}
    assert told(timing, 1, 3) == (
        "1 pass, 3 rounds, 54 s; perftest ran in 67 % of the time of its slots; latest start 4.1 s (h1)")


def test_a_measurement_without_a_clean_test_says_so() -> None:
    assert told(after(log((0, 2, 1))), 2, 3) == "2 passes, 3 rounds, 54 s; no clean test"


@pytest.mark.parametrize(
    ("seconds", "words"), [(0, "0 s"), (59, "59 s"), (108, "1 min 48 s"), (3600, "1 h"), (9180, "2 h 33 min")]
)
def test_length(seconds: int, words: str) -> None:
    assert length(seconds) == words


def test_a_long_schedule_begins_with_a_trial() -> None:
    rounds = [(Trial("r", "a", "b", "write_bw"),)] * 40
    assert [len(part) for part in split(rounds)] == [4, 36]
    assert [len(part) for part in split(rounds[:39])] == [39]


def test_what_is_said_before_a_pass() -> None:
    rounds = [(Trial("r", "a", "b", "write_bw"), Trial("r", "c", "d", "read_bw"))]
    assert announce("ring", rounds, 18, 2, "schedule", 36) == (
        "pass 2 (schedule), mode ring: 2 tests of write_bw, read_bw in 1 round of 18 s, 18 s; "
        "with all retries at worst 36 s")
    assert announce("ring", rounds, 18, 2, "schedule", 36, 1).endswith(
        "; with all retries at worst 36 s, and at most 1 short pass more to tell whom to blame")
