"""The numbers of hosts that a benchmark takes on its command line."""

from __future__ import annotations

import pytest
from tests.bench import sizes


@pytest.mark.parametrize(("words", "found"), [([], [200]), (["10"], [10]), (["3", "5"], [3, 5])])
def test_hosts_are_those_of_the_command_line_or_the_default(words: list[str], found: list[int]) -> None:
    assert sizes("About.", 200, words) == found


@pytest.mark.parametrize("word", ["0", "-1", "few"])
def test_what_is_no_number_of_hosts_is_refused(word: str, capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit):
        sizes("About.", 200, [word])
    assert word in capsys.readouterr().err
