# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Which rails of a pair are tested at the same time (rdma_fabric.tests.rails_at_once)."""

from __future__ import annotations

from collections.abc import Hashable, Mapping, Sequence
from typing import Any

from ...intent.tests import AUTO

# Rail of the client, rail of the server or "", and whether it goes back, against the others.
Way = tuple[str, str, bool]


def ways_of(rails: Sequence[str], tests: Mapping[str, Any], *, both: bool) -> list[list[Way]]:
    """Return for each round of a pair the ways that are played at once; ``both``: each is played in both directions."""
    ways = [[(rail, "") for rail in rails]]
    if tests["cross_rail"]:
        ways += [
            [(rail, rails[(index + shift) % len(rails)]) for index, rail in enumerate(rails)]
            for shift in range(1, len(rails))
        ]
    if not tests["rails_at_once"]:
        return [[(*way, False)] for together in ways for way in together]
    return [turn for together in ways for turn in _turns(together, tests, both=both)]


def _turns(ways: Sequence[tuple[str, str]], tests: Mapping[str, Any], *, both: bool) -> list[list[Way]]:
    """Return the ways in turns, so that no PCIe link is used by two rails in one direction at the same time.

    Such a link carries as much in each direction, so with ``both`` a second rail goes back meanwhile.
    """
    turns: list[list[Way]] = []
    used: list[set[Hashable]] = []
    for rail, peer in ways:
        busy = {
            back: links_of(tests, ("b", "a") if back else ("a", "b"), rail, peer=peer or rail) for back in (False, True)
        }
        choices = ((at, back) for at in range(len(turns)) for back in ((False, True) if both else (False,)))
        at, back = next(((at, back) for at, back in choices if used[at].isdisjoint(busy[back])), (len(turns), False))
        if at == len(turns):
            turns.append([])
            used.append(set())
        turns[at].append((rail, peer, back))
        used[at] |= busy[back]
    return turns


def sharing(tests: Mapping[str, Any]) -> Sequence[Sequence[str]]:
    """Return the groups of rails that are not tested at once in one direction, since they share a PCIe link."""
    found: Sequence[Sequence[str]] = tests.get("sharing", ())
    return found if tests["rails_at_once"] == AUTO else ()


def of_memory(tests: Mapping[str, Any], memory: str) -> Mapping[str, Any]:
    """Return ``tests`` with the rails that share a link on the way to ``memory``: to the GPU there may be others."""
    if memory == "host" and "host_sharing" in tests:
        return {**tests, "sharing": tests["host_sharing"]}
    return tests


def links_of(tests: Mapping[str, Any], ends: tuple[str, str], rail: str, *, peer: str) -> set[Hashable]:
    """Return the directions of shared PCIe links that a test keeps busy; ``ends``: its client and its server."""
    both = tests["directions"] == "together"
    return {
        (host, at, direction)
        for at, group in enumerate(sharing(tests))
        for host, own, usual in ((ends[0], rail, "out"), (ends[1], peer, "in"))
        if own in group
        for direction in (("out", "in") if both else (usual,))
    }


def rails_at_once(tests: Mapping[str, Any], mode: str) -> bool:
    """Return whether all rails of a host that share a PCIe link are tested over it at the same time."""
    return tests["rails_at_once"] is True or mode == "loopback"
