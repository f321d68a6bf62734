# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Stars (modes incast and one_to_many): what their shares prove of single hosts, and what only tests of pairs do.

The sum of a star is judged, so a failed one says no more than that its hosts together did not reach what the link of
its centre can: any of them may hold it back. Its shares, each alone, are tests of pairs that tell.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from ...intent.kinds import KINDS
from ..schedule.schedule import Measurement, star_of, subject
from .pass_index import Result
from .wording import SUSPECTED, Diagnosis, listed

# How the reason of a share begins whose star had another without data.
VOID = "its share is not conclusive"
# A side of a port: (rail, host, "send" or "receive").
_Side = tuple[str, str, str]


@dataclass(frozen=True)
class Star:
    """A star that did not reach what it should though each share gave data. ``reason``: that of its shares."""

    shares: tuple[Measurement, ...]
    reason: str

    @property
    def rail(self) -> str:
        """The rail of the star."""
        return self.shares[0].rail

    @property
    def centre(self) -> str:
        """The host in the middle."""
        return self.shares[0].centre

    @property
    def role(self) -> str:
        """What the centre does: send or receive."""
        return next(role for _rail, host, role in _sides(self.shares[0]) if host == self.centre)

    def hosts(self) -> set[str]:
        """Return everybody who took part."""
        return {name for test in self.shares for name in (test.client, test.server)}

    def open(self, good: Collection[_Side]) -> set[str]:
        """Return the hosts whose side in the star is not known to work."""
        return {host for test in self.shares for rail, host, role in _sides(test) if (rail, host, role) not in good}


def _sides(test: Measurement) -> Iterator[_Side]:
    """Yield the side that a test needs of each of its hosts."""
    way = KINDS[test.kind].ways((test.client, test.rail), (test.server, test.server_rail))[0]
    for role, (host, rail) in zip(("send", "receive"), way):
        yield rail, host, role


def split(results: Sequence[Result]) -> tuple[Sequence[Result], list[Star]]:
    """Return the results that are evidence about two hosts alone, and the failed stars, about which only they are."""
    if not any(result.get("star") for result in results):
        return results, []
    pairs = [result for result in results if not result.get("star")]
    groups: dict[tuple[object, ...], list[Result]] = {}
    for result in results:
        if result.get("star"):
            groups.setdefault(star_of(subject(result)), []).append(result)
    failed = []
    for group in groups.values():
        pairs += _evidence(group)
        left = _undecided(group)
        if left:
            failed.append(Star(tuple(subject(result) for result in left), left[0]["reason"]))
    return pairs, failed


def _evidence(group: Sequence[Result]) -> list[Result]:
    """Return the shares that say something by themselves: of a star that passed, and where one gave no data.

    A low share of a star that passed is none: the others may have made good for it, or left it no more. One that is
    not low passed for its hosts, also where the sum says nothing.
    """
    if any(result["verdict"] == "pass" for result in group):
        return [result for result in group if result["verdict"] != "pass" or _is_whole(result)]
    silent = [result for result in group if result["value"] is None]
    return [*silent, *({**result, "verdict": "pass"} for result in group if _is_void(result) and _is_whole(result))]


def _undecided(group: Sequence[Result]) -> list[Result]:
    """Return the shares that were judged by their sum alone."""
    if any(result["verdict"] == "pass" for result in group):
        return []
    silent = any(result["value"] is None for result in group)
    return [result for result in group if result["value"] is not None and not (silent and _is_void(result))]


def _is_void(result: Result) -> bool:
    """Return whether its star has no sum, for want of another share."""
    return result["value"] is not None and VOID in result["reason"]


def _is_whole(result: Result) -> bool:
    """Return whether a share is not less than its part of what the star had to reach."""
    return bool(result["value"] >= result["expected"])


def shares_alone(stars: Sequence[Star], pairs: Sequence[Result]) -> list[Measurement]:
    """Return the tests of two hosts alone that tell who holds the failed stars back, without those that were played."""
    verdicts = _verdicts(pairs) if stars else {}
    return [test for star in stars if not _explained(star, verdicts) for test in _alone(star) if test not in verdicts]


