# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The two ways in which perftest's sides learn of each other, and what to do when one of them fails.

Both sides must use the same way, and neither sees how the other was started: only a later test that is planned for
both can try the other way.
"""

from __future__ import annotations

import re

from .counters import link_went_down
from .perftest import Run

# What a side prints that never reached the other one.
NEVER_MET = re.compile(r"Couldn't connect|[Nn]ame resolution|rdma_resolve_\w+ failed|times ADDR_ERROR")
# By whether RDMA-CM is used: perftest ignores --tclass with it, and ends if -T is given without it.
_TRAFFIC_CLASS = {False: "--tclass={}", True: "-T {}"}
_NAMES = {"cm": "RDMA-CM", "plain": "the plain exchange of addresses"}
# What a failed exchange prints, by the way it was done.
_UNREACHED = r"Couldn't connect to|[Nn]ame resolution|"
_FAILED = {
    "cm": re.compile(_UNREACHED + r"rdma_resolve_\w+ failed|Unexpected CM event|times ADDR_ERROR"),
    "plain": re.compile(_UNREACHED + r"Incompatibility issue with GID|QP \S+ to RTR"),
}
# What a port of InfiniBand does that demands a GRH of a queue pair without one.
_REFUSED_PATH = re.compile(r"QP \S+ to RTR")


def exchange_failed(client: Run | None, server: Run | None) -> bool:
    """Return whether a test failed where the other way to exchange addresses may work."""
    runs = [run for run in (client, server) if run is not None and run.rc and run.exchange in _FAILED]
    return any(_FAILED[run.exchange].search(run.text) for run in runs)


def path_refused(run: Run | None) -> bool:
    """Return whether a side met the other one, and its port then refused the path that it was told without RDMA-CM."""
    return run is not None and bool(run.rc) and run.exchange != "cm" and bool(_REFUSED_PATH.search(run.text))


def failed_by_exchange(client: Run | None, server: Run | None, way: str) -> bool:
    """Return whether a test failed only by its exchange of addresses, and passed later by another ``way``."""
    runs = [run for run in (client, server) if run is not None]
    if any(link_went_down(run.counters) for run in runs) or way in {run.exchange for run in runs}:
        return False
    return exchange_failed(client, server)


def exchange_args(rdma_cm: bool, traffic_class: int | None) -> list[str]:
    """Return perftest's options, for both sides, for the way to exchange addresses and the traffic class (None: 0)."""
    option = _TRAFFIC_CLASS[rdma_cm].format(traffic_class).split() if traffic_class is not None else []
    return [*(["-R"] if rdma_cm else []), *option]


def exchange_warning(asked: str, used: str, reason: str) -> str:
    """Return what to say of a test that was asked ``asked`` ("cm" or "plain") and measured ``used``; "" when equal."""
    if not used or asked == used:
        return ""
    return f"measured with {_NAMES[used]}, since {_NAMES[asked]} failed" + (f" ({reason})" if reason else "")
