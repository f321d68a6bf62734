"""The benchmark of diagnosis on the smallest fabrics, and the page that it writes."""

from __future__ import annotations

from pathlib import Path

import pytest
from tests.bench import __main__ as bench
from tests.bench import diagnosis, simulation


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
    monkeypatch.setattr(simulation, "fill", dict)
    monkeypatch.setattr(simulation, "write", lambda _table: ["healthy, 8: 3 of 300 runs accuse a healthy part"])
    *rows, _time = bench.diagnosis()
    assert len(rows) == 2
    for name, count, _unit, limit in rows:
        assert name.startswith("diagnosis") and limit is not None and count > limit


def test_the_page_keeps_the_section_of_the_other_simulation(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    page = tmp_path / "page.md"
    page.write_text(f"# Old\n\n{simulation.TITLE}\n\nKept.\n")
    monkeypatch.setattr(diagnosis, "PAGE", page)
    monkeypatch.setattr(diagnosis, "REPO", tmp_path)
    monkeypatch.setattr(diagnosis, "measured", lambda quick: ("# New\n", []))
    assert diagnosis.write_page() == []
    assert page.read_text() == f"# New\n\n{simulation.TITLE}\n\nKept.\n"
