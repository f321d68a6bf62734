# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What the mesh shows: pairs of ports between which no RDMA test can work and why, and rails that are not isolated.

A pair counts as failed only with evidence that holds for RDMA as well: the device gave up a transfer, nobody answered
to ARP, or there is no route. Ping and TCP alone may be filtered where RDMA is not.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Optional

from ...._common.reader import left_out
from ..readings.contact import BROKEN, CONNECTED, NO_NEIGHBOUR, UNCHECKED, Side
from ..schedule.mesh import Contact
from .wording import listed

# What both sides of a contact printed, the client first; None without a valid record.
Sides = tuple[Optional[Side], Optional[Side]]
# Host and rail.
End = tuple[str, str]
# What may be wrong where one port alone is in the network of another rail.
_MISPLACED = "wrong port of a cable, or a wrong VLAN"
# rdma_fabric.routing of rails that reach each other.
BETWEEN = "between_rails"
# Reasons why something was not checked that the report has, and characters of one: testers may print anything.
_MOST_MISSING, _LONGEST_WHY = 4, 80


class Seen:
    """What was seen of each contact, and what follows from all of them together.

    ``own``: the contacts on one rail. ``macs``: MAC address to the only port that reports it as its own. ``works``: by
    port whether it reaches any other one on its rail, as far as known. ``present``: ports in the network of their rail,
    as the MAC address that one learned of the other shows. ``crossings``: see there. ``joined``: pairs of rails that
    share a network, as ports show that work on their own rail.
    """

    def __init__(self, contacts: Mapping[Contact, Sides], routing: str = "") -> None:
        """Work it out once: a fleet has tens of thousands of contacts. ``routing``: that of the fabric."""
        self.contacts, self.routing = contacts, routing
        self.own = {contact: sides for contact, sides in contacts.items() if not contact.peer_rail}
        owners: dict[str, set[End]] = {}
        self.works: dict[End, bool] = {}
        for contact, sides in contacts.items():
            for end, side in zip(contact.ends, sides):
                if side and side.mac:
                    owners.setdefault(side.mac, set()).add(end)
        for contact, sides in self.own.items():
            if reached(sides) or failed(sides):
                for end in contact.ends:
                    self.works[end] = self.works.get(end, False) or reached(sides)
        self.present = {end for contact, sides in self.own.items() if _learned(sides) for end in contact.ends}
        self.macs = {mac: next(iter(ends)) for mac, ends in owners.items() if len(ends) == 1}
        self.crossings = list(_crossings(contacts, {end: mac for mac, end in self.macs.items()}))
        self.crossed: dict[End, list[End]] = {}
        self.joined: set[frozenset[str]] = set()
        for one, other, routed in self.crossings:
            if not routed:
                self.crossed.setdefault(one, []).append(other)
                self.crossed.setdefault(other, []).append(one)
                if self.works.get(one) and self.works.get(other):
                    self.joined.add(frozenset((one[1], other[1])))


def _learned(sides: Sides) -> bool:
    client, server = sides
    # Where nothing is answered, the entry of a neighbor may be older than the fault.
    if client is None or server is None or dead(sides):
        return False
    return "" not in (client.mac, server.mac) and (client.neighbour == server.mac or server.neighbour == client.mac)


def failed(sides: Sides) -> bool:
    """Return whether no RDMA test can work between two ports of one rail."""
    client, server = sides
    if client is None or server is None or client.connection == CONNECTED:
        return False
    if UNCHECKED not in (client.connection, server.connection) and BROKEN in (client.connection, server.connection):
        # ibv_rc_pingpong asks for packets that routers discard. Kernels correct that, but not certainly all of them.
        return bool(client.neighbour or server.neighbour)
    return dead(sides) and (_unrouted(client) or _unrouted(server) or _unanswered(client, server))


def dead(sides: Sides) -> bool:
    """Return whether no ping of either side was answered."""
    return all(side is not None and side.dead for side in sides)


def _unrouted(side: Side) -> bool:
    return bool(side.large and not side.large.routed)


def _unanswered(client: Side, server: Side) -> bool:
    return NO_NEIGHBOUR in (client.neighbour, server.neighbour)


