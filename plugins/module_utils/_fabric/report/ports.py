# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Sums per port: what all the tests of one host on one rail say together."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from ..measure.judge.verdict import FAIL, NO_DATA, PASS

Result = Mapping[str, Any]
Key = tuple[str, str, str]


@dataclass(frozen=True)
class Port:
    """The tests of one host on one rail in one place.

    ``bad``: results that did not pass. ``worst`` is the least rate in Gb/s, None without one. ``reason``: why there is
    no test of the port.
    """

    where: str
    host: str
    rail: str
    tests: int
    bad: list[Result]
    worst: float | None
    reason: str = ""

    @property
    def passed(self) -> int:
        """How many of its tests passed."""
        return self.tests - len(self.bad)

    @property
    def share(self) -> float:
        """The share of its tests that did not pass, 0 to 1; 1 without any."""
        return len(self.bad) / self.tests if self.tests else 1.0

    @property
    def verdict(self) -> str:
        """Pass only when every test passed; fail when one failed; otherwise no_data."""
        if self.tests and not self.bad:
            return PASS
        return FAIL if any(result["verdict"] == FAIL for result in self.bad) else NO_DATA


def ends(result: Result) -> dict[str, Key]:
    """Return the (where, host, rail) of both sides of a test, or of a row about one, by ``client`` and ``server``."""
    where, rail = result["where"], result["rail"]
    peer = result.get("peer_rail") or rail
    return {"client": (where, result["client"], rail), "server": (where, result["server"], peer)}


def all_ports(report: Mapping[str, Any]) -> dict[Key, Port]:
    """Return (where, host, rail) -> sums of all ports of a report, sorted, also of those without any test."""
    found = ports(report["results"])
    for one in report.get("unmeasured", ()):
        key = (one["where"], one["host"], one["rail"])
        found.setdefault(key, Port(*key, 0, [], None, one["reason"]))
    return {key: found[key] for key in sorted(found)}


def ports(results: Iterable[Result]) -> dict[Key, Port]:
    """Return (where, host, rail) -> sums, sorted; a test counts at both of its ends (once inside one port)."""
    groups: dict[Key, list[Result]] = {}
    for result in results:
        where, rail = result["where"], result["rail"]
        client, server = (where, result["client"], rail), (where, result["server"], result.get("peer_rail") or rail)
        groups.setdefault(client, []).append(result)
        if server != client:
            groups.setdefault(server, []).append(result)
    return {key: _port(key, groups[key]) for key in sorted(groups)}


def _port(key: Key, own: list[Result]) -> Port:
    bad = [result for result in own if result["verdict"] != PASS]
    rates = [result["value"] for result in own if result["unit"] == "Gb/s" and result["value"] is not None]
    return Port(*key, len(own), bad, min(rates, default=None))


def counters(results: Iterable[Result]) -> list[dict[str, Any]]:
    """Return the port counters that grew, the largest growth first: where, host, rail, counter, growth, tests."""
    sums: dict[tuple[str, str, str, str], list[int]] = {}
    for result in results:
        for side, grown in (result.get("counters") or {}).items():
            for name, growth in grown.items():
                row = sums.setdefault((*ends(result)[side], name), [0, 0])
                row[0] += growth
                row[1] += 1
    ordered = sorted(sums.items(), key=lambda item: (-item[1][0], item[0]))
    return [
        {"where": where, "host": host, "rail": rail, "counter": name, "growth": growth, "tests": tests}
        for (where, host, rail, name), (growth, tests) in ordered
    ]
