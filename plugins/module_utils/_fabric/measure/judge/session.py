# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What one step works with: endpoints, attempts so far, and what each test has to reach."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any, NamedTuple

from ...plan.link_findings import below
from ...plan.link_rates import GRH, IPV6, coding
from ..diagnosis.absence import FIRM, WEAK, Conduct, Shown, recent, shown
from ..readings import ib_port, tester_cpu
from ..readings.exchange import failed_by_exchange
from ..readings.perftest import Run, Sample
from ..readings.port_state import Ports
from ..readings.tester_log import Endpoint
from ..schedule import crossing
from ..schedule.flow_labels import Paths
from ..schedule.schedule import Measurement, star_of
from ..schedule.turns import rails_at_once
from .expectation import Asked, Expectation, Side, described_rate, expect, side_of
from .ib_paths import Grh, Lids, ends_of
from .port_health import Port
from .stalled import InRound, is_stalled


class Attempt(NamedTuple):
    """One try in round ``at`` of pass ``number``: a sample, or None and the reason, and what both sides told."""

    number: int
    at: int
    sample: Sample | None
    reason: str
    client: Run | None = None
    server: Run | None = None

    @property
    def sides(self) -> dict[str, Run]:
        """What came back, by ``client`` and ``server``."""
        if self.client is None and self.server is None:
            return {}
        runs = {"client": self.client, "server": self.server}
        return {name: run for name, run in runs.items() if run is not None}


@dataclass
class State:
    """Working copy of one step: endpoints, why some are lost, and the attempts of each test so far.

    ``tests``: those of the plan, complete. ``mode``: the one that is played.
    """

    plan: Mapping[str, Any]
    where: str
    tests: Mapping[str, Any]
    mode: str
    rails: list[str]
    endpoints: dict[str, Endpoint] = field(default_factory=dict)
    lost: dict[str, str] = field(default_factory=dict)
    failure: str = ""
    # By rail and pair of hosts why the mesh has shown that no test between them can work.
    unmet: dict[tuple[str, frozenset[str]], str] = field(default_factory=dict)
    attempts: dict[Measurement, list[Attempt]] = field(default_factory=dict)
    grh: Grh = field(default_factory=Grh)
    lids: Lids = field(default_factory=Lids)
    # How the testers did in each pass, and in the same minutes.
    conduct: dict[int, Conduct] = field(default_factory=dict)
    # By host, rail and address the duplicate address there (duplicates.py).
    duplicates: dict[tuple[str, str, str], Mapping[str, Any]] = field(default_factory=dict)
    known_recent: dict[int, Conduct] = field(default_factory=dict)
    # How many readings a test must have: all that were asked for, or half of those that the budget adds.
    needed: int = 1
    # How many attempts a test had when isolation asked for it once more.
    repeated: dict[Measurement, int] = field(default_factory=dict)
    # By host and rail what the counters of its port showed in all tests.
    ports: dict[tuple[str, str], Port] = field(default_factory=dict)
    # By pass, round and what its shares have in common: what the tests of a star reached together.
    stars: dict[tuple[int, int, tuple[object, ...]], list[tuple[Measurement, Attempt]]] = field(default_factory=dict)
    # By pass and round which of its tests gave a reading.
    in_round: dict[tuple[int, int], InRound] = field(default_factory=dict)
    # Tests that were not planned, of ports that read low now and then.
    extra: set[Measurement] = field(default_factory=set)
    # By pass, round and test the paths that were chosen for it, not drawn; and the attempts of passes in which each
    # test is alone on a path, which are not judged with the others.
    chosen: dict[tuple[int, int, Measurement], Paths] = field(default_factory=dict)
    probing: set[int] = field(default_factory=set)
    probes: dict[Measurement, list[Attempt]] = field(default_factory=dict)
    # The pass in which rails that share a PCIe link are measured at once; by round and pair what it gave.
    together_in: int = 0
    together: dict[tuple[int, str, str], list[tuple[Measurement, Attempt]]] = field(default_factory=dict)
    # The results of tests, None for one that is left out, until a pass changes them; their order, and those that lack
    # readings.
    told: dict[Measurement, dict[str, Any] | None] = field(default_factory=dict)
    order: list[Measurement] = field(default_factory=list)
    lacking: set[Measurement] = field(default_factory=set)
    # What was worked out once: by what a test is but for its size; by name, rail, client's rail, kind and memory of
    # its sides.
    expected: dict[Measurement, Expectation] = field(default_factory=dict)
    known_sides: dict[tuple[str, ...], Side] = field(default_factory=dict)
    # By host and rail the link that a frame told last, and what it is below the plan in: most frames tell the same.
    known_links: dict[tuple[str, str], tuple[Mapping[str, str], list[str]]] = field(default_factory=dict)
    # By host its group, where uplinks of groups are oversubscribed.
    known_homes: Mapping[str, str] | None = None
    # By host, rail and memory of a side why its tester cannot measure there, "" when it can.
    known_flaws: dict[tuple[str, str, str], str] = field(default_factory=dict)
    # The rails of InfiniBand, with their partitions (ib_port.pkey_of).
    known_partitions: Mapping[str, int | None] | None = None
    # The ports without an IPv4 address, and by rail whether it is measured over IPv4 (meeting.py).
    known_bare: Collection[tuple[str, str]] | None = None
    known_families: dict[str, bool] = field(default_factory=dict)
    # Whether the path of any test can be chosen (paths.py).
    known_choice: bool | None = None
    known_labels: dict[str, int] = field(default_factory=dict)
    # What the physical ports of each host showed before and after the tests (links.py).
    known_ports: tuple[Mapping[str, Ports], Mapping[str, Ports]] | None = None