def reason(found: Seen, contact: Contact) -> str:
    """Return why the ports of a contact that failed do not reach each other."""
    client, server = found.contacts[contact]
    if client is None or server is None:
        return ""
    told = [*_no_route(contact, client, server), *_elsewhere(found, contact)]
    if not told:
        told = [f"the ports do not reach each other: {_path(found, contact, client, server=server)}"]
    return "; ".join(told)


def _no_route(contact: Contact, client: Side, server: Side) -> Iterator[str]:
    for (host, rail), side, (peer, _rail) in zip(contact.ends, (client, server), reversed(contact.ends)):
        if _unrouted(side):
            yield f"{host} {rail}: no route to the address of {peer}"


def _elsewhere(found: Seen, contact: Contact) -> Iterator[str]:
    """Yield that a port of the contact is in the network of another rail."""
    for end in contact.ends:
        there = _misplaced(found, end)
        if there:
            back = _misplaced(found, (end[0], there[1]))
            exchanged = back is not None and back[1] == end[1]
            cables = f"exchanged cables of {end[1]} and {there[1]}"
            leads = f"its link leads to the network of {there[1]}"
            yield f"{' '.join(end)}: {leads}, where {' '.join(there)} answers: {cables if exchanged else _MISPLACED}"


def _path(found: Seen, contact: Contact, client: Side, *, server: Side) -> str:
    ends, sides = contact.ends, (client, server)
    for own, (peer_end, peer) in zip(sides, reversed(list(zip(ends, sides)))):
        if own.neighbour not in ("", NO_NEIGHBOUR, peer.mac) and peer.mac:
            return _stranger(found, peer_end, own.neighbour)
    for (own_end, own), (peer_end, peer) in (pairs := list(zip(ends, sides)), pairs[::-1]):
        if own.neighbour == NO_NEIGHBOUR and own.mac and peer.neighbour == own.mac:
            return f"frames from {peer_end[0]} do not arrive at {own_end[0]}, those of the opposite direction do"
    if _unanswered(client, server):
        crossed = [f"{' '.join(end)} reaches {' '.join(there)}" for end in ends for there in _strays(found, end)]
        told = f", but {min(crossed)}: exchanged cables or a wrong VLAN" if crossed and found.routing != BETWEEN else ""
        return f"no answer to ARP{told}"
    if large := next((side.large for side in sides if side.too_large), None):
        return f"packets of {large.size} bytes are lost, small ones are not: MTU too small on the path"
    why = next((side.why for side in sides if side.connection == BROKEN), "")
    return f"{'ping passes, ' if client.answered or server.answered else ''}an RDMA connection does not pass ({why})"


def _stranger(found: Seen, end: End, mac: str) -> str:
    owner = found.macs.get(mac)
    what = f"the address of {' '.join(end)} is answered by"
    if owner is None:
        return f"{what} {mac}, which is not a port of this run: a duplicate address, or a router that answers for it"
    if owner[0] == end[0]:
        return f"{what} its port {owner[1]}: exchanged cables, a wrong VLAN, or rails that share a network"
    return f"{what} {' '.join(owner)}: a duplicate address"


def _crossings(contacts: Mapping[Contact, Sides], macs: Mapping[End, str]) -> Iterator[tuple[End, End, bool]]:
    """Yield from which port which port of another rail was reached, and whether through a router.

    A host may answer for the address of one port on another one, so on layer 2 only the MAC address counts.
    """
    for contact, (client, _server) in contacts.items():
        if not contact.peer_rail or client is None:
            continue
        one, other = contact.ends
        if client.neighbour and client.neighbour == macs.get(other):
            yield one, other, False
        elif not client.neighbour and client.answered:
            yield one, other, True


def _strays(found: Seen, end: End) -> Iterator[End]:
    """Yield the ports of other rails that a port reaches which reaches none of its own: in their network, or exchanged.

    None where rails share a network, since healthy ports reach all of them.
    """
    if found.works.get(end) is not False:
        return
    for there in found.crossed.get(end, ()):
        mirrored = (there[0], end[1]) in found.crossed.get((end[0], there[1]), ())
        if (found.works.get(there) or mirrored) and frozenset((end[1], there[1])) not in found.joined:
            yield there


