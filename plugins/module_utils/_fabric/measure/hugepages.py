# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""How many huge pages the tests of a host need at once, from what perftest allocates with ``--use_hugepages``.

Each program takes one buffer: for every queue pair a half to send from and a half to receive into, each as large as a
message and at least a page of memory. It is rounded up to whole pages of 2 MiB.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from .lines import message_size
from .options import LATENCY, STARS, complete

PAGE = 2 << 20
_SMALLEST = 4096
# The longest that processors have: messages are rounded up to it.
_CACHE_LINE = 128


def pages_at_once(plan: Mapping[str, Any]) -> int:
    """Return the huge pages of 2 MiB that the tests of one host hold at the same time, 0 when none are asked for."""
    tests = complete(plan.get("tests") or {})
    if not tests["hugepages"]:
        return 0
    largest = max(_buffer(tests, kind, size) for kind in tests["kinds"] for size in tests["sizes"] or [0])
    return -(-largest // PAGE) * _programs(tests, len(plan["rails"]), len(plan["endpoints"]["pod"]))


def _buffer(tests: Mapping[str, Any], kind: str, size: int) -> int:
    """Return the bytes of one program's buffer."""
    latency = kind in LATENCY
    message = -(-message_size(tests, kind, 0 if latency else size) // _CACHE_LINE) * _CACHE_LINE
    return 2 * (1 if latency else int(tests["queue_pairs"])) * max(message, _SMALLEST)


def _programs(tests: Mapping[str, Any], rails: int, hosts: int) -> int:
    """Return how many programs run on a host in a round at most."""
    others = min(int(tests["fan"]), hosts - 1) if tests["mode"] in STARS else 1
    return others * (rails if tests["rails_at_once"] or tests["mode"] == "loopback" else 1)
