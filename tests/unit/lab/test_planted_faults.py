# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""How `make soak` and the scenario faults count what a report says of planted faults. Less than a second."""

from __future__ import annotations

from typing import Any

import pytest
from tests.scenario.planted import FAULTS, GROUPS
from tests.scenario.told import judged
from tests.tools.planted_faults import Line, page

ONE_WAY = {"one-way loss": ("lab-1", 0)}


def diagnosis(kind: str, host: str | None, rail: str | None, confidence: str = "confirmed") -> dict[str, Any]:
    return {"kind": kind, "host": host, "rail": rail, "confidence": confidence, "text": f"{host} {rail}: it"}


@pytest.mark.parametrize(
    ("rc", "diagnoses", "expected"),
    [
        (1, [diagnosis("port", "lab-1", "rail0")], (True, True, 0)),
        (1, [diagnosis("port", "lab-1", "rail0", "suspected")], (True, True, 0)),
        # The right place with the wrong name.
        (1, [diagnosis("direction", "lab-1", "rail0", "suspected")], (True, False, 0)),
        (1, [diagnosis("host", "lab-1", None)], (True, False, 1)),
        (1, [diagnosis("rail", None, "rail0", "suspected")], (True, False, 0)),
        # Somebody else is accused, alone or besides.
        (1, [diagnosis("port", "lab-2", "rail0")], (False, False, 1)),
        (1, [diagnosis("port", "lab-1", "rail0"), diagnosis("port", "lab-2", "rail1")], (True, False, 1)),
        (1, [diagnosis("port", "lab-1", "rail0"), diagnosis("port", "lab-2", "rail1", "suspected")], (True, False, 0)),
        # A run that passes has found nothing, whatever it says.
        (0, [diagnosis("port", "lab-1", "rail0")], (False, False, 0)),
        (1, [], (False, False, 0)),
    ],
)
def test_what_a_report_says_of_a_planted_fault(
    rc: int, diagnoses: list[dict[str, Any]], expected: tuple[bool, bool, int]
) -> None:
    one = judged(ONE_WAY, rc, {"diagnoses": diagnoses})["one-way loss"]
    assert (one.found, one.named, len(one.wrong)) == expected


def test_faults_of_one_run_are_no_wrong_diagnoses_of_each_other() -> None:
    planted = {"missing NIC": ("lab-3", 1), "host under load": ("lab-1", 0)}
    unmeasured = [{"where": "host", "host": "lab-3", "rail": "rail1", "reason": "it has no port"}]
    seen = judged(planted, 1, {"diagnoses": [diagnosis("host", "lab-1", None)], "unmeasured": unmeasured})
    assert {name: (one.named, one.wrong) for name, one in seen.items()} == dict.fromkeys(planted, (True, []))
    assert seen["missing NIC"].text == "lab-3 rail1: not measured: it has no port"


def test_a_run_without_a_report_has_found_nothing() -> None:
    assert not judged(ONE_WAY, 2, {})["one-way loss"].found


def test_each_fault_is_planted_in_one_group() -> None:
    assert sorted(name for group in GROUPS for name in group) == sorted(FAULTS)


def test_the_page_counts_runs_and_hides_nothing() -> None:
    def line(named: bool, wrong: int, text: str) -> Line:
        return Line("cable", ("cable", "slow port"), True, named, wrong, text, 100, "2026-01-02")

    told = page([line(True, 0, "no link"), line(False, 1, "lab-2 is broken")])
    assert "| cable | 2 | 2 | 1 | 1 |" in told
    assert "| late host | 0 | 0 | 0 | 0 |" in told
    assert "* cable, slow port: 2 runs" in told
    assert "* **cable**: no link" in told and "lab-2 is broken" not in told
    assert "2026-01-02;" in told and "2 runs, 100 s each (median)" in told
