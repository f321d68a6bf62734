# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Findings about transceivers, FEC and bit errors, by what ports showed before and after the tests of a place.

Light levels and temperature are compared with the thresholds that the module itself has. A lane without laser current
is not in use, as where a port is split.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Collection, Iterator, Mapping
from typing import Any, NamedTuple

from ...._common.reader import some
from ...plan.link_findings import usual
from ..readings.port_state import RECEIVED, SENT, TEMPERATURE, Ports, Shown
from .port_health import BIT_ERRORS

# Host -> its ports.
Hosts = Mapping[str, Ports]
_LEVELS = ("alarm", "limit", "warning")
_OFF = ("None", "Off", "No FEC")
# Fewer ports do not show what is usual.
_FEWEST = 3
_ADVICE = {
    (TEMPERATURE, "high"): "Check the airflow at the port and the fans of the host",
    (TEMPERATURE, "low"): "Replace the transceiver if its temperature is not plausible",
    (SENT, "low"): "Replace the transceiver",
    (SENT, "high"): "Replace the transceiver",
    (RECEIVED, "low"): "Clean the connectors. If it remains, replace the fiber or the transceiver at the other end",
    (RECEIVED, "high"): "Check whether this link needs an attenuator, or another type of transceiver",
}
_SOURCES = {
    "limit": "range of the module",
    **{name: f"{name} threshold of the module" for name in ("alarm", "warning")},
}
_VERBS = {TEMPERATURE: "has", SENT: "sends", RECEIVED: "receives"}
_SIDES = {"low": "at least", "high": "at most"}
# Counters of blocks or bits that FEC did not correct. With Symbol Errors, mlxlink counts what is left after the
# retransmission of InfiniBand links (PLR), and the effective errors are those before it.
_LOST = (
    (("uncorrectable_blocks",), "FEC could not correct {} blocks (ethtool --show-fec)"),
    (("mlxlink_symbol_errors", "mlxlink_effective_errors"), "{} errors remained after FEC (mlxlink)"),
)


_DAMAGE = ("SymbolErrorCounter", "LinkErrorRecoveryCounter", "PortRcvErrors", "LocalLinkIntegrityErrors")
_SWITCH_COUNTERS = (
    ("signal", "counted that the link went down", ("LinkDownedCounter",), "Check cable and transceiver"),
    (
        "signal",
        "received damaged data from this port",
        _DAMAGE,
        "Check cable and transceiver",
    ),
    ("loss", "dropped packets to this port", ("PortXmitDiscards",), "Check whether this host receives too slowly"),
)


class _Beyond(NamedTuple):
    """A value beyond a threshold of its module; ``level``: the gravest that it is beyond."""

    lane: int
    value: float
    limit: float
    level: str


def findings(
    before: Hosts, after: Hosts, *, rails: Collection[str], known: Collection[Mapping[str, Any]] = ()
) -> list[dict[str, Any]]:
    """Return items of the report's ``links``; ``known``: those of the counters that each test read."""
    told = {(one["host"], one["rail"], one["kind"]) for one in known}
    found = []
    for rail in rails:
        off = _without_fec(rail, before, after)
        for host in sorted({*before, *after}):
            first, last = (ports.get(host, {}).get(rail, {}) for ports in (before, after))
            for netdev in sorted({*first, *last}):
                pair = (first.get(netdev, Shown()), last.get(netdev, Shown()))
                name = f"{host} {rail}" + (f" {netdev}" if len({*first, *last}) > 1 else "")
                every = (*_outside(*pair), *_uncorrected(*pair), *off.get((host, netdev), ()), *_raw(*pair))
                seen = [one for one in every if one[0] == "optics" or (host, rail, one[0]) not in told]
                for kind, own, expected, text in (*seen, *_at_switch(*pair)):
                    where = {"host": host, "rail": rail, "kind": kind, "found": own, "expected": expected}
                    found.append({**where, "text": f"{name}: {text}"})
    return found


_Found = Iterator[tuple[str, str, str, str]]


def _outside(before: Shown, after: Shown) -> _Found:
    """Yield light levels and temperatures beyond a threshold, one for all lanes."""
    module = after.module or before.module
    for what, side in _ADVICE:
        seen = [(when, _beyond(one, what, side)) for when, one in (("before", before), ("after", after))]
        worst = max((own for _when, own in seen), key=len)
        if not worst:
            continue
        when = " and ".join(when for when, own in seen if own)
        unit = "degrees C" if what == TEMPERATURE else "dBm"
        lowest, highest = min(one.value for one in worst), max(one.value for one in worst)
        own = _value(lowest, unit) if lowest == highest else f"{_number(lowest)} to {_value(highest, unit)}"
        # A module has one temperature.
        lanes = [str(one.lane) for one in worst if one.lane and what != TEMPERATURE]
        subject = f"lane {lanes[0]}" if len(lanes) == 1 else f"lanes {', '.join(lanes)}" if lanes else "the transceiver"
        verb = _VERBS[what] if len(lanes) < 2 else {"sends": "send", "receives": "receive"}[_VERBS[what]]
        # The one that all of them are beyond.
        limit = (max if side == "low" else min)(worst, key=lambda one: one.limit)
        expected = f"{_SIDES[side]} {_value(limit.limit, unit)}"
        text = f"{subject} {verb} {own}, expected {expected} ({_SOURCES[limit.level]}) {when} the tests"
        yield "optics", own, expected, f"{text}. {_ADVICE[what, side]}" + (f". Module: {module}" if module else "")


