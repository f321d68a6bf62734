# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Ports of a run without any test: missing, on a host that is left out, or without a partner. All are no_data."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from typing import Any

from ...._common.errors import InputError
from ...._common.fold import fold
from ...._common.reader import some
from ...intent.host_classes import of_plan
from ..schedule.schedule import Measurement

_PLACES = {"host": "hosts", "pod": "pods"}
Entry = Mapping[str, Any]


def excluded(plan: Mapping[str, Any]) -> Mapping[str, str]:
    """Return host -> why it is left out of the measurement, such as jobs that use its rails."""
    found: Mapping[str, str] = plan.get("excluded") or {}
    return found


def missing(plan: Mapping[str, Any]) -> dict[tuple[str, str], str]:
    """Return (host, rail) -> why there is no port."""
    hosts = plan.get("hosts", {})
    return {
        (name, rail): one["reason"] for name, host in hosts.items() for rail, one in host.get("missing", {}).items()
    }


def measurable(plan: Mapping[str, Any], names: Iterable[str]) -> list[str]:
    """Return the hosts without those that are left out, or have no port on any rail."""
    out, hosts = excluded(plan), plan.get("hosts", {})
    return [name for name in names if name not in out and hosts.get(name, {}).get("rails") != []]


def narrowed(plan: Mapping[str, Any], known: Iterable[str], only: Mapping[str, Any]) -> dict[str, Any]:
    """Return ``tests.only`` without hosts of ``known`` that are not measurable, and pairs with them.

    InputError if it names nothing else.
    """
    hosts = list(known)
    gone = set(hosts) - set(measurable(plan, hosts))
    left = {
        **only,
        "hosts": [name for name in only.get("hosts", ()) if name not in gone],
        "pairs": [pair for pair in only.get("pairs", ()) if gone.isdisjoint(pair)],
    }
    asked = [*only.get("hosts", ()), *(name for pair in only.get("pairs", ()) for name in pair)]
    if any(only.get(key) and not left[key] for key in ("hosts", "pairs")):
        out = excluded(plan)
        why = [
            f"{name}: {out.get(name) or 'no rail of it has a port'}" for name in dict.fromkeys(asked) if name in gone
        ]
        raise InputError(
            f"nothing was measured: only.hosts or pairs: all of these, or their partners, are left out: {some(why)}."
            " Name other hosts"
        )
    return left


def find(
    plan: Mapping[str, Any],
    where: str,
    names: Collection[str],
    *,
    tests: Iterable[Measurement],
    only: Mapping[str, Any],
) -> list[dict[str, str]]:
    """Return {where, host, rail, reason} of each port of ``names`` that should be measured and has no test.

    ``tests``: all of the run; ``only``: as in ``tests.only``, what it does not name is not to be measured.
    """
    covered: set[tuple[str, str]] = set()
    for test in tests:
        covered.update({(test.client, test.rail), (test.server, test.server_rail)})
    out, gone = excluded(plan), missing(plan)
    found = []
    for own in of_plan(plan):
        for host, rail in _wanted(own, names, only):
            if (host, rail) not in covered:
                reason = out.get(host) or gone.get((host, rail)) or _alone(plan, own["name"], (host, rail), only=only)
                found.append({"where": where, "host": host, "rail": rail, "reason": reason})
    return found


def _alone(plan: Mapping[str, Any], title: str, port: tuple[str, str], *, only: Mapping[str, Any]) -> str:
    """Return why a port that is there has no partner."""
    if plan["tests"].get("mode") == "loopback":
        return "there is no other rail of this host to measure it with"
    partners = {name for pair in only.get("pairs", ()) if port[0] in pair for name in pair} - {port[0]}
    if partners:
        lacking = {host for host, rail in missing(plan) if rail == port[1]}
        return f"its partners in this run {'' if partners <= lacking else 'are left out or '}have no port of this rail"
    return "there is no other host to measure it with" + (f" in class {title}" if title else "")


def _wanted(own: Mapping[str, Any], names: Collection[str], only: Mapping[str, Any]) -> Iterator[tuple[str, str]]:
    pairs = {name for pair in only.get("pairs", ()) for name in pair}
    hosts = set(only.get("hosts", ()))
    rails = only.get("rails") or own["rails"]
    for host in own["hosts"]:
        if host in names and (not hosts or host in hosts) and (not pairs or host in pairs):
            yield from ((host, rail) for rail in own["rails"] if rail in rails)


def texts(found: Sequence[Entry]) -> list[str]:
    """Return a sentence for each reason, with the hosts and rails that it is about."""
    alike: dict[tuple[str, str], dict[str, list[str]]] = {}
    for one in found:
        hosts = alike.setdefault((one["where"], one["reason"]), {})
        hosts.setdefault(one["host"], []).append(one["rail"])
    told = []
    for (where, reason), hosts in alike.items():
        by_rails: dict[tuple[str, ...], list[str]] = {}
        for host, rails in hosts.items():
            by_rails.setdefault(tuple(rails), []).append(host)
        ports = "; ".join(f"{fold(own)} {fold(list(rails))}" for rails, own in by_rails.items())
        told.append(f"{_PLACES.get(where, where)}: {ports}: not measured: {reason}")
    return told
