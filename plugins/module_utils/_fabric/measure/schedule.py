# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Who measures with whom, and when: rounds of disjoint pairs, and the lines that testers play."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from ..._core.errors import InputError

# Ports repeat after this many rounds: long enough for sockets of an earlier round to be gone.
PORT_CYCLE = 8
KINDS = ("write_bw", "read_bw", "send_bw")


@dataclass(frozen=True, order=True)
class Test:
    """One measurement: ``client`` sends to ``server`` on ``rail`` with perftest's ``ib_<kind>``."""

    rail: str
    client: str
    server: str
    kind: str


Round = tuple[Test, ...]


def circle(names: Sequence[str]) -> list[list[tuple[str, str]]]:
    """Return rounds in which every pair of ``names`` meets exactly once and nobody is used twice in a round.

    The circle method: one name stays, the others turn; an odd count gets a bye.
    """
    ring = list(names) + ([""] if len(names) % 2 else [])
    rounds = []
    for _turn in range(len(ring) - 1):
        half = len(ring) // 2
        pairs = zip(ring[:half], reversed(ring[half:]))
        rounds.append([(a, b) for a, b in pairs if a and b])
        ring = [ring[0], ring[-1], *ring[1:-1]]
    return rounds


def all_pairs(names: Sequence[str], rails: Sequence[str], kinds: Sequence[str]) -> list[Round]:
    """Return the whole schedule: every ordered pair once per rail and kind, all rails of a pair at once.

    Each round of the circle is played twice with the roles swapped, so that both directions are measured.
    """
    unknown = [kind for kind in kinds if kind not in KINDS]
    if unknown:
        raise InputError(
            "rdma_fabric.tests.kinds: {} cannot be judged yet; expected some of {}".format(
                ", ".join(unknown), ", ".join(KINDS)
            )
        )
    rounds: list[Round] = []
    for kind in kinds:
        for pairs in circle(names):
            for swap in (False, True):
                directed = [(b, a) if swap else (a, b) for a, b in pairs]
                rounds.append(tuple(Test(rail, c, s, kind) for c, s in directed for rail in rails))
    return rounds


def repeat(tests: Collection[Test]) -> list[Round]:
    """Return rounds for tests that are to be tried again; the rails of a pair stay together."""
    groups: dict[tuple[str, str, str], list[Test]] = {}
    for test in sorted(tests):
        groups.setdefault((test.kind, test.client, test.server), []).append(test)
    rounds: list[list[Test]] = []
    used: list[set[str]] = []
    for (_kind, client, server), group in groups.items():
        # The first round in which both are free: at most twice as many rounds as needed, usually none too many.
        at = next((i for i, busy in enumerate(used) if not busy & {client, server}), len(rounds))
        if at == len(rounds):
            rounds.append([])
            used.append(set())
        rounds[at].extend(group)
        used[at] |= {client, server}
    return [tuple(round_) for round_ in rounds]


def only(rounds: Sequence[Round], wanted: Collection[Test]) -> list[Round]:
    """Return the rounds without the tests that are not wanted, and without rounds left empty."""
    kept = (tuple(test for test in round_ if test in wanted) for round_ in rounds)
    return [round_ for round_ in kept if round_]


def port(base: int, rails: Sequence[str], number: int, rail: str) -> int:
    """Return the TCP port of perftest's own exchange in round ``number`` on ``rail``."""
    return base + (number % PORT_CYCLE) * len(rails) + rails.index(rail)


def perftest_args(tests: Mapping[str, Any]) -> str:
    """Return the perftest options that client and server share, from the plan's ``tests``.

    The margin is given because perftest's own default halves the measured window.
    """
    duration = int(tests["duration"])
    args = ["-F", "--report_gbits", "-c", "RC", "-q", tests["queue_pairs"], "-s", tests["size"]]
    args += ["-t", tests["tx_depth"], "-D", duration]
    args += ["-f", duration // 5] if duration >= 5 else []
    args += ["-m", tests["mtu"]] if tests.get("mtu") else []
    return " ".join(str(arg) for arg in args)


def lines(
    rounds: Sequence[Round],
    rails: Sequence[str],
    tests: Mapping[str, Any],
    addresses: Mapping[tuple[str, str], str],
) -> dict[str, list[str]]:
    """Return each endpoint's schedule lines, closed by ``END count``.

    ``addresses``: (endpoint, rail) to the address where the peer reaches it for perftest's own exchange.
    """
    args = perftest_args(tests)
    result: dict[str, list[str]] = {}
    for number, round_ in enumerate(rounds):
        for test in round_:
            at = port(int(tests["port_base"]), rails, number, test.rail)
            for role, own, peer in (("server", test.server, test.client), ("client", test.client, test.server)):
                words = (number, test.rail, role, addresses[peer, test.rail], at, test.kind, args)
                result.setdefault(own, []).append(" ".join(str(word) for word in words))
    for own in result:
        result[own].append(f"END {len(result[own])}")
    return result
