# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The mesh as the first pass of a measurement, and a second one for what failed; its failures are not measured."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from ..diagnosis import mesh as diagnosis
from ..readings.contact import parse
from ..readings.tester_log import Log, Pass, parse_logs
from ..schedule import mesh as schedule
from ..schedule import timing
from ..schedule.schedule import Field, Measurement
from ..schedule.schedule import fields as fields_of
from .passes import Course, announce_more, worst
from .session import State

SLOT = schedule.SLOT
# The kernel takes off so many bytes of the MTU of a network interface for the headers of RDMA.
_HEADERS = 96
_LEAST_MTU = 1024
# A failure counts when it was seen twice.
_PASSES = 2


@dataclass(frozen=True)
class Mesh:
    """``slots``: to play now, none when it is over. ``used``: how many of the passes so far were its own.

    ``text``: one line of the report, "" without a mesh. ``warnings``: sentences that change no verdict.
    """

    slots: Sequence[schedule.Slot] = ()
    used: int = 0
    text: str = ""
    warnings: Sequence[str] = ()
    lines: Mapping[str, list[str]] = field(default_factory=dict)


def check(course: Course, passes: Sequence[Pass]) -> Mesh:
    """Return the state of the mesh after ``passes``; at its end ``course`` has no tests of pairs that failed."""
    state = course.state
    slots = planned(course)
    seen: dict[schedule.Contact, diagnosis.Sides] = {}
    used = 0
    while slots and used < min(_PASSES, len(passes)):
        used += 1
        seen.update(_seen(state, slots, parse_logs(passes[used - 1], used)[0]))
        course.clock.seconds += len(slots) * SLOT
        course.played += len(slots)
        slots = _only(slots, {contact for contact in seen if not contact.peer_rail and _again(seen[contact], used)})
    if slots and used < _PASSES and not state.failure:
        return Mesh(slots, used, lines=schedule.lines(slots, _addresses(state), lambda one: _sizes(state, one)))
    if not seen:
        return Mesh()
    found = diagnosis.Seen(seen, state.tests.get("routing", ""))
    if used == _PASSES:
        _leave_out(course, found, [contact for slot in slots for contact in slot])
    return Mesh((), used, diagnosis.summary(found), [*diagnosis.sentences(found)])


def _again(sides: diagnosis.Sides, used: int) -> bool:
    """Return whether a contact counts as failed after both passes, or is to be tried again after the first one.

    Entries of neighbors from before the first pass look like answers, and a tester that was late tried nothing.
    """
    return diagnosis.failed(sides) or (used < _PASSES and (None in sides or diagnosis.dead(sides)))


def planned(course: Course) -> list[schedule.Slot]:
    """Return the slots of the first pass, none where the mesh is turned off or there is nothing to try."""
    state = course.state
    # Plans of earlier versions, whose runs may be continued, have no mesh.
    if not state.plan["tests"].get("mesh") or state.mode == "loopback":
        return []
    known = _addresses(state)
    chosen: set[tuple[str, frozenset[str]]] = set()
    if course.kept and not state.attempts:
        return []
    if course.kept or any(state.tests["only"].values()):
        chosen = {(test.rail, frozenset((test.client, test.server))) for test in state.attempts}
    return schedule.planned(
        fields(state, course.names),
        state.tests,
        usable=lambda host, rail: (host, rail) in known,
        wanted=lambda rail, a, b: not chosen or (rail, frozenset((a, b))) in chosen,
    )


def fields(state: State, names: Sequence[str]) -> list[Field]:
    """Return the hosts that meet each other, without those that have nobody to meet."""
    return [own for own in fields_of(state.plan, names) if len(own.names) > 1]


def announce(course: Course, mesh: Mesh, number: int) -> tuple[str, int]:
    """Return what to say before a pass of the mesh, and its seconds with those of the schedule and all retries."""
    contacts = sum(len(slot) for slot in mesh.slots)
    seconds = len(mesh.slots) * SLOT
    most = seconds * (_PASSES - mesh.used) + worst(course, ())
    what = "again what did not pass in the mesh" if mesh.used else "mesh: which ports reach each other"
    return (
        f"pass {number} ({what}): {timing.count(contacts, 'contact')} in {timing.count(len(mesh.slots), 'round')} of"
        f" {SLOT} s, {timing.length(seconds)}; with the measurement and all retries at worst"
        f" {timing.length(most)} beside the start of each pass{announce_more(course)}"
    ), most


def _seen(
    state: State, slots: Sequence[schedule.Slot], logs: Mapping[str, Log]
) -> dict[schedule.Contact, diagnosis.Sides]:
    known = _addresses(state)
    found: dict[schedule.Contact, diagnosis.Sides] = {}
    for number, slot in enumerate(slots):
        for contact in slot:
            one, other = contact.ends
            client = logs.get(one[0], Log()).runs.get((number, one[1], known[other]))
            server = None if contact.peer_rail else logs.get(other[0], Log()).runs.get((number, other[1], known[one]))
            found[contact] = parse(client), parse(server)
    return found


def _addresses(state: State) -> dict[tuple[str, str], str]:
    """Return host and rail to the rail's address, also where tests exchange theirs over the management network.

    Without rails of InfiniBand, whose ports need none, those with IPv6 addresses alone, and those that cannot be used.
    """
    return {
        (name, rail): described["address"]
        for name, endpoint in state.endpoints.items()
        for rail, described in endpoint.rails.items()
        if endpoint.error(rail) is None and described.get("gid_type") != "IB" and described["address"] != "-"
    }


def _sizes(state: State, contact: schedule.Contact) -> tuple[int, int]:
    """Return the bytes of a full-size packet, and the RDMA MTU that both ends can use."""
    described = [state.endpoints[host].rails[rail].get("mtu", "-") for host, rail in contact.ends]
    known = [int(mtu) for mtu in (*described, state.tests["mtu"] or "-") if mtu != "-"]
    mtu = min(known, default=_LEAST_MTU)
    size = next((rail.get("mtu") for rail in state.plan["rails"] if rail["name"] == contact.rail), None)
    return int(size or mtu + _HEADERS), mtu


def _only(slots: Sequence[schedule.Slot], wanted: set[schedule.Contact]) -> list[schedule.Slot]:
    kept = (tuple(contact for contact in slot if contact in wanted) for slot in slots)
    return [slot for slot in kept if slot]


def _leave_out(course: Course, found: diagnosis.Seen, contacts: Sequence[schedule.Contact]) -> None:
    """Keep the tests of pairs that failed from being played. Where none is planned, one in each direction shows it."""
    state = course.state
    known = {(test.rail, frozenset((test.client, test.server))) for test in state.attempts if not test.peer_rail}
    for contact in contacts:
        pair = frozenset((contact.client, contact.server))
        state.unmet[contact.rail, pair] = diagnosis.reason(found, contact)
        if (contact.rail, pair) not in known:
            for client, server in ((contact.client, contact.server), (contact.server, contact.client)):
                test = Measurement(contact.rail, client, server, state.tests["kinds"][0], memory=state.tests["memory"])
                state.attempts.setdefault(test, [])