def partitions(state: State) -> Mapping[str, int | None]:
    """Return the rails of InfiniBand, each with the partition of the plan, None for the first one of each port."""
    if state.known_partitions is None:
        own = [rail for rail in state.plan.get("rails", ()) if rail.get("link_layer") == "infiniband"]
        state.known_partitions = {rail["name"]: ib_port.pkey_of(rail, state.where) for rail in own}
    return state.known_partitions


def described(state: State, name: str, rail: str) -> Mapping[str, str]:
    """Return what a tester described of a rail, {} when nothing is known."""
    return state.endpoints[name].rails.get(rail, {}) if name in state.endpoints else {}


def gpu_of(state: State, test: Measurement, name: str, *, rail: str) -> Mapping[str, str] | None:
    """Return {bdf, path} of the GPU whose memory a test uses at an endpoint's rail, None for host memory or no GPU."""
    if test.memory == "host":
        return None
    found: Mapping[str, str] | None = state.plan.get("gpus", {}).get(rail, {}).get(name)
    return found


def addresses_used(state: State, ends: Iterable[tuple[str, str]]) -> list[tuple[str, str, str]]:
    """Return (endpoint, rail, address) of the ends of a test: each is tested by one address of its rail."""
    described = {end: state.endpoints[end[0]].rails.get(end[1], {}) for end in ends if end[0] in state.endpoints}
    return [(*end, rail.get("address", "-")) for end, rail in described.items()]


def expectation_of(state: State, test: Measurement) -> Expectation:
    """Return what a test must reach; in a star, what all of it must reach together."""
    key = test._replace(size=0) if test.size else test
    if key not in state.expected:
        found = _expectation(state, test)
        state.expected[key] = found
        if state.where == "host" and not test.peer_rail and not test.star and found.bound_by != "unknown":
            # Without limits of VFs it is the same in both directions.
            other = Measurement(test.rail, test.server, test.client, test.kind, memory=test.memory)
            state.expected[other] = found
    return state.expected[key]


def _expectation(state: State, test: Measurement) -> Expectation:
    rail: Mapping[str, Any] = next(rail for rail in state.plan["rails"] if rail["name"] == test.rail)
    ends = [(test.client, test.rail), (test.server, test.server_rail)]
    if test.star:
        ends = [end for end in ends if end[0] == test.centre]
    asked = Asked(
        test.kind,
        state.tests["directions"] == "together",
        rails_at_once(state.tests, state.mode),
        state.plan["thresholds"]["gpu_paths"],
        *crossing.uplinks(state.tests, *(_homes(state).get(name, "") for name in (test.client, test.server))),
        headers=_headers(state, test),
    )
    return expect(rail, [_side(state, test, end, rail=rail, asked=asked) for end in ends], asked=asked)


def _homes(state: State) -> Mapping[str, str]:
    if state.known_homes is None:
        state.known_homes = crossing.homes(state.tests)
    return state.known_homes


def _end_name(test: Measurement, end: tuple[str, str]) -> str:
    return f"{end[0]} {end[1]}" if test.client == test.server else end[0]


def _side(state: State, test: Measurement, end: tuple[str, str], *, rail: Mapping[str, Any], asked: Asked) -> Side:
    """Return what an end of a test carries, whose client is on the plan's ``rail``."""
    key = (_end_name(test, end), end[1], test.rail, test.kind, test.memory, str(asked.headers))
    if key not in state.known_sides:
        side = _planned_side(state, test, end[0], rail=end[1])
        state.known_sides[key] = side_of(rail, key[0], side, planned_mtu=state.tests["mtu"], asked=asked)
    return state.known_sides[key]


