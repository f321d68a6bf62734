# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Ports that read low now and then, and the tests that tell those of them that are bad from chance.

All suspects are tested at the same time, alone, each with many good partners in both directions. Every test has new
queue pairs, so it takes another path where there are several.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from typing import Any, NamedTuple

from ..schedule.schedule import Measurement, Round, subject
from .components import Component, Totals, View, ends_of, readings
from .explain import Explanation, suspects
from .permanent import Reviewed
from .significance import estimated, to_clear
from .unsteady import understood

Result = Mapping[str, Any]
# A port: (host, rail).
_Port = tuple[str, str]


class Suspect(NamedTuple):
    """A port that is neither cleared nor accused: after ``needs`` more readings without a low one it is cleared."""

    host: str
    rail: str
    needs: int
    test: Measurement


def open_suspects(results: Reviewed, view: View, share: float) -> list[Suspect]:
    """Return the ports that a fault of this ``share`` of their tests may have, from the readings of one place."""
    seen, totals = understood(results, view)
    found = []
    count, whole = sum(low.number for low in seen.rest), totals.tests[Component("run")]
    for (host, rail), (low, tests, result) in sorted(suspects(seen.rest, totals).items(), key=lambda item: item[0]):
        # Its own readings say nothing about the background.
        background = estimated(view.background, count - low, whole - tests)
        needs = to_clear(low, tests, background, share=share)
        if needs:
            found.append(Suspect(host, rail, needs, subject(result)._replace(peer_rail="", star="")))
    return [*found, *_beside(seen, totals)]


def _beside(seen: Explanation, totals: Totals) -> Iterator[Suspect]:
    """Yield the other ports of hosts that are unsteady, as a whole or at one port, until it is clear which of it is.

    One low reading by chance at another port would otherwise make a host of a port.
    """
    of_host = {part.one: (part, own) for part, own in seen.found if part.kind in ("host", "port", "direction")}
    if not of_host:
        return
    lows = Counter[Component]()
    for low in (*seen.rest, *(low for _part, own in seen.found for low in own)):
        lows.update({part: low.number for part in low.parts if part.kind == "port"})
    for port in sorted(part for part in totals.tests if part.kind == "port" and part.one in of_host):
        part, own = of_host[port.one]
        share, tests = sum(low.number for low in own) / max(1, totals.tests[part]), totals.tests[port]
        if port.rail != part.rail and lows[port] < share * tests:
            needs = to_clear(lows[port], tests, seen.background, share=share)
            if needs:
                like = subject(own[0].result)._replace(rail=port.rail, peer_rail="", star="")
                yield Suspect(port.one, port.rail, needs, like)


def rounds_of(
    found: Sequence[Suspect],
    results: Sequence[Result],
    names: Sequence[str],
    *,
    left: int,
    named: Callable[[Measurement], bool] = lambda test: True,
) -> list[Round]:
    """Return rounds of tests of suspects, at most ``left``, until each would be cleared by readings that pass.

    ``named``: whether a test is not excluded (tests.only).
    """
    if not found:
        return []
    good = {end for result in results if readings(result)[0] < readings(result)[1] for end in ends_of(result)}
    rounds: list[Round] = []
    played = dict.fromkeys(((one.host, one.rail) for one in found), 0)
    while names and len(rounds) < left:
        due = [one for one in found if played[one.host, one.rail] < one.needs]
        # Who had the fewest comes first where partners are few.
        due.sort(key=lambda one: played[one.host, one.rail])
        round_ = tuple(_round(due, good, names, at=len(rounds), all_suspects=played, named=named))
        if not round_:
            break
        for port in {end for test in round_ for end in ((test.client, test.rail), (test.server, test.rail))}:
            if port in played:
                played[port] += 1
        rounds.append(round_)
    return rounds


def _round(
    due: Sequence[Suspect],
    good: Collection[_Port],
    names: Sequence[str],
    *,
    at: int,
    all_suspects: Collection[_Port],
    named: Callable[[Measurement], bool],
) -> Iterator[Measurement]:
    """Yield the tests of a round: every host of suspects with one partner whose own ports there are none."""
    by_host: dict[str, list[Suspect]] = {}
    for one in due:
        by_host.setdefault(one.host, []).append(one)
    busy: set[str] = set()
    for place, (host, own) in enumerate(by_host.items()):
        if host in busy:
            continue
        turn = (at * (len(names) // 2 + 1) + place) % len(names)
        for partner in (*names[turn:], *names[:turn]):
            if partner == host or partner in busy:
                continue
            # Each direction in turn.
            client, server = (host, partner) if at % 2 else (partner, host)
            fits = [
                one.test._replace(rail=one.rail, client=client, server=server)
                for one in own
                if (partner, one.rail) in good and (partner, one.rail) not in all_suspects
            ]
            if fits := [test for test in fits if named(test)]:
                busy |= {host, partner}
                yield from fits
                break
