# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What is noticed of hosts and rails and changes no verdict, in sentences."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from ...._common.fold import fold
from ...._common.reader import left_out
from ..diagnosis import duplicates
from ..diagnosis.absence import overload
from ..readings import tester_cpu
from ..readings.perftest import MISSED
from .session import State

# Reading one of these takes so long that perftest's calibration against the processor's counter often fails.
SLOW_CLOCKS = ("hpet", "acpi_pm", "jiffies", "refined-jiffies")


def notices(state: State, lateness: Mapping[str, float], diagnoses: Sequence[Mapping[str, Any]]) -> list[str]:
    """Return the sentences, an overload first.

    ``lateness``: by host in seconds; ``diagnoses`` contain some of it already.
    """
    return [
        *_late(lateness, diagnoses),
        *_addresses(state, diagnoses),
        *_slow_clocks(state),
        *_far_cpus(state),
        *_few_cpus(state),
        *_full_counters(state),
        *_doubts(state),
    ]


def _late(lateness: Mapping[str, float], diagnoses: Sequence[Mapping[str, Any]]) -> list[str]:
    """Return the sentence about hosts that were late, where no test lacks its reading because of it."""
    seconds = {name: late for name, late in lateness.items() if late >= MISSED}
    told = any(one["kind"] == "overload" for one in diagnoses)
    return [overload(seconds)] if seconds and not told else []


def _addresses(state: State, diagnoses: Sequence[Mapping[str, Any]]) -> list[str]:
    """Return the sentences about addresses that are not planned, or that two hosts have while their tests pass."""
    told = {one["text"] for one in state.duplicates.values()}
    known = " ".join(one["text"] for one in diagnoses if one["kind"] == "address")
    twice = [text for text in sorted(told) if text not in known]
    return [*twice, *duplicates.unplanned(state.plan, state.where, state.endpoints)]


def _slow_clocks(state: State) -> list[str]:
    return [
        f"{name}: clock source {endpoint.host['clock']}, not tsc: perftest may print rates of 0 (clock sampling)"
        for name, endpoint in state.endpoints.items()
        if endpoint.host.get("clock") in SLOW_CLOCKS
    ]


def _far_cpus(state: State) -> list[str]:
    """Return who measures with CPUs of another NUMA node than the NIC's, since it may use no others."""
    return [
        f"{name} {rail}: the tester has no access to the CPUs near the NIC ({found['local_cpus']}) and uses remote CPUs"
        for name, endpoint in state.endpoints.items()
        for rail, found in endpoint.rails.items()
        if found.get("cpus") == "-" and found.get("local_cpus", "-") != "-"
    ]


def _few_cpus(state: State) -> list[str]:
    """Return whose testers share CPUs, among themselves or with others."""
    at_once = state.tests["rails_at_once"] is not False
    told: dict[str, list[str]] = {}
    for name, endpoint in state.endpoints.items():
        for text in tester_cpu.sentences(endpoint.host, len(endpoint.rails) if at_once else 1):
            told.setdefault(text, []).append(name)
    return [f"{fold(names)}: {text}" for text, names in told.items()]


def _full_counters(state: State) -> list[str]:
    """Return whose error counters cannot show new errors, since InfiniBand's stay at their largest value."""
    return [
        f"{name} {rail}: counters at their largest value, which do not show new errors: {found['full']}. Reset them"
        f" with perfquery -R -C {found['device']} -P {found['port']}"
        for name, endpoint in state.endpoints.items()
        for rail, found in endpoint.rails.items()
        if found.get("full", "-") != "-"
    ]


def _doubts(state: State) -> list[str]:
    """Return a sentence for each rail on which a floor is above what a link carries by its own rate."""
    told: dict[str, set[str]] = {}
    for (rail, *_test), expectation in state.expected.items():
        if expectation.doubt:
            told.setdefault(rail, set()).add(expectation.doubt)
    return [
        f"{rail}: {min(doubts)}{left_out(len(doubts) - 1)}: no reading "
        "is rejected as impossible there. Repair the link, or lower rdma_fabric.thresholds.floor"
        for rail, doubts in sorted(told.items())
    ]