def _beyond(shown: Shown, what: str, side: str) -> list[_Beyond]:
    found = []
    for lane, value in sorted(shown.values.get(what, {}).items()):
        if what != TEMPERATURE and not _lit(shown, lane, value):
            continue
        for level in _LEVELS:
            low, high = (shown.limits.get((what, end, level), -math.inf) for end in ("low", "high"))
            # A module without a threshold has zeros.
            if math.isinf(low) or math.isinf(high) or low >= high:
                continue
            if value < low if side == "low" else value > high:
                found.append(_Beyond(lane, value, low if side == "low" else high, level))
                break
    return found


def _lit(shown: Shown, lane: int, value: float) -> bool:
    """Return whether a lane is in use: its laser has current, or where this is not known, there is light."""
    bias = shown.bias.get(lane)
    return value > -math.inf if bias is None else bias > 0


def _value(value: float, unit: str) -> str:
    return "no light" if value == -math.inf else f"{_number(value)} {unit}"


def _number(value: float) -> str:
    return "no light" if value == -math.inf else f"{value:g}"


def _uncorrected(before: Shown, after: Shown) -> _Found:
    for names, text in _LOST:
        name = next((one for one in names if one in before.counters and one in after.counters), None)
        # Counters that are less than before were cleared meanwhile.
        grown = after.counters[name] - before.counters[name] if name else 0
        if grown > 0:
            told = text.format(grown)
            yield "signal", str(grown), "0", f"{told}. Check cable and transceiver"
    # Counters of 64 bits, where those that each test reads stay at their largest value.
    grown_by = {name: now - before.extended.get(name, now) for name, now in after.extended.items()}
    own = ", ".join(f"{name} +{grown_by[name]}" for name in _DAMAGE if grown_by.get(name, 0) > 0)
    if own:
        yield "signal", own, "0", f"errors on the wire that were not corrected ({own}). Check cable and transceiver"


def _at_switch(before: Shown, after: Shown) -> _Found:
    """Yield what the switch port of an InfiniBand port counted meanwhile."""
    if before.switch != after.switch or not after.switch:
        return
    # Extended counters have 64 bits, the others stay at their largest value. Both count separately.
    grown = {
        name: now - first[name]
        for first, last in ((before.at_switch, after.at_switch), (before.wide, after.wide))
        for name, now in last.items()
        if name in first
    }
    port = f"its switch port ({after.switch['switch']} port {after.switch['port']})"
    for kind, what, names, advice in _SWITCH_COUNTERS:
        own = ", ".join(f"{name} +{grown[name]}" for name in names if grown.get(name, 0) > 0)
        if own:
            yield kind, own, "0", f"{port} {what} ({own}). {advice}"


def _raw(before: Shown, after: Shown) -> _Found:
    ratio = before.raw if after.raw is None else after.raw
    if ratio is not None and ratio > BIT_ERRORS:
        text = f"{ratio:.1e} of the bits are wrong before FEC (mlxlink, since its counters were cleared)"
        limit = f"at most {BIT_ERRORS:.0e} expected"
        yield "fec", f"{ratio:.1e}", f"{BIT_ERRORS:.0e}", f"{text}, {limit}. Check cable and transceiver"


def _without_fec(rail: str, before: Hosts, after: Hosts) -> dict[tuple[str, str], list[tuple[str, str, str, str]]]:
    """Return ports whose FEC is off while most ports of the rail use it."""
    modes = {
        (host, netdev): shown.fec
        for ports in (before, after)
        for host, own in ports.items()
        for netdev, shown in own.get(rail, {}).items()
        if shown.fec
    }
    most = usual(modes.values())
    if len(modes) < _FEWEST or most in _OFF or 2 * Counter(modes.values())[most] <= len(modes):
        return {}
    text = f"FEC is off, most ports of the rail use {most}. Set the same FEC on this port and its switch port"
    return {port: [("fec", mode, most, text)] for port, mode in modes.items() if mode in _OFF}


def switches(known: Mapping[str, Mapping[str, Any]], before: Hosts) -> dict[str, dict[str, Any]]:
    """Return rail -> host -> {switch, port}: those that are ``known``, and what InfiniBand ports show themselves."""
    found = {rail: dict(hosts) for rail, hosts in known.items()}
    for host, ports in before.items():
        for rail, devices in ports.items():
            for shown in devices.values():
                if shown.switch:
                    found.setdefault(rail, {}).setdefault(host, shown.switch)
    return found


def told(before: Hosts, after: Hosts, *, rails: Collection[str]) -> list[str]:
    """Return a sentence about how many ports show their transceiver, and why others could not be read."""
    ports = {
        (host, rail, netdev): shown
        for hosts in (before, after)
        for host, own in sorted(hosts.items())
        for rail, devices in own.items()
        if rail in rails
        for netdev, shown in devices.items()
    }
    read = sum(bool(shown.values or shown.module) for shown in ports.values())
    text = [f"transceivers read at {read} of {len(ports)} ports"] if read else []
    for why in sorted({shown.unread for shown in ports.values() if shown.unread}):
        names = [host for (host, _rail, _netdev), shown in ports.items() if shown.unread == why]
        text.append(f"transceivers not read at {len(names)} of {len(ports)} ports ({some(sorted(set(names)))}): {why}")
    return text
