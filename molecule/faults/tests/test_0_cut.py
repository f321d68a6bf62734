"""A host whose power failed while it was prepared; more of them in `make soak`."""

from __future__ import annotations

from tests.scenario.preparation import Cut, unfinished
from tests.scenario.state import files


def test_no_file_was_half_written_when_the_power_failed(cut: Cut) -> None:
    assert cut.run.rc != 0
    assert cut.damaged == ""
    assert unfinished(cut, files("lab-2")) == []


def test_the_next_run_brought_it_to_where_the_others_are(cut: Cut) -> None:
    assert set(files("lab-2")) == set(files("lab-3"))
