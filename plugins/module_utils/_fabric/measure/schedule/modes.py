# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Who meets whom: rounds of pairs of names, one function for each mode. Nobody is in two pairs of a round."""

from __future__ import annotations

import hashlib
from collections.abc import Collection, Hashable, Iterable, Iterator, Mapping, Sequence
from itertools import chain, islice, zip_longest
from typing import TypeVar

Item = TypeVar("Item")
Pair = tuple[str, str]
Pairs = list[Pair]


def circle(names: Sequence[str]) -> list[Pairs]:
    """Return rounds in which every pair of ``names`` meets exactly once and nobody is used twice in a round.

    The circle method: one name stays, the others turn; an odd count gets a bye.
    """
    return list(_turns(names))


def _turns(names: Sequence[str]) -> Iterator[Pairs]:
    ring = list(names) + ([""] if len(names) % 2 else [])
    half = len(ring) // 2
    for _turn in range(len(ring) - 1):
        pairs = zip(ring[:half], reversed(ring[half:]))
        yield [(a, b) for a, b in pairs if a and b]
        ring = [ring[0], ring[-1], *ring[1:-1]]


def neighbours(names: Sequence[str]) -> list[Pairs]:
    """Return two rounds (three for an odd count) in which each name meets the one before and the one after it."""
    count = len(names)
    edges = [(names[i], names[(i + 1) % count]) for i in range(count if count > 2 else count - 1)]
    # In an odd ring the last edge has a neighbour on both sides and needs a round of its own.
    last = [edges.pop()] if count % 2 and count > 1 else []
    return [round_ for round_ in (edges[::2], edges[1::2], last) if round_]


def shuffled(names: Iterable[str], seed: int) -> list[str]:
    """Return names in an order that depends on the seed and the names alone."""
    return sorted(names, key=lambda name: hashlib.sha256(f"{seed}:{name}".encode()).digest())


def sampled(names: Sequence[str], meetings: int, seed: int) -> list[Pairs]:
    """Return rounds in which each name meets ``meetings`` others; the same seed gives the same rounds.

    With an odd count somebody rests in each round; those meet later, so a few names have one meeting more.
    """
    order = shuffled(names, seed)
    if meetings >= len(order) - 1:
        return circle(order)
    chosen = list(islice(_turns(order), meetings))
    met: dict[str, set[str]] = {name: set() for name in order}
    for a, b in chain.from_iterable(chosen):
        met[a].add(b)
        met[b].add(a)
    late: Pairs = []
    for name in order:
        while len(met[name]) < meetings:
            strangers = (other for other in order if other != name and other not in met[name])
            partner = min(strangers, key=lambda other: len(met[other]))
            late.append((name, partner))
            met[name].add(partner)
            met[partner].add(name)
    return chosen + first_fit((pair, pair) for pair in late)


def first_fit(items: Iterable[tuple[Item, Collection[Hashable]]]) -> list[list[Item]]:
    """Return rounds of the items, each in the first round in which all that it keeps busy is free.

    At most twice as many rounds as needed, usually none too many.
    """
    rounds: list[list[Item]] = []
    used: list[set[Hashable]] = []
    for item, busy in items:
        at = next((i for i, taken in enumerate(used) if taken.isdisjoint(busy)), len(rounds))
        if at == len(rounds):
            rounds.append([])
            used.append(set())
        rounds[at].append(item)
        used[at].update(busy)
    return rounds


def grouped(groups: Mapping[str, Sequence[str]], meetings: int, seed: int) -> list[Pairs]:
    """Return rounds inside all the groups at once, then rounds across groups.

    Inside, each name meets ``meetings`` others of its group; across, each group meets as many other groups, and in such
    a meeting every member of the smaller group has a partner.
    """
    inside = [sampled(members, meetings, seed) for members in groups.values()]
    rounds = [list(chain.from_iterable(parts)) for parts in zip_longest(*inside, fillvalue=[])]
    for number, meeting in enumerate(sampled(list(groups), meetings, seed)):
        rounds.append(list(chain.from_iterable(_across(groups[a], groups[b], number, seed=seed) for a, b in meeting)))
    return [round_ for round_ in rounds if round_]


def _across(one: Sequence[str], other: Sequence[str], number: int, *, seed: int) -> Pairs:
    first, second = shuffled(one, seed), shuffled(other, seed)
    # Turned with the round, so that in a larger group not the same members are left out each time.
    first = _turned(first, number * len(second))
    second = _turned(second, number * len(first))
    return list(zip(first, second))


def _turned(names: Sequence[str], by: int) -> list[str]:
    at = by % len(names)
    return [*names[at:], *names[:at]]


def stars(names: Sequence[str], width: int) -> list[list[tuple[str, list[str]]]]:
    """Return rounds of (centre, at most ``width`` others); every name is a centre exactly once, nobody is in two stars.

    The names are cut into blocks; in each round one name of each block is its centre, the next ones are around it.
    """
    count = max(1, len(names) // (width + 1))
    blocks = [list(names[i * len(names) // count : (i + 1) * len(names) // count]) for i in range(count)]
    rounds = []
    for turn in range(max(len(block) for block in blocks)):
        turned = [_turned(block, turn) for block in blocks if turn < len(block)]
        rounds.append([(block[0], block[1 : width + 1]) for block in turned if len(block) > 1])
    return rounds
