# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Which hosts and Nodes are the same machine: the one place that compares machine ids."""

from __future__ import annotations

from collections.abc import Iterable, Mapping


def same_machine(hosts: Mapping[str, str], nodes: Iterable[tuple[str, str]]) -> dict[str, list[str]]:
    """Return host -> names of the Nodes with its machine id, in their order; an id that is not known is nobody's.

    ``hosts``: name -> machine id. ``nodes``: (name, machine id).
    """
    by_id: dict[str, list[str]] = {}
    for name, machine_id in nodes:
        if machine_id:
            by_id.setdefault(machine_id, []).append(name)
    return {host: sorted(by_id.get(machine_id, ())) for host, machine_id in hosts.items()}


def shared(found: Mapping[str, str | None]) -> dict[str, list[str]]:
    """Return Node -> hosts for each Node that more than one host was found to be."""
    hosts_of: dict[str, list[str]] = {}
    for host, node in found.items():
        if node:
            hosts_of.setdefault(node, []).append(host)
    return {node: hosts for node, hosts in hosts_of.items() if len(hosts) > 1}
