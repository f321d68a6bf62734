# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Which members of bonds carried the tests of a rail, by the counters of each: the rest of them is not proven."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from typing import Any

from ...._common.reader import some
from .port_health import PROVEN, End, Port

# As testers name the growth of a member's bytes.
_BYTES = re.compile(r"member_([A-Za-z0-9_.-]{1,15})_([rt]x)_bytes")
# Part of the bytes of a bond from which on a member carried some of them.
USED = 0.01
_WORDS = {"tx": "sent", "rx": "received"}


def findings(plan: Mapping[str, Any], ports: Mapping[End, Port]) -> list[dict[str, Any]]:
    """Return items of the report's ``links``: members that carried nothing in a direction of tests."""
    found = []
    for (host, rail), known in sorted(ports.items()):
        for way, shares in _shares(known, _members(plan).get(rail, ())):
            for member, part in shares.items():
                if part >= USED:
                    continue
                text = (
                    f"{host} {rail}: the member {member} of the bond {_WORDS[way]} {part:.0%} of the bytes of tests, so"
                    " they do not show that its path works. Compare the mode of the bond, and how the NIC spreads"
                    " queue pairs"
                )
                where = {"host": host, "rail": rail, "kind": "members", "found": f"{part:.0%}"}
                found.append({**where, "expected": f"at least {USED:.0%}", "text": text})
    return found


def proofs(plan: Mapping[str, Any], ports: Mapping[End, Port]) -> list[str]:
    """Return a sentence for each rail that is a bond: at how many ports all members carried tests."""
    told = []
    for rail, members in _members(plan).items():
        own = {host: known for (host, one), known in sorted(ports.items()) if one == rail and any(known.asked.values())}
        ways = {host: dict(_shares(known, members)) for host, known in own.items()}
        unread = [host for host, known in own.items() if len(ways[host]) < sum(map(bool, known.asked.values()))]
        least = {host: min((min(way.values()) for way in ways[host].values()), default=0.0) for host in own}
        proven = [host for host in own if host not in unread and least[host] >= USED]
        if own:
            why = f"; the counters of the members were not read on {some(unread)}" if unread else ""
            told.append(f"{rail}: all members of the bond carried tests at {len(proven)} of {len(own)} ports{why}")
    return told


def _members(plan: Mapping[str, Any]) -> dict[str, list[str]]:
    """Return rail -> the names of the members, of rails that are bonds."""
    return {rail["name"]: rail["members"] for rail in plan["rails"] if len(rail.get("members") or ()) > 1}


def _shares(known: Port, members: Any) -> Iterator[tuple[str, dict[str, float]]]:
    """Yield the direction of tests whose bytes were counted, and the share of each member."""
    carried: dict[str, dict[str, int]] = {way: dict.fromkeys(members, 0) for way in _WORDS}
    for name, growth in known.amounts.items():
        match = _BYTES.fullmatch(name)
        if match and match[1] in carried[match[2]]:
            carried[match[2]][match[1]] += growth
    for way, own in carried.items():
        total = sum(own.values())
        if members and known.asked[way] and total >= PROVEN * known.asked[way]:
            yield way, {member: growth / total for member, growth in own.items()}
