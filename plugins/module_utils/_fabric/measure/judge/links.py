# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The findings about ports that change no verdict: ``links`` of the report."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from ...intent.tests import STARS
from ...plan import link_findings
from ..readings.port_state import Ports, before_and_after
from ..readings.tester_log import Evidence
from . import bond_members, host_ports, port_health, transceivers
from .session import State


def find(state: State, evidence: Evidence, *, playing: bool) -> list[dict[str, Any]]:
    """Return the findings about links, their transceivers, and at the end what counters showed.

    Before the first pass the transceivers are already known; between passes they are not read again.
    """
    found = link_findings.find(state.plan, {name: endpoint.rails for name, endpoint in state.endpoints.items()})
    if playing and evidence.passes:
        return found
    seen = _seen(state, evidence)
    counted = [] if playing else port_health.findings(state.tests, state.ports, stars=state.mode in STARS)
    counted += [] if playing else bond_members.findings(state.plan, state.ports)
    return [*found, *counted, *transceivers.findings(*seen, rails=state.rails, known=counted)]


def switches(state: State, evidence: Evidence) -> dict[str, dict[str, Any]]:
    """Return rail -> host -> {switch, port}, by the plan, or by what InfiniBand ports showed."""
    return transceivers.switches(state.plan.get("switches", {}), _seen(state, evidence)[0])


def conclude(state: State, evidence: Evidence) -> list[str]:
    """Add at the end of the tests in pods what their hosts counted; return sentences about the transceivers read."""
    seen = _seen(state, evidence)
    if evidence.ports:
        host_ports.add(state.ports, *seen)
    return [*bond_members.proofs(state.plan, state.ports), *transceivers.told(*seen, rails=state.rails)]


def _seen(state: State, evidence: Evidence) -> tuple[Mapping[str, Ports], Mapping[str, Ports]]:
    """Return what the ports showed before and after, worked out once."""
    if state.known_ports is None:
        state.known_ports = before_and_after(evidence)
    return state.known_ports
