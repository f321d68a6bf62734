# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Where the sides of a test exchange their addresses: on their rail, or on the management network.

A port without an IPv4 address (InfiniBand, or a rail with IPv6 addresses alone) is reached by the management network
only, and reaches others only there. Each test goes by its own two ports, so that no port changes the tests of others.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from typing import Any

from ..schedule.schedule import Measurement
from .session import State, described


def address_of(state: State, name: str, rail: str) -> str:
    """Return the IPv4 address that a tester described of a rail, "-" for none."""
    return described(state, name, rail).get("address", "-")


def addresses(state: State, test: Measurement) -> tuple[str, str]:
    """Return the addresses of client and server for perftest's own exchange."""
    if elsewhere(state, test):
        client, server = (state.endpoints[name].host.get("control", "-") for name in (test.client, test.server))
        return client, server
    return address_of(state, test.client, test.rail), address_of(state, test.server, test.server_rail)


def elsewhere(state: State, test: Measurement) -> bool:
    """Return whether the sides of a test meet on the management network: as asked, or as a port has no address."""
    return bool(
        state.tests["control"] == "management"
        or ((test.client, test.rail) in bare(state) or (test.server, test.server_rail) in bare(state))
    )


def bare(state: State) -> Collection[tuple[str, str]]:
    """Return the ports that can be measured and have no IPv4 address, as (endpoint, rail)."""
    if state.known_bare is None:
        ports = ((name, rail, own) for name, one in state.endpoints.items() for rail, own in one.rails.items())
        state.known_bare = frozenset((name, rail) for name, rail, own in ports if own.get("address") == "-")
    return state.known_bare


def subnet_of(state: State, rail: str) -> str:
    """Return the IPv4 subnet that the plan has for a rail, "" for none."""
    planned: Mapping[str, Any] = next((one for one in state.plan["rails"] if one["name"] == rail), {})
    subnet: str = planned.get("subnet") or ""
    return "" if ":" in subnet else subnet


def over_ipv4(state: State, rail: str) -> bool:
    """Return whether a rail is measured over IPv4: as planned, without a plan as at least half of its ports can."""
    if rail not in state.known_families:
        own = [name for name, one in state.endpoints.items() if "address" in one.rails.get(rail, {})]
        without = sum((name, rail) in bare(state) for name in own)
        state.known_families[rail] = bool(subnet_of(state, rail)) or 2 * without <= len(own)
    return state.known_families[rail]
