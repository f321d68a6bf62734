# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""How many huge pages the tests of a host need at once, from what perftest allocates with ``--use_hugepages``.

Each program takes one buffer: for every queue pair a half to send from and a half to receive into, each as large as a
message and at least a page of memory. It is rounded up to whole pages of 2 MiB.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from ...intent.host_classes import most_rails
from ...intent.kinds import KINDS
from ...intent.tests import STARS, complete
from .tester_input import message_size

PAGE = 2 << 20
_SMALLEST = 4096
# The longest that processors have: messages are rounded up to it.
_CACHE_LINE = 128
# Of a tester, of each program of a test, the same with CUDA, and of an entry of its queues: bytes.
_TESTER = 512 << 20
_PROGRAM = 128 << 20
_CUDA_PROGRAM = 2 << 30
_QUEUE_ENTRY = 256


def pages_at_once(plan: Mapping[str, Any]) -> int:
    """Return the huge pages of 2 MiB that the tests of one host hold at the same time, 0 when none are asked for."""
    tests = complete(plan.get("tests") or {})
    if not tests["hugepages"]:
        return 0
    largest = max(_buffer(tests, kind, size) for kind in tests["kinds"] for size in tests["sizes"] or [0])
    return -(-largest // PAGE) * _programs(tests, most_rails(plan), len(plan["endpoints"]["pod"]))


def memory_at_once(plan: Mapping[str, Any]) -> int:
    """Return the bytes that the tests of one host need at the same time at most: a limit, several times the usual.

    Libraries and queues of each program, its buffer, and with GPU memory what the CUDA driver maps.
    """
    tests = complete(plan.get("tests") or {})
    largest = max(_buffer(tests, kind, size) for kind in tests["kinds"] for size in tests["sizes"] or [0])
    queues = 2 * int(tests["queue_pairs"]) * int(tests["tx_depth"]) * _QUEUE_ENTRY
    own = _PROGRAM if tests["memory"] == "host" else _CUDA_PROGRAM
    programs = 2 * _programs(tests, most_rails(plan), len(plan["endpoints"]["pod"]))
    return _TESTER + programs * (own + 2 * largest + queues)


def _buffer(tests: Mapping[str, Any], kind: str, size: int) -> int:
    """Return the bytes of one program's buffer."""
    latency = KINDS[kind].latency
    message = -(-message_size(tests, kind, 0 if latency else size) // _CACHE_LINE) * _CACHE_LINE
    return 2 * (1 if latency else int(tests["queue_pairs"])) * max(message, _SMALLEST)


def _programs(tests: Mapping[str, Any], rails: int, hosts: int) -> int:
    """Return how many programs run on a host in a round at most."""
    others = min(int(tests["fan"]), hosts - 1) if tests["mode"] in STARS else 1
    return others * (rails if tests["rails_at_once"] or tests["mode"] == "loopback" else 1)
