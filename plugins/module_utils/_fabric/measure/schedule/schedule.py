# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What is measured in which round: the pairs of a mode (modes.py), their rails, kinds and sizes, and repetitions."""

from __future__ import annotations

from collections.abc import Callable, Collection, Hashable, Iterable, Mapping, Sequence
from itertools import chain, zip_longest
from typing import Any, NamedTuple

from ...._common.errors import InputError
from ...._common.reader import some
from ...intent.budgets import meetings
from ...intent.host_classes import of_plan
from ...intent.kinds import KINDS
from ...intent.tests import STARS, complete
from ...plan.groups import of_run
from . import modes
from .beside import from_host_memory
from .turns import links_of, of_memory, sharing, ways_of

# Keys of a result (report.json) that say what was measured; the last four are there only beyond the usual.
IDENTITY = ("where", "rail", "client", "server", "test", "size", "peer_rail", "memory", "star")
# Above this many hosts every pair would take too long, so mode auto takes samples.
ALL_PAIRS_UP_TO = 32


class Measurement(NamedTuple):
    """One test of the schedule: ``client`` sends to ``server`` on ``rail`` with perftest's program of its ``kind``.

    A tuple, since a fleet has a hundred thousand of them as keys of dicts.

    ``size`` in bytes where several are asked for, 0 for the only one. ``peer_rail``: the server's rail where it is
    not the client's, "" where it is. ``memory``: as in rdma_fabric.tests, both sides alike. ``star``: the mode of the
    star that it is a share of, "" for a test of two ports alone.
    """

    rail: str
    client: str
    server: str
    kind: str
    size: int = 0
    peer_rail: str = ""
    memory: str = "host"
    star: str = ""

    @property
    def server_rail(self) -> str:
        """The rail of the server."""
        return self.peer_rail or self.rail

    @property
    def centre(self) -> str:
        """The host in the middle of the star, "" without a star."""
        return {"incast": self.server, "one_to_many": self.client}.get(self.star, "")


def subject(result: Mapping[str, Any]) -> Measurement:
    """Return the test that a result (report.json) is about."""
    get = result.get
    return Measurement(
        result["rail"],
        result["client"],
        result["server"],
        result["test"],
        get("size", 0),
        get("peer_rail", ""),
        get("memory", "host"),
        get("star", ""),
    )


def label(result: Mapping[str, Any]) -> str:
    """Return what was measured between two ports, as people read it: ``write_bw``, ``write_bw 4096 B incast``."""
    size = f" {result['size']} B" if result.get("size") else ""
    memory = f" {result['memory']}" if result.get("memory") not in (None, "host") else ""
    star = f" {result['star']}" if result.get("star") else ""
    return f"{result['test']}{size}{memory}{star}"


Round = tuple[Measurement, ...]
# client, server, client's rail, server's rail or ""
_Flow = tuple[str, str, str, str]


class Field(NamedTuple):
    """Hosts that are measured with each other, on these rails: those of a class (rdma_fabric.classes)."""

    names: Sequence[str]
    rails: Sequence[str]
    title: str = ""


def fields(plan: Mapping[str, Any], names: Sequence[str]) -> list[Field]:
    """Return the classes of a plan with those of their hosts that are among ``names``, without empty ones."""
    classes = of_plan(plan)
    if len(classes) == 1:
        return [Field(names, classes[0]["rails"])]
    found = [Field([n for n in names if n in set(own["hosts"])], own["rails"], own["name"]) for own in classes]
    return [own for own in found if own.names]


def mode_of(tests: Mapping[str, Any], hosts: int) -> str:
    """Return the mode for so many hosts: the one asked for, or all pairs of a small fleet, samples of a large one."""
    mode = str(complete(tests)["mode"])
    if mode != "auto":
        return mode
    return "all_pairs" if hosts <= ALL_PAIRS_UP_TO else "sampled"


def planned(
    names: Sequence[str],
    rails: Sequence[str],
    tests: Mapping[str, Any],
    *,
    fields: Sequence[Field] = (),
    missing: Collection[tuple[str, str]] = (),
) -> list[Round]:
    """Return the whole schedule for ``names`` on ``rails``, as ``tests`` of the plan ask for it.

    In a round a host has one partner (the modes of stars: one centre), all rails of a pair at once unless told
    otherwise. Tests from host memory beside those from GPU memory come last. Raises InputError when the mode needs more
    hosts or rails, or nothing is left to measure.
    ``fields``: which of the names meet each other on which of the rails; by default all of them do on all. A field with
    too few hosts is left out if others are measured. ``missing``: hosts and rails that have no port there.
    """
    fields = fields or [Field(names, rails)]
    tests = complete(tests)
    mode = mode_of(tests, max(len(own.names) for own in fields))
    tests["mode"] = mode
    fields = _large_enough(fields, tests)
    _check_only(names, rails, tests, fields=fields)
    star = mode if mode in STARS else ""
    rounds = []
    for kind in tests["kinds"]:
        several = not KINDS[kind].latency and len(tests["sizes"]) > 1
        for size in tests["sizes"] if several else [0]:
            for flows in _together(fields, tests):
                ways = ((rail, c, s, kind, size, peer, tests["memory"], star) for c, s, rail, peer in flows)
                rounds.append(tuple(Measurement(*way) for way in ways))
    kept = _restricted(rounds, tests, missing)
    return [*kept, *repeat(from_host_memory(kept, tests), tests)]


