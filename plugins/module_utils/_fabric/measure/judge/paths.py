# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The paths of tests: spread over tests and their repeats, and recorded with each reading.

A test without a flow label has new queue pairs, whose numbers take its place: it is on other paths each time, but
nothing can repeat them.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping
from functools import lru_cache
from typing import Any

from ...intent.kinds import KINDS
from ...intent.tests import ADAPTIVE
from ..schedule.flow_labels import NONE, Paths, labels, number_of
from ..schedule.schedule import Measurement, subject
from .session import Attempt, State, asked_exchange, described, has_grh, partitions

# What perftest of a host can do, by what its tester reports.
_CAN = {"none": 0, "one": 1, "list": 2}


def can_choose(state: State) -> bool:
    """Return whether the path of any test can be chosen."""
    if state.tests["load_balancing"] == ADAPTIVE:
        return False
    if state.known_choice is None:
        hosts = (endpoint.host.get("labels", "none") for endpoint in state.endpoints.values())
        masks = (rail.get("lmc", "0") for endpoint in state.endpoints.values() for rail in endpoint.rails.values())
        state.known_choice = any(one != "none" for one in hosts) or any(one != "0" for one in masks)
    return state.known_choice


def lids(state: State, test: Measurement, number: int | None = None) -> int:
    """Return how many LIDs, each a path of its own, both ports of an InfiniBand test have.

    1 where GRHs are used, or in a pass (None: the next one) only the first LIDs.
    """
    if test.rail not in partitions(state) or has_grh(state, test) or not state.lids.usable(test.rail, number):
        return 1
    ends = (described(state, test.client, test.rail), described(state, test.server, test.server_rail))
    masks = [int(end.get("lmc", "0")) if end.get("lid", "-") != "-" else 0 for end in ends]
    return int(1 << min(masks))


def most_labels(state: State, test: Measurement) -> int:
    """Return how many flow labels a test can have: 0, 1, or one for each queue pair."""
    if test.rail in partitions(state):
        return 0
    if not state.known_labels:
        state.known_labels.update({n: _CAN[one.host.get("labels", "none")] for n, one in state.endpoints.items()})
    least = min(state.known_labels.get(test.client, 0), state.known_labels.get(test.server, 0))
    return _queues(state, test) if least > 1 else least


def _queues(state: State, test: Measurement) -> int:
    return 1 if KINDS[test.kind].latency else int(state.tests["queue_pairs"])


def paths_of(state: State, test: Measurement, at: tuple[int, int], *, cm: bool) -> Paths:
    """Return the paths of a test in a pass and round. With RDMA-CM (``cm``) the kernel makes the label."""
    if cm or not can_choose(state):
        return NONE
    chosen = state.chosen.get((*at, test))
    if chosen is not None:
        return chosen
    known = lids(state, test, at[0])
    if known > 1:
        return Paths(offset=number_of(state.tests["seed"], test, at) % known)
    most = most_labels(state, test)
    # One label for several queue pairs puts all of them on one path; without, their numbers spread them.
    return Paths(labels(number_of(state.tests["seed"], test, at), most)) if most == _queues(state, test) else NONE


def option_of(
    state: State, number: int, swapped: Collection[Measurement]
) -> Callable[[Measurement, int, str], str] | None:
    """Return what gives the option of perftest for the path of a side in a round of pass ``number``, if any has one."""
    if not can_choose(state):
        return None
    usual = asked_exchange(state) == "cm"

    # Both sides of a test are asked for one after the other.
    @lru_cache(maxsize=1)
    def paths(test: Measurement, at: int) -> Paths:
        return paths_of(state, test, (number, at), cm=usual != (test in swapped))

    return lambda test, at, role: _option(state, test, paths(test, at), role=role)


def _option(state: State, test: Measurement, paths: Paths, *, role: str) -> str:
    if paths.labels:
        # Each end sets the label of what it sends.
        return f"--flow_label={','.join(map(str, paths.labels))}"
    peer = (test.server, test.server_rail) if role == "client" else (test.client, test.rail)
    lid = described(state, *peer).get("lid", "-")
    return "" if paths.offset is None or lid == "-" else f"--dlid={int(lid, 16) + paths.offset}"


def option_again(state: State, test: Measurement, result: Mapping[str, Any], *, role: str) -> str:
    """Return the option that puts a side of a test on the paths of its first low reading, "" where none is known."""
    low: Mapping[str, Any] = next((one for one in result.get("passes", ()) if one["verdict"] == "fail"), {})
    return _option(state, test, Paths(tuple(low.get("flow_labels", ())), low.get("lid_offset")), role=role)


def told(state: State, test: Measurement, attempt: Attempt) -> dict[str, Any]:
    """Return the optional keys of a reading: ``flow_labels``, those of its queue pairs, or ``lid_offset``."""
    if not can_choose(state):
        return {}
    way = (attempt.client.exchange if attempt.client else "") or asked_exchange(state)
    paths = paths_of(state, test, (attempt.number, attempt.at), cm=way == "cm")
    if paths.labels:
        return {"flow_labels": list(paths.labels)}
    return {} if paths.offset is None else {"lid_offset": paths.offset}


def note(state: State, results: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """Add the paths of readings that passed; those of others are known before, since further tests follow from them."""
    for result in results if can_choose(state) else ():
        attempts = state.attempts.get(test := subject(result), ())
        # Before them are those of an earlier report.
        for row, attempt in zip(result["passes"][-len(attempts) :] if attempts else (), attempts):
            if row["verdict"] == "pass":
                row.update(told(state, test, attempt))
    return results
