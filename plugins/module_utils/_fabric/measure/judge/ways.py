# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""How the sides of a test find each other, and the options of perftest that follow from it and from their ports."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from functools import partial
from typing import Any

from ..diagnosis.absence import NONE
from ..readings import ib_port
from ..readings.exchange import exchange_failed, exchange_warning
from ..readings.perftest import TIMED_OUT
from ..schedule.schedule import Measurement
from .meeting import elsewhere
from .session import Attempt, State, asked_exchange, described, has_grh, partitions, shown_by

_FIRST_ONLY = (
    "no test passed by another LID of its peer than the first one, so only the first LIDs were measured. Check that the"
    " subnet manager routes all LIDs of its LMC. The NICs can also drop packets from the first LID of another port"
)


def exchange_of(state: State, test: Measurement) -> str:
    """Return how the sides of the next attempt find each other: as asked, or the other way after that one failed."""
    way = asked_exchange(state)
    last = state.attempts[test][-1] if state.attempts.get(test) else None
    # The other way needs the rail's addresses, which stand in the lines only when perftest's exchange goes there.
    if last is None or elsewhere(state, test) or not exchange_failed(last.client, last.server):
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


def have_options(state: State, swapped: Collection[Measurement]) -> bool:
    """Return whether options of any side depend on its port (``options_of``); those of most fleets do not."""
    rails = state.plan["rails"]
    return bool(partitions(state) or swapped or state.tests["rdma_cm"] or any(map(_is_routed, rails)))


def options_of(state: State, test: Measurement, side: str) -> str:
    """Return the options of perftest that a side of a test has because of its port, "client" or "server"."""
    way, client = exchange_of(state, test), side == "client"
    name, rail = (test.client, test.rail) if client else (test.server, test.server_rail)
    own = described(state, name, rail)
    words = [_source(state, test, own, way=way)] if client else []
    # RDMA-CM takes path and partition from the subnet manager.
    if test.rail in partitions(state) and way != "cm" and own:
        grh, level = has_grh(state, test), state.tests["service_level"]
        words += [ib_port.options(own, partitions(state)[test.rail], grh=grh, level=level)]
    return " ".join(word for word in words if word)


def _source(state: State, test: Measurement, own: Mapping[str, str], *, way: str) -> str:
    """Return the option with the address from which a client connects, "" where the routes find the rail's own."""
    planned: Mapping[str, Any] = next((one for one in state.plan.get("rails", ()) if one["name"] == test.rail), {})
    needed = way == "cm" or (_is_routed(planned) and not elsewhere(state, test))
    if not needed or own.get("address", "-") == "-" or state.endpoints[test.client].host.get("binds") != "yes":
        return ""
    return f"--bind_source_ip={own['address']}"


def _is_routed(rail: Mapping[str, Any]) -> bool:
    """Return whether the hosts of a rail are in several subnets, or in any that the plan does not know."""
    return rail.get("host_prefix") is not None or rail.get("subnet", "") is None


def _exchange(attempt: Attempt) -> str:
    return next((run.exchange for run in attempt.sides.values() if run.exchange), "")


def exchange_warnings(state: State) -> list[str]:
    """Return a sentence for each test that measured only the other way than it was asked to, or only with a GRH."""
    told = []
    for test, tried in state.attempts.items():
        if not any(one.client for one in tried):
            # Nothing but numbers was worth keeping.
            continue
        done = next((one for one in reversed(tried) if one.sample), None)
        demanded = state.grh.demanded_by(test)
        if done and demanded and any(map(partial(state.grh.explains, test), tried)):
            host, rail = demanded[0]
            why = f"since {host} {rail} refused all {len(state.grh.refused[host, rail])} queue pairs without one"
            told.append(f"{test.client} to {test.server} {test.rail} {test.kind}: measured with a GRH, {why}")
            continue
        why = next((one.reason for one in tried if exchange_failed(one.client, one.server)), "")
        text = exchange_warning(asked_exchange(state), done.client.exchange, why) if done and done.client else ""
        if text:
            told.append(f"{test.client} to {test.server} {test.rail} {test.kind}: {text}")
    passed = {test.rail for test, tried in state.attempts.items() if any(one.sample for one in tried)}
    return told + [f"{rail}: {_FIRST_ONLY}" for rail in sorted(passed & state.lids.first_only.keys())]
