# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""On which switch port each rail of each host is, as LLDP reports it, or a file of InfiniBand."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from ..._common.reader import and_more, some

# Rail -> host -> {switch, port, pfc}.
Switches = Mapping[str, Mapping[str, Mapping[str, Any]]]
# A diagnosis names so many switches and rails.
_SHOWN = 4


def switch_ports(
    rails: Sequence[str], ports: Mapping[str, Sequence[Mapping[str, Any] | None]]
) -> dict[str, dict[str, Any]]:
    """Return rail -> host -> {switch, port}; {} when nothing is known. ``ports``: host -> its ports by rail (facts).

    ``pfc`` is added where the switch reports its priorities with flow control.
    A switch goes by its name; by its chassis id too where several have one name, alone where it has none.
    """
    found = {
        rail: {host: switch for host, own in ports.items() if (port := own[at]) and (switch := port.get("switch"))}
        for at, rail in enumerate(rails)
    }
    chassis: dict[str, set[str]] = {}
    for hosts in found.values():
        for told in hosts.values():
            chassis.setdefault(told["system"], set()).add(told["chassis"])
    if not chassis:
        return {}
    return {
        rail: {
            host: {
                "switch": _name(told, chassis),
                "port": told["port"],
                **({"pfc": told["pfc"]} if told.get("pfc") is not None else {}),
            }
            for host, told in hosts.items()
        }
        for rail, hosts in found.items()
    }


def _name(told: Mapping[str, str], chassis: Mapping[str, set[str]]) -> str:
    if not told["system"]:
        return told["chassis"]
    return told["system"] if len(chassis[told["system"]]) == 1 else f"{told['system']} ({told['chassis']})"


def text(own: Mapping[str, Any] | None) -> str:
    """Return ``leaf3 port Ethernet12``; "" when it is not known."""
    return f"{own['switch']} port {own['port']}" if own else ""


def evidence(switches: Switches, diagnosis: Mapping[str, Any]) -> list[str]:
    """Return to which switch ports a diagnosis (report.json ``diagnoses[]``) leads: a sentence per host or rail."""
    told = []
    for host, own_rail in (
        (diagnosis["host"], diagnosis["rail"]),
        (diagnosis["peer"], diagnosis.get("peer_rail") or diagnosis["rail"]),
    ):
        if not host:
            continue
        rails = [own_rail] if own_rail else list(switches)
        known = [(rail, switches[rail][host]) for rail in rails if host in switches.get(rail, {})]
        shown = ", ".join(f"{rail} is on {text(own)}" for rail, own in known[:_SHOWN])
        more = and_more(known, _SHOWN, "rails")
        told += [f"{host} {shown}{more}"] if known else []
    if diagnosis["kind"] == "rail" and diagnosis["rail"] in switches:
        names = sorted({own["switch"] for own in switches[diagnosis["rail"]].values()})
        told += [f"the rail is on {some(names, _SHOWN)}"] if names else []
    return told