def _together(fields: Sequence[Field], tests: Mapping[str, Any]) -> list[list[_Flow]]:
    """Return rounds in which all fields are measured at the same time."""
    rounds = zip_longest(*(_flows(own.names, own.rails, tests) for own in fields), fillvalue=[])
    return [list(chain.from_iterable(parts)) for parts in rounds]


def _large_enough(fields: Sequence[Field], tests: Mapping[str, Any]) -> list[Field]:
    """Return the fields with enough hosts to be measured; InputError when there is none, or for too few rails."""
    found = [own for own in fields if len(own.names) >= _least(tests["mode"])] or list(fields)
    for own in found:
        _check_size(own, tests)
    return found


def _least(mode: str) -> int:
    """Return how many hosts a mode needs."""
    return 3 if mode in STARS else 1 if mode == "loopback" else 2


def _check_size(field: Field, tests: Mapping[str, Any]) -> None:
    names, rails, mode = field.names, field.rails, tests["mode"]
    title = f" of class {field.title}" if field.title else ""
    others = ". To measure the other classes only, leave these hosts out with --limit" if field.title else ""
    needs = _least(mode)
    if len(names) < needs:
        raise InputError(
            f"nothing was measured: rdma_fabric.tests.mode {mode} needs {needs} hosts{title}, {len(names)} given"
            f" ({', '.join(names)}); widen --limit or the group of the fabric, or take another mode{others}"
        )
    if len(rails) < 2 and (mode == "loopback" or tests["cross_rail"]):
        what = "mode loopback" if mode == "loopback" else "cross_rail"
        raise InputError(
            f"nothing was measured: rdma_fabric.tests.{what} needs two rails{title}, the plan has {len(rails)}"
        )


def _check_only(
    names: Sequence[str], rails: Sequence[str], tests: Mapping[str, Any], *, fields: Sequence[Field]
) -> None:
    only = tests["only"]
    hosts = [*only.get("hosts", ()), *(name for pair in only.get("pairs", ()) for name in pair)]
    for key, given, known in (("hosts or pairs", hosts, names), ("rails", only.get("rails", ()), rails)):
        unknown = [name for name in dict.fromkeys(given) if name not in known]
        if unknown:
            raise InputError(
                f"nothing was measured: only.{key}: {some(unknown)} not in this run, which has {some(known)}"
            )
    apart = [pair for pair in only.get("pairs", ()) if not any({*pair} <= {*own.names} for own in fields)]
    if apart:
        raise InputError(
            f"nothing was measured: only.pairs: {some([' and '.join(pair) for pair in apart])} are hosts of different"
            " classes, which have no rail in common"
        )


def _flows(names: Sequence[str], rails: Sequence[str], tests: Mapping[str, Any]) -> list[list[_Flow]]:
    """Return rounds of who sends to whom from which rail to which."""
    mode = mode_of(tests, len(names))
    swaps = (False, True) if tests["directions"] == "swap" else (False,)
    if mode == "loopback":
        return [
            [(name, name, *((b, a) if swap else (a, b))) for name in names for a, b in pairs]
            for pairs in modes.circle(rails)
            for swap in swaps
        ]
    ways = ways_of(rails, tests, both=len(swaps) > 1 and mode not in STARS)
    if mode in STARS:
        return [
            [
                (*_ray(mode, centre, other), rail, peer)
                for centre, others in stars
                for other in others
                for rail, peer, _back in together
            ]
            for stars in modes.stars(names, tests["fan"])
            for together in ways
        ]
    return [
        [((b, a) if swap != back else (a, b)) + (rail, peer) for a, b in pairs for rail, peer, back in together]
        for pairs in _pairs(mode, names, tests)
        for swap in swaps
        for together in ways
    ]


def _ray(mode: str, centre: str, other: str) -> tuple[str, str]:
    return (other, centre) if mode == "incast" else (centre, other)


def _pairs(mode: str, names: Sequence[str], tests: Mapping[str, Any]) -> list[modes.Pairs]:
    if tests["only"].get("pairs"):
        own = [pair for pair in tests["only"]["pairs"] if pair[0] in names]
        wanted = {tuple(sorted(pair)): (pair[0], pair[1]) for pair in own}
        return modes.first_fit((pair, pair) for pair in wanted.values())
    if mode == "ring":
        return modes.neighbours(names)
    if mode == "sampled":
        return modes.sampled(names, meetings(tests, len(names)), tests["seed"])
    if mode == "topology":
        return modes.grouped(of_run(names, tests["groups"]), meetings(tests, len(names)), tests["seed"])
    return modes.circle(names)


