# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Tests from host memory beside those from GPU memory, which show what the way to the GPU costs."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from .schedule import Measurement, Round


def from_host_memory(rounds: Iterable[Round], tests: Mapping[str, Any]) -> list[Measurement]:
    """Return tests of ``rounds`` as they are done from host memory: each port sends and receives in one of each kind.

    None for shares of stars, which say nothing about single ports. ``tests``: complete.
    """
    if tests["memory"] == "host" or not tests["compare_host_memory"]:
        return []
    seen: set[tuple[object, ...]] = set()
    found = []
    for round_ in rounds:
        for test in round_:
            what = (test.kind, test.size)
            ends = {(*what, "client", test.client, test.rail), (*what, "server", test.server, test.server_rail)}
            if not test.star and not ends <= seen:
                seen |= ends
                found.append(test._replace(memory="host"))
    return found