def _misplaced(found: Seen, end: End) -> End | None:
    """Return a port of another rail that works and that a port reaches which reaches none of its own rail."""
    strays = () if end in found.present else _strays(found, end)
    return next((there for there in strays if found.works.get(there)), None)


def reached(sides: Sides) -> bool:
    """Return whether two ports of a rail reach each other, as far as it was tried."""
    client, server = sides
    if client is None or server is None or failed(sides):
        return False
    return client.connection == CONNECTED or client.answered or server.answered


def sentences(found: Seen) -> Iterator[str]:
    """Yield what changes no verdict: rails that are not isolated or do not reach each other, lost large packets."""
    yield from _between(found)
    lossy: dict[str, list[str]] = {}
    size = 0
    for contact, sides in found.own.items():
        large = next((side.large for side in sides if side and side.too_large), None)
        if large and not failed(sides):
            lossy.setdefault(contact.rail, []).append(" and ".join(sorted((contact.client, contact.server))))
            size = max(size, large.size)
    for rail, pairs in lossy.items():
        yield (
            f"{rail}: packets of {size} bytes are lost between {listed(pairs)}, small ones are not."
            " Correct the MTU of the hosts and of the switch ports"
        )


def _between(found: Seen) -> Iterator[str]:
    joined: dict[tuple[str, str], list[str]] = {}
    for one, other, routed in found.crossings:
        if found.works.get(one) and found.works.get(other):
            how = " through a router" if routed else ""
            text = f"{' '.join(one)} reaches {' '.join(other)}{how}"
            joined.setdefault((min(one[1], other[1]), max(one[1], other[1])), []).append(text)
    if found.routing != BETWEEN:
        for (rail, other_rail), texts in sorted(joined.items()):
            yield (
                f"{rail} and {other_rail} are not isolated: {min(texts)}{left_out(len(texts) - 1)}. Separate their"
                " networks, or set rdma_fabric.routing if rails are to reach each other"
            )
        return
    silent: dict[tuple[str, str], bool] = {}
    for contact, (client, _server) in found.contacts.items():
        if contact.peer_rail and client and client.large and not client.large.why:
            key = (contact.rail, contact.peer_rail)
            silent[key] = silent.get(key, True) and not client.answered
    for rail, other_rail in sorted(key for key, none in silent.items() if none):
        yield (
            f"no packet from {rail} to {other_rail} was answered, and rdma_fabric.routing is {BETWEEN}."
            " Check the routes of the hosts and the routers between the rails"
        )


def summary(found: Seen) -> str:
    """Return one line: how many pairs of ports reach each other, and what was not checked and why."""
    own = found.own
    good, bad = sum(map(reached, own.values())), sum(map(failed, own.values()))
    counts = ((good, "reach each other"), (bad, "do not"), (len(own) - good - bad, "are not known to"))
    text = "mesh of pairs of ports: " + ", ".join(f"{count} {what}" for count, what in counts if count)
    missing: dict[str, set[str]] = {}
    for contact, sides in found.contacts.items():
        for (host, _rail), side in zip(contact.ends, sides[: 1 if contact.peer_rail else 2]):
            for what in _unchecked(contact, side):
                missing.setdefault(what, set()).add(host)
    most = sorted(missing, key=lambda what: (-len(missing[what]), what))[:_MOST_MISSING]
    told = [f"{what} on {listed(missing[what])}" for what in most]
    rest = left_out(len(missing) - len(told))
    return f"{text}; not checked: {', '.join(told)}{rest}" if told else text


def _unchecked(contact: Contact, side: Side | None) -> Iterator[str]:
    """Yield what was not checked of a side, with the reason."""
    if side is None:
        yield "contacts without a valid record"
        return
    ping = side.large
    if ping is None or ping.why:
        yield f"packets of full size ({_short(ping.why if ping else side.why)})"
    if not contact.peer_rail and side.connection == UNCHECKED:
        yield f"RDMA connections ({_short(side.why)})"


def _short(why: str) -> str:
    """Return the begin of a text that a tester printed, whatever it is."""
    return why[:_LONGEST_WHY] or "no output"