def _planned_side(state: State, test: Measurement, name: str, *, rail: str) -> dict[str, Any]:
    side = dict(state.plan.get("expectations", {}).get(rail, {}).get(name, {}))
    # The RDMA device of a bond can show the rate of one member or of all.
    if side.get("rate") is None and "links" not in side and name in state.endpoints:
        side["described_rate"] = described_rate(described(state, name, rail).get("rate"))
    if rail in partitions(state) and (rate := side.get("rate") or side.get("described_rate")):
        side["coding"] = coding(rate, described(state, name, rail).get("rate"))
    if state.where == "host":
        # A bare host measures with the PF: limits of VFs do not hold there.
        side.pop("vf_rate", None)
    if test.memory == "host" and "host_uplinks" in side:
        side["uplinks"] = side["host_uplinks"]
    gpu = gpu_of(state, test, name, rail=rail)
    return {**side, "gpu": gpu["path"]} if gpu else side


def _headers(state: State, test: Measurement) -> int:
    """Return the bytes that packets of a test have besides the usual ones of their link."""
    if has_grh(state, test):
        return GRH
    return IPV6 if described(state, test.client, test.rail).get("address6") else 0


def has_grh(state: State, test: Measurement) -> bool:
    """Return whether packets between the ports of a test have a GRH: by what they described, or what they refused."""
    if test.rail not in partitions(state):
        return False
    ends = (described(state, *end) for end in ends_of(test))
    return ib_port.needs_grh(*ends) or bool(state.grh.demanded_by(test))


def low_link(state: State, name: str, rail: str, *, link: Mapping[str, str]) -> list[str]:
    """Return in what a link, as its tester read it after a test (perftest.Run), is below what the plan expects."""
    if not link:
        return []
    known = state.known_links.get((name, rail))
    if known is None or known[0] is not link:
        side = state.plan.get("expectations", {}).get(rail, {}).get(name, {})
        planned = next(one for one in state.plan["rails"] if one["name"] == rail)
        known = state.known_links[name, rail] = (link, below(planned, side, link))
    return known[1]


def shown_by(state: State, test: Measurement, attempt: Attempt) -> Shown:
    """Return what an attempt shows: firm evidence for a reading, what absence.py says where there is none."""
    if attempt.sample is not None:
        return Shown(FIRM)
    if state.lids.unproven(test.rail, attempt):
        return Shown(WEAK)
    sides = ((test.client, attempt.client), (test.server, attempt.server))
    return shown(sides, attempt.reason, conduct_at(state, attempt), at=attempt.at)


def conduct_at(state: State, attempt: Attempt) -> Conduct:
    """Return how the testers did in the pass of an attempt, and in the same minutes before it."""
    if attempt.number not in state.known_recent:
        state.known_recent[attempt.number] = recent(state.conduct, attempt.number)
    return state.known_recent[attempt.number]


def late_hosts(state: State, test: Measurement, attempt: Attempt) -> dict[str, float]:
    """Return who was late in the pass of a reading, by host in seconds: of a star whoever is in it."""
    star = state.stars[attempt.number, attempt.at, star_of(test)] if test.star else [(test, attempt)]
    names = dict.fromkeys(name for one, _attempt in star for name in (one.client, one.server))
    return conduct_at(state, attempt).late_at(names, attempt.at, anywhere=True)


def stopped_at(test: Measurement, attempt: Attempt) -> dict[str, float]:
    """Return by host whose tester was stopped by its CPU limit, in which share of the time."""
    return tester_cpu.throttled({test.server: attempt.server, test.client: attempt.client})


def faults(state: State, test: Measurement, used: Attempt | None) -> list[bool]:
    """Return which attempts showed a fault, of a test that ``used`` another one to pass, None: one of an earlier run.

    One that failed only by the way to exchange addresses, or for want of a GRH, is told by a warning.
    """
    way = used.client.exchange if used and used.client else asked_exchange(state)
    return [
        one.sample is None
        and (shown_by(state, test, one).fault or _stalled(state, test, one))
        and not failed_by_exchange(one.client, one.server, way)
        and not state.grh.explains(test, one)
        for one in state.attempts[test]
    ]


def _stalled(state: State, test: Measurement, attempt: Attempt) -> bool:
    """Return whether an attempt shows that its link stood still (stalled.py)."""
    here = state.in_round.get((attempt.number, attempt.at))
    sides = ((test.client, attempt.client), (test.server, attempt.server))
    return here is not None and is_stalled(sides, here, conduct_at(state, attempt), at=attempt.at)


def asked_exchange(state: State) -> str:
    """Return ``cm`` or ``plain``: how tests are asked to find each other."""
    return "cm" if state.tests["rdma_cm"] else "plain"