def diagnoses(
    where: str, stars: Sequence[Star], pairs: Sequence[Result], *, results: Sequence[Result]
) -> list[Diagnosis]:
    """Return diagnoses for the stars that no test of two hosts explains, in ``where``; none of them is confirmed.

    ``pairs``: the evidence about two hosts. ``results``: all, for the stars that passed.
    """
    if not stars:
        return []
    verdicts = _verdicts(pairs)
    passed = [test for test, verdict in verdicts.items() if verdict == "pass"]
    good = {side for test in passed for side in _sides(test)}
    counts = Counter(rail for rail, passes in _stars_of(results) if passes)
    left = [star for star in stars if not _explained(star, verdicts)]
    told = []
    for rail in sorted({star.rail for star in left}):
        own = [star for star in left if star.rail == rail]
        told += _of_rail(_Rail(where, rail, good, verdicts, counts[rail]), own)
    return told


def _stars_of(results: Sequence[Result]) -> set[tuple[str, Any]]:
    """Return (rail, star) of the stars that passed, whichever of their shares did."""
    return {(r["rail"], star_of(subject(r))) for r in results if r.get("star") and r["verdict"] == "pass"}


@dataclass(frozen=True)
class _Rail:
    """What is known of a rail. ``passed``: how many of its stars did."""

    where: str
    name: str
    good: Collection[_Side]
    verdicts: Mapping[Measurement, str]
    passed: int


def _of_rail(rail: _Rail, stars: Sequence[Star]) -> list[Diagnosis]:
    """Return the diagnoses of the failed stars of one rail."""
    if len(stars) > 1 and not rail.passed and all(_passes_alone(star, rail.verdicts) for star in stars):
        text = (
            f"{rail.name}: none of its {len(stars)} stars passed, while every pair of hosts passes alone: suspect"
            " congestion on the rail"
        )
        return [_diagnosis(rail, stars, "rail", host=None, direction=None, text=text)]
    centres = [star for star in stars if star.open(rail.good) <= {star.centre}]
    rest = [star for star in stars if star not in centres]
    return [*(_of_centre(rail, star) for star in centres), *([_of_rest(rail, rest)] if rest else [])]


def _of_centre(rail: _Rail, star: Star) -> Diagnosis:
    alone = "each of them passes alone" if _passes_alone(star, rail.verdicts) else "each of them passes in other stars"
    what = "receiving from" if star.role == "receive" else "sending to"
    others = listed(star.hosts() - {star.centre})
    text = f"{star.centre} {star.rail}: too slow when {what} {others} at once, while {alone}"
    return _diagnosis(rail, [star], "direction", host=star.centre, direction=star.role, text=text)


def _of_rest(rail: _Rail, stars: Sequence[Star]) -> Diagnosis:
    """Return the diagnosis of stars of which more than the centre may be bad: of the only one who is in all of them."""
    suspects = set.intersection(*(star.open(rail.good) for star in stars))
    count = f"{len(stars)} stars" if len(stars) > 1 else "1 star"
    if len(suspects) == 1:
        (host,) = suspects
        text = (
            f"{host} {rail.name}: {count} with this host did not pass, and it is the only host in all of them without a"
            " passing test"
        )
        return _diagnosis(rail, stars, "port", host=host, direction=None, text=text)
    names = listed(set().union(*(star.open(rail.good) for star in stars)))
    text = f"{rail.name}: {count} did not pass; which of their hosts is the cause is unknown ({names})"
    return _diagnosis(rail, stars, "unknown", host=None, direction=None, text=text)


def _diagnosis(
    rail: _Rail, stars: Sequence[Star], kind: str, *, host: str | None, direction: str | None, text: str
) -> Diagnosis:
    failed = sum(len(star.shares) for star in stars)
    reasons = Counter(star.reason for star in stars if star.reason)
    centres = listed({star.centre for star in stars})
    mode = stars[0].shares[0].star
    return Diagnosis(
        where=rail.where,
        kind=kind,
        rail=rail.name,
        host=host,
        peer=None,
        direction=direction,
        confidence=SUSPECTED,
        failed=failed,
        tests=failed,
        evidence=(f"{mode} with {centres} at the center did not pass", f"{rail.passed} stars of the rail passed"),
        text=text + (f" ({reasons.most_common(1)[0][0]})" if reasons else ""),
    )


def _verdicts(pairs: Sequence[Result]) -> dict[Measurement, str]:
    return {subject(result): result["verdict"] for result in pairs}


def _alone(star: Star) -> list[Measurement]:
    return [test._replace(star="") for test in star.shares]


def _explained(star: Star, verdicts: Mapping[Measurement, str]) -> bool:
    """Return whether a share fails alone as well: then the test of the two has a diagnosis of its own."""
    return any(verdicts.get(test, "pass") != "pass" for test in _alone(star))


def _passes_alone(star: Star, verdicts: Mapping[Measurement, str]) -> bool:
    return all(verdicts.get(test) == "pass" for test in _alone(star))
