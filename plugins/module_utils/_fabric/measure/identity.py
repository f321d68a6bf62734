# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Who is measured: the machine, the ports of its rails, and the versions that a reading depends on."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from .evidence import Endpoint

Hosts = Mapping[str, Mapping[str, Any]]


def read_hosts(plan: Mapping[str, Any], facts: Mapping[str, Any]) -> dict[str, dict[str, Any]]:
    """Return machine, versions and ports of the hosts of this run; None for what no fact shows.

    ``facts``: host -> ``ansible_facts.rdma``.
    """
    planned = plan.get("hosts", {})
    return {name: _host(planned.get(name, {}), facts.get(name) or {}) for name in plan["endpoints"]["host"]}


def _host(planned: Mapping[str, Any], facts: Mapping[str, Any]) -> dict[str, Any]:
    return {
        "machine_id": facts.get("machine_id"),
        "kernel": (facts.get("kernel") or {}).get("release"),
        "perftest": (facts.get("perftest") or {}).get("version"),
        "rails": {rail["rail"]: _port(rail.get("pci"), facts) for rail in planned.get("rails", [])},
    }


def _port(pci: str | None, facts: Mapping[str, Any]) -> dict[str, Any]:
    port: Mapping[str, Any] = next((one for one in facts.get("ports", ()) if one["pci"] == pci), {})
    device: Mapping[str, Any] = next((one for one in facts.get("rdma_devices", ()) if pci and one["pci"] == pci), {})
    return {"pci": pci, "driver": port.get("driver"), "firmware": device.get("firmware")}


def described(where: str, endpoints: Mapping[str, Endpoint], hosts: Hosts) -> dict[str, dict[str, Any]]:
    """Return the ports that testers described: host -> rail -> {machine_id, device, rate, pci, firmware}.

    ``hosts``: the result of read_hosts. A tester in a pod reads the machine id of its container: the host's counts.
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
                    "pci": planned.get("pci"),
                    "firmware": planned.get("firmware"),
                }
    return found


def another(then: Mapping[str, Any] | None, today: Mapping[str, Any] | None) -> str:
    """Return why two ports of described are not surely the same one, "" when they are.

    A port without PCI address and firmware is one of software, so both may be unknown.
    """
    if not then or not today:
        return f"not {'described today' if then else 'recorded in the earlier report'}"
    for key in ("machine_id", "device", "rate", "pci", "firmware"):
        if then.get(key) != today.get(key):
            return f"{key} was {then.get(key) or 'unknown'}, today {today.get(key) or 'unknown'}"
        if not today.get(key) and key not in ("pci", "firmware"):
            return f"{key} is unknown"
    return ""


def differences(then: Hosts, now: Hosts) -> Iterator[str]:
    """Yield what differs between two results of read_hosts, one sentence for each value of each host."""
    for name in sorted({*then, *now}):
        before, today = dict(_flat(then.get(name, {}))), dict(_flat(now.get(name, {})))
        for what in sorted({*before, *today}):
            if before.get(what) != today.get(what):
                yield f"{name}: {what} is {today.get(what) or 'unknown'}, it was {before.get(what) or 'unknown'}"


def _flat(host: Mapping[str, Any]) -> Iterator[tuple[str, Any]]:
    for key in ("machine_id", "kernel", "perftest"):
        yield {"machine_id": "the machine id"}.get(key, f"the version of {key}"), host.get(key)
    for rail, port in host.get("rails", {}).items():
        for key, value in port.items():
            yield f"{rail} {key}", value
