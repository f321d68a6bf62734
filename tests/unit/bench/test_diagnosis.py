"""The benchmark of diagnosis on the smallest fabrics, and the page that it writes."""

from __future__ import annotations

import pytest
from tests.bench import __main__ as bench
from tests.bench import diagnosis


def test_small_fabrics_meet_every_target() -> None:
    lines, missed = diagnosis.accuracy({8: 2})
    assert missed == [] and len(lines) == 2 + len((*diagnosis.KINDS, "mixed"))


def test_a_healthy_fleet_is_measured_in_3_meetings_of_6_slots_and_no_host_is_diagnosed() -> None:
    lines, missed = diagnosis.healthy({232: 1})
    assert (lines[-1], missed) == ("| 232 | 3 | 6 | 1 | 0 | 0 |", [])


def test_the_page_begins_as_the_benchmark_writes_it() -> None:
    assert diagnosis.PAGE.read_text().startswith(diagnosis.INTRO.format(rails=diagnosis.RAILS))


def test_the_page_has_what_is_not_right_and_one_sentence_for_the_rest() -> None:
    head = ["| hosts | fault | 1 fault | extra tests | extra rounds |", "| --- | --- | --- | --- | --- |"]
    right, wrong = (
        "| 8 | host | 1.000 / 1.000 | 1.5 (80) | 1.1 (4) |",
        "| 8 | port | 1.000 / 0.900 | 3.1 (10) | 2.1 (6) |",
    )
    assert diagnosis.exceptions([*head, right, wrong]) == [
        "1 of 2 combinations with 1 to 5 faults have precision and recall 1.000. "
        "Isolation took at most 80 extra tests in 6 extra rounds.",
        "",
        "The others (each cell: precision / recall):",
        "",
        *head,
        wrong,
    ]
    assert len(diagnosis.exceptions([*head, right])) == 1


def test_a_missed_target_exceeds_a_limit_of_the_benchmark(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(diagnosis, "write_page", lambda: ["8 hosts, pair, 1 faults: precision 0.900"])
    (name, count, _unit, limit), *_rest = bench.diagnosis()
    assert name.startswith("diagnosis") and limit is not None and count > limit
