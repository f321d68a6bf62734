"""Bounds, results and the section of the page. Costs a second."""

from __future__ import annotations

from pathlib import Path

import pytest
from tests.bench import simulation
from tests.simulation.cells import CELLS

HEALTHY, PORT, LATE = CELLS["healthy, 8"], CELLS["port, 8"], CELLS["late host, 128"]


@pytest.mark.parametrize(
    ("right", "runs", "target"), [(59, 59, 0.95), (92, 93, 0.95), (299, 299, 0.99), (472, 473, 0.99), (598, 598, 0.995)]
)
def test_so_many_runs_prove_a_rate_and_one_less_does_not(right: int, runs: int, target: float) -> None:
    assert simulation.at_least(right, runs) >= target > simulation.at_least(right - 1, runs - 1)
    assert simulation.at_most(runs - right, runs) <= 1 - target + 1e-9


def test_no_run_proves_nothing() -> None:
    assert simulation.at_least(0, 0) == 0 and simulation.at_most(0, 0) == 1


@pytest.mark.parametrize(
    ("good", "runs", "found"), [(300, 300, "met"), (100, 100, "open"), (97, 100, "open"), (90, 100, "missed")]
)
def test_a_cell_is_met_missed_or_open(good: int, runs: int, found: str) -> None:
    assert simulation.verdict(good, runs, 0.99) == found


def counts(runs: int, reached: int, accused: int = 0) -> simulation.Counts:
    return {**simulation.empty(), "runs": runs, "reached": reached, "accused": accused, "version": simulation.version()}


def test_wrong_diagnoses_miss_whatever_the_claim() -> None:
    assert simulation.result(HEALTHY, counts(600, 600)) == "met"
    assert simulation.result(HEALTHY, counts(600, 600, 20)) == "missed"
    assert simulation.result(LATE, counts(300, 0)) == "met"
    assert simulation.missed({LATE.name: counts(300, 0, 30), PORT.name: counts(300, 200)}) == [
        "late host, 128: 0 of 300 runs right, 30 with a wrong confirmed diagnosis",
        "port, 8: 200 of 300 runs right, 0 with a wrong confirmed diagnosis",
    ]


def test_the_section_has_the_weakest_cells_and_those_of_an_earlier_judge() -> None:
    old = {**counts(300, 200, 3), "version": "older", "examples": [[7, "port gpu-0001 rail0"]], "planted": 300}
    text = simulation.section({PORT.name: old, HEALTHY.name: counts(600, 600)})
    assert "in 3 of 900 runs" in text and "2 of" in text and "* were simulated before" in text
    weak = "* **port, 8**: right in 200 of 300 runs; 0 of 300 faults found; a confirmed diagnosis is wrong in 3 (run 7:"
    assert weak in text
    assert [line for line in text.splitlines() if line.endswith("| missed | *")] and "| met |\n" in text
    assert "Every run is right" in simulation.section({HEALTHY.name: counts(600, 600)})


def test_cells_are_played_in_turns_and_kept(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(simulation, "KEPT", tmp_path / "kept.json")
    monkeypatch.setattr(simulation, "_PART", 2)
    first = simulation.fill([PORT.name], runs=3, jobs=1)[PORT.name]
    again = simulation.fill([PORT.name], runs=4, jobs=1)[PORT.name]
    assert (first["runs"], again["runs"], again["reached"], again["found"]) == (3, 4, 4, 4)
    assert simulation.kept()[PORT.name] == again


def test_the_page_has_the_section_as_it_is_written() -> None:
    assert simulation.INTRO in simulation.PAGE.read_text()
