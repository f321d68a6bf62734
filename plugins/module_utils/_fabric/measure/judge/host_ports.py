# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Counters of the physical ports of hosts for tests in pods, which do not see them: the growth over all passes."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping

from ..readings.counters import OTHER, meaning
from ..readings.port_state import Ports, Shown
from .port_health import End, Port, add_bytes

# What is no error: beside a meaning of its own in counters.py, bits that FEC corrected.
_AMOUNTS = ("_bytes", "_pause_duration", "_corrected_bits", "_corrected_bits_phy")


def add(ports: Mapping[End, Port], before: Mapping[str, Ports], after: Mapping[str, Ports]) -> None:
    """Add to ports whose testers read no counters what their hosts read before the first and after the last pass."""
    for (host, rail), known in ports.items():
        if not known.unread or known.asked:
            continue
        first, last = (every.get(host, {}).get(rail, {}) for every in (before, after))
        why = next((shown.unread for shown in (*first.values(), *last.values()) if shown.unread), "")
        if why:
            known.unread = Counter({f"on its host, {why}": 1})
        grown = _growth(first, last)
        if grown:
            _add(known, grown)


def _growth(first: Mapping[str, Shown], last: Mapping[str, Shown]) -> Counter[str]:
    """Return what grew, of all members of a bond; empty where a counter is missing or less than before."""
    grown: Counter[str] = Counter()
    if not first or first.keys() != last.keys():
        return grown
    for netdev, shown in first.items():
        now = last[netdev].counters
        if any(now.get(name, -1) < value for name, value in shown.counters.items()):
            return Counter()
        grown.update({name: now[name] - value for name, value in shown.counters.items()})
        # All members ran equally long.
        grown["uptime"] = now.get("uptime", 0) - shown.counters.get("uptime", 0)
    return grown if any(name.endswith("_bytes") or "_bytes_pri" in name for name in grown) else Counter()


def _add(known: Port, grown: Counter[str]) -> None:
    elapsed = grown.pop("uptime", 0)
    if known.seconds:
        # A link receives bits between tests too.
        known.bits *= max(1.0, elapsed / known.seconds)
    known.unread.clear()
    known.asked.update(known.wanted)
    add_bytes(known, grown)
    known.amounts.update({name: growth for name, growth in grown.items() if name.endswith(_AMOUNTS)})
    known.counters.update({name: growth for name, growth in grown.items() if growth and meaning(name)[0] != OTHER})