def _restricted(rounds: Sequence[Round], tests: Mapping[str, Any], missing: Collection[tuple[str, str]]) -> list[Round]:
    is_named, missing = named(tests["only"]), set(missing)
    wanted = {
        test
        for round_ in rounds
        for test in round_
        if is_named(test) and (not missing or not {(test.client, test.rail), (test.server, test.server_rail)} & missing)
    }
    if not wanted:
        given = any(tests["only"].get(key) for key in ("hosts", "rails", "pairs"))
        raise InputError("nothing was measured: no test is planned" + (", only matches none" if given else ""))
    return pack(rounds, wanted, tests)


def named(only: Mapping[str, Any]) -> Callable[[Measurement], bool]:
    """Return what tells whether ``tests.only`` leaves a test in: a host, the rails and the pair of it are named."""
    hosts, rails = set(only.get("hosts", ())), set(only.get("rails", ()))
    pairs = {frozenset(pair) for pair in only.get("pairs", ())}

    def is_named(test: Measurement) -> bool:
        return bool(
            (not hosts or hosts & {test.client, test.server})
            and (not rails or {test.rail, test.server_rail} <= rails)
            and (not pairs or frozenset((test.client, test.server)) in pairs)
        )

    return is_named


def only(rounds: Sequence[Round], wanted: Collection[Measurement]) -> list[Round]:
    """Return the rounds without the tests that are not wanted, and without rounds left empty."""
    kept = (tuple(test for test in round_ if test in wanted) for round_ in rounds)
    return [round_ for round_ in kept if round_]


def pack(rounds: Sequence[Round], wanted: Collection[Measurement], tests: Mapping[str, Any]) -> list[Round]:
    """Return rounds of the wanted tests alone, in their planned rounds or closer together where that needs fewer.

    Tests that are not in ``rounds`` get rounds of their own there.
    """
    kept = only(rounds, wanted)
    if len(wanted) == sum(map(len, rounds)) == sum(map(len, kept)):
        return kept
    more = set(wanted).difference(chain.from_iterable(kept))
    return min([*kept, *repeat(more, tests)], repeat(wanted, tests), key=len)


def repeat(wanted: Iterable[Measurement], tests: Mapping[str, Any] | None = None) -> list[Round]:
    """Return rounds for tests in any order; the rails of a pair stay together, and so does a star.

    ``tests``: those of the plan, for whether rails are played at once.
    """
    tests = complete(tests or {})
    units: dict[tuple[object, ...], list[Measurement]] = {}
    for test in sorted(wanted):
        units.setdefault(_unit(test), []).append(test)
    sheets = [sheet for unit in units.values() for sheet in _sheets(unit, of_memory(tests, unit[0].memory))]
    hosts = ({name for test in sheet for name in (test.client, test.server)} for sheet in sheets)
    rounds = modes.first_fit(zip(sheets, hosts))
    return [tuple(chain.from_iterable(round_)) for round_ in rounds]


def whole(tests: Iterable[Measurement], among: Iterable[Measurement]) -> list[Measurement]:
    """Return tests with the rest of their stars, since the share of one says nothing without the others."""
    wanted = set(tests)
    stars = {star_of(test) for test in wanted if test.star}
    return [test for test in among if test in wanted or (test.star and star_of(test) in stars)]


def star_of(test: Measurement) -> tuple[object, ...]:
    """Return what the shares of one star have in common."""
    return (*_unit(test), test.rail)


def _unit(test: Measurement) -> tuple[object, ...]:
    """Return what tests have in common that belong into one round."""
    names = (test.centre,) if test.star else (test.client, test.server)
    return (test.kind, test.size, test.memory, test.star, *names)


def _sheets(unit: Sequence[Measurement], tests: Mapping[str, Any]) -> list[list[Measurement]]:
    """Cut a unit so that no rail of a host is used twice at once, or no two rails where they are to be alone."""
    in_turns = sharing(tests) and tests["mode"] in STARS
    alone = in_turns or (not tests["rails_at_once"] and tests["mode"] != "loopback")
    ways: dict[tuple[str, str], list[tuple[Measurement, Collection[Hashable]]]] = {}
    for test in unit:
        ends = ((test.client, test.rail), (test.server, test.server_rail))
        busy: set[Hashable] = {end for end in ends if end[0] != test.centre}
        busy |= set() if alone else links_of(tests, (test.client, test.server), test.rail, peer=test.server_rail)
        ways.setdefault((test.rail, test.peer_rail) if alone else ("", ""), []).append((test, busy))
    return [sheet for together in ways.values() for sheet in modes.first_fit(together)]
