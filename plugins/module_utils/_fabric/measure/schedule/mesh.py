# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The mesh before the first measurement: which ports try to reach each other, and what their testers are told."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, NamedTuple

from . import modes
from .schedule import Field

# Every pair of so many hosts is tried once. In a larger fleet each host meets some others, chosen by a seed.
ALL_UP_TO = 64
SAMPLED = 16
# Hosts that each host meets at the same time, on all its rails, and the seconds that this takes: 8 slots of 64 hosts.
PARTNERS = 8
SLOT = 7
# The file in the folder of a pass that shows that the pass is one of the mesh, and measures nothing.
MARK = "mesh"


class Contact(NamedTuple):
    """Two ports that try to reach each other, by a TCP ``port`` that no other of their slot uses.

    With ``peer_rail`` the client alone looks whether its ``rail`` reaches the server's other one, and ``port`` only
    tells its lines apart.
    """

    rail: str
    client: str
    server: str
    port: int
    peer_rail: str = ""

    @property
    def server_rail(self) -> str:
        """The rail of the server."""
        return self.peer_rail or self.rail

    @property
    def ends(self) -> tuple[tuple[str, str], tuple[str, str]]:
        """Host and rail of the client and of the server."""
        return (self.client, self.rail), (self.server, self.server_rail)


Slot = tuple[Contact, ...]
# Whether a host can be tried on a rail, and whether a pair is to be tried on it.
Usable = Callable[[str, str], bool]
Wanted = Callable[[str, str, str], bool]


def planned(fields: Sequence[Field], tests: Mapping[str, Any], *, usable: Usable, wanted: Wanted) -> list[Slot]:
    """Return the slots of the mesh: every pair once on every rail, and from each rail one partner on each other rail.

    ``tests``: those of the plan. ``usable`` is asked with host and rail, ``wanted`` with rail and both hosts.
    """
    slots: list[list[Contact]] = []
    # Classes of hosts have their own rails, but a port number may be used on each host only once.
    for own in fields:
        turns = modes.sampled(own.names, _meetings(len(own.names)), int(tests["seed"]))
        crossed = _crossed(turns, own.rails)
        for at, pairs in enumerate(turns):
            lane, number = at % PARTNERS, at // PARTNERS
            slots += [[]] if number == len(slots) else []
            ways = [(rail, a, b, "") for a, b in pairs for rail in own.rails]
            for rail, a, b, peer_rail in [*ways, *crossed.get(at, ())]:
                ends_wanted = wanted(rail, a, b) and (not peer_rail or wanted(peer_rail, a, b))
                if ends_wanted and usable(a, rail) and usable(b, peer_rail or rail):
                    index = lane * len(own.rails) + own.rails.index(peer_rail or rail)
                    port = 1 + index if peer_rail else int(tests["port_base"]) + index
                    slots[number].append(Contact(rail, a, b, port, peer_rail))
    return [tuple(slot) for slot in slots if slot]


def _meetings(hosts: int) -> int:
    return hosts - 1 if hosts <= ALL_UP_TO else SAMPLED


def _crossed(turns: Sequence[modes.Pairs], rails: Sequence[str]) -> dict[int, list[tuple[str, str, str, str]]]:
    """Return by turn (rail, host, partner, the partner's rail): each host and rail has one for each other rail.

    They are spread over all turns in which the host has a partner.
    """
    met: dict[str, list[tuple[int, str]]] = {}
    for at, pairs in enumerate(turns):
        for a, b in pairs:
            met.setdefault(a, []).append((at, b))
            met.setdefault(b, []).append((at, a))
    found: dict[int, list[tuple[str, str, str, str]]] = {}
    for host, partners in met.items():
        for shift in range(1, len(rails)):
            at, partner = partners[(shift - 1) * len(partners) // (len(rails) - 1)]
            for index, rail in enumerate(rails):
                found.setdefault(at, []).append((rail, host, partner, rails[(index + shift) % len(rails)]))
    return found


def is_mesh(batch: Sequence[str]) -> bool:
    """Return whether the lines of a host are those of a pass of the mesh."""
    return any(line.split()[5:6] == ["mesh"] for line in batch[:1])


def lines(
    slots: Sequence[Slot],
    addresses: Mapping[tuple[str, str], str],
    sizes: Callable[[Contact], tuple[int, int]],
) -> dict[str, list[str]]:
    """Return the lines of each host, closed by ``END count``.

    ``addresses``: host and rail to the address of the rail. ``sizes``: bytes of a full-size packet, and the RDMA MTU.
    """
    result: dict[str, list[str]] = {}
    for number, slot in enumerate(slots):
        for contact in slot:
            (client, rail), (server, peer_rail) = contact.ends
            size, mtu = sizes(contact)
            tail = f"{contact.port} mesh -s {size} -m {mtu}"
            role = "probe" if contact.peer_rail else "client"
            result.setdefault(client, []).append(f"{number} {rail} {role} {addresses[server, peer_rail]} {tail}")
            if not contact.peer_rail:
                result.setdefault(server, []).append(f"{number} {rail} server {addresses[client, rail]} {tail}")
    for own in result.values():
        own.append(f"END {len(own)}")
    return result
