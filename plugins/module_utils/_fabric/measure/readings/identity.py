# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Who is measured: the machine, the ports of its rails, and the versions that a reading depends on."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping
from typing import Any

from ...plan.facts import read_facts
from .tester_log import Endpoint

Hosts = Mapping[str, Mapping[str, Any]]
# The kinds of RDMA devices: on a PCI function, or software on a network device (soft-RoCE).
CARD, SOFT = "pci", "soft"
# What a device of software does not have.
_OF_CARDS = ("pci", "firmware")
# How a port is today. A port that never showed one of them was measured without it.
_TODAY = ("link", "speed", "mtu", "state")


def read_hosts(plan: Mapping[str, Any], facts: Mapping[str, Any]) -> dict[str, dict[str, Any]]:
    """Return machine, versions and ports of the hosts of this run; None for what no fact shows.

    ``facts``: host -> ``ansible_facts.rdma``; those that are not valid show nothing.
    """
    planned = plan.get("hosts", {})
    checked = {name: read_facts(facts.get(name))[0] or {} for name in plan["endpoints"]["host"]}
    return {name: _host(planned.get(name, {}), own) for name, own in checked.items()}


def _host(planned: Mapping[str, Any], facts: Mapping[str, Any]) -> dict[str, Any]:
    rails = {rail["rail"]: _port(rail.get("pci"), facts) for rail in planned.get("rails", [])}
    return {
        "machine_id": facts.get("machine_id"),
        "kernel": (facts.get("kernel") or {}).get("release"),
        "perftest": (facts.get("perftest") or {}).get("version"),
        "drivers": _drivers(rails.values(), facts),
        "rails": rails,
    }


def _port(pci: str | None, facts: Mapping[str, Any]) -> dict[str, Any]:
    port: Mapping[str, Any] = next((one for one in facts.get("ports", ()) if one["pci"] == pci), {})
    own = [one for one in facts.get("rdma_devices", ()) if one["name"] in port.get("rdma", ())]
    card: Mapping[str, Any] = next((one for one in own if one["pci"]), {})
    kind = CARD if card else SOFT if own else None
    carrier = port.get("carrier")
    return {
        "pci": pci,
        "driver": port.get("driver"),
        "firmware": card.get("firmware"),
        "kind": kind,
        "link": None if carrier is None else "up" if carrier else "down",
        "speed": f"{port['speed']:g} Gb/s" if port.get("speed") else None,
        "mtu": str(port["mtu"]) if port.get("mtu") else None,
        "state": ", ".join(sorted({one["state"] for one in own})) or None,
    }


def _drivers(rails: Collection[Mapping[str, Any]], facts: Mapping[str, Any]) -> dict[str, str | None]:
    """Return the versions of the drivers of rails and of the RDMA stack; drivers of other ports alone do not matter."""
    own = {rail["driver"] for rail in rails if rail["driver"]}
    others = {port["driver"] for port in facts.get("ports", ())} - own
    loaded = {name: version for name, version in facts.get("drivers", {}).items() if name not in others}
    return {**dict.fromkeys(own), **loaded}


def described(
    where: str, endpoints: Mapping[str, Endpoint], hosts: Hosts, *, partitions: Mapping[str, int | None]
) -> dict[str, dict[str, Any]]:
    """Return the ports that testers described: host -> rail -> {machine_id, device, rate, kind, ...}.

    ``hosts``: the result of read_hosts. A tester in a pod reads the machine id of its container: the host's counts.
    ``partitions``: of InfiniBand rails, as planned.
    """
    found: dict[str, dict[str, Any]] = {}
    for name, endpoint in endpoints.items():
        known = hosts.get(name, {})
        own = found[name] = {}
        machine = (endpoint.host.get("machine_id") if where == "host" else None) or known.get("machine_id")
        for rail, port in endpoint.rails.items():
            if not endpoint.error(rail):
                planned = known.get("rails", {}).get(rail, {})
                own[rail] = {
                    "machine_id": machine,
                    "device": port.get("device"),
                    "rate": port.get("rate"),
                    "kind": planned.get("kind"),
                    "pci": planned.get("pci"),
                    "firmware": planned.get("firmware"),
                    "drivers": _told(known.get("drivers") or {}),
                    **({} if (key := partitions.get(rail)) is None else {"pkey": f"0x{key:04x}"}),
                }
    return found


def _told(drivers: Mapping[str, str | None]) -> str | None:
    """Return the versions of all drivers as one text, None when one is unknown."""
    if not drivers or not all(drivers.values()):
        return None
    return "; ".join(f"{name} {version}" for name, version in sorted(drivers.items()))


def another(then: Mapping[str, Any] | None, today: Mapping[str, Any] | None) -> str:
    """Return why two ports of described are not surely the same one, "" when they are.

    Only a device of software may be without PCI address and firmware.
    """
    if not then or not today:
        return f"not {'described today' if then else 'recorded in the earlier report'}"
    for key in ("machine_id", "device", "rate", "kind", "pci", "firmware", "drivers"):
        if then.get(key) != today.get(key):
            return f"{key} was {then.get(key) or 'unknown'}, now {today.get(key) or 'unknown'}"
        if not today.get(key) and not (key in _OF_CARDS and today["kind"] == SOFT):
            return f"{key} is unknown"
    # Without one, and in reports that record none, it is the first partition of each port.
    keys = [port.get("pkey") or "that of the port" for port in (then, today)]
    return "" if keys[0] == keys[1] else f"pkey was {keys[0]}, now {keys[1]}"


def differences(then: Hosts, now: Hosts, where: Collection[str]) -> Iterator[str]:
    """Yield what is not surely the same in two results of read_hosts, one sentence for each value of each host.

    An unknown value that a host could show is not the same as another unknown one. ``where``: the places of the run.
    """
    for name in sorted({*then, *now}):
        before, today = dict(_flat(then.get(name, {}))), dict(_flat(now.get(name, {})))
        for what in sorted({*before, *today}):
            if before.get(what) != today.get(what):
                yield f"{name}: {what} is {today.get(what) or 'unknown'}, it was {before.get(what) or 'unknown'}"
        if name in now:
            yield from _unknown(
                name, now[name], where, same=[what for what in today if before.get(what) == today[what]]
            )


def _unknown(name: str, host: Mapping[str, Any], where: Collection[str], *, same: Collection[str]) -> Iterator[str]:
    """Yield which of the values that are the ``same`` are unknown; one sentence for a host without facts."""
    if not host["machine_id"]:
        yield f"{name}: its versions are unknown"
        return
    absent = {f"{rail} {key}" for rail, port in host["rails"].items() for key in _OF_CARDS if port["kind"] == SOFT}
    # Testers in pods have the perftest of their image.
    absent |= set() if "host" in where else {"the version of perftest"}
    # Without an RDMA device it is unknown whether firmware is to be expected, which the kind tells.
    absent |= {f"{rail} firmware" for rail, port in host["rails"].items() if not port["kind"]}
    absent |= {f"{rail} {key}" for rail in host["rails"] for key in _TODAY}
    known = dict(_flat(host))
    for what in same:
        if not known[what] and what not in absent:
            yield f"{name}: {what} is unknown, so it cannot be compared"


def _flat(host: Mapping[str, Any]) -> Iterator[tuple[str, Any]]:
    for key in ("machine_id", "kernel", "perftest"):
        yield {"machine_id": "the machine id"}.get(key, f"the version of {key}"), host.get(key)
    for driver, version in (host.get("drivers") or {}).items():
        yield f"the version of driver {driver}", version
    for rail, port in host.get("rails", {}).items():
        for key, value in port.items():
            yield f"{rail} {key}", value
