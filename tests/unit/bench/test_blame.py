"""The benchmark of blame on the smallest fabrics, and what its page says of itself."""

from __future__ import annotations

import pytest
from tests.bench import __main__ as bench
from tests.bench import blame


def test_small_fabrics_meet_every_target() -> None:
    lines, missed = blame.accuracy({8: 2})
    assert missed == [] and len(lines) == 2 + len((*blame.KINDS, "mixed"))


def test_a_healthy_fleet_is_measured_in_3_meetings_of_6_slots_and_nobody_is_blamed() -> None:
    lines, missed = blame.healthy({232: 1})
    assert (lines[-1], missed) == ("| 232 | 3 | 6 | 1 | 0 | 0 |", [])


def test_the_page_begins_as_the_benchmark_writes_it() -> None:
    assert blame.PAGE.read_text().startswith(blame.INTRO.format(rails=blame.RAILS))


def test_a_missed_target_exceeds_a_limit_of_the_benchmark(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(blame, "write_page", lambda: ["8 hosts, pair, 1 faults: precision 0.900"])
    (name, count, _unit, limit), *_rest = bench.blame()
    assert name.startswith("blame") and limit is not None and count > limit
