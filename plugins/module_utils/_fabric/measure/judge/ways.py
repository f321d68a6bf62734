# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""How the sides of a test find each other, and the options of perftest that follow from it and from their ports."""

from __future__ import annotations

from ..diagnosis.absence import NONE
from ..readings import ib_port
from ..readings.exchange import exchange_failed, exchange_warning, path_refused
from ..readings.perftest import TIMED_OUT
from ..schedule.schedule import Measurement
from .session import Attempt, State, asked_exchange, described, described_grh, partitions, shown_by


def exchange_of(state: State, test: Measurement) -> str:
    """Return how the sides of the next attempt find each other: as asked, or the other way after that one failed."""
    way = asked_exchange(state)
    last = state.attempts[test][-1] if state.attempts.get(test) else None
    # The other way needs the rail's addresses, which stand in the lines only when perftest's exchange goes there.
    if last is None or state.tests["control"] != "rail" or not exchange_failed(last.client, last.server):
        return way
    if shown_by(state, test, last).level == NONE:
        # A side was late or is gone: nothing failed but that.
        return way
    tried = _exchange(last)
    failed = [one for one in state.attempts[test] if exchange_failed(one.client, one.server)]
    if tried == "plain" and test.rail in partitions(state):
        # The next attempt has a GRH where the port demanded one. RDMA-CM needs IPoIB, which works without it.
        return tried
    if sum(_exchange(one) == tried for one in failed) == 1 and any(run.rc in TIMED_OUT for run in last.sides.values()):
        # That side may only have started slowly, and the next slot is longer.
        return tried
    return "cm" if tried == "plain" else "plain"


def options_of(state: State, test: Measurement, side: str) -> str:
    """Return the options of perftest that a side of a test has because of its port, "client" or "server"."""
    if test.rail not in partitions(state) or exchange_of(state, test) == "cm":
        # RDMA-CM takes path and partition from the subnet manager.
        return ""
    name, rail = (test.client, test.rail) if side == "client" else (test.server, test.server_rail)
    grh = described_grh(state, test) or any(path_refused(one.client, one.server) for one in _tried(state, test))
    own, level = described(state, name, rail), state.tests["service_level"]
    return ib_port.options(own, partitions(state)[test.rail], grh=grh, level=level) if own else ""


def _tried(state: State, test: Measurement) -> list[Attempt]:
    return state.attempts.get(test) or []


def _exchange(attempt: Attempt) -> str:
    return next((run.exchange for run in attempt.sides.values() if run.exchange), "")


def exchange_warnings(state: State) -> list[str]:
    """Return a sentence for each test that measured only the other way than it was asked to."""
    told = []
    for test, tried in state.attempts.items():
        if not any(one.client for one in tried):
            # Nothing but numbers was worth keeping.
            continue
        done = next((one for one in reversed(tried) if one.sample), None)
        why = next((one.reason for one in tried if exchange_failed(one.client, one.server)), "")
        text = exchange_warning(asked_exchange(state), done.client.exchange, why) if done and done.client else ""
        if text:
            told.append(f"{test.client} to {test.server} {test.rail} {test.kind}: {text}")
    return told
