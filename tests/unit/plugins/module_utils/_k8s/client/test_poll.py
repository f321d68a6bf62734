"""Waiting ends, and nothing sleeps in a test."""

from __future__ import annotations

from tests.unit.support.cluster_fake import FakeClock

from ansible_collections.gpufabric.rdma.plugins.module_utils._k8s.client.poll import Pace, ticks


def test_ticks_look_at_once_and_a_last_time_at_the_end() -> None:
    assert list(ticks(5, 2, FakeClock().clock())) == [0, 2, 4, 5]
    assert list(ticks(0, 2, FakeClock().clock())) == [0]


def test_time_spent_between_ticks_counts() -> None:
    clock = FakeClock()
    seen = []
    for elapsed in ticks(10, 2, clock.clock()):
        seen.append(elapsed)
        clock.time += 5
    assert seen == [0, 7]


def test_a_burst_and_then_so_many_a_second() -> None:
    clock = FakeClock()
    pace = Pace(rate=10, burst=3, clock=clock.clock())
    times = []
    for _request in range(6):
        pace.wait()
        times.append(round(clock.time, 3))
    assert times == [0, 0, 0, 0.1, 0.2, 0.3]
    # Who waits anyway has the burst again, and no more than that.
    clock.time = 100
    for _request in range(4):
        pace.wait()
    assert round(clock.time, 3) == 100.1
