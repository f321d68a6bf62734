# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What a user says of faults, and what it is at the switch."""

from __future__ import annotations

import pytest
from tests.lab.errors import LabError
from tests.lab.fabric import Impairment
from tests.lab.faults import Fault, impairments, parse, selected, swapped


@pytest.mark.parametrize(
    ("words", "fault"),
    [
        ("cable lab-1 0", Fault("cable", "lab-1", 0)),
        ("slow lab-2 1", Fault("slow", "lab-2", 1, "5mbit")),
        ("slow lab-2 1 3mbit", Fault("slow", "lab-2", 1, "3mbit")),
        ("slow 1 16mbit", Fault("slow", "", 1, "16mbit")),
        ("oneway lab-1 0", Fault("oneway", "lab-1", 0, "in")),
        ("oneway lab-1 0 out", Fault("oneway", "lab-1", 0, "out")),
        ("swapped lab-3", Fault("swapped", "lab-3")),
        ("lossy lab-3 0 0.5%", Fault("lossy", "lab-3", 0, "0.5%")),
        ("blackhole 1", Fault("blackhole", "", 1)),
        ("blackhole lab-3 1", Fault("blackhole", "lab-3", 1)),
        ("dead lab-3", Fault("dead", "lab-3")),
        ("cut lab-2", Fault("cut", "lab-2")),
    ],
)
def test_parse(words: str, fault: Fault) -> None:
    assert parse(words.split()) == fault


@pytest.mark.parametrize(
    ("words", "message"),
    [
        ("broken lab-1", "no fault 'broken'; there are cable, slow, lossy, oneway, blackhole, swapped, dead, cut"),
        ("cable lab-9 0", "which host? lab-1, lab-2, lab-3, not 'lab-9'"),
        ("cable lab-1", "which rail? 0 to 1, not ''"),
        ("blackhole 2", "which rail? 0 to 1, not '2'"),
        ("cable lab-1 0 5", "what is '5' in this cable fault?"),
        ("dead lab-1 0", "what is '0' in this dead fault?"),
        ("slow lab-1 0 fast", "'fast' is no rate; say it like 3mbit (kbit, mbit, gbit)"),
        ("slow lab-1 0 0mbit", "'0mbit' is no rate; say it like 3mbit (kbit, mbit, gbit)"),
        ("oneway lab-1 0 up", "'up' is no way; say it like in or out"),
        ("oneway 0", "which host? lab-1, lab-2, lab-3, not '0'"),
        ("lossy lab-1 0 101", "'101' is no percentage of frames; say it like 2 or 0.5"),
    ],
)
def test_parse_says_what_makes_no_sense(words: str, message: str) -> None:
    with pytest.raises(LabError) as error:
        parse(words.split())
    assert str(error.value) == message


def test_faults_at_one_port_add_up() -> None:
    faults = [Fault("slow", "lab-2", 1, "3mbit"), Fault("lossy", "lab-2", 1, "2")]
    assert impairments(faults) == {(1, 2): Impairment(loss=0.02, rate=3e6)}


def test_a_black_hole_of_a_rail_is_at_each_of_its_ports() -> None:
    hole = Impairment(max_frame=1514)
    assert impairments([Fault("blackhole", "", 1)]) == {(1, 1): hole, (1, 2): hole, (1, 3): hole}


@pytest.mark.parametrize("slower", [0, 1])
def test_the_slowest_rate_at_a_port_counts(slower: int) -> None:
    faults = [Fault("slow", "", 1, "16mbit")]
    faults.insert(slower, Fault("slow", "lab-2", 1, "8mbit"))
    usual = Impairment(rate=16e6)
    assert impairments(faults) == {(1, 1): usual, (1, 2): Impairment(rate=8e6), (1, 3): usual}


def test_both_ways_of_one_port_can_be_lost() -> None:
    faults = [Fault("oneway", "lab-1", 0, "out")]
    assert impairments(faults) == {(0, 1): Impairment(loss_out=1.0)}
    assert impairments([*faults, Fault("oneway", "lab-1", 0, "in")]) == {(0, 1): Impairment(loss_in=1.0, loss_out=1.0)}


def test_exchanged_cables_are_those_of_their_host() -> None:
    faults = [Fault("swapped", "lab-3"), Fault("dead", "lab-1")]
    assert (swapped(faults), impairments(faults)) == ([3], {})


def test_what_is_not_at_the_switch_is_not_there() -> None:
    assert impairments([Fault("cable", "lab-1", 0), Fault("dead", "lab-2")]) == {}


FAULTS = [Fault("cable", "lab-1", 0), Fault("slow", "lab-1", 1, "5mbit"), Fault("dead", "lab-3")]


@pytest.mark.parametrize(
    ("words", "indices"),
    [("", [0, 1, 2]), ("lab-1", [0, 1]), ("slow", [1]), ("cable lab-1 0", [0]), ("lab-2", [])],
)
def test_selected(words: str, indices: list[int]) -> None:
    assert selected(FAULTS, words.split()) == [FAULTS[index] for index in indices]


def test_selected_refuses_a_word_that_is_nothing() -> None:
    with pytest.raises(LabError) as error:
        selected(FAULTS, ["lab-7"])
    assert str(error.value) == "'lab-7' is no kind of fault, host or rail"
